//! Calls that wait for an approval or for a result of the application, with a store and several
//! processes.

mod answered;
mod asked;
mod equal_ids;
mod late;
mod r25;
mod shown;
mod vendors;
mod waiting;

use std::sync::Arc;

use throughline::agent::order::Resume;
use throughline::agent::{AgentBuilder, Run, RunFailed};
use throughline::model::CallId;
use throughline::store::{
    Answer, Approval as Record, ApprovalFilter, ApprovalState, CallState, Clock, Decision, Error,
    Journal, ManualClock, RunFilter, ThreadId, Unanswerable,
};
use throughline::tool::{Approval, Parameters, Runs};
use throughline::{Agent, Outcome, StopReason, Thread};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, How, MadeCalls, Process, Stage};

/// A tool that needs approval.
fn guarded(name: &str) -> Fake {
    Fake::named(name).with(|spec| {
        spec.approval = Approval::Always;
        spec.parameters = Parameters::any();
    })
}

/// A tool that the application runs.
fn declared(name: &str) -> Fake {
    Fake::named(name).with(|spec| spec.runs = Runs::Outside)
}

fn model(steps: impl IntoIterator<Item = Step>) -> Arc<ScriptedClient> {
    Arc::new(ScriptedClient::new(steps))
}

fn builder(stage: &Stage, process: &Process, model: &Arc<ScriptedClient>) -> AgentBuilder {
    Agent::builder(Arc::clone(model))
        .store(&process.store)
        .clock(Arc::<ManualClock>::clone(&stage.clock))
}

fn agent(stage: &Stage, process: &Process, model: &Arc<ScriptedClient>, tools: &[&Fake]) -> Agent {
    let tools = tools.iter().copied().cloned();
    let builder = tools.fold(builder(stage, process, model), AgentBuilder::tool);
    builder.build().unwrap()
}

/// Runs until a call waits.
async fn parked(how: How, agent: &Agent, thread: &Thread) -> Outcome {
    let outcome = how.finish(agent.run_on(thread, "go")).await.unwrap();
    assert_eq!(outcome.stop, StopReason::Parked);
    outcome
}

/// Resumes with answers.
async fn go_on(
    how: How,
    agent: &Agent,
    thread: &Thread,
    answers: impl FnOnce(Run<Resume>, &MadeCalls) -> Run<Resume>,
) -> Result<Outcome, RunFailed> {
    let calls = MadeCalls::on(agent.threads().unwrap(), thread.id()).await;
    how.finish(answers(agent.resume(thread), &calls)).await
}

fn id(value: &str) -> CallId {
    CallId::natural(value).unwrap()
}

/// The approvals of a thread, oldest first.
async fn records(process: &Process, thread: &ThreadId) -> Vec<Record> {
    listed(process, thread, false).await
}

/// The approvals that can be answered, oldest first.
async fn waiting(process: &Process, thread: &ThreadId) -> Vec<Record> {
    listed(process, thread, true).await
}

async fn listed(process: &Process, thread: &ThreadId, waiting: bool) -> Vec<Record> {
    let filter = ApprovalFilter {
        thread: Some(thread.clone()),
        waiting,
    };
    let page = process.threads().approvals(&filter, None).await.unwrap();
    assert_eq!(page.next, None);
    page.found.into_iter().rev().collect()
}

fn states(records: &[Record]) -> Vec<ApprovalState> {
    records.iter().map(|one| one.state).collect()
}

async fn decide(process: &Process, record: &Record, decision: Decision) -> Result<Record, Error> {
    process
        .threads()
        .decide(record, decision, "ada", None)
        .await
}

async fn approve(process: &Process, record: &Record) {
    let answered = decide(process, record, Decision::Approved).await.unwrap();
    assert_eq!(answered.state, ApprovalState::Approved);
}

/// Why an answer was refused.
#[expect(clippy::panic, reason = "helpers of tests are tests")]
fn why(answer: Result<Record, Error>) -> Unanswerable {
    match answer {
        Err(Error::NotAnswerable { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

/// The journal of the thread's newest run.
async fn journal(process: &Process, thread: &ThreadId) -> Journal {
    let filter = RunFilter {
        thread: Some(thread.clone()),
        states: Vec::new(),
    };
    let (store, scope) = (&process.store, process.scope());
    let runs = store.runs(&scope, &filter, None, 1).await.unwrap();
    store.journal(&scope, runs.found[0].id).await.unwrap()
}

/// The states of the calls of the thread's newest run.
async fn calls(process: &Process, thread: &ThreadId) -> Vec<CallState> {
    let journal = journal(process, thread).await;
    journal.calls.iter().map(|call| call.state).collect()
}

fn pending(outcome: &Outcome) -> Vec<&str> {
    outcome.pending.iter().map(|one| one.call.value()).collect()
}

fn answer(record: &Record, decision: Decision) -> Answer {
    Answer {
        approval: record.id,
        shown: record.shown,
        decision,
        by: "ada".to_owned(),
        reason: None,
    }
}

fn now(stage: &Stage) -> u64 {
    stage.clock.now()
}
