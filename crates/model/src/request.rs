use crate::json::RawJson;
use crate::{Content, Family, Message, Vendor};

/// What is sent to a model: the parts that every vendor has.
///
/// Everything else of the vendor's request body is in [`Request::vendor`], hollow where the parts
/// below say it already.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Request {
    /// System text that stands outside the messages.
    pub system: Vec<Content>,
    /// The history and the new input.
    pub messages: Vec<Message>,
    /// Tools on offer.
    pub tools: Vec<ToolDef>,
    /// The vendor's body, hollow.
    pub vendor: Option<Vendor>,
}

/// A tool on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDef {
    /// What kind of tool.
    pub family: Family,
    /// Its name; empty where the family alone says it.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// JSON schema of its arguments.
    pub parameters: Option<RawJson>,
}
