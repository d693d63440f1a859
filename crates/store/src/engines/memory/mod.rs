//! The engine in memory: the reference for all others.
//!
//! Everything is behind one lock. An operation takes it, looks at all its preconditions in the
//! order of `docs/record.md`, and only then writes, so that a refusal leaves nothing behind. No
//! lock is held across an await.
//!
//! - `schema` says how data is laid out, `lease` who is alive.
//! - `append` begins runs and adds items, `journal` writes what happens in a run, `publish` makes
//!   nodes.
//! - `read` reads branches, `inspect` everything else.
//!
//! What is absent on purpose: files, and any limit on how much is kept.

mod append;
mod approvals;
mod check;
mod delete;
mod engine;
mod fingerprints;
mod import;
mod inspect;
mod items;
mod journal;
mod lease;
mod newest_runs;
mod publish;
mod read;
mod redact;
mod schema;
mod tenant_tables;
#[cfg(test)]
mod tests;
mod threads;
mod wait_queue;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::cursor::Seal;
use crate::{Error, Heartbeat, Ids, Millis, Options, OwnerId, Result, TenantScope};

use lease::Owner;
use schema::{Database, Shared, TenantTables};

/// The most that is read at once, whatever was asked for.
const MAX_READ: usize = 100_000;

/// A store in memory. It is gone with the process.
///
/// Every handle counts as a process of its own; see [`Memory::handle`].
pub struct Memory {
    data: Arc<Mutex<Database>>,
    ids: Arc<Ids>,
    options: Options,
    owner: OwnerId,
    /// While it is there, a process with automatic heartbeats is alive.
    token: Mutex<Option<Arc<()>>>,
    closed: watch::Sender<bool>,
}

/// One operation at work: a tenant's data, who asks, and when.
struct Transaction<'a> {
    tables: &'a mut TenantTables,
    shared: &'a mut Shared,
    me: OwnerId,
    now: Millis,
    /// Until when a heartbeat of now counts.
    until: Millis,
}

impl Memory {
    /// An empty store.
    pub fn new(options: Options, ids: &Arc<Ids>) -> Self {
        let mut key = [0; 32];
        // With a key that can be guessed, clients could forge cursors; there is nothing to fall back on.
        getrandom::fill(&mut key).expect("the operating system gives random bytes");
        let data = Database {
            tenants: BTreeMap::new(),
            shared: Shared {
                owners: HashMap::new(),
                running: BTreeMap::new(),
                seal: Seal(key),
                last_row: 0,
            },
        };
        Self::on(Arc::new(Mutex::new(data)), options, Arc::clone(ids))
    }

    /// Another handle on the same data, as another process would have it: with leases of its own.
    pub fn handle(&self, options: Options) -> Self {
        Self::on(Arc::clone(&self.data), options, Arc::clone(&self.ids))
    }

    fn on(data: Arc<Mutex<Database>>, options: Options, ids: Arc<Ids>) -> Self {
        let token = Arc::new(());
        let memory = Self {
            owner: ids.owner(),
            data,
            ids,
            token: Mutex::new(Some(Arc::clone(&token))),
            closed: watch::Sender::new(false),
            options,
        };
        let token = match memory.options.heartbeat {
            Heartbeat::Automatic => Some(Arc::downgrade(&token)),
            Heartbeat::Manual => None,
        };
        let owner = Owner { until: 0, token };
        memory.lock().shared.owners.insert(memory.owner, owner);
        memory
    }

    fn lock(&self) -> MutexGuard<'_, Database> {
        // A panicking operation had not begun to write: operations check first.
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_for_work(&self) -> Result<MutexGuard<'_, Database>> {
        if *self.closed.borrow() {
            return Err(Error::Closed);
        }
        Ok(self.lock())
    }

    /// Do something with the data of a tenant.
    fn transaction<T>(
        &self,
        scope: &TenantScope,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut data = self.open_for_work()?;
        self.transaction_of(&mut data, scope, work)
    }

    fn transaction_of<T>(
        &self,
        data: &mut Database,
        scope: &TenantScope,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let tables = data
            .tenants
            .entry(scope.tenant().clone())
            .or_insert_with(|| TenantTables::new(scope));
        let now = self.options.clock.now();
        let lease = u64::try_from(self.options.lease.as_millis()).unwrap_or(u64::MAX);
        work(&mut Transaction {
            tables,
            shared: &mut data.shared,
            me: self.owner,
            now,
            until: now.saturating_add(lease),
        })
    }
}
