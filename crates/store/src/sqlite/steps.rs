//! What a run writes while it works: steps, intents, results, events.

use rusqlite::params;
use throughline_model::json::RawJson;

use super::cache::{Live, Mark};
use super::fault::{Done, Stop, exists, invalid, missing};
use super::items::{self, Original, Ready};
use super::publish::{NewState, NodeOf, check_version, is_open, last_of_steps, publish_node};
use super::rows::{RunRow, flag, int, node_at, num, run_to_write};
use super::sql::{one, prepare, run_sql};
use super::writer::{Effect, Tx};
use crate::digest::Digest;
use crate::{
    ApprovalState, CallResult, CallState, Error, Flush, ItemKind, ItemRef, Lease, NewItem,
    Published, RunId, RunState, Step, Tenant, TenantScope, Version,
};

/// A step, ready to be stored.
pub(super) struct ReadyStep {
    pub(super) step: Step,
    items: Vec<Ready>,
    state: Option<NewState>,
    /// Says whether another step is the same.
    content: Digest,
}

impl ReadyStep {
    /// Prepare a step whose first item will probably have the number `first`.
    pub(super) fn new(scope: &TenantScope, run: RunId, first: u32, step: &Step) -> Done<Self> {
        for call in &step.calls {
            if matches!(call.state, CallState::Done | CallState::Taken) {
                let why = format!("it cannot start as {}", call.state.as_str());
                return Err(invalid("a planned call", why));
            }
        }
        for approval in &step.approvals {
            let known = step.calls.get(approval.position as usize);
            if approval.step != step.no || known.is_none() {
                let why = format!("{} names a call that the step does not make", approval.id);
                return Err(invalid("an approval", why));
            }
        }
        let state = step.node.as_ref().and_then(|node| node.state.as_ref());
        Ok(Self {
            items: Ready::list(scope.tenant(), run, first, &step.items),
            state: state.map(|state| NewState::new(scope, run, step.no, state)),
            content: content(step),
            step: step.clone(),
        })
    }
}

