use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, HistoryOwner,
};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline_model::{Event, Fold, Message, Response, Settings, ToolChoice};
use tokio::sync::watch;

use super::reply::{ReplyKind, ReplyPart, ScriptedReply, fragments};

/// Which method of the client a call used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// With `respond`.
    Whole,
    /// With `stream`.
    Streamed,
}

/// The history owner of a recorded call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecordedOwner {
    /// The caller stores the conversation.
    #[default]
    Caller,
    /// The service stores it, up to the response with this id.
    Service(Option<String>),
}

impl From<HistoryOwner<'_>> for RecordedOwner {
    fn from(owner: HistoryOwner<'_>) -> Self {
        match owner {
            HistoryOwner::Caller => Self::Caller,
            HistoryOwner::Service { id } => Self::Service(id.map(str::to_owned)),
        }
    }
}

/// One call as the client received it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The model that the call named.
    pub model: Option<String>,
    /// The instructions.
    pub instructions: Option<String>,
    /// The messages of the request.
    pub messages: Vec<Message>,
    /// The names of the offered tools.
    pub tools: Vec<String>,
    /// The tool choice.
    pub choice: ToolChoice,
    /// The settings.
    pub settings: Settings,
    /// The history owner.
    pub kept: RecordedOwner,
    /// Whether the answer was requested whole or streamed.
    pub reading: CallMode,
}

/// A client that answers from a script, one [`ScriptedReply`] for each call.
///
/// A call for which the script has no reply fails with [`ErrorKind::Setup`], and the error names the
/// message that it ends in.
pub struct ScriptedClient {
    abilities: Abilities,
    shared: Arc<SharedScript>,
}

struct SharedScript {
    state: Mutex<ScriptState>,
    /// The number of calls that have started.
    begun: watch::Sender<usize>,
}

/// Decides what comes after the script.
type Rest = Arc<dyn Fn(&RecordedCall) -> ScriptedReply + Send + Sync>;

#[derive(Default)]
struct ScriptState {
    steps: VecDeque<ScriptedReply>,
    rest: Option<Rest>,
    asked: Vec<RecordedCall>,
    ended: usize,
    dropped: usize,
}

impl ScriptedClient {
    /// A client that gives these replies, in this order.
    pub fn new(steps: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let state = ScriptState {
            steps: steps.into_iter().collect(),
            ..ScriptState::default()
        };
        let mut abilities = Abilities::of("scripted");
        abilities.model = Some("scripted-1".into());
        Self {
            abilities,
            shared: Arc::new(SharedScript {
                state: Mutex::new(state),
                begun: watch::Sender::new(0),
            }),
        }
    }

    /// A client that decides each reply from the call.
    pub fn answering(
        answer: impl Fn(&RecordedCall) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        Self::new([]).with_rest(answer)
    }

    /// Decides the replies that come after the script.
    #[must_use]
    pub fn with_rest(
        self,
        answer: impl Fn(&RecordedCall) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        self.state().rest = Some(Arc::new(answer));
        self
    }

    /// Sets the abilities that the client declares.
    #[must_use]
    pub fn with_abilities(mut self, abilities: Abilities) -> Self {
        self.abilities = abilities;
        self
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, step: ScriptedReply) {
        self.state().steps.push_back(step);
    }

    /// All calls so far, oldest first.
    pub fn asked(&self) -> Vec<RecordedCall> {
        self.state().asked.clone()
    }

    /// The last call.
    pub fn last_asked(&self) -> Option<RecordedCall> {
        self.state().asked.last().cloned()
    }

    /// The number of calls that have started.
    pub fn calls(&self) -> usize {
        self.state().asked.len()
    }

    /// The number of calls whose future or stream was dropped before its end.
    pub fn dropped(&self) -> usize {
        self.state().dropped
    }

    /// The number of calls that have started and not ended.
    pub fn running(&self) -> usize {
        let state = self.state();
        state.asked.len() - state.ended - state.dropped
    }

    /// The number of replies that are left in the script.
    pub fn left(&self) -> usize {
        self.state().steps.len()
    }

