//! How data is laid out: tables for each tenant, rows that know each other by number.
//!
//! Nodes lie in timelines, sorted by first position, and items in their run, by number. Reading a
//! window is a walk over timelines; a fork is one row; an append touches what is new.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use throughline_model::json::RawJson;
use tokio::sync::watch;

use crate::cursor::Seal;
use crate::digest::Digest;
use crate::rules::lease::WorkedTime;
use crate::{
    Alias, ApprovalId, ApprovalState, ArgumentsDigest, CallRef, CallState, Effect, Error,
    Fingerprint, FingerprintDigest, Flush, Idempotency, ItemContent, ItemNo, ItemRef, Millis, Mode,
    MovedBy, NodeId, OwnerId, Position, Published, Queued, Redaction, RemoteCall, RunId, RunKind,
    RunState, State, Tenant, TenantScope, ThreadId, Version,
};

use super::lease::Owner;
use super::wait_queue::WaiterRow;

/// The number of a row. Numbers grow, so they are an order of making, too.
pub(super) type Row = i64;

/// Everything that is stored.
pub(super) struct Database {
    pub(super) tenants: BTreeMap<Tenant, TenantTables>,
    pub(super) shared: Shared,
}

/// What does not belong to one tenant.
pub(super) struct Shared {
    pub(super) owners: HashMap<OwnerId, Owner>,
    /// The runs that have an owner, oldest first.
    pub(super) running: BTreeMap<Row, (TenantScope, RunId)>,
    pub(super) seal: Seal,
    pub(super) last_row: Row,
}

impl Shared {
    pub(super) fn row(&mut self) -> Row {
        self.last_row += 1;
        self.last_row
    }
}

/// The data of one tenant.
pub(super) struct TenantTables {
    pub(super) scope: TenantScope,
    pub(super) tenant: Tenant,
    pub(super) threads: HashMap<Row, ThreadRow>,
    /// Threads by id. A deleted one is no longer here, one that is being imported is.
    pub(super) names: HashMap<ThreadId, Row>,
    pub(super) aliases: HashMap<Alias, Row>,
    /// Visible threads by last touch.
    pub(super) recent: BTreeSet<(Millis, Row)>,
    /// Visible threads by the end of their time.
    pub(super) expiring: BTreeSet<(Millis, Row)>,
    /// Threads that are being imported, by the time at which that began.
    pub(super) importing: BTreeSet<(Millis, Row)>,
    pub(super) timelines: HashMap<Row, Timeline>,
    pub(super) runs: HashMap<RunId, RunRow>,
    /// Runs of visible threads.
    pub(super) run_order: BTreeMap<Row, RunId>,
    pub(super) keys: HashMap<String, RunId>,
    pub(super) approvals: BTreeMap<Row, ApprovalRow>,
    pub(super) approval_rows: HashMap<ApprovalId, Row>,
    /// Requests of runs, each content once.
    pub(super) requests: HashMap<Digest, Arc<RawJson>>,
    /// How many items were redacted.
    pub(super) redactions: u64,
    /// Items by the digests that find them, and by the rows of their runs.
    pub(super) fingerprints: BTreeSet<FingerprintRow>,
    /// What waits to be swept away.
    pub(super) sweep: VecDeque<SweepUnit>,
}

/// A digest that finds an item; in the order in which they are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FingerprintRow {
    pub(super) digest: FingerprintDigest,
    pub(super) run_row: Row,
    pub(super) item: ItemNo,
    pub(super) run: RunId,
}

/// Something that may have become free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SweepUnit {
    Thread(Row),
    Timeline(Row),
    Run(RunId),
}

/// Whether a thread can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Since when it is being imported.
    Importing(Millis),
    Visible,
    Deleted,
}

pub(super) struct ThreadRow {
    pub(super) row: Row,
    pub(super) id: ThreadId,
    pub(super) stage: Stage,
    pub(super) aliases: BTreeSet<Alias>,
    pub(super) title: Option<String>,
    pub(super) meta: Option<RawJson>,
    pub(super) settings: Option<RawJson>,
    pub(super) moved_by: MovedBy,
    pub(super) keep: Option<Millis>,
    pub(super) head: Option<NodePlace>,
    pub(super) version: Version,
    pub(super) created: Millis,
    pub(super) touched: Millis,
    /// The leased run that is not settled.
    pub(super) unsettled: Option<RunId>,
    pub(super) queue: VecDeque<Queued>,
    pub(super) last_queued: u64,
    /// Runs that wait until the thread is free, first come first.
    pub(super) waiters: Vec<WaiterRow>,
    pub(super) timelines: BTreeSet<Row>,
    pub(super) runs: BTreeMap<Row, RunId>,
    /// For those who wait for a change. Dropping it tells them that the thread is gone.
    pub(super) changes: Option<watch::Sender<Version>>,
}

/// The place of a node: its timeline and its first position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodePlace {
    pub(super) timeline: Row,
    pub(super) first: Position,
}

