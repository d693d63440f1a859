//! Making nodes and moving heads.

use rusqlite::params;
use throughline_model::json::RawJson;

use super::cache::{Base, Head, Live, Mark, StateAt};
use super::fault::{Done, invalid};
use super::items::{self, Original, Ready};
use super::rows::{OPEN, RunRow, flag, int, node_at, num, thread_by_row};
use super::sql::{one, run_sql};
use super::steps::{Filled, fill, same_results};
use super::writer::{Effect, Tx};
use crate::digest::{self, Digest, NodeFields};
use crate::{
    CallState, Ending, Error, ItemRef, Lease, NodeId, Publish, Published, RunId, RunState, State,
    TenantScope, Through, Version,
};

/// State that a node sets, in its stored form.
pub(super) struct NewState {
    json: String,
    digest: Digest,
}

impl NewState {
    pub(super) fn new(scope: &TenantScope, run: RunId, step: u32, state: &State) -> Self {
        let json = state.to_json();
        let digest = digest::state(scope.tenant(), run, step, &json);
        Self { json, digest }
    }
}

/// A publication, ready to be stored.
pub(super) struct Closing {
    pub(super) publish: Publish,
    pub(super) items: Vec<Ready>,
    pub(super) results: Vec<Filled>,
    pub(super) state: Option<NewState>,
}

/// Where a node came to be.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    pub(super) base: Base,
}

/// What is needed to make a node.
pub(super) struct NodeOf<'a> {
    pub(super) step: u32,
    /// The number of its last item.
    pub(super) to: u32,
    pub(super) open: bool,
    pub(super) state: Option<&'a NewState>,
    pub(super) created: u64,
}

