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

/// Whether and which tools a model is to call.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// As it sees fit.
    #[default]
    Auto,
    /// None of them, although they are on offer.
    None,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

/// How much a model is to think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Not at all, where the model lets one choose.
    Off,
    /// As little as it can.
    Minimal,
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// Much.
    High,
}

/// The shape that an answer must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerShape {
    /// A name for it; vendors want one.
    pub name: String,
    /// JSON schema of the answer.
    pub schema: RawJson,
}

/// What a caller may set for a model call. Absent means the vendor's default; what a vendor cannot
/// do is a loss, never an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The most tokens to make, reasoning included.
    pub max_output_tokens: Option<u64>,
    /// How freely to choose words.
    pub temperature: Option<f64>,
    /// The share of likely words to choose from.
    pub top_p: Option<f64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// How much to think.
    pub effort: Option<Effort>,
    /// Whether several calls may be made at once.
    pub parallel_calls: Option<bool>,
    /// The shape of the answer.
    pub answer: Option<AnswerShape>,
    /// Members for the vendor's request body, an object. They go in as they are and win over what
    /// is set above.
    pub extra: Option<RawJson>,
}
