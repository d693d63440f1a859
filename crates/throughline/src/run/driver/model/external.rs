//! The history in a message store of the application.

use std::sync::Arc;

use throughline_model::Message;
use throughline_model::json::{self, RawJson, Value};
use throughline_store::{RunId, State};

use crate::prompt::View;
use crate::run::driver::{Driver, DriverError};
use crate::run::outcome::RunError;
use crate::run::setup::AgentSetup;
use crate::thread::{MessageStore, StopReason};
use crate::trials::planted;

/// Under which name the state keeps the key of the message store.
const KEY: &str = "throughline.key";

/// Under which name the state keeps the append that follows a node.
const PENDING: &str = "throughline.append";

/// A history in a message store of the application, as a run uses it.
///
/// Messages are appended after the journal has them, and each append covers the same messages
/// whenever it is made: a store that honours idempotency keys has every message once. With
/// `per_call`, a node is published before its messages are appended. The state of the node names that
/// append, and the next run on the thread repeats it before it reads the history.
pub(crate) struct ExternalHistory {
    store: Arc<dyn MessageStore>,
    key: RawJson,
    /// How many messages of the run were appended.
    appended: usize,
}

/// An append that follows the node whose state has it.
struct PendingAppend {
    run: RunId,
    /// The messages of that run: the last ones of the history at the node.
    from: usize,
    until: usize,
}

impl PendingAppend {
    fn read(state: &State) -> Option<Self> {
        let value = json::parse(state.provider(PENDING)?.get()).ok()?;
        let number = |key: &str| usize::try_from(value.get(key).and_then(Value::as_u64)?).ok();
        Some(Self {
            run: value.get("run")?.as_str()?.parse().ok()?,
            from: number("from")?,
            until: number("until")?,
        })
    }

    fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object
                .str("run", &self.run.to_string())
                .number("from", self.from as u64)
                .number("until", self.until as u64);
        })
    }
}

/// The value under which an append is made: the same for each attempt.
fn idempotency(run: RunId, from: usize) -> String {
    format!("{run}.{from}")
}

impl ExternalHistory {
    pub(super) fn new(
        agent: &AgentSetup,
        store: &str,
        key: &RawJson,
        state: &State,
    ) -> Result<Self, RunError> {
        let found = agent.message_stores.get(store);
        let found = found.ok_or_else(|| RunError::UnknownMessageStore {
            name: store.to_owned(),
            known: agent.message_stores.keys().cloned().collect(),
        })?;
        Ok(Self {
            store: Arc::clone(found),
            key: state.provider(KEY).unwrap_or(key).clone(),
            appended: 0,
        })
    }

    /// Reads the history, about `budget` tokens of it.
    pub(super) async fn load(&self, budget: Option<u64>) -> Result<View, RunError> {
        let history = self.store.load(&self.key, budget).await;
        let history = history.map_err(|source| RunError::MessageStore { source })?;
        Ok(View::new(history))
    }

    /// So many messages of the run were appended before this process took it.
    pub(crate) fn resume_at(&mut self, appended: usize) {
        self.appended = appended;
    }

    /// The state of the node that is published next says which append follows it.
    pub(crate) fn announce(&self, run: RunId, until: usize, state: &mut State) {
        let pending = PendingAppend {
            run,
            from: self.appended,
            until,
        };
        let is_new = until > self.appended;
        state.set_provider(PENDING, is_new.then(|| pending.to_json()));
    }

    /// Makes the append again that follows the node at which the thread stands: it is unknown
    /// whether it was made before its run failed, was given up or lost its process.
    pub(crate) async fn repeat(
        &mut self,
        history: &[Arc<Message>],
        state: &mut State,
    ) -> Result<(), RunError> {
        let Some(pending) = PendingAppend::read(state) else {
            return Ok(());
        };
        let count = pending.until.saturating_sub(pending.from);
        let first = history.len().saturating_sub(count);
        let key = idempotency(pending.run, pending.from);
        self.append(&history[first..], &key, state).await
    }

    /// Appends the messages of a run up to an index.
    async fn append_until(
        &mut self,
        run: RunId,
        messages: &[Arc<Message>],
        until: usize,
        state: &mut State,
    ) -> Result<(), RunError> {
        if self.appended >= until {
            return Ok(());
        }
        let key = match planted("loop-append-renumbered") {
            true => format!("{run}.{until}"),
            false => idempotency(run, self.appended),
        };
        self.append(&messages[self.appended..until], &key, state)
            .await?;
        self.appended = until;
        Ok(())
    }

    async fn append(
        &mut self,
        messages: &[Arc<Message>],
        idempotency: &str,
        state: &mut State,
    ) -> Result<(), RunError> {
        let messages: Vec<Message> = messages.iter().map(|one| Message::clone(one)).collect();
        let given = self.store.append(&self.key, &messages, idempotency).await;
        let given = given.map_err(|source| RunError::MessageStore { source })?;
        if let Some(key) = given {
            state.set_provider(KEY, Some(key.clone()));
            self.key = key;
        }
        state.set_provider(PENDING, None);
        Ok(())
    }
}

impl Driver {
    /// Append the messages of the run, up to an index, to the message store of the application if
    /// that keeps the history. The journal has them.
    pub(crate) async fn append_external(&mut self, until: usize) -> Result<(), DriverError> {
        let state = &mut self.state.current;
        let Some(external) = self.model.owner.external_mut() else {
            return Ok(());
        };
        let messages = self.transcript.messages();
        let appended = external.append_until(self.run, messages, until, state);
        appended.await.map_err(DriverError::Wait)
    }

    /// Record the end of a run before its last messages are appended to the message store of the
    /// application. If this process dies after the append, the worker that takes the run over finds
    /// the end in the journal, appends the same messages and does not continue the run.
    pub(crate) async fn record_before_append(
        &mut self,
        stop: StopReason,
    ) -> Result<(), DriverError> {
        if !self.model.owner.is_external() {
            return Ok(());
        }
        self.store_results().await?;
        // New input withdrew the calls that a parked run waited for: no answer may come for them now.
        let is_withdrawn = stop == StopReason::Parked && self.turn.waiting().is_empty();
        if stop == StopReason::Cancelled || is_withdrawn {
            let home = self.log.recorder.home().clone();
            home.store.cancel(&home.scope, self.run).await?;
        }
        self.record_rest(stop).await
    }
}
