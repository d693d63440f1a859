//! The items that a client sends.

#[path = "../../../../crates/server/src/api/openai/items/compaction_token.rs"]
mod compaction_token;
#[path = "../../../../crates/server/src/api/envelope.rs"]
mod envelope;
#[path = "../../../../crates/server/src/api/openai/items/input/mod.rs"]
pub(crate) mod input;
#[path = "../../../../crates/server/src/api/read.rs"]
pub(crate) mod read;
#[path = "../../../../crates/server/src/api/openai/items/tool_name.rs"]
mod tool_name;

pub(crate) use input::parts;
pub(crate) use tool_name::ToolName;
