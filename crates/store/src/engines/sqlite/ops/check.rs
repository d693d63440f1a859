//! Looking at everything that is stored.

use crate::engines::sqlite::events;
use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use crate::digest::{self, Digest};
use crate::engines::sqlite::op_error::{OpError, OpResult, corrupt, storage};
use crate::engines::sqlite::rows::branch::{ITEM, check_digest, item, misplaced, readable};
use crate::engines::sqlite::rows::find::{node_holding, node_with_item};
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::rows::{NODE, NODE_TABLES, NodeRow, num};
use crate::{Checked, Damage, Error, ItemRef, Position, Progress, RunId, Tenant, rules};

/// Rows between two words about the progress.
const TELL: u64 = 1000;

/// A check on its way.
struct Check<'a> {
    conn: &'a Connection,
    tell: &'a mut dyn FnMut(Progress),
    done: u64,
    total: u64,
    tenants: HashMap<i64, Tenant>,
    checked: Checked,
    /// Those that are damaged.
    items: HashSet<ItemRef>,
}

/// Check every digest and every reference.
pub(crate) fn check(conn: &Connection, tell: &mut dyn FnMut(Progress)) -> OpResult<Checked> {
    let total = count(conn, "node")? + count(conn, "item")? + count(conn, "thread")?;
    let mut check = Check {
        conn,
        tell,
        done: 0,
        total,
        tenants: HashMap::new(),
        checked: Checked::default(),
        items: HashSet::new(),
    };
    check.file()?;
    check.tenants()?;
    check.threads()?;
    check.timelines()?;
    check.items()?;
    check.states()?;
    check.remote_calls()?;
    check.references()?;
    check.events()?;
    let (done, total) = (check.done, check.total);
    (check.tell)(Progress {
        done,
        total,
        unit: "rows",
    });
    Ok(check.checked)
}

