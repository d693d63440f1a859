//! Asks context providers before a run and a model call, and tells them how it ended.

use std::sync::Arc;

use throughline_model::{Message, Source};
use throughline_store::{RunId, State, ThreadId};

use crate::prompt::View;
use crate::run::driver::Driver;
use crate::run::driver::start::{Plan, joined};
use crate::run::outcome::RunError;
use crate::run::{
    Additions, Completion, ContextProvider, Keep, Need, ProviderContext, ProviderError,
    ProviderScope, ProviderState,
};
use crate::thread::StopReason;
use crate::tool::{RunHandle, Tool};

/// What providers added to a run.
#[derive(Default)]
pub(crate) struct Provided {
    /// Everything of scope `run`.
    pub(crate) run: Additions,
    /// What the next model call gets in addition.
    pub(crate) call: Additions,
    /// Messages that become history.
    pub(crate) kept: Vec<Message>,
    /// Whether providers of scope `call` were asked before a call and not told of its end.
    open_call: bool,
}

impl Provided {
    /// Everything that was added so far, for the next provider.
    fn so_far(&self, scope: ProviderScope) -> Additions {
        let mut shown = self.run.clone();
        shown.messages.splice(..0, self.kept.iter().cloned());
        if scope == ProviderScope::Call {
            shown
                .instructions
                .extend(self.call.instructions.iter().cloned());
            shown.messages.extend(self.call.messages.iter().cloned());
            shown.tools.extend(self.call.tools.iter().cloned());
        }
        shown
    }
}

/// What providers may see.
struct ProviderInput<'a> {
    thread: &'a ThreadId,
    run: RunId,
    history: &'a [Arc<Message>],
    messages: &'a [Arc<Message>],
}

