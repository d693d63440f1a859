use crate::json::RawJson;
use crate::{Content, Family, Message, Vendor};

/// What is sent to a model: the parts that every vendor has.
///
/// Everything else of the vendor's request body is in [`Request::vendor`], without what the parts
/// below hold already.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Request {
    /// System text that stands outside the messages.
    pub system: Vec<Content>,
    /// The history and the new input.
    pub messages: Vec<Message>,
    /// Tools on offer.
    pub tools: Vec<ToolDef>,
    /// The vendor's body as a template (see [`Vendor`](crate::Vendor)).
    pub vendor: Option<Vendor>,
}

/// A tool on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDef {
    /// What kind of tool.
    pub family: Family,
    /// Its name; empty where the family implies it.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// JSON schema of its arguments.
    pub parameters: Option<RawJson>,
    /// Whether arguments must fit the schema exactly, if that was set.
    pub strict: Option<bool>,
    /// The definition as a vendor writes it, if it has more than the members above: the options of
    /// a search, the grammar of a free text.
    pub vendor: Option<Vendor>,
}

impl Default for ToolDef {
    /// A function without a name.
    fn default() -> Self {
        Self {
            family: Family::FUNCTION,
            name: String::new(),
            description: None,
            parameters: None,
            strict: None,
            vendor: None,
        }
    }
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
    /// The model must call the tool of this name.
    Named(String),
}

/// How much a model is to think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Not at all, where the model lets one choose.
    Off,
    /// As little as it can.
    Minimal,
    /// Low effort.
    Low,
    /// The usual amount.
    Medium,
    /// High effort.
    High,
    /// More than that.
    ExtraHigh,
    /// As much as it can.
    Max,
}

impl Effort {
    /// All of them, from the least to the most.
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::ExtraHigh,
        Self::Max,
    ];

    /// The word by which the vendors' APIs name the effort.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::ExtraHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// How long an answer is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verbosity {
    /// Short answers.
    Low,
    /// The usual length.
    Medium,
    /// Long answers.
    High,
}

impl Verbosity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The word that vendors have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The shape that an answer must have.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AnswerShape {
    /// A name for it; vendors want one.
    pub name: String,
    /// What it is, for the model.
    pub description: Option<String>,
    /// JSON schema of the answer; without one any JSON object will do.
    pub schema: Option<RawJson>,
    /// Whether the answer must fit the schema exactly, if that was set.
    pub strict: Option<bool>,
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
    /// Whether to send summaries of the reasoning.
    pub summary: bool,
    /// How long the answer is to be.
    pub verbosity: Option<Verbosity>,
    /// How much words that were used are avoided.
    pub presence_penalty: Option<f64>,
    /// How much words that were used often are avoided.
    pub frequency_penalty: Option<f64>,
    /// Whether several calls may be made at once.
    pub parallel_calls: Option<bool>,
    /// The shape of the answer.
    pub answer: Option<AnswerShape>,
    /// The end user, for the vendor's checks against abuse; a hash, never a name.
    pub user: Option<String>,
    /// The class of service, in OpenAI's words: `auto`, `default`, `flex`, `priority`.
    pub service_tier: Option<String>,
    /// Requests with the same key are likely to find a cached prompt.
    pub cache_key: Option<String>,
    /// How long a cached prompt is kept, in OpenAI's words.
    pub cache_retention: Option<String>,
    /// Features in beta that the request uses, by Anthropic's names. They are sent in a header.
    pub betas: Vec<String>,
    /// Members for the vendor's request body, an object. They go in as they are and win over what
    /// is set above.
    pub extra: Option<RawJson>,
}