/// Make a node of the items of a run from `live.from` on. All of them are stored, or become gaps.
pub(super) fn place_node(tx: &Tx<'_>, live: &mut Live, of: &NodeOf<'_>) -> Done<Placed> {
    let conn = tx.conn;
    let mut marks: Vec<Mark> = Vec::with_capacity((of.to + 1 - live.from) as usize);
    for no in live.from..=of.to {
        let mark = match live.mark_of(no) {
            Some(mark) => *mark,
            None => {
                let at = ItemRef { run: live.id, no };
                items::insert_gap(conn, &live.tenant, live.row, at)?
            }
        };
        marks.push(mark);
    }
    let state = match of.state {
        Some(new) => {
            let sql = "INSERT INTO state(run, step, digest, body) VALUES(?,?,?,?)";
            run_sql(conn, sql, (live.row, of.step, new.digest, &new.json))?;
            Some(StateAt {
                run: live.row,
                step: of.step,
                digest: new.digest,
            })
        }
        None => live.base.and_then(|base| base.state),
    };
    let said: u64 = marks.iter().map(|mark| u64::from(mark.tokens)).sum();
    let last_before = live.base.map_or(0, |base| base.last);
    let fields = NodeFields {
        id: NodeId {
            run: live.id,
            step: of.step,
        },
        first: last_before + 1,
        last: last_before + marks.len() as u64,
        first_item: live.from,
        flags: if of.open { OPEN } else { 0 },
        tokens: live.base.map_or(0, |base| base.tokens) + said,
    };
    let digest = digest::node(
        &live.tenant,
        live.base.as_ref().map(|base| &base.digest),
        &fields,
        state.as_ref().map(|state| &state.digest),
        marks.iter().map(|mark| mark.digest),
    );
    let insert = |tl: i64| {
        run_sql(
            conn,
            "INSERT INTO node(tl, first, last, run, step, item_lo, flags, state_run, state_step, tokens, created, digest)
             VALUES(?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
            params![
                tl,
                int(fields.first),
                int(fields.last),
                live.row,
                of.step,
                fields.first_item,
                fields.flags,
                state.map(|state| state.run),
                state.map(|state| state.step),
                int(fields.tokens),
                int(of.created),
                digest,
            ],
        )
    };
    // Who comes second at a place opens a timeline of its own.
    let tl = match live.base {
        Some(base) if base.own && insert(base.tl)? == 1 => base.tl,
        base => {
            let tl = open_timeline(tx, live.thread, base)?;
            insert(tl)?;
            tl
        }
    };
    let base = Base {
        id: fields.id,
        tl,
        first: fields.first,
        last: fields.last,
        own: true,
        tokens: fields.tokens,
        state,
        digest,
    };
    live.base = Some(base);
    live.published = Some((tl, fields.first, of.step));
    live.from = of.to + 1;
    live.marks.retain(|mark| mark.no > of.to);
    Ok(Placed { base })
}

fn open_timeline(tx: &Tx<'_>, thread: i64, base: Option<Base>) -> Done<i64> {
    let sql = "INSERT INTO timeline(thread, parent_tl, fork) VALUES(?,?,?)";
    let (parent, fork) = match base {
        Some(base) => (Some(base.tl), base.last),
        None => (None, 0),
    };
    run_sql(tx.conn, sql, (thread, parent, int(fork)))?;
    Ok(tx.conn.last_insert_rowid())
}

/// A minute, by which threads are listed.
pub(super) fn minute(now: u64) -> i64 {
    int(now / 60_000)
}

/// Move the head of a thread from a base to a node of a leased run. The version was checked.
pub(super) fn move_leased(
    tx: &mut Tx<'_>,
    live: &mut Live,
    before: Option<Base>,
    to: Base,
) -> Done<()> {
    let minute = minute(tx.now);
    // In the usual case no index changes.
    let quick = "UPDATE thread SET head_first=?1, version=version+1, touched=?2
      WHERE thread=?3 AND version=?4 AND head_tl=?5 AND recent=?6";
    let mut moved = 0;
    if before.is_some_and(|before| before.tl == to.tl) {
        let values = (
            int(to.first),
            int(tx.now),
            live.thread,
            int(live.version),
            to.tl,
            minute,
        );
        moved = run_sql(tx.conn, quick, values)?;
    }
    if moved == 0 {
        let sql = "UPDATE thread SET head_tl=?1, head_first=?2, borrowed=0, version=version+1, touched=?3, recent=?4
          WHERE thread=?5 AND version=?6";
        let values = (
            to.tl,
            int(to.first),
            int(tx.now),
            minute,
            live.thread,
            int(live.version),
        );
        moved = run_sql(tx.conn, sql, values)?;
    }
    debug_assert_eq!(moved, 1, "the version was checked");
    live.version += 1;
    Ok(())
}

/// Move the head of a thread to a node of a free run, if it still is where the run started.
fn move_free(tx: &mut Tx<'_>, live: &mut Live, before: Option<Base>, to: Base) -> Done<bool> {
    let sql = "UPDATE thread SET head_tl=?1, head_first=?2, borrowed=0, version=version+1, touched=?3, recent=?4
      WHERE thread=?5 AND head_tl IS ?6 AND head_first IS ?7 AND moved_by=0
      AND NOT EXISTS(SELECT 1 FROM run WHERE run.thread=?5 AND run.live=0)";
    let values = (
        to.tl,
        int(to.first),
        int(tx.now),
        minute(tx.now),
        live.thread,
        before.map(|base| base.tl),
        before.map(|base| int(base.first)),
    );
    let moved = run_sql(tx.conn, sql, values)? == 1;
    live.version = thread_version(tx, live.thread)?;
    Ok(moved)
}

pub(super) fn thread_version(tx: &Tx<'_>, thread: i64) -> Done<u64> {
    let sql = "SELECT version FROM thread WHERE thread=?";
    let version: Option<i64> = one(tx.conn, sql, [thread], |row| row.get(0))?;
    Ok(version.map_or(0, num))
}

/// Make a node and move the head to it, if it is the run's to move.
pub(super) fn publish_node(
    tx: &mut Tx<'_>,
    live: &mut Live,
    of: &NodeOf<'_>,
    tenant: i64,
) -> Done<Published> {
    let before = live.base;
    let placed = place_node(tx, live, of)?.base;
    let moved = if live.flags & flag::LEASED != 0 {
        move_leased(tx, live, before, placed)?;
        true
    } else {
        move_free(tx, live, before, placed)?
    };
    if moved {
        tx.then(Effect::Moved(live.thread));
        tx.then(Effect::Head(
            (tenant, live.thread_id.clone()),
            Head {
                thread: live.thread,
                version: live.version,
                base: Some(placed),
            },
        ));
    }
    Ok(Published {
        node: Some(placed.id),
        last: placed.last,
        moved,
        version: Version(live.version),
    })
}

/// Where a publication ends: the number of its last item, 0 for nothing.
fn end_of(
    tx: &Tx<'_>,
    live: &Live,
    publish: &Publish,
    filled: &[u32],
    next_item: u32,
) -> Done<u32> {
    let added = !publish.items.is_empty();
    let stored = |no: u32| {
        live.mark_of(no).is_some()
            || filled.contains(&no)
            || (live.next_item..next_item).contains(&no)
            || no < live.from && no > 0
    };
    match publish.through {
        Through::Everything | Through::LastStep if added => Ok(next_item - 1),
        Through::Everything => {
            let marked = live.marks.last().map_or(0, |mark| mark.no);
            Ok(filled.iter().copied().max().unwrap_or(0).max(marked))
        }
        Through::LastStep => last_of_steps(tx, live),
        Through::Item(no) if stored(no) => Ok(no),
        Through::Item(no) => Err(invalid(
            "the end of a node",
            format!("item {no} of {} is not stored", live.id),
        )),
    }
}

/// The last item of the last step; the last input if there is no step.
pub(super) fn last_of_steps(tx: &Tx<'_>, live: &Live) -> Done<u32> {
    let sql = "SELECT first + items - 1 FROM step WHERE run=? AND items>0 ORDER BY no DESC LIMIT 1";
    let last: Option<u32> = one(tx.conn, sql, [live.row], |row| row.get(0))?;
    Ok(last.unwrap_or(live.inputs))
}

/// Whether calls of a run have no result, apart from those that are filled in now.
pub(super) fn is_open(tx: &Tx<'_>, live: &Live, filled: usize) -> Done<bool> {
    if !live.calls {
        return Ok(false);
    }
    let sql = "SELECT count(*) FROM call WHERE run=? AND state<>?";
    let waiting: Option<i64> = one(tx.conn, sql, (live.row, CallState::Done.code()), |row| {
        row.get(0)
    })?;
    Ok(num(waiting.unwrap_or(0)) > filled as u64)
}

/// Publish a run and end it.
pub(super) fn publish(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    ending: &Closing,
) -> Done<Published> {
    let tenant = tx.known_tenant(scope.tenant())?;
    if let (Some(tenant), Some(live)) = (tenant, super::steps::cached(tx, scope, lease)) {
        let publish = &ending.publish;
        let plain = publish.results.is_empty()
            && live.next_step == publish.step
            && publish
                .events
                .as_ref()
                .is_none_or(|events| events.first == live.next_event);
        if plain && let Some(published) = write(tx, tenant, (*live).clone(), ending, &[], &[])? {
            return Ok(published);
        }
    }
    let row = super::steps::admit(tx, scope, lease)?;
    let tenant = tenant.unwrap_or(0);
    if let Some(published) = repeated(tx, scope, &row, ending)? {
        return Ok(published);
    }
    super::steps::must_run(tx, &row)?;
    super::steps::in_order(&row, ending.publish.step, ending.publish.events.as_ref())?;
    if row.has(flag::LEASED) {
        check_version(tx, &row)?;
    }
    let live = super::steps::load(tx, scope, &row)?;
    let places = super::steps::places(tx, scope, &row, &ending.results)?;
    let originals = super::steps::resolve_results(tx, tenant, &ending.results)?;
    match write(tx, tenant, live, ending, &places, &originals)? {
        Some(published) => Ok(published),
        None => Err(super::steps::lost(&row)),
    }
}

/// Refuse a leased run whose thread has moved.
pub(super) fn check_version(tx: &Tx<'_>, row: &RunRow) -> Done<()> {
    let Some(thread) = thread_by_row(tx.conn, row.thread)? else {
        return Err(super::fault::missing("run", &row.id));
    };
    if thread.version == row.version {
        return Ok(());
    }
    Err(Error::HeadMoved {
        thread: thread.id.clone(),
        expected: Version(row.version),
        actual: Version(thread.version),
        head: thread.head.as_ref().map(|head| head.id),
    }
    .into())
}

/// Write a publication. `None` if what is known of the run is out of date; nothing is written then.
fn write(
    tx: &mut Tx<'_>,
    tenant: i64,
    mut live: Live,
    ending: &Closing,
    places: &[super::steps::Place],
    result_originals: &[Option<Original>],
) -> Done<Option<Published>> {
    let publish = &ending.publish;
    let conn = tx.conn;
    let originals = items::resolve(conn, tenant, &ending.items)?;
    let next_item = live.next_item + u32::try_from(ending.items.len()).unwrap_or(u32::MAX);
    let filled: Vec<u32> = places.iter().map(|place| place.no).collect();
    let to = end_of(tx, &live, publish, &filled, next_item)?;
    let open = is_open(
        tx,
        &live,
        places.iter().filter(|place| place.is_new).count(),
    )?;
    let has_node = to >= live.from;
    let leased = live.flags & flag::LEASED != 0;
    let stored_last = live
        .marks
        .last()
        .map_or(0, |mark| mark.no)
        .max(filled.iter().copied().max().unwrap_or(0))
        .max(if ending.items.is_empty() {
            0
        } else {
            next_item - 1
        });
    let unsent = (has_node || live.published.is_some()) && stored_last > to.max(live.from - 1);
    let mut flags = live.flags & !(flag::UNSENT | flag::MOVED);
    if unsent {
        flags |= flag::UNSENT;
    }
    // What a leased run does is known before; what a free one does is put right after.
    if leased && has_node {
        flags |= flag::MOVED;
    }
    let state = match publish.ending {
        Ending::Committed => RunState::Committed,
        Ending::Cancelled => RunState::Cancelled,
    };
    let guess = match (has_node, live.base) {
        (true, Some(base)) if base.own => Some((base.tl, base.last + 1, publish.step)),
        (true, _) => None,
        (false, _) => live.published,
    };
    let version = live.version + u64::from(leased && has_node);
    let next_event = publish
        .events
        .as_ref()
        .map_or(live.next_event, crate::Flush::end);
    let values = params![
        state.code(),
        flags,
        next_item,
        publish.step + 1,
        int(next_event),
        guess.map(|(tl, _, _)| tl),
        guess.map(|(_, first, _)| int(first)),
        guess.map(|(_, _, step)| step),
        int(version),
        int(tx.now),
        publish.note.as_ref().map(RawJson::get),
        live.row,
        live.id.as_bytes(),
        live.epoch,
        publish.step,
        live.next_item,
        int(live.next_event),
        live.thread,
        int(live.version),
        leased,
    ];
    let sql = "UPDATE run SET state=?1, live=NULL, flags=?2, next_item=?3, next_step=?4, next_event=?5,
      pub_tl=?6, pub_first=?7, pub_step=?8, version=?9, progress=?10, note=?11
      WHERE run=?12 AND id=?13 AND epoch=?14 AND state=1 AND next_step=?15 AND next_item=?16 AND next_event=?17
      AND EXISTS(SELECT 1 FROM thread WHERE thread.thread=?18 AND stage=0 AND (version=?19 OR NOT ?20))";
    if run_sql(conn, sql, values)? == 0 {
        return Ok(None);
    }
    let run = (live.row, live.id);
    for mark in fill(
        tx,
        &live.tenant,
        run,
        places,
        &ending.results,
        result_originals,
    )? {
        live.mark(mark);
    }
    let marks = items::insert_all(
        conn,
        &live.tenant,
        run,
        live.next_item,
        &ending.items,
        &originals,
    )?;
    for mark in marks {
        live.mark(mark);
    }
    live.next_item = next_item;
    if let Some(events) = &publish.events {
        super::steps::insert_events(tx, live.row, events)?;
    }
    if publish.ending == Ending::Cancelled && live.calls {
        super::approvals::withdraw(tx, live.row)?;
    }
    let published = if has_node {
        let of = NodeOf {
            step: publish.step,
            to,
            open,
            state: ending.state.as_ref(),
            created: tx.now,
        };
        publish_node(tx, &mut live, &of, tenant)?
    } else {
        Published {
            node: live.base.map(|base| base.id),
            last: live.base.map_or(0, |base| base.last),
            moved: false,
            version: Version(thread_version(tx, live.thread)?),
        }
    };
    let moved = if published.moved { flag::MOVED } else { 0 };
    if live.published != guess || published.version.0 != version || flags & flag::MOVED != moved {
        let sql =
            "UPDATE run SET pub_tl=?, pub_first=?, pub_step=?, version=?, flags=? WHERE run=?";
        let values = (
            live.published.map(|(tl, _, _)| tl),
            live.published.map(|(_, first, _)| int(first)),
            live.published.map(|(_, _, step)| step),
            int(published.version.0),
            flags & !flag::MOVED | moved,
            live.row,
        );
        run_sql(conn, sql, values)?;
    }
    tx.then(Effect::Settled(live.id));
    Ok(Some(published))
}

/// The answer to a publication that is there already.
fn repeated(
    tx: &Tx<'_>,
    scope: &TenantScope,
    row: &RunRow,
    ending: &Closing,
) -> Done<Option<Published>> {
    let publish = &ending.publish;
    let state = match publish.ending {
        Ending::Committed => RunState::Committed,
        Ending::Cancelled => RunState::Cancelled,
    };
    let count = u32::try_from(ending.items.len()).unwrap_or(u32::MAX);
    if row.state != state || row.next_step != publish.step + 1 || row.next_item < count {
        return Ok(None);
    }
    if row.note.as_deref() != publish.note.as_ref().map(RawJson::get) {
        return Ok(None);
    }
    let run = (row.row, row.id);
    let first = row.next_item - count;
    if !items::same(tx.conn, scope.tenant(), run, first, &ending.items)?
        || !same_results(tx, scope, row, &ending.results)?
    {
        return Ok(None);
    }
    answer(tx, row).map(Some)
}

/// What the last publication of a run was answered with.
pub(super) fn answer(tx: &Tx<'_>, row: &RunRow) -> Done<Published> {
    let place = match row.published {
        Some((tl, first, _)) => Some((tl, first)),
        None => row.base,
    };
    let node = match place {
        Some((tl, first)) => node_at(tx.conn, tl, first)?,
        None => None,
    };
    Ok(Published {
        node: node.as_ref().map(|node| node.id),
        last: node.as_ref().map_or(0, |node| node.last),
        moved: row.has(flag::MOVED),
        version: Version(row.version),
    })
}