impl ProviderInput<'_> {
    fn context<'c>(
        &'c self,
        added: &'c Additions,
        state: &'c mut ProviderState,
    ) -> ProviderContext<'c> {
        ProviderContext {
            thread: self.thread,
            run: self.run,
            history: self.history,
            messages: self.messages,
            added,
            state,
        }
    }

    /// Ask the providers of a scope, in order.
    async fn ask(
        &self,
        providers: &[Arc<dyn ContextProvider>],
        scope: ProviderScope,
        state: &mut State,
        provided: &mut Provided,
    ) -> Result<(), RunError> {
        for provider in providers {
            let spec = provider.spec();
            if spec.scope != scope {
                continue;
            }
            let mut own = ProviderState::of(state, &spec.name);
            let before = own.clone();
            let so_far = provided.so_far(scope);
            let mut context = self.context(&so_far, &mut own);
            let added = match provider.before(&mut context).await {
                Ok(added) => added,
                Err(error) => {
                    if_required(&spec.name, spec.need, self.run, error)?;
                    continue;
                }
            };
            if own != before {
                state.set_provider(&spec.name, own.0);
            }
            let kept = added.keep == Keep::Yes && scope == ProviderScope::Run;
            let mut messages = added.messages;
            for message in &mut messages {
                message.source = Some(Source::ContextProvider);
                if kept || message.author.is_none() {
                    message.author = Some(spec.name.clone());
                }
            }
            let all = match scope {
                ProviderScope::Run => &mut provided.run,
                ProviderScope::Call => &mut provided.call,
            };
            all.instructions.extend(added.instructions);
            all.tools.extend(added.tools);
            match kept {
                true => provided.kept.extend(messages),
                false => all.messages.extend(messages),
            }
        }
        Ok(())
    }

    /// Tell every provider of some scopes how it ended, also when one of them fails.
    async fn tell(
        &self,
        providers: &[Arc<dyn ContextProvider>],
        scopes: &[ProviderScope],
        state: &mut State,
        completion: &Completion<'_>,
    ) -> Result<(), RunError> {
        let mut failed = None;
        let nothing = Additions::default();
        for provider in providers {
            let spec = provider.spec();
            if !scopes.contains(&spec.scope) {
                continue;
            }
            let mut own = ProviderState::of(state, &spec.name);
            let before = own.clone();
            let mut context = self.context(&nothing, &mut own);
            match provider.after(&mut context, completion).await {
                Ok(()) => {
                    if own != before {
                        state.set_provider(&spec.name, own.0);
                    }
                }
                Err(error) => {
                    let error = if_required(&spec.name, spec.need, self.run, error);
                    failed = failed.or(error.err());
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// The error of a required provider. That of an optional one is logged.
fn if_required(name: &str, need: Need, run: RunId, error: ProviderError) -> Result<(), RunError> {
    match need {
        Need::Required => Err(RunError::Provider {
            name: name.to_owned(),
            source: error,
        }),
        Need::Optional => {
            tracing::warn!(%run, provider = name, %error, "a context provider failed");
            Ok(())
        }
    }
}

/// Ask the providers of scope `run` before it begins.
pub(crate) async fn before_run(
    plan: &Plan,
    (thread, run): (&ThreadId, RunId),
    history: &[Arc<Message>],
    input: &[Message],
    state: &mut State,
) -> Result<Provided, RunError> {
    let mut provided = Provided::default();
    if plan.providers.is_empty() {
        return Ok(provided);
    }
    let messages: Vec<Arc<Message>> = input.iter().cloned().map(Arc::new).collect();
    let seen = ProviderInput {
        thread,
        run,
        history,
        messages: &messages,
    };
    let asked = seen.ask(&plan.providers, ProviderScope::Run, state, &mut provided);
    asked.await?;
    Ok(provided)
}

/// Tells providers of a run that fails before it has begun.
pub(crate) struct UnstartedRun {
    providers: Vec<Arc<dyn ContextProvider>>,
    history: Vec<Arc<Message>>,
    messages: Vec<Arc<Message>>,
    state: State,
}

impl UnstartedRun {
    /// `None` if there are no providers.
    pub(crate) fn of(
        plan: &Plan,
        history: &[Arc<Message>],
        input: &[Message],
        state: &State,
    ) -> Option<Self> {
        (!plan.providers.is_empty()).then(|| Self {
            providers: plan.providers.clone(),
            history: history.to_vec(),
            messages: input.iter().cloned().map(Arc::new).collect(),
            state: state.clone(),
        })
    }

    /// Tell every provider, also those that were not asked. Their state is not stored.
    pub(crate) async fn failed(mut self, (thread, run): (&ThreadId, RunId), error: &RunError) {
        let seen = ProviderInput {
            thread,
            run,
            history: &self.history,
            messages: &self.messages,
        };
        let completion = Completion {
            stop: Some(StopReason::Failed),
            error: Some(error),
        };
        let scopes = [ProviderScope::Run, ProviderScope::Call];
        let told = seen.tell(&self.providers, &scopes, &mut self.state, &completion);
        if let Err(second) = told.await {
            tracing::warn!(%run, error = %second, "a context provider failed when it was told of a failure");
        }
    }
}

impl Driver {
    /// Ask the providers of scope `call`.
    pub(crate) async fn before_call(&mut self) -> Result<(), RunError> {
        if self.plan.providers.is_empty() {
            return Ok(());
        }
        let provided = &mut self.model.provided;
        let before = std::mem::take(&mut provided.call).tools;
        provided.open_call = true;
        let seen = ProviderInput {
            thread: self.context.thread_id(),
            run: self.run,
            history: self.model.view.history(),
            messages: self.transcript.messages(),
        };
        let (providers, state) = (&self.plan.providers, &mut self.state.current);
        seen.ask(providers, ProviderScope::Call, state, provided)
            .await?;
        let tools = provided.call.tools.clone();
        let same = |one: &Arc<dyn Tool>, tools: &[Arc<dyn Tool>]| {
            tools.iter().any(|tool| Arc::ptr_eq(tool, one))
        };
        for tool in before {
            // Remove tools of the call before, unless they are added again or were replaced.
            let name = &tool.spec().name;
            let found = self.tools.set().find(name).cloned();
            if !same(&tool, &tools) && found.is_some_and(|found| Arc::ptr_eq(&found, &tool)) {
                let available = &self.tools.available;
                available.remove_tool(name).map_err(RunError::Tools)?;
            }
        }
        self.tools
            .available
            .add_tools(tools)
            .map_err(RunError::Tools)
    }

    /// Tell the providers of scope `call` that a model call ended.
    pub(crate) async fn after_call(&mut self) -> Result<(), RunError> {
        self.model.provided.open_call = false;
        self.tell_providers(&[ProviderScope::Call], None, None)
            .await
    }

    /// Tell the providers of scope `run` that it ended. Those of scope `call` are told when it failed
    /// or was cut off in a model call.
    pub(crate) async fn after_run(
        &mut self,
        stop: StopReason,
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        let open_call = std::mem::take(&mut self.model.provided.open_call);
        let scopes: &[ProviderScope] = match error.is_some() || open_call {
            false => &[ProviderScope::Run],
            true => &[ProviderScope::Run, ProviderScope::Call],
        };
        self.tell_providers(scopes, Some(stop), error).await
    }

    async fn tell_providers(
        &mut self,
        scopes: &[ProviderScope],
        stop: Option<StopReason>,
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        if self.plan.providers.is_empty() {
            return Ok(());
        }
        let seen = ProviderInput {
            thread: self.context.thread_id(),
            run: self.run,
            history: self.model.view.history(),
            messages: self.transcript.messages(),
        };
        let (providers, state) = (&self.plan.providers, &mut self.state.current);
        let completion = Completion { stop, error };
        seen.tell(providers, scopes, state, &completion).await
    }

    /// The instructions of the next model call.
    pub(crate) fn instructions(&self) -> Option<String> {
        let Provided { run, call, .. } = &self.model.provided;
        let more = run.instructions.iter().chain(&call.instructions);
        let more = more.map(|text| Some(text.as_str()));
        joined(std::iter::once(self.plan.instructions.as_deref()).chain(more))
    }

    /// The view for the next model call, if messages for this call alone are added or a filter changes
    /// it.
    pub(crate) fn special_view(&self) -> Option<View> {
        let messages = &self.model.provided.call.messages;
        let filters = &self.context.agent.filters;
        if messages.is_empty() && filters.is_empty() {
            return None;
        }
        let mut shown: Vec<Arc<Message>> = self.model.view.view().messages().to_vec();
        if !messages.is_empty() {
            // Between the history and the messages of the run.
            let run = self.transcript.messages().len();
            let place = shown.len() - run.min(shown.len());
            let messages = messages.iter().cloned().map(Arc::new);
            shown.splice(place..place, messages);
        }
        for filter in filters {
            shown = filter.filter(&shown);
        }
        Some(View::new(shown))
    }
}
