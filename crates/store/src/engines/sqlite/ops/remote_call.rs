//! Remote calls: the handle of a model call, stored before its answer is awaited.

use rusqlite::Connection;

use crate::digest::{self, Digest};
use crate::engines::sqlite::op_error::{OpError, OpResult};
use crate::engines::sqlite::ops::lease::{changed_under_lock, run_of_lease};
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{RunRow, int, json};
use crate::engines::sqlite::write::job::Tx;
use crate::{Lease, RemoteCall, Tenant, TenantScope, rules};

/// Record a remote call in place of the one before.
pub(crate) fn store(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    call: &RemoteCall,
) -> OpResult<()> {
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let sql = "UPDATE run SET progress=?1 WHERE tenant=?2 AND id=?3 AND epoch=?4 AND state=1 AND next_step=?5 RETURNING run";
    let id = lease.run.as_bytes();
    let values = (int(tx.now), tenant, id, lease.epoch, call.step);
    let run: Option<i64> = one(tx.conn, sql, values, |row| row.get(0))?;
    let Some(run) = run else {
        return Err(refusal(tx, scope, lease, call));
    };
    let sql = "INSERT INTO remote_call(run, step, handle, digest) VALUES(?,?,?,?)
      ON CONFLICT(run) DO UPDATE SET step=excluded.step, handle=excluded.handle, digest=excluded.digest";
    let handle = call.handle.get();
    let digest = digest::remote_call(scope.tenant(), lease.run, call.step, handle);
    run_sql(tx.conn, sql, (run, call.step, handle, digest))?;
    Ok(())
}

/// Why a remote call cannot be stored.
fn refusal(tx: &mut Tx<'_>, scope: &TenantScope, lease: Lease, call: &RemoteCall) -> OpError {
    let row = match run_of_lease(tx, scope, lease) {
        Ok(row) => row,
        Err(error) => return error,
    };
    match rules::remote_call::check(row.id, row.state, row.next_step, call) {
        Ok(()) => changed_under_lock(&row),
        Err(error) => error.into(),
    }
}

/// The remote call of a run that is under way.
pub(crate) fn current(
    conn: &Connection,
    tenant: &Tenant,
    run: &RunRow,
) -> OpResult<Option<RemoteCall>> {
    let sql = "SELECT step, handle, digest FROM remote_call WHERE run=?";
    let stored = one(conn, sql, [run.row], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    let stored = stored.map_err(|error| error.of(format!("the remote call of {}", run.id)))?;
    let Some((step, handle, digest)): Option<(u32, String, Digest)> = stored else {
        return Ok(None);
    };
    // Before the step is compared: a changed number must not hide the handle.
    rules::damage::remote_call(tenant, run.id, (step, &handle), digest)?;
    let handle = json(Some(handle), "the handle of a remote call")?;
    let call = handle.map(|handle| RemoteCall { step, handle });
    Ok(call.and_then(|call| rules::remote_call::current(call, run.next_step)))
}
