//! Counting the items of a store that was written before items were counted.
//!
//! Digests cover counts, so every item that is counted gets a new digest, and with it its node, and
//! each node after that one. What does not fit its old digest, or cannot be read, is damage: it stays
//! as it is, so that it is still found, and is never given a digest that makes it look whole.
//!
//! This is a migration: it has statements of its own, and no later version changes them.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use super::op_error::OpResult;
use super::rows::{int, num};
use crate::digest::{self, Digest, NodeFields};
use crate::engines::sqlite::rows::branch::unpack;
use crate::engines::sqlite::rows::items::PACKED;
use crate::item::{Item, counted};
use crate::trials;
use crate::{ItemContent, ItemKind, ItemRef, NodeId, RunId, Tenant};

/// Rows that are read at once.
const PAGE: i64 = 256;

/// Count everything, in the transaction of the migration.
pub(super) fn count_tokens(conn: &Connection) -> OpResult<()> {
    // What was there before, while both are needed. In tables and not in memory: a store may have
    // more items than fit.
    conn.execute_batch(
        "CREATE TABLE item_was(item INTEGER PRIMARY KEY, digest BLOB NOT NULL) STRICT;
         CREATE TABLE node_was(node INTEGER PRIMARY KEY, digest BLOB NOT NULL) STRICT;",
    )?;
    items(conn)?;
    let sql = "UPDATE item SET units=coalesce((SELECT o.units FROM item o WHERE o.item=item.again), units)
      WHERE again IS NOT NULL";
    conn.execute(sql, [])?;
    nodes(conn)?;
    // A head that pointed elsewhere before is damage, and stays so.
    let sql = "UPDATE thread SET head_digest=(SELECT n.digest FROM node n WHERE n.tl=thread.head_tl AND n.first=thread.head_first)
      WHERE EXISTS(SELECT 1 FROM node n CROSS JOIN node_was w ON w.node=n.node
        WHERE n.tl=thread.head_tl AND n.first=thread.head_first AND w.digest=thread.head_digest)";
    conn.execute(sql, [])?;
    conn.execute_batch("DROP TABLE item_was; DROP TABLE node_was;")?;
    Ok(())
}

/// Change a row.
fn run<P: Params>(conn: &Connection, sql: &str, params: P) -> OpResult<()> {
    conn.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

/// An item as it was stored.
struct ItemRow {
    no: u32,
    kind: u8,
    source: u8,
    digest: Digest,
    body: Vec<u8>,
    run: RunId,
    tenant: String,
}

impl ItemRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            no: row.get(1)?,
            kind: row.get(2)?,
            source: row.get(3)?,
            digest: row.get(4)?,
            body: row.get(5)?,
            run: RunId::from_bytes(row.get(6)?),
            tenant: row.get(7)?,
        })
    }
}

/// A page of rows by number, each with what could be read of it.
fn page<T>(
    conn: &Connection,
    sql: &str,
    after: i64,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> OpResult<Vec<(i64, Option<T>)>> {
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map((after, PAGE), |row| Ok((row.get(0)?, read(row).ok())))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn items(conn: &Connection) -> OpResult<()> {
    let sql = "SELECT i.item, i.no, i.kind, i.source, i.digest, i.body, r.id, t.name
      FROM item i CROSS JOIN run r ON r.run=i.run CROSS JOIN tenant t ON t.tenant=r.tenant
      WHERE i.item>? AND i.units=0 AND i.again IS NULL AND i.body IS NOT NULL ORDER BY i.item LIMIT ?";
    let mut after = i64::MIN;
    loop {
        let rows = page(conn, sql, after, ItemRow::read)?;
        let Some((last, _)) = rows.last() else {
            return Ok(());
        };
        after = *last;
        for (item, row) in rows {
            let Some(row) = row else { continue };
            let was = row.digest;
            if let Some((units, digest)) = count(row) {
                let sql = "INSERT INTO item_was(item, digest) VALUES(?,?)";
                run(conn, sql, (item, was))?;
                let sql = "UPDATE item SET units=?, digest=? WHERE item=?";
                run(conn, sql, (units, digest, item))?;
            }
        }
    }
}

/// The count of an item and its new digest; `None` if it is damaged.
fn count(row: ItemRow) -> Option<(u32, Digest)> {
    let at = ItemRef {
        run: row.run,
        no: row.no,
    };
    let tenant = Tenant::new(&row.tenant).ok()?;
    let kind = ItemKind::of(row.kind & !PACKED)?;
    let body: Arc<[u8]> = if row.kind & PACKED == 0 {
        row.body.into()
    } else {
        unpack(&row.body, at).ok()?.into()
    };
    let mut said = ItemContent {
        kind,
        source: row.source,
        tokens: 0,
        body: Arc::clone(&body),
    };
    if digest::item(&tenant, at, &said) != row.digest {
        return None;
    }
    let item = Item {
        at,
        again: None,
        kind,
        tokens: 0,
        body: Ok(body),
        source: row.source,
    };
    let message = item.message().ok()?;
    said.tokens = match trials::planted("old-items-uncounted") {
        true => 0,
        false => counted(kind, &message),
    };
    Some((said.tokens, digest::item(&tenant, at, &said)))
}

/// A node as it was stored.
struct NodeRow {
    tl: i64,
    run: i64,
    fields: NodeFields,
    has_state: bool,
    state: Option<Digest>,
    digest: Digest,
    tenant: String,
    parent: Option<(i64, u64)>,
}

impl NodeRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let parent: Option<i64> = row.get(14)?;
        let fork = num(row.get(15)?);
        Ok(Self {
            tl: row.get(1)?,
            run: row.get(4)?,
            fields: NodeFields {
                id: NodeId {
                    run: RunId::from_bytes(row.get(12)?),
                    step: row.get(5)?,
                },
                first: num(row.get(2)?),
                last: num(row.get(3)?),
                first_item: row.get(6)?,
                flags: row.get(7)?,
                tokens: num(row.get(8)?),
            },
            digest: row.get(9)?,
            has_state: row.get::<_, Option<i64>>(10)?.is_some(),
            state: row.get(11)?,
            tenant: row.get(13)?,
            parent: parent.map(|tl| (tl, fork)),
        })
    }
}

