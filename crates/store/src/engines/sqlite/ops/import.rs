//! Taking over threads that were made elsewhere.

use crate::engines::sqlite::ops::purge;
use crate::engines::sqlite::ops::threads;
use rusqlite::params;
use throughline_model::json::RawJson;

use crate::digest::{self, Digest};
use crate::engines::sqlite::cache::CachedRun;
use crate::engines::sqlite::op_error::{OpResult, exists, not_found};
use crate::engines::sqlite::rows::checksum::checksum;
use crate::engines::sqlite::rows::find::{aliases, any_run, node_of, thread_by_id};
use crate::engines::sqlite::rows::items::{self, PreparedItem};
use crate::engines::sqlite::rows::nodes::{Lookahead, NewNode, NewState, insert_node, minute};
use crate::engines::sqlite::rows::redactions;
use crate::engines::sqlite::rows::sql::{one, prepare, run_sql};
use crate::engines::sqlite::rows::{NodeRow, RunRow, SHOWN, flag, int};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::rules::import::FoundRun;
use crate::{
    Import, ImportItem, ImportNode, ItemRef, Mode, NewThread, NodeId, RunKind, TenantScope,
    ThreadId, rules,
};

/// The stage of a thread that is being imported.
const IMPORTING: i64 = 1;

/// One step of an import, ready to be stored.
pub(crate) enum PreparedImport {
    Open(NewThread, u64),
    Node(ThreadId, Box<PreparedNode>),
    Finish(ThreadId, Option<NodeId>, u64),
    Abort(ThreadId),
}

pub(crate) struct PreparedNode {
    node: ImportNode,
    /// Its items; `None` for those without bytes.
    items: Vec<Option<PreparedItem>>,
    state: Option<NewState>,
}

impl PreparedImport {
    pub(crate) fn new(scope: &TenantScope, import: &Import) -> crate::Result<Self> {
        Ok(match import {
            Import::Open { thread, created } => Self::Open(thread.clone(), *created),
            Import::Node { thread, node } => {
                rules::import::check(node)?;
                let prepared = |item: &ImportItem| match item {
                    ImportItem::Content(said) => Some(PreparedItem::said(said)),
                    ImportItem::Redacted(..) | ImportItem::Gap => None,
                };
                let state = node.state.as_ref();
                let prepared = PreparedNode {
                    items: node.items.iter().map(prepared).collect(),
                    state: state
                        .map(|state| NewState::new(scope, node.node.run, node.node.step, state)),
                    node: (**node).clone(),
                };
                Self::Node(thread.clone(), Box::new(prepared))
            }
            Import::Finish {
                thread,
                head,
                touched,
            } => Self::Finish(thread.clone(), *head, *touched),
            Import::Abort { thread } => Self::Abort(thread.clone()),
        })
    }
}

/// Do one step of an import.
pub(crate) fn import(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    import: &PreparedImport,
) -> OpResult<()> {
    match import {
        PreparedImport::Open(thread, created) => open(tx, scope, thread, *created),
        PreparedImport::Node(thread, prepared) => node(tx, scope, thread, prepared),
        PreparedImport::Finish(thread, head, touched) => finish(tx, scope, thread, *head, *touched),
        PreparedImport::Abort(thread) => {
            let Some(tenant) = tx.known_tenant(scope.tenant())? else {
                return Ok(());
            };
            let shown = thread_by_id(tx.conn, tenant, thread, SHOWN)?;
            rules::import::abort(thread, shown.is_some())?;
            // One that is not there was aborted before.
            let Some(imported) = thread_by_id(tx.conn, tenant, thread, IMPORTING)? else {
                return Ok(());
            };
            let row = imported.row;
            threads::mark_deleted(tx, row)?;
            // Its runs' names must be free at once, as its own is.
            purge::sweep_at_once(tx, row)
        }
    }
}

fn importing(tx: &mut Tx<'_>, scope: &TenantScope, id: &ThreadId) -> OpResult<i64> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let found = match tenant {
        Some(tenant) => thread_by_id(tx.conn, tenant, id, IMPORTING)?,
        None => None,
    };
    found
        .map(|thread| thread.row)
        .ok_or_else(|| not_found("import of thread", id))
}

