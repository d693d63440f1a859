//! Adding items by hand.

use rusqlite::params;

use crate::engines::sqlite::cache::Live;
use crate::engines::sqlite::fault::{Done, exists, invalid};
use crate::engines::sqlite::ops::begin::{free_key, keyed, not_busy, not_moved};
use crate::engines::sqlite::ops::line;
use crate::engines::sqlite::ops::publish::answer;
use crate::engines::sqlite::rows::find::{any_run, shown_thread};
use crate::engines::sqlite::rows::items::{self, Ready};
use crate::engines::sqlite::rows::nodes::{NewState, NodeOf, Seen, move_leased, place_node};
use crate::engines::sqlite::rows::seal::seal;
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::rows::{SHOWN, flag, int};
use crate::engines::sqlite::write::job::{Effect, Tx};
use crate::{Append, Published, RunState, TenantScope, Version};

/// Items that are to be added by hand.
pub(crate) struct ReadyAppend {
    pub(crate) append: Append,
    items: Vec<Ready>,
    state: Option<NewState>,
}

impl ReadyAppend {
    pub(crate) fn new(scope: &TenantScope, append: &Append) -> Self {
        let state = append.state.as_ref();
        Self {
            items: Ready::list(scope.tenant(), append.run, 1, &append.items),
            state: state.map(|state| NewState::new(scope, append.run, 0, state)),
            append: append.clone(),
        }
    }
}

/// Add items by hand.
pub(crate) fn append(tx: &mut Tx<'_>, scope: &TenantScope, ready: &ReadyAppend) -> Done<Published> {
    let append = &ready.append;
    let known = tx.known_tenant(scope.tenant())?;
    if let Some(tenant) = known {
        if let Some(row) = any_run(tx.conn, tenant, append.run)? {
            let same = row.stage == SHOWN
                && row.has(flag::APPEND)
                && row.inputs as usize == ready.items.len()
                && items::same(tx.conn, scope.tenant(), (row.row, row.id), 1, &ready.items)?;
            if !same {
                return Err(exists("run", &append.run));
            }
            return answer(tx, &row);
        }
        if let Some(key) = &append.key
            && let Some(row) = keyed(tx, tenant, key)?
        {
            return answer(tx, &row);
        }
    }
    let thread = shown_thread(tx.conn, known, &append.thread)?;
    not_busy(tx, thread.row, &append.thread)?;
    line::turn(tx, thread.row, &append.thread, append.run)?;
    if let Some(expected) = append.expected {
        not_moved(&thread, expected)?;
    }
    if ready.items.is_empty() {
        return Err(invalid("an append", "there is nothing to add"));
    }
    let tenant = known.unwrap_or(0);
    let originals = items::resolve(tx.conn, tenant, &ready.items)?;
    if let Some(key) = &append.key {
        free_key(tx, tenant, key)?;
    }
    let count = u32::try_from(ready.items.len()).unwrap_or(u32::MAX);
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
        row,
        id: append.run,
        tenant: name.clone(),
        thread: thread.row,
        thread_id: append.thread.clone(),
        flags: flag::APPEND,
        epoch: 1,
        version: thread.version,
        inputs: count,
        next_step: 0,
        next_item: count + 1,
        next_event: 0,
        base,
        published: None,
        from: 1,
        marks,
        calls: false,
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
