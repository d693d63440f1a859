use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::StreamExt;
use throughline::ChatClient;
use throughline::client::{
    Abilities, ChatRequest, ClientError, ErrorKind, EventStream, HistoryOwner, StoresHistory,
};
use throughline::model::{Event, Fold, Message, Pairing, Response};

use super::{ScriptedClient, Step};

/// The ids of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// A new id with every call; older ones stay valid.
    PerCall,
    /// One id for the whole conversation.
    Stable,
    /// No id: it stores conversations without returning one.
    Unsaid,
}

/// A service that stores conversations itself, with answers from a script.
///
/// A request that continues a conversation must name a stored one, must not repeat its calls, and
/// must answer every waiting call with one result; anything else is refused as a vendor would.
/// Request and answer are stored when the answer has ended, and not if the caller drops it. A step
/// with [`Step::kept_as`] has that id.
///
/// A request with a caller-owned history is stored only by a service that always stores.
pub struct StoringService {
    script: ScriptedClient,
    held: Arc<Mutex<Held>>,
    ids: Ids,
}

#[derive(Default)]
struct Held {
    conversations: BTreeMap<String, Vec<Message>>,
    made: usize,
}

/// How an answer is stored.
struct Keeping {
    held: Arc<Mutex<Held>>,
    ids: Ids,
    /// The id that the request continues.
    asked: Option<String>,
    /// The messages before the answer.
    before: Vec<Message>,
}

impl StoringService {
    /// A service that stores on request, with one step per call.
    pub fn new(ids: Ids, steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            script: ScriptedClient::new(steps),
            held: Arc::default(),
            ids,
        }
        .storing(StoresHistory::Optional)
    }

    /// Sets whether it stores always or on request.
    #[must_use]
    pub fn storing(self, stores: StoresHistory) -> Self {
        let abilities = Abilities {
            stores_history: stores,
            ..self.script.abilities().clone()
        };
        self.with_abilities(abilities)
    }

    /// Sets other abilities.
    #[must_use]
    pub fn with_abilities(mut self, abilities: Abilities) -> Self {
        self.script = self.script.with_abilities(abilities);
        self
    }

    /// The script, and the recorded calls.
    pub fn script(&self) -> &ScriptedClient {
        &self.script
    }

    /// The messages under an id; empty if it is unknown.
    pub fn held(&self, id: &str) -> Vec<Message> {
        let held = lock(&self.held);
        held.conversations.get(id).cloned().unwrap_or_default()
    }

    /// All ids, in no particular order.
    pub fn ids(&self) -> Vec<String> {
        lock(&self.held).conversations.keys().cloned().collect()
    }

    /// Stores a conversation that was made elsewhere.
    pub fn put(&self, id: impl Into<String>, messages: impl IntoIterator<Item = Message>) {
        let messages = messages.into_iter().collect();
        lock(&self.held).conversations.insert(id.into(), messages);
    }

    /// Forgets a conversation, as vendors do after a while.
    pub fn forget(&self, id: &str) {
        lock(&self.held).conversations.remove(id);
    }

    /// Validates a request; returns how its answer is stored, if it is.
    fn admit(&self, request: &ChatRequest<'_>) -> Result<Option<Keeping>, ClientError> {
        let abilities = self.script.abilities();
        let upstream = &abilities.upstream;
        let (asked, mut before) = match request.history_owner {
            HistoryOwner::Caller => (None, Vec::new()),
            HistoryOwner::Service { .. } if abilities.stores_history == StoresHistory::Never => {
                let message = "this service keeps no conversations";
                return Err(ClientError::new(ErrorKind::Setup, upstream, message));
            }
            HistoryOwner::Service { id: None } => (None, Vec::new()),
            HistoryOwner::Service { id: Some(id) } => {
                let known = lock(&self.held).conversations.get(id).cloned();
                let known = known.ok_or_else(|| {
                    let message = format!("there is no conversation {id}");
                    ClientError::new(ErrorKind::NotFound, upstream, message)
                })?;
                (Some(id.to_owned()), known)
            }
        };
        before.extend(request.messages().cloned());
        check(&before)
            .map_err(|message| ClientError::new(ErrorKind::Invalid, upstream, message))?;
        let told_not_to = request.history_owner == HistoryOwner::Caller
            && abilities.stores_history != StoresHistory::Always;
        Ok((!told_not_to).then(|| Keeping {
            held: Arc::clone(&self.held),
            ids: self.ids,
            asked,
            before,
        }))
    }
}

impl Keeping {
    /// Stores an answer; returns its id, if the service returns one.
    fn keep(self, response: Response) -> Option<String> {
        let mut held = lock(&self.held);
        held.made += 1;
        let number = held.made;
        let id = response.service.unwrap_or_else(|| match self.ids {
            Ids::PerCall => format!("resp_held_{number}"),
            Ids::Stable => self.asked.unwrap_or_else(|| format!("conv_held_{number}")),
            Ids::Unsaid => format!("unsaid_{number}"),
        });
        let mut messages = self.before;
        messages.extend(response.messages);
        held.conversations.insert(id.clone(), messages);
        (self.ids != Ids::Unsaid).then_some(id)
    }
}

/// Whether each call of a conversation has one result, and each result a call before it.
fn check(messages: &[Message]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    let mut made = BTreeSet::new();
    for content in messages.iter().flat_map(|message| &message.contents) {
        if let Some(call) = content.as_tool_call() {
            let id = call.call.value();
            if !made.insert(id) {
                return Err(format!("call {id} is there already"));
            }
            open.insert(id);
        }
        if let Some(result) = content.as_tool_result()
            && result.pairing() == Pairing::Answers
        {
            let id = result.call().value();
            if !open.remove(id) {
                return Err(format!("no call {id} waits for a result"));
            }
        }
    }
    match open.first() {
        Some(id) => Err(format!("call {id} has no result")),
        None => Ok(()),
    }
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl ChatClient for StoringService {
    fn abilities(&self) -> &Abilities {
        self.script.abilities()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let keeping = self.admit(request)?;
        let mut response = self.script.respond(request).await?;
        if let Some(keeping) = keeping {
            response.service = keeping.keep(response.clone());
        }
        Ok(response)
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mut keeping = self.admit(request)?;
        let events = self.script.stream(request).await?;
        let mut fold = Fold::new();
        let kept = events.map(move |event| {
            let mut event = event?;
            fold.push(event.clone());
            if let Event::Finished { service, .. } = &mut event
                && let Some(keeping) = keeping.take()
            {
                *service = keeping.keep(std::mem::take(&mut fold).finish());
            }
            Ok(event)
        });
        Ok(Box::pin(kept))
    }
}
