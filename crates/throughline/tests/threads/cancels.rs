//! Cancelled and abandoned runs.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline::agent::{Limits, Run, RunError, RunFailed};
use throughline::client::{Abilities, ChatRequest, ClientError, EventStream};
use throughline::model::{Event, Message, Response, Status};
use throughline::store::{ApprovalFilter, ApprovalState, RunId, RunState};
use throughline::tool::{Approval, Effect, Runs};
use throughline::{Agent, ChatClient, Outcome, RunEvent, StopReason, Thread};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, How, Process, everywhere, result_text, said};
use tokio_util::sync::CancellationToken;

use crate::threads::actions::{
    Client, Gate, agent, built, client, gated, journals, standing, start,
};
use crate::threads::foreign::assert_valid;

/// Starts a run, waits for a condition, cancels it, and waits for its end.
async fn cancel_when(
    how: How,
    run: Run,
    moment: impl Future<Output = ()>,
) -> Result<Outcome, RunFailed> {
    let token = CancellationToken::new();
    let task = start(how, run.cancelled_by(token.clone()));
    moment.await;
    token.cancel();
    task.await.unwrap()
}

/// One more turn works, and every vendor accepts its request.
async fn goes_on(how: How, agent: &Agent, client: &ScriptedClient, thread: &Thread) {
    client.push(Step::text("here"));
    let run = agent.run_on(thread, "still there?");
    let outcome = how.finish(run).await.unwrap();
    assert_eq!(outcome.text(), "here");
    assert_valid(&client.last_asked().unwrap().messages);
}

async fn history(process: &Process, thread: &Thread) -> Vec<Message> {
    let opened = process.threads().open(thread.id().clone()).await.unwrap();
    let shown = opened.history();
    shown.iter().map(|message| (**message).clone()).collect()
}

#[test]
fn b201_a_cancel_before_the_first_token_leaves_what_the_user_said() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let asked = client([Step::hang()]);
        let agent = agent(&process, &asked, &[]);
        let thread = agent.new_thread();
        let run = agent.run_on(&thread, "when?");
        let outcome = cancel_when(how, run, asked.begun(1)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(said(&outcome), "u");
        assert_eq!(process.history(thread.id()).await, "u");
        assert_eq!(asked.dropped(), 1);
        goes_on(how, &agent, &asked, &thread).await;
        assert_eq!(process.history(thread.id()).await, "u u a");
    });
}

/// A client that reports when a fragment of its answer was received.
struct Watched {
    inner: Client,
    heard: Gate,
}

#[async_trait]
impl ChatClient for Watched {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        self.inner.respond(request).await
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let events = self.inner.stream(request).await?;
        let heard = self.heard.clone();
        let told = stream::unfold((events, false), move |(mut events, fragment)| {
            let heard = heard.clone();
            async move {
                if fragment {
                    // A caller that polls for the next event has processed the last one.
                    heard.reach();
                }
                let next = events.next().await?;
                let fragment = matches!(next, Ok(Event::Delta { .. }));
                Some((next, (events, fragment)))
            }
        });
        Ok(Box::pin(told))
    }
}

/// An agent whose gate reports each received fragment.
fn watched(process: &Process, client: &Client, tool: &Fake) -> (Agent, Gate) {
    let heard = Gate::new();
    let watched = Watched {
        inner: Arc::clone(client),
        heard: heard.clone(),
    };
    let builder = Agent::builder(watched).store(&process.store);
    (builder.tool(tool.clone()).build().unwrap(), heard)
}

#[test]
fn b202_a_cancel_in_the_middle_of_text_keeps_the_text_marked_incomplete() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let asked = client([Step::hang_after("at the third")]);
        let (agent, heard) = watched(&process, &asked, &Fake::named("tide"));
        let thread = agent.new_thread();
        let run = agent.run_on(&thread, "when?");
        let outcome = cancel_when(how, run, heard.reached()).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(said(&outcome), "u a");
        let stored = history(&process, &thread).await;
        assert_eq!(stored.len(), 2);
        assert_eq!(stored[1].text(), "at the third");
        assert_eq!(stored[1].status, Some(Status::Incomplete));
        let run = journals(&process, thread.id()).await.remove(0).run;
        assert_eq!(run.state, RunState::Cancelled);
        goes_on(how, &agent, &asked, &thread).await;
        assert_eq!(process.history(thread.id()).await, "u a u a");
    });
}

