//! Adding items by hand.

use rusqlite::params;

use crate::engines::sqlite::cache::Live;
use crate::engines::sqlite::fault::{Done, exists};
use crate::engines::sqlite::ops::begin::{at_head, free_key, keyed, known_run};
use crate::engines::sqlite::ops::publish::answer;
use crate::engines::sqlite::rows::find::shown_thread;
use crate::engines::sqlite::rows::items::{self, Ready};
use crate::engines::sqlite::rows::nodes::{NewState, NodeOf, Seen, move_leased, place_node};
use crate::engines::sqlite::rows::seal::seal;
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::rows::{RunRow, flag, int};
use crate::engines::sqlite::write::job::{Effect, Tx};
use crate::rules::begin::Earlier;
use crate::{Append, Published, Result, RunState, Tenant, TenantScope, Version, rules};

/// Items that are to be added by hand.
pub(crate) struct ReadyAppend {
    pub(crate) append: Append,
    items: Vec<Ready>,
    state: Option<NewState>,
}

impl ReadyAppend {
    pub(crate) fn new(scope: &TenantScope, append: &Append) -> Result<Self> {
        rules::begin::check_append(append)?;
        let state = append.state.as_ref();
        Ok(Self {
            items: Ready::list(scope.tenant(), append.run, 1, &append.items),
            state: state.map(|state| NewState::new(scope, append.run, 0, state)),
            append: append.clone(),
        })
    }
}

/// The run of an append that may have been sent before.
fn appended_before(
    tx: &Tx<'_>,
    name: &Tenant,
    tenant: i64,
    ready: &ReadyAppend,
) -> Done<Option<RunRow>> {
    let append = &ready.append;
    let keyed = match &append.key {
        Some(key) => keyed(tx.conn, tenant, key)?,
        None => None,
    };
    let found = known_run(tx, tenant, append.run)?;
    let same = match &found {
        Some(row) => Some(
            row.has(flag::APPEND)
                && row.inputs as usize == ready.items.len()
                && items::same(tx.conn, name, (row.row, row.id), 1, &ready.items)?,
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
pub(crate) fn append(tx: &mut Tx<'_>, scope: &TenantScope, ready: &ReadyAppend) -> Done<Published> {
    let append = &ready.append;
    let known = tx.known_tenant(scope.tenant())?;
    if let Some(tenant) = known
        && let Some(row) = appended_before(tx, scope.tenant(), tenant, ready)?
    {
        return answer(tx, &row);
    }
    let thread = shown_thread(tx.conn, known, &append.thread)?;
    at_head(tx, &thread, append.run, append.expected)?;
    let tenant = known.unwrap_or(0);
    let originals = items::resolve(tx.conn, tenant, &ready.items)?;
    if let Some(key) = &append.key {
        free_key(tx, tenant, key)?;
    }
    let count = rules::items::after(0, ready.items.len())?;
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
    let marks = items::insert_all(tx, name, run, 1, &ready.items, &originals)?;
    let mut live = Live {
        flags: flag::APPEND,
        version: thread.version,
        inputs: count,
        next_item: count + 1,
        base,
        marks,
        ..Live::new(name, run, (thread.row, append.thread.clone()))
    };
    let of = NodeOf {
        step: 0,
        to: count,
        open: false,
        state: ready.state.as_ref(),
        created: tx.now,
        seen: Seen::default(),
    };
    let placed = place_node(tx, &mut live, &of)?.base;
    move_leased(tx, &mut live, base, placed)?;
    let sql = "UPDATE run SET pub_tl=?, pub_first=?, pub_step=0, flags=flags & 255 | ? WHERE run=?";
    let sealed = seal(&live.id, live.flags, Some((placed.tl, placed.first, 0)));
    run_sql(tx.conn, sql, (placed.tl, int(placed.first), sealed, row))?;
    tx.then(Effect::Moved(thread.row));
    tx.then(Effect::Head(
        (tenant, append.thread.clone()),
        crate::engines::sqlite::cache::Head {
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