    /// Waits until this many calls have started.
    pub async fn begun(&self, calls: usize) {
        let mut begun = self.shared.begun.subscribe();
        // The sender lives as long as this client.
        let _ = begun.wait_for(|count| *count >= calls).await;
    }

    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.shared.state()
    }

    /// Records the call and makes the parts of its reply.
    fn take(&self, request: &ChatRequest<'_>, reading: CallMode) -> PendingReply {
        let asked = RecordedCall::of(request, reading);
        let (step, rest, number) = {
            let mut state = self.state();
            state.asked.push(asked.clone());
            (
                state.steps.pop_front(),
                state.rest.clone(),
                state.asked.len(),
            )
        };
        self.shared.begun.send_replace(number);
        let running = CallGuard {
            shared: Arc::clone(&self.shared),
            ended: false,
        };
        // Outside the lock: a reply may be decided by a function that reads the client.
        let step = step.or_else(|| rest.map(|decide| decide(&asked)));
        let mut wait = Duration::ZERO;
        let chunks = match step {
            Some(step) => self.chunks(step, &asked, number, &mut wait),
            None => Err(self.exhausted(&asked, number)),
        };
        PendingReply {
            wait,
            chunks,
            running,
            upstream: self.abilities.upstream.clone(),
        }
    }

    fn chunks(
        &self,
        step: ScriptedReply,
        asked: &RecordedCall,
        number: usize,
        wait: &mut Duration,
    ) -> Result<VecDeque<ReplyPart>, ClientError> {
        match step.0 {
            ReplyKind::Response(mut response) => {
                response
                    .id
                    .get_or_insert_with(|| format!("resp_scripted_{number}"));
                let named = asked.model.as_ref().or(self.abilities.model.as_ref());
                response.model = response.model.take().or_else(|| named.cloned());
                Ok(fragments(&response).into())
            }
            ReplyKind::Chunks(chunks) => Ok(chunks.into()),
            ReplyKind::Error(error) => Err(error),
            ReplyKind::Hang => Ok([ReplyPart::Hang].into()),
            ReplyKind::After(more, step) => {
                *wait += more;
                self.chunks(*step, asked, number, wait)
            }
            ReplyKind::Decide(decide) => self.chunks(decide(asked), asked, number, wait),
        }
    }

    fn exhausted(&self, asked: &RecordedCall, number: usize) -> ClientError {
        let last = asked.messages.last().map(|message| {
            let text = message.text();
            format!("{} {text:?}", message.role.as_str())
        });
        let last = last.unwrap_or_else(|| "nothing".into());
        let message = format!("the script has no step for call {number}, which ends in {last}");
        ClientError::new(ErrorKind::Setup, &self.abilities.upstream, message)
    }
}

impl SharedScript {
    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a call as ended or as dropped.
struct CallGuard {
    shared: Arc<SharedScript>,
    ended: bool,
}

impl CallGuard {
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.shared.state().ended += 1;
        }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.state().dropped += 1;
        }
    }
}

/// A reply that has not started to arrive.
struct PendingReply {
    wait: Duration,
    chunks: Result<VecDeque<ReplyPart>, ClientError>,
    running: CallGuard,
    upstream: String,
}

impl PendingReply {
    /// Waits as long as the script says, then gives the events.
    async fn begin(mut self) -> Result<EventStream, ClientError> {
        if !self.wait.is_zero() {
            tokio::time::sleep(self.wait).await;
        }
        let chunks = match self.chunks {
            Ok(chunks) => chunks,
            Err(error) => {
                self.running.end();
                return Err(error);
            }
        };
        if matches!(chunks.front(), Some(ReplyPart::Hang)) {
            pending::<()>().await;
        }
        let coming = ReplyEvents {
            chunks,
            running: self.running,
            upstream: self.upstream,
        };
        let events = stream::unfold(coming, |mut coming| async move {
            let next = coming.next().await?;
            Some((next, coming))
        });
        Ok(Box::pin(events))
    }
}

/// The rest of a reply.
struct ReplyEvents {
    chunks: VecDeque<ReplyPart>,
    running: CallGuard,
    upstream: String,
}

impl ReplyEvents {
    async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        while !self.running.ended {
            match self.chunks.pop_front() {
                Some(ReplyPart::Event(event)) => {
                    if matches!(event, Event::Finished { .. }) {
                        self.running.end();
                    }
                    return Some(Ok(event));
                }
                Some(ReplyPart::Wait(wait)) => tokio::time::sleep(wait).await,
                Some(ReplyPart::Hang) => pending().await,
                Some(ReplyPart::Error(error)) => {
                    self.running.end();
                    return Some(Err(error));
                }
                None => {
                    self.running.end();
                    let message = "the answer ended without saying so";
                    return Some(Err(ClientError::new(
                        ErrorKind::Cut,
                        &self.upstream,
                        message,
                    )));
                }
            }
        }
        None
    }
}

impl RecordedCall {
    fn of(request: &ChatRequest<'_>, reading: CallMode) -> Self {
        Self {
            model: request.model.map(str::to_owned),
            instructions: request.instructions.map(str::to_owned),
            messages: request.messages().cloned().collect(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            choice: request.choice.clone(),
            settings: request.settings.clone(),
            kept: request.history_owner.into(),
            reading,
        }
    }
}

#[async_trait]
impl ChatClient for ScriptedClient {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut events = self.take(request, CallMode::Whole).begin().await?;
        let mut fold = Fold::new();
        while let Some(event) = events.next().await {
            fold.push(event?);
        }
        Ok(fold.finish())
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        self.take(request, CallMode::Streamed).begin().await
    }
}
