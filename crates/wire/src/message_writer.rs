//! Putting contents back into the wire messages that held them.

use std::borrow::Cow;

use throughline_model::json::RawJson;
use throughline_model::{Arguments, Body, Content, Output, ToolCall, ToolResult};

use crate::template::{TemplateValue, push_array, restore};

/// Gathers wire messages and items in order. At most one message is open at a time; parts join
/// it until another opens or an item of its own comes.
#[derive(Default)]
pub(crate) struct MessageWriter<'m> {
    done: Vec<String>,
    open: Option<Open<'m>>,
}

struct Open<'m> {
    envelope: Cow<'m, RawJson>,
    /// The message as it will be, up to its last element so far. Nearly all messages have elements
    /// in one place only, and these are written once.
    inline: Option<InlineElements>,
    /// The elements for other places of the envelope, with commas.
    elements: Vec<(&'static str, String)>,
    bare: Option<(&'static str, &'m str)>,
    /// The index of the neutral message it was made for; none if it came from the wire.
    made_for: Option<usize>,
}

/// The beginning of an envelope, and elements in its hole.
struct InlineElements {
    place: &'static str,
    text: String,
    /// Where the elements begin.
    from: usize,
    /// Where the envelope goes on behind them.
    rest: usize,
}

impl InlineElements {
    /// None if the envelope has no hole there.
    fn new(place: &'static str, envelope: &RawJson, room: usize) -> Option<Self> {
        let at = envelope.locate(&[place])?;
        let whole = envelope.get();
        let from = at.start + 1;
        if &whole[at.clone()] != "[]" {
            return None;
        }
        let mut text = String::with_capacity(whole.len() + room);
        text.push_str(&whole[..from]);
        Some(Self {
            place,
            text,
            from,
            rest: at.end - 1,
        })
    }
}

impl<'m> MessageWriter<'m> {
    /// Open a message as it came from the wire.
    pub(crate) fn open(&mut self, envelope: &'m RawJson) {
        self.start(Cow::Borrowed(envelope), None);
    }

    /// Go on with the message that was made for the neutral message `index`, or with whatever came
    /// from the wire and continues (`joins`); else open a new one.
    pub(crate) fn open_for(&mut self, index: usize, envelope: impl FnOnce() -> Cow<'m, RawJson>) {
        if self.made_for() != Some(index) {
            self.start(envelope(), Some(index));
        }
    }

    fn start(&mut self, envelope: Cow<'m, RawJson>, made_for: Option<usize>) {
        self.close();
        self.open = Some(Open {
            envelope,
            inline: None,
            elements: Vec::new(),
            bare: None,
            made_for,
        });
    }

    /// Whether a message is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The neutral message for which the open one was made.
    pub(crate) fn made_for(&self) -> Option<usize> {
        self.open.as_ref().and_then(|open| open.made_for)
    }

    /// Add an element to a place of the open message.
    pub(crate) fn element(&mut self, place: &'static str, json: &str) {
        self.write_element(place, json.len(), |out| out.push_str(json));
    }

    /// Write an element straight into its place; `write` must append one value, for which there
    /// is `room`.
    pub(crate) fn write_element(
        &mut self,
        place: &'static str,
        room: usize,
        write: impl FnOnce(&mut String),
    ) {
        let Some(open) = &mut self.open else { return };
        if open.inline.is_none() && open.elements.is_empty() {
            open.inline = InlineElements::new(place, &open.envelope, room);
        }
        if let Some(inline) = open.inline.as_mut().filter(|found| found.place == place) {
            if inline.text.len() > inline.from {
                inline.text.push(',');
            }
            return write(&mut inline.text);
        }
        match open.elements.iter_mut().find(|(found, _)| *found == place) {
            Some((_, elements)) => {
                elements.push(',');
                write(elements);
            }
            None => {
                let mut elements = String::new();
                write(&mut elements);
                open.elements.push((place, elements));
            }
        }
    }

    /// Put a bare string into a place of the open message.
    pub(crate) fn bare_string(&mut self, place: &'static str, text: &'m str) {
        if let Some(open) = &mut self.open {
            open.bare = Some((place, text));
        }
    }

    /// Add an item of its own.
    pub(crate) fn item(&mut self, json: String) {
        self.close();
        self.done.push(json);
    }

    /// Close the open message.
    pub(crate) fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let inline = match open.inline {
            Some(inline) if open.elements.is_empty() && open.bare.is_none() => {
                let mut out = inline.text;
                out.push_str(&open.envelope.get()[inline.rest..]);
                return self.done.push(out);
            }
            inline => inline,
        };
        let inline = inline
            .iter()
            .map(|found| (found.place, &found.text[found.from..]));
        let others = open.elements.iter();
        let others = others.map(|(place, elements)| (*place, elements.as_str()));
        let elements = inline
            .chain(others)
            .map(|(place, elements)| ([place], TemplateValue::Elements(elements)));
        let bare = open.bare.iter();
        let bare = bare.map(|(place, text)| ([*place], TemplateValue::Text(text)));
        let mut fills = elements.chain(bare);
        let mut out = String::new();
        match (fills.next(), fills.next()) {
            (Some(one), None) => restore(&mut out, &open.envelope, &[one]),
            (Some(one), Some(two)) => {
                let mut all = vec![one, two];
                all.extend(fills);
                restore(&mut out, &open.envelope, &all);
            }
            (None, _) => out.push_str(open.envelope.get()),
        }
        self.done.push(out);
    }

    /// Everything gathered, each as JSON text.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.close();
        self.done
    }
}

/// About how much room a content takes. A buffer that grows is copied whole, so those for long
/// texts are made large enough.
pub(crate) fn estimated_size(content: &Content) -> usize {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => with_overhead(text.text.len()),
        Body::ToolCall(call) => estimated_call_size(call),
        Body::ToolResult(result) => estimated_result_size(result),
        Body::Reasoning(_)
        | Body::Media(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => with_overhead(0),
    }
}

/// About how much room a call takes.
pub(crate) fn estimated_call_size(call: &ToolCall) -> usize {
    with_overhead(match &call.arguments {
        Arguments::None => 0,
        Arguments::Text(text) | Arguments::Free(text) => text.len(),
        Arguments::Json(json) => json.get().len(),
    })
}

/// About how much room a result takes.
pub(crate) fn estimated_result_size(result: &ToolResult) -> usize {
    with_overhead(match &result.output {
        Output::None | Output::Parts(_) => 0,
        Output::Text(text) => text.len(),
        Output::Json(json) => json.get().len(),
    })
}

/// A text with some escapes, and what stands around it.
fn with_overhead(text: usize) -> usize {
    text + text / 8 + 128
}

/// Join JSON texts to an array.
pub(crate) fn array(items: &[String]) -> String {
    let mut out = String::new();
    push_array(&mut out, items);
    out
}
