//! Running statements. All but a few go through here, so that tests can look at their plans, and at
//! what becomes of them without one of their conditions: for that the caller is known.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

use crate::engines::sqlite::op_error::OpResult;
use crate::trials;

/// A statement, prepared once for each connection.
#[cfg_attr(feature = "trials", track_caller)]
pub(crate) fn prepare<'c>(
    conn: &'c Connection,
    sql: &str,
) -> rusqlite::Result<CachedStatement<'c>> {
    let statement = conn.prepare_cached(&trials::statement(sql))?;
    #[cfg(test)]
    crate::engines::sqlite::tests::plans::note(sql, &statement);
    Ok(statement)
}

/// Read one row, if there is one.
#[cfg_attr(feature = "trials", track_caller)]
pub(crate) fn one<T, P: Params>(
    conn: &Connection,
    sql: &str,
    params: P,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> OpResult<Option<T>> {
    Ok(prepare(conn, sql)?.query_row(params, read).optional()?)
}

/// Run one statement; how many rows it changed.
#[cfg_attr(feature = "trials", track_caller)]
pub(crate) fn run_sql<P: Params>(conn: &Connection, sql: &str, params: P) -> OpResult<usize> {
    Ok(prepare(conn, sql)?.execute(params)?)
}
