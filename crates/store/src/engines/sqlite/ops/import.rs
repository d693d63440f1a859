//! Taking over threads that were made elsewhere.

use rusqlite::params;
use throughline_model::json::RawJson;

use crate::digest::Digest;
use crate::engines::sqlite::cache::Live;
use crate::engines::sqlite::fault::{Done, exists, missing};
use crate::engines::sqlite::rows::find::{any_run, node_of, thread_by_id};
use crate::engines::sqlite::rows::items::{self, Ready};
use crate::engines::sqlite::rows::nodes::{NewState, NodeOf, Seen, minute, place_node};
use crate::engines::sqlite::rows::seal::seal;
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{NodeRow, RunRow, flag, int};
use crate::engines::sqlite::write::job::{Effect, Tx};
use crate::{
    Import, ImportItem, ImportNode, ItemRef, Mode, NewThread, NodeId, RunKind, TenantScope,
    ThreadId, rules,
};

/// The stage of a thread that is being imported.
const IMPORTING: i64 = 1;

/// One step of an import, ready to be stored.
pub(crate) enum ReadyImport {
    Open(NewThread, u64),
    Node(ThreadId, Box<ReadyNode>),
    Finish(ThreadId, Option<NodeId>, u64),
    Abort(ThreadId),
}

pub(crate) struct ReadyNode {
    node: ImportNode,
    items: Vec<Place>,
    state: Option<NewState>,
}

enum Place {
    Said(Ready),
    /// Stored as the node gives it.
    Other,
}

