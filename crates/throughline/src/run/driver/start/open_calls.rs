//! Beginning at a node that is marked open: answers to its waiting calls, and what happens to the
//! calls that are not answered.
//!
//! Results that come from outside are input like any other, and each branch may have its own. A
//! call that waits for an approval runs at most once: one run takes it over, by compare-and-set in the
//! write that begins it.

use throughline_model::{Body, Content, Message, Outcome, Output, Role, Source};
use throughline_store::{
    Approval, ApprovalId, ApprovalState, CallRef, CallState, Decision, Error, Execution, Journal,
    NodeId, RunState, Unanswerable,
};

use super::plan::Plan;
use crate::run::driver::RunContext;
use crate::run::driver::approvals::{find_approvals, store_decision};
use crate::run::handle::{Answered, Reply};
use crate::run::machine::Ended;
use crate::run::outcome::RunError;
use crate::thread::journal::Calls;
use crate::thread::journal::OpenCall;
use crate::thread::{Loaded, OnOpenCalls};

/// A call of an earlier run that this run takes over and runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenCall {
    pub(crate) at: CallRef,
    pub(crate) call: OpenCall,
}

/// How a run that begins at an open node answers its calls.
#[derive(Default)]
pub(crate) struct OpenCallAnswers {
    /// Results of calls that do not run. They stand before the input.
    results: Vec<Content>,
    /// Calls that this run takes over.
    pub(crate) takes: Vec<CallRef>,
    /// The calls that it takes over and runs.
    pub(crate) run: Vec<TakenCall>,
}

impl OpenCallAnswers {
    /// The results as a message.
    pub(crate) fn message(&mut self) -> Option<Message> {
        if self.results.is_empty() {
            return None;
        }
        let mut message = Message::new(Role::Tool, std::mem::take(&mut self.results));
        message.source = Some(Source::Repair);
        Some(message)
    }
}

/// Answer the calls that the node waits for, by replies, results in the input and stored approvals.
pub(crate) async fn answer_open_calls(
    context: &RunContext,
    plan: &Plan,
    loaded: &Loaded,
    input: &mut [Message],
    replies: &[Answered],
) -> Result<OpenCallAnswers, RunError> {
    let journal = match loaded
        .end()
        .filter(|end| end.open && loaded.failed.is_none())
    {
        Some(end) => journal_of_open_node(context, end.node).await?,
        None => None,
    };
    let Some(journal) = journal else {
        return match replies.first() {
            Some(answered) => Err(answered.not_pending(Vec::new())),
            None => Ok(OpenCallAnswers::default()),
        };
    };
    let calls = Calls::of(&context.thread.home, &journal).await?;
    let waiting: Vec<&Execution> = journal.calls.iter().filter(|one| waits(one)).collect();
    let answered = answered_by_input(&calls, &waiting, input);
    let wanted: Vec<_> = journal
        .calls
        .iter()
        .filter_map(|one| one.approval)
        .collect();
    let mut resolver = OpenCallResolver {
        context,
        journal: &journal,
        calls: &calls,
        replies: replies.to_vec(),
        answered,
        approvals: find_approvals(context, &journal.run.thread, &wanted).await?,
        answers: OpenCallAnswers::default(),
        unanswered: Vec::new(),
    };
    for call in &waiting {
        resolver.decide(call).await?;
    }
    if let Some(answered) = resolver.replies.first() {
        let pending = waiting.iter().map(|one| one.call.clone()).collect();
        return Err(answered.not_pending(pending));
    }
    resolver.close_unanswered(plan.policy.on_open_calls)
}

/// The journal of the run that left a node open, if its calls can be answered.
async fn journal_of_open_node(
    context: &RunContext,
    node: NodeId,
) -> Result<Option<Journal>, RunError> {
    let home = &context.thread.home;
    let journal = home.store.journal(&home.scope, node.run).await?;
    let ended = match journal.run.state {
        RunState::Committed | RunState::Cancelled => true,
        // A failed run is adopted, and one that is not over is settled.
        RunState::Failed
        | RunState::Running
        | RunState::Interrupted
        | RunState::Parked
        | RunState::Held
        | RunState::Unpublished
        | RunState::Discarded => false,
    };
    Ok((ended && journal.run.published == Some(node)).then_some(journal))
}

