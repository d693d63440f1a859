//! Runs that tests write by hand.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::{
    Anchor, Begin, CallState, Effect, EventNo, Flush, Heartbeat, Journal, Leasing, ManualClock,
    NewItem, NewThread, Options, PlannedCall, Publish, RunId, Started, Step, Store, TenantScope,
    ThreadId,
};
use throughline_testkit::record::{self, calling, user};

use super::encode;
use crate::run::RunEvent;
use crate::thread::StopReason;

pub(super) const LEASE: Duration = Duration::from_secs(10);

pub(super) struct Fixture {
    pub(super) store: Store,
    pub(super) scope: TenantScope,
    pub(super) clock: Arc<ManualClock>,
    pub(super) thread: ThreadId,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        let options = Options {
            clock: Arc::<ManualClock>::clone(&clock),
            heartbeat: Heartbeat::Manual,
            lease: LEASE,
        };
        Self {
            clock,
            ..Self::on(Store::open_with("memory:", options).await.unwrap())
        }
    }

    /// On a store that has a clock of its own.
    pub(super) fn on(store: Store) -> Self {
        Self {
            thread: store.ids().thread(),
            scope: TenantScope::local(),
            store,
            clock: Arc::new(ManualClock::at(0)),
        }
    }

    /// Begin the one run, with events if it has some.
    pub(super) async fn begin(&self, events: &[RunEvent]) -> Started {
        let at = Anchor::New {
            thread: NewThread::new(self.thread.clone()),
            leasing: Leasing::Thread,
        };
        let mut begin = Begin::new(
            self.store.ids().run(),
            at,
            NewItem::of(&[user("when is high water?")]),
        );
        begin.events = (!events.is_empty()).then(|| flush(0, events));
        record::begin(&self.store, &self.scope, &begin)
            .await
            .unwrap()
    }

    pub(super) async fn journal(&self, run: RunId) -> Journal {
        self.store.journal(&self.scope, run).await.unwrap()
    }
}

pub(super) fn flush(first: EventNo, events: &[RunEvent]) -> Flush {
    Flush::new(first, &events.iter().map(encode).collect::<Vec<_>>())
}

/// A step in which the model makes calls.
pub(super) fn step(no: u32, ids: &[&str]) -> Step {
    let planned = |id: &&str| PlannedCall {
        call: (*id).to_owned(),
        tool: "get_tide".to_owned(),
        effect: Effect::Once,
        state: CallState::Intent,
    };
    let ids_owned: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    Step {
        no,
        items: NewItem::of(&[calling(&ids_owned)]),
        calls: ids.iter().map(planned).collect(),
        ..Step::default()
    }
}

/// The end of a run that says why.
pub(super) fn publish(step: u32, said: &[Message], stop: StopReason) -> Publish {
    let note = RawJson::object(|note| {
        note.str("stop", stop.as_str());
    });
    Publish {
        note: Some(note),
        ..Publish::new(step, NewItem::of(said))
    }
}