/// A digest of everything in a step, to recognise it when it is sent again.
fn content(step: &Step) -> Digest {
    let mut hasher = blake3::Hasher::new();
    let mut text = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for item in &step.items {
        match item {
            NewItem::Said(said) => {
                text(&[1, said.kind.code(), said.source]);
                text(&said.tokens.to_le_bytes());
                text(&said.body);
            }
            NewItem::Again(of) => {
                text(&[2]);
                text(of.run.as_bytes());
                text(&of.no.to_le_bytes());
            }
        }
    }
    for call in &step.calls {
        text(&[3, call.effect.code(), call.state.code()]);
        text(call.call.as_bytes());
        text(call.tool.as_bytes());
    }
    for approval in &step.approvals {
        text(&[4]);
        text(approval.id.as_bytes());
        text(&approval.position.to_le_bytes());
        text(&approval.shown);
    }
    if let Some(note) = &step.note {
        text(note.get().as_bytes());
    }
    if let Some(node) = &step.node {
        text(&[5]);
        if let Some(state) = &node.state {
            text(state.to_json().as_bytes());
        }
    }
    let mut digest = Digest::default();
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

/// A result, ready to be stored.
pub(super) struct Filled {
    step: u32,
    position: u32,
    pub(super) item: Ready,
}

impl Filled {
    pub(super) fn list(results: &[CallResult]) -> Vec<Self> {
        let ready = |result: &CallResult| Self {
            step: result.step,
            position: result.position,
            item: Ready::unnumbered(&result.item),
        };
        results.iter().map(ready).collect()
    }
}

/// Where a result goes.
pub(super) struct Place {
    pub(super) no: u32,
    /// Whether it is not there yet.
    pub(super) is_new: bool,
}

/// What this process knows of a run that it works on.
pub(super) fn cached(
    tx: &Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
) -> Option<std::sync::Arc<Live>> {
    let live = super::cache::lock(&tx.shared.caches.live).get(&lease.run)?;
    (live.epoch == lease.epoch && live.tenant == *scope.tenant()).then_some(live)
}

/// The run of a lease that still counts.
pub(super) fn admit(tx: &mut Tx<'_>, scope: &TenantScope, lease: Lease) -> Done<RunRow> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let row = run_to_write(tx.conn, tenant, lease.run)?;
    if row.epoch != lease.epoch {
        tx.then(Effect::Forget(lease.run));
        return Err(Error::Fenced {
            run: lease.run,
            mine: lease.epoch,
            current: row.epoch,
        }
        .into());
    }
    Ok(row)
}

/// Refuse a run that is not running.
pub(super) fn must_run(tx: &Tx<'_>, row: &RunRow) -> Done<()> {
    if row.state == RunState::Running {
        return Ok(());
    }
    Err(Error::WrongState {
        run: row.id,
        state: row.seen(tx.now),
        wanted: "it must be running",
    }
    .into())
}

/// Refuse a step or events that are not the next ones.
pub(super) fn in_order(row: &RunRow, step: u32, events: Option<&Flush>) -> Done<()> {
    let out_of_order = |what, expected, found| Error::OutOfOrder {
        run: row.id,
        what,
        expected,
        found,
    };
    if step != row.next_step {
        return Err(out_of_order("step", u64::from(row.next_step), u64::from(step)).into());
    }
    events_in_order(row, events)
}

fn events_in_order(row: &RunRow, events: Option<&Flush>) -> Done<()> {
    match events {
        Some(events) if events.first != row.next_event => Err(Error::OutOfOrder {
            run: row.id,
            what: "event",
            expected: row.next_event,
            found: events.first,
        }
        .into()),
        _ => Ok(()),
    }
}

/// A row that changed while the lock was held: it cannot.
pub(super) fn lost(row: &RunRow) -> Stop {
    Stop::Broken(Error::Io {
        detail: format!("{} changed under the lock", row.id),
    })
}

/// Everything that is known of a run, read anew.
pub(super) fn load(tx: &Tx<'_>, scope: &TenantScope, row: &RunRow) -> Done<Live> {
    let thread_id = row.thread_id.clone();
    let (base, from) = match (row.published, row.base) {
        (Some((tl, first, _)), _) => {
            let node = node_at(tx.conn, tl, first)?;
            let from = node.as_ref().map_or(1, |node| node.item_hi() + 1);
            (node.map(|node| node.base(true)), from)
        }
        (None, Some((tl, first))) => {
            let node = node_at(tx.conn, tl, first)?;
            let sql = "SELECT thread FROM timeline WHERE tl=?";
            let owner: Option<i64> = one(tx.conn, sql, [tl], |row| row.get(0))?;
            (node.map(|node| node.base(owner == Some(row.thread))), 1)
        }
        (None, None) => (None, 1),
    };
    let mut statement = prepare(
        tx.conn,
        "SELECT no, tokens, digest FROM item WHERE run=? AND no>=? ORDER BY no",
    )?;
    let marks = statement.query_map((row.row, from), |row| {
        Ok(Mark {
            no: row.get(0)?,
            tokens: row.get(1)?,
            digest: row.get(2)?,
        })
    })?;
    let calls: Option<i64> = one(
        tx.conn,
        "SELECT 1 FROM call WHERE run=? LIMIT 1",
        [row.row],
        |row| row.get(0),
    )?;
    Ok(Live {
        row: row.row,
        id: row.id,
        tenant: scope.tenant().clone(),
        thread: row.thread,
        thread_id: thread_id.ok_or_else(|| missing("run", &row.id))?,
        flags: row.flags,
        epoch: row.epoch,
        version: row.version,
        inputs: row.inputs,
        next_step: row.next_step,
        next_item: row.next_item,
        next_event: row.next_event,
        base,
        published: row.published,
        from,
        marks: marks.collect::<Result<_, _>>()?,
        calls: calls.is_some(),
    })
}

/// Store events.
pub(super) fn insert_events(tx: &Tx<'_>, run: i64, events: &Flush) -> Done<()> {
    if events.count > 0 {
        let sql = "INSERT INTO run_event(run, seq, n, payload) VALUES(?,?,?,?)";
        run_sql(
            tx.conn,
            sql,
            (run, int(events.first), events.count, &events.payload),
        )?;
    }
    Ok(())
}

/// Record a step.
pub(super) fn step(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    ready: &ReadyStep,
) -> Done<Option<Published>> {
    let step = &ready.step;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    if let Some(live) = cached(tx, scope, lease) {
        let events = step.events.as_ref();
        let fits = live.next_step == step.no
            && events.is_none_or(|events| events.first == live.next_event);
        if fits && let Some(done) = write_step(tx, tenant, (*live).clone(), ready)? {
            return Ok(done);
        }
    }
    let row = admit(tx, scope, lease)?;
    if step.no < row.next_step
        && let Some(answer) = repeated_step(tx, &row, ready)?
    {
        return Ok(answer);
    }
    must_run(tx, &row)?;
    in_order(&row, step.no, step.events.as_ref())?;
    if step.node.is_some() && row.has(flag::LEASED) {
        check_version(tx, &row)?;
    }
    let live = load(tx, scope, &row)?;
    write_step(tx, tenant, live, ready)?.ok_or_else(|| lost(&row))
}

fn repeated_step(tx: &Tx<'_>, row: &RunRow, ready: &ReadyStep) -> Done<Option<Option<Published>>> {
    let sql = "SELECT content, tl, pos, flags, version FROM step WHERE run=? AND no=?";
    let stored = one(tx.conn, sql, (row.row, ready.step.no), |row| {
        Ok((
            row.get::<_, Digest>(0)?,
            row.get::<_, Option<i64>>(1)?,
            row.get::<_, Option<i64>>(2)?,
            row.get::<_, u32>(3)?,
            row.get::<_, i64>(4)?,
        ))
    })?;
    let Some((content, tl, pos, flags, version)) = stored else {
        return Ok(None);
    };
    if content != ready.content {
        return Ok(None);
    }
    if ready.step.node.is_none() {
        return Ok(Some(None));
    }
    let place = tl.zip(pos.map(num)).or(row.base);
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
    mut live: Live,
    ready: &ReadyStep,
) -> Done<Option<Option<Published>>> {
    let step = &ready.step;
    let conn = tx.conn;
    let originals = items::resolve(conn, tenant, &ready.items)?;
    for approval in &step.approvals {
        let sql = "SELECT 1 FROM approval WHERE tenant=? AND id=?";
        if one(conn, sql, (tenant, approval.id.as_bytes()), |_| Ok(()))?.is_some() {
            return Err(exists("approval", &approval.id));
        }
    }
    let first = live.next_item;
    let count = u32::try_from(ready.items.len()).unwrap_or(u32::MAX);
    let calls = u32::try_from(step.calls.len()).unwrap_or(u32::MAX);
    let to = match (&step.node, count) {
        (None, _) => 0,
        (Some(_), 0) => last_of_steps(tx, &live)?,
        (Some(_), count) => first + count - 1,
    };
    let open = calls > 0 || (step.node.is_some() && is_open(tx, &live, 0)?);
    let next_item = first + count + calls;
    let next_event = step.events.as_ref().map_or(live.next_event, Flush::end);
    let guarded = step.node.is_some() && live.flags & flag::LEASED != 0;
    let sql = "UPDATE run SET next_step=next_step+1, next_item=?1, next_event=?2, progress=?3
      WHERE run=?4 AND id=?5 AND epoch=?6 AND state=1 AND next_step=?7 AND next_item=?8 AND next_event=?9
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
    for mark in items::insert_all(conn, &live.tenant, run, first, &ready.items, &originals)? {
        live.mark(mark);
    }
    insert_calls(tx, &live, ready, first + count)?;
    super::approvals::insert(tx, tenant, &live, &step.approvals)?;
    if let Some(events) = &step.events {
        insert_events(tx, live.row, events)?;
    }
    live.next_step = step.no + 1;
    live.next_item = next_item;
    live.next_event = next_event;
    live.calls |= calls > 0;
    let published = match &step.node {
        None => None,
        Some(_) if to < live.from => Some(Published {
            node: live.base.map(|base| base.id),
            last: live.base.map_or(0, |base| base.last),
            moved: false,
            version: Version(super::publish::thread_version(tx, live.thread)?),
        }),
        Some(_) => {
            let of = NodeOf {
                step: step.no,
                to,
                open,
                state: ready.state.as_ref(),
                created: tx.now,
            };
            let published = publish_node(tx, &mut live, &of, tenant)?;
            let (tl, at, no) = live.published.unwrap_or_default();
            let sql = "UPDATE run SET pub_tl=?, pub_first=?, pub_step=?, version=? WHERE run=?";
            run_sql(conn, sql, (tl, int(at), no, int(live.version), live.row))?;
            Some(published)
        }
    };
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
        ready.content,
        step.note.as_ref().map(RawJson::get),
    ];
    run_sql(conn, sql, values)?;
    tx.then(Effect::Live(live.into()));
    Ok(Some(published))
}

