use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline::model::{Event, Fold, Message, Response, Settings, ToolChoice};
use throughline::{Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, Kept};
use tokio::sync::watch;

use super::step::{Chunk, Step, What, fragments};

/// How an answer was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// With `respond`.
    Whole,
    /// With `stream`.
    Streamed,
}

/// Who was to keep the conversation of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptBy {
    /// The caller.
    #[default]
    Here,
    /// The service, from what this names on.
    There(Option<String>),
}

impl From<Kept<'_>> for KeptBy {
    fn from(kept: Kept<'_>) -> Self {
        match kept {
            Kept::Here => Self::Here,
            Kept::There { id } => Self::There(id.map(str::to_owned)),
        }
    }
}

/// What one call was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The model that the call named.
    pub model: Option<String>,
    /// The instructions.
    pub instructions: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// Whether and which of them to call.
    pub choice: ToolChoice,
    /// How to answer.
    pub settings: Settings,
    /// Who keeps the conversation.
    pub kept: KeptBy,
    /// Whole or streamed.
    pub reading: Reading,
}

/// A model that answers from a script.
pub struct ScriptedClient {
    abilities: Abilities,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// How many calls have begun.
    begun: watch::Sender<usize>,
}

/// Decides what comes after the script.
type Rest = Arc<dyn Fn(&Asked) -> Step + Send + Sync>;

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    rest: Option<Rest>,
    asked: Vec<Asked>,
    ended: usize,
    dropped: usize,
}

impl ScriptedClient {
    /// A client that takes one step for each call, in this order.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let state = State {
            steps: steps.into_iter().collect(),
            ..State::default()
        };
        let mut abilities = Abilities::of("scripted");
        abilities.model = Some("scripted-1".into());
        Self {
            abilities,
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                begun: watch::Sender::new(0),
            }),
        }
    }

    /// A client that decides each answer by what was asked.
    pub fn answering(answer: impl Fn(&Asked) -> Step + Send + Sync + 'static) -> Self {
        Self::new([]).with_rest(answer)
    }

    /// The same, and when the steps are used up, answers are decided like this.
    #[must_use]
    pub fn with_rest(self, answer: impl Fn(&Asked) -> Step + Send + Sync + 'static) -> Self {
        self.state().rest = Some(Arc::new(answer));
        self
    }

    /// The same with other abilities.
    #[must_use]
    pub fn with_abilities(mut self, abilities: Abilities) -> Self {
        self.abilities = abilities;
        self
    }

    /// One more step at the end of the script.
    pub fn push(&self, step: Step) {
        self.state().steps.push_back(step);
    }

    /// What each call was given, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// What the last call was given.
    pub fn last_asked(&self) -> Option<Asked> {
        self.state().asked.last().cloned()
    }

    /// How many calls have begun.
    pub fn calls(&self) -> usize {
        self.state().asked.len()
    }

    /// How many calls were dropped by their caller before they ended.
    pub fn dropped(&self) -> usize {
        self.state().dropped
    }

    /// How many calls have begun and not ended.
    pub fn running(&self) -> usize {
        let state = self.state();
        state.asked.len() - state.ended - state.dropped
    }

    /// How many steps of the script are left.
    pub fn left(&self) -> usize {
        self.state().steps.len()
    }

    /// Wait until so many calls have begun.
    pub async fn begun(&self, calls: usize) {
        let mut begun = self.shared.begun.subscribe();
        // The sender lives as long as this client.
        let _ = begun.wait_for(|count| *count >= calls).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// Note what was asked and make the chunks of the answer.
    fn take(&self, request: &ChatRequest<'_>, reading: Reading) -> Answer {
        let asked = Asked::of(request, reading);
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
        let running = Running {
            shared: Arc::clone(&self.shared),
            ended: false,
        };
        // Outside the lock: a step may look at the client.
        let step = step.or_else(|| rest.map(|decide| decide(&asked)));
        let mut wait = Duration::ZERO;
        let chunks = match step {
            Some(step) => self.chunks(step, &asked, number, &mut wait),
            None => Err(self.exhausted(&asked, number)),
        };
        Answer {
            wait,
            chunks,
            running,
            upstream: self.abilities.upstream.clone(),
        }
    }

    fn chunks(
        &self,
        step: Step,
        asked: &Asked,
        number: usize,
        wait: &mut Duration,
    ) -> Result<VecDeque<Chunk>, ClientError> {
        match step.0 {
            What::Response(mut response) => {
                response
                    .id
                    .get_or_insert_with(|| format!("resp_scripted_{number}"));
                let named = asked.model.as_ref().or(self.abilities.model.as_ref());
                response.model = response.model.take().or_else(|| named.cloned());
                Ok(fragments(&response).into())
            }
            What::Chunks(chunks) => Ok(chunks.into()),
            What::Error(error) => Err(error),
            What::Hang => Ok([Chunk::Hang].into()),
            What::After(more, step) => {
                *wait += more;
                self.chunks(*step, asked, number, wait)
            }
            What::Decide(decide) => self.chunks(decide(asked), asked, number, wait),
        }
    }

    fn exhausted(&self, asked: &Asked, number: usize) -> ClientError {
        let last = asked.messages.last().map(|message| {
            let text = message.text();
            format!("{} {text:?}", message.role.as_str())
        });
        let last = last.unwrap_or_else(|| "nothing".into());
        let message = format!("the script has no step for call {number}, which ends in {last}");
        ClientError::new(ErrorKind::Setup, &self.abilities.upstream, message)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a call as ended or as dropped.
struct Running {
    shared: Arc<Shared>,
    ended: bool,
}

impl Running {
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.shared.state().ended += 1;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.state().dropped += 1;
        }
    }
}

/// One answer on its way.
struct Answer {
    wait: Duration,
    chunks: Result<VecDeque<Chunk>, ClientError>,
    running: Running,
    upstream: String,
}

impl Answer {
    /// Wait for the first byte, so to say; then the events.
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
        if matches!(chunks.front(), Some(Chunk::Hang)) {
            pending::<()>().await;
        }
        let coming = Coming {
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

/// The rest of an answer.
struct Coming {
    chunks: VecDeque<Chunk>,
    running: Running,
    upstream: String,
}

impl Coming {
    async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        while !self.running.ended {
            match self.chunks.pop_front() {
                Some(Chunk::Event(event)) => {
                    if matches!(event, Event::Finished { .. }) {
                        self.running.end();
                    }
                    return Some(Ok(event));
                }
                Some(Chunk::Wait(wait)) => tokio::time::sleep(wait).await,
                Some(Chunk::Hang) => pending().await,
                Some(Chunk::Error(error)) => {
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

/// Copies of the conversation, whether the view shares its messages or not.
pub(super) fn messages(request: &ChatRequest<'_>) -> Vec<Message> {
    let shared = request.view.messages().iter();
    shared.map(|message| Message::clone(message)).collect()
}

impl Asked {
    fn of(request: &ChatRequest<'_>, reading: Reading) -> Self {
        Self {
            model: request.model.map(str::to_owned),
            instructions: request.instructions.map(str::to_owned),
            messages: messages(request),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            choice: request.choice.clone(),
            settings: request.settings.clone(),
            kept: request.kept.into(),
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
        let mut events = self.take(request, Reading::Whole).begin().await?;
        let mut fold = Fold::new();
        while let Some(event) = events.next().await {
            fold.push(event?);
        }
        Ok(fold.finish())
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        self.take(request, Reading::Streamed).begin().await
    }
}
