//! Beginning the run of a create request.

use std::sync::Arc;

use throughline::agent::order::Reply;
use throughline::agent::{Compaction, Run, RunOptions};
use throughline::thread::{Awaits, Pending};
use throughline::{Thread, Threads};
use throughline_model::{Message, Source, ToolCall, ToolChoice};
use throughline_store::{ApprovalId, Idempotency, Journal, NewThread, RunId};

use super::approvals::call_at;
use super::create::CreateCall;
use super::errors;
use super::projection::ResponseProjection;
use super::resolve_input::{ResolvedInput, resolve_input, unknown_approval};
use super::resolve_target::{ResolvedTarget, resolve_target};
use super::resume::LeftOnConversation;
use super::retry::{FailedRun, Recorded};
use super::stored_request::StoredRequest;
use super::stored_response::dialect;
use super::thread_owner::{OwnerSettled, settle_owner};
use super::trigger::{WholeConversation, answer_with_compaction};
use super::wire::{Ignored, RequestTool, ResponseContext, member_of};
use crate::api::ignored;
use crate::api::openai::conversation_head;
use crate::api::openai::items::{InputItems, KnownCall};
use crate::error::ApiError;
use crate::service::{
    Answer, DetachOnDrop, EventLog, LiveRun, RunPhase, Unfinished, begun_at, work,
};

/// The run that answers a request.
pub(super) enum Started {
    /// A new run. The request task drives it until the client disconnects or has its answer.
    New(Arc<LiveRun>, DetachOnDrop),
    /// A run that was begun before under the same key.
    Existing(RunId),
}

/// Where the thread of a previous response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    InStore,
    /// In memory, until the WebSocket ends.
    OnSocket,
}

/// What a run begins with.
struct Prepared {
    thread: Thread,
    /// The history before the input.
    history: Arc<Vec<Arc<Message>>>,
    input: ResolvedInput,
    target: ResolvedTarget,
    previous: Option<RunId>,
    /// The journal of the previous run, if it was read.
    journal: Option<Journal>,
    /// The failed run whose journal this one goes on with.
    adopts: Option<FailedRun>,
}

