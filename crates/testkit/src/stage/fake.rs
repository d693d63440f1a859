use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use throughline::Tool;
use throughline::model::json::RawJson;
use throughline::tool::{CallContext, ToolError, ToolOutput, ToolSpec};

/// The function of a fake tool.
type Work =
    dyn Fn(RawJson, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool that counts how often it ran.
#[derive(Clone)]
pub struct Fake {
    spec: ToolSpec,
    body: Arc<Work>,
    runs: Arc<AtomicUsize>,
    keys: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// A tool with a function.
    pub fn doing<F>(
        name: &str,
        body: impl Fn(RawJson, CallContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self {
            spec: ToolSpec::named(name),
            body: Arc::new(move |arguments, context| Box::pin(body(arguments, context))),
            runs: Arc::default(),
            keys: Arc::default(),
        }
    }

    /// A tool that returns its own name.
    pub fn named(name: &str) -> Self {
        let said = name.to_owned();
        Self::doing(name, move |_, _| {
            let said = said.clone();
            async move { Ok(ToolOutput::text(said)) }
        })
    }

    /// A tool that fails.
    pub fn failing(name: &str) -> Self {
        Self::doing(name, |_, _| async { Err("the pier is closed".into()) })
    }

    /// Changes the specification.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// How often it ran.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// The idempotency key of each execution.
    pub fn keys(&self) -> Vec<String> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }
}

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.push(context.idempotency_key.clone());
        }
        (self.body)(arguments.clone(), context).await
    }
}
