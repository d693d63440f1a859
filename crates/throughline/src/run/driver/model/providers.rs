//! Asks context providers before a run and a call, and notifies them afterwards.

use std::sync::Arc;

use throughline_model::{Message, Source};
use throughline_store::{RunId, State, ThreadId};

use crate::prompt::View;
use crate::run::driver::Driver;
use crate::run::driver::start::{Plan, joined};
use crate::run::outcome::RunError;
use crate::run::{
    Additions, ContextProvider, Keep, Need, ProviderContext, ProviderError, ProviderScope,
    ProviderState, Told,
};
use crate::thread::StopReason;
use crate::tool::{RunHandle, Tool};

/// What providers added to a run.
#[derive(Default)]
pub(in crate::run::driver) struct Provided {
    /// Everything of scope `run`.
    pub(in crate::run::driver) run: Additions,
    /// What the next model call gets on top.
    pub(in crate::run::driver) call: Additions,
    /// Messages that become history.
    pub(in crate::run::driver) kept: Vec<Message>,
    /// Whether providers of scope `call` were asked for a call of which they heard no more.
    open_call: bool,
}

impl Provided {
    /// Everything that was added so far, as the next provider is shown it.
    fn shown(&self, scope: ProviderScope) -> Additions {
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

/// Where providers are asked: what they may see.
struct Asking<'a> {
    thread: &'a ThreadId,
    run: RunId,
    history: &'a [Arc<Message>],
    said: &'a [Arc<Message>],
}

impl Asking<'_> {
    fn context<'c>(
        &'c self,
        added: &'c Additions,
        state: &'c mut ProviderState,
    ) -> ProviderContext<'c> {
        ProviderContext {
            thread: self.thread,
            run: self.run,
            history: self.history,
            said: self.said,
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
            let shown = provided.shown(scope);
            let mut context = self.context(&shown, &mut own);
            let added = match provider.before(&mut context).await {
                Ok(added) => added,
                Err(error) => {
                    forgive(&spec.name, spec.need, self.run, error)?;
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

    /// Tell the providers of a scope how it went: every one, also when one of them fails.
    async fn tell(
        &self,
        providers: &[Arc<dyn ContextProvider>],
        scopes: &[ProviderScope],
        state: &mut State,
        told: &Told<'_>,
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
            match provider.after(&mut context, told).await {
                Ok(()) => {
                    if own != before {
                        state.set_provider(&spec.name, own.0);
                    }
                }
                Err(error) => {
                    let forgiven = forgive(&spec.name, spec.need, self.run, error);
                    failed = failed.or(forgiven.err());
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// A provider failed.
fn forgive(name: &str, need: Need, run: RunId, error: ProviderError) -> Result<(), RunError> {
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
pub(in crate::run::driver) async fn before_run(
    plan: &Plan,
    (thread, run): (&ThreadId, RunId),
    history: &[Arc<Message>],
    said: &[Message],
    state: &mut State,
) -> Result<Provided, RunError> {
    let mut provided = Provided::default();
    if plan.providers.is_empty() {
        return Ok(provided);
    }
    let said: Vec<Arc<Message>> = said.iter().cloned().map(Arc::new).collect();
    let asking = Asking {
        thread,
        run,
        history,
        said: &said,
    };
    let asked = asking.ask(&plan.providers, ProviderScope::Run, state, &mut provided);
    asked.await?;
    Ok(provided)
}

/// What providers are told of a run that fails before it has begun.
pub(in crate::run::driver) struct Unbegun {
    providers: Vec<Arc<dyn ContextProvider>>,
    history: Vec<Arc<Message>>,
    said: Vec<Arc<Message>>,
    state: State,
}

impl Unbegun {
    pub(in crate::run::driver) fn of(
        plan: &Plan,
        history: &[Arc<Message>],
        said: &[Message],
        state: &State,
    ) -> Option<Self> {
        (!plan.providers.is_empty()).then(|| Self {
            providers: plan.providers.clone(),
            history: history.to_vec(),
            said: said.iter().cloned().map(Arc::new).collect(),
            state: state.clone(),
        })
    }

    /// Tell every provider, whether it was asked or not. Nothing they say counts.
    pub(in crate::run::driver) async fn failed(
        mut self,
        (thread, run): (&ThreadId, RunId),
        error: &RunError,
    ) {
        let asking = Asking {
            thread,
            run,
            history: &self.history,
            said: &self.said,
        };
        let told = Told {
            stop: Some(StopReason::Failed),
            error: Some(error),
        };
        let scopes = [ProviderScope::Run, ProviderScope::Call];
        let heard = asking.tell(&self.providers, &scopes, &mut self.state, &told);
        if let Err(second) = heard.await {
            tracing::warn!(%run, error = %second, "a context provider failed when it was told of a failure");
        }
    }
}

impl Driver {
    /// Ask the providers of scope `call`.
    pub(in crate::run::driver) async fn before_call(&mut self) -> Result<(), RunError> {
        if self.plan.providers.is_empty() {
            return Ok(());
        }
        let mut provided = std::mem::take(&mut self.provided);
        let before = std::mem::take(&mut provided.call).tools;
        provided.open_call = true;
        let asking = Asking {
            thread: &self.job.thread.id,
            run: self.run,
            history: self.prompt.history(),
            said: &self.said,
        };
        let asked = asking
            .ask(
                &self.plan.providers,
                ProviderScope::Call,
                &mut self.state,
                &mut provided,
            )
            .await;
        self.provided = provided;
        asked?;
        let tools = self.provided.call.tools.clone();
        let same = |one: &Arc<dyn Tool>, tools: &[Arc<dyn Tool>]| {
            tools.iter().any(|tool| Arc::ptr_eq(tool, one))
        };
        for tool in before {
            // What was added for the call before goes, unless it is added again or another tool has
            // come into its place.
            let name = &tool.spec().name;
            let found = self.tools.set().find(name).cloned();
            if !same(&tool, &tools) && found.is_some_and(|found| Arc::ptr_eq(&found, &tool)) {
                self.tools.remove_tool(name).map_err(RunError::Tools)?;
            }
        }
        self.tools.add_tools(tools).map_err(RunError::Tools)
    }

    /// Tell the providers of scope `call` that a model call ended.
    pub(in crate::run::driver) async fn after_call(&mut self) -> Result<(), RunError> {
        self.provided.open_call = false;
        self.told(&[ProviderScope::Call], None, None).await
    }

    /// Tell the providers of scope `run` how it went; when it failed, all of them, and those of
    /// scope `call` also when it was cut off in the middle of one.
    pub(in crate::run::driver) async fn after_run(
        &mut self,
        stop: StopReason,
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        let open_call = std::mem::take(&mut self.provided.open_call);
        let scopes: &[ProviderScope] = match error.is_some() || open_call {
            false => &[ProviderScope::Run],
            true => &[ProviderScope::Run, ProviderScope::Call],
        };
        self.told(scopes, Some(stop), error).await
    }

    async fn told(
        &mut self,
        scopes: &[ProviderScope],
        stop: Option<StopReason>,
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        if self.plan.providers.is_empty() {
            return Ok(());
        }
        let asking = Asking {
            thread: &self.job.thread.id,
            run: self.run,
            history: self.prompt.history(),
            said: &self.said,
        };
        let told = Told { stop, error };
        asking
            .tell(&self.plan.providers, scopes, &mut self.state, &told)
            .await
    }

    /// The instructions of the next model call.
    pub(in crate::run::driver) fn instructions(&self) -> Option<String> {
        let Provided { run, call, .. } = &self.provided;
        let more = run.instructions.iter().chain(&call.instructions);
        let more = more.map(|text| Some(text.as_str()));
        joined(std::iter::once(self.plan.instructions.as_deref()).chain(more))
    }

    /// What the next model call is given, where that is not simply what the run sees.
    pub(in crate::run::driver) fn special_view(&self) -> Option<View> {
        let messages = &self.provided.call.messages;
        if messages.is_empty() && self.agent.filters.is_empty() {
            return None;
        }
        let mut shown: Vec<Arc<Message>> = self.prompt.view().messages().to_vec();
        if !messages.is_empty() {
            // Between the history and what the run said.
            let place = shown.len() - self.said.len().min(shown.len());
            let messages = messages.iter().cloned().map(Arc::new);
            shown.splice(place..place, messages);
        }
        for filter in &self.agent.filters {
            shown = filter.filter(&shown);
        }
        Some(View::new(shown))
    }
}
