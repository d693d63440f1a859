//! The warnings of a run. Tests share a process, and runs use any of its threads, so one subscriber
//! records all warnings, and a test filters by its run.

use std::fmt;
use std::sync::{Mutex, Once, PoisonError};

use throughline::store::RunId;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static WARNED: Mutex<Vec<Warning>> = Mutex::new(Vec::new());

#[derive(Clone, Default)]
struct Warning {
    run: String,
    text: String,
}

/// Records warnings from now on.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listening).unwrap());
}

/// The warnings that name a run.
pub(crate) fn of(run: RunId) -> Vec<String> {
    let run = run.to_string();
    let warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    let named = warned.iter().filter(|warning| warning.run == run);
    named.map(|warning| warning.text.clone()).collect()
}

struct Listening;

impl Visit for Warning {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "run" => self.run = format!("{value:?}"),
            "message" => self.text = format!("{value:?}"),
            _ => {}
        }
    }
}

impl Subscriber for Listening {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut warning = Warning::default();
        event.record(&mut warning);
        let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
        warned.push(warning);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