impl CreateCall<'_> {
    /// Begin a run. It moves to a background task when the request task is dropped.
    pub(super) async fn start(
        &mut self,
        run: RunId,
        key: Option<Idempotency>,
        failed: Option<FailedRun>,
    ) -> Result<Started, ApiError> {
        let app = self.app;
        let mut prepared = self.prepare(failed.filter(FailedRun::is_adopted)).await?;
        self.report_ignored(run, &prepared.target.host.ignored);
        let context = self.context(run, &prepared);
        let mut options = options(run, key, &mut prepared);
        options.expected_head = self.expected_head;
        if self.request.conversation().is_some() {
            options.left_runs = Some(Arc::new(LeftOnConversation {
                app: app.clone(),
                scope: self.scope.clone(),
            }));
        }
        let log = match options.compaction {
            Some(Compaction::On(_)) => EventLog::Always,
            Some(Compaction::Off) | None => EventLog::IfStreamed,
        };
        let messages = std::mem::take(&mut prepared.input.messages);
        let order = prepared.target.agent.reply_on(&prepared.thread, messages);
        let order = self
            .with_approvals(order.options(&options), &mut prepared)
            .await?;
        let (streamed, stored) = (self.request.stream(), self.request.store());
        let webhooks = app.webhooks.as_deref();
        let webhooks = webhooks.filter(|_| self.request.background());
        if let Some(webhooks) = webhooks {
            let expected = webhooks.expect(self.scope, run).await;
            expected.map_err(|error| errors::store(&error))?;
        }
        if let Some(chain) = self.chain.as_ref().filter(|_| !stored) {
            chain.keep(run, prepared.thread, self.memory.bytes());
        }
        let active = app.runs.begin(self.scope, run, streamed, stored);
        let live = Arc::clone(&active.live);
        let projection = move || ResponseProjection::new(context, streamed);
        // The run outlives the request: the client may disconnect.
        let work = work(active, order, projection, log, Arc::clone(&self.memory));
        let mut driven = DetachOnDrop::new(app.stopping.work(), work);
        let phase = driven.drive_until(|| live.begun()).await;
        let phase = phase.unwrap_or(RunPhase::Over(Answer::Unfinished(Unfinished::NotStored)));
        let did_not_begin = match &phase {
            RunPhase::Over(Answer::Repeated(_)) => true,
            RunPhase::Over(Answer::Error(_)) => live.is_refused(),
            _ => false,
        };
        if let Some(webhooks) = webhooks.filter(|_| did_not_begin) {
            webhooks.forget(run).await;
        }
        match phase {
            RunPhase::Over(Answer::Repeated(run)) => Ok(Started::Existing(run)),
            RunPhase::Over(Answer::Error(error)) if live.is_refused() => Err(error),
            RunPhase::Over(Answer::Unfinished(Unfinished::NotStored)) => {
                Err(errors::outcome_unknown(run))
            }
            RunPhase::Starting | RunPhase::Begun | RunPhase::Over(_) => {
                // The run has stored the input; this request does not need it again.
                self.input = InputItems::default();
                Ok(Started::New(live, driven))
            }
        }
    }

    /// Resolve thread, target and input.
    async fn prepare(&self, adopts: Option<FailedRun>) -> Result<Prepared, ApiError> {
        let (app, request) = (self.app, &self.request);
        let previous = match adopts {
            Some(adopts) => Some(adopts.run),
            None => self.previous()?,
        };
        let continues = previous.is_some() || request.conversation().is_some();
        if !continues && self.input.is_empty() && !request.has_prompt() {
            return Err(ApiError::invalid(
                "Missing required parameter: 'input'. Say something, or name a response to go on from \
                 in 'previous_response_id'.",
            )
            .code("missing_required_parameter")
            .param("input"));
        }
        let threads = app.runs.threads(self.scope);
        if let Some(id) = request.conversation() {
            let thread = conversation_head::open(&threads, id).await;
            let thread = thread.map_err(|error| errors::conversation(&error, id))?;
            // Calls of the newest response may wait for answers in the input.
            let newest = thread.head().map(|head| head.run);
            return self.prepare_on((thread, Kept::InStore), newest, None).await;
        }
        if let Some(thread) = self.kept_on_socket(previous)? {
            return self
                .prepare_on((thread, Kept::OnSocket), previous, None)
                .await;
        }
        let thread = self.thread(&threads, previous).await?;
        self.prepare_on((thread, Kept::InStore), previous, adopts)
            .await
    }

    /// The thread of a response that the WebSocket alone has, taken out of there.
    fn kept_on_socket(&self, previous: Option<RunId>) -> Result<Option<Thread>, ApiError> {
        let kept = self.chain.as_ref().zip(previous);
        let kept = kept.and_then(|(chain, run)| chain.take(run));
        match kept {
            Some(_) if self.request.store() => Err(ApiError::invalid(
                "The previous response was not stored, so that what continues it cannot be stored \
                 either: send `store: false`.",
            )
            .code("previous_response_not_found")
            .param("previous_response_id")
            .retry(false)),
            kept => Ok(kept),
        }
    }

    /// Resolve target and input on a thread.
    async fn prepare_on(
        &self,
        (thread, kept): (Thread, Kept),
        previous: Option<RunId>,
        adopts: Option<FailedRun>,
    ) -> Result<Prepared, ApiError> {
        let (app, request) = (self.app, &self.request);
        let recorded = previous.filter(|_| kept == Kept::InStore);
        let journal = match recorded.filter(|_| self.uses_server_tools()) {
            Some(previous) => Some(self.journal(previous).await?),
            None => None,
        };
        let listed = listed(journal.as_ref())?;
        let mut target = resolve_target(app, Arc::clone(request), &self.input, &listed).await?;
        if adopts.is_some_and(|failed| failed.recorded == Recorded::Answer) {
            // The tool choice holds for the first model call alone.
            target.options.choice = ToolChoice::Auto;
        }
        let history = thread.snapshot();
        let mut input = match adopts {
            // The input is in the journal of the adopted run.
            Some(_) => ResolvedInput::default(),
            None => resolve_input(app, self.scope, &self.input, &history, journal.as_ref()).await?,
        };
        if !input.ignored.is_empty() {
            target.host.ignored.append(&mut input.ignored);
            ignored::check_unsupported(&target.host.ignored, app.config.server.unsupported)?;
            target.options.host = Some(target.host.to_json());
        }
        if self.compacts {
            let mut messages = history.to_vec();
            messages.extend(input.messages.iter().cloned().map(Arc::new));
            let whole = WholeConversation {
                request,
                input: &self.input,
                messages: &messages,
            };
            answer_with_compaction(app, self.scope, &mut target, &whole)?;
        }
        let thread = match (request.store(), kept) {
            (true, _) | (false, Kept::OnSocket) => thread,
            (false, Kept::InStore) => in_memory(&target, &history)?,
        };
        match settle_owner(app, self.scope, &thread, &target).await? {
            OwnerSettled::AsItIs => {}
            // The input is compared with what there is now.
            OwnerSettled::Longer(longer) => {
                return Box::pin(self.prepare_on((*longer, kept), previous, adopts)).await;
            }
        }
        if thread.follows_failed().is_some() {
            target.host.previous = previous;
            target.options.host = Some(target.host.to_json());
        }
        Ok(Prepared {
            thread,
            history,
            input,
            target,
            previous,
            journal,
            adopts,
        })
    }

    fn context(&self, run: RunId, prepared: &Prepared) -> ResponseContext {
        let (thread, host) = (&prepared.thread, &prepared.target.host);
        ResponseContext {
            run,
            thread: self.request.store().then(|| thread.id().clone()),
            created: begun_at(run),
            previous: prepared.previous.filter(|_| host.conversation.is_none()),
            conversation: host.conversation.clone(),
            request: Arc::clone(&self.request),
            dialect: dialect(self.app),
            tool_index: host.tool_index(),
            lists: host.lists.clone(),
            known_calls: known_calls(thread),
            ignored: host.ignored.clone(),
        }
    }

    /// Name what is not carried out in the header, the metrics and the log.
    fn report_ignored(&mut self, run: RunId, all: &[Ignored]) {
        self.ignored = ignored::header(all);
        for ignored in all {
            self.app.http.ignored(member_of(&ignored.path));
        }
        if let Some(ignored) = &self.ignored {
            let id = errors::response_id(run);
            tracing::info!(
                response_id = id,
                ignored,
                "a request is not carried out in full"
            );
        }
    }

    /// The response that this one continues.
    fn previous(&self) -> Result<Option<RunId>, ApiError> {
        match self.request.previous_response_id() {
            None => Ok(None),
            Some(id) => match errors::parse_response_id(id) {
                Some(run) => Ok(Some(run)),
                None => Err(errors::no_previous(id)),
            },
        }
    }

    /// The thread that the run works on.
    async fn thread(&self, threads: &Threads, previous: Option<RunId>) -> Result<Thread, ApiError> {
        let Some(previous) = previous else {
            let id = self.app.store.ids().thread();
            return Ok(threads.make_free(NewThread::new(id)));
        };
        let thread = match self.request.store() {
            true => threads.after(previous).await,
            // No run will look whether it is still there.
            false => threads.open_after(previous).await,
        };
        match thread {
            Ok(thread) => Ok(thread),
            Err(error) => Err(errors::after(&error, previous)),
        }
    }

    /// Whether the request may use tools that run in the server.
    fn uses_server_tools(&self) -> bool {
        let is_mcp = |tool: &RequestTool| matches!(tool, RequestTool::Mcp(_));
        let is_agent = |model: &str| model.starts_with("agent/");
        self.request.model().is_some_and(is_agent) || self.request.tools().iter().any(is_mcp)
    }

    async fn journal(&self, previous: RunId) -> Result<Journal, ApiError> {
        let journal = self.app.store.journal(self.scope, previous).await;
        journal.map_err(|error| errors::after(&error, previous))
    }

    /// The run with the client's answers to approval requests.
    async fn with_approvals(
        &self,
        mut order: Run<Reply>,
        prepared: &mut Prepared,
    ) -> Result<Run<Reply>, ApiError> {
        let input = &prepared.input;
        let Some(first) = input.approvals.first() else {
            return Ok(order);
        };
        let Some(previous) = prepared.previous else {
            return Err(unknown_approval(&first.approval.to_string()));
        };
        let pending = prepared.thread.pending();
        for answer in &input.approvals {
            let waits = |one: &&Pending| one.approval == Some(answer.approval);
            let call = match pending.iter().find(waits) {
                Some(call) => call.clone(),
                None => {
                    if prepared.journal.is_none() {
                        prepared.journal = Some(self.journal(previous).await?);
                    }
                    settled_call(prepared.journal.as_ref(), answer.approval)?
                }
            };
            order = match answer.approve {
                true => order.approve(&call),
                false => order.reject(&call, answer.reason.as_deref()),
            };
        }
        Ok(order)
    }
}