fn open(tx: &mut Tx<'_>, scope: &TenantScope, new: &NewThread, created: u64) -> OpResult<()> {
    if let Some(tenant) = tx.known_tenant(scope.tenant())? {
        let there = thread_by_id(tx.conn, tenant, &new.id, IMPORTING)?;
        if let Some(thread) = there {
            let sql = "SELECT 1 FROM timeline WHERE thread=? LIMIT 1";
            let has_nodes = one(tx.conn, sql, [thread.row], |_| Ok(()))?.is_some();
            let thread = thread.thread(aliases(tx.conn, thread.row)?)?;
            if rules::import::is_opened(&thread, has_nodes, new, created) {
                return Ok(());
            }
        }
        threads::check_new(tx.conn, tenant, new)?;
    }
    let tenant = tx.tenant(scope.tenant())?;
    let how = threads::Insert {
        head: None,
        created,
        stage: IMPORTING,
    };
    threads::insert_new(tx, tenant, new, Some(&how))?;
    Ok(())
}

fn flags(node: &ImportNode) -> u32 {
    let mut flags = flag::MOVED;
    if node.mode == Mode::PerCall {
        flags |= flag::PER_CALL;
    }
    if node.kind == RunKind::Append {
        flags |= flag::APPEND;
    }
    if node.hidden {
        flags |= flag::HIDDEN;
    }
    flags
}

fn node(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    id: &ThreadId,
    prepared: &PreparedNode,
) -> OpResult<()> {
    let thread = importing(tx, scope, id)?;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let new = &prepared.node;
    let run = any_run(tx.conn, tenant, new.node.run)?;
    if let Some(run) = &run {
        if run.thread != thread {
            return Err(exists("run", &run.id));
        }
        let node = node_of(tx.conn, run, new.node.step)?;
        let found = FoundRun {
            has_node: match &node {
                Some(node) => Some(has_items(tx, scope, node, new)?),
                None => None,
            },
            last: run.published_id(),
            next_step: run.next_step,
        };
        if !rules::import::node(new, &found)? {
            return Ok(());
        }
    }
    let base = match new.parent {
        None => None,
        Some(parent) => Some(imported(tx, tenant, thread, parent)?.base(true)),
    };
    let from = run.as_ref().map_or(1, |run| run.next_item);
    let last = rules::items::after(from - 1, prepared.items.len())?;
    // Nothing is refused from here on.
    let row = match &run {
        Some(run) => {
            keep_inner(tx, run)?;
            run.row
        }
        None => {
            let sql = "INSERT INTO run(tenant, id, thread, live, state, flags, epoch, attempt, base_tl, base_first, version,
                inputs, next_step, next_item, next_event, created, progress)
              VALUES(?1,?2,?3,NULL,?4,?5,1,0,?6,?7,0,0,0,1,0,?8,?9)";
            let values = params![
                tenant,
                new.node.run.as_bytes(),
                thread,
                new.ended.code(),
                flags(new),
                base.map(|base| base.tl),
                base.map(|base| int(base.first)),
                int(new.begun),
                int(new.created),
            ];
            run_sql(tx.conn, sql, values)?;
            tx.conn.last_insert_rowid()
        }
    };
    let mut live = CachedRun {
        next_step: new.node.step,
        next_item: from,
        base,
        from,
        ..CachedRun::new(scope.tenant(), (row, new.node.run), (thread, id.clone()))
    };
    store(tx, &mut live, prepared)?;
    let of = NewNode {
        step: new.node.step,
        to: last,
        open: new.open,
        state: prepared.state.as_ref(),
        created: new.created,
        seen: Lookahead::default(),
    };
    let placed = insert_node(tx, &mut live, &of)?;
    let sql = "UPDATE run SET state=?, flags=?, next_step=?, next_item=?, pub_tl=?, pub_first=?, pub_step=?, progress=?, note=? WHERE run=?";
    let values = params![
        new.ended.code(),
        flags(new)
            | checksum(
                &new.node.run,
                flags(new),
                Some((placed.tl, placed.first, new.node.step))
            ),
        new.node.step + 1,
        last + 1,
        placed.tl,
        int(placed.first),
        new.node.step,
        int(new.created),
        new.note.as_ref().map(RawJson::get),
        row,
    ];
    run_sql(tx.conn, sql, values)?;
    Ok(())
}

