use std::time::Duration;

use crate::client::{ClientError, ErrorKind};
use throughline_model::{
    Arguments, Body, CallId, Content, Event, Message, Place, Reasoning, Response, Role, Stop,
    ToolCall, Usage,
};

use super::client::RecordedCall;

/// How many characters a fragment of streamed text has.
const FRAGMENT: usize = 7;

/// Decides a reply from the call.
pub(super) type Decide = Box<dyn FnOnce(&RecordedCall) -> ScriptedReply + Send>;

/// One reply of a script.
pub struct ScriptedReply(pub(super) ReplyKind);

pub(super) enum ReplyKind {
    /// An answer that goes out in fragments.
    Response(Box<Response>),
    /// These chunks and nothing else.
    Chunks(Vec<ReplyPart>),
    /// The call fails at once.
    Error(ClientError),
    /// The call never ends.
    Hang,
    /// This reply, after a pause.
    After(Duration, Box<ScriptedReply>),
    /// A reply that depends on the call.
    Decide(Decide),
}

/// A part of a reply as it arrives.
#[expect(
    clippy::large_enum_variant,
    reason = "scripts are short, and tests write these"
)]
pub enum ReplyPart {
    /// An event.
    Event(Event),
    /// A pause, by tokio's clock.
    Wait(Duration),
    /// The reply ends with this error.
    Error(ClientError),
    /// Nothing more arrives.
    Hang,
}

impl ScriptedReply {
    /// A text, after which the model stops.
    pub fn text(text: impl Into<String>) -> Self {
        Self::contents(vec![Content::text(text)])
    }

    /// Calls of functions: id, name, JSON text of the arguments.
    pub fn calls<I, N, A>(calls: impl IntoIterator<Item = (I, N, A)>) -> Self
    where
        I: AsRef<str>,
        N: Into<String>,
        A: Into<String>,
    {
        Self::contents(calls.into_iter().map(call).collect())
    }

    /// A text, then calls.
    pub fn text_and_calls<I, N, A>(
        text: impl Into<String>,
        calls: impl IntoIterator<Item = (I, N, A)>,
    ) -> Self
    where
        I: AsRef<str>,
        N: Into<String>,
        A: Into<String>,
    {
        let mut contents = vec![Content::text(text)];
        contents.extend(calls.into_iter().map(call));
        Self::contents(contents)
    }

    /// Any contents of one message. With calls in them the model waits for tools.
    pub fn contents(contents: Vec<Content>) -> Self {
        let waits = contents
            .iter()
            .any(|content| content.as_tool_call().is_some());
        Self::response(Response {
            id: None,
            model: None,
            messages: vec![Message::new(Role::Assistant, contents)],
            usage: Some(tokens(10, 5)),
            stop: if waits { Stop::ToolCalls } else { Stop::Done },
            error: None,
            vendor: None,
            service: None,
        })
    }

    /// A whole answer. The client fills in an id and a model if it has none.
    pub fn response(response: Response) -> Self {
        Self(ReplyKind::Response(Box::new(response)))
    }

    /// These events and no more: without [`Event::Finished`] the answer is cut.
    pub fn events(events: impl IntoIterator<Item = Event>) -> Self {
        Self::chunks(events.into_iter().map(ReplyPart::Event))
    }

    /// These chunks and no more: without [`Event::Finished`] the answer is cut.
    pub fn chunks(chunks: impl IntoIterator<Item = ReplyPart>) -> Self {
        Self(ReplyKind::Chunks(chunks.into_iter().collect()))
    }

    /// The call fails before anything came.
    pub fn error(error: ClientError) -> Self {
        Self(ReplyKind::Error(error))
    }

    /// The call fails before anything came, with an error of this kind.
    pub fn fails(kind: ErrorKind) -> Self {
        let message = format!("the script says {}", kind.as_str());
        Self::error(ClientError::new(kind, "scripted", message))
    }

    /// Part of a text, then the connection is gone.
    pub fn cut_after(text: impl Into<String>) -> Self {
        Self::chunks(partial(text.into()))
    }

    /// Part of a text, then nothing more until the caller drops the stream.
    pub fn hang_after(text: impl Into<String>) -> Self {
        let mut chunks = partial(text.into());
        chunks.push(ReplyPart::Hang);
        Self::chunks(chunks)
    }

