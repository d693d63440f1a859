//! The body of a create request: checked, and kept with everything that we do not know.

mod check;
mod compaction;
mod extras;
mod settings;
mod stored_body;
mod tools;

#[cfg(test)]
mod tests;

use throughline_model::json::{RawJson, Value};
use throughline_model::{Path, Settings};

use super::items;
use super::items::input::InputItems;
use super::items::read;
use crate::ApiError;

pub(crate) use check::metadata;
pub use compaction::{CompactionOverride, CompactionRequest, ContextManagement};
pub use extras::Extras;
pub use tools::{AllowedTools, McpTool, RequestTool, RequireApproval, ToolFilter, ToolSelection};

/// What a client may ask to be added to a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Include {
    /// `file_search_call.results`
    FileSearchResults,
    /// `web_search_call.results`
    WebSearchResults,
    /// `web_search_call.action.sources`
    WebSearchSources,
    /// `message.input_image.image_url`
    InputImages,
    /// `computer_call_output.output.image_url`
    Screenshots,
    /// `code_interpreter_call.outputs`
    CodeOutputs,
    /// `reasoning.encrypted_content`
    EncryptedReasoning,
    /// `message.output_text.logprobs`
    Logprobs,
}

impl Include {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::FileSearchResults,
        Self::WebSearchResults,
        Self::WebSearchSources,
        Self::InputImages,
        Self::Screenshots,
        Self::CodeOutputs,
        Self::EncryptedReasoning,
        Self::Logprobs,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileSearchResults => "file_search_call.results",
            Self::WebSearchResults => "web_search_call.results",
            Self::WebSearchSources => "web_search_call.action.sources",
            Self::InputImages => "message.input_image.image_url",
            Self::Screenshots => "computer_call_output.output.image_url",
            Self::CodeOutputs => "code_interpreter_call.outputs",
            Self::EncryptedReasoning => "reasoning.encrypted_content",
            Self::Logprobs => "message.output_text.logprobs",
        }
    }
}

/// What a client wants of `POST /v1/responses` (and of `/v1/responses/input_tokens`, whose body is
/// a part of it).
///
/// No model and no input are fine here: what they mean is decided where the request is routed.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    stored: RawJson,
    model: Option<String>,
    instructions: Option<String>,
    previous: Option<String>,
    conversation: Option<String>,
    store: bool,
    background: bool,
    generate: bool,
    stream: bool,
    metadata: Vec<(String, String)>,
    tools: Vec<RequestTool>,
    choice: ToolSelection,
    settings: Settings,
    include: Vec<Include>,
    max_tool_calls: Option<u64>,
    obfuscated: bool,
    extras: Extras,
    compaction: CompactionRequest,
    input: InputItems,
}

