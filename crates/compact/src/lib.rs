//! Tool history as a model is shown it: groups, digests, frozen epochs.
//!
//! The record of a conversation is never changed. What a model is shown is a *view*: a function of
//! the record and of the current [`Epoch`]. Between epochs a view only grows by the messages that
//! are pushed, so that every request starts with the previous one, byte for byte, and vendors'
//! prompt caches keep hitting. An epoch replaces older groups by digests: one line for each call,
//! with the number of the message that has all of it.
//!
//! Everything here is a pure function of values: no clock, no randomness, no I/O, no vendor. The
//! dependencies enforce that. Rendering a view for a vendor is the business of `throughline-wire`,
//! storing an epoch that of the store.
//!
//! ```
//! use throughline_compact::{Call, Planned, Policy, ToolHistory};
//! use throughline_model::Message;
//!
//! let mut history = ToolHistory::new(Policy::with_budget(32_000));
//! history.push(1, Message::user("fix the failing test"));
//! match history.plan(&Call::default())? {
//!     Planned::Unchanged(report) => assert_eq!(report.groups_digested, 0),
//!     Planned::Epoch(epoch, _) => assert!(history.install(epoch)),
//! }
//! assert_eq!(history.view().len(), 1);
//! # Ok::<(), throughline_compact::BudgetUnreachable>(())
//! ```

pub mod tokens;

mod arguments;
mod atoms;
mod category;
mod epoch;
mod facts;
mod form;
mod group;
mod history;
mod kept;
mod narrate;
mod narrated;
mod narrative;
mod pack;
mod plan;
mod policy;
mod recall;
mod record;
mod report;
mod shorten;
mod text;
mod trials;
mod view;
mod wishes;

pub use category::{Annotations, Category};
pub use epoch::{Block, DIGEST_VERSION, EPOCH_VERSION, Epoch, Shortened};
pub use facts::{Called, Digest};
pub use group::{Group, GroupKind, Member};
pub use history::ToolHistory;
pub use kept::{Held, KeptEpoch, places};
pub use narrate::{Asking, Part};
pub use narrated::{Narrated, Refused};
pub use narrative::Narrative;
pub use plan::Planned;
pub use policy::{Call, Caps, Policy, Scale};
pub use report::{BudgetUnreachable, Kept, Report, Stayed, Trigger};
pub use wishes::Wishes;
