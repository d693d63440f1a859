//! The body of a request for a completion.

use throughline_model::json::{RawJson, Value};
use throughline_model::{Message, Path, Settings, ToolChoice, ToolDef, Wire};
use throughline_wire::validate::{Profile, validate};
use throughline_wire::{DecodeError, codec};

use super::{settings, tools};
use crate::api::read;
use crate::error::ApiError;

/// Rules about which message may follow which. They hold for every upstream, because a model cannot be
/// shown a result without its call; what else OpenAI refuses is for the upstream to judge.
const RULES: [&str; 7] = ["C-1", "C-2", "C-3", "S-C1", "S-C2", "S-C3", "S-C4"];

/// Members that are never sent on as they stand: the server writes them itself.
const OURS: [&str; 8] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "stream",
    "stream_options",
    "throughline",
];

/// What a client wants of `POST /v1/chat/completions`.
#[derive(Debug)]
pub(in crate::api::openai::chat) struct CompletionRequest {
    /// Everything but the messages, as the client wrote it.
    members: RawJson,
    pub(in crate::api::openai::chat) model: Option<String>,
    /// The conversation; taken out when the call is made.
    pub(in crate::api::openai::chat) messages: Vec<Message>,
    pub(in crate::api::openai::chat) stream: bool,
    /// Whether the last chunk of a stream has the usage.
    pub(in crate::api::openai::chat) include_usage: bool,
    settings: Settings,
}

impl CompletionRequest {
    /// Read a body. Of a key that stands twice the last counts.
    pub(in crate::api::openai::chat) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body = read::body(body)?;
        let root = Path::Root;
        let model = read::text(&body, "model", &root)?.map(Into::into);
        check_choices(&body)?;
        let options = read::object(&body, "stream_options", &root)?;
        let include_usage = match options {
            Some(options) => read::flag(options, "include_usage", &root.key("stream_options"))?,
            None => None,
        };
        let stream = read::flag(&body, "stream", &root)?.unwrap_or(false);
        if options.is_some() && !stream {
            return Err(ApiError::invalid(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            )
            .param("stream_options"));
        }
        Ok(Self {
            model,
            stream,
            include_usage: include_usage.unwrap_or(false),
            settings: settings::settings(&body)?,
            messages: messages(&body)?,
            members: RawJson::of(&body).without(|key| key == "messages"),
        })
    }

    /// Everything but the messages, as the client wrote it.
    pub(in crate::api::openai::chat) fn as_written(&self) -> &RawJson {
        &self.members
    }

    /// Everything but the messages.
    pub(super) fn members(&self) -> Value<'_> {
        self.members.value()
    }

    /// What is set, for an upstream that speaks another API.
    pub(in crate::api::openai::chat) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// What is set, for an upstream that speaks this API: everything as the client wrote it, except
    /// for the limit of tokens, whose name depends on the server.
    pub(in crate::api::openai::chat) fn native_settings(&self) -> Settings {
        let extra = self.members.without(|key| OURS.contains(&key));
        Settings {
            max_output_tokens: self.settings.max_output_tokens,
            extra: (extra.get() != "{}").then_some(extra),
            ..Settings::default()
        }
    }

    /// The functions on offer with their places in the request, and which of them to call, for an
    /// upstream that speaks another API.
    pub(in crate::api::openai::chat) fn tools(
        &self,
    ) -> Result<(Vec<(usize, ToolDef)>, ToolChoice), ApiError> {
        tools::tools(&self.members())
    }
}

/// Only one answer is made.
fn check_choices(body: &Value<'_>) -> Result<(), ApiError> {
    match read::integer(body, "n", (1, 128), &Path::Root)? {
        None | Some(1) => Ok(()),
        Some(_) => Err(ApiError::invalid(
            "One answer is made for a request: 'n' must be 1. Send the request as often as you want \
             answers.",
        )
        .code("unsupported_parameter")
        .param("n")
        .retry(false)),
    }
}

/// The conversation, checked.
fn messages(body: &Value<'_>) -> Result<Vec<Message>, ApiError> {
    let list = read::list(body, "messages", &Path::Root)?;
    let list = list.ok_or_else(|| read::missing(&Path::Root.key("messages")))?;
    if list.is_empty() {
        return Err(ApiError::invalid(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an \
             empty array instead.",
        )
        .code("empty_array")
        .param("messages"));
    }
    let violations = validate(body, &Profile::newest(Wire::OpenAiChat));
    if let Some(first) = violations.iter().find(|one| RULES.contains(&one.rule)) {
        let text = first.vendor_text.as_deref().unwrap_or(&first.message);
        return Err(ApiError::invalid(text)
            .code("invalid_value")
            .param(first.path.clone()));
    }
    let codec = codec(&Wire::OpenAiChat).ok_or_else(|| ApiError::server("There is no codec."))?;
    let request = codec.decode_request(body).map_err(|error| wrong(&error))?;
    Ok(request.messages)
}

fn wrong(error: &DecodeError) -> ApiError {
    ApiError::invalid(format!("The messages cannot be read: {error}."))
        .code("invalid_value")
        .param("messages")
}
