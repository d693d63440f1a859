//! A subscriber that records all spans and events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

/// The fields of a span or an event; strings as they are, other values formatted.
pub(crate) type Fields = BTreeMap<&'static str, String>;

/// A recorded span.
#[derive(Clone, Debug)]
struct Seen {
    parent: Option<u64>,
    metadata: &'static Metadata<'static>,
    fields: Fields,
    /// The number of handles; zero once it is closed.
    handles: u64,
}

/// An event, and its span.
#[derive(Clone, Debug)]
struct Happened {
    parent: Option<u64>,
    fields: Fields,
}

#[derive(Default)]
struct Kept {
    spans: BTreeMap<u64, Seen>,
    events: Vec<Happened>,
    /// The entered spans. One stack is enough: tests run on one thread.
    entered: Vec<u64>,
}

/// The subscriber. Clones share the records.
#[derive(Clone, Default)]
pub(crate) struct Capture {
    kept: Arc<Mutex<Kept>>,
    next: Arc<AtomicU64>,
}

impl Capture {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nobody panics while holding this")
    }

    /// The spans of this crate and of its tests, as an indented list of names.
    pub(crate) fn tree(&self) -> String {
        let kept = self.kept();
        let mut out = String::new();
        kept.write(None, 0, &mut out);
        out
    }

    /// The fields of each span of a kind, in the order of creation.
    pub(crate) fn fields(&self, kind: &str) -> Vec<Fields> {
        let kept = self.kept();
        let spans = kept.spans.values();
        spans
            .filter(|span| span.metadata.name() == kind)
            .map(|span| span.fields.clone())
            .collect()
    }

    /// All recorded texts.
    pub(crate) fn everything(&self) -> String {
        let kept = self.kept();
        format!("{:?}\n{:?}", kept.spans, kept.events)
    }

    /// The kind of the span of each event with this text.
    pub(crate) fn where_said(&self, text: &str) -> Vec<Option<&'static str>> {
        let kept = self.kept();
        let events = kept.events.iter();
        events
            .filter(|event| event.fields.get("message").is_some_and(|said| said == text))
            .map(|event| Some(kept.spans[&event.parent?].metadata.name()))
            .collect()
    }

    /// The number of open spans.
    pub(crate) fn open(&self) -> usize {
        let kept = self.kept();
        kept.spans.values().filter(|span| span.handles > 0).count()
    }
}

impl Kept {
    fn write(&self, parent: Option<u64>, depth: usize, out: &mut String) {
        for (id, span) in &self.spans {
            if span.parent == parent {
                let name = span.fields.get("otel.name").map(String::as_str);
                let name = name.unwrap_or_else(|| span.metadata.name());
                out.push_str(&"  ".repeat(depth));
                out.push_str(name);
                out.push('\n');
                self.write(Some(*id), depth + 1, out);
            }
        }
    }

    fn parent(&self, explicit: Option<&Id>, contextual: bool) -> Option<u64> {
        match explicit {
            Some(id) => Some(id.into_u64()),
            None if contextual => self.entered.last().copied(),
            None => None,
        }
    }
}

struct Reading<'f>(&'f mut Fields);

impl Visit for Reading<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::new();
        span.record(&mut Reading(&mut fields));
        let mut kept = self.kept();
        let parent = kept.parent(span.parent(), span.is_contextual());
        let metadata = span.metadata();
        let seen = Seen {
            parent,
            metadata,
            fields,
            handles: 1,
        };
        kept.spans.insert(id, seen);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut kept = self.kept();
        let seen = kept.spans.get_mut(&span.into_u64()).expect("a known span");
        assert!(seen.handles > 0, "a closed span is not written to");
        values.record(&mut Reading(&mut seen.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reading(&mut fields));
        let mut kept = self.kept();
        let parent = kept.parent(event.parent(), event.is_contextual());
        kept.events.push(Happened { parent, fields });
    }

    fn enter(&self, span: &Id) {
        self.kept().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut kept = self.kept();
        let at = kept.entered.iter().rposition(|id| *id == span.into_u64());
        kept.entered.remove(at.expect("what is left was entered"));
    }

    fn clone_span(&self, id: &Id) -> Id {
        let mut kept = self.kept();
        let seen = kept.spans.get_mut(&id.into_u64()).expect("a known span");
        seen.handles += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut kept = self.kept();
        let seen = kept.spans.get_mut(&id.into_u64()).expect("a known span");
        seen.handles -= 1;
        seen.handles == 0
    }

    fn current_span(&self) -> Current {
        let kept = self.kept();
        match kept.entered.last() {
            Some(id) => Current::new(Id::from_u64(*id), kept.spans[id].metadata),
            None => Current::none(),
        }
    }
}
