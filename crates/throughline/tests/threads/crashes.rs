//! Crashes and recovery.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::StreamExt;
use throughline::agent::RunError;
use throughline::model::json::RawJson;
use throughline::model::{Status, Stop};
use throughline::store::{Error, NewThread, RunState, ThreadId};
use throughline::thread::{Awaits, HistoryPolicy, OnInterrupt, OnLost, Persistence};
use throughline::tool::{CallContext, Effect, Probe, ToolError, ToolOutput, ToolSpec};
use throughline::{RunEvent, StopReason, Tool};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, How, Process, Stage, everywhere, result_text, said};

use crate::threads::actions::{
    Client, Gate, agent, built, client, gated, journals, standing, start, told,
};

/// Runs until the process dies in a method.
async fn die(
    how: How,
    process: &Process,
    client: &Client,
    tools: &[&Fake],
    (method, fault): (&str, Fault),
) -> ThreadId {
    let agent = agent(process, client, tools);
    process.die_in(method, fault);
    let thread = agent.new_thread();
    let id = thread.id().clone();
    start(how, agent.run_on(&thread, "when?"));
    process.died().await;
    id
}

#[test]
fn b187_a_crash_before_the_begin_leaves_nothing_and_after_it_a_run_that_resumes() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let asked = client([]);
        let before = ("begin", Fault::HangBefore);
        let id = die(how, &first, &asked, &[], before).await;
        let second = stage.process().await;
        let nothing = second.threads().open(id.clone()).await;
        assert!(matches!(nothing, Err(Error::NotFound { .. })));
        let again = agent(&second, &client([Step::text("at four")]), &[]);
        let thread = second.threads().make(NewThread::new(id.clone()));
        let run = again.run_on(&thread, "when?");
        assert_eq!(said(&how.finish(run).await.unwrap()), "u a");
        assert_eq!(second.history(&id).await, "u a");

        let id = die(how, &second, &asked, &[], ("begin", Fault::HangAfter)).await;
        assert_eq!(asked.calls(), 0);
        let third = stage.process().await;
        assert_eq!(third.history(&id).await, "");
        let asked = client([Step::text("at four")]);
        let agent = agent(&third, &asked, &[]);
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!((outcome.stop, asked.calls()), (StopReason::Done, 1));
        assert_eq!(said(&outcome), "u a");
        assert_eq!(third.history(&id).await, "u a");
    });
}

#[test]
fn b188_a_crash_in_the_middle_of_a_model_stream_repeats_that_call_alone() {
    everywhere(async |stage, how| {
        let tide = Fake::named("tide");
        let first = stage.process().await;
        let calls = Step::calls([("c1", "tide", "{}")]);
        let asked = client([calls, Step::hang_after("at the thi")]);
        let dying = agent(&first, &asked, &[&tide]);
        let thread = dying.new_thread();
        let id = thread.id().clone();
        let run = dying.run_on(&thread, "when?");
        // Dropping the stream would cancel the run.
        let mut streams = Vec::new();
        match how {
            How::Streamed => {
                let mut stream = run.stream();
                while let Some(event) = stream.next().await {
                    if event.text().is_some() {
                        break;
                    }
                }
                streams.push(stream);
            }
            How::Whole => {
                start(how, run);
                asked.begun(2).await;
            }
        }
        first.kill();
        let second = stage.process().await;
        assert_eq!(second.history(&id).await, "");
        let asked = client([Step::text("at four")]);
        let agent = agent(&second, &asked, &[&tide]);
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!(outcome.text(), "at four");
        assert_eq!((tide.runs(), asked.calls()), (1, 1));
        assert_eq!(second.history(&id).await, said(&outcome));
        if how == How::Whole {
            return;
        }
        // The partial text is in the events, which mark it as such.
        let events: Vec<RunEvent> = second
            .threads()
            .attach(outcome.run, None)
            .map(|event| event.unwrap().1)
            .collect()
            .await;
        assert_eq!(
            told(&events),
            "started u asked0 content a dispatched:c1 result:c1 t asked1 text \
             started incomplete1 asked1 text content a ended:done"
        );
        let texts: Vec<&str> = events.iter().filter_map(RunEvent::text).collect();
        assert_eq!(texts.concat(), "at the thiat four");
    });
}

