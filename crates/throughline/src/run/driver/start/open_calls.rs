//! Beginning at a node that is marked open: what is said about its waiting calls, and what becomes
//! of those about which nothing is said.
//!
//! Results that come from outside are input like any other, and each branch may have its own. A
//! call that waits for leave is different: one run takes it over, by compare-and-set when it begins,
//! and runs it at most once.

use throughline_model::{Body, Content, Message, Outcome, Output, Role, Source};
use throughline_store::{
    Answer, Approval, ApprovalFilter, ApprovalId, ApprovalState, CallRef, CallState, Decision,
    Error, Execution, Journal, NodeId, RunState, Unanswerable,
};

use super::plan::Plan;
use crate::run::driver::Job;
use crate::run::handle::{Answered, Reply};
use crate::run::machine::closed;
use crate::run::outcome::RunError;
use crate::thread::journal::Calls;
use crate::thread::journal::OpenCall;
use crate::thread::{Loaded, OnOpenCalls};

/// A call of an earlier run that is to run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::run::driver) struct TakenCall {
    pub(in crate::run::driver) at: CallRef,
    pub(in crate::run::driver) call: OpenCall,
}

/// What a run at an open node begins with.
#[derive(Default)]
pub(in crate::run::driver) struct OpenCallAnswers {
    /// Results for calls that do not run; they stand before the input.
    pub(in crate::run::driver) results: Vec<Content>,
    /// Calls that are this run's from now on.
    pub(in crate::run::driver) takes: Vec<CallRef>,
    /// Those of them that run here.
    pub(in crate::run::driver) run: Vec<TakenCall>,
}

impl OpenCallAnswers {
    /// The results as a message.
    pub(in crate::run::driver) fn message(&mut self) -> Option<Message> {
        if self.results.is_empty() {
            return None;
        }
        let mut message = Message::new(Role::Tool, std::mem::take(&mut self.results));
        message.source = Some(Source::Repair);
        Some(message)
    }
}

/// Look at what the node waits for, and decide.
pub(in crate::run::driver) async fn opening(
    job: &Job,
    plan: &Plan,
    by: &str,
    loaded: &Loaded,
    input: &mut [Message],
    replies: &[Answered],
) -> Result<OpenCallAnswers, RunError> {
    let journal = match loaded
        .end()
        .filter(|end| end.open && loaded.failed.is_none())
    {
        Some(end) => waiting_at(job, end.node).await?,
        None => None,
    };
    let Some(journal) = journal else {
        return match replies.first() {
            Some(answered) => Err(answered.not_pending(Vec::new())),
            None => Ok(OpenCallAnswers::default()),
        };
    };
    let calls = Calls::of(&job.thread.home, &journal).await;
    let calls = calls.map_err(RunError::Store)?;
    let waiting: Vec<&Execution> = journal.calls.iter().filter(|one| waits(one)).collect();
    let answered = answered_by_input(&calls, &waiting, input);
    let mut look = OpenCallResolver {
        job,
        by,
        journal: &journal,
        calls: &calls,
        replies: replies.to_vec(),
        answered,
        approvals: approvals(job, &journal).await?,
        opening: OpenCallAnswers::default(),
        owed: Vec::new(),
    };
    for call in &waiting {
        look.decide(call).await?;
    }
    if let Some(answered) = look.replies.first() {
        let pending = waiting.iter().map(|one| one.call.clone()).collect();
        return Err(answered.not_pending(pending));
    }
    look.close_owed(plan.policy.on_open_calls)
}

