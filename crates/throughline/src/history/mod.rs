//! What a thread holds, what is written of a run, and what a model is shown of it.

mod compacted;
mod condensed;
mod discard;
mod found;
mod home;
mod json;
pub(crate) mod live;
mod mailbox;
mod message_store;
mod owner;
mod policy;
mod provider;
mod recorder;
mod thread;
mod threads;
mod view;
mod views;
mod wishes;
mod writing;

pub use compacted::Compaction;
pub(crate) use compacted::{Asked as AskedOf, Between, Compacted, Decided, number};
pub use condensed::{Condensed, condense};
pub use discard::DiscardedRun;
pub(crate) use home::Home;
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
pub use provider::{
    Additions, ContextProvider, Keep, MessageFilter, Need, ProviderContext, ProviderError,
    ProviderScope, ProviderSpec, ProviderState, StateError, Told,
};
pub(crate) use recorder::{Closing, Recorder, is_refused_by_disk, write_unwritten};
pub use thread::Thread;
pub(crate) use thread::{Leaving, Loaded, Shared, messages};
pub use threads::{Deleted, OwnerError, Threads, VendorCopy};
pub use view::{MOST_LOSSES, Rendering, View};
pub use views::Views;
pub(crate) use writing::{Hand, Writing, Wrote};