impl Check<'_> {
    fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(TELL) {
            (self.tell)(Progress {
                done: self.done,
                total: self.total,
                unit: "rows",
            });
        }
    }

    fn damage(&mut self, tenant: Option<String>, thread: Option<String>, error: Error) {
        let (site, detail) = match error {
            Error::Corrupt { place, detail } => (*place, detail),
            other => ("the file".into(), other.to_string()),
        };
        // An item may be found by way of its node and by itself.
        if site.item.is_some_and(|item| !self.items.insert(item)) {
            return;
        }
        let mut damage = Damage::new(tenant, &site, detail);
        damage.thread = damage.thread.or(thread);
        self.checked.damage.push(damage);
    }

    /// Damage goes on the list; a store that cannot be read at all ends the check.
    fn take(
        &mut self,
        found: OpResult<()>,
        tenant: Option<&str>,
        thread: Option<&str>,
    ) -> OpResult<()> {
        match found {
            Ok(()) => Ok(()),
            Err(OpError::Refused(error) | OpError::Broken(error @ Error::Corrupt { .. })) => {
                self.damage(tenant.map(Into::into), thread.map(Into::into), error);
                Ok(())
            }
            Err(broken) => Err(broken),
        }
    }

    fn file(&mut self) -> OpResult<()> {
        let mut statement = self.conn.prepare("PRAGMA integrity_check(100)")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        for row in rows {
            let word = row.unwrap_or_else(|error| storage(&error).to_string());
            if word != "ok" {
                let detail = word;
                self.damage(None, None, Error::corrupt("the file", detail));
            }
        }
        Ok(())
    }

    fn tenants(&mut self) -> OpResult<()> {
        let mut statement = self.conn.prepare("SELECT tenant, name FROM tenant")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (number, name): (i64, String) = row?;
            match Tenant::new(&name) {
                Ok(tenant) => {
                    self.tenants.insert(number, tenant);
                }
                Err(error) => {
                    let place = format!("tenant {number}");
                    self.damage(None, None, Error::corrupt(place, error.to_string()));
                }
            }
        }
        Ok(())
    }

    fn name(&self, tenant: i64) -> Option<&str> {
        self.tenants.get(&tenant).map(Tenant::as_str)
    }

    fn threads(&mut self) -> OpResult<()> {
        let sql = "SELECT t.tenant, t.id, t.head_tl, n.node, l.thread, t.borrowed, t.thread, t.stage, t.head_digest IS n.digest FROM thread t
          LEFT JOIN node n ON n.tl=t.head_tl AND n.first=t.head_first LEFT JOIN timeline l ON l.tl=t.head_tl";
        let mut statement = self.conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let tenant: i64 = row.get(0)?;
            let id: Option<String> = row.get(1)?;
            let head: Option<i64> = row.get(2)?;
            let node: Option<i64> = row.get(3)?;
            let owner: Option<i64> = row.get(4)?;
            let borrowed: bool = row.get(5)?;
            let thread: i64 = row.get(6)?;
            let stage: i64 = row.get(7)?;
            let fits: bool = row.get(8)?;
            self.step();
            // What is left of deleted threads has no head that counts.
            if stage > 1 {
                continue;
            }
            self.checked.threads += u64::from(stage == 0);
            let name = self.name(tenant).map(str::to_owned);
            let mut wrong = |detail: &str| {
                let place = format!("thread {}", id.as_deref().unwrap_or("without an id"));
                self.damage(name.clone(), id.clone(), Error::corrupt(place, detail));
            };
            if id.is_none() {
                wrong("it is shown and has no id");
            }
            if head.is_some() && node.is_none() {
                wrong("its head is missing");
            } else if !fits {
                wrong("its head is not the one that was stored");
            } else if head.is_some() && (owner == Some(thread)) == borrowed {
                wrong("its head is on a timeline of another thread");
            }
            if name.is_none() {
                wrong("its tenant is missing");
            }
        }
        Ok(())
    }

    fn timelines(&mut self) -> OpResult<()> {
        let sql = "SELECT l.tl, l.parent_tl, l.fork, t.tenant, t.id, t.stage FROM timeline l LEFT JOIN thread t ON t.thread=l.thread ORDER BY l.tl";
        let mut statement = self.conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let timeline = TimelineRow {
                tl: row.get(0)?,
                parent: row.get(1)?,
                fork: num(row.get(2)?),
                tenant: row.get(3)?,
                thread: row.get(4)?,
                deleted: row.get::<_, Option<i64>>(5)? == Some(2),
            };
            let checked = self.timeline(&timeline);
            let tenant = timeline
                .tenant
                .and_then(|tenant| self.name(tenant))
                .map(str::to_owned);
            self.take(checked, tenant.as_deref(), timeline.thread.as_deref())?;
        }
        Ok(())
    }

    fn timeline(&mut self, timeline: &TimelineRow) -> OpResult<()> {
        let place = || format!("timeline {}", timeline.tl);
        let tenant = timeline
            .tenant
            .and_then(|tenant| self.tenants.get(&tenant))
            .cloned();
        let Some(tenant) = tenant else {
            return Err(corrupt(place(), "its thread is missing"));
        };
        let mut last = timeline.fork;
        let mut tokens = 0;
        let mut before: Option<NodeRow> = None;
        if let Some(parent) = timeline.parent {
            let base = node_holding(self.conn, parent, timeline.fork)?;
            let Some(base) = base else {
                return Err(corrupt(place(), "the node it hangs on is missing"));
            };
            if base.last != timeline.fork {
                return Err(corrupt(place(), "it hangs on the middle of a node"));
            }
            tokens = base.tokens;
            before = Some(base);
        }
        let sql = format!("SELECT {NODE} FROM {NODE_TABLES} WHERE n.tl=? ORDER BY n.first");
        let mut statement = prepare(self.conn, &sql)?;
        let mut rows = statement.query([timeline.tl])?;
        let mut any = false;
        while let Some(row) = rows.next()? {
            let node = NodeRow::read(row, 0)?;
            any = true;
            self.checked.nodes += 1;
            self.step();
            let mut found = check_digest(self.conn, &tenant, &node, before.as_ref());
            if node.first != last + 1 {
                found = Err(misplaced(&node, last));
            }
            if found.is_ok() {
                found = check_total(self.conn, &node, tokens);
            }
            self.take(found, Some(tenant.as_str()), timeline.thread.as_deref())?;
            last = node.last;
            tokens = node.tokens;
            before = Some(node);
        }
        // The sweep of a deleted thread may be half done.
        if !any && !timeline.deleted {
            return Err(corrupt(place(), "it has no nodes"));
        }
        Ok(())
    }

    fn items(&mut self) -> OpResult<()> {
        let sql = format!(
            "SELECT r.id, r.tenant, t.id, {ITEM} FROM item i LEFT JOIN run r ON r.run=i.run LEFT JOIN thread t ON t.thread=r.thread ORDER BY i.item"
        );
        let mut statement = self.conn.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.checked.items += 1;
            self.step();
            let run: Option<[u8; 16]> = row.get(0)?;
            let tenant: Option<i64> = row.get(1)?;
            let thread: Option<String> = row.get(2)?;
            let tenant = tenant.and_then(|tenant| self.tenants.get(&tenant)).cloned();
            let name = tenant.as_ref().map(Tenant::as_str);
            let checked = match (run, &tenant) {
                (Some(run), Some(tenant)) => self
                    .item(row, RunId::from_bytes(run), tenant)
                    .map_err(|error| self.positioned(row, error)),
                _ => Err(corrupt("an item", "its run is missing")),
            };
            self.take(checked, name, thread.as_deref())?;
        }
        Ok(())
    }

    /// Damage of an item with its position, if it is in a node.
    fn positioned(&self, row: &rusqlite::Row<'_>, error: OpError) -> OpError {
        let find = || -> OpResult<Option<Position>> {
            let (run, no): (i64, u32) = (row.get(3)?, row.get(4)?);
            let node = node_with_item(self.conn, run, no)?;
            let node = node.filter(|node| no <= node.item_hi());
            Ok(node.map(|node| node.first + u64::from(no - node.item_lo)))
        };
        match find() {
            Ok(Some(position)) => error.at_position(position),
            // The damage itself is what counts.
            Ok(None) | Err(_) => error,
        }
    }

    fn item(&mut self, row: &rusqlite::Row<'_>, run: RunId, tenant: &Tenant) -> OpResult<()> {
        let stored = readable(row, 3, run)?;
        let own = stored.is_original();
        let read = item(self.conn, tenant, stored, true)?;
        if own && read.body.is_err() {
            self.checked.redacted += 1;
        }
        Ok(())
    }

    fn states(&mut self) -> OpResult<()> {
        let sql = "SELECT r.id, r.tenant, s.step, coalesce(s.rest, s.digest), s.body, t.id FROM state s LEFT JOIN run r ON r.run=s.run
          LEFT JOIN thread t ON t.thread=r.thread";
        let mut statement = self.conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let run: Option<[u8; 16]> = row.get(0)?;
            let tenant: Option<i64> = row.get(1)?;
            let step: u32 = row.get(2)?;
            let stored: Digest = row.get(3)?;
            let body: String = row.get(4)?;
            let thread: Option<String> = row.get(5)?;
            let tenant = tenant.and_then(|tenant| self.tenants.get(&tenant)).cloned();
            let place = format!("the state of step {step}");
            let checked = match (run, &tenant) {
                (Some(run), Some(tenant)) => {
                    let run = RunId::from_bytes(run);
                    let fits = digest::state(tenant, run, step, &body) == stored;
                    match fits {
                        true => Ok(()),
                        false => {
                            let place = format!("{place} of {run}");
                            Err(corrupt(place, "its digest does not fit its bytes"))
                        }
                    }
                }
                _ => Err(corrupt(place, "its run is missing")),
            };
            let name = tenant.as_ref().map(Tenant::as_str);
            self.take(checked, name, thread.as_deref())?;
        }
        Ok(())
    }

    fn remote_calls(&mut self) -> OpResult<()> {
        let sql = "SELECT r.id, r.tenant, c.step, c.handle, c.digest, t.id FROM remote_call c LEFT JOIN run r ON r.run=c.run
          LEFT JOIN thread t ON t.thread=r.thread";
        let mut statement = self.conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let run: Option<[u8; 16]> = row.get(0)?;
            let tenant: Option<i64> = row.get(1)?;
            let thread: Option<String> = row.get(5)?;
            let tenant = tenant.and_then(|tenant| self.tenants.get(&tenant)).cloned();
            let checked = match (run.map(RunId::from_bytes), &tenant) {
                (Some(run), Some(tenant)) => remote_call(row, tenant, run)
                    .map_err(|error| error.of(format!("the remote call of {run}"))),
                _ => Err(corrupt("a remote call", "its run is missing")),
            };
            let name = tenant.as_ref().map(Tenant::as_str);
            self.take(checked, name, thread.as_deref())?;
        }
        Ok(())
    }

    fn events(&mut self) -> OpResult<()> {
        for wrong in events::check(self.conn)? {
            self.take(Err(wrong), None, None)?;
        }
        Ok(())
    }

    /// What points somewhere points at something.
    fn references(&mut self) -> OpResult<()> {
        let checks = [
            ("a run without its thread", "SELECT hex(r.id) FROM run r WHERE r.state<>10 AND NOT EXISTS(SELECT 1 FROM thread t WHERE t.thread=r.thread)"),
            ("a run without its last node", "SELECT hex(r.id) FROM run r CROSS JOIN thread t ON t.thread=r.thread WHERE r.pub_tl IS NOT NULL AND t.stage IN (0, 1)
               AND NOT EXISTS(SELECT 1 FROM node n WHERE n.tl=r.pub_tl AND n.first=r.pub_first AND n.run=r.run AND n.step=r.pub_step)"),
            ("a run without its request", "SELECT hex(r.id) FROM run r WHERE r.request IS NOT NULL AND NOT EXISTS(SELECT 1 FROM request q WHERE q.request=r.request)"),
            ("a step without its run", "SELECT s.run FROM step s WHERE NOT EXISTS(SELECT 1 FROM run r WHERE r.run=s.run)"),
            ("a call without its run", "SELECT c.run FROM call c WHERE NOT EXISTS(SELECT 1 FROM run r WHERE r.run=c.run)"),
            ("a call without its result", "SELECT hex(r.id) FROM call c CROSS JOIN run r ON r.run=c.run CROSS JOIN thread t ON t.thread=r.thread WHERE c.state=2 AND t.stage=0
               AND NOT EXISTS(SELECT 1 FROM item i WHERE i.run=c.run AND i.no=c.result_no)"),
            ("a fingerprint without its item", "SELECT f.no FROM fingerprint f WHERE NOT EXISTS(SELECT 1 FROM item i WHERE i.run=f.run AND i.no=f.no)"),
            ("a fingerprint of another tenant than its run", "SELECT f.no FROM fingerprint f CROSS JOIN run r ON r.run=f.run WHERE f.tenant<>r.tenant"),
            ("nodes without their run", "SELECT n.run FROM node n WHERE NOT EXISTS(SELECT 1 FROM run r WHERE r.run=n.run)"),
            ("events without their run", "SELECT e.run FROM run_event e WHERE NOT EXISTS(SELECT 1 FROM run r WHERE r.run=e.run)"),
            ("an approval without its run", "SELECT hex(a.id) FROM approval a WHERE NOT EXISTS(SELECT 1 FROM run r WHERE r.run=a.run)"),
            ("an alias without its thread", "SELECT a.name FROM alias a WHERE NOT EXISTS(SELECT 1 FROM thread t WHERE t.thread=a.thread)"),
            ("a queued message without its thread", "SELECT q.no FROM queue q WHERE NOT EXISTS(SELECT 1 FROM thread t WHERE t.thread=q.thread)"),
            ("a run of another tenant than its thread", "SELECT hex(r.id) FROM run r CROSS JOIN thread t ON t.thread=r.thread WHERE r.tenant<>t.tenant"),
            ("a run with the request of another tenant", "SELECT hex(r.id) FROM run r CROSS JOIN request q ON q.request=r.request WHERE r.tenant<>q.tenant"),
            ("an alias of another tenant than its thread", "SELECT a.name FROM alias a CROSS JOIN thread t ON t.thread=a.thread WHERE a.tenant<>t.tenant"),
            ("an approval of another tenant than its run", "SELECT hex(a.id) FROM approval a CROSS JOIN run r ON r.run=a.run WHERE a.tenant<>r.tenant OR a.thread<>r.thread"),
            ("a redaction without its item", "SELECT d.no FROM redaction d WHERE NOT EXISTS(SELECT 1 FROM item i WHERE i.run=d.run AND i.no=d.no AND i.body IS NULL)"),
        ];
        for (place, sql) in checks {
            let mut statement = self.conn.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let word: rusqlite::types::Value = row.get(0)?;
                let detail = match word {
                    rusqlite::types::Value::Text(text) => text.to_lowercase(),
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    other => format!("{other:?}"),
                };
                self.damage(None, None, Error::corrupt(place, detail));
            }
        }
        Ok(())
    }
}