#[test]
fn b189_a_crash_before_dispatch_dispatches_each_call_once_without_a_second_model_call() {
    everywhere(async |stage, how| {
        let tool = Fake::named("tide");
        let first = stage.process().await;
        let asked = client([Step::calls([("c1", "tide", "{}"), ("c2", "tide", "{}")])]);
        let after = ("step", Fault::HangAfter);
        let id = die(how, &first, &asked, &[&tool], after).await;
        assert_eq!(tool.runs(), 0);

        let second = stage.process().await;
        assert_eq!(second.history(&id).await, "");
        let found = journals(&second, &id).await;
        assert_eq!(standing(&found[0]), "interrupted c1:planned c2:planned");
        let asked = client([Step::text("at four")]);
        let agent = agent(&second, &asked, &[&tool]);
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2) a");
        assert_eq!((tool.runs(), asked.calls()), (2, 1));
        assert_eq!(second.history(&id).await, "u a(c1,c2) t(c1,c2) a");
    });
}

#[test]
fn b247_a_call_that_was_cut_off_is_refused_after_a_crash_too() {
    everywhere(async |stage, how| {
        let tool = Fake::named("tide");
        let first = stage.process().await;
        // The partial arguments fit the tool.
        let calls = Step::calls([("c1", "tide", "{}"), ("c2", "tide", "{}")]);
        let asked = client([calls.with_stop(Stop::Length)]);
        let after = ("step", Fault::HangAfter);
        let id = die(how, &first, &asked, &[&tool], after).await;

        let second = stage.process().await;
        let asked = client([Step::text("at four")]);
        let agent = agent(&second, &asked, &[&tool]);
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2:error) a");
        assert_eq!((tool.runs(), asked.calls()), (1, 1));
        let text = result_text(&outcome.messages, "c2");
        assert!(
            text.contains("the output limit cut the arguments"),
            "{text}"
        );
        assert_eq!(second.history(&id).await, "u a(c1,c2) t(c1,c2:error) a");
        let stored = thread.history();
        let call = stored[1].contents[1].as_tool_call().unwrap();
        assert_eq!(call.status, Some(Status::Incomplete));
    });
}

/// Runs until a dispatched tool hangs, then dies.
async fn die_in_tool(how: How, process: &Process, tool: &Fake, gate: &Gate) -> ThreadId {
    let asked = client([Step::calls([("c1", &tool_name(tool), "{}")])]);
    let agent = agent(process, &asked, &[tool]);
    let thread = agent.new_thread();
    let id = thread.id().clone();
    start(how, agent.run_on(&thread, "when?"));
    gate.reached().await;
    process.kill();
    gate.open();
    id
}

fn tool_name(tool: &Fake) -> String {
    tool.spec().name.clone()
}

#[test]
fn b190_a_lost_result_of_a_once_tool_is_unknown_and_the_tool_never_runs_again() {
    everywhere(async |stage, how| {
        let (tide, gate) = gated("tide");
        let first = stage.process().await;
        let id = die_in_tool(how, &first, &tide, &gate).await;
        let second = stage.process().await;
        let found = journals(&second, &id).await;
        assert_eq!(standing(&found[0]), "interrupted c1:intent");
        let asked = client([Step::text("nobody knows")]);
        let told = agent(&second, &asked, &[&tide]);
        let thread = told.open(id.clone()).await.unwrap();
        let outcome = how.finish(told.resume(&thread)).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1:unknown) a");
        let shown = asked.last_asked().unwrap().messages;
        assert!(result_text(&shown, "c1").contains("may or may not"));
        assert_eq!((tide.runs(), asked.calls()), (1, 1));
        assert_eq!(second.history(&id).await, "u a(c1) t(c1:unknown) a");
    });
}