#[test]
fn b203_a_cancel_in_a_tool_keeps_what_finished_and_closes_the_rest() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let quick = Fake::named("quick");
        let (slow, slow_gate) = gated("slow");
        let (look, look_gate) = gated("look");
        let look = look.with(|spec| spec.effect = Effect::ReadOnly);
        let tools = [&quick, &slow, &look];
        let asked = client([Step::calls([
            ("c1", "quick", "{}"),
            ("c2", "slow", "{}"),
            ("c3", "look", "{}"),
        ])]);
        let together = agent(&process, &asked, &tools);
        let thread = together.new_thread();
        let id = thread.id().clone();
        // The result of the quick tool is stored before the others are cancelled.
        let stored = Gate::at(&process, "results");
        let run = together.run_on(&thread, "go");
        let outcome = cancel_when(how, run, async {
            slow_gate.reached().await;
            look_gate.reached().await;
            stored.reached().await;
            stored.open();
            let done = "running c1:done c2:intent c3:planned";
            while standing(&journals(&process, &id).await[0]) != done {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        let closed = "u a(c1,c2,c3) t(c1,c2:unknown,c3:cancelled)";
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(said(&outcome), closed);
        assert_eq!(process.history(thread.id()).await, closed);
        assert_eq!((quick.runs(), slow.runs(), look.runs()), (1, 1, 1));
        goes_on(how, &together, &asked, &thread).await;

        // Serially: a call that was not dispatched was not run.
        asked.push(Step::calls([("c1", "slow", "{}"), ("c2", "quick", "{}")]));
        let thread = together.new_thread();
        let run = together.run_on(&thread, "go").serial_calls();
        let outcome = cancel_when(how, run, slow_gate.reached()).await.unwrap();
        let closed = "u a(c1,c2) t(c1:unknown,c2:cancelled)";
        assert_eq!(said(&outcome), closed);
        assert_eq!(process.history(thread.id()).await, closed);
        assert_eq!((quick.runs(), slow.runs()), (1, 2));
    });
}

#[test]
fn b204_a_cancel_in_the_second_model_call_keeps_the_first_round() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = Fake::named("tide");
        let calls = || Step::calls([("c1", "tide", "{}")]);
        let asked = client([calls(), Step::hang_after("at the third")]);
        let (agent, heard) = watched(&process, &asked, &tide);
        let thread = agent.new_thread();
        let run = agent.run_on(&thread, "when?");
        // The arguments of the call are a fragment too.
        let both = async {
            heard.reached().await;
            heard.reached().await;
        };
        let outcome = cancel_when(how, run, both).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        let stored = history(&process, &thread).await;
        assert_eq!(stored[3].text(), "at the third");
        assert_eq!(stored[3].status, Some(Status::Incomplete));
        goes_on(how, &agent, &asked, &thread).await;

        // Nothing had arrived.
        asked.push(calls());
        asked.push(Step::hang());
        let thread = agent.new_thread();
        let run = agent.run_on(&thread, "when?");
        let outcome = cancel_when(how, run, asked.begun(5)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1)");
        assert_eq!(tide.runs(), 2);
        goes_on(how, &agent, &asked, &thread).await;
    });
}

#[test]
fn b205_a_cancel_while_parked_closes_what_waits_and_again_changes_nothing() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let pay = Fake::named("pay").with(|spec| spec.approval = Approval::Always);
        let out = Fake::named("outside").with(|spec| spec.runs = Runs::Outside);
        let asked = client([Step::calls([("c1", "pay", "{}"), ("c2", "outside", "{}")])]);
        let agent = agent(&process, &asked, &[&pay, &out]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&thread, "pay");
        let parked = how.finish(run).await.unwrap();
        assert_eq!(parked.stop, StopReason::Parked);
        let closed = "u a(c1,c2) t(c1:cancelled,c2:cancelled)";
        let version = async || {
            let at = throughline::store::At::Thread(id.clone());
            let opened = process.store.open(&process.scope(), &at, 0).await.unwrap();
            opened.thread.version.0
        };
        for _ in 0..2 {
            let outcome = how.finish(agent.cancel(&thread)).await.unwrap();
            assert_eq!(outcome.run, parked.run);
            assert_eq!(outcome.stop, StopReason::Cancelled);
            assert_eq!(said(&outcome), closed);
            assert_eq!(process.history(&id).await, closed);
            assert_eq!(version().await, 1);
            let filter = ApprovalFilter {
                thread: Some(id.clone()),
                waiting: false,
            };
            let found = process
                .threads()
                .approvals(&filter, None)
                .await
                .unwrap()
                .found;
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].state, ApprovalState::Withdrawn);
            let found = journals(&process, &id).await;
            assert_eq!(found.len(), 1);
            assert_eq!(standing(&found[0]), "cancelled c1:done c2:done");
        }
        assert_eq!((pay.runs(), asked.calls()), (0, 1));
        goes_on(how, &agent, &asked, &thread).await;
        // After a run that ended by itself there is nothing to cancel.
        let ended = how.finish(agent.cancel(&thread)).await.unwrap();
        assert!(ended.had_finished());
        assert_ne!(ended.run, parked.run);
    });
}

