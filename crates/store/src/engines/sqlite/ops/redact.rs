//! Removing what an item says, and what was derived from it.

use rusqlite::Connection;
use throughline_model::json::RawJson;

use crate::digest::{self, Digest};
use crate::engines::sqlite::events;
use crate::engines::sqlite::op_error::{OpError, OpResult, corrupt};
use crate::engines::sqlite::ops::begin::{keep_request, stored_request};
use crate::engines::sqlite::rows::branch::run_items;
use crate::engines::sqlite::rows::find::{node_before, node_with_item};
use crate::engines::sqlite::rows::items::{Original, original};
use crate::engines::sqlite::rows::sql::{one, prepare, run_sql};
use crate::engines::sqlite::rows::{NodeRow, int, json, redactions};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::{Error, ItemRef, Redaction, RunId, State, TenantScope, rules};

/// Remove the body of an item wherever it is said. What may have its words as well goes in the same
/// transaction, so that no reader finds the one without the other.
pub(crate) fn redact(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    item: ItemRef,
    by: &str,
) -> OpResult<()> {
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let first = original(tx.conn, tenant, item)?;
    let redaction = Redaction {
        by: by.to_owned(),
        at: tx.now,
        left: left(tx.conn, scope, &first)?,
    };
    if !redactions::insert(tx.conn, scope.tenant(), first.run, first.at, &redaction)? {
        return Ok(());
    }
    let sql = "UPDATE item SET body=NULL WHERE run=? AND no=?";
    run_sql(tx.conn, sql, (first.run, first.at.no))?;
    redact_run(tx, tenant, first.run)?;
    forget_derived(tx, scope, &first)?;
    let sql = "UPDATE tenant SET redactions=redactions+1 WHERE tenant=?";
    run_sql(tx.conn, sql, [tenant])?;
    tx.after_commit(CacheUpdate::Erased);
    Ok(())
}

/// What is left of a message. Nothing of one that is damaged: it is removed all the same.
fn left(conn: &Connection, scope: &TenantScope, first: &Original) -> OpResult<Option<RawJson>> {
    let (run, no) = ((first.run, first.at.run), first.at.no);
    let items = match run_items(conn, scope.tenant(), run, no, no, 1) {
        Ok(items) => items,
        Err(OpError::Refused(Error::Corrupt { .. }) | OpError::Broken(Error::Corrupt { .. })) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let message = items.first().and_then(|item| item.message().ok());
    let left = message.map(|message| rules::redact::left(&message).to_json());
    json(left, "what is left of an item")
}

/// What else of a run may have the words of one of its items.
fn redact_run(tx: &mut Tx<'_>, tenant: i64, run: i64) -> OpResult<()> {
    events::redact(tx, run)?;
    run_sql(tx.conn, "DELETE FROM remote_call WHERE run=?", [run])?;
    let sql = "UPDATE approval SET detail=NULL, reason=NULL WHERE run=?";
    run_sql(tx.conn, sql, [run])?;
    let sql = "SELECT q.request, q.body FROM run r CROSS JOIN request q ON q.request=r.request WHERE r.run=?";
    let request = one(tx.conn, sql, [run], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let Some((before, body)) = request else {
        return Ok(());
    };
    let body = json(Some(body), "the request of a run")?;
    let Some(left) = body.as_ref().and_then(rules::redact::request) else {
        return Ok(());
    };
    let digest = digest::request(left.get());
    match stored_request(tx, tenant, digest)? {
        Some(request) => {
            let sql = "UPDATE run SET request=? WHERE run=?";
            run_sql(tx.conn, sql, (request, run))?;
        }
        None => keep_request(tx, tenant, run, digest, left.get())?,
    }
    let sql = "DELETE FROM request WHERE request=?1 AND NOT EXISTS(SELECT 1 FROM run WHERE run.request=?1)";
    run_sql(tx.conn, sql, [before])?;
    Ok(())
}

/// Take out of the states on all branches what was derived from an item, wherever it is said.
fn forget_derived(tx: &Tx<'_>, scope: &TenantScope, first: &Original) -> OpResult<()> {
    let sql = "SELECT run, no FROM item WHERE run=?1 AND no=?2
      UNION ALL SELECT a.run, a.no FROM item o CROSS JOIN item a ON a.again=o.item WHERE o.run=?1 AND o.no=?2";
    let mut said: Vec<(i64, u32)> = Vec::new();
    {
        let mut statement = prepare(tx.conn, sql)?;
        let key = (first.run, first.at.no);
        for row in statement.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))? {
            said.push(row?);
        }
    }
    for (run, no) in said {
        if let Some(node) = node_with_item(tx.conn, run, no)? {
            let before = node_before(tx.conn, &tx.shared.caches, &node)?;
            for state in states_after(tx.conn, &node, before.as_ref())? {
                forget_derived_in(tx, scope, state)?;
            }
        }
    }
    Ok(())
}

/// The states of a node and of everything that continues it, by the run and the step that set them.
/// That of the node before knows nothing of what the node says.
fn states_after(
    conn: &Connection,
    node: &NodeRow,
    before: Option<&NodeRow>,
) -> OpResult<Vec<(i64, u32)>> {
    // `timeline_parent` finds what hangs on a timeline, `node_at` the nodes of each.
    let sql = "WITH RECURSIVE later(tl, after) AS (SELECT ?1, ?2
        UNION ALL SELECT l.tl, 0 FROM later CROSS JOIN timeline l ON l.parent_tl=later.tl AND l.fork>=later.after)
      SELECT DISTINCT n.state_run, n.state_step FROM later CROSS JOIN node n ON n.tl=later.tl AND n.first>=later.after
      WHERE n.state_run IS NOT NULL";
    let known = before.and_then(|before| before.state);
    let known = known.map(|state| (state.run, state.step));
    let mut statement = prepare(conn, sql)?;
    let rows = statement.query_map((node.tl, int(node.first)), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let mut states = Vec::new();
    for row in rows {
        let state = row?;
        if Some(state) != known {
            states.push(state);
        }
    }
    Ok(states)
}

fn forget_derived_in(tx: &Tx<'_>, scope: &TenantScope, (run, step): (i64, u32)) -> OpResult<()> {
    let sql = "SELECT s.body, s.digest, s.rest, r.id FROM state s CROSS JOIN run r ON r.run=s.run WHERE s.run=? AND s.step=?";
    let found = one(tx.conn, sql, (run, step), |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, Digest>(1)?,
            row.get::<_, Option<Digest>>(2)?,
            RunId::from_bytes(row.get(3)?),
        ))
    })?;
    let Some((body, published, left, id)) = found else {
        return Ok(());
    };
    let place = || format!("the state of step {step} of {id}");
    if digest::state(scope.tenant(), id, step, &body) != left.unwrap_or(published) {
        return Err(corrupt(place(), "its digest does not fit its bytes"));
    }
    let state = State::from_json(&body).map_err(|error| corrupt(place(), error.to_string()))?;
    let left = state.clone().without_derived();
    if left == state {
        return Ok(());
    }
    let left = left.to_json();
    let digest = digest::state(scope.tenant(), id, step, &left);
    let sql = "UPDATE state SET body=?, rest=? WHERE run=? AND step=?";
    run_sql(tx.conn, sql, (left, digest, run, step))?;
    Ok(())
}
