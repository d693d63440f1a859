//! What one message can hold.

use crate::heap_size::heap_size_of_fields;
use crate::json::RawJson;
use crate::{CallId, Extra, Family, Form, IdFields, Vendor};

/// One content of a message, with its vendor's own form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The content in its neutral form.
    pub body: Body,
    /// The vendor's own form, if it came from one.
    pub vendor: Option<Box<Vendor>>,
    /// Unknown members of the stored form.
    pub extra: Extra,
}

/// The kinds of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Plain text.
    Text(Text),
    /// Reasoning of a model.
    Reasoning(Reasoning),
    /// An image, a sound, a file: data or a reference.
    Media(Media),
    /// A request to run a tool.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult(ToolResult),
    /// A request for approval to run a tool.
    ApprovalRequest(ApprovalRequest),
    /// The answer to such a request.
    ApprovalResponse(ApprovalResponse),
    /// A refusal in the model's own words.
    Refusal(Text),
    /// An error as a content of the conversation.
    Error(Fault),
    /// A vendor's item without a neutral form; kept, and sent back to its vendor only.
    Opaque(Opaque),
    /// A kind of content that a later version wrote; kept as it is.
    Unknown(RawJson),
}

/// A text and the sources that it cites.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Text {
    /// The text as the model, user or tool wrote it.
    pub text: String,
    /// What the text refers to.
    pub citations: Vec<Citation>,
}

/// A source that a text cites.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Citation {
    /// Address of the source.
    pub url: Option<String>,
    /// Title of the source, or name of the file.
    pub title: Option<String>,
    /// The vendor's file id.
    pub file: Option<String>,
    /// First character of the text that the citation covers.
    pub start: Option<u64>,
    /// The character after the last one covered.
    pub end: Option<u64>,
    /// Unknown members of the stored form.
    pub extra: Extra,
}

/// The readable part of reasoning. Signatures and sealed parts are in the vendor's form.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Reasoning {
    /// Summaries meant for readers.
    pub summary: Vec<String>,
    /// The reasoning itself, where the vendor shows it.
    pub text: Vec<String>,
    /// Whether part of it is sealed (encrypted or redacted).
    pub sealed: bool,
}

/// What a piece of media is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// A still image.
    Image,
    /// An audio recording.
    Audio,
    /// A video.
    Video,
    /// A file of any other type.
    File,
}

/// Where the bytes of a piece of media are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaSource {
    /// An address, `data:` included.
    Uri(String),
    /// The bytes in base 64.
    Data(String),
    /// A file that the vendor keeps.
    File(String),
}

/// An image, a sound or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// Its media type, if known.
    pub media_type: Option<String>,
    /// Where its bytes are.
    pub source: MediaSource,
    /// The name of the file, if one was given.
    pub name: Option<String>,
    /// The transcript of a sound, or the description of a picture.
    pub transcript: Option<String>,
}

/// Who runs a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Runner {
    /// The application: the call waits for it.
    #[default]
    Client,
    /// The vendor: nothing waits.
    Vendor,
}

/// How far a vendor's item got.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Still being made.
    InProgress,
    /// It is complete.
    Completed,
    /// It was cut off before it was complete.
    Incomplete,
    /// Ended in an error.
    Failed,
    /// A vendor's own word.
    Other(Box<str>),
}

impl Status {
    /// The word on the wire and in the stored form.
    pub fn as_str(&self) -> &str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Other(word) => word,
        }
    }

    /// The status of a word.
    pub fn named(word: &str) -> Self {
        match word {
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "incomplete" => Self::Incomplete,
            "failed" => Self::Failed,
            other => Self::Other(other.into()),
        }
    }
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Arguments {
    /// The wire has no arguments here.
    #[default]
    None,
    /// JSON as text, exactly as the model wrote it; it may not parse.
    Text(String),
    /// JSON as a value.
    Json(RawJson),
    /// Free text that is not meant to be JSON.
    Free(String),
}

/// A request to run a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id; results carry the same.
    pub call: CallId,
    /// What kind of tool.
    pub family: Family,
    /// The tool's name; empty where the family implies it.
    pub name: String,
    /// What it is called with.
    pub arguments: Arguments,
    /// How far the vendor's item got, if the vendor sent a status.
    pub status: Option<Status>,
    /// Who runs it.
    pub runner: Runner,
}

/// How a call ended. Only `Error` and `Unknown` are failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Outcome {
    /// The tool ran and reported success.
    #[default]
    Ok,
    /// It ran and failed, or could not run.
    Error,
    /// A person denied the call.
    Rejected,
    /// No decision on the approval came in time.
    Expired,
    /// The question was taken back.
    Withdrawn,
    /// A limit or budget was reached before it ran.
    Limit,
    /// The run was stopped before the call ran.
    Terminated,
    /// It was cancelled before it had an effect.
    Cancelled,
    /// It was started and its result was lost.
    Unknown,
}

