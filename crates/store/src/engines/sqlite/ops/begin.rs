//! Beginning runs.

use crate::engines::sqlite::ops::threads;
use crate::engines::sqlite::rows::find;
use crate::engines::sqlite::rows::nodes;
use rusqlite::{Connection, params};
use throughline_model::json::RawJson;

use crate::digest::{self, Digest};
use crate::engines::sqlite::cache::{BaseNode, CachedRun, EndedRun, lock};
use crate::engines::sqlite::events::{self, OwnedRun};
use crate::engines::sqlite::op_error::{OpError, OpResult, not_found};
use crate::engines::sqlite::ops::{approvals, fingerprints, wait_queue};
use crate::engines::sqlite::rows::find::{
    any_run, named_node, redactions, run_by_key, shown_thread, unsettled,
};
use crate::engines::sqlite::rows::items::{self, PreparedItem};
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{RunRow, SHOWN, ThreadRow, flag, int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::engines::sqlite::write::statements::TurnStatement;
use crate::rules::begin::{Earlier, FoundHead, TakenCall};
use crate::{
    AfterTurn, Anchor, Begin, Begun, CallState, Error, Expects, Flush, Idempotency, Lease, Leasing,
    Mode, NewItem, NodeRef, Result, RunId, Started, Tenant, TenantScope, ThreadId, Version,
};
use crate::{rules, trials};

/// A run, ready to be begun.
pub(crate) struct PreparedBegin {
    pub(crate) begin: Begin,
    items: Vec<PreparedItem>,
    request: Option<Digest>,
}

impl PreparedBegin {
    pub(crate) fn new(scope: &TenantScope, begin: &Begin) -> Result<Self> {
        rules::begin::check(begin)?;
        Ok(Self {
            items: PreparedItem::list(scope.tenant(), begin.run, 1, &begin.input),
            request: begin.request.as_ref().map(|raw| digest::request(raw.get())),
            begin: begin.clone(),
        })
    }
}

/// Where a run starts, once it is known.
struct Start {
    thread: i64,
    thread_id: ThreadId,
    version: u64,
    base: Option<BaseNode>,
    leased: bool,
    /// What is to stand in `run.live`.
    live: i64,
    /// Its turn in the wait queue of the thread, if it has looked who waits there.
    turn: Option<wait_queue::Turn>,
}

/// Begin a run.
pub(crate) fn begin(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    prepared: &PreparedBegin,
) -> OpResult<Begun> {
    let begin = &prepared.begin;
    let known = tx.known_tenant(scope.tenant())?;
    let redacted = match begin.redactions {
        Some(_) => redactions(tx.conn, known)?,
        None => 0,
    };
    if let Some(tenant) = known
        && begin.redactions.is_none_or(|seen| seen == redacted)
        && begin.takes.is_empty()
        && (begin.expects.is_none() || matches!(begin.at, Anchor::Node(_)))
        && let Some(start) = start_from_cache(tx, tenant, begin)?
    {
        if let Some(started) = write(tx, scope.tenant(), tenant, prepared, &start)? {
            return Ok(Begun::Started(started));
        }
        if matches!(begin.at, Anchor::New { .. }) {
            // It was made for this run.
            run_sql(tx.conn, "DELETE FROM thread WHERE thread=?", [start.thread])?;
        }
    }
    if let Some(tenant) = known
        && let Some(begun) = repeated_begin(tx, scope, tenant, prepared)?
    {
        return Ok(begun);
    }
    let start = start_from_rows(tx, scope, known, begin)?;
    if !matches!(begin.at, Anchor::New { .. }) {
        rules::begin::unredacted(&start.thread_id, begin.redactions, redacted)?;
    }
    let tenant = tx.tenant(scope.tenant())?;
    match write(tx, scope.tenant(), tenant, prepared, &start)? {
        Some(started) => Ok(Begun::Started(started)),
        None => Err(OpError::Broken(Error::Io {
            detail: format!("{} cannot be begun for no known reason", begin.run),
        })),
    }
}

/// Where it starts, by what this process remembers of the thread or of the run that it follows; a
/// new thread is made.
fn start_from_cache(tx: &Tx<'_>, tenant: i64, begin: &Begin) -> OpResult<Option<Start>> {
    match &begin.at {
        Anchor::Head { thread, expected } => {
            let key = (tenant, thread.clone());
            let head = lock(&tx.shared.caches.heads).get(&key);
            let head = head.filter(|head| head.version == expected.0);
            Ok(head.map(|head| Start {
                thread: head.thread,
                thread_id: key.1,
                version: head.version,
                base: head.base,
                leased: true,
                live: 0,
                turn: None,
            }))
        }
        Anchor::Node(node) => {
            let run = node.run();
            let ended = lock(&tx.shared.caches.ended).get(&(tenant, run));
            // A run may have more than one node, and only the last is remembered.
            let ended = ended.filter(|ended| match node {
                NodeRef::Run(_) => true,
                NodeRef::Node(node) => ended.base.id == *node,
            });
            match ended {
                Some(ended) => start_at_run(tx, run, ended, begin.expects.as_ref()),
                None => Ok(None),
            }
        }
        // Nothing can be missing, and no name be taken but its own.
        Anchor::New { thread, leasing } if thread.aliases.is_empty() && is_all_new(begin) => {
            let row = threads::insert(tx, tenant, thread, None)?;
            let leased = *leasing == Leasing::Thread;
            Ok(row.map(|row| Start {
                thread: row,
                thread_id: thread.id.clone(),
                version: 0,
                base: None,
                leased,
                live: if leased { 0 } else { tx.shared.free_number() },
                turn: None,
            }))
        }
        Anchor::New { .. } => Ok(None),
    }
}

/// Whether nothing is said again.
fn is_all_new(begin: &Begin) -> bool {
    let again = |item: &NewItem| matches!(item, NewItem::Repeat(_));
    !begin.input.iter().any(again)
}

/// At the end of a run, if it is where it was.
fn start_at_run(
    tx: &Tx<'_>,
    run: RunId,
    ended: EndedRun,
    expects: Option<&Expects>,
) -> OpResult<Option<Start>> {
    let base = ended.base;
    let key = params![
        ended.run,
        run.as_bytes(),
        base.tl,
        int(base.first),
        expects.is_some() && !trials::planted("expects-nothing"),
        expects.and_then(|expects| expects.settings.as_ref().map(RawJson::get)),
    ];
    let mut version = 0;
    let holds = tx.statements.query_one(TurnStatement::Base, key, |row| {
        version = num(row.get(0)?);
        Ok(())
    })?;
    Ok(holds.then(|| Start {
        thread: ended.thread,
        thread_id: ended.thread_id,
        version,
        base: Some(base),
        leased: false,
        live: tx.shared.free_number(),
        turn: None,
    }))
}

/// The answer if the same run or key is there already.
fn repeated_begin(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    tenant: i64,
    prepared: &PreparedBegin,
) -> OpResult<Option<Begun>> {
    let begin = &prepared.begin;
    let keyed = match &begin.key {
        Some(key) => run_with_key(tx.conn, tenant, key)?,
        None => None,
    };
    let found = known_run(tx, tenant, begin.run)?;
    let same = match &found {
        Some(row) => {
            let own = row.owner == Some(tx.owner) && row.inputs as usize == prepared.items.len();
            let run = (row.row, row.id);
            let same = rules::begin::is_same(&row.run(tx.now)?, own, begin)
                && items::same(tx.conn, scope.tenant(), run, 1, &prepared.items)?;
            Some(same)
        }
        None => None,
    };
    let by_key = keyed.as_ref().map(|row| row.id);
    match (
        rules::begin::earlier(begin.run, same, by_key)?,
        found,
        keyed,
    ) {
        (Earlier::Same, Some(row), _) => Ok(Some(Begun::Started(started(tx, &row)?))),
        (Earlier::ByKey(_), _, Some(mut row)) => {
            events::set_next_event(tx, &mut row)?;
            Ok(Some(Begun::Repeated(Box::new(row.run(tx.now)?))))
        }
        _ => Ok(None),
    }
}

/// A run that is there; [`Error::NotFound`] if its thread is deleted.
pub(crate) fn known_run(tx: &Tx<'_>, tenant: i64, id: RunId) -> OpResult<Option<RunRow>> {
    match any_run(tx.conn, tenant, id)? {
        Some(run) if run.stage != SHOWN => Err(not_found("run", &id)),
        found => Ok(found),
    }
}

/// The run that has a key, if the request is the same.
pub(crate) fn run_with_key(
    conn: &Connection,
    tenant: i64,
    key: &Idempotency,
) -> OpResult<Option<RunRow>> {
    let found = run_by_key(conn, tenant, &key.key)?;
    let Some(row) = found.filter(|_| trials::unless("key-ignored", true)) else {
        return Ok(None);
    };
    // A key lives as long as the run can be named.
    if row.stage != SHOWN || row.has(flag::HIDDEN) {
        return Ok(None);
    }
    rules::begin::key(key, row.id, row.key_digest)?;
    Ok(Some(row))
}

/// What a run was answered with when it was begun or claimed.
pub(crate) fn started(tx: &Tx<'_>, row: &RunRow) -> OpResult<Started> {
    let base = match row.base {
        Some((tl, first)) => find::node_at(tx.conn, tl, first)?,
        None => None,
    };
    Ok(Started {
        lease: Lease {
            run: row.id,
            epoch: row.epoch,
        },
        version: Version(row.version),
        base: base.map_or(0, |node| node.last),
    })
}

/// Refuse a thread with an unsettled leased run.
pub(crate) fn check_free(tx: &Tx<'_>, thread: i64, id: &ThreadId) -> OpResult<()> {
    let holder = unsettled(tx.conn, thread)?;
    let holder = holder.map(|run| (run.id, run.seen(tx.now)));
    Ok(rules::begin::free(id, holder)?)
}

/// Refuse a run that may not start at the head of a thread; its turn there.
pub(crate) fn at_head(
    tx: &Tx<'_>,
    thread: &ThreadRow,
    run: RunId,
    expected: Option<Version>,
) -> OpResult<wait_queue::Turn> {
    let holder = unsettled(tx.conn, thread.row)?;
    let first = wait_queue::first(tx.conn, thread.row, tx.now)?;
    let found = FoundHead {
        current: thread.current_head(),
        holder: holder.map(|run| (run.id, run.seen(tx.now))),
        first_waiter: first.map(|first| first.run),
    };
    rules::begin::at_head(&found, run, expected)?;
    Ok(wait_queue::Turn::new(thread.row, run, first))
}

/// Look up where a run starts, with every precondition. Only a new thread is written.
fn start_from_rows(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    tenant: Option<i64>,
    begin: &Begin,
) -> OpResult<Start> {
    match &begin.at {
        Anchor::New { thread, leasing } => {
            if let Some(tenant) = tenant {
                threads::check_new(tx.conn, tenant, thread)?;
            }
            check_takes(tx, tenant, begin)?;
            check_repeats(tx, tenant, begin)?;
            let tenant = tx.tenant(scope.tenant())?;
            let row = threads::insert_new(tx, tenant, thread, None)?;
            let leased = *leasing == Leasing::Thread;
            Ok(Start {
                thread: row,
                thread_id: thread.id.clone(),
                version: 0,
                base: None,
                leased,
                live: if leased { 0 } else { next_row(tx)? },
                turn: None,
            })
        }
        Anchor::Head { thread, expected } => {
            let row = shown_thread(tx.conn, tenant, thread)?;
            check_takes(tx, tenant, begin)?;
            let turn = at_head(tx, &row, begin.run, Some(*expected))?;
            check_unchanged(tx, row.row, thread, begin)?;
            Ok(Start {
                thread: row.row,
                thread_id: thread.clone(),
                version: row.version,
                base: row.base(),
                leased: true,
                live: 0,
                turn: Some(turn),
            })
        }
        Anchor::Node(node) => {
            let (node, run) = named_node(tx.conn, tenant, *node, tx.now)?;
            check_takes(tx, tenant, begin)?;
            let version = nodes::thread_version(tx, run.thread)?;
            let id = run.thread_id.clone();
            let id = id.ok_or_else(|| not_found("run", &run.id))?;
            check_unchanged(tx, run.thread, &id, begin)?;
            Ok(Start {
                thread: run.thread,
                thread_id: id,
                version,
                base: Some(node.base(true)),
                leased: false,
                live: next_row(tx)?,
                turn: None,
            })
        }
    }
}

/// Refuse a thread that is not as the caller remembers it.
fn check_unchanged(tx: &Tx<'_>, thread: i64, id: &ThreadId, begin: &Begin) -> OpResult<()> {
    let Some(expects) = &begin.expects else {
        return Ok(());
    };
    let sql = "SELECT settings IS ?2 AND NOT EXISTS(SELECT 1 FROM queue WHERE queue.thread=?1) FROM thread WHERE thread=?1";
    let settings = expects.settings.as_ref().map(RawJson::get);
    let same: Option<bool> = one(tx.conn, sql, (thread, settings), |row| row.get(0))?;
    Ok(rules::begin::unchanged(id, same == Some(true))?)
}

/// Items of a new thread's run that say something again must be there before the thread is made.
fn check_repeats(tx: &Tx<'_>, tenant: Option<i64>, begin: &Begin) -> OpResult<()> {
    for item in &begin.input {
        let prepared = PreparedItem::unnumbered(item);
        items::resolve(
            tx.conn,
            tenant.unwrap_or(0),
            std::slice::from_ref(&prepared),
        )?;
    }
    Ok(())
}

/// Refuse to take calls that do not wait.
fn check_takes(tx: &Tx<'_>, tenant: Option<i64>, begin: &Begin) -> OpResult<()> {
    for (place, call) in begin.takes.iter().enumerate() {
        let sql = "SELECT c.state, c.taken_by FROM run r CROSS JOIN call c ON c.run=r.run CROSS JOIN thread t ON t.thread=r.thread
          WHERE r.tenant=? AND r.id=? AND c.step=? AND c.pos=? AND t.stage=0";
        let key = (
            tenant.unwrap_or(0),
            call.run.as_bytes(),
            call.step,
            call.position,
        );
        let found = one(tx.conn, sql, key, |row| {
            let state: u8 = row.get(0)?;
            let by: Option<[u8; 16]> = row.get(1)?;
            Ok(TakenCall {
                state: CallState::of(state),
                taken_by: by.map(RunId::from_bytes),
            })
        })?;
        rules::begin::take(*call, found.as_ref(), &begin.takes[..place])?;
    }
    Ok(())
}

fn flags(mode: Mode, leased: bool) -> u32 {
    let mut flags = 0;
    if mode == Mode::PerCall {
        flags |= flag::PER_CALL;
    }
    if leased {
        flags |= flag::LEASED;
    }
    flags
}

/// Write a run. `None` if it cannot be begun like this; nothing is written then.
fn write(
    tx: &mut Tx<'_>,
    name: &Tenant,
    tenant: i64,
    prepared: &PreparedBegin,
    start: &Start,
) -> OpResult<Option<Started>> {
    let begin = &prepared.begin;
    let conn = tx.conn;
    let originals = items::resolve(conn, tenant, &prepared.items)?;
    if let Some(key) = &begin.key {
        free_key(tx, tenant, key)?;
    }
    let inputs = rules::items::after(0, prepared.items.len())?;
    rules::items::fingerprints(&begin.fingerprints, inputs)?;
    let next_event = begin.events.as_ref().map_or(0, Flush::end);
    let flags = flags(begin.mode, start.leased);
    let request = match prepared.request {
        Some(digest) => stored_request(tx, tenant, digest)?,
        None => None,
    };
    if let Some(turn) = start.turn {
        wait_queue::take_turn(tx, turn, AfterTurn::Leave)?;
    }
    let values = params![
        tenant,
        begin.run.as_bytes(),
        start.thread,
        start.leased,
        flags,
        tx.owner,
        start.base.map(|base| base.tl),
        start.base.map(|base| int(base.first)),
        inputs,
        int(next_event),
        int(tx.now),
        begin.key.as_ref().map(|key| key.key.as_str()),
        begin.key.as_ref().map(|key| key.request),
        request,
        int(start.version),
        start.live,
        start.turn.is_some(),
    ];
    if tx.statements.run(TurnStatement::Run, values)? == 0 {
        return Ok(None);
    }
    let row = conn.last_insert_rowid();
    let summaries = items::insert_all(tx, name, (row, begin.run), 1, &prepared.items, &originals)?;
    fingerprints::insert(tx, tenant, row, &begin.fingerprints)?;
    if let (Some(digest), Some(body), None) = (prepared.request, &begin.request, request) {
        keep_request(tx, tenant, row, digest, body.get())?;
    }
    if let Some(events) = &begin.events {
        let of = OwnedRun {
            row,
            id: begin.run,
            epoch: 1,
        };
        events::append(tx, of, events)?;
    }
    threads::dequeue(tx, start.thread, &begin.dequeue)?;
    take_calls(tx, tenant, begin)?;
    tx.after_commit(CacheUpdate::Began);
    tx.after_commit(CacheUpdate::Run(
        CachedRun {
            flags,
            version: start.version,
            inputs,
            next_item: inputs + 1,
            next_event,
            base: start.base,
            summaries,
            ..CachedRun::new(
                name,
                (row, begin.run),
                (start.thread, start.thread_id.clone()),
            )
        }
        .into(),
    ));
    Ok(Some(Started {
        lease: Lease {
            run: begin.run,
            epoch: 1,
        },
        version: Version(start.version),
        base: start.base.map_or(0, |base| base.last),
    }))
}

/// Take over the calls of other runs that a run answers.
fn take_calls(tx: &Tx<'_>, tenant: i64, begin: &Begin) -> OpResult<()> {
    for call in &begin.takes {
        let sql = "UPDATE call SET state=?1, taken_by=?2 WHERE run=(SELECT run FROM run WHERE tenant=?3 AND id=?4) AND step=?5 AND pos=?6";
        let values = (
            CallState::Taken.code(),
            begin.run.as_bytes(),
            tenant,
            call.run.as_bytes(),
            call.step,
            call.position,
        );
        run_sql(tx.conn, sql, values)?;
        approvals::use_up(tx, tenant, call)?;
    }
    Ok(())
}

/// The row that the next run gets: a number that no live run of any thread has.
fn next_row(tx: &Tx<'_>) -> OpResult<i64> {
    let last: Option<i64> =
        one(tx.conn, "SELECT max(run) FROM run", [], |row| row.get(0))?.flatten();
    Ok(last.unwrap_or(0) + 1)
}

/// Take a key away from a run that is hidden, or whose thread is deleted.
pub(crate) fn free_key(tx: &Tx<'_>, tenant: i64, key: &Idempotency) -> OpResult<()> {
    // 32: `HIDDEN`.
    let sql = "SELECT r.run FROM run r CROSS JOIN thread t ON t.thread=r.thread WHERE r.tenant=? AND r.idem=? AND (t.stage IN (2, 3) OR r.flags & 32<>0)";
    let dead: Option<i64> = one(tx.conn, sql, (tenant, &key.key), |row| row.get(0))?;
    if let Some(run) = dead {
        run_sql(
            tx.conn,
            "UPDATE run SET idem=NULL, idem_digest=NULL WHERE run=?",
            [run],
        )?;
    }
    Ok(())
}

/// The row of a request that the tenant has stored.
pub(crate) fn stored_request(tx: &Tx<'_>, tenant: i64, digest: Digest) -> OpResult<Option<i64>> {
    let mut found = None;
    tx.statements
        .query_one(TurnStatement::Request, params![tenant, digest], |row| {
            found = Some(row.get(0)?);
            Ok(())
        })?;
    Ok(found)
}

/// Keep a request that is new to the tenant.
pub(crate) fn keep_request(
    tx: &Tx<'_>,
    tenant: i64,
    run: i64,
    digest: Digest,
    body: &str,
) -> OpResult<()> {
    let sql = "INSERT INTO request(tenant, digest, body) VALUES(?,?,?)";
    run_sql(tx.conn, sql, (tenant, digest, body))?;
    let request = tx.conn.last_insert_rowid();
    let sql = "UPDATE run SET request=? WHERE run=?";
    run_sql(tx.conn, sql, (request, run))?;
    Ok(())
}