impl CreateRequest {
    /// Read a body. Of a key that stands twice the last counts; members and tools that we do not
    /// know are kept.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        Self::of(&read::body(body)?)
    }

    /// What [`CreateRequest::stored_body`] gave. There is no input, and nothing is streamed.
    pub fn from_stored(stored: &RawJson) -> Result<Self, ApiError> {
        Self::parse(stored.get().as_bytes())
    }

    fn of(body: &Value<'_>) -> Result<Self, ApiError> {
        let root = Path::Root;
        let text = |key| read::text(body, key, &root).map(|text| text.map(Into::into));
        let previous: Option<String> = text("previous_response_id")?;
        let tools = tools::tools(body)?;
        let store = read::flag(body, "store", &root)?.unwrap_or(true);
        let request = Self {
            stored: stored_body::stored_body(body),
            model: text("model")?,
            instructions: text("instructions")?,
            conversation: check::conversation(body, previous.is_some())?,
            previous,
            store,
            background: check::background(body, store)?,
            generate: read::flag(body, "generate", &root)?.unwrap_or(true),
            stream: read::flag(body, "stream", &root)?.unwrap_or(false),
            metadata: metadata(body)?,
            choice: tools::choice(body, &tools)?,
            tools,
            settings: settings::settings(body)?,
            include: check::include(body)?,
            max_tool_calls: read::integer(body, "max_tool_calls", (1, u64::MAX), &root)?,
            obfuscated: check::obfuscation(body)?,
            extras: Extras::of(body)?,
            compaction: CompactionRequest::of(body)?,
            input: InputItems::of(body)?,
        };
        check::echoed(body)?;
        Ok(request)
    }

    /// What is stored with the run: everything but the input, how the answer is delivered, and what
    /// it continues. The same request gives the same bytes, whatever the order of its members.
    pub fn stored_body(&self) -> RawJson {
        self.stored.clone()
    }

    /// The same, borrowed.
    pub(crate) fn body(&self) -> &RawJson {
        &self.stored
    }

    /// The names of the members that are kept.
    pub fn members(&self) -> Vec<String> {
        let body = self.stored.value();
        let members = body.members().iter();
        members
            .map(|member| member.key.to_str().into_owned())
            .collect()
    }

    /// The model, by the client's name for it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Instructions for this response alone.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Whether it names a prompt that an upstream stores, which may be all of the input.
    pub fn has_prompt(&self) -> bool {
        read::member(&self.stored.value(), "prompt").is_some()
    }

    /// The id of the response to continue, as it was sent.
    pub fn previous_response_id(&self) -> Option<&str> {
        self.previous.as_deref()
    }

    /// The id of the conversation that the response belongs to.
    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    /// Whether the response is kept.
    pub fn store(&self) -> bool {
        self.store
    }

    /// Whether the response is made after the request was answered.
    pub fn background(&self) -> bool {
        self.background
    }

    /// Whether a model is asked. If not, the response has no output, and stands for its input.
    pub fn generate(&self) -> bool {
        self.generate
    }

    /// Whether the answer comes as events.
    pub fn stream(&self) -> bool {
        self.stream
    }

    /// Whether events are to be padded.
    pub(super) fn asks_for_obfuscation(&self) -> bool {
        self.obfuscated
    }

    /// The client's own pairs, in order.
    pub fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }

    /// Tools on offer, in order.
    pub fn tools(&self) -> &[RequestTool] {
        &self.tools
    }

    /// Which tools to call.
    pub fn tool_choice(&self) -> &ToolSelection {
        &self.choice
    }

    /// What is set for model calls, in words that every vendor has.
    pub fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// What an upstream that speaks Responses understands beyond that, for
    /// [`Settings::extra`]: members as the client wrote them. `seals` says whether the upstream gives
    /// reasoning in a form that can be sent back.
    pub fn extra_for_responses(&self, seals: bool) -> Option<RawJson> {
        let of_vendor = |tool: &RequestTool| matches!(tool, RequestTool::Hosted { .. });
        let hosted = self.tools.iter().any(of_vendor);
        settings::extra_for_responses(&self.stored, hosted, seals)
    }

    /// What is to be added to the response.
    pub fn include(&self) -> &[Include] {
        &self.include
    }

    /// Whether reasoning comes with what a client needs to send it back.
    pub fn seals_reasoning(&self) -> bool {
        !self.store || self.include.contains(&Include::EncryptedReasoning)
    }

    /// Whether a summary of reasoning was asked for.
    pub fn summarizes(&self) -> bool {
        self.settings.summary
    }

    /// How many calls of built-in tools are allowed.
    pub fn max_tool_calls(&self) -> Option<u64> {
        self.max_tool_calls
    }

    /// Our own extras.
    pub fn extras(&self) -> &Extras {
        &self.extras
    }

    /// What it says about how much of a long history a model is shown.
    pub fn compaction(&self) -> &CompactionRequest {
        &self.compaction
    }

    /// The input.
    pub fn input(&self) -> &InputItems {
        &self.input
    }

    /// The same, taken out: it may be large, and is not needed as long as the rest.
    pub fn take_input(&mut self) -> InputItems {
        std::mem::take(&mut self.input)
    }
}