impl Outcome {
    /// Every outcome, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::Error,
        Self::Rejected,
        Self::Expired,
        Self::Withdrawn,
        Self::Limit,
        Self::Terminated,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// The word used in the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Limit => "limit",
            Self::Terminated => "terminated",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == word)
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Output {
    /// The tool returned nothing.
    #[default]
    None,
    /// The tool returned text.
    Text(String),
    /// A JSON value.
    Json(RawJson),
    /// Text and media.
    Parts(Vec<Content>),
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<RawJson> for Output {
    fn from(json: RawJson) -> Self {
        Self::Json(json)
    }
}

/// Whether a result has a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// It answers the call whose id it carries.
    Answers,
    /// It was never asked for; its id is only a handle.
    Standalone,
}

/// What a tool answered.
///
/// Invariant: the id is that of the call ([`ToolCall::answer`], [`ToolResult::answering`]) or the
/// result is marked as standalone. There is no way to make one with a fresh id by accident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    call: CallId,
    pairing: Pairing,
    occurrence: Option<u32>,
    /// What kind of tool.
    pub family: Family,
    /// The tool's name, if it is known.
    pub name: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it gave back.
    pub output: Output,
    /// Who ran it.
    pub runner: Runner,
}

heap_size_of_fields!(ToolResult { call, family, name, output; pairing, occurrence, outcome, runner });

/// A request for approval to run a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// Its id; the answer carries the same.
    pub request: CallId,
    /// The tool's name.
    pub name: String,
    /// The exact arguments.
    pub arguments: Arguments,
    /// The tool server, if any.
    pub server: Option<String>,
}

/// The answer to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalResponse {
    /// The id of the request.
    pub request: CallId,
    /// Yes or no.
    pub approved: bool,
    /// The reason given with the decision, which the model is shown.
    pub reason: Option<String>,
}

/// An error as a content of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub message: String,
    /// A code, if there is one.
    pub code: Option<String>,
}

/// A vendor's item without a neutral form. The item is in [`Content::vendor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// The vendor's tag for it.
    pub tag: String,
}

impl Body {
    /// A vendor's item of this tag that has no neutral form.
    pub fn opaque(tag: impl Into<String>) -> Self {
        Self::Opaque(Opaque { tag: tag.into() })
    }
}

impl ToolCall {
    /// A call of an application's function with JSON text as arguments.
    pub fn function(call: CallId, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            call,
            family: Family::FUNCTION,
            name: name.into(),
            arguments: Arguments::Text(arguments.into()),
            status: None,
            runner: Runner::Client,
        }
    }

    /// Mark the call as the one that was being written when the output limit ended the answer. False, and nothing
    /// changes, if the vendor's status is further, or ended otherwise.
    ///
    /// Arguments that happen to be JSON prove nothing: a vendor may close what its model left open.
    ///
    /// ```
    /// use throughline_model::{CallId, Status, ToolCall};
    ///
    /// let id = CallId::natural("call_1").unwrap();
    /// let mut call = ToolCall::function(id, "tide", r#"{"port": "Bre"#);
    /// assert!(call.mark_cut_off());
    /// assert_eq!(call.status, Some(Status::Incomplete));
    ///
    /// call.status = Some(Status::Completed);
    /// assert!(!call.mark_cut_off());
    /// ```
    pub fn mark_cut_off(&mut self) -> bool {
        match self.status {
            None | Some(Status::InProgress | Status::Incomplete) => {
                self.status = Some(Status::Incomplete);
                true
            }
            Some(Status::Completed | Status::Failed | Status::Other(_)) => false,
        }
    }

    /// The result of this call.
    pub fn answer(&self, outcome: Outcome, output: Output) -> ToolResult {
        ToolResult {
            call: self.call.clone(),
            pairing: Pairing::Answers,
            occurrence: None,
            family: self.family.clone(),
            name: (!self.name.is_empty()).then(|| self.name.clone()),
            outcome,
            output,
            runner: self.runner,
        }
    }
}

impl ToolResult {
    /// A result that names its call by the id that the wire carried, for a call that may be outside
    /// the history (before the window, in the vendor's store).
    pub fn answering(call: CallId, family: Family, output: Output) -> Self {
        Self {
            call,
            pairing: Pairing::Answers,
            occurrence: None,
            family,
            name: None,
            outcome: Outcome::Ok,
            output,
            runner: Runner::Client,
        }
    }

