//! The record: threads, runs and their journal.
//!
//! Durable is not the same as visible. Every step of a run is written as it happens; readers only
//! follow nodes, and a [`Mode`] decides when a node appears and the head moves: once at the end of
//! a run, or after each model call. So a run is atomic *and* recoverable.
//!
//! - A [`Store`] is opened by URL. [`Engine`] is the trait behind it: operations at the level of
//!   meaning, each one transaction that carries its own preconditions.
//! - Everything is read and written in a [`TenantScope`].
//! - [`Begin`], [`Step`], [`CallResult`], [`Publish`] are what a run writes; [`At`], [`Span`] and
//!   [`Cursor`] are how history is read.
//! - Positions count items along a branch and never change. Pages count messages.
//!
//! This crate knows no vendor and runs no model. It stores what it is told.

mod approval;
mod clock;
mod cursor;
mod digest;
mod engine;
mod engines;
mod error;
mod event;
mod filter;
mod fingerprint;
mod id;
mod ids;
mod import;
mod item;
mod mask;
mod open;
mod ops;
mod options;
mod placed_call;
mod private_file;
mod read;
mod rules;
mod run;
mod run_state;
mod scope;
mod state;
mod store;
mod thread;
pub mod transfer;
#[cfg(feature = "trials")]
pub mod trials;
#[cfg(not(feature = "trials"))]
mod trials;
mod upkeep;
mod varint;
mod wait_queue;
mod window;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use approval::{
    Answer, Approval, ApprovalFilter, ApprovalState, ArgumentsDigest, Decision, NewApproval,
    arguments_digest,
};
pub use clock::{Clock, ManualClock, Millis, SystemClock};
pub use cursor::Cursor;
pub use digest::call_key;
pub use engine::{Backups, Engine};
pub use engines::memory::Memory;
#[cfg(feature = "sqlite")]
pub use engines::sqlite;
pub use error::{DamageSite, Error, ErrorKind, Result, Unanswerable};
pub use event::{EventNo, Flush, StoredEvent};
pub use filter::MessageFilter;
pub use fingerprint::{Fingerprint, FingerprintDigest, FingerprintMatch, MATCHES_PER_DIGEST};
pub use id::{
    ApprovalId, BadId, CallRef, ItemNo, ItemRef, NodeId, NodeRef, OwnerId, Position, RunId,
    ThreadId, Version,
};
pub use ids::Ids;
pub use import::{Import, ImportItem, ImportNode, Orphan};
pub use item::{Entry, Item, ItemContent, ItemKind, NewItem, Redaction, entries};
pub use mask::{Mask, masks_of, visible};
pub use wait_queue::{AfterTurn, ClaimInTurn, Waiter, WaiterNo};

pub use ops::{
    Anchor, Append, Begin, Begun, CallResult, Claim, End, Ending, Expects, Fork, Idempotency,
    Leasing, PlannedCall, Publish, Published, QueueNo, Queued, Started, Step, StepNode, Stopped,
    Through,
};
pub use options::{Heartbeat, Options};
pub use placed_call::PlacedCall;
pub use private_file::create_private;
pub use read::{At, Increment, NodeRecord, Opened, Page, Span, TreeNode};
pub use run::{
    CallState, Effect, Execution, Journal, Lease, Mode, RemoteCall, Run, RunFilter, RunKind,
    StepRecord,
};
pub use run_state::RunState;
pub use scope::{Authority, InvalidTenant, Tenant, TenantScope};
pub use state::{ServiceId, State};
pub use store::Store;
pub use thread::{
    Alias, Listing, MovedBy, NewThread, PageToken, Thread, ThreadFilter, ThreadPatch, Tip,
};
pub use upkeep::{Checked, Damage, Durability, OnProgress, Profile, Progress, Purged, Setting};