/// The tool servers that the chain has listed.
fn listed(journal: Option<&Journal>) -> Result<Vec<String>, ApiError> {
    let host = StoredRequest::of(journal.and_then(|journal| journal.request.as_ref()))?;
    Ok(host.map(|host| host.listed).unwrap_or_default())
}

/// The call of an approval that does not wait any more: whether a retry of this request or another
/// request has answered it is decided where the run begins.
fn settled_call(journal: Option<&Journal>, approval: ApprovalId) -> Result<Pending, ApiError> {
    let found = journal.and_then(|journal| {
        let mut calls = journal.calls.iter();
        let call = calls.find(|call| call.approval == Some(approval))?;
        Some((call, call_at(journal, call)?))
    });
    let Some((call, known)) = found else {
        return Err(unknown_approval(&approval.to_string()));
    };
    Ok(Pending {
        call: known.call.call,
        tool: known.call.name,
        arguments: known.call.arguments,
        awaits: Awaits::Approval,
        at: call.at,
        occurrence: known.occurrence,
        approval: Some(approval),
    })
}

/// The options of the run. Takes those of the target.
fn options(run: RunId, key: Option<Idempotency>, prepared: &mut Prepared) -> RunOptions {
    let options = std::mem::take(&mut prepared.target.options);
    let compaction = options.compaction.map(|compaction| {
        let record = prepared.history.iter().map(|message| &**message);
        compaction.pinning(record.chain(&prepared.input.messages), is_summary)
    });
    RunOptions {
        compaction,
        keeps_spent: prepared.adopts.is_some(),
        run: Some(run),
        key,
        ..options
    }
}

