//! Threads: handles on conversations in a store, and the journal of their runs.

mod cache;
mod compact;
mod discard;
pub(crate) mod external_epoch;
mod handle;
pub(crate) mod journal;
mod json;
pub(crate) mod live;
mod mailbox;
mod message_store;
mod opened_at;
mod owner;
mod policy;
mod publish;
mod record_view;
mod recorder;
mod redact;
mod scoped_store;
mod service_state;
mod tail;
mod threads;
mod vendor_copies;
mod view_settings;

pub use cache::HistoryCache;
pub use compact::CompactNowError;
pub use discard::DiscardedRun;
pub use handle::Thread;
pub(crate) use handle::{Leaving, Loaded, Shared, messages};
pub use journal::{Awaits, Pending, StopReason};
pub use json::ThreadJsonError;
pub(crate) use live::RunningRun;
pub use mailbox::Mailbox;
pub use message_store::{MessageStore, MessageStoreError};
pub(crate) use owner::ThreadSettings;
pub use owner::{Owner, Services};
pub use policy::{
    HistoryPolicy, OnBusy, OnInterrupt, OnLost, OnOpenCalls, OnOtherUpstream, OnPark, OnServiceId,
    Parity, Persistence,
};
pub use publish::PublishedRun;
pub use record_view::RecordView;
pub(crate) use recorder::{Closing, Recorder, is_refused_by_disk, write_unwritten};
pub use redact::{MessageName, Redacted};
pub(crate) use scoped_store::ScopedStore;
pub(crate) use service_state::{last_message, note_service};
pub use tail::{Tail, TailStart};
pub use threads::{OwnerError, Threads};
pub use vendor_copies::{CopyOutcome, Deleted, VendorCopy};