fn waits(call: &Execution) -> bool {
    match call.state {
        CallState::Approval | CallState::Client | CallState::Intent | CallState::Taken => true,
        CallState::Planned | CallState::Done => false,
    }
}

/// The places of calls for which the input has results. Ids from outside become places here: of calls
/// with equal ids the first result answers the first call, and is marked with its occurrence.
fn answered_by_input(
    calls: &Calls<'_>,
    waiting: &[&Execution],
    input: &mut [Message],
) -> Vec<CallRef> {
    let mut open: Vec<(CallRef, OpenCall)> = Vec::new();
    for execution in waiting {
        if matches!(execution.state, CallState::Client | CallState::Intent)
            && let Some(call) = calls.at(execution.at)
        {
            open.push((execution.at, call));
        }
    }
    let mut answered = Vec::new();
    let contents = input.iter_mut().flat_map(|message| &mut message.contents);
    for content in contents {
        let Body::ToolResult(result) = &mut content.body else {
            continue;
        };
        let id = result.call().value();
        let Some(place) = open.iter().position(|(_, one)| one.call.call.value() == id) else {
            continue;
        };
        let (at, call) = open.remove(place);
        *result = call.claim(result);
        answered.push(at);
    }
    answered
}

struct OpenCallResolver<'a> {
    context: &'a RunContext,
    journal: &'a Journal,
    calls: &'a Calls<'a>,
    /// Replies whose call has not been found yet.
    replies: Vec<Answered>,
    /// Calls that the input answers.
    answered: Vec<CallRef>,
    approvals: Vec<Approval>,
    answers: OpenCallAnswers,
    /// Calls without an answer.
    unanswered: Vec<(OpenCall, CallRef, CallState)>,
}