#[test]
fn b190_with_the_park_option_a_lost_result_parks_the_run_until_it_is_reported() {
    everywhere(async |stage, how| {
        let (tide, gate) = gated("tide");
        let first = stage.process().await;
        let id = die_in_tool(how, &first, &tide, &gate).await;
        let policy = HistoryPolicy {
            on_lost: OnLost::Park,
            ..HistoryPolicy::default()
        };
        let second = stage.process().await;
        let asked = client([Step::text("at four")]);
        let parks = built(&second, &asked, &[&tide], |agent| agent.history(policy));
        let thread = parks.open(id.clone()).await.unwrap();
        let outcome = how.finish(parks.resume(&thread)).await.unwrap();
        assert_eq!((outcome.stop, asked.calls()), (StopReason::Parked, 0));
        assert_eq!(outcome.pending.len(), 1);
        let call = outcome.pending[0].clone();
        assert_eq!(outcome.pending[0].awaits, Awaits::Result);

        // Any process that opens the thread later sees what it waits for, and may report the
        // outcome.
        let third = stage.process().await;
        let parks = built(&third, &asked, &[&tide], |agent| agent.history(policy));
        let thread = parks.open(id.clone()).await.unwrap();
        thread.refresh().await.unwrap();
        assert_eq!(thread.pending(), outcome.pending);
        let run = parks.resume(&thread).answer(&call, "04:12");
        let outcome = how.finish(run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!(third.history(&id).await, "u a(c1) t(c1) a");
        assert_eq!((tide.runs(), asked.calls()), (1, 1));
    });
}

#[test]
fn a_run_that_parked_for_a_lost_result_is_closed_by_new_input() {
    everywhere(async |stage, how| {
        let (tide, gate) = gated("tide");
        let first = stage.process().await;
        let id = die_in_tool(how, &first, &tide, &gate).await;
        let policy = HistoryPolicy {
            on_lost: OnLost::Park,
            ..HistoryPolicy::default()
        };
        let second = stage.process().await;
        let asked = client([Step::text("at four")]);
        let parks = built(&second, &asked, &[&tide], |agent| agent.history(policy));
        let thread = parks.open(id.clone()).await.unwrap();
        let outcome = how.finish(parks.resume(&thread)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Parked);
        let run = parks.run_on(&thread, "never mind");
        assert_eq!(said(&how.finish(run).await.unwrap()), "u a");
        assert_eq!(second.history(&id).await, "u a(c1) t(c1:unknown) u a");
        assert_eq!((tide.runs(), asked.calls()), (1, 1));
    });
}

#[test]
fn b191_lost_calls_of_declared_tools_run_again_with_the_same_key() {
    everywhere(async |stage, how| {
        // Both the effect and the result of a transactional tool are missing here: it runs again
        // too.
        let classes = [
            Effect::ReadOnly,
            Effect::Idempotent,
            Effect::Keyed,
            Effect::Transactional,
        ];
        for effect in classes {
            let gate = Gate::new();
            let keys: Arc<Mutex<Vec<String>>> = Arc::default();
            let (kept, seen) = (gate.clone(), Arc::clone(&keys));
            let tide = Fake::doing("tide", move |_, context| {
                let kept = kept.clone();
                seen.lock().unwrap().push(context.idempotency_key);
                async move {
                    kept.pass().await;
                    Ok(ToolOutput::text("04:12"))
                }
            });
            let tide = tide.with(|spec| spec.effect = effect);
            let first = stage.process().await;
            let id = die_in_tool(how, &first, &tide, &gate).await;
            let second = stage.process().await;
            let key = journals(&second, &id).await[0].calls[0].key.clone();
            let asked = client([Step::text("at four")]);
            let agent = agent(&second, &asked, &[&tide]);
            let thread = agent.open(id.clone()).await.unwrap();
            let outcome = how.finish(agent.resume(&thread)).await.unwrap();
            assert_eq!(said(&outcome), "u a(c1) t(c1) a", "{effect:?}");
            assert_eq!((tide.runs(), asked.calls()), (2, 1), "{effect:?}");
            assert_eq!(*keys.lock().unwrap(), [key.clone(), key], "{effect:?}");
        }
    });
}

/// A tool that can report the outcome of its calls.
struct Probed {
    tool: Fake,
    answer: Probe,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Probed {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        self.tool.call(arguments, context).await
    }

    async fn probe(&self, _: &RawJson, context: CallContext) -> Result<Probe, ToolError> {
        self.asked.lock().unwrap().push(context.idempotency_key);
        Ok(self.answer.clone())
    }
}

#[test]
fn b191_a_tool_that_can_be_asked_is_asked_first() {
    everywhere(async |stage, how| {
        let known = Probe::Done(ToolOutput::text("had it"));
        let cases = [
            (known, "u a(c1) t(c1) a", "had it", 1),
            (Probe::NotDone, "u a(c1) t(c1) a", "tide", 2),
            (Probe::Unknown, "u a(c1) t(c1:unknown) a", "", 1),
        ];
        for (answer, history, text, runs) in cases {
            let (tide, gate) = gated("tide");
            let tide = tide.with(|spec| spec.effect = Effect::Probe);
            let first = stage.process().await;
            let id = die_in_tool(how, &first, &tide, &gate).await;
            let second = stage.process().await;
            let key = journals(&second, &id).await[0].calls[0].key.clone();
            let probed: Arc<Mutex<Vec<String>>> = Arc::default();
            let tool = Probed {
                tool: tide.clone(),
                answer,
                asked: Arc::clone(&probed),
            };
            let asked = client([Step::text("at four")]);
            let agent = built(&second, &asked, &[], |agent| agent.tool(tool));
            let thread = agent.open(id.clone()).await.unwrap();
            let outcome = how.finish(agent.resume(&thread)).await.unwrap();
            assert_eq!(said(&outcome), history);
            assert_eq!(*probed.lock().unwrap(), [key]);
            assert_eq!(tide.runs(), runs);
            if !text.is_empty() {
                assert_eq!(result_text(&outcome.messages, "c1"), text);
            }
            assert_eq!(second.history(&id).await, history);
        }
    });
}

#[test]
fn b192_a_committed_result_is_used_and_the_tool_does_not_run_again() {
    everywhere(async |stage, how| {
        let tide = Fake::named("tide");
        let first = stage.process().await;
        let asked = client([Step::calls([("c1", "tide", "{}")])]);
        let after = ("results", Fault::HangAfter);
        let id = die(how, &first, &asked, &[&tide], after).await;
        let second = stage.process().await;
        let found = journals(&second, &id).await;
        assert_eq!(standing(&found[0]), "interrupted c1:done");
        let asked = client([Step::text("at four")]);
        let agent = agent(&second, &asked, &[&tide]);
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!((tide.runs(), asked.calls()), (1, 1));
        let shown = asked.last_asked().unwrap().messages;
        assert_eq!(result_text(&shown, "c1"), "tide");
        assert_eq!(second.history(&id).await, said(&outcome));
        // Readers receive the events that the dead process did not publish.
        let events: Vec<RunEvent> = second
            .threads()
            .attach(outcome.run, None)
            .map(|event| event.unwrap().1)
            .collect()
            .await;
        let expected = match how {
            How::Whole => "started u asked0 content a result:c1 t asked1 text content a ended:done",
            How::Streamed => {
                "started u asked0 content a started result:c1 t asked1 text content a ended:done"
            }
        };
        let told = told(&events).replace(" dispatched:c1", "");
        assert_eq!(told, expected);
    });
}

#[test]
fn b193_in_a_concurrent_round_each_call_follows_its_own_class() {
    everywhere(async |stage, how| {
        let (quick, quick_gate) = gated("quick");
        let (once, once_gate) = gated("once");
        let (look, look_gate) = gated("look");
        let look = look.with(|spec| spec.effect = Effect::Idempotent);
        let tools = [&quick, &once, &look];
        let first = stage.process().await;
        let asked = client([Step::calls([
            ("c1", "once", "{}"),
            ("c2", "quick", "{}"),
            ("c3", "look", "{}"),
        ])]);
        let dying = agent(&first, &asked, &tools);
        first.die_in("results", Fault::HangAfter);
        let thread = dying.new_thread();
        let id = thread.id().clone();
        start(how, dying.run_on(&thread, "when?"));
        for gate in [&quick_gate, &once_gate, &look_gate] {
            gate.reached().await;
        }
        quick_gate.open();
        first.died().await;
        once_gate.open();
        look_gate.open();

        let second = stage.process().await;
        let found = journals(&second, &id).await;
        assert_eq!(
            standing(&found[0]),
            "interrupted c1:intent c2:done c3:intent"
        );
        let asked = client([Step::text("at four")]);
        let agent = agent(&second, &asked, &tools);
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c2,c3) t(c1:unknown,c2,c3) a");
        assert_eq!((once.runs(), quick.runs(), look.runs()), (1, 1, 2));
        assert_eq!(asked.calls(), 1);
        assert_eq!(second.history(&id).await, said(&outcome));
    });
}

