//! Adding items by hand.

use crate::engines::sqlite::cache;
use rusqlite::params;

use crate::engines::sqlite::cache::CachedRun;
use crate::engines::sqlite::op_error::{OpResult, exists};
use crate::engines::sqlite::ops::begin::{at_head, free_key, known_run, run_with_key};
use crate::engines::sqlite::ops::publish::answer;
use crate::engines::sqlite::rows::checksum::checksum;
use crate::engines::sqlite::rows::find::shown_thread;
use crate::engines::sqlite::rows::items::{self, PreparedItem};
use crate::engines::sqlite::rows::nodes::{Lookahead, NewNode, NewState, insert_node, move_leased};
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::rows::{RunRow, flag, int};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::rules::begin::Earlier;
use crate::{Append, Published, Result, RunState, Tenant, TenantScope, Version, rules};

/// Items that are to be added by hand.
pub(crate) struct PreparedAppend {
    pub(crate) append: Append,
    items: Vec<PreparedItem>,
    state: Option<NewState>,
}

impl PreparedAppend {
    pub(crate) fn new(scope: &TenantScope, append: &Append) -> Result<Self> {
        rules::begin::check_append(append)?;
        let state = append.state.as_ref();
        Ok(Self {
            items: PreparedItem::list(scope.tenant(), append.run, 1, &append.items),
            state: state.map(|state| NewState::new(scope, append.run, 0, state)),
            append: append.clone(),
        })
    }
}

/// The run of an append that may have been sent before.
fn repeated_append(
    tx: &Tx<'_>,
    name: &Tenant,
    tenant: i64,
    prepared: &PreparedAppend,
) -> OpResult<Option<RunRow>> {
    let append = &prepared.append;
    let keyed = match &append.key {
        Some(key) => run_with_key(tx.conn, tenant, key)?,
        None => None,
    };
    let found = known_run(tx, tenant, append.run)?;
    let same = match &found {
        Some(row) => Some(
            row.has(flag::APPEND)
                && row.inputs as usize == prepared.items.len()
                && items::same(tx.conn, name, (row.row, row.id), 1, &prepared.items)?,
        ),
        None => None,
    };
    let by_key = keyed.as_ref().map(|row| row.id);
    let earlier = match rules::begin::earlier(append.run, same, by_key)? {
        Earlier::Nothing => None,
        Earlier::Same => found,
        Earlier::ByKey(_) => keyed,
    };
    match earlier {
        Some(row) if !row.has(flag::APPEND) => Err(exists("run", &row.id)),
        earlier => Ok(earlier),
    }
}

/// Add items by hand.
pub(crate) fn append(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    prepared: &PreparedAppend,
) -> OpResult<Published> {
    let append = &prepared.append;
    let known = tx.known_tenant(scope.tenant())?;
    if let Some(tenant) = known
        && let Some(row) = repeated_append(tx, scope.tenant(), tenant, prepared)?
    {
        return answer(tx, &row);
    }
    let thread = shown_thread(tx.conn, known, &append.thread)?;
    at_head(tx, &thread, append.run, append.expected)?;
    let tenant = known.unwrap_or(0);
    let originals = items::resolve(tx.conn, tenant, &prepared.items)?;
    if let Some(key) = &append.key {
        free_key(tx, tenant, key)?;
    }
    let count = rules::items::after(0, prepared.items.len())?;
    let base = thread.base();
    let values = params![
        tenant,
        append.run.as_bytes(),
        thread.row,
        RunState::Committed.code(),
        flag::APPEND | flag::MOVED,
        base.map(|base| base.tl),
        base.map(|base| int(base.first)),
        int(thread.version + 1),
        count,
        count + 1,
        int(tx.now),
        append.key.as_ref().map(|key| key.key.as_str()),
        append.key.as_ref().map(|key| key.request),
    ];
    let sql = "INSERT INTO run(tenant, id, thread, live, state, flags, epoch, attempt, base_tl, base_first, version,
        inputs, next_step, next_item, next_event, created, progress, idem, idem_digest)
      VALUES(?1,?2,?3,NULL,?4,?5,1,0,?6,?7,?8,?9,1,?10,0,?11,?11,?12,?13)";
    run_sql(tx.conn, sql, values)?;
    let row = tx.conn.last_insert_rowid();
    let name = scope.tenant();
    let run = (row, append.run);
    let summaries = items::insert_all(tx, name, run, 1, &prepared.items, &originals)?;
    let mut live = CachedRun {
        flags: flag::APPEND,
        version: thread.version,
        inputs: count,
        next_item: count + 1,
        base,
        summaries,
        ..CachedRun::new(name, run, (thread.row, append.thread.clone()))
    };
    let of = NewNode {
        step: 0,
        to: count,
        open: false,
        state: prepared.state.as_ref(),
        created: tx.now,
        seen: Lookahead::default(),
    };
    let placed = insert_node(tx, &mut live, &of)?;
    move_leased(tx, &mut live, base, placed)?;
    let sql = "UPDATE run SET pub_tl=?, pub_first=?, pub_step=0, flags=flags & 255 | ? WHERE run=?";
    let sum = checksum(&live.id, live.flags, Some((placed.tl, placed.first, 0)));
    run_sql(tx.conn, sql, (placed.tl, int(placed.first), sum, row))?;
    tx.after_commit(CacheUpdate::ThreadMoved(thread.row));
    tx.after_commit(CacheUpdate::Head(
        (tenant, append.thread.clone()),
        cache::CachedHead {
            thread: thread.row,
            version: live.version,
            base: Some(placed),
        },
    ));
    Ok(Published {
        node: Some(placed.id),
        last: placed.last,
        moved: true,
        version: Version(live.version),
    })
}