    /// The call never returns; the caller has to drop it.
    pub fn hang() -> Self {
        Self(ReplyKind::Hang)
    }

    /// A reply that is decided from the call.
    pub fn with(decide: impl FnOnce(&RecordedCall) -> Self + Send + 'static) -> Self {
        Self(ReplyKind::Decide(Box::new(decide)))
    }

    /// Puts reasoning before the answer.
    #[must_use]
    pub fn thinking(self, thought: impl Into<String>) -> Self {
        self.changed(|response| {
            if let Some(message) = response.messages.first_mut() {
                let thought = Content::new(Body::Reasoning(Reasoning {
                    text: vec![thought.into()],
                    ..Reasoning::default()
                }));
                message.contents.insert(0, thought);
            }
        })
    }

    /// Sets the usage: input and output tokens.
    #[must_use]
    pub fn with_usage(self, input: u64, output: u64) -> Self {
        self.changed(|response| response.usage = Some(tokens(input, output)))
    }

    /// Removes the usage.
    #[must_use]
    pub fn without_usage(self) -> Self {
        self.changed(|response| response.usage = None)
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn with_stop(self, stop: Stop) -> Self {
        self.changed(|response| response.stop = stop)
    }

    /// Sets the id under which the service stores the conversation.
    #[must_use]
    pub fn kept_as(self, id: impl Into<String>) -> Self {
        self.changed(|response| response.service = Some(id.into()))
    }

    /// Delays the reply, by tokio's clock.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(ReplyKind::After(wait, Box::new(self)))
    }

    /// Changes the response of this reply; replies of other kinds stay as they are.
    fn changed(mut self, change: impl FnOnce(&mut Response)) -> Self {
        match &mut self.0 {
            ReplyKind::Response(response) => change(response),
            ReplyKind::After(_, step) => {
                let inner = std::mem::replace(&mut step.0, ReplyKind::Hang);
                **step = Self(inner).changed(change);
            }
            ReplyKind::Chunks(_) | ReplyKind::Error(_) | ReplyKind::Hang | ReplyKind::Decide(_) => {
            }
        }
        self
    }
}

/// The events of an answer as a vendor would stream them: texts and arguments in fragments.
pub(super) fn fragments(response: &Response) -> Vec<ReplyPart> {
    let mut events = Vec::new();
    for event in response.events() {
        if let Event::Content { at, content } = &event {
            open(*at, content, &mut events);
        }
        events.push(ReplyPart::Event(event));
    }
    events
}

fn open(at: Place, content: &Content, events: &mut Vec<ReplyPart>) {
    let mut hollow = content.clone();
    let text = match &mut hollow.body {
        Body::Text(text) | Body::Refusal(text) => std::mem::take(&mut text.text),
        Body::Reasoning(reasoning) if reasoning.text.len() == 1 => {
            reasoning.text.pop().unwrap_or_default()
        }
        Body::ToolCall(ToolCall {
            arguments: Arguments::Text(text) | Arguments::Free(text),
            ..
        }) => std::mem::take(text),
        _ => return,
    };
    events.push(ReplyPart::Event(Event::Opened {
        at,
        content: hollow,
    }));
    let letters: Vec<char> = text.chars().collect();
    for fragment in letters.chunks(FRAGMENT) {
        events.push(ReplyPart::Event(Event::Delta {
            at,
            text: fragment.iter().collect(),
        }));
    }
}

/// A text without its end.
fn partial(text: String) -> Vec<ReplyPart> {
    let at = Place::new(0, 0, 0);
    [
        Event::Started {
            id: Some("resp_partial".into()),
            model: None,
        },
        Event::Opened {
            at,
            content: Content::text(""),
        },
        Event::Delta { at, text },
    ]
    .into_iter()
    .map(ReplyPart::Event)
    .collect()
}

fn call<I: AsRef<str>, N: Into<String>, A: Into<String>>((id, name, args): (I, N, A)) -> Content {
    let id = CallId::natural(id.as_ref()).expect("a script gives its calls ids");
    ToolCall::function(id, name, args).into()
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage {
        input: Some(input),
        output: Some(output),
        total: Some(input + output),
        ..Usage::default()
    }
}