#[test]
fn b194_a_publish_whose_answer_is_lost_is_one_node_and_one_acknowledgement() {
    everywhere(async |stage, how| {
        let tide = Fake::named("tide");
        let process = stage.process().await;
        let asked = client([Step::calls([("c1", "tide", "{}")]), Step::text("at four")]);
        let agent = agent(&process, &asked, &[&tide]);
        // The same holds for every write before it.
        for method in ["begin", "step", "intend", "results", "publish"] {
            process.faulty.next(method, Fault::After);
        }
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&thread, "when?");
        let outcome = how.finish(run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!(process.faulty.left(), 0);
        assert_eq!((tide.runs(), asked.calls()), (1, 2));
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
        let found = journals(&process, &id).await;
        assert_eq!(found.len(), 1);
        assert_eq!(standing(&found[0]), "committed c1:done");
        let at = throughline::store::At::Thread(id.clone());
        let opened = process.store.open(&process.scope(), &at, 0).await.unwrap();
        assert_eq!(opened.thread.version.0, 1);
        // The next turn is not blocked.
        asked.push(Step::text("still"));
        let run = agent.run_on(&thread, "sure?");
        how.finish(run).await.unwrap();
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a u a");
    });
}

#[test]
fn b195_after_a_crash_behind_the_publish_readers_get_the_end_and_nothing_runs() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let asked = client([Step::text("at four")]);
        let after = ("publish", Fault::HangAfter);
        let id = die(how, &first, &asked, &[], after).await;
        let second = stage.process().await;
        let run = journals(&second, &id).await[0].run.clone();
        assert_eq!(run.state, RunState::Committed);
        let events: Vec<RunEvent> = second
            .threads()
            .attach(run.id, None)
            .map(|event| event.unwrap().1)
            .collect()
            .await;
        let stop = StopReason::Done;
        assert_eq!(events.last(), Some(&RunEvent::Ended { stop }));
        assert_eq!(told(&events), "started u asked0 text content a ended:done");
        assert_eq!(second.history(&id).await, "u a");
        let silent = client([]);
        let agent = agent(&second, &silent, &[]);
        let thread = agent.open(id.clone()).await.unwrap();
        let failed = how.finish(agent.resume(&thread)).await.unwrap_err();
        assert!(matches!(failed.source, RunError::NothingToResume { .. }));
        assert_eq!(
            (silent.calls(), second.history(&id).await),
            (0, "u a".to_owned())
        );
    });
}

