//! Approvals: asked for by steps, answered once, used once.

use rusqlite::{Connection, Row, params};
use throughline_model::json::RawJson;

use crate::engines::sqlite::op_error::{OpResult, not_found};
use crate::engines::sqlite::rows::find::shown_thread;
use crate::engines::sqlite::rows::sql::{one, prepare, run_sql};
use crate::engines::sqlite::rows::{int, json, num};
use crate::engines::sqlite::write::job::Tx;
use crate::{
    Answer, Approval, ApprovalFilter, ApprovalId, ApprovalState, CallRef, Listing, Millis,
    NewApproval, PageToken, RunId, TenantScope, ThreadId, rules,
};

/// The number under which a state is stored. Expired is never stored.
fn code(state: ApprovalState) -> i64 {
    match state {
        ApprovalState::Waiting | ApprovalState::Expired => 0,
        ApprovalState::Approved => 1,
        ApprovalState::Denied => 2,
        ApprovalState::Used => 3,
        ApprovalState::Withdrawn => 4,
    }
}

/// The state that a number stands for.
pub(crate) fn stored_state(code: i64) -> ApprovalState {
    match code {
        0 => ApprovalState::Waiting,
        1 => ApprovalState::Approved,
        2 => ApprovalState::Denied,
        3 => ApprovalState::Used,
        // A state of a later version permits nothing.
        _ => ApprovalState::Withdrawn,
    }
}

/// Store what calls wait for.
pub(crate) fn insert(
    tx: &Tx<'_>,
    tenant: i64,
    (thread, run): (i64, i64),
    new: &[NewApproval],
) -> OpResult<()> {
    let sql = "INSERT INTO approval(tenant, id, thread, run, step, pos, shown, state, created, expires, detail)
      VALUES(?,?,?,?,?,?,?,0,?,?,?)";
    for approval in new {
        let values = params![
            tenant,
            approval.id.as_bytes(),
            thread,
            run,
            approval.step,
            approval.position,
            approval.shown,
            int(tx.now),
            approval.expires.map(int),
            approval.detail.as_ref().map(RawJson::get),
        ];
        run_sql(tx.conn, sql, values)?;
    }
    Ok(())
}

/// The call that an approval is for: run, step, position.
pub(crate) fn call_of(
    tx: &Tx<'_>,
    tenant: i64,
    id: ApprovalId,
) -> OpResult<Option<(i64, u32, u32)>> {
    let sql = "SELECT run, step, pos FROM approval WHERE tenant=? AND id=?";
    one(tx.conn, sql, (tenant, id.as_bytes()), |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
}

/// Use up the approval of a call.
pub(crate) fn used(tx: &Tx<'_>, run: i64, step: u32, position: u32) -> OpResult<()> {
    let sql = "UPDATE approval SET state=3 WHERE run=? AND step=? AND pos=? AND state=1";
    run_sql(tx.conn, sql, (run, step, position))?;
    Ok(())
}

/// Withdraw what still waits for a call.
pub(crate) fn withdraw_call(tx: &Tx<'_>, run: i64, step: u32, position: u32) -> OpResult<()> {
    let sql = "UPDATE approval SET state=4 WHERE run=? AND step=? AND pos=? AND state=0";
    run_sql(tx.conn, sql, (run, step, position))?;
    Ok(())
}

/// A call was taken over: an approval that was given is used up, one without an answer is withdrawn.
pub(crate) fn use_up(tx: &Tx<'_>, tenant: i64, call: &CallRef) -> OpResult<()> {
    let sql = "UPDATE approval SET state=CASE state WHEN 1 THEN 3 ELSE 4 END
      WHERE run=(SELECT run FROM run WHERE tenant=? AND id=?) AND step=? AND pos=? AND state IN (0, 1)";
    let place = (tenant, call.run.as_bytes(), call.step, call.position);
    run_sql(tx.conn, sql, place)?;
    Ok(())
}

/// Withdraw what still waits for a run.
pub(crate) fn withdraw(tx: &Tx<'_>, run: i64) -> OpResult<()> {
    run_sql(
        tx.conn,
        "UPDATE approval SET state=4 WHERE run=? AND state=0",
        [run],
    )?;
    Ok(())
}

const APPROVAL: &str = "a.approval, a.id, t.id, r.id, a.step, a.pos, a.shown, a.state, a.created, a.expires, a.detail, a.answered_by, a.answered_at, a.reason
 FROM approval a CROSS JOIN thread t ON t.thread=a.thread CROSS JOIN run r ON r.run=a.run";

struct ApprovalRow {
    row: i64,
    thread: String,
    detail: Option<String>,
    approval: Approval,
}

impl ApprovalRow {
    fn read(row: &Row<'_>, now: Millis) -> rusqlite::Result<Self> {
        let expires = row.get::<_, Option<i64>>(9)?.map(num);
        let by: Option<String> = row.get(11)?;
        let at: Option<i64> = row.get(12)?;
        let placeholder = ThreadId::new("-").map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, error.into())
        })?;
        Ok(Self {
            row: row.get(0)?,
            thread: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
            detail: row.get(10)?,
            approval: Approval {
                id: ApprovalId::from_bytes(row.get(1)?),
                thread: placeholder,
                call: CallRef {
                    run: RunId::from_bytes(row.get(3)?),
                    step: row.get(4)?,
                    position: row.get(5)?,
                },
                shown: row.get(6)?,
                state: rules::approvals::state_at(stored_state(row.get(7)?), expires, now),
                created: num(row.get(8)?),
                expires,
                detail: None,
                answered: by.zip(at.map(num)),
                reason: row.get(13)?,
            },
        })
    }

    fn approval(self) -> OpResult<Approval> {
        let id = self.approval.id;
        Ok(Approval {
            thread: ThreadId::new(&self.thread).map_err(|_| not_found("approval", &id))?,
            detail: json(self.detail, "the detail of an approval")?,
            ..self.approval
        })
    }
}

