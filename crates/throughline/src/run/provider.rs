//! Context providers add to what a model is shown, and learn from the run when it has ended.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::{RunId, State, ThreadId};

use crate::run::RunError;
use crate::thread::StopReason;
use crate::tool::Tool;

/// Why a provider failed.
pub type ProviderError = Box<dyn std::error::Error + Send + Sync>;

/// How often a provider is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ProviderScope {
    /// Once in a run.
    #[default]
    Run,
    /// For every model call.
    Call,
}

/// Whether a run can do without a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Need {
    /// A run fails if the provider does.
    #[default]
    Required,
    /// A warning is logged if the provider fails.
    Optional,
}

/// What a provider declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSpec {
    /// Its name, under which its state is kept with the thread.
    pub name: String,
    /// How often it is called.
    pub scope: ProviderScope,
    /// Whether a run can do without it.
    pub need: Need,
}

impl ProviderSpec {
    /// A required provider of scope `run`.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scope: ProviderScope::Run,
            need: Need::Required,
        }
    }
}

/// Whether messages of a provider become history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Keep {
    /// They are for the model calls of this run only.
    #[default]
    No,
    /// They are stored, with the provider as their source and author.
    Yes,
}

/// What a provider adds.
#[derive(Clone, Default)]
pub struct Additions {
    /// Instructions behind those of the agent.
    pub instructions: Vec<String>,
    /// Messages between the history and the input of the run.
    pub messages: Vec<Message>,
    /// Whether the messages become history; ignored for providers of scope `call`.
    pub keep: Keep,
    /// Tools for this run, or for the call of a provider of scope `call`.
    pub tools: Vec<Arc<dyn Tool>>,
}

/// What a provider sees.
pub struct ProviderContext<'a> {
    /// The thread.
    pub thread: &'a ThreadId,
    /// The run.
    pub run: RunId,
    /// The history before the run, oldest first.
    pub history: &'a [Arc<Message>],
    /// The messages of the run so far; at first its input.
    pub messages: &'a [Arc<Message>],
    /// What the providers before this one add; for scope `call` also those of scope `run`.
    pub added: &'a Additions,
    /// The state of this provider, which is stored with the thread.
    pub state: &'a mut ProviderState,
}

/// The state of a provider, which is stored with a thread. Changes are published with the run; those
/// of a run that fails or is discarded are lost.
///
/// ```
/// use throughline::agent::ProviderState;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut state = ProviderState::default();
/// assert_eq!(state.get::<u32>()?, None);
/// state.set(&4)?;
/// assert_eq!(state.get::<u32>()?, Some(4));
///
/// // As another type it is an error that names both, and stays.
/// let error = state.get::<String>().unwrap_err();
/// assert_eq!((error.found, error.wanted), ("a number", "alloc::string::String"));
/// assert_eq!(state.json().map(|json| json.get()), Some("4"));
///
/// // Null is a state, too.
/// state.set(&None::<u32>)?;
/// assert_eq!(state.get::<Option<u32>>()?, Some(None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProviderState(pub(crate) Option<RawJson>);

/// A state that is not of the type asked for. It stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state is {found}, which is no {wanted}: {why}")]
pub struct StateError {
    /// What is there: the kind of JSON value.
    pub found: &'static str,
    /// The type asked for.
    pub wanted: &'static str,
    /// Why it does not fit.
    pub why: String,
}

impl ProviderState {
    /// The state as JSON; none if there is none. `null` is a state.
    pub fn json(&self) -> Option<&RawJson> {
        self.0.as_ref()
    }

    /// The state as a value; none if there is none.
    pub fn get<T: DeserializeOwned>(&self) -> Result<Option<T>, StateError> {
        let Some(json) = &self.0 else {
            return Ok(None);
        };
        let read = serde_json::from_str(json.get());
        read.map(Some).map_err(|error| StateError {
            found: kind(json.get()),
            wanted: std::any::type_name::<T>(),
            why: error.to_string(),
        })
    }

    /// Set the state.
    pub fn set<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), StateError> {
        let unfit = |why: String| StateError {
            found: "a value",
            wanted: "state in JSON",
            why,
        };
        let text = serde_json::to_string(value).map_err(|error| unfit(error.to_string()))?;
        self.0 = Some(RawJson::new(&text).map_err(|error| unfit(error.to_string()))?);
        Ok(())
    }

    /// Forget the state.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    pub(crate) fn of(state: &State, name: &str) -> Self {
        Self(state.provider(name).cloned())
    }
}

fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// How a run or a model call ended.
pub struct Completion<'a> {
    /// Why the run stopped; none after a model call of a run that goes on.
    pub stop: Option<StopReason>,
    /// Why the run failed.
    pub error: Option<&'a RunError>,
}

/// Adds to what a model is shown in a run, and learns from the run when it has ended.
///
/// Additions hold for one run and are no history, unless the provider asks for that. Its state belongs
/// to the thread and is stored per node, so that a fork has the state of its node.
///
/// When a run is resumed after it was parked or interrupted, its providers are called again, because
/// additions are not stored. Messages that became history on the first call are not stored again.
///
/// ```
/// use async_trait::async_trait;
/// use throughline::model::Message;
/// use throughline::agent::{
///     Additions, Completion, ContextProvider, ProviderContext, ProviderError, ProviderSpec,
/// };
/// use throughline::{Agent, Demo};
///
/// /// Tells the model how often it was asked before.
/// struct Visits(ProviderSpec);
///
/// #[async_trait]
/// impl ContextProvider for Visits {
///     fn spec(&self) -> &ProviderSpec {
///         &self.0
///     }
///
///     async fn before(
///         &self,
///         context: &mut ProviderContext<'_>,
///     ) -> Result<Additions, ProviderError> {
///         let visits = context.state.get::<u32>()?.unwrap_or(0);
///         Ok(Additions {
///             messages: vec![Message::user(format!("I was here {visits} times."))],
///             ..Additions::default()
///         })
///     }
///
///     async fn after(
///         &self,
///         context: &mut ProviderContext<'_>,
///         _completion: &Completion<'_>,
///     ) -> Result<(), ProviderError> {
///         let visits = context.state.get::<u32>()?.unwrap_or(0);
///         context.state.set(&(visits + 1))?;
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(Demo::new())
///     .provider(Visits(ProviderSpec::named("visits")))
///     .build()?;
/// let thread = agent.new_thread();
/// agent.run_on(&thread, "The tide is at four.").await?;
/// agent.run_on(&thread, "What did I say first?").await?;
/// // Its message is no history, and its state is stored with the thread.
/// assert_eq!(thread.history().len(), 4);
/// assert_eq!(thread.state().provider("visits").map(|state| state.get()), Some("2"));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// What the provider declares.
    fn spec(&self) -> &ProviderSpec;

    /// Called before a run or a model call, in list order. Returns what the provider adds.
    async fn before(&self, context: &mut ProviderContext<'_>) -> Result<Additions, ProviderError>;

    /// Called after a run or a model call, for every provider, also if one of them fails. If a run fails
    /// because a provider fails here, all of them are called once more with that error.
    async fn after(
        &self,
        context: &mut ProviderContext<'_>,
        completion: &Completion<'_>,
    ) -> Result<(), ProviderError>;
}

/// Selects the messages of a prompt. The record stays as it is.
///
/// It is called before every model call with all messages that would be sent, oldest first. A filtered
/// prompt is rendered as a whole for each call.
///
/// ```
/// use std::sync::Arc;
/// use throughline::model::Message;
/// use throughline::{Agent, Demo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Any function will do: this one shows the last two messages only.
/// let last = |all: &[Arc<Message>]| all[all.len().saturating_sub(2)..].to_vec();
/// let agent = Agent::builder(Demo::new()).filter(last).build()?;
/// let thread = agent.new_thread();
/// agent.run_on(&thread, "The tide is at four.").await?;
/// let outcome = agent.run_on(&thread, "How many messages are there?").await?;
/// assert!(!outcome.text().contains('3'), "{}", outcome.text());
/// assert_eq!(thread.history().len(), 4);
/// # Ok(())
/// # }
/// ```
pub trait MessageFilter: Send + Sync {
    /// The messages to send.
    fn filter(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>>;
}

impl<F> MessageFilter for F
where
    F: Fn(&[Arc<Message>]) -> Vec<Arc<Message>> + Send + Sync,
{
    fn filter(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        self(messages)
    }
}