#[test]
fn b196_a_storage_error_after_the_answer_is_an_error_and_the_run_resumes_at_once() {
    everywhere(async |stage, how| {
        for (method, resumed) in [("step", "u a"), ("publish", "u a(c1) t(c1) a")] {
            for by_resume in [true, false] {
                let tide = Fake::named("tide");
                let process = stage.process().await;
                let asked = client([Step::calls([("c1", "tide", "{}")]), Step::text("at four")]);
                let agent = agent(&process, &asked, &[&tide]);
                let thread = agent.new_thread();
                let id = thread.id().clone();
                process.faulty.always(method, Fault::Before);
                let run = agent.run_on(&thread, "when?");
                let (events, failed) = how.events(run).await;
                let failed = failed.unwrap_err();
                assert!(matches!(failed.source, RunError::Store(Error::Io { .. })));
                let stop = StopReason::Failed;
                assert_eq!(events.last(), Some(&RunEvent::Ended { stop }));
                assert_eq!(process.history(&id).await, "");
                let runs = tide.runs();
                process.faulty.heal();
                asked.push(Step::text("at four"));
                match by_resume {
                    true => {
                        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
                        assert_eq!(outcome.run, failed.outcome().run);
                        assert_eq!(said(&outcome), resumed);
                        assert_eq!(process.history(&id).await, resumed);
                    }
                    false => {
                        asked.push(Step::text("sure"));
                        let run = agent.run_on(&thread, "sure?");
                        assert_eq!(said(&how.finish(run).await.unwrap()), "u a");
                        assert_eq!(process.history(&id).await, format!("{resumed} u a"));
                    }
                }
                assert_eq!(tide.runs(), runs, "nothing ran again");
            }
        }
    });
}

