//! The body of a request for a message.

use throughline_model::json::{RawJson, Value};
use throughline_model::{Content, Message, Path, Role, Settings, ToolChoice, ToolDef, Wire};
use throughline_wire::validate::{Generation, Profile, validate};
use throughline_wire::{DecodeError, codec};

use super::{sealed, settings, tools};
use crate::api::read;
use crate::api::stateless::SentMessages;
use crate::error::ApiError;

/// Rules about which message and block may follow which. They hold for every upstream, because a model
/// cannot be shown a result without its call; what else Anthropic refuses is for the upstream to judge.
const RULES: [&str; 10] = [
    "A-1", "A-2", "A-3", "A-8", "A-18", "S-A1", "S-A2", "S-A3", "S-A4", "S-A5",
];

/// Members that are never sent on as they stand: the server writes them itself.
const OURS: [&str; 4] = ["messages", "model", "stream", "throughline"];

/// What a client wants of `POST /v1/messages`.
#[derive(Debug)]
pub(in crate::api::anthropic) struct MessagesRequest {
    /// The body as the client wrote it.
    body: RawJson,
    pub(in crate::api::anthropic) model: Option<String>,
    pub(in crate::api::anthropic) stream: bool,
    /// Whether the client asked to be shown thinking.
    pub(in crate::api::anthropic) thinks: bool,
    system: Vec<Content>,
    messages: Vec<Message>,
    settings: Settings,
    /// Whether messages hold reasoning of another vendor.
    is_foreign: bool,
}

impl MessagesRequest {
    /// Read a body. Of a key that stands twice the last counts.
    pub(in crate::api::anthropic) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body = read::body(body)?;
        let root = Path::Root;
        let (system, mut messages) = conversation(&body)?;
        let is_foreign = sealed::open_all(&mut messages)?;
        Ok(Self {
            model: read::text(&body, "model", &root)?.map(Into::into),
            stream: read::flag(&body, "stream", &root)?.unwrap_or(false),
            thinks: settings::thinks(&body)?,
            settings: settings::settings(&body)?,
            system,
            messages,
            is_foreign,
            body: RawJson::of(&body),
        })
    }

    /// A model call needs a limit; counting does not.
    pub(in crate::api::anthropic) fn check_limit(&self) -> Result<(), ApiError> {
        match self.settings.max_output_tokens {
            Some(_) => Ok(()),
            None => Err(ApiError::invalid("max_tokens: Field required").param("max_tokens")),
        }
    }

    /// Everything but the messages, as the client wrote it.
    pub(in crate::api::anthropic) fn as_written(&self) -> RawJson {
        self.body.without(|key| key == "messages")
    }

    pub(super) fn body(&self) -> Value<'_> {
        self.body.value()
    }

    /// Whether messages hold reasoning of another vendor.
    pub(in crate::api::anthropic) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Whether the client began the answer itself.
    pub(super) fn has_prefill(&self) -> bool {
        let last = self.messages.last();
        last.is_some_and(|message| message.role == Role::Assistant)
    }

    /// The conversation, taken out.
    pub(in crate::api::anthropic) fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    /// What is set, for an upstream that speaks another API.
    pub(in crate::api::anthropic) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// What is set, for an upstream that speaks this API: everything as the client wrote it, below the
    /// instructions of an agent.
    pub(in crate::api::anthropic) fn native_settings(
        &self,
        agent: Option<&str>,
        sent: SentMessages,
        betas: Vec<String>,
    ) -> Settings {
        let body = self.body();
        let extra = RawJson::object_of(self.body.get().len(), |object| {
            for member in body.members() {
                let key = member.key.to_str();
                match (&*key, sent) {
                    ("system", _) if agent.is_some() => {}
                    ("messages", SentMessages::AsWritten) => {
                        object.raw("messages", member.value.raw());
                    }
                    (key, _) if OURS.contains(&key) => {}
                    _ => object.key_token(&member.key).push_str(member.value.raw()),
                }
            }
            if let Some(agent) = agent {
                settings::system_below(object, agent, body.get("system"));
            }
        });
        Settings {
            max_output_tokens: self.settings.max_output_tokens,
            betas,
            extra: Some(extra),
            ..Settings::default()
        }
    }

    /// The instructions, for an upstream that speaks another API.
    pub(in crate::api::anthropic) fn instructions(
        &self,
        agent: Option<&str>,
    ) -> Result<Option<String>, ApiError> {
        let mut texts: Vec<&str> = agent.into_iter().collect();
        for (index, content) in self.system.iter().enumerate() {
            texts.push(content.as_text().ok_or_else(|| {
                let path = Path::Root.key("system");
                ApiError::invalid(format!("'{}' must be text.", path.index(index)))
                    .code("invalid_value")
                    .param("system")
            })?);
        }
        Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
    }

    /// The functions on offer with their places in the request, and which of them to call, for an
    /// upstream that speaks another API.
    pub(in crate::api::anthropic) fn tools(
        &self,
    ) -> Result<(Vec<(usize, ToolDef)>, ToolChoice), ApiError> {
        tools::tools(&self.body())
    }
}

/// System text and messages, checked.
fn conversation(body: &Value<'_>) -> Result<(Vec<Content>, Vec<Message>), ApiError> {
    let list = read::list(body, "messages", &Path::Root)?;
    let list = list.ok_or_else(|| read::missing(&Path::Root.key("messages")))?;
    if list.is_empty() {
        return Err(
            ApiError::invalid("messages: at least one message is required")
                .code("invalid_value")
                .param("messages"),
        );
    }
    let lenient = Profile {
        generation: Generation {
            prefill: true,
            ..Generation::NEWEST
        },
        ..Profile::newest(Wire::Anthropic)
    };
    let violations = validate(body, &lenient);
    if let Some(first) = violations.iter().find(|one| RULES.contains(&one.rule)) {
        let text = first.vendor_text.as_deref().unwrap_or(&first.message);
        return Err(ApiError::invalid(text)
            .code("invalid_value")
            .param(first.path.clone()));
    }
    let codec = codec(&Wire::Anthropic).ok_or_else(|| ApiError::server("There is no codec."))?;
    let request = codec.decode_request(body).map_err(|error| wrong(&error))?;
    Ok((request.system, request.messages))
}

fn wrong(error: &DecodeError) -> ApiError {
    ApiError::invalid(format!("The messages cannot be read: {error}."))
        .code("invalid_value")
        .param("messages")
}