/// The stored events of a run.
async fn stored_events(process: &Process, run: RunId) -> Vec<RunEvent> {
    let events = process.threads().attach(run, None);
    events.map(|event| event.unwrap().1).collect().await
}

#[test]
fn b234_a_cancel_after_the_commit_answers_with_what_was_committed() {
    everywhere(async |stage, how| {
        let (process, other) = (stage.process().await, stage.process().await);
        let tide = Fake::named("tide");
        let asked = client([Step::calls([("c1", "tide", "{}")]), Step::text("at four")]);
        let here = agent(&process, &asked, &[&tide]);
        let there = agent(&other, &asked, &[&tide]);
        let thread = here.new_thread();
        let id = thread.id().clone();
        // On a thread without runs, none had finished.
        let nothing = how.finish(here.cancel(&thread)).await.unwrap_err();
        assert!(matches!(nothing.source, RunError::NothingToResume { .. }));

        let done = how.finish(here.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(done.stop, StopReason::Done);
        let before = journals(&process, &id).await;
        let events = stored_events(&process, done.run).await;
        let again = there.open(id.clone()).await.unwrap();
        let mut late = Vec::new();
        for _ in 0..2 {
            late.push(how.finish(here.cancel(&thread)).await.unwrap());
            late.push(how.finish(there.cancel(&again)).await.unwrap());
        }
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
        // A branch is not affected.
        let node = before[0].run.published.unwrap();
        let branch = here.open(node).await.unwrap();
        asked.push(Step::text("aside"));
        how.finish(here.run_on(&branch, "and?")).await.unwrap();
        late.push(how.finish(here.cancel(&thread)).await.unwrap());
        for late in late {
            assert!(late.had_finished());
            assert_eq!((late.run, late.stop), (done.run, done.stop));
            assert_eq!((&late.messages, &late.usage), (&done.messages, &done.usage));
            assert_eq!(late.finish, done.finish);
        }
        // Nothing changed, and there is one end.
        let after = journals(&process, &id).await;
        assert_eq!(after.last(), before.last());
        assert_eq!(stored_events(&process, done.run).await, events);
        let ends = |event: &&RunEvent| matches!(event, RunEvent::Ended { .. });
        assert_eq!(events.iter().filter(ends).count(), 1);
        assert_eq!((tide.runs(), asked.calls()), (1, 3));
        goes_on(how, &here, &asked, &thread).await;

        // A failed run does not count as finished.
        asked.push(Step::fails(throughline::client::ErrorKind::Unavailable));
        let run = here.run_on(&thread, "and?");
        how.finish(run).await.unwrap_err();
        let nothing = how.finish(here.cancel(&thread)).await.unwrap_err();
        assert!(matches!(nothing.source, RunError::NothingToResume { .. }));
    });
}

#[test]
fn b234_a_cancel_that_meets_the_commit_finds_the_run_finished() {
    everywhere(async |stage, how| {
        // The cancellation has read the run, and is about to claim it, to mark it, or to read its
        // end.
        for held in ["claim", "cancel", "run"] {
            let (process, other) = (stage.process().await, stage.process().await);
            let asked = client([Step::text("at four")]);
            let here = agent(&process, &asked, &[]);
            let there = agent(&other, &asked, &[]);
            let thread = here.new_thread();
            let id = thread.id().clone();
            let commit = Gate::at(&process, "publish");
            let run = start(how, here.run_on(&thread, "when?"));
            commit.reached().await;
            let same = there.open(id.clone()).await.unwrap();
            let order = Gate::at(&other, held);
            let cancel = start(how, there.cancel(&same));
            order.reached().await;
            commit.open();
            let done = run.await.unwrap().unwrap();
            assert_eq!(done.stop, StopReason::Done, "{held}");
            order.open();
            let late = cancel.await.unwrap().unwrap();
            assert!(late.had_finished(), "{held}");
            assert_eq!((late.run, late.stop), (done.run, done.stop), "{held}");
            assert_eq!(late.messages, done.messages, "{held}");
            assert_eq!(process.history(&id).await, "u a", "{held}");
            let events = stored_events(&other, done.run).await;
            let ends = |event: &&RunEvent| matches!(event, RunEvent::Ended { .. });
            assert_eq!(events.iter().filter(ends).count(), 1, "{held}");
        }
    });
}

#[test]
fn a_cancel_closes_a_run_whose_process_dies_before_it_sees_the_order() {
    everywhere(async |stage, how| {
        let (process, other) = (stage.process().await, stage.process().await);
        let asked = client([Step::hang()]);
        let here = agent(&process, &asked, &[]);
        let there = agent(&other, &asked, &[]);
        let thread = here.new_thread();
        let id = thread.id().clone();
        let run = start(how, here.run_on(&thread, "when?"));
        asked.begun(1).await;
        process.faulty.always("cancelling", Fault::HangBefore);
        let same = there.open(id.clone()).await.unwrap();
        let order = Gate::at(&other, "run");
        let cancel = start(how, there.cancel(&same));
        order.reached().await;
        process.kill();
        other.live().await;
        order.open();
        let outcome = cancel.await.unwrap().unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(other.history(&id).await, "u");
        run.abort();
    });
}

#[test]
fn b206_a_run_whose_stream_is_dropped_is_cancelled_as_abandoned() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let asked = client([Step::hang_after("at the third")]);
        let agent = agent(&process, &asked, &[]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&thread, "when?");
        match how {
            How::Streamed => {
                let mut stream = run.stream();
                while let Some(event) = stream.next().await {
                    if event.text().is_some() {
                        break;
                    }
                }
                drop(stream);
            }
            How::Whole => {
                tokio::select! {
                    _ = run.into_future() => unreachable!("the model never ends"),
                    () = asked.begun(1) => {}
                }
            }
        }
        agent.settled().await;
        let found = journals(&process, &id).await;
        assert_eq!(found[0].run.state, RunState::Cancelled);
        let note = found[0].run.note.clone().unwrap();
        assert!(note.get().contains(r#""cause":"abandoned""#), "{note:?}");
        if how == How::Streamed {
            let stored = history(&process, &thread).await;
            assert_eq!(stored[1].text(), "at the third");
            assert_eq!(stored[1].status, Some(Status::Incomplete));
        }
        goes_on(how, &agent, &asked, &thread).await;

        // A cancellation on request has another cause, and so has one by another process.
        asked.push(Step::hang());
        let run = agent.run_on(&thread, "when?");
        cancel_when(how, run, asked.begun(3)).await.unwrap();
        let found = journals(&process, &id).await;
        let note = found[0].run.note.clone().unwrap();
        assert!(!note.get().contains("cause"), "{note:?}");
    });
}

