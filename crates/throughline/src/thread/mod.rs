//! Threads: handles on conversations that a store keeps, and what is written of their runs.

mod cache;
mod discard;
mod found;
mod handle;
mod home;
pub(crate) mod journal;
mod json;
pub(crate) mod live;
mod mailbox;
mod message_store;
mod owner;
mod policy;
mod recorder;
mod threads;
mod wishes;

pub use cache::HistoryCache;
pub use discard::DiscardedRun;
pub use handle::Thread;
pub(crate) use handle::{Leaving, Loaded, Shared, messages};
pub(crate) use home::ScopedStore;
pub use journal::{Awaits, Pending, StopReason};
pub use json::ThreadJsonError;
pub(crate) use live::AtWork;
pub use mailbox::Mailbox;
pub use message_store::{MessageStore, MessageStoreError};
pub use owner::Owner;
pub(crate) use owner::ThreadSettings;
pub use policy::{
    HistoryPolicy, OnBusy, OnInterrupt, OnLost, OnOpenCalls, OnPark, OnServiceId, Parity,
    Persistence,
};
pub(crate) use recorder::{Closing, Recorder, is_refused_by_disk, write_unwritten};
pub use threads::{Deleted, OwnerError, Threads, VendorCopy};
