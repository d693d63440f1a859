use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use throughline_model::{CallId, Message};
use throughline_store::{RunId, ThreadId};
use tokio_util::sync::CancellationToken;

use super::{SetError, Tool};

/// What tools depend on (a database, a client), by type.
#[derive(Clone, Default)]
pub struct Dependencies(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Dependencies {
    /// Add one; an earlier one of the same type gives way.
    pub fn insert<T: Any + Send + Sync>(&mut self, dependency: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(dependency));
    }

    /// The one of a type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let found = self.0.get(&TypeId::of::<T>())?;
        Arc::clone(found).downcast().ok()
    }
}

impl fmt::Debug for Dependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dependencies({})", self.0.len())
    }
}

/// What a run lets a tool do to it.
#[async_trait]
pub(crate) trait RunHandle: Send + Sync {
    /// Add tools, all or none.
    fn add_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Result<(), SetError>;
    /// Put a tool in the place of the one of its name.
    fn replace_tool(&self, tool: Arc<dyn Tool>) -> Result<(), SetError>;
    /// Take a tool away.
    fn remove_tool(&self, name: &str) -> Result<(), SetError>;
    /// Ask for approval before a tool runs, from now on.
    fn guard_tool(&self, name: &str) -> Result<(), SetError>;
    /// Say something to the model with the next call.
    async fn inject(&self, message: Message) -> throughline_store::Result<()>;
    /// The conversation so far, as it was said.
    fn record(&self) -> Vec<Arc<Message>>;
}

/// There is no run.
struct NoRun;

#[async_trait]
impl RunHandle for NoRun {
    fn add_tools(&self, _tools: Vec<Arc<dyn Tool>>) -> Result<(), SetError> {
        Ok(())
    }

    fn replace_tool(&self, _tool: Arc<dyn Tool>) -> Result<(), SetError> {
        Ok(())
    }

    fn remove_tool(&self, _name: &str) -> Result<(), SetError> {
        Ok(())
    }

    fn guard_tool(&self, _name: &str) -> Result<(), SetError> {
        Ok(())
    }

    async fn inject(&self, _message: Message) -> throughline_store::Result<()> {
        Ok(())
    }

    fn record(&self) -> Vec<Arc<Message>> {
        Vec::new()
    }
}

/// What a tool knows of the call that it answers.
#[derive(Clone)]
pub struct CallContext {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The step: which model call of the run asked for this, from 0.
    pub step: u32,
    /// The round, from 0.
    pub round: u32,
    /// The position of the call among the calls of its response, from 0.
    pub position: u32,
    /// The id of the call.
    pub call: CallId,
    /// A key that is the same however often this call is dispatched, for services that take one.
    pub idempotency_key: String,
    /// Cancelled when the run is, or when its time is up.
    pub cancel: CancellationToken,
    pub(crate) dependencies: Arc<Dependencies>,
    pub(crate) handle: Arc<dyn RunHandle>,
}

tokio::task_local! {
    static CURRENT: CallContext;
}

impl CallContext {
    /// The call that the current task answers; `None` outside of tools.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// A context outside of any run, to call a tool by hand: in its tests, say. What a tool says to
    /// the run goes nowhere.
    ///
    /// ```
    /// use throughline::model::json::RawJson;
    /// use throughline::tool::CallContext;
    /// use throughline::{Tool, tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hello = tool("hello", "Say hello", || async { "hello" });
    /// let output = hello.call(&RawJson::new("{}")?, CallContext::detached()).await;
    /// assert!(output.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn detached() -> Self {
        Self {
            thread: ThreadId::new("detached").expect("the text is visible ASCII"),
            run: RunId::from_bytes([0; 16]),
            step: 0,
            round: 0,
            position: 0,
            call: CallId::natural("detached").expect("the text is not empty"),
            idempotency_key: "detached".to_owned(),
            cancel: CancellationToken::new(),
            dependencies: Arc::default(),
            handle: Arc::new(NoRun),
        }
    }

    /// The same with what tools depend on.
    #[must_use]
    pub fn with_dependencies(mut self, dependencies: Dependencies) -> Self {
        self.dependencies = Arc::new(dependencies);
        self
    }

    /// Run a tool's future so that [`CallContext::current`] finds this.
    pub(crate) async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// What the agent was given for its tools, by type.
    pub fn dependency<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.dependencies.get()
    }

    /// Offer more tools from the next model call of this run on: all of them or, when a different
    /// tool has one of the names, none.
    pub fn add_tools(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<(), SetError> {
        self.handle.add_tools(tools.into_iter().collect())
    }

    /// Put a tool in the place of the one of its name, for the rest of this run.
    pub fn replace_tool(&self, tool: Arc<dyn Tool>) -> Result<(), SetError> {
        self.handle.replace_tool(tool)
    }

    /// Take a tool away for the rest of this run.
    pub fn remove_tool(&self, name: &str) -> Result<(), SetError> {
        self.handle.remove_tool(name)
    }

    /// Ask for approval before a tool runs, for the rest of this run.
    pub fn guard_tool(&self, name: &str) -> Result<(), SetError> {
        self.handle.guard_tool(name)
    }

    /// The conversation so far, whatever the model is shown of it.
    pub(crate) fn record(&self) -> Vec<Arc<Message>> {
        self.handle.record()
    }

    /// Say something to the model with its next call. When this answers, it is stored: if the run
    /// ends before that call, the next run says it.
    pub async fn inject(&self, message: impl Into<Message>) -> throughline_store::Result<()> {
        self.handle.inject(message.into()).await
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("thread", &self.thread)
            .field("run", &self.run)
            .field("step", &self.step)
            .field("round", &self.round)
            .field("position", &self.position)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
