//! Builds messages for contents of other vendors.

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_model::{Citation, Message, Role};

use super::parts;

/// What a message is written for: answers have fewer forms than history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EncodeFor {
    Request,
    Response,
    /// A response that is sent in chunks, which have no place for citations.
    Stream,
}

impl EncodeFor {
    /// Whether the message is the model's.
    pub(super) fn is_response(self) -> bool {
        match self {
            Self::Request => false,
            Self::Response | Self::Stream => true,
        }
    }
}

/// The role of the model.
pub(super) const ASSISTANT: &str = "assistant";

/// A message in the making.
pub(super) struct MessageBuilder {
    /// The index of the neutral message that it is for.
    pub(super) index: usize,
    pub(super) role: &'static str,
    name: Option<String>,
    pieces: Vec<ContentPiece>,
    /// Characters of text so far; citations count from the start.
    length: u64,
    citations: Vec<Citation>,
    refusal: Option<String>,
    /// Calls as JSON text.
    pub(super) calls: Vec<String>,
}

enum ContentPiece {
    Text(String),
    /// A part as JSON text.
    Part(String),
}

impl MessageBuilder {
    /// A message in the role of the model, or in that of the message it is for.
    pub(super) fn new(message: &Message, index: usize, role: &'static str) -> Self {
        Self {
            index,
            role,
            name: message.author.clone().filter(|name| is_name(name)),
            pieces: Vec::new(),
            length: 0,
            citations: Vec::new(),
            refusal: None,
            calls: Vec::new(),
        }
    }

    /// An answer without content.
    pub(super) fn nothing() -> &'static str {
        r#"{"role":"assistant","content":null,"refusal":null}"#
    }

    pub(super) fn text(&mut self, text: &str) {
        self.length += text.chars().count() as u64;
        self.pieces.push(ContentPiece::Text(text.to_owned()));
    }

    pub(super) fn part(&mut self, json: String) {
        self.pieces.push(ContentPiece::Part(json));
    }

    pub(super) fn refusal(&mut self, text: &str) {
        self.refusal.get_or_insert_with(String::new).push_str(text);
    }

    /// Cite for the text that comes next.
    pub(super) fn cite(&mut self, citations: &[Citation]) {
        let moved = |place: Option<u64>| Some(self.length.saturating_add(place.unwrap_or(0)));
        let shifted: Vec<_> = citations
            .iter()
            .map(|citation| Citation {
                start: moved(citation.start),
                end: moved(citation.end),
                ..citation.clone()
            })
            .collect();
        self.citations.extend(shifted);
    }

    /// The message as JSON text; none if nothing came.
    pub(super) fn write(self, target: EncodeFor) -> Option<String> {
        if self.pieces.is_empty() && self.refusal.is_none() && self.calls.is_empty() {
            return None;
        }
        let pieces = self.pieces.iter().map(|piece| match piece {
            ContentPiece::Text(text) | ContentPiece::Part(text) => text.len() + text.len() / 8 + 32,
        });
        let calls = self.calls.iter().map(|call| call.len() + 1);
        let size: usize = pieces.chain(calls).sum();
        let mut out = String::with_capacity(size + 64);
        let mut object = ObjectWriter::new(&mut out);
        object.str("role", self.role);
        if let Some(name) = &self.name
            && !target.is_response()
        {
            object.str("name", name);
        }
        self.content(object.key("content"), target);
        match (&self.refusal, target) {
            (Some(text), _) => {
                object.str("refusal", text);
            }
            (None, EncodeFor::Response | EncodeFor::Stream) => {
                object.raw("refusal", "null");
            }
            (None, EncodeFor::Request) => {}
        }
        if target == EncodeFor::Response {
            self.annotations(&mut object);
        }
        // An empty array is refused.
        if !self.calls.is_empty() {
            let mut array = ArrayWriter::new(object.key("tool_calls"));
            for call in &self.calls {
                array.raw(call);
            }
            array.end();
        }
        object.end();
        Some(out)
    }

    /// One text is a string. Several are parts in a history; an answer has a string only.
    fn content(&self, out: &mut String, target: EncodeFor) {
        let texts: Vec<&str> = self
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                ContentPiece::Text(text) => Some(text.as_str()),
                ContentPiece::Part(_) => None,
            })
            .collect();
        match (self.pieces.as_slice(), target) {
            ([], _) => out.push_str("null"),
            ([ContentPiece::Text(text)], _) => throughline_model::json::push_string(out, text),
            (_, EncodeFor::Response | EncodeFor::Stream) if texts.len() == self.pieces.len() => {
                throughline_model::json::push_string(out, &texts.concat());
            }
            (pieces, _) => {
                let mut array = ArrayWriter::new(out);
                for piece in pieces {
                    match piece {
                        ContentPiece::Text(text) => parts::write_text(array.slot(), text),
                        ContentPiece::Part(json) => {
                            array.raw(json);
                        }
                    }
                }
                array.end();
            }
        }
    }

    fn annotations(&self, object: &mut ObjectWriter<'_>) {
        let cited: Vec<_> = self
            .citations
            .iter()
            .filter_map(|citation| citation.url.as_deref().map(|url| (url, citation)))
            .collect();
        if cited.is_empty() {
            return;
        }
        let mut array = ArrayWriter::new(object.key("annotations"));
        for (url, citation) in cited {
            let mut annotation = ObjectWriter::new(array.slot());
            annotation.str("type", "url_citation");
            let mut inner = ObjectWriter::new(annotation.key("url_citation"));
            inner
                .number("start_index", citation.start.unwrap_or(0))
                .number("end_index", citation.end.unwrap_or(0))
                .str("title", citation.title.as_deref().unwrap_or(url))
                .str("url", url);
            inner.end();
            annotation.end();
        }
        array.end();
    }
}

/// The word for a role.
pub(super) fn role(role: &Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::Assistant => ASSISTANT,
        Role::User | Role::Tool | Role::Other(_) => "user",
    }
}

/// Whether a name may stand in a message here.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |found: char| !found.is_whitespace() && !"<|\\/>".contains(found);
    (1..=64).contains(&name.chars().count()) && name.chars().all(allowed)
}
