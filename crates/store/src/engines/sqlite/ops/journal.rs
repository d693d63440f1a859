//! Looking into runs: what is journaled of them, their events, their nodes as exports write them.

use rusqlite::Connection;

use crate::digest::call_key;
use crate::engines::sqlite::events;
use crate::engines::sqlite::op_error::{OpResult, corrupt, not_found};
use crate::engines::sqlite::ops::calls::ENDS;
use crate::engines::sqlite::ops::read::Reading;
use crate::engines::sqlite::ops::remote_call;
use crate::engines::sqlite::rows::branch::{journal_entries, run_items};
use crate::engines::sqlite::rows::find::{any_run, is_reached, node_of, shown_run};
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::rows::{RunRow, flag, json};
use crate::{
    ApprovalId, CallRef, CallState, Effect, EventNo, Execution, Flush, ItemNo, Journal, NodeId,
    NodeRecord, RunId, StepRecord,
};

/// As many as there are.
const ALL: usize = usize::MAX >> 1;

/// Everything that is journaled of a run.
pub(crate) fn journal(reading: &Reading<'_>, id: RunId) -> OpResult<Journal> {
    let conn = reading.conn;
    let mut row = shown_run(conn, reading.tenant, id)?;
    events::EventEnds::default().set_next_event(conn, &mut row)?;
    journal_of(reading, &row).map_err(|error| row.named(error))
}

fn journal_of(reading: &Reading<'_>, row: &RunRow) -> OpResult<Journal> {
    let conn = reading.conn;
    let request = match row.request {
        Some(request) => {
            let sql = "SELECT body FROM request WHERE request=?";
            json(
                one(conn, sql, [request], |row| row.get(0))?,
                "the request of a run",
            )?
        }
        None => None,
    };
    let items = run_items(
        conn,
        reading.scope.tenant(),
        (row.row, row.id),
        1,
        u32::MAX,
        ALL,
    )?;
    Ok(Journal {
        run: row.run(reading.now)?,
        request,
        inputs: row.inputs,
        entries: journal_entries(&items)?,
        steps: steps(conn, row)?,
        calls: calls(reading, row)?,
        remote: remote_call::current(conn, reading.scope.tenant(), row)?,
    })
}

fn steps(conn: &Connection, run: &RunRow) -> OpResult<Vec<StepRecord>> {
    let mut statement = prepare(
        conn,
        "SELECT no, first, items, tl, note FROM step WHERE run=? ORDER BY no",
    )?;
    let rows = statement.query_map([run.row], |row| {
        Ok((
            row.get::<_, u32>(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get::<_, Option<i64>>(3)?,
            row.get::<_, Option<String>>(4)?,
        ))
    })?;
    let mut steps = Vec::new();
    for row in rows {
        let (no, first, items, tl, note) = row?;
        steps.push(StepRecord {
            no,
            first,
            items,
            node: tl.map(|_| NodeId {
                run: run.id,
                step: no,
            }),
            note: json(note, "the note of a step")?,
        });
    }
    Ok(steps)
}

fn calls(reading: &Reading<'_>, run: &RunRow) -> OpResult<Vec<Execution>> {
    let mut statement = prepare(
        reading.conn,
        "SELECT step, pos, state, effect, result_no, call, tool, approval, taken_by FROM call WHERE run=? ORDER BY step, pos",
    )?;
    let rows = statement.query_map([run.row], |row| {
        let at = CallRef {
            run: run.id,
            step: row.get(0)?,
            position: row.get(1)?,
        };
        let state: u8 = row.get(2)?;
        let effect: u8 = row.get(3)?;
        let call: String = row.get(5)?;
        let execution = Execution {
            at,
            key: call_key(reading.scope.tenant(), run.id, at.step, at.position, &call),
            call,
            tool: row.get(6)?,
            effect: Effect::of(effect & !ENDS),
            state: CallState::Planned,
            result: row.get(4)?,
            approval: row.get::<_, Option<_>>(7)?.map(ApprovalId::from_bytes),
            taken_by: row.get::<_, Option<_>>(8)?.map(RunId::from_bytes),
            ends: effect & ENDS != 0,
        };
        Ok((state, execution))
    })?;
    let mut calls = Vec::new();
    for row in rows {
        let (state, mut execution) = row?;
        let place = || {
            format!(
                "call {} of step {} of {}",
                execution.at.position, execution.at.step, run.id
            )
        };
        execution.state =
            CallState::of(state).ok_or_else(|| corrupt(place(), "it is in no known state"))?;
        calls.push(execution);
    }
    Ok(calls)
}

/// Events of a run, in whole flushes.
pub(crate) fn events(
    reading: &Reading<'_>,
    id: RunId,
    from: EventNo,
    limit: usize,
) -> OpResult<Vec<Flush>> {
    let row = shown_run(reading.conn, reading.tenant, id)?;
    events::events(reading.conn, &row, from, limit).map_err(|error| row.named(error))
}

/// A node as it is stored.
pub(crate) fn node(
    reading: &Reading<'_>,
    id: NodeId,
    from: ItemNo,
    limit: usize,
) -> OpResult<NodeRecord> {
    let conn = reading.conn;
    let run = match reading.tenant {
        Some(tenant) => any_run(conn, tenant, id.run)?,
        None => None,
    };
    let run = run.ok_or_else(|| not_found("node", &id))?;
    let node = match run.stage {
        // A thread that is being imported is not visible.
        1 => None,
        _ => node_of(conn, &run, id.step)?,
    };
    let node = node.ok_or_else(|| not_found("node", &id))?;
    if !is_reached(conn, &node)? {
        return Err(not_found("node", &id));
    }
    let from = from.max(node.item_lo);
    let to = node.item_hi();
    let tenant = reading.scope.tenant();
    let items = match from <= to {
        true => run_items(conn, tenant, (run.row, run.id), from, to, limit)
            .map_err(|error| node.located(error))?,
        false => Vec::new(),
    };
    let more = items.last().map_or(from <= to, |item| item.at.no < to);
    let state = match node.state {
        Some(state) if state.run == run.row && state.step == id.step => Some(reading.state(state)?),
        _ => None,
    };
    Ok(NodeRecord {
        kind: run.kind(),
        mode: run.mode(),
        run: run.seen(reading.now),
        begun: run.created,
        note: json(run.note.clone(), "the note of a run")?,
        hidden: run.has(flag::HIDDEN),
        state,
        items,
        more,
    })
}