#[test]
fn a_run_that_this_process_gave_up_is_cancelled_at_once() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = Fake::named("tide");
        let asked = client([Step::calls([("c1", "tide", "{}")])]);
        let agent = agent(&process, &asked, &[&tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        process.faulty.always("intend", Fault::Before);
        let run = agent.run_on(&thread, "when?");
        how.finish(run).await.unwrap_err();
        process.faulty.heal();
        let outcome = how.finish(agent.cancel(&thread)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(process.history(&id).await, "u a(c1) t(c1:cancelled)");
        assert!(!result_text(&outcome.messages, "c1").is_empty());
        assert_eq!(tide.runs(), 0);
    });
}

#[test]
fn a_cancel_from_another_process_reaches_a_run_that_is_never_idle() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let other = stage.process().await;
        let tide = Fake::named("tide").with(|spec| spec.effect = Effect::ReadOnly);
        // Without the cancellation it would never end.
        let busy = ScriptedClient::answering(|_| Step::calls([("c1", "tide", "{}")]));
        let busy = Arc::new(busy);
        let never = built(&process, &busy, &[&tide], |agent| {
            agent.limits(Limits {
                rounds: u32::MAX,
                ..Limits::default()
            })
        });
        let thread = never.new_thread();
        let id = thread.id().clone();
        let task = start(how, never.run_on(&thread, "go"));
        busy.begun(3).await;
        let elsewhere = agent(&other, &client([]), &[&tide]);
        let thread = elsewhere.open(id.clone()).await.unwrap();
        let outcome = how.finish(elsewhere.cancel(&thread)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        let outcome = task.await.unwrap().unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(other.history(&id).await, said(&outcome));
    });
}