pub(super) struct Timeline {
    /// The thread that owns it.
    pub(super) thread: Row,
    /// The node that its first node continues.
    pub(super) parent: Option<NodePlace>,
    /// The last position of that node.
    pub(super) fork: Position,
    /// By first position, without holes.
    pub(super) nodes: Vec<Node>,
    /// Which nodes are the end of something that lives (a head, a run's base, a parent), by first
    /// position, and how often. Nodes of a deleted thread stay up to the last of them.
    pub(super) pins: BTreeMap<Position, u32>,
    /// Its thread is gone and nothing needs it: it no longer pins its parent.
    pub(super) released: bool,
}

pub(super) struct Node {
    /// Grows from parent to child.
    pub(super) row: Row,
    pub(super) id: NodeId,
    pub(super) first: Position,
    pub(super) last: Position,
    pub(super) first_item: ItemNo,
    pub(super) open: bool,
    pub(super) tokens: u64,
    pub(super) state: Option<Arc<StateRow>>,
    pub(super) created: Millis,
    pub(super) digest: Digest,
    /// Whether its digest was compared since it was written.
    pub(super) checked: Cell<bool>,
}

/// A state, and the node that set it.
pub(super) struct StateRow {
    pub(super) at: NodeId,
    pub(super) state: State,
    /// Of the state as it was published, which digests of nodes cover.
    pub(super) digest: Digest,
    /// Of what is left of it, if something that was derived from a redacted message was taken out.
    pub(super) left: Option<Digest>,
}

pub(super) struct RunRow {
    pub(super) row: Row,
    pub(super) id: RunId,
    pub(super) thread: Row,
    pub(super) kind: RunKind,
    pub(super) mode: Mode,
    /// As stored: never interrupted.
    pub(super) state: RunState,
    pub(super) leased: bool,
    pub(super) epoch: u32,
    pub(super) attempt: u32,
    pub(super) owner: Option<OwnerId>,
    pub(super) base: Option<NodePlace>,
    /// The name of the base, which outlives it.
    pub(super) base_id: Option<NodeId>,
    /// Whether it still pins its base.
    pub(super) pinned: bool,
    pub(super) version: Version,
    pub(super) next_step: u32,
    pub(super) next_event: u64,
    pub(super) nodes: Vec<RunNode>,
    pub(super) cancelling: bool,
    pub(super) hidden: bool,
    pub(super) delivered: bool,
    pub(super) created: Millis,
    pub(super) progress: Millis,
    pub(super) worked: WorkedTime,
    pub(super) key: Option<Idempotency>,
    pub(super) note: Option<RawJson>,
    pub(super) request: Option<Arc<RawJson>>,
    /// Digests by which its items are found; each is in the table too.
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) inputs: u32,
    /// Item 1 first; `None` where a place is kept.
    pub(super) items: Vec<Option<ItemRow>>,
    pub(super) steps: Vec<StepRow>,
    /// By step and position.
    pub(super) calls: Vec<CallRow>,
    /// Calls without a stored result.
    pub(super) unanswered: u32,
    /// The remote call that was journaled last; out of date once its step is stored.
    pub(super) remote: Option<RemoteCallRow>,
    pub(super) flushes: Vec<Flush>,
    /// What its last publication was answered with.
    pub(super) answer: Option<Published>,
}

/// A node of a run.
#[derive(Clone, Copy)]
pub(super) struct RunNode {
    pub(super) step: u32,
    pub(super) at: NodePlace,
    pub(super) first_item: ItemNo,
    pub(super) last_item: ItemNo,
}

pub(super) struct StepRow {
    pub(super) first: ItemNo,
    pub(super) items: u32,
    pub(super) note: Option<RawJson>,
    pub(super) node: Option<NodeId>,
    /// Says whether another step is the same.
    pub(super) content: Digest,
    pub(super) published: Option<Published>,
}

pub(super) struct CallRow {
    pub(super) step: u32,
    pub(super) position: u32,
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) effect: Effect,
    pub(super) state: CallState,
    /// The epoch of its intent.
    pub(super) intent: u32,
    pub(super) result: ItemNo,
    pub(super) approval: Option<ApprovalId>,
    pub(super) taken_by: Option<RunId>,
    pub(super) ends: bool,
}

/// A remote call and its digest.
pub(super) struct RemoteCallRow {
    pub(super) call: RemoteCall,
    pub(super) digest: Digest,
}

pub(super) struct ItemRow {
    pub(super) what: StoredContent,
    pub(super) digest: Digest,
    /// How many items say it again.
    pub(super) refs: u32,
}

/// What an item holds.
pub(super) enum StoredContent {
    Present(ItemContent),
    Repeat(ItemRef),
    Gap,
    /// What is left, with an empty body.
    Redacted(ItemContent, Redaction),
}

pub(super) struct ApprovalRow {
    pub(super) id: ApprovalId,
    pub(super) thread: Row,
    pub(super) call: CallRef,
    pub(super) shown: ArgumentsDigest,
    /// As stored: never expired.
    pub(super) state: ApprovalState,
    pub(super) created: Millis,
    pub(super) expires: Option<Millis>,
    pub(super) detail: Option<RawJson>,
    pub(super) answered: Option<(String, Millis)>,
    pub(super) reason: Option<String>,
}

/// Something is not where another row says it is.
pub(super) fn missing_row(place: impl std::fmt::Display) -> Error {
    Error::corrupt(place.to_string(), "it is not there")
}
