//! Steps: what the model said, and the calls that follow from it.

use crate::engines::sqlite::events::flush;
use crate::engines::sqlite::ops::approvals;
use crate::engines::sqlite::ops::threads;
use rusqlite::params;
use throughline_model::json::RawJson;

use crate::digest::Digest;
use crate::engines::sqlite::cache::CachedRun;
use crate::engines::sqlite::events::append;
use crate::engines::sqlite::op_error::{OpResult, exists};
use crate::engines::sqlite::ops::lease::{
    cached_run, changed_under_lock, load_run, run_of_lease_with_events,
};
use crate::engines::sqlite::ops::publish::{check_version, is_open, last_of_steps};
use crate::engines::sqlite::rows::checksum::checksum;
use crate::engines::sqlite::rows::find::node_at;
use crate::engines::sqlite::rows::items::{self, PreparedItem};
use crate::engines::sqlite::rows::nodes::{
    Lookahead, NewNode, NewState, publish_node, unpublished,
};
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{RunRow, flag, int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::trials;
use crate::{Flush, Lease, Published, RunId, Step, TenantScope, Version, rules};

/// A step, ready to be stored.
pub(crate) struct PreparedStep {
    pub(crate) step: Step,
    items: Vec<PreparedItem>,
    state: Option<NewState>,
    /// Says whether another step is the same.
    content: Digest,
}

impl PreparedStep {
    /// Prepare a step whose first item will probably have the number `first`.
    pub(crate) fn new(
        scope: &TenantScope,
        run: RunId,
        first: u32,
        step: &Step,
    ) -> crate::Result<Self> {
        rules::step::check(step)?;
        let state = step.node.as_ref().and_then(|node| node.state.as_ref());
        Ok(Self {
            items: PreparedItem::list(scope.tenant(), run, first, &step.items),
            state: state.map(|state| NewState::new(scope, run, step.no, state)),
            content: rules::step::content(step),
            step: step.clone(),
        })
    }
}

/// Record a step.
pub(crate) fn step(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    prepared: &PreparedStep,
) -> OpResult<Option<Published>> {
    let step = &prepared.step;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    if let Some(live) = cached_run(tx.shared, scope, lease) {
        let events = step.events.as_ref();
        // Results may have come in the same group, unseen by what is remembered.
        let fits = (step.node.is_none() || !live.calls)
            && live.next_step == step.no
            && events.is_none_or(|events| flush::is_next(tx, &live, events));
        if fits && let Some(done) = write_step(tx, tenant, (*live).clone(), prepared)? {
            return Ok(done);
        }
    }
    let row = run_of_lease_with_events(tx, scope, lease)?;
    if trials::unless("repeat-refused", step.no < row.next_step)
        && let Some(answer) = repeated_step(tx, &row, prepared)?
    {
        return Ok(answer);
    }
    rules::lease::running(row.id, row.state)?;
    rules::lease::next_step(row.id, row.next_step, step.no)?;
    rules::lease::next_events(row.id, row.next_event, step.events.as_ref())?;
    if step.node.is_some() && row.has(flag::LEASED) {
        check_version(tx, &row)?;
    }
    let live = load_run(tx, scope, &row)?;
    write_step(tx, tenant, live, prepared)?.ok_or_else(|| changed_under_lock(&row))
}

fn repeated_step(
    tx: &Tx<'_>,
    row: &RunRow,
    prepared: &PreparedStep,
) -> OpResult<Option<Option<Published>>> {
    let sql = "SELECT content, flags, version FROM step WHERE run=? AND no=?";
    let key = (row.row, prepared.step.no);
    let stored = one(tx.conn, sql, key, |row| {
        Ok((row.get::<_, Digest>(0)?, row.get::<_, u32>(1)?, row.get(2)?))
    })?;
    let Some((content, flags, version)) = stored else {
        return Ok(None);
    };
    if trials::unless("repeat-other", content != prepared.content) {
        return Ok(None);
    }
    if prepared.step.node.is_none() {
        return Ok(Some(None));
    }
    // Its node, or the one before if it had nothing to publish.
    let sql = "SELECT tl, pos FROM step WHERE run=? AND no<=? AND tl IS NOT NULL ORDER BY no DESC LIMIT 1";
    let place = one(tx.conn, sql, key, |row| Ok((row.get(0)?, num(row.get(1)?))))?;
    let place = place.or(row.base);
    let node = match place {
        Some((tl, first)) => node_at(tx.conn, tl, first)?,
        None => None,
    };
    Ok(Some(Some(Published {
        node: node.as_ref().map(|node| node.id),
        last: node.as_ref().map_or(0, |node| node.last),
        moved: flags & flag::MOVED != 0,
        version: Version(num(version)),
    })))
}

/// Write a step. `None` if what is known of the run is out of date; nothing is written then.
fn write_step(
    tx: &mut Tx<'_>,
    tenant: i64,
    mut live: CachedRun,
    prepared: &PreparedStep,
) -> OpResult<Option<Option<Published>>> {
    let step = &prepared.step;
    let conn = tx.conn;
    for approval in &step.approvals {
        let sql = "SELECT run, step FROM approval WHERE tenant=? AND id=?";
        let key = (tenant, approval.id.as_bytes());
        match one(conn, sql, key, |row| Ok((row.get(0)?, row.get(1)?)))? {
            // The step was committed although its caller did not get the answer.
            Some(found) if found == (live.row, step.no) => return Ok(None),
            Some(_) => return Err(exists("approval", &approval.id)),
            None => {}
        }
    }
    let originals = items::resolve(conn, tenant, &prepared.items)?;
    let first = live.next_item;
    let said = rules::items::after(first - 1, prepared.items.len())?;
    let next_item = rules::items::after(said, step.calls.len())? + 1;
    let (count, calls) = (said + 1 - first, next_item - 1 - said);
    let to = match (&step.node, count) {
        (None, _) => 0,
        (Some(_), 0) => last_of_steps(tx, &live)?,
        (Some(_), _) => said,
    };
    let open = calls > 0 || (step.node.is_some() && is_open(tx, &live, 0)?);
    let next_event = step.events.as_ref().map_or(live.next_event, Flush::end);
    let guarded = step.node.is_some() && live.flags & flag::LEASED != 0;
    let sql = "UPDATE run SET next_step=next_step+1, next_item=?1, next_event=?2, progress=?3
      WHERE run=?4 AND id=?5 AND epoch=?6 AND state=1 AND next_step=?7 AND next_item=?8 AND next_event<=?9
      AND (NOT ?10 OR EXISTS(SELECT 1 FROM thread WHERE thread.thread=?11 AND thread.version=?12))";
    let values = params![
        next_item,
        int(next_event),
        int(tx.now),
        live.row,
        live.id.as_bytes(),
        live.epoch,
        step.no,
        live.next_item,
        int(live.next_event),
        guarded,
        live.thread,
        int(live.version),
    ];
    if run_sql(conn, sql, values)? == 0 {
        return Ok(None);
    }
    let run = (live.row, live.id);
    for summary in items::insert_all(tx, &live.tenant, run, first, &prepared.items, &originals)? {
        live.add_summary(summary);
    }
    insert_calls(tx, &live, prepared, said + 1)?;
    approvals::insert(tx, tenant, (live.thread, live.row), &step.approvals)?;
    threads::dequeue(tx, live.thread, &step.dequeue)?;
    if let Some(events) = &step.events {
        append(tx, live.owned(), events)?;
    }
    live.next_step = step.no + 1;
    live.next_item = next_item;
    live.next_event = next_event;
    live.calls |= calls > 0;
    let published = publish_step(tx, tenant, &mut live, prepared, (to, open))?;
    let node = live
        .published
        .filter(|(_, _, no)| *no == step.no && published.is_some());
    let moved = published.is_some_and(|published| published.moved);
    let sql = "INSERT INTO step(run, no, first, items, tl, pos, flags, version, content, note) VALUES(?,?,?,?,?,?,?,?,?,?)";
    let values = params![
        live.row,
        step.no,
        first,
        count,
        node.map(|(tl, _, _)| tl),
        node.map(|(_, at, _)| int(at)),
        if moved { flag::MOVED } else { 0 },
        int(published.map_or(live.version, |published| published.version.0)),
        prepared.content,
        step.note.as_ref().map(RawJson::get),
    ];
    run_sql(conn, sql, values)?;
    tx.after_commit(CacheUpdate::Run(live.into()));
    Ok(Some(published))
}

/// Publish the node of a step, if it is to make one: its last item, and whether calls wait.
fn publish_step(
    tx: &mut Tx<'_>,
    tenant: i64,
    live: &mut CachedRun,
    prepared: &PreparedStep,
    (to, open): (u32, bool),
) -> OpResult<Option<Published>> {
    let step = &prepared.step;
    if step.node.is_none() {
        return Ok(None);
    }
    if to < live.from {
        return unpublished(tx, live).map(Some);
    }
    let of = NewNode {
        step: step.no,
        to,
        open,
        state: prepared.state.as_ref(),
        created: tx.now,
        seen: Lookahead::default(),
    };
    let published = publish_node(tx, live, &of, tenant)?;
    let (tl, at, no) = live.published.unwrap_or_default();
    let sql = "UPDATE run SET pub_tl=?, pub_first=?, pub_step=?, version=?, flags=flags & 255 | ? WHERE run=?";
    let sum = checksum(&live.id, live.flags, live.published);
    let values = (tl, int(at), no, int(live.version), sum, live.row);
    run_sql(tx.conn, sql, values)?;
    Ok(Some(published))
}

fn insert_calls(
    tx: &Tx<'_>,
    live: &CachedRun,
    prepared: &PreparedStep,
    first: u32,
) -> OpResult<()> {
    let sql =
        "INSERT INTO call(run, step, pos, state, effect, epoch, result_no, call, tool, approval)
      VALUES(?,?,?,?,?,?,?,?,?,?)";
    for (position, call) in (0u32..).zip(&prepared.step.calls) {
        let approval = prepared
            .step
            .approvals
            .iter()
            .find(|approval| approval.position == position);
        let values = params![
            live.row,
            prepared.step.no,
            position,
            call.state.code(),
            call.effect.code(),
            live.epoch,
            first + position,
            call.call,
            call.tool,
            approval.map(|approval| approval.id.as_bytes()),
        ];
        run_sql(tx.conn, sql, values)?;
    }
    Ok(())
}
