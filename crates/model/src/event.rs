//! The events of a response: a streamed and a whole response are read as the same sequence.

use std::collections::BTreeMap;

use crate::json::RawJson;
use crate::{
    Arguments, Body, Content, Message, Output, Reasoning, Response, Role, Status, Stop, Usage,
    Vendor, VendorError, Wire,
};

/// Where in a response a content stands. Places order contents; they need not be dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The alternative, where several were asked for.
    pub choice: usize,
    /// The item of the response.
    pub item: usize,
    /// The part of the item.
    pub part: usize,
}

impl Place {
    /// The position of a content, by its indexes.
    pub fn new(choice: usize, item: usize, part: usize) -> Self {
        Self { choice, item, part }
    }
}

/// One thing that happens while a model answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The vendor has begun.
    Started {
        /// Its id of the response.
        id: Option<String>,
        /// The model that answers.
        model: Option<String>,
    },
    /// The service works on the answer and can be asked for it under this handle, also after this
    /// process has died. Comes before the first content.
    Accepted {
        /// What names the answer at the service; only the client that made it reads it.
        handle: RawJson,
    },
    /// A message begins whose speaker is not, or not only, the model that was asked: a remote agent
    /// names itself, a client that runs tools itself shows their results.
    Speaker {
        /// Which message; its contents stand at places with this choice.
        choice: usize,
        /// The role of the message that begins.
        role: Role,
        /// The speaker's name.
        author: Option<String>,
    },
    /// A content begins; what is known of it so far.
    Opened {
        /// The position of the content that the event is about.
        at: Place,
        /// The content without the text that deltas will bring.
        content: Content,
    },
    /// More text of a content: of its text, its reasoning, its arguments, whatever it is.
    Delta {
        /// The position of the content that the event is about.
        at: Place,
        /// The text to append.
        text: String,
    },
    /// More of the summary of a reasoning, where a vendor sends it separately from the reasoning
    /// itself.
    Summary {
        /// The position of the content that the event is about.
        at: Place,
        /// Which part of the summary, from 0.
        part: usize,
        /// The text to append.
        text: String,
    },
    /// A content is whole. It replaces whatever was gathered at its place.
    Content {
        /// The position of the content that the event is about.
        at: Place,
        /// The content as it is now.
        content: Content,
    },
    /// A vendor's event without a neutral form.
    Other {
        /// The format in which the event came.
        wire: Wire,
        /// The event as it was received.
        event: RawJson,
    },
    /// The response is over.
    Finished {
        /// The reason why the response ended.
        stop: Stop,
        /// The tokens that were billed, if the vendor reported them.
        usage: Option<Usage>,
        /// The error of a response that failed.
        error: Option<VendorError>,
        /// The id under which the service keeps the conversation from here on, if it keeps it.
        service: Option<String>,
        /// The vendor's body as a template (see [`Vendor`](crate::Vendor)).
        vendor: Option<Box<Vendor>>,
    },
}

impl Event {
    /// The end of a stream that failed, with the vendor's error and the tokens reported so far.
    pub fn failed(error: Option<VendorError>, usage: Option<Usage>) -> Self {
        Self::Finished {
            stop: Stop::Failed,
            usage,
            error,
            service: None,
            vendor: None,
        }
    }
}

impl Response {
    /// The response as events: what a stream of it ends in.
    pub fn events(&self) -> Vec<Event> {
        let mut events = vec![Event::Started {
            id: self.id.clone(),
            model: self.model.clone(),
        }];
        for (choice, message) in self.messages.iter().enumerate() {
            if message.role != Role::Assistant || message.author.is_some() {
                events.push(Event::Speaker {
                    choice,
                    role: message.role.clone(),
                    author: message.author.clone(),
                });
            }
            for (item, content) in message.contents.iter().enumerate() {
                events.push(Event::Content {
                    at: Place::new(choice, item, 0),
                    content: content.clone(),
                });
            }
        }
        events.push(self.finished());
        events
    }

    /// The event that ends a stream of this response.
    pub fn finished(&self) -> Event {
        Event::Finished {
            stop: self.stop.clone(),
            usage: self.usage.clone(),
            error: self.error.clone(),
            service: self.service.clone(),
            vendor: self.vendor.clone().map(Box::new),
        }
    }
}