/// A thread in memory, which is dropped when its run has ended.
fn in_memory(target: &ResolvedTarget, history: &[Arc<Message>]) -> Result<Thread, ApiError> {
    if let Some((name, _)) = target.host.tools.iter().find(|(_, tool)| tool.asks) {
        return Err(ApiError::invalid(format!(
            "The tool '{name}' needs approval, which needs `store: true`."
        ))
        .code("approval_requires_store")
        .param("store"));
    }
    let history = history.iter().map(|message| Message::clone(message));
    Ok(Thread::of(Thread::new().id().clone(), history.collect()))
}

/// Whether a message is a compacted conversation that a client sent. It is all that is left of what it
/// stands for, so that it is never compacted again.
fn is_summary(message: &Message) -> bool {
    message.source == Some(Source::Summary)
}

/// The calls that a run takes over if it begins here: it answers or closes all that wait for an
/// approval.
fn known_calls(thread: &Thread) -> Vec<KnownCall> {
    let pending = thread.pending().into_iter();
    let asked = pending.filter(|call| call.awaits == Awaits::Approval);
    asked
        .map(|one| KnownCall {
            call: ToolCall {
                arguments: one.arguments,
                ..ToolCall::function(one.call, one.tool, "{}")
            },
            occurrence: one.occurrence,
        })
        .collect()
}