/// A node of the thread that is being imported.
fn imported(tx: &Tx<'_>, tenant: i64, thread: i64, id: NodeId) -> OpResult<NodeRow> {
    let run = any_run(tx.conn, tenant, id.run)?.filter(|run| run.thread == thread);
    let found = match run {
        Some(run) => node_of(tx.conn, &run, id.step)?,
        None => None,
    };
    found.ok_or_else(|| not_found("node", &id))
}

/// Store the items of a node.
fn store(tx: &Tx<'_>, live: &mut CachedRun, prepared: &PreparedNode) -> OpResult<()> {
    let items = prepared.items.iter().zip(&prepared.node.items);
    for (no, (item, given)) in (live.from..).zip(items) {
        let (tenant, at) = (&live.tenant, ItemRef { run: live.id, no });
        let summary = match (item, given) {
            (Some(item), _) => items::insert(tx, tenant, live.row, at, item, None)?,
            (None, ImportItem::Redacted(said, redaction)) => {
                redactions::insert(tx.conn, tenant, live.row, at, redaction)?;
                items::insert_redacted(tx, tenant, live.row, at, said)?
            }
            (None, ImportItem::Gap | ImportItem::Content(_)) => {
                items::insert_gap(tx, tenant, live.row, at)?
            }
        };
        live.add_summary(summary);
    }
    Ok(())
}

/// Whether a node has the items that are given.
fn has_items(tx: &Tx<'_>, scope: &TenantScope, node: &NodeRow, new: &ImportNode) -> OpResult<bool> {
    let sql = "SELECT digest FROM item WHERE run=? AND no BETWEEN ? AND ? ORDER BY no";
    let mut statement = prepare(tx.conn, sql)?;
    let key = (node.run, node.item_lo, node.item_hi());
    let stored = statement.query_map(key, |row| row.get(0))?;
    let stored: Vec<Digest> = stored.collect::<Result<_, _>>()?;
    let given = (node.item_lo..).zip(&new.items).map(|(no, item)| {
        let run = new.node.run;
        digest::imported(scope.tenant(), ItemRef { run, no }, item)
    });
    Ok(given.eq(stored))
}

/// A run's node that is no longer its last one is found by its step.
fn keep_inner(tx: &Tx<'_>, run: &RunRow) -> OpResult<()> {
    let Some((tl, first, step)) = run.published else {
        return Ok(());
    };
    let sql = "INSERT INTO step(run, no, first, items, tl, pos, flags, version, content)
      SELECT run, step, item_lo, last-first+1, tl, first, 0, 0, ?3 FROM node WHERE tl=?1 AND first=?2 ON CONFLICT DO NOTHING";
    debug_assert!(step < run.next_step);
    run_sql(tx.conn, sql, (tl, int(first), Digest::default()))?;
    Ok(())
}

fn finish(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    id: &ThreadId,
    head: Option<NodeId>,
    touched: u64,
) -> OpResult<()> {
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    if let Some(shown) = thread_by_id(tx.conn, tenant, id, SHOWN)? {
        let shown = shown.thread(Vec::new())?;
        return Ok(rules::import::finished(&shown, head, touched)?);
    }
    let thread = importing(tx, scope, id)?;
    let node = match head {
        None => None,
        Some(head) => Some(imported(tx, tenant, thread, head)?),
    };
    let sql = "UPDATE thread SET stage=0, since=?, head_tl=?, head_first=?, head_digest=?, version=0, touched=?, recent=? WHERE thread=?";
    let values = params![
        int(tx.now),
        node.as_ref().map(|node| node.tl),
        node.as_ref().map(|node| int(node.first)),
        node.as_ref().map(|node| node.digest),
        int(touched),
        minute(touched),
        thread,
    ];
    run_sql(tx.conn, sql, values)?;
    tx.after_commit(CacheUpdate::ThreadMoved(thread));
    Ok(())
}