/// Builds a response from its events.
///
/// ```
/// use throughline_model::{Content, Event, Fold, Place, Stop};
///
/// let mut fold = Fold::new();
/// let at = Place::new(0, 0, 0);
/// fold.push(Event::Opened { at, content: Content::text("") });
/// fold.push(Event::Delta { at, text: "Hel".into() });
/// fold.push(Event::Delta { at, text: "lo".into() });
/// let response = fold.finish();
/// assert_eq!(response.messages[0].text(), "Hello");
/// assert_eq!(response.stop, Stop::Cut); // no stop reason was received
/// ```
#[derive(Debug, Default)]
pub struct Fold {
    id: Option<String>,
    model: Option<String>,
    speakers: BTreeMap<usize, (Role, Option<String>)>,
    // In boxes: there are few, mostly, and a node of the map has room for eleven.
    contents: BTreeMap<Place, (Box<Content>, Completeness)>,
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    stop: Stop,
    usage: Option<Usage>,
    error: Option<VendorError>,
    service: Option<String>,
    vendor: Option<Box<Vendor>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completeness {
    Whole,
    Partial,
}

impl Fold {
    /// Nothing gathered yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Take one event. Events after the end are passed over.
    pub fn push(&mut self, event: Event) {
        if self.end.is_some() {
            return;
        }
        match event {
            Event::Started { id, model } => {
                self.id = id.or(self.id.take());
                self.model = model.or(self.model.take());
            }
            Event::Speaker {
                choice,
                role,
                author,
            } => {
                self.speakers.insert(choice, (role, author));
            }
            Event::Opened { at, content } => {
                let content = Box::new(content);
                self.contents.insert(at, (content, Completeness::Partial));
            }
            Event::Delta { at, text } => {
                let (content, _) = self
                    .contents
                    .entry(at)
                    .or_insert_with(|| (Box::new(Content::text("")), Completeness::Partial));
                append_text(content, &text);
            }
            Event::Summary { at, part, text } => {
                let (content, _) = self.contents.entry(at).or_insert_with(|| {
                    let reasoning = Body::Reasoning(Reasoning::default());
                    (Box::new(Content::new(reasoning)), Completeness::Partial)
                });
                append_summary(content, part, &text);
            }
            Event::Content { at, content } => {
                let content = Box::new(content);
                self.contents.insert(at, (content, Completeness::Whole));
            }
            Event::Accepted { .. } | Event::Other { .. } => {}
            Event::Finished {
                stop,
                usage,
                error,
                service,
                vendor,
            } => {
                self.end = Some(End {
                    stop,
                    usage,
                    error,
                    service,
                    vendor,
                });
            }
        }
    }

    /// Whether the end was received.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The response up to now, for a reader that stops reading the stream: contents that are
    /// complete, and text as far as it came. A call whose arguments were still coming was never
    /// made.
    pub fn interrupt(mut self) -> Response {
        self.contents.retain(|_, (content, completeness)| {
            *completeness == Completeness::Whole || content.as_tool_call().is_none()
        });
        self.finish()
    }

    /// The response. Without a [`Event::Finished`] it is marked as cut, and a message with a
    /// content that never became whole as incomplete.
    pub fn finish(self) -> Response {
        let end = self.end.unwrap_or(End {
            stop: Stop::Cut,
            usage: None,
            error: None,
            service: None,
            vendor: None,
        });
        let mut messages: Vec<Message> = Vec::new();
        let mut last_choice = None;
        for (at, (content, completeness)) in self.contents {
            if last_choice != Some(at.choice) {
                last_choice = Some(at.choice);
                let speaker = self.speakers.get(&at.choice).cloned();
                let (role, author) = speaker.unwrap_or((Role::Assistant, None));
                let mut message = Message::new(role, Vec::new());
                message.author = author;
                messages.push(message);
            }
            let Some(message) = messages.last_mut() else {
                continue;
            };
            message.contents.push(*content);
            if completeness == Completeness::Partial {
                message.status = Some(Status::Incomplete);
            }
        }
        if let Some(message) = messages.first_mut() {
            message.usage.clone_from(&end.usage);
        }
        Response {
            id: self.id,
            model: self.model,
            messages,
            usage: end.usage,
            stop: end.stop,
            error: end.error,
            service: end.service,
            vendor: end.vendor.map(|vendor| *vendor),
        }
    }
}

/// The most parts that a summary has while it grows; a vendor who counts further is not followed.
const MAX_SUMMARY_PARTS: usize = 1 << 12;

/// Append streamed text to a part of a summary.
fn append_summary(content: &mut Content, part: usize, more: &str) {
    let Body::Reasoning(reasoning) = &mut content.body else {
        return;
    };
    if part >= MAX_SUMMARY_PARTS {
        return;
    }
    if reasoning.summary.len() <= part {
        reasoning.summary.resize(part + 1, String::new());
    }
    if let Some(text) = reasoning.summary.get_mut(part) {
        text.push_str(more);
    }
}

/// Append streamed text to the place of a content that grows.
fn append_text(content: &mut Content, more: &str) {
    match &mut content.body {
        Body::Text(text) | Body::Refusal(text) => text.text.push_str(more),
        Body::Reasoning(reasoning) => match reasoning.text.last_mut() {
            Some(text) => text.push_str(more),
            None => reasoning.text.push(more.to_owned()),
        },
        Body::ToolCall(call) => match &mut call.arguments {
            Arguments::Text(text) | Arguments::Free(text) => text.push_str(more),
            Arguments::None | Arguments::Json(_) => {
                call.arguments = Arguments::Text(more.to_owned());
            }
        },
        Body::ToolResult(result) => match &mut result.output {
            Output::Text(text) => text.push_str(more),
            Output::None | Output::Json(_) | Output::Parts(_) => {
                result.output = Output::Text(more.to_owned());
            }
        },
        Body::Error(fault) => fault.message.push_str(more),
        Body::ApprovalRequest(request) => match &mut request.arguments {
            Arguments::Text(text) | Arguments::Free(text) => text.push_str(more),
            Arguments::None | Arguments::Json(_) => {
                request.arguments = Arguments::Text(more.to_owned());
            }
        },
        Body::Media(media) => media
            .transcript
            .get_or_insert_with(String::new)
            .push_str(more),
        // These come whole or not at all.
        Body::ApprovalResponse(_) | Body::Opaque(_) | Body::Unknown(_) => {}
    }
}