impl ReadyImport {
    pub(crate) fn new(scope: &TenantScope, import: &Import) -> Done<Self> {
        Ok(match import {
            Import::Open { thread, created } => Self::Open(thread.clone(), *created),
            Import::Node { thread, node } => {
                rules::import::check(node)?;
                let place = |item: &ImportItem| match item {
                    ImportItem::Said(item) => Place::Said(Ready::unnumbered(item)),
                    ImportItem::Redacted(..) | ImportItem::Gap => Place::Other,
                };
                let state = node.state.as_ref();
                let ready = ReadyNode {
                    items: node.items.iter().map(place).collect(),
                    state: state
                        .map(|state| NewState::new(scope, node.node.run, node.node.step, state)),
                    node: (**node).clone(),
                };
                Self::Node(thread.clone(), Box::new(ready))
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
pub(crate) fn import(tx: &mut Tx<'_>, scope: &TenantScope, import: &ReadyImport) -> Done<()> {
    match import {
        ReadyImport::Open(thread, created) => open(tx, scope, thread, *created),
        ReadyImport::Node(thread, ready) => node(tx, scope, thread, ready),
        ReadyImport::Finish(thread, head, touched) => finish(tx, scope, thread, *head, *touched),
        ReadyImport::Abort(thread) => {
            let row = importing(tx, scope, thread)?;
            crate::engines::sqlite::ops::threads::forget(tx, row)?;
            // Its runs' names must be free at once, as its own is.
            crate::engines::sqlite::ops::purge::sweep_at_once(tx, row)
        }
    }
}

fn importing(tx: &mut Tx<'_>, scope: &TenantScope, id: &ThreadId) -> Done<i64> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let found = match tenant {
        Some(tenant) => thread_by_id(tx.conn, tenant, id, IMPORTING)?,
        None => None,
    };
    found
        .map(|thread| thread.row)
        .ok_or_else(|| missing("import of thread", id))
}

fn open(tx: &mut Tx<'_>, scope: &TenantScope, new: &NewThread, created: u64) -> Done<()> {
    if let Some(tenant) = tx.known_tenant(scope.tenant())? {
        let there = thread_by_id(tx.conn, tenant, &new.id, IMPORTING)?;
        if let Some(thread) = there {
            let sql = "SELECT 1 FROM timeline WHERE thread=? LIMIT 1";
            let begun = one(tx.conn, sql, [thread.row], |_| Ok(()))?.is_some();
            // Sent again before anything else came.
            if !begun && thread.created == created && thread.title == new.title {
                return Ok(());
            }
        }
        crate::engines::sqlite::ops::threads::check_new(tx.conn, tenant, new)?;
    }
    let tenant = tx.tenant(scope.tenant())?;
    let how = crate::engines::sqlite::ops::threads::Insert {
        head: None,
        created,
        stage: IMPORTING,
    };
    crate::engines::sqlite::ops::threads::insert_new(tx, tenant, new, Some(&how))?;
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

fn node(tx: &mut Tx<'_>, scope: &TenantScope, id: &ThreadId, ready: &ReadyNode) -> Done<()> {
    let thread = importing(tx, scope, id)?;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let new = &ready.node;
    let run = any_run(tx.conn, tenant, new.node.run)?;
    if let Some(run) = &run {
        if run.thread != thread {
            return Err(exists("run", &run.id));
        }
        if let Some(there) = node_of(tx.conn, run, new.node.step)? {
            let same = there.item_hi() + 1 - there.item_lo
                == u32::try_from(new.items.len()).unwrap_or(0)
                && is_same(tx, scope, run, there.item_lo, ready)?;
            return if same {
                Ok(())
            } else {
                Err(exists("node", &new.node))
            };
        }
        rules::import::next(new, run.published_id(), run.next_step)?;
    }
    let base = match new.parent {
        None => None,
        Some(parent) => Some(imported(tx, tenant, thread, parent)?.base(true)),
    };
    let mut originals = Vec::with_capacity(ready.items.len());
    for item in &ready.items {
        let resolved = match item {
            Place::Said(item) => items::resolve(tx.conn, tenant, std::slice::from_ref(item))?,
            Place::Other => vec![None],
        };
        originals.extend(resolved);
    }
    // Nothing is refused from here on.
    let count = u32::try_from(ready.items.len()).unwrap_or(u32::MAX);
    let (row, from) = match &run {
        Some(run) => {
            keep_inner(tx, run)?;
            (run.row, run.next_item)
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
            (tx.conn.last_insert_rowid(), 1)
        }
    };
    let mut live = Live {
        next_step: new.node.step,
        next_item: from,
        base,
        from,
        ..Live::new(scope.tenant(), (row, new.node.run), (thread, id.clone()))
    };
    store(tx, &mut live, ready, &originals)?;
    let of = NodeOf {
        step: new.node.step,
        to: from + count - 1,
        open: new.open,
        state: ready.state.as_ref(),
        created: new.created,
        seen: Seen::default(),
    };
    let placed = place_node(tx, &mut live, &of)?.base;
    let sql = "UPDATE run SET state=?, flags=?, next_step=?, next_item=?, pub_tl=?, pub_first=?, pub_step=?, progress=?, note=? WHERE run=?";
    let values = params![
        new.ended.code(),
        flags(new)
            | seal(
                &new.node.run,
                flags(new),
                Some((placed.tl, placed.first, new.node.step))
            ),
        new.node.step + 1,
        from + count,
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
fn imported(tx: &Tx<'_>, tenant: i64, thread: i64, id: NodeId) -> Done<NodeRow> {
    let run = any_run(tx.conn, tenant, id.run)?.filter(|run| run.thread == thread);
    let found = match run {
        Some(run) => node_of(tx.conn, &run, id.step)?,
        None => None,
    };
    found.ok_or_else(|| missing("node", &id))
}

/// Store the items of a node.
fn store(
    tx: &Tx<'_>,
    live: &mut Live,
    ready: &ReadyNode,
    originals: &[Option<items::Original>],
) -> Done<()> {
    let places = (live.from..)
        .zip(&ready.items)
        .zip(&ready.node.items)
        .zip(originals);
    for (((no, place), given), original) in places {
        let at = ItemRef { run: live.id, no };
        let mark = match (place, given) {
            (Place::Said(item), _) => {
                items::insert(tx, &live.tenant, live.row, at, item, original.as_ref())?
            }
            (Place::Other, ImportItem::Redacted(said, redaction)) => {
                let sql = "INSERT INTO redaction(run, no, by, at) VALUES(?,?,?,?)";
                run_sql(
                    tx.conn,
                    sql,
                    (live.row, no, &redaction.by, int(redaction.at)),
                )?;
                items::insert_redacted(tx, &live.tenant, live.row, at, said)?
            }
            (Place::Other, ImportItem::Gap | ImportItem::Said(_)) => {
                items::insert_gap(tx, &live.tenant, live.row, at)?
            }
        };
        live.mark(mark);
    }
    Ok(())
}

fn is_same(
    tx: &Tx<'_>,
    scope: &TenantScope,
    run: &RunRow,
    from: u32,
    ready: &ReadyNode,
) -> Done<bool> {
    for (no, place) in (from..).zip(&ready.items) {
        if let Place::Said(item) = place {
            let item = std::slice::from_ref(item);
            if !items::same(tx.conn, scope.tenant(), (run.row, run.id), no, item)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A run's node that is no longer its last one is found by its step.
fn keep_inner(tx: &Tx<'_>, run: &RunRow) -> Done<()> {
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
) -> Done<()> {
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    if let Some(shown) = thread_by_id(tx.conn, tenant, id, crate::engines::sqlite::rows::SHOWN)? {
        let same = shown.head.as_ref().map(|head| head.id) == head && shown.touched == touched;
        return if same {
            Ok(())
        } else {
            Err(exists("thread", id))
        };
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
    tx.then(Effect::Moved(thread));
    Ok(())
}
