//! Counts tokens as the models of one vendor do, each message once.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::{Arguments, Body, Content, Message, Output};

/// Counts tokens, with a cache.
#[derive(Default)]
pub(crate) struct Counter {
    /// By address; the message is kept so that its address is not reused.
    messages: HashMap<*const Message, (Arc<Message>, u64)>,
    lines: HashMap<String, u64>,
}

impl Counter {
    /// The tokens of a view.
    pub(crate) fn view(&mut self, view: &[Arc<Message>]) -> u64 {
        view.iter().map(|message| self.message(message)).sum()
    }

    /// The tokens of a message: texts, names, arguments and results, without framing.
    pub(crate) fn message(&mut self, message: &Arc<Message>) -> u64 {
        if let Some((_, tokens)) = self.messages.get(&Arc::as_ptr(message)) {
            return *tokens;
        }
        let tokens = message
            .contents
            .iter()
            .map(|content| self.content(content))
            .sum();
        let known = (Arc::clone(message), tokens);
        self.messages.insert(Arc::as_ptr(message), known);
        tokens
    }

    fn content(&mut self, content: &Content) -> u64 {
        match &content.body {
            Body::Text(text) | Body::Refusal(text) => self.text(&text.text),
            Body::ToolCall(call) => {
                let arguments = match &call.arguments {
                    Arguments::None => 0,
                    Arguments::Text(text) | Arguments::Free(text) => self.text(text),
                    Arguments::Json(raw) => self.text(raw.get()),
                };
                self.text(&call.name) + arguments
            }
            Body::ToolResult(result) => match &result.output {
                Output::None => 0,
                Output::Text(text) => self.text(text),
                Output::Json(raw) => self.text(raw.get()),
                Output::Parts(parts) => parts.iter().map(|part| self.content(part)).sum(),
            },
            Body::Media(_)
            | Body::Error(_)
            | Body::Reasoning(_)
            | Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => 0,
        }
    }

    /// The tokens of a text.
    pub(crate) fn text(&mut self, text: &str) -> u64 {
        let lines = &mut self.lines;
        let counted = segments(text).map(|segment| match lines.get(segment) {
            Some(tokens) => *tokens,
            None => {
                let tokens = bpe_openai::o200k_base().count(segment) as u64;
                lines.insert(segment.to_owned(), tokens);
                tokens
            }
        });
        counted.sum()
    }

    /// Forget messages, which would be kept for their addresses; their lines stay counted.
    pub(crate) fn forget_messages(&mut self) {
        self.messages.clear();
    }
}

/// The lines of a text, each with the line breaks and blank lines behind it. No token of the
/// vocabulary goes from one to the next, so their counts add up.
fn segments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = segment_end(rest);
        let (segment, more) = rest.split_at(end);
        rest = more;
        (end > 0).then_some(segment)
    })
}

fn segment_end(text: &str) -> usize {
    let mut from = 0;
    while let Some(first) = text[from..].find('\n') {
        let behind = &text[from + first..];
        let Some(blank) = behind.find(|c: char| !c.is_whitespace()) else {
            break;
        };
        let last = behind[..blank].rfind('\n').map_or(blank, |last| last + 1);
        // A token of punctuation may go on with a slash on the next line.
        if !behind[last..].starts_with('/') {
            return from + first + last;
        }
        from += first + last;
    }
    text.len()
}