#[test]
fn b197_a_worker_that_wakes_after_its_lease_is_fenced_and_dispatches_nothing() {
    everywhere(async |stage, how| {
        let once = "u a(c1) t(c1:unknown) a";
        let all = "u a(c1) t(c1) a";
        // Where it is paused, how often the successor calls the model, what is stored, and how
        // often the tool has run in total.
        let places = [
            ("step", 2, all, 1),
            ("intend", 1, all, 1),
            ("results", 1, once, 1),
            ("publish", 1, all, 1),
        ];
        for (method, calls, history, runs) in places {
            let tide = Fake::named("tide");
            let first = stage.process().await;
            let sleeps = client([Step::calls([("c1", "tide", "{}")]), Step::text("mine")]);
            let asleep = agent(&first, &sleeps, &[&tide]);
            let gate = Gate::at(&first, method);
            let thread = asleep.new_thread();
            let id = thread.id().clone();
            let task = start(how, asleep.run_on(&thread, "when?"));
            gate.reached().await;
            stage.clock.advance(std::time::Duration::from_secs(11));

            let second = stage.process().await;
            let mut steps = vec![Step::text("theirs")];
            if calls == 2 {
                steps.insert(0, Step::calls([("c1", "tide", "{}")]));
            }
            let asked = client(steps);
            let successor = agent(&second, &asked, &[&tide]);
            let thread = successor.open(id.clone()).await.unwrap();
            let outcome = how.finish(successor.resume(&thread)).await.unwrap();
            assert_eq!((asked.calls(), tide.runs()), (calls, runs), "{method}");

            let written = first.counted.writes();
            gate.open();
            let failed = task.await.unwrap().unwrap_err();
            assert!(
                matches!(failed.source, RunError::Store(Error::Fenced { .. })),
                "{method}: {:?}",
                failed.source
            );
            // The write during which it was paused was its last.
            assert_eq!(first.counted.writes(), written + 1, "{method}");
            assert_eq!(tide.runs(), runs, "{method}");
            assert_eq!(second.history(&id).await, history, "{method}");
            assert_eq!(outcome.text(), "theirs");
        }
    });
}

