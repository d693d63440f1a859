//! Publishing runs: their last items, a node, the head and their end in one write.

use crate::engines::sqlite::events;
use crate::engines::sqlite::events::flush;
use crate::engines::sqlite::ops::approvals;
use crate::engines::sqlite::ops::calls;
use crate::engines::sqlite::ops::fingerprints;
use crate::engines::sqlite::ops::lease;
use crate::engines::sqlite::ops::threads;
use rusqlite::params;
use throughline_model::json::RawJson;

use crate::engines::sqlite::cache::{BaseNode, CachedRun, EndedRun};
use crate::engines::sqlite::op_error::{OpError, OpResult, not_found};
use crate::engines::sqlite::ops::calls::{PreparedResult, fill, same_results};
use crate::engines::sqlite::rows::checksum::{LastNode, checksum};
use crate::engines::sqlite::rows::find::{node_at, thread_by_row};
use crate::engines::sqlite::rows::items::{self, Original, PreparedItem};
use crate::engines::sqlite::rows::nodes::{
    Lookahead, NewNode, NewState, look_ahead, publish_node, unpublished,
};
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{RunRow, flag, int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::engines::sqlite::write::statements::TurnStatement;
use crate::trials::{self, Point};
use crate::{CallState, Ending, Lease, Publish, Published, TenantScope, Version, rules};

/// A publication, ready to be stored.
pub(crate) struct PreparedPublish {
    pub(crate) publish: Publish,
    pub(crate) items: Vec<PreparedItem>,
    pub(crate) results: Vec<PreparedResult>,
    pub(crate) state: Option<NewState>,
}

/// The last item of the last step; none if there is no step.
fn last_of_any_step(tx: &Tx<'_>, live: &CachedRun) -> OpResult<Option<u32>> {
    let sql = "SELECT first + items - 1 FROM step WHERE run=? AND items>0 ORDER BY no DESC LIMIT 1";
    one(tx.conn, sql, [live.row], |row| row.get(0))
}

/// The last item of the last step; the last input if there is no step.
pub(crate) fn last_of_steps(tx: &Tx<'_>, live: &CachedRun) -> OpResult<u32> {
    Ok(last_of_any_step(tx, live)?.unwrap_or(live.inputs))
}

/// Whether calls of a run have no result, apart from those that are filled in now.
pub(crate) fn is_open(tx: &Tx<'_>, live: &CachedRun, filled: usize) -> OpResult<bool> {
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
pub(crate) fn publish(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    prepared: &PreparedPublish,
) -> OpResult<Published> {
    let tenant = tx.known_tenant(scope.tenant())?;
    if let (Some(tenant), Some(live)) = (tenant, lease::cached_run(tx.shared, scope, lease)) {
        let publish = &prepared.publish;
        // Results may have come in the same group, unseen by what is remembered.
        let plain = !live.calls
            && publish.results.is_empty()
            && live.next_step == publish.step
            && publish
                .events
                .as_ref()
                .is_none_or(|events| flush::is_next(tx, &live, events));
        if plain && let Some(published) = write(tx, tenant, (*live).clone(), prepared, &[], &[])? {
            return Ok(published);
        }
    }
    let row = lease::run_of_lease_with_events(tx, scope, lease)?;
    let tenant = tenant.unwrap_or(0);
    if let Some(published) = repeated(tx, scope, &row, prepared)? {
        return Ok(published);
    }
    let publish = &prepared.publish;
    rules::lease::running(row.id, row.state)?;
    rules::lease::next_step(row.id, row.next_step, publish.step)?;
    rules::lease::next_events(row.id, row.next_event, publish.events.as_ref())?;
    if row.has(flag::LEASED) {
        check_version(tx, &row)?;
    }
    let live = lease::load_run(tx, scope, &row)?;
    let places = calls::places(tx, scope, &row, &prepared.results)?;
    let originals = calls::resolve_results(tx, tenant, &prepared.results)?;
    match write(tx, tenant, live, prepared, &places, &originals)? {
        Some(published) => Ok(published),
        None => Err(lease::changed_under_lock(&row)),
    }
}

/// Refuse a leased run whose thread has moved.
pub(crate) fn check_version(tx: &Tx<'_>, row: &RunRow) -> OpResult<()> {
    let Some(thread) = thread_by_row(tx.conn, row.thread)? else {
        return Err(not_found("run", &row.id));
    };
    Ok(rules::begin::unmoved(
        &thread.current_head(),
        Version(row.version),
    )?)
}

/// What a publication writes, as far as it is known before.
struct Plan {
    next_item: u32,
    /// The last item of its node.
    to: u32,
    has_node: bool,
    /// Whether calls wait.
    open: bool,
    seen: Lookahead,
    flags: u32,
    /// Where its node is expected to be.
    place: Option<LastNode>,
    /// The expected version of the thread.
    version: u64,
}

fn plan(
    tx: &Tx<'_>,
    live: &CachedRun,
    prepared: &PreparedPublish,
    places: &[calls::ResultPlace],
) -> OpResult<Plan> {
    let publish = &prepared.publish;
    let next_item = rules::items::after(live.next_item - 1, prepared.items.len())? + 1;
    rules::items::fingerprints(&publish.fingerprints, next_item - 1)?;
    let filled = places.iter().map(|place| place.no);
    let marked = live.summaries.last().map_or(0, |summary| summary.no);
    let added = if prepared.items.is_empty() {
        0
    } else {
        next_item - 1
    };
    let stored_last = filled.fold(marked.max(added), u32::max);
    let to = match rules::publish::is_to_last_step(publish) {
        true => last_of_any_step(tx, live)?.unwrap_or(0),
        false => stored_last,
    };
    let new = places.iter().filter(|place| place.is_new).count();
    let open = is_open(tx, live, new)?;
    let has_node = to >= live.from;
    let seen = if has_node {
        look_ahead(tx, live)?
    } else {
        Lookahead::default()
    };
    let mut flags = 0;
    if (has_node || live.published.is_some()) && stored_last > to.max(live.from - 1) {
        flags |= flag::UNSENT;
    }
    let leased = live.flags & flag::LEASED != 0;
    let moves = has_node && (leased || seen.head.is_some_and(|(_, moves)| moves));
    if moves {
        flags |= flag::MOVED;
    }
    let last_before = live.base.map_or(0, |base| base.last);
    let place = match seen.timeline.or(live.base.map(|base| base.tl)) {
        Some(tl) if has_node => Some((tl, last_before + 1, publish.step)),
        _ => live.published,
    };
    let version = seen.head.map_or(live.version, |(version, _)| version) + u64::from(moves);
    Ok(Plan {
        next_item,
        to,
        has_node,
        open,
        seen,
        flags,
        place,
        version,
    })
}

/// Write the run's row as planned; whether it was as it is remembered.
fn update_run(tx: &Tx<'_>, live: &CachedRun, publish: &Publish, plan: &Plan) -> OpResult<bool> {
    let events = publish.events.as_ref();
    let next_event = events.map_or(live.next_event, crate::Flush::end);
    let values = params![
        rules::publish::state_of(publish.ending).code(),
        plan.flags | checksum(&live.id, live.flags | plan.flags, plan.place),
        plan.next_item,
        publish.step + 1,
        int(next_event),
        plan.place.map(|(tl, _, _)| tl),
        plan.place.map(|(_, first, _)| int(first)),
        plan.place.map(|(_, _, step)| step),
        int(plan.version),
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
        live.flags & flag::LEASED != 0,
    ];
    Ok(tx.statements.run(TurnStatement::Publish, values)? > 0)
}

/// Write the run's row again if its node came to be elsewhere than planned.
fn correct_run(tx: &Tx<'_>, live: &CachedRun, plan: &Plan, published: &Published) -> OpResult<()> {
    let moved = if published.moved { flag::MOVED } else { 0 };
    if live.published == plan.place
        && published.version.0 == plan.version
        && plan.flags & flag::MOVED == moved
    {
        return Ok(());
    }
    let sql = "UPDATE run SET pub_tl=?, pub_first=?, pub_step=?, version=?, flags=flags & 183 | ? WHERE run=?";
    let values = (
        live.published.map(|(tl, _, _)| tl),
        live.published.map(|(_, first, _)| int(first)),
        live.published.map(|(_, _, step)| step),
        int(published.version.0),
        plan.flags & !flag::MOVED
            | moved
            | checksum(&live.id, live.flags | plan.flags, live.published),
        live.row,
    );
    run_sql(tx.conn, sql, values)?;
    Ok(())
}

/// Write a publication. `None` if what is known of the run is out of date; nothing is written then.
fn write(
    tx: &mut Tx<'_>,
    tenant: i64,
    mut live: CachedRun,
    prepared: &PreparedPublish,
    places: &[calls::ResultPlace],
    result_originals: &[Option<Original>],
) -> OpResult<Option<Published>> {
    let publish = &prepared.publish;
    let originals = items::resolve(tx.conn, tenant, &prepared.items)?;
    let plan = plan(tx, &live, prepared, places)?;
    if !update_run(tx, &live, publish, &plan)? {
        return Ok(None);
    }
    let run = (live.row, live.id);
    for summary in fill(
        tx,
        &live.tenant,
        run,
        places,
        &prepared.results,
        result_originals,
    )? {
        live.add_summary(summary);
    }
    let summaries = items::insert_all(
        tx,
        &live.tenant,
        run,
        live.next_item,
        &prepared.items,
        &originals,
    )?;
    for summary in summaries {
        live.add_summary(summary);
    }
    live.next_item = plan.next_item;
    fingerprints::insert(tx, tenant, live.row, &publish.fingerprints)?;
    threads::dequeue(tx, live.thread, &publish.dequeue)?;
    let events = publish.events.as_ref();
    events::move_out(tx, live.owned(), live.next_event, events)?;
    if publish.ending == Ending::Cancelled && live.calls {
        approvals::withdraw(tx, live.row)?;
    }
    if trials::planted("publish-in-two") {
        tx.conn.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
    }
    trials::reach(Point::PublishMid).map_err(OpError::Broken)?;
    let published = if plan.has_node {
        let of = NewNode {
            step: publish.step,
            to: plan.to,
            open: plan.open,
            state: prepared.state.as_ref(),
            created: tx.now,
            seen: plan.seen,
        };
        publish_node(tx, &mut live, &of, tenant)?
    } else {
        unpublished(tx, &live)?
    };
    correct_run(tx, &live, &plan, &published)?;
    tx.after_commit(CacheUpdate::Settled(live.id));
    // The next free run need not look it up. Leased runs go on from the head of their
    // head.
    if plan.has_node
        && live.flags & flag::LEASED == 0
        && let Some(base) = live.base
    {
        let ended = EndedRun {
            run: live.row,
            thread: live.thread,
            thread_id: live.thread_id.clone(),
            base: BaseNode { own: true, ..base },
        };
        tx.after_commit(CacheUpdate::Ended((tenant, live.id), ended));
    }
    Ok(Some(published))
}

/// The answer to a publication that is there already.
fn repeated(
    tx: &Tx<'_>,
    scope: &TenantScope,
    row: &RunRow,
    prepared: &PreparedPublish,
) -> OpResult<Option<Published>> {
    let publish = &prepared.publish;
    let count = u32::try_from(prepared.items.len()).unwrap_or(u32::MAX);
    let Some(first) = row.next_item.checked_sub(count) else {
        return Ok(None);
    };
    let run = (row.row, row.id);
    if !rules::publish::is_same(&row.run(tx.now)?, publish)
        || !items::same(tx.conn, scope.tenant(), run, first, &prepared.items)?
        || !same_results(tx, scope, row, &prepared.results)?
        || threads::is_queued(tx, row.thread, &publish.dequeue)?
    {
        return Ok(None);
    }
    answer(tx, row).map(Some)
}

/// What the last publication of a run was answered with.
pub(crate) fn answer(tx: &Tx<'_>, row: &RunRow) -> OpResult<Published> {
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
