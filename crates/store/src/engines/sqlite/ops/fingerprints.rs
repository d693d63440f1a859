//! Digests by which items are found.

use std::sync::LazyLock;

use rusqlite::params;

use crate::engines::sqlite::events::EventEnds;
use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::ops::read::Reading;
use crate::engines::sqlite::rows::find::node_at;
use crate::engines::sqlite::rows::sql::{prepare, run_sql};
use crate::engines::sqlite::rows::{RUN, RUN_TABLES, RunRow, num};
use crate::engines::sqlite::write::job::Tx;
use crate::{Fingerprint, FingerprintDigest, FingerprintMatch, MATCHES_PER_DIGEST, trials};

/// Store the digests of items of a run.
pub(crate) fn insert(
    tx: &Tx<'_>,
    tenant: i64,
    run: i64,
    fingerprints: &[Fingerprint],
) -> OpResult<()> {
    if fingerprints.is_empty() || trials::planted("fingerprints-lost") {
        return Ok(());
    }
    let mut statement = prepare(
        tx.conn,
        "INSERT INTO fingerprint(run, no, digest, tenant) VALUES(?,?,?,?)",
    )?;
    for fingerprint in fingerprints {
        statement.execute(params![run, fingerprint.item, fingerprint.digest, tenant])?;
    }
    Ok(())
}

/// Remove those of items of a run.
pub(crate) fn remove(
    conn: &rusqlite::Connection,
    run: i64,
    (first, last): (u32, u32),
) -> OpResult<()> {
    let sql = "DELETE FROM fingerprint WHERE run=? AND no BETWEEN ? AND ?";
    run_sql(conn, sql, (run, first, last))?;
    Ok(())
}

/// The items that are found by digests.
pub(crate) fn find(
    reading: &Reading<'_>,
    digests: &[FingerprintDigest],
) -> OpResult<Vec<FingerprintMatch>> {
    // 32: `HIDDEN`.
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {RUN}, f.no, t.head_tl, t.head_first FROM fingerprint f CROSS JOIN {}
             WHERE f.tenant=?1 AND f.digest=?2 AND t.stage=0 AND r.flags & 32=0 ORDER BY f.run DESC, f.no DESC LIMIT ?3",
            RUN_TABLES.replacen("run r CROSS", "run r ON r.run=f.run CROSS", 1)
        )
    });
    let Some(tenant) = reading.tenant else {
        return Ok(Vec::new());
    };
    let mut statement = prepare(reading.conn, &SQL)?;
    let mut ends = EventEnds::default();
    let mut found = Vec::new();
    for digest in digests {
        let mut rows = statement.query(params![tenant, digest, MATCHES_PER_DIGEST as i64])?;
        while let Some(row) = rows.next()? {
            let mut run = RunRow::read(row)?;
            let item = row.get(31)?;
            let head_tl: Option<i64> = row.get(32)?;
            let head_first: Option<i64> = row.get(33)?;
            let head = match head_tl.zip(head_first) {
                Some((tl, first)) => node_at(reading.conn, tl, num(first))?,
                None => None,
            };
            ends.set_next_event(reading.conn, &mut run)?;
            found.push(FingerprintMatch {
                digest: *digest,
                item,
                run: run.run(reading.now)?,
                head: head.map(|node| node.id),
            });
        }
    }
    Ok(found)
}