#[test]
fn b198_a_run_that_kills_its_worker_is_sealed_after_five_attempts_and_the_next_run_works() {
    everywhere(async |stage, how| {
        let deadly = Step::calls([("c1", "tide", "{}")]);
        let tide = Fake::named("tide");
        let first = stage.process().await;
        let after = ("intend", Fault::HangBefore);
        let id = die(how, &first, &client([deadly]), &[&tide], after).await;
        let mut deaths = 1;
        let sealed = loop {
            let process = stage.process().await;
            let asked = client([Step::text("fine")]);
            let agent = agent(&process, &asked, &[&tide]);
            process.die_in("intend", Fault::HangBefore);
            let thread = agent.open(id.clone()).await.unwrap();
            let task = start(how, agent.run_on(&thread, "and now?"));
            let died = tokio::select! {
                () = process.died() => None,
                ended = task => Some(ended.unwrap()),
            };
            let Some(ended) = died else {
                deaths += 1;
                assert!(deaths <= 5, "it is tried for ever");
                continue;
            };
            let outcome = ended.unwrap();
            assert_eq!(
                (outcome.stop, said(&outcome)),
                (StopReason::Done, "u a".into())
            );
            assert_eq!(asked.calls(), 1);
            break process;
        };
        assert_eq!((deaths, tide.runs()), (5, 0));
        assert_eq!(sealed.history(&id).await, "u a");
        let found = journals(&sealed, &id).await;
        assert_eq!(found.len(), 2);
        assert_eq!(standing(&found[0]), "committed");
        assert_eq!(standing(&found[1]), "failed c1:planned");
        // Its readers receive the end.
        let events: Vec<RunEvent> = sealed
            .threads()
            .attach(found[1].run.id, None)
            .map(|event| event.unwrap().1)
            .collect()
            .await;
        let stop = StopReason::Failed;
        assert_eq!(events.last(), Some(&RunEvent::Ended { stop }));
    });
}

#[test]
fn b199_new_input_settles_an_interrupted_run_as_the_policy_says() {
    everywhere(async |stage, how| {
        let policies = [OnInterrupt::Resume, OnInterrupt::Close, OnInterrupt::Reject];
        for on_interrupt in policies {
            let tide = Fake::named("tide");
            let first = stage.process().await;
            let calls = Step::calls([("c1", "tide", "{}"), ("c2", "tide", "{}")]);
            let after = ("step", Fault::HangAfter);
            let id = die(how, &first, &client([calls]), &[&tide], after).await;
            let second = stage.process().await;
            let asked = client(match on_interrupt {
                OnInterrupt::Resume => vec![Step::text("at four"), Step::text("sure")],
                OnInterrupt::Close => vec![Step::text("sure")],
                OnInterrupt::Reject => vec![],
            });
            let agent = agent(&second, &asked, &[&tide]);
            let dead = journals(&second, &id).await[0].run.id;
            let thread = agent.open(id.clone()).await.unwrap();
            let run = agent.run_on(&thread, "sure?").on_interrupt(on_interrupt);
            let ended = how.finish(run).await;
            let (history, runs) = match on_interrupt {
                OnInterrupt::Resume => ("u a(c1,c2) t(c1,c2) a u a", 2),
                OnInterrupt::Close => ("u a(c1,c2) t(c1:cancelled,c2:cancelled) u a", 0),
                OnInterrupt::Reject => ("", 0),
            };
            assert_eq!(second.history(&id).await, history, "{on_interrupt:?}");
            assert_eq!(tide.runs(), runs, "{on_interrupt:?}");
            match on_interrupt {
                OnInterrupt::Reject => {
                    let failed = ended.unwrap_err();
                    let RunError::Interrupted { run } = failed.source else {
                        panic!("{:?}", failed.source);
                    };
                    assert_eq!((run, asked.calls()), (dead, 0));
                    let found = journals(&second, &id).await;
                    assert_eq!(standing(&found[0]), "interrupted c1:planned c2:planned");
                }
                _ => {
                    let outcome = ended.unwrap();
                    assert_eq!(said(&outcome), "u a");
                    assert_ne!(outcome.run, dead);
                    // It is published under its own id.
                    let state = journals(&second, &id).await[1].run.state;
                    let settled = match on_interrupt {
                        OnInterrupt::Resume => RunState::Committed,
                        _ => RunState::Cancelled,
                    };
                    assert_eq!(state, settled);
                }
            }
        }
    });
}

