use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline::ChatClient;
use throughline::client::{
    Abilities, CallStatus, ChatRequest, ClientError, ErrorKind, EventStream, HistoryOwner,
    StoredConversations, StoresHistory, VendorDeletion,
};
use throughline::model::json::{self, RawJson};
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
///
/// A stored answer can be looked up by the handle that its stream announces. With
/// [`StoringService::lose_stream`] the service finishes an answer whose stream breaks.
pub struct StoringService {
    script: ScriptedClient,
    held: Arc<Mutex<Held>>,
    ids: Ids,
}

#[derive(Default)]
struct Held {
    conversations: BTreeMap<String, Vec<Message>>,
    made: usize,
    /// What became of each accepted call, by its handle.
    accepted: Vec<Accepted>,
    /// Streams that break, by the number of the call among the accepted ones.
    lost: BTreeMap<usize, LostStream>,
    look_ups: usize,
    deleted: Vec<String>,
}

/// An accepted call.
struct Accepted {
    answer: Option<Response>,
    /// How many look-ups are told that the service still works on it.
    running: usize,
}

/// A stream that breaks while the service goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostStream {
    /// How many events arrive; the second one has the handle.
    pub after: usize,
    /// What the client sees then.
    pub then: LostHow,
    /// How many look-ups are told that the service still works on the answer.
    pub running: usize,
    /// Whether the service has the answer in the end.
    pub is_answered: bool,
}

/// How a stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostHow {
    /// Nothing more comes.
    Hangs,
    /// The connection is cut.
    Cut,
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

    /// Makes the stream of a call break, by its number among the accepted calls, from 0.
    pub fn lose_stream(&self, call: usize, lost: LostStream) {
        lock(&self.held).lost.insert(call, lost);
    }

    /// How often an answer was asked for.
    pub fn look_ups(&self) -> usize {
        lock(&self.held).look_ups
    }

    /// The ids that were deleted, in order.
    pub fn deleted(&self) -> Vec<String> {
        lock(&self.held).deleted.clone()
    }

    /// Accepts a call; returns its handle, and how its stream breaks.
    fn accept(&self) -> (usize, Option<LostStream>) {
        let mut held = lock(&self.held);
        let handle = held.accepted.len();
        held.accepted.push(Accepted {
            answer: None,
            running: 0,
        });
        let lost = held.lost.remove(&handle);
        (handle, lost)
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

    fn conversations(&self) -> Option<&dyn StoredConversations> {
        let stores = self.abilities().stores_history != StoresHistory::Never;
        stores.then_some(self as &dyn StoredConversations)
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let keeping = self.admit(request)?;
        let events = self.script.stream(request).await?;
        let Some(keeping) = keeping else {
            return Ok(events);
        };
        let (handle, lost) = self.accept();
        let answer = Answering {
            held: Arc::clone(&self.held),
            handle,
            keeping: Some(keeping),
            fold: Fold::new(),
        };
        let whole = answer.over(events);
        let Some(lost) = lost else {
            return Ok(whole);
        };
        // The service works on, whatever becomes of the stream.
        let events: Vec<Result<Event, ClientError>> = whole.collect().await;
        let mut held = lock(&self.held);
        let accepted = &mut held.accepted[handle];
        accepted.running = lost.running;
        if !lost.is_answered {
            accepted.answer = None;
        }
        drop(held);
        let arrived = stream::iter(events.into_iter().take(lost.after));
        Ok(match lost.then {
            LostHow::Hangs => Box::pin(arrived.chain(stream::pending())),
            LostHow::Cut => {
                let upstream = &self.abilities().upstream;
                let cut = ClientError::new(ErrorKind::Cut, upstream, "the connection was cut");
                Box::pin(arrived.chain(stream::iter([Err(cut)])))
            }
        })
    }
}

/// An answer that is stored when it has ended.
struct Answering {
    held: Arc<Mutex<Held>>,
    handle: usize,
    keeping: Option<Keeping>,
    fold: Fold,
}

impl Answering {
    /// The events of the answer, with its handle behind the first.
    fn over(mut self, events: EventStream) -> EventStream {
        let handle = RawJson::object(|object| {
            object.number("answer", self.handle as u64);
        });
        let mut accepted = Some(Event::Accepted { handle });
        let events = events.flat_map(move |event| {
            let event = event.map(|event| self.seen(event));
            let accepted = accepted.take().map(Ok);
            stream::iter([Some(event), accepted].into_iter().flatten())
        });
        Box::pin(events)
    }

    fn seen(&mut self, mut event: Event) -> Event {
        self.fold.push(event.clone());
        if let Event::Finished { service, .. } = &mut event
            && let Some(keeping) = self.keeping.take()
        {
            let mut response = std::mem::take(&mut self.fold).finish();
            *service = keeping.keep(response.clone());
            response.service.clone_from(service);
            lock(&self.held).accepted[self.handle].answer = Some(response);
        }
        event
    }
}

#[async_trait]
impl StoredConversations for StoringService {
    async fn read(&self, id: &str) -> Result<Vec<Message>, ClientError> {
        let held = lock(&self.held);
        held.conversations.get(id).cloned().ok_or_else(|| {
            let upstream = &self.script.abilities().upstream;
            let message = format!("there is no conversation {id}");
            ClientError::new(ErrorKind::NotFound, upstream, message)
        })
    }

    async fn delete(&self, id: &str) -> Result<VendorDeletion, ClientError> {
        let mut held = lock(&self.held);
        Ok(match held.conversations.remove(id) {
            Some(_) => {
                held.deleted.push(id.to_owned());
                VendorDeletion::Deleted
            }
            None => VendorDeletion::Absent,
        })
    }

    async fn look_up(&self, handle: &RawJson) -> Result<CallStatus, ClientError> {
        let mut held = lock(&self.held);
        held.look_ups += 1;
        let number = json::parse(handle.get()).ok();
        let number = number.and_then(|value| value.get("answer")?.as_u64());
        let number = number.and_then(|number| usize::try_from(number).ok());
        let accepted = number.and_then(|number| held.accepted.get_mut(number));
        let lost = |reason: &str| CallStatus::Lost {
            reason: reason.to_owned(),
        };
        Ok(match accepted {
            None => lost("there is no such answer"),
            Some(accepted) if accepted.running > 0 => {
                accepted.running -= 1;
                CallStatus::Running
            }
            Some(accepted) => match &accepted.answer {
                Some(answer) => CallStatus::Answered(Box::new(answer.clone())),
                None => lost("the answer was given up"),
            },
        })
    }
}