/// The journal of the run that left a node open, if answers can come.
async fn waiting_at(job: &Job, node: NodeId) -> Result<Option<Journal>, RunError> {
    let home = &job.thread.home;
    let journal = home.store.journal(&home.scope, node.run).await;
    let journal = journal.map_err(RunError::Store)?;
    let ended = match journal.run.state {
        RunState::Committed | RunState::Cancelled => true,
        // What a failed run left is adopted; one that is not over is settled.
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

/// The places of calls for which the input has results. Ids come from outside here and become
/// places: of calls with equal ids the first result answers the first, and is marked as its own.
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

/// The approvals of the journal's calls.
async fn approvals(job: &Job, journal: &Journal) -> Result<Vec<Approval>, RunError> {
    let wanted = journal.calls.iter().filter_map(|call| call.approval);
    let wanted: Vec<_> = wanted.collect();
    let mut found = Vec::new();
    let home = &job.thread.home;
    let filter = ApprovalFilter {
        thread: Some(journal.run.thread.clone()),
        waiting: false,
    };
    let mut after = None;
    while found.len() < wanted.len() {
        let page = home.store.approvals(&home.scope, &filter, after, 100).await;
        let page = page.map_err(RunError::Store)?;
        found.extend(
            page.found
                .into_iter()
                .filter(|one| wanted.contains(&one.id)),
        );
        after = match page.next {
            Some(next) => Some(next),
            None => break,
        };
    }
    Ok(found)
}

struct OpenCallResolver<'a> {
    job: &'a Job,
    /// Who answers approvals here.
    by: &'a str,
    journal: &'a Journal,
    calls: &'a Calls<'a>,
    /// Answers that have not found their call.
    replies: Vec<Answered>,
    /// Calls that the input answers.
    answered: Vec<CallRef>,
    approvals: Vec<Approval>,
    opening: OpenCallAnswers,
    /// Calls about which nothing was said.
    owed: Vec<(OpenCall, CallRef, CallState)>,
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
            (CallState::Taken, Some(_)) => Err(taken(execution)),
            (CallState::Taken, None) => {
                self.owed.push((call, execution.at, CallState::Taken));
                Ok(())
            }
            (CallState::Approval, reply) => self.decide_leave(execution, call, reply).await,
            (_, Some(Reply::Result(outcome, output))) => {
                self.result(&call, outcome, output);
                Ok(())
            }
            (state, reply) => {
                debug_assert!(reply.is_none(), "answers that do not fit are refused above");
                if !self.answered.contains(&execution.at) {
                    self.owed.push((call, execution.at, state));
                }
                Ok(())
            }
        }
    }

    fn answer_at(&mut self, at: CallRef) -> Option<Answered> {
        let place = self.replies.iter().position(|one| one.at == at)?;
        Some(self.replies.remove(place))
    }

    fn result(&mut self, call: &OpenCall, outcome: Outcome, output: Output) {
        let result = call.answer(outcome, output);
        self.opening
            .results
            .push(Content::new(Body::ToolResult(result)));
    }

    /// Decide about a call that waits for leave: by what is said here, or was said elsewhere.
    async fn decide_leave(
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
            self.owed.push((call, execution.at, CallState::Approval));
            return Ok(());
        };
        let approval = match reply {
            None => approval,
            Some(Reply::Approve) => self.word(&call, approval, Decision::Approved, None).await?,
            Some(Reply::Reject(why)) => self.word(&call, approval, Decision::Denied, why).await?,
            Some(Reply::Expire) => return self.refuse(execution, &call, Outcome::Expired, None),
            // Refused above: a call that waits for an approval takes no result.
            Some(Reply::Result(..)) => approval,
        };
        match approval.state {
            ApprovalState::Approved | ApprovalState::Used => {
                self.opening.takes.push(execution.at);
                self.opening.run.push(TakenCall {
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
                self.owed.push((call, execution.at, CallState::Approval));
                Ok(())
            }
        }
    }

    /// A call that may not run is this run's too, so that nobody runs it elsewhere.
    fn refuse(
        &mut self,
        execution: &Execution,
        call: &OpenCall,
        outcome: Outcome,
        reason: Option<String>,
    ) -> Result<(), RunError> {
        self.opening.takes.push(execution.at);
        let output = match reason {
            Some(reason) => Output::Text(reason),
            None => closed(outcome).output,
        };
        self.result(call, outcome, output);
        Ok(())
    }

    /// Record an answer before it counts. What was said first stands.
    async fn word(
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
        let home = &self.job.thread.home;
        let answer = Answer {
            approval: approval.id,
            shown: approval.shown,
            decision,
            by: self.by.to_owned(),
            reason: reason.filter(|reason| !reason.trim().is_empty()),
        };
        let stored = home.sure(|| home.store.answer(&home.scope, &answer)).await;
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

    /// The approvals about which nothing was said.
    fn owed_approvals(&self) -> Vec<ApprovalId> {
        let owes = |at: CallRef| self.owed.iter().any(|(_, owed, _)| *owed == at);
        let calls = self.journal.calls.iter().filter(|call| owes(call.at));
        calls.filter_map(|call| call.approval).collect()
    }

    /// Calls about which nothing was said: a reason to refuse, or closed here.
    fn close_owed(mut self, on_open_calls: OnOpenCalls) -> Result<OpenCallAnswers, RunError> {
        if on_open_calls == OnOpenCalls::Reject && !self.owed.is_empty() {
            return Err(RunError::OpenCalls {
                run: self.journal.run.id,
                approvals: self.owed_approvals(),
                pending: self
                    .owed
                    .iter()
                    .map(|(call, ..)| call.call.call.value().to_owned())
                    .collect(),
            });
        }
        for (call, at, state) in std::mem::take(&mut self.owed) {
            let outcome = match state {
                CallState::Intent => Outcome::Unknown,
                _ => Outcome::Cancelled,
            };
            if state == CallState::Approval {
                self.opening.takes.push(at);
            }
            let ended = closed(outcome);
            self.result(&call, ended.outcome, ended.output);
        }
        Ok(self.opening)
    }
}

/// Another run has it.
fn taken(execution: &Execution) -> RunError {
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
