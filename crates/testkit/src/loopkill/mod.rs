//! The agent loop under kills: the scripted model, the tools and their server, and a ledger outside
//! of all of them.
//!
//! The model's answers follow from the turn's [`Code`] and the round only, so that any process can
//! resume a turn and the test knows the expected result. Every call carries a mark: the turn, the
//! round, its position and the number of the request that it answers. A mark therefore names the
//! model call that made a call, and a repeated model call is detected.

mod code;
pub mod fold;
mod keeping;
mod ledger;
mod post;
mod servers;
mod tools;

pub use code::{BUDGET, Code, Kind, Mark, brackets};
pub use keeping::{Keeping, KeptBy, SERVICES};
pub use ledger::{LoopCounts, LoopLedger, ModelCall, Ran, Readers, dateless};
pub use post::{answer_posts, answer_some_posts, post, read_post, send_post};
pub use servers::{ask, ask_service, is_whole, model, service, service_wire};
pub use tools::{TOOLS, ToolKind, effect};

/// The formats with which a thread continues.
pub const WIRES: [throughline_model::Wire; 5] = [
    throughline_model::Wire::OpenAiResponses,
    throughline_model::Wire::OpenAiChat,
    throughline_model::Wire::Anthropic,
    throughline_model::Wire::Gemini,
    throughline_model::Wire::Foundry,
];