    /// A result that no call asked for; `handle` is only a name for it.
    pub fn standalone(handle: CallId, family: Family, output: Output) -> Self {
        Self {
            pairing: Pairing::Standalone,
            ..Self::answering(handle, family, output)
        }
    }

    /// The same result for the n-th call (from 0) among those of its id in the message that it
    /// answers. Needed only where several calls of one message share an id and their results may
    /// come in another order or in several messages.
    ///
    /// ```
    /// use throughline_model::{pairs, CallId, Message, Outcome, Output, Role, ToolCall};
    ///
    /// let call = |arguments: &str| ToolCall::function(CallId::natural("call_0").unwrap(), "f", arguments);
    /// let second = call("{}").answer(Outcome::Ok, Output::None).with_occurrence(1);
    /// let history = [
    ///     Message::new(Role::Assistant, vec![call("5").into(), call("7").into()]),
    ///     Message::new(Role::Tool, vec![second.into()]),
    /// ];
    /// assert_eq!(pairs(&history)[0].call.content, 1);
    /// ```
    #[must_use]
    pub fn with_occurrence(self, occurrence: u32) -> Self {
        Self {
            occurrence: Some(occurrence),
            ..self
        }
    }

    /// Which of the calls of its id in the message that it answers, from 0; `None` for the first
    /// one that has no result yet.
    pub fn occurrence(&self) -> Option<u32> {
        self.occurrence
    }

    /// The same result for the same call under another id.
    #[must_use]
    pub fn renamed(&self, call: CallId) -> Self {
        Self {
            call,
            ..self.clone()
        }
    }

    /// The id of the call, or the handle of a standalone result.
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// Whether it answers a call.
    pub fn pairing(&self) -> Pairing {
        self.pairing
    }
}

impl Content {
    /// A content of our own, without a vendor.
    pub fn new(body: Body) -> Self {
        Self {
            body,
            vendor: None,
            extra: Extra::NONE,
        }
    }

    /// How many bytes of text and JSON are in it, with what its vendor added: about its size on the wire.
    /// What it takes in memory is its [`HeapSize`](crate::HeapSize).
    pub fn byte_size(&self) -> usize {
        let body = match &self.body {
            Body::Text(text) | Body::Refusal(text) => text.text.len(),
            Body::Reasoning(reasoning) => {
                let texts = reasoning.text.iter().chain(&reasoning.summary);
                texts.map(String::len).sum()
            }
            Body::Media(media) => match &media.source {
                MediaSource::Uri(text) | MediaSource::Data(text) | MediaSource::File(text) => {
                    text.len()
                }
            },
            Body::ToolCall(call) => match &call.arguments {
                Arguments::Text(text) | Arguments::Free(text) => text.len(),
                Arguments::Json(json) => json.get().len(),
                Arguments::None => 0,
            },
            Body::ToolResult(result) => match &result.output {
                Output::None => 0,
                Output::Text(text) => text.len(),
                Output::Json(json) => json.get().len(),
                Output::Parts(parts) => parts.iter().map(Self::byte_size).sum(),
            },
            Body::Unknown(json) => json.get().len(),
            Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Error(_)
            | Body::Opaque(_) => 0,
        };
        // The vendor's form is kept as a template, but opaque items are whole in there.
        let vendor = self.vendor.as_ref().map_or(0, |vendor| {
            let form = match &vendor.form {
                Form::Item(json) | Form::Part(json) => json.get().len(),
                Form::Bare | Form::Within => 0,
            };
            form + vendor.envelope.as_ref().map_or(0, |json| json.get().len())
        });
        body + vendor
    }

    /// A content of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Body::Text(Text {
            text: text.into(),
            citations: Vec::new(),
        }))
    }

    /// The same content with a vendor's form.
    #[must_use]
    pub fn with_vendor(mut self, vendor: Vendor) -> Self {
        self.vendor = Some(Box::new(vendor));
        self
    }

    /// The tool call, if it is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match &self.body {
            Body::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// The tool result, if it is one.
    pub fn as_tool_result(&self) -> Option<&ToolResult> {
        match &self.body {
            Body::ToolResult(result) => Some(result),
            _ => None,
        }
    }

    /// The text, if it is plain text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            Body::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The id fields as they were on the wire.
    pub fn id_fields(&self) -> IdFields {
        self.vendor
            .as_ref()
            .map(|vendor| vendor.id_fields.clone())
            .unwrap_or_default()
    }
}

impl From<ToolCall> for Content {
    fn from(call: ToolCall) -> Self {
        Self::new(Body::ToolCall(call))
    }
}

impl From<ToolResult> for Content {
    fn from(result: ToolResult) -> Self {
        Self::new(Body::ToolResult(result))
    }
}
