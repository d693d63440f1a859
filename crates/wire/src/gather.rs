//! Putting contents back into the wire messages that held them.

use throughline_model::json::RawJson;

use crate::fill::{Fill, fill, push_array};

/// Gathers wire messages and items in order. At most one message is open at a time; parts join
/// it until another opens or an item of its own comes.
#[derive(Default)]
pub(crate) struct Gather {
    done: Vec<String>,
    open: Option<Open>,
}

struct Open {
    envelope: RawJson,
    /// The elements for each place of the envelope, with commas.
    elements: Vec<(&'static str, String)>,
    bare: Option<(&'static str, String)>,
    /// The index of the neutral message it was made for; none if it came from the wire.
    made_for: Option<usize>,
}

impl Gather {
    /// Open a message as it came from the wire.
    pub(crate) fn open(&mut self, envelope: RawJson) {
        self.start(envelope, None);
    }

    /// Go on with the message that was made for the neutral message `index`, or with whatever came
    /// from the wire and continues (`joins`); else open a new one.
    pub(crate) fn open_for(&mut self, index: usize, envelope: impl FnOnce() -> RawJson) {
        if self.made_for() != Some(index) {
            self.start(envelope(), Some(index));
        }
    }

    fn start(&mut self, envelope: RawJson, made_for: Option<usize>) {
        self.close();
        self.open = Some(Open {
            envelope,
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
        let Some(open) = &mut self.open else { return };
        match open.elements.iter_mut().find(|(found, _)| *found == place) {
            Some((_, elements)) => {
                elements.push(',');
                elements.push_str(json);
            }
            None => open.elements.push((place, json.to_owned())),
        }
    }

    /// The same for an element that is not wanted elsewhere.
    pub(crate) fn own_element(&mut self, place: &'static str, json: String) {
        match &mut self.open {
            Some(open) if open.elements.iter().all(|(found, _)| *found != place) => {
                open.elements.push((place, json));
            }
            _ => self.element(place, &json),
        }
    }

    /// Write an element straight into its place; `write` must append one value.
    pub(crate) fn write_element(&mut self, place: &'static str, write: impl FnOnce(&mut String)) {
        let Some(open) = &mut self.open else { return };
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
    pub(crate) fn bare(&mut self, place: &'static str, text: &str) {
        if let Some(open) = &mut self.open {
            open.bare = Some((place, text.to_owned()));
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
        let size: usize = open.elements.iter().map(|(_, text)| text.len() + 2).sum();
        // With room for escapes: a buffer that grows at the end is copied whole.
        let bare = open.bare.as_ref().map_or(0, |(_, text)| text.len());
        let size = size + bare + bare / 8;
        let mut out = String::with_capacity(open.envelope.get().len() + size);
        let elements = open
            .elements
            .iter()
            .map(|(place, elements)| ([*place], Fill::Elements(elements)));
        let bare = open.bare.iter();
        let bare = bare.map(|(place, text)| ([*place], Fill::Text(text)));
        let mut fills = elements.chain(bare);
        match (fills.next(), fills.next()) {
            (Some(one), None) => fill(&mut out, &open.envelope, &[one]),
            (Some(one), Some(two)) => {
                let mut all = vec![one, two];
                all.extend(fills);
                fill(&mut out, &open.envelope, &all);
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

/// Join JSON texts to an array.
pub(crate) fn array(items: &[String]) -> String {
    let mut out = String::new();
    push_array(&mut out, items);
    out
}