impl OpenCallResolver<'_> {
    /// Decide about a call that waits.
    async fn decide(&mut self, execution: &Execution) -> Result<(), RunError> {
        let Some(call) = self.calls.at(execution.at) else {
            return Ok(());
        };
        let answered = self.answer_at(execution.at);
        if let Some(answered) = answered.as_ref().filter(|one| !one.fits(execution.state)) {
            return Err(answered.not_pending(vec![execution.call.clone()]));
        }
        match (execution.state, answered.map(|one| one.reply)) {
            (CallState::Taken, Some(_)) => Err(taken_elsewhere(execution)),
            (CallState::Approval, reply) => self.decide_approval(execution, call, reply).await,
            (_, Some(Reply::Result(outcome, output))) => {
                self.add_result(&call, outcome, output);
                Ok(())
            }
            (state, reply) => {
                debug_assert!(reply.is_none(), "replies that do not fit are refused above");
                if !self.answered.contains(&execution.at) {
                    self.unanswered.push((call, execution.at, state));
                }
                Ok(())
            }
        }
    }

    fn answer_at(&mut self, at: CallRef) -> Option<Answered> {
        let place = self.replies.iter().position(|one| one.at == at)?;
        Some(self.replies.remove(place))
    }

    fn add_result(&mut self, call: &OpenCall, outcome: Outcome, output: Output) {
        let result = call.answer(outcome, output);
        self.answers
            .results
            .push(Content::new(Body::ToolResult(result)));
    }

    /// Decide about a call that waits for an approval, by the reply or an answer in the store.
    async fn decide_approval(
        &mut self,
        execution: &Execution,
        call: OpenCall,
        reply: Option<Reply>,
    ) -> Result<(), RunError> {
        let known = self
            .approvals
            .iter()
            .find(|one| Some(one.id) == execution.approval);
        let Some(approval) = known.cloned() else {
            self.unanswered
                .push((call, execution.at, CallState::Approval));
            return Ok(());
        };
        let approval = match reply {
            None => approval,
            Some(Reply::Approve) => {
                let decision = Decision::Approved;
                self.record_decision(&call, approval, decision, None)
                    .await?
            }
            Some(Reply::Reject(reason)) => {
                let decision = Decision::Denied;
                self.record_decision(&call, approval, decision, reason)
                    .await?
            }
            Some(Reply::Expire) => return self.refuse(execution, &call, Outcome::Expired, None),
            // Refused by `decide`: a call that waits for an approval takes no result.
            Some(Reply::Result(..)) => approval,
        };
        match approval.state {
            ApprovalState::Approved | ApprovalState::Used => {
                self.answers.takes.push(execution.at);
                self.answers.run.push(TakenCall {
                    at: execution.at,
                    call,
                });
                Ok(())
            }
            ApprovalState::Denied => {
                self.refuse(execution, &call, Outcome::Rejected, approval.reason)
            }
            ApprovalState::Expired => self.refuse(execution, &call, Outcome::Expired, None),
            ApprovalState::Waiting | ApprovalState::Withdrawn => {
                self.unanswered
                    .push((call, execution.at, CallState::Approval));
                Ok(())
            }
        }
    }

    /// Take over a call that must not run, so that no other run runs it, and give it a result.
    fn refuse(
        &mut self,
        execution: &Execution,
        call: &OpenCall,
        outcome: Outcome,
        reason: Option<String>,
    ) -> Result<(), RunError> {
        self.answers.takes.push(execution.at);
        let output = match reason {
            Some(reason) => Output::Text(reason),
            None => Ended::closed(outcome).output,
        };
        self.add_result(call, outcome, output);
        Ok(())
    }

    /// Store the decision on an approval before it takes effect. The first decision stands.
    async fn record_decision(
        &self,
        call: &OpenCall,
        approval: Approval,
        decision: Decision,
        reason: Option<String>,
    ) -> Result<Approval, RunError> {
        let same = match decision {
            Decision::Approved => [ApprovalState::Approved, ApprovalState::Used],
            Decision::Denied => [ApprovalState::Denied; 2],
        };
        if same.contains(&approval.state) {
            return Ok(approval);
        }
        let stored = store_decision(self.context, &approval, decision, reason).await;
        stored.map_err(|error| match error {
            Error::NotAnswerable {
                why: Unanswerable::Answered,
                ..
            } => RunError::AlreadyAnswered {
                call: call.call.call.to_string(),
            },
            error => RunError::Store(error),
        })
    }

    /// The approvals without an answer.
    fn unanswered_approvals(&self) -> Vec<ApprovalId> {
        let is_open = |at: CallRef| self.unanswered.iter().any(|(_, open, _)| *open == at);
        let calls = self.journal.calls.iter().filter(|call| is_open(call.at));
        calls.filter_map(|call| call.approval).collect()
    }

    /// Refuse the run because of calls without an answer, or close them, as the policy says.
    fn close_unanswered(mut self, on_open_calls: OnOpenCalls) -> Result<OpenCallAnswers, RunError> {
        if on_open_calls == OnOpenCalls::Reject && !self.unanswered.is_empty() {
            return Err(RunError::OpenCalls {
                run: self.journal.run.id,
                approvals: self.unanswered_approvals(),
                pending: self
                    .unanswered
                    .iter()
                    .map(|(call, ..)| call.call.call.value().to_owned())
                    .collect(),
            });
        }
        for (call, at, state) in std::mem::take(&mut self.unanswered) {
            let outcome = match state {
                CallState::Intent => Outcome::Unknown,
                _ => Outcome::Cancelled,
            };
            if state == CallState::Approval {
                self.answers.takes.push(at);
            }
            let ended = Ended::closed(outcome);
            self.add_result(&call, ended.outcome, ended.output);
        }
        Ok(self.answers)
    }
}

/// Another run has taken the call over.
fn taken_elsewhere(execution: &Execution) -> RunError {
    match execution.taken_by {
        Some(by) => RunError::Store(Error::Taken {
            run: execution.at.run,
            step: execution.at.step,
            position: execution.at.position,
            by,
        }),
        None => RunError::AlreadyAnswered {
            call: execution.call.clone(),
        },
    }
}
