//! The loop under kills: what a scripted model says, the tools and their server, and a ledger kept
//! outside of all of them.
//!
//! Whatever a model answers follows from the turn's [`Code`] and the round alone, so any process
//! can go on with a turn and an outsider knows what should be there. Every call carries a mark: the
//! turn, the round, its position and the number of the request that it answers. A mark therefore
//! says which asking of the model a call comes from, and one that is asked twice shows.

mod code;
pub mod fold;
mod ledger;
mod post;
mod servers;
mod tools;

pub use code::{BUDGET, Code, Kind, Mark, brackets};
pub use ledger::{LoopCounts, LoopLedger, ModelCall, Ran, Readers};
pub use post::{answer_posts, post, read_post};
pub use servers::{ask, model};
pub use tools::{TOOLS, ToolKind, effect};

/// The formats that a thread goes on with.
pub const WIRES: [throughline_model::Wire; 5] = [
    throughline_model::Wire::OpenAiResponses,
    throughline_model::Wire::OpenAiChat,
    throughline_model::Wire::Anthropic,
    throughline_model::Wire::Gemini,
    throughline_model::Wire::Foundry,
];