/// Where a run with one round can be killed, and what of it is history then.
const DEATHS: [(&str, Fault, &str); 9] = [
    ("begin", Fault::HangAfter, ""),
    ("step", Fault::HangBefore, ""),
    ("step", Fault::HangAfter, ""),
    ("intend", Fault::HangBefore, ""),
    ("intend", Fault::HangAfter, ""),
    ("results", Fault::HangBefore, ""),
    ("results", Fault::HangAfter, ""),
    ("publish", Fault::HangBefore, ""),
    ("publish", Fault::HangAfter, "u a(c1) t(c1) a"),
];

#[test]
fn b200_in_per_run_no_reader_ever_sees_a_part_of_a_run() {
    everywhere(async |stage, how| {
        for (method, fault, published) in DEATHS {
            no_part(stage, how, (method, fault), published).await;
        }
    });
}

async fn no_part(stage: &Stage, how: How, (method, fault): (&str, Fault), published: &str) {
    let tide = Fake::named("tide");
    let tide = tide.with(|spec| spec.effect = Effect::Idempotent);
    let first = stage.process().await;
    let reader = stage.process().await;
    // The thread has a turn, so that readers always have something to read.
    let asked = client([
        Step::text("hello"),
        Step::calls([("c1", "tide", "{}")]),
        Step::text("at four"),
    ]);
    let dying = built(&first, &asked, &[&tide], |agent| {
        agent.persistence(Persistence::PerRun)
    });
    let thread = dying.new_thread();
    let id = thread.id().clone();
    dying.run_on(&thread, "hi").await.unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    for method in ["begin", "step", "intend", "results", "publish"] {
        let (threads, id, seen) = (reader.threads(), id.clone(), Arc::clone(&seen));
        first.faulty.on(method, move || {
            let (threads, id, seen) = (threads.clone(), id.clone(), Arc::clone(&seen));
            async move {
                let history = threads.open(id).await.unwrap().history();
                let history = throughline_testkit::stage::short(history.iter().map(|one| &**one));
                seen.lock().unwrap().push(history);
            }
        });
    }
    first.die_in(method, fault);
    start(how, dying.run_on(&thread, "when?"));
    first.died().await;
    let expected = format!("u a {published}");
    assert_eq!(reader.history(&id).await, expected.trim_end());
    let second = stage.process().await;
    let steps = [Step::calls([("c1", "tide", "{}")]), Step::text("at four")];
    let calls = match (method, fault) {
        ("begin", _) | ("step", Fault::HangBefore) => 2,
        ("publish", Fault::HangAfter) => 0,
        _ => 1,
    };
    let asked = client(steps.into_iter().skip(2 - calls));
    let agent = agent(&second, &asked, &[&tide]);
    let thread = agent.open(id.clone()).await.unwrap();
    let resumed = how.finish(agent.resume(&thread)).await;
    assert_eq!(resumed.is_ok(), calls > 0, "{method} {fault:?}");
    assert_eq!(asked.calls(), calls, "{method} {fault:?}");
    assert_eq!(reader.history(&id).await, "u a u a(c1) t(c1) a");
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|history| history == "u a"), "{seen:?}");
}
