//! Records log output, to search it for keys.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static LOGGED: Mutex<String> = Mutex::new(String::new());
static ONCE: Once = Once::new();

struct Collector;

struct Words<'a>(&'a mut String);

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        span.record(&mut Words(&mut logged));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        values.record(&mut Words(&mut logged));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        event.record(&mut Words(&mut logged));
        logged.push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Records from now on, at every level, from every target.
pub(crate) fn begin() {
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Collector).expect("nobody else collects");
    });
}

/// The log output so far.
pub(crate) fn logged() -> String {
    LOGGED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}