fn by_id(
    conn: &Connection,
    tenant: i64,
    id: ApprovalId,
    now: Millis,
) -> OpResult<Option<ApprovalRow>> {
    let sql = format!("SELECT {APPROVAL} WHERE a.tenant=? AND a.id=? AND t.stage=0");
    one(conn, &sql, (tenant, id.as_bytes()), |row| {
        ApprovalRow::read(row, now)
    })
}

/// Answer an approval.
pub(crate) fn answer(tx: &mut Tx<'_>, scope: &TenantScope, answer: &Answer) -> OpResult<Approval> {
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let found = by_id(tx.conn, tenant, answer.approval, tx.now)?;
    let found = found.ok_or_else(|| not_found("approval", &answer.approval))?;
    let known = rules::approvals::AskedApproval {
        state: found.approval.state,
        shown: &found.approval.shown,
        answered_by: found.approval.answered.as_ref().map(|(by, _)| by.as_str()),
        reason: found.approval.reason.as_deref(),
    };
    let Some(decided) = rules::approvals::answer(&known, answer)? else {
        return found.approval();
    };
    let sql =
        "UPDATE approval SET state=?, answered_by=?, answered_at=?, reason=? WHERE approval=?";
    let values = (
        code(decided),
        &answer.by,
        int(tx.now),
        &answer.reason,
        found.row,
    );
    run_sql(tx.conn, sql, values)?;
    let after = by_id(tx.conn, tenant, answer.approval, tx.now)?;
    after
        .ok_or_else(|| not_found("approval", &answer.approval))?
        .approval()
}

/// List approvals, newest first.
pub(crate) fn list(
    conn: &Connection,
    tenant: Option<i64>,
    filter: &ApprovalFilter,
    after: Option<PageToken>,
    limit: usize,
    now: Millis,
) -> OpResult<Listing<Approval>> {
    let empty = Listing {
        found: Vec::new(),
        next: None,
    };
    let thread = match &filter.thread {
        Some(id) => Some(shown_thread(conn, tenant, id)?.row),
        None => None,
    };
    let Some(tenant) = tenant else {
        return Ok(empty);
    };
    let which = match (thread, filter.waiting) {
        // The row of the thread stands for its tenant.
        (Some(_), _) => "a.thread=?2",
        (None, false) => "a.tenant=?1 AND ?2 IS NULL",
        (None, true) => "a.tenant=?1 AND ?2 IS NULL AND a.state=0",
    };
    let sql = format!(
        "SELECT {APPROVAL} WHERE {which} AND a.approval<?3 AND t.stage=0
         AND (NOT ?4 OR (a.state=0 AND (a.expires IS NULL OR a.expires>?5))) ORDER BY a.approval DESC LIMIT ?6"
    );
    let mut statement = prepare(conn, &sql)?;
    let from = after.map_or(i64::MAX, |token| token.row);
    let more = int(limit as u64).saturating_add(1);
    let rows = statement.query_map(
        (tenant, thread, from, filter.waiting, int(now), more),
        |row| ApprovalRow::read(row, now),
    )?;
    let mut rows: Vec<ApprovalRow> = rows.collect::<Result<_, _>>()?;
    let next = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| next).map(|row| PageToken {
        key: 0,
        row: row.row,
    });
    let found = rows
        .into_iter()
        .map(ApprovalRow::approval)
        .collect::<OpResult<_>>()?;
    Ok(Listing { found, next })
}
