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
mod category;
mod digest;
mod epoch;
mod facts;
mod group;
mod heap_size;
mod history;
mod names;
mod narrate;
mod narrative;
mod narrative_outcome;
mod plan;
mod policy;
mod read_back;
mod recall;
mod record;
mod report;
mod report_json;
mod result_text;
mod shorten;
mod stored_epoch;
mod text;
mod trials;
mod view;
mod view_settings;

pub use category::{Annotations, Category};
pub use epoch::{Block, DIGEST_VERSION, EPOCH_VERSION, Epoch, LeftOut, Shortened};
pub use facts::{Digest, DigestCall};
pub use group::{Group, GroupKind, Member};
pub use history::ToolHistory;
pub use narrate::{NarrativeRequest, NarrativeScope};
pub use narrative::Narrative;
pub use narrative_outcome::{NarrativeOutcome, NarrativeRejection};
pub use plan::Planned;
pub use policy::{Call, Caps, Policy, Scale};
pub use report::{BudgetUnreachable, DigestCounts, Report, Trigger, UnchangedReason};
pub use stored_epoch::{EpochState, StoredEpoch, number_count};
pub use view_settings::ViewSettings;
