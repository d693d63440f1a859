//! What the stored events of a run have said, for a worker that resumes the run.

use std::collections::{BTreeSet, HashSet};

use throughline_model::{MessageId, Place};
use throughline_store::{Flush, Result, RunId, Store, TenantScope};

use super::codec::decode;
use crate::run::event::RunEvent;

/// How many events are asked for at once.
const PAGE: usize = 256;

/// What readers of a run know so far. A worker that died may have done more than it published.
#[derive(Debug, Default)]
pub(crate) struct PublishedEvents {
    messages: HashSet<MessageId>,
    results: HashSet<(u32, u32)>,
    /// Contents of an answer without a message that has them.
    unfinished: BTreeSet<(u32, Place)>,
}

impl PublishedEvents {
    pub(crate) fn of<'e>(events: impl IntoIterator<Item = &'e RunEvent>) -> Self {
        let mut published = Self::default();
        for event in events {
            published.add(event);
        }
        published
    }

    /// Read the stored events of a run. Events that cannot be decoded are skipped.
    pub(crate) async fn read(store: &Store, scope: &TenantScope, run: RunId) -> Result<Self> {
        let mut published = Self::default();
        let mut from = 0;
        loop {
            let page = store.events(scope, run, from, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(published);
            };
            from = last.end();
            let events = page.iter().filter_map(Flush::events).flatten();
            for event in events.filter_map(|event| decode(&event).ok()) {
                published.add(&event);
            }
        }
    }

    fn add(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Text { step, at, .. }
            | RunEvent::Refusal { step, at, .. }
            | RunEvent::Summary { step, at, .. }
            | RunEvent::Reasoning { step, at, .. }
            | RunEvent::Content { step, at, .. } => {
                self.unfinished.insert((*step, *at));
            }
            RunEvent::Incomplete { step, at } => {
                self.unfinished.remove(&(*step, *at));
            }
            RunEvent::Message(message) => {
                self.unfinished.clear();
                self.messages.extend(message.id.clone());
            }
            RunEvent::Result { step, position, .. } => {
                self.results.insert((*step, *position));
            }
            RunEvent::Started { .. }
            | RunEvent::Asked { .. }
            | RunEvent::Compacted { .. }
            | RunEvent::Narrated { .. }
            | RunEvent::Dispatched { .. }
            | RunEvent::Ended { .. } => {}
        }
    }

    pub(crate) fn has_message(&self, id: Option<&MessageId>) -> bool {
        id.is_some_and(|id| self.messages.contains(id))
    }

    pub(crate) fn has_result(&self, step: u32, position: u32) -> bool {
        self.results.contains(&(step, position))
    }

    /// Contents that were begun and never became part of a message: step and place.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = (u32, Place)> {
        self.unfinished.iter().copied()
    }
}
