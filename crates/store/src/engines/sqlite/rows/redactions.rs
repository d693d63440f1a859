//! Redactions as rows: who, when, and what is left of the message.

use rusqlite::Connection;
use throughline_model::json::RawJson;

use crate::digest;
use crate::engines::sqlite::op_error::{OpResult, corrupt};
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{int, num};
use crate::{ItemRef, Redaction, Tenant};

/// Store a redaction unless the item has one; whether it had none.
pub(crate) fn insert(
    conn: &Connection,
    tenant: &Tenant,
    run: i64,
    at: ItemRef,
    redaction: &Redaction,
) -> OpResult<bool> {
    let left = redaction.left.as_ref().map(|left| {
        let mut bytes = digest::redaction(tenant, at, redaction).to_vec();
        bytes.extend_from_slice(left.get().as_bytes());
        bytes
    });
    // The first redaction stays.
    let sql =
        "INSERT INTO redaction(run, no, by, at, rest) VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING";
    let values = (run, at.no, &redaction.by, int(redaction.at), left);
    Ok(run_sql(conn, sql, values)? == 1)
}

/// The redaction of an item, checked.
pub(crate) fn find(
    conn: &Connection,
    tenant: &Tenant,
    run: i64,
    at: ItemRef,
) -> OpResult<Option<Redaction>> {
    let sql = "SELECT by, at, rest FROM redaction WHERE run=? AND no=?";
    let found = one(conn, sql, (run, at.no), |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, Option<Vec<u8>>>(2)?,
        ))
    })?;
    let Some((by, time, stored)) = found else {
        return Ok(None);
    };
    let mut redaction = Redaction {
        by,
        at: num(time),
        left: None,
    };
    let Some(stored) = stored else {
        return Ok(Some(redaction));
    };
    let damaged = || corrupt(at, "what is left of it is not what was stored");
    let (sum, left) = stored.split_first_chunk::<16>().ok_or_else(damaged)?;
    let left = str::from_utf8(left).map_err(|_| damaged())?;
    redaction.left = Some(RawJson::new(left).map_err(|_| damaged())?);
    match digest::redaction(tenant, at, &redaction) == *sum {
        true => Ok(Some(redaction)),
        false => Err(damaged()),
    }
}