fn insert_calls(tx: &Tx<'_>, live: &Live, ready: &ReadyStep, first: u32) -> Done<()> {
    let sql =
        "INSERT INTO call(run, step, pos, state, effect, epoch, result_no, call, tool, approval)
      VALUES(?,?,?,?,?,?,?,?,?,?)";
    for (position, call) in (0u32..).zip(&ready.step.calls) {
        let approval = ready
            .step
            .approvals
            .iter()
            .find(|approval| approval.position == position);
        let values = params![
            live.row,
            ready.step.no,
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

/// A call as it is stored.
struct CallRow {
    state: CallState,
    epoch: u32,
    result: u32,
    /// Where the approval stands, if it has one.
    approval: Option<i64>,
}

fn call(tx: &Tx<'_>, row: &RunRow, step: u32, position: u32) -> Done<CallRow> {
    let sql = "SELECT c.state, c.epoch, c.result_no, a.state FROM call c CROSS JOIN run r ON r.run=c.run
      LEFT JOIN approval a ON a.tenant=r.tenant AND a.id=c.approval WHERE c.run=? AND c.step=? AND c.pos=?";
    let found = one(tx.conn, sql, (row.row, step, position), |row| {
        Ok((row.get::<_, u8>(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let place = || format!("{position} of step {step} of {}", row.id);
    let Some((state, epoch, result, approval)) = found else {
        return Err(missing("call", &place()));
    };
    let state = CallState::of(state).ok_or_else(|| {
        super::fault::corrupt(format!("call {}", place()), "it is in no known state")
    })?;
    Ok(CallRow {
        state,
        epoch,
        result,
        approval,
    })
}

fn wrong_call(
    row: &RunRow,
    step: u32,
    position: u32,
    state: &'static str,
    wanted: &'static str,
) -> Stop {
    Stop::Refused(Error::WrongCall {
        run: row.id,
        step,
        position,
        state,
        wanted,
    })
}

/// Record that calls are about to be dispatched.
pub(super) fn intend(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    step: u32,
    positions: &[u32],
) -> Done<()> {
    let row = admit(tx, scope, lease)?;
    must_run(tx, &row)?;
    let mut fresh = Vec::with_capacity(positions.len());
    for position in positions {
        let call = call(tx, &row, step, *position)?;
        let allowed = call.approval == Some(super::approvals::code(ApprovalState::Approved));
        match call.state {
            CallState::Planned => fresh.push((*position, false)),
            CallState::Approval if allowed => fresh.push((*position, true)),
            CallState::Approval => {
                let wanted = "it needs an approval that says yes";
                return Err(wrong_call(
                    &row,
                    step,
                    *position,
                    call.state.as_str(),
                    wanted,
                ));
            }
            // Sent again.
            CallState::Intent if call.epoch == lease.epoch => {}
            CallState::Intent | CallState::Done | CallState::Client | CallState::Taken => {
                let wanted = "it must be planned";
                return Err(wrong_call(
                    &row,
                    step,
                    *position,
                    call.state.as_str(),
                    wanted,
                ));
            }
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    touch(tx, &row)?;
    for (position, approved) in fresh {
        let sql = "UPDATE call SET state=?, epoch=? WHERE run=? AND step=? AND pos=?";
        let code = CallState::Intent.code();
        run_sql(tx.conn, sql, (code, lease.epoch, row.row, step, position))?;
        if approved {
            super::approvals::used(tx, row.row, step, position)?;
        }
    }
    Ok(())
}

/// Note that a run has come on.
fn touch(tx: &Tx<'_>, row: &RunRow) -> Done<()> {
    run_sql(
        tx.conn,
        "UPDATE run SET progress=? WHERE run=?",
        (int(tx.now), row.row),
    )?;
    Ok(())
}

/// Where results go; refuse what does not fit. Nothing is written.
pub(super) fn places(
    tx: &Tx<'_>,
    scope: &TenantScope,
    row: &RunRow,
    results: &[Filled],
) -> Done<Vec<Place>> {
    let mut places: Vec<Place> = Vec::with_capacity(results.len());
    for filled in results {
        let call = call(tx, row, filled.step, filled.position)?;
        let wrong = |state, wanted| wrong_call(row, filled.step, filled.position, state, wanted);
        let no = call.result;
        if places.iter().any(|place| place.no == no) {
            return Err(wrong(
                call.state.as_str(),
                "it has one result, and two were given",
            ));
        }
        let is_new = match call.state {
            CallState::Planned | CallState::Intent | CallState::Approval | CallState::Client => {
                true
            }
            CallState::Done => {
                let run = (row.row, row.id);
                let item = std::slice::from_ref(&filled.item);
                if !items::same(tx.conn, scope.tenant(), run, no, item)? {
                    return Err(wrong(call.state.as_str(), "it has another result already"));
                }
                false
            }
            CallState::Taken => return Err(wrong(call.state.as_str(), "its run must have it")),
        };
        let sql = "SELECT kind FROM item WHERE run=? AND no=?";
        let kind: Option<u8> = one(tx.conn, sql, (row.row, no), |row| row.get(0))?;
        if is_new && kind == Some(ItemKind::Gap.code()) {
            return Err(wrong(
                "published without a result",
                "it must come before its node",
            ));
        }
        places.push(Place { no, is_new });
    }
    Ok(places)
}

/// What results say again.
pub(super) fn resolve_results(
    tx: &Tx<'_>,
    tenant: i64,
    results: &[Filled],
) -> Done<Vec<Option<Original>>> {
    let mut originals = Vec::with_capacity(results.len());
    for filled in results {
        let item = std::slice::from_ref(&filled.item);
        originals.extend(items::resolve(tx.conn, tenant, item)?);
    }
    Ok(originals)
}

/// Store results at their places.
pub(super) fn fill(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run: (i64, RunId),
    places: &[Place],
    results: &[Filled],
    originals: &[Option<Original>],
) -> Done<Vec<Mark>> {
    let mut marks = Vec::with_capacity(results.len());
    for ((filled, place), original) in results.iter().zip(places).zip(originals) {
        if !place.is_new {
            continue;
        }
        let sql = "UPDATE call SET state=? WHERE run=? AND step=? AND pos=?";
        let done = CallState::Done.code();
        run_sql(tx.conn, sql, (done, run.0, filled.step, filled.position))?;
        super::approvals::withdraw_call(tx, run.0, filled.step, filled.position)?;
        let at = ItemRef {
            run: run.1,
            no: place.no,
        };
        let original = original.as_ref();
        marks.push(items::insert(
            tx.conn,
            tenant,
            run.0,
            at,
            &filled.item,
            original,
        )?);
    }
    Ok(marks)
}

/// Whether results are stored as given.
pub(super) fn same_results(
    tx: &Tx<'_>,
    scope: &TenantScope,
    row: &RunRow,
    results: &[Filled],
) -> Done<bool> {
    match places(tx, scope, row, results) {
        Ok(places) => Ok(places.iter().all(|place| !place.is_new)),
        Err(Stop::Refused(_)) => Ok(false),
        Err(broken) => Err(broken),
    }
}

/// Record results.
pub(super) fn results(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    results: &[Filled],
) -> Done<()> {
    let row = admit(tx, scope, lease)?;
    must_run(tx, &row)?;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let places = places(tx, scope, &row, results)?;
    let originals = resolve_results(tx, tenant, results)?;
    if places.iter().all(|place| !place.is_new) {
        return Ok(());
    }
    touch(tx, &row)?;
    let run = (row.row, row.id);
    let marks = fill(tx, scope.tenant(), run, &places, results, &originals)?;
    match cached(tx, scope, lease) {
        // Only if nothing else happened since; otherwise it is read anew when it is needed.
        Some(live) if live.next_item == row.next_item && live.next_step == row.next_step => {
            let mut live = (*live).clone();
            for mark in marks {
                live.mark(mark);
            }
            tx.then(Effect::Live(live.into()));
        }
        _ => tx.then(Effect::Forget(lease.run)),
    }
    Ok(())
}

/// Store events.
pub(super) fn flush(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    events: &Flush,
) -> Done<()> {
    let sql = "UPDATE run SET next_event=?1, progress=?2 WHERE run=?3 AND id=?4 AND epoch=?5 AND state=1 AND next_event=?6";
    if let Some(live) = cached(tx, scope, lease).filter(|live| live.next_event == events.first) {
        let values = (
            int(events.end()),
            int(tx.now),
            live.row,
            live.id.as_bytes(),
            live.epoch,
            int(events.first),
        );
        if run_sql(tx.conn, sql, values)? == 1 {
            insert_events(tx, live.row, events)?;
            let mut live = (*live).clone();
            live.next_event = events.end();
            tx.then(Effect::Live(live.into()));
            return Ok(());
        }
    }
    let row = admit(tx, scope, lease)?;
    if is_stored(tx, &row, events)? {
        return Ok(());
    }
    must_run(tx, &row)?;
    events_in_order(&row, Some(events))?;
    let values = (
        int(events.end()),
        int(tx.now),
        row.row,
        row.id.as_bytes(),
        row.epoch,
        int(events.first),
    );
    run_sql(tx.conn, sql, values)?;
    insert_events(tx, row.row, events)?;
    tx.then(Effect::Forget(lease.run));
    Ok(())
}

/// Whether these events are there already.
pub(super) fn is_stored(tx: &Tx<'_>, row: &RunRow, events: &Flush) -> Done<bool> {
    if events.end() > row.next_event || events.count == 0 {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM run_event WHERE run=? AND seq=? AND n=? AND payload=?";
    let key = (row.row, int(events.first), events.count, &events.payload);
    Ok(one(tx.conn, sql, key, |_| Ok(()))?.is_some())
}

/// Events that come with the end of a run's work, unless they are there.
pub(super) fn last_events(row: &RunRow, events: Option<&Flush>) -> Done<u64> {
    events_in_order(row, events)?;
    Ok(events.map_or(row.next_event, Flush::end))
}