/// The node before one: its total, and its digest as it was and as it is.
#[derive(Clone, Copy)]
struct Before {
    units: u64,
    was: Digest,
    is: Digest,
}

fn nodes(conn: &Connection) -> OpResult<()> {
    // Parents before children: a node was always stored after the one that it continues.
    let sql = "SELECT n.node, n.tl, n.first, n.last, n.run, n.step, n.item_lo, n.flags, n.units, n.digest,
        n.state_run, s.digest, r.id, t.name, l.parent_tl, l.fork
      FROM node n CROSS JOIN run r ON r.run=n.run CROSS JOIN tenant t ON t.tenant=r.tenant
        CROSS JOIN timeline l ON l.tl=n.tl LEFT JOIN state s ON s.run=n.state_run AND s.step=n.state_step
      WHERE n.node>? ORDER BY n.node LIMIT ?";
    let mut after = i64::MIN;
    loop {
        let rows = page(conn, sql, after, NodeRow::read)?;
        let Some((last, _)) = rows.last() else {
            return Ok(());
        };
        after = *last;
        for (node, row) in rows {
            let Some(row) = row else { continue };
            if let Some((units, digest)) = total(conn, &row)? {
                let sql = "INSERT INTO node_was(node, digest) VALUES(?,?)";
                run(conn, sql, (node, row.digest))?;
                let sql = "UPDATE node SET units=?, digest=? WHERE node=?";
                run(conn, sql, (int(units), digest, node))?;
            }
        }
    }
}

/// The total of a node and its new digest; `None` if it is damaged.
fn total(conn: &Connection, row: &NodeRow) -> OpResult<Option<(u64, Digest)>> {
    let Ok(tenant) = Tenant::new(&row.tenant) else {
        return Ok(None);
    };
    if row.has_state != row.state.is_some() {
        return Ok(None);
    }
    let Some(before) = before(conn, row)? else {
        return Ok(None);
    };
    let fields = row.fields;
    let length = fields.last.saturating_sub(fields.first);
    let last_item = u64::from(fields.first_item).saturating_add(length);
    let mut statement = conn.prepare_cached(
        "SELECT i.units, i.digest, coalesce(w.digest, i.digest) FROM item i LEFT JOIN item_was w ON w.item=i.item
         WHERE i.run=? AND i.no BETWEEN ? AND ? ORDER BY i.no",
    )?;
    let key = (row.run, fields.first_item, int(last_item));
    let items = statement.query_map(key, |row| {
        let read = || -> rusqlite::Result<_> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        Ok(read().ok())
    })?;
    let items: Vec<Option<(u32, Digest, Digest)>> = items.collect::<Result<_, _>>()?;
    let Some(items) = items.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let state = row.state.as_ref();
    let was = before.as_ref().map(|before| &before.was);
    let digests = items.iter().map(|(_, _, was)| *was);
    if digest::node(&tenant, was, &fields, state, digests) != row.digest {
        return Ok(None);
    }
    let own: u64 = items.iter().map(|(units, _, _)| u64::from(*units)).sum();
    let fields = NodeFields {
        tokens: before.map_or(0, |before| before.units).saturating_add(own),
        ..fields
    };
    let is = before.as_ref().map(|before| &before.is);
    let digests = items.iter().map(|(_, is, _)| *is);
    let digest = digest::node(&tenant, is, &fields, state, digests);
    Ok(Some((fields.tokens, digest)))
}

/// The node before, if there is one; `None` if it cannot be read.
fn before(conn: &Connection, row: &NodeRow) -> OpResult<Option<Option<Before>>> {
    let sql = "SELECT n.units, n.digest, coalesce(w.digest, n.digest) FROM node n LEFT JOIN node_was w ON w.node=n.node
      WHERE n.tl=? AND n.first<=? ORDER BY n.first DESC LIMIT 1";
    let find = |tl: i64, last: u64| -> OpResult<Option<Option<Before>>> {
        let mut statement = conn.prepare_cached(sql)?;
        let found = statement.query_row((tl, int(last)), |row| {
            let read = || -> rusqlite::Result<_> {
                Ok(Before {
                    units: num(row.get(0)?),
                    is: row.get(1)?,
                    was: row.get(2)?,
                })
            };
            Ok(read().ok())
        });
        Ok(found.optional()?)
    };
    let own = find(row.tl, row.fields.first.saturating_sub(1))?;
    let found = match (own, row.parent) {
        (None, Some((parent, fork))) => find(parent, fork)?,
        (own, _) => own,
    };
    Ok(match found {
        None => Some(None),
        Some(read) => read.map(Some),
    })
}
