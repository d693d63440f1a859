use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use throughline_model::{CallId, Message};
use throughline_store::{RunId, ThreadId};
use tokio_util::sync::CancellationToken;

use super::{SetError, Tool};

/// Values that tools depend on (a database, a client), by type.
#[derive(Clone, Default)]
pub struct Dependencies(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Dependencies {
    /// Adds a value; it replaces an earlier one of the same type.
    pub fn insert<T: Any + Send + Sync>(&mut self, dependency: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(dependency));
    }

    /// The value of a type.
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

/// The operations that a tool may perform on its run.
#[async_trait]
pub(crate) trait RunHandle: Send + Sync {
    /// Adds tools, all or none.
    fn add_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Result<(), SetError>;
    /// Replaces the tool with the same name.
    fn replace_tool(&self, tool: Arc<dyn Tool>) -> Result<(), SetError>;
    /// Removes a tool.
    fn remove_tool(&self, name: &str) -> Result<(), SetError>;
    /// Requires approval for all later calls of a tool.
    fn guard_tool(&self, name: &str) -> Result<(), SetError>;
    /// Queues a message for the next model call.
    async fn inject(&self, message: Message) -> throughline_store::Result<()>;
    /// The full conversation so far.
    fn record(&self) -> Vec<Arc<Message>>;
}

/// The handle of [`CallContext::detached`]: there is no run.
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
    /// The model call of the run that made this call, from 0.
    pub step: u32,
    /// The round, from 0.
    pub round: u32,
    /// The position of the call among the calls of its response, from 0.
    pub position: u32,
    /// The id of the call.
    pub call: CallId,
    /// The same key for every dispatch of this call, for services that take idempotency keys.
    pub idempotency_key: String,
    /// Cancelled when the run is cancelled or out of time.
    pub cancel: CancellationToken,
    pub(crate) dependencies: Arc<Dependencies>,
    pub(crate) handle: Arc<dyn RunHandle>,
}

tokio::task_local! {
    static CURRENT: CallContext;
}

impl CallContext {
    /// The call that the current task runs; `None` outside of tools.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// A context without a run, to call a tool directly, for example in tests. Operations on the
    /// run do nothing.
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

    /// Sets the values that tools depend on.
    #[must_use]
    pub fn with_dependencies(mut self, dependencies: Dependencies) -> Self {
        self.dependencies = Arc::new(dependencies);
        self
    }

    /// Runs a tool's future so that [`CallContext::current`] finds this context.
    pub(crate) async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// A value that the agent was given for its tools, by type.
    pub fn dependency<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.dependencies.get()
    }

    /// Offers more tools from the next model call of this run on. Adds none of them if a different
    /// tool has one of the names.
    pub fn add_tools(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<(), SetError> {
        self.handle.add_tools(tools.into_iter().collect())
    }

    /// Replaces the tool with the same name for the rest of this run.
    pub fn replace_tool(&self, tool: Arc<dyn Tool>) -> Result<(), SetError> {
        self.handle.replace_tool(tool)
    }

    /// Removes a tool for the rest of this run.
    pub fn remove_tool(&self, name: &str) -> Result<(), SetError> {
        self.handle.remove_tool(name)
    }

    /// Requires approval before a tool runs, for the rest of this run.
    pub fn guard_tool(&self, name: &str) -> Result<(), SetError> {
        self.handle.guard_tool(name)
    }

    /// The full conversation so far, including what the model is not shown.
    pub(crate) fn record(&self) -> Vec<Arc<Message>> {
        self.handle.record()
    }

    /// Sends a message to the model with its next call. Returns when the message is stored: if the
    /// run ends before that call, the next run delivers it.
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