/// The number of rows of a table.
fn count(conn: &Connection, table: &'static str) -> OpResult<u64> {
    let sql = format!("SELECT count(*) FROM {table}");
    Ok(num(conn.query_row(&sql, [], |row| row.get(0))?))
}

struct TimelineRow {
    tl: i64,
    parent: Option<i64>,
    fork: u64,
    tenant: Option<i64>,
    thread: Option<String>,
    deleted: bool,
}

/// Check the remote call in a row of [`Check::remote_calls`].
fn remote_call(row: &rusqlite::Row<'_>, tenant: &Tenant, run: RunId) -> OpResult<()> {
    let (step, handle, stored): (u32, String, Digest) = (row.get(2)?, row.get(3)?, row.get(4)?);
    Ok(rules::damage::remote_call(
        tenant,
        run,
        (step, &handle),
        stored,
    )?)
}

/// Check that the total of a node is that of the node before and what its items count as.
fn check_total(conn: &Connection, node: &NodeRow, before: u64) -> OpResult<()> {
    // Counts that cannot be are damage too, and must not add up to more than SQLite can hold.
    let sql = "SELECT coalesce(sum(min(max(units, 0), 4294967295)), 0) FROM item WHERE run=? AND no BETWEEN ? AND ?";
    let key = (node.run, node.item_lo, node.item_hi());
    let own: Option<i64> = one(conn, sql, key, |row| row.get(0))?;
    let sum = before.saturating_add(own.map_or(0, num));
    Ok(rules::damage::total(node.site(), node.tokens, sum)?)
}
