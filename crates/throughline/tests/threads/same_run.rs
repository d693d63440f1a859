//! A resumed run is the same run: queued messages reach its next model call, and used limits stay
//! used.

use std::sync::Arc;
use std::time::Duration;

use throughline::agent::{AgentBuilder, Limits};
use throughline::client::ErrorKind;
use throughline::model::{Message, Outcome as Ending};
use throughline::store::{NewThread, ThreadId};
use throughline::thread::Persistence;
use throughline::tool::{Approval, ToolError, ToolOutput};
use throughline::{Agent, StopReason};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, How, Process, Stage, everywhere, said, short};

use crate::threads::actions::{agent, built, client, gated, start};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn call(number: usize) -> Step {
    Step::calls([(format!("c{number}"), "tide", "{}")])
}

/// A tool that needs approval.
fn guarded(name: &str) -> Fake {
    Fake::named(name).with(|spec| spec.approval = Approval::Always)
}

async fn leave(process: &Process, thread: &ThreadId, text: &str) {
    let thread = process.threads().open(thread.clone()).await.unwrap();
    thread.mailbox().leave(Message::user(text)).await.unwrap();
}

/// The message reached the last model call, once, after the results; and it is in the history once.
async fn delivered(process: &Process, model: &ScriptedClient, thread: &ThreadId, place: &str) {
    let sent = model.last_asked().unwrap().messages;
    assert_eq!(short(&sent), "u a(c1) t(c1) u", "{place}");
    assert_eq!(sent[3].text(), "and the moon?", "{place}");
    assert_eq!(
        process.history(thread).await,
        "u a(c1) t(c1) u a",
        "{place}"
    );
    let opened = process.threads().open(thread.clone()).await.unwrap();
    let waiting = opened.mailbox().waiting().await.unwrap();
    assert!(waiting.is_empty(), "{place}: {waiting:?}");
}

#[test]
fn b230_what_was_queued_before_a_crash_is_in_the_next_request_of_the_run() {
    everywhere(async |stage, how| {
        // Killed before the result is stored, after it, and during the request that had the
        // message.
        for tried in [false, true] {
            let tide = Fake::named("tide")
                .with(|spec| spec.effect = throughline::tool::Effect::Idempotent);
            let first = stage.process().await;
            let steps = [call(1), Step::hang()];
            let model = client(steps);
            let dying = agent(&first, &model, &[&tide]);
            let thread = dying.new_thread();
            let id = thread.id().clone();
            let second = stage.process().await;
            if tried {
                // The message is queued while the tool runs, so that the request which hangs
                // contains it.
                let (queue, at) = (second.threads(), id.clone());
                first.faulty.on("results", move || {
                    let (queue, at) = (queue.clone(), at.clone());
                    async move {
                        let thread = queue.open(at).await.unwrap();
                        let message = Message::user("and the moon?");
                        thread.mailbox().leave(message).await.unwrap();
                    }
                });
                start(how, dying.run_on(&thread, "when?"));
                while model.calls() < 2 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(short(&model.asked()[1].messages), "u a(c1) t(c1) u");
                first.kill();
            } else {
                first.die_in("results", Fault::HangAfter);
                start(how, dying.run_on(&thread, "when?"));
                first.died().await;
                second.live().await;
                leave(&second, &id, "and the moon?").await;
            }
            second.live().await;
            let model = client([Step::text("at four")]);
            let agent = agent(&second, &model, &[&tide]);
            let thread = agent.open(id.clone()).await.unwrap();
            let outcome = how.finish(agent.resume(&thread)).await.unwrap();
            assert_eq!(outcome.stop, StopReason::Done);
            delivered(&second, &model, &id, &format!("tried={tried}")).await;
        }
    });
}

#[test]
fn b230_what_is_queued_while_a_run_is_parked_or_at_work_elsewhere_is_in_its_next_request() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let second = stage.process().await;
        // Parked: another process queues a message, and this one resumes.
        let pay = guarded("tide");
        let model = client([call(1), Step::text("at four")]);
        let here = agent(&first, &model, &[&pay]);
        let thread = here.new_thread();
        let parked = how.finish(here.run_on(&thread, "when?")).await.unwrap();
        leave(&second, thread.id(), "and the moon?").await;
        let run = here.resume(&thread).approve(&parked.pending[0]);
        assert_eq!(how.finish(run).await.unwrap().stop, StopReason::Done);
        delivered(&second, &model, thread.id(), "parked").await;

        // In progress: another process queues a message while the tool runs.
        let (tide, gate) = gated("tide");
        let model = client([call(1), Step::text("at four")]);
        let here = agent(&first, &model, &[&tide]);
        let thread = here.new_thread();
        let running = start(how, here.run_on(&thread, "when?"));
        gate.reached().await;
        leave(&second, thread.id(), "and the moon?").await;
        gate.open();
        running.await.unwrap().unwrap();
        delivered(&second, &model, thread.id(), "at work").await;
    });
}

/// A tool that takes time on the clock of the store.
fn slow(stage: &Stage, time: Duration) -> Fake {
    let clock = Arc::clone(&stage.clock);
    Fake::doing("tide", move |_, _| {
        clock.advance(time);
        async { Ok(ToolOutput::text("tide")) }
    })
}

fn limited(
    process: &Process,
    model: &Arc<ScriptedClient>,
    tools: &[&Fake],
    limits: Limits,
) -> Agent {
    built(process, model, tools, |agent: AgentBuilder| {
        agent.limits(limits)
    })
}

#[test]
fn b231_time_while_no_process_works_on_a_run_is_free_and_used_time_stays_used() {
    everywhere(async |stage, how| {
        let limits = Limits {
            time: Some(Duration::from_secs(60)),
            ..Limits::default()
        };
        let nearly = Duration::from_millis(59_950);
        let five = Duration::from_secs(5);
        // An answer that takes longer than the rest of a nearly used budget.
        let late = || Step::text("at four").after(Duration::from_secs(2));
        for (used, stop) in [(five, StopReason::Done), (nearly, StopReason::Budget)] {
            for crash in [false, true] {
                let first = stage.process().await;
                let (tide, pay) = (slow(stage, used), guarded("pay"));
                let calls = Step::calls([("c1", "tide", "{}"), ("c2", "pay", "{}")]);
                let model = client([calls]);
                let here = limited(&first, &model, &[&tide, &pay], limits.clone());
                let thread = here.new_thread();
                let id = thread.id().clone();
                if crash {
                    first.die_in("park", Fault::HangBefore);
                    start(how, here.run_on(&thread, "when?"));
                    first.died().await;
                } else {
                    let parked = how.finish(here.run_on(&thread, "when?")).await.unwrap();
                    assert_eq!(parked.stop, StopReason::Parked);
                }
                stage.clock.advance(2 * DAY);
                let second = stage.process().await;
                let model = client([late()]);
                let there = limited(&second, &model, &[&tide, &pay], limits.clone());
                let mut thread = there.open(id.clone()).await.unwrap();
                if crash {
                    let parked = how.finish(there.resume(&thread)).await.unwrap();
                    assert_eq!(parked.stop, StopReason::Parked);
                    thread = there.open(id).await.unwrap();
                }
                let run = there.resume(&thread).approve(&thread.pending()[0]);
                let outcome = how.finish(run).await.unwrap();
                assert_eq!(outcome.stop, stop, "{used:?} crash={crash}");
            }
        }
    });
}

/// How a run is interrupted once in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    Crash,
    Failure,
}

/// Runs to the end with constant interruptions; returns how often the tool ran, and the requests.
async fn broken(
    stage: &Stage,
    how: How,
    breaks: Breaks,
    (limits, tool): (Limits, &Fake),
    model: &Arc<ScriptedClient>,
) -> (throughline::Outcome, usize) {
    let id = stage.process().await.store.ids().thread();
    let mut resumes = 0;
    loop {
        let process = stage.process().await;
        let agent = limited(&process, model, &[tool], limits.clone());
        let thread = match resumes {
            0 => process.threads().make(NewThread::new(id.clone())),
            _ => agent.open(id.clone()).await.unwrap(),
        };
        resumes += 1;
        assert!(resumes < 40, "it never ends");
        let dies = breaks == Breaks::Crash && resumes < 4;
        if dies {
            process.die_in("results", Fault::HangAfter);
        }
        let ended = match resumes {
            1 => start(how, agent.run_on(&thread, "when?")),
            _ => start(how, agent.resume(&thread)),
        };
        if dies {
            process.died().await;
            continue;
        }
        match ended.await.unwrap() {
            Ok(outcome) => return (outcome, resumes),
            Err(failed) => assert_eq!(breaks, Breaks::Failure, "{failed}"),
        }
    }
}

#[test]
fn b232_rounds_calls_errors_and_tokens_stay_used_however_often_a_run_breaks() {
    everywhere(async |stage, how| {
        let fails = Fake::doing("tide", |_, _| async { Err(ToolError::from("no")) });
        let rounds = Limits {
            rounds: 5,
            ..Limits::default()
        };
        let errors = Limits {
            failed_rounds: 5,
            ..Limits::default()
        };
        let calls = Limits {
            calls: Some(5),
            ..Limits::default()
        };
        let tokens = Limits {
            tokens: Some(50),
            ..Limits::default()
        };
        for (limits, tool, stop) in [
            (rounds, Fake::named("tide"), StopReason::RoundLimit),
            (errors, fails, StopReason::ErrorLimit),
            (calls, Fake::named("tide"), StopReason::Budget),
            (tokens, Fake::named("tide"), StopReason::Budget),
        ] {
            for breaks in [Breaks::Crash, Breaks::Failure] {
                let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
                let model = Arc::new(ScriptedClient::answering(move |request| {
                    let number = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    // With failing calls, every other call fails, including the last one without
                    // tools.
                    if breaks == Breaks::Failure && number % 2 == 1 {
                        return Step::fails(ErrorKind::Unavailable);
                    }
                    match request.tools.is_empty() {
                        true => Step::text("enough"),
                        false => call(number).with_usage(9, 1),
                    }
                }));
                let tool = tool.clone();
                let runs = tool.runs();
                let ended = broken(stage, how, breaks, (limits.clone(), &tool), &model).await;
                let place = format!("{stop:?} {breaks:?}");
                assert_eq!(ended.0.stop, stop, "{place}");
                assert!(ended.1 >= 3, "{place}: broken {} times", ended.1);
                let wanted = match limits.tokens {
                    // The fifth answer reaches the limit, and its call does not run.
                    Some(_) => 4,
                    None => 5,
                };
                assert_eq!(tool.runs() - runs, wanted, "{place}");
            }
        }
    });
}

#[test]
fn b232_a_failed_last_call_without_tools_is_made_again_without_tools_unless_limits_are_named() {
    everywhere(async |stage, how| {
        let limits = Limits {
            rounds: 1,
            ..Limits::default()
        };
        for named in [false, true] {
            let tide = Fake::named("tide");
            let process = stage.process().await;
            let steps = [
                call(1),
                Step::fails(ErrorKind::Unavailable),
                Step::with(|asked| match asked.tools.is_empty() {
                    true => Step::text("enough"),
                    false => call(2),
                }),
                Step::text("done"),
            ];
            let model = client(steps);
            let agent = limited(&process, &model, &[&tide], limits.clone());
            let thread = agent.new_thread();
            how.finish(agent.run_on(&thread, "when?"))
                .await
                .unwrap_err();
            let run = agent.resume(&thread);
            let run = match named {
                true => run.limits(Limits::default()),
                false => run,
            };
            let outcome = how.finish(run).await.unwrap();
            let (stop, runs) = match named {
                true => (StopReason::Done, 2),
                false => (StopReason::RoundLimit, 1),
            };
            assert_eq!((outcome.stop, tide.runs()), (stop, runs), "named={named}");
        }
    });
}

#[test]
fn b233_results_that_the_store_refused_are_written_when_it_takes_them_again() {
    everywhere(async |stage, how| {
        for (next_run, crashed) in [(false, false), (true, false), (false, true)] {
            let tide = Fake::named("tide");
            let process = stage.process().await;
            let calls = Step::calls([("c1", "tide", "{}"), ("c2", "tide", "{}")]);
            let model = client([calls, Step::text("at four"), Step::text("again")]);
            let here = agent(&process, &model, &[&tide]);
            let thread = here.new_thread();
            process.faulty.always("results", Fault::Before);
            how.finish(here.run_on(&thread, "when?")).await.unwrap_err();
            let ran = tide.runs();
            assert_eq!(ran, 2);
            process.faulty.heal();
            // Results are lost only with the process that holds them.
            let process = match crashed {
                true => {
                    process.kill();
                    stage.process().await
                }
                false => process,
            };
            let here = agent(&process, &model, &[&tide]);
            let thread = here.open(thread.id().clone()).await.unwrap();
            let outcome = match next_run {
                true => how.finish(here.run_on(&thread, "and now?")).await.unwrap(),
                false => how.finish(here.resume(&thread)).await.unwrap(),
            };
            assert_eq!(outcome.stop, StopReason::Done);
            let history = process.threads().open(thread.id().clone()).await.unwrap();
            let results: Vec<Ending> = history
                .history()
                .iter()
                .flat_map(|message| message.contents.clone())
                .filter_map(|content| content.as_tool_result().map(|one| one.outcome))
                .collect();
            let kept = results.iter().filter(|one| **one == Ending::Ok).count();
            let place = format!("next_run={next_run} crashed={crashed}: {results:?}");
            assert_eq!(results.len(), 2, "{place}");
            match crashed {
                true => assert!(results.contains(&Ending::Unknown), "{place}"),
                false => assert_eq!(kept, ran, "{place}"),
            }
            assert_eq!(tide.runs(), ran, "{place}: nothing runs again");
        }
    });
}

#[test]
fn a_fork_of_a_killed_run_sees_its_finished_results_as_one_of_a_failed_run_does() {
    everywhere(async |stage, how| {
        for killed in [true, false] {
            let tide = Fake::named("tide");
            let first = stage.process().await;
            let step = match killed {
                true => Step::hang(),
                false => Step::fails(ErrorKind::Unavailable),
            };
            let model = client([call(1), step]);
            let dying = agent(&first, &model, &[&tide]);
            let thread = dying.new_thread();
            let run = dying.run_on(&thread, "when?");
            let running = start(how, run.persistence(Persistence::PerCall));
            match killed {
                true => {
                    while model.calls() < 2 {
                        tokio::task::yield_now().await;
                    }
                    first.kill();
                }
                false => drop(running.await.unwrap().unwrap_err()),
            }
            let second = stage.process().await;
            let model = client([Step::text("at five")]);
            let agent = agent(&second, &model, &[&tide]);
            let new = NewThread::new(second.store.ids().thread());
            let fork = second
                .threads()
                .fork(thread.id().clone(), new)
                .await
                .unwrap();
            let outcome = how.finish(agent.run_on(&fork, "and here?")).await.unwrap();
            let sent = model.last_asked().unwrap().messages;
            assert_eq!(short(&sent), "u a(c1) t(c1) u", "killed={killed}");
            assert_eq!(outcome.stop, StopReason::Done);
            assert_eq!(tide.runs(), 1);
            assert_eq!(second.history(fork.id()).await, "u a(c1) t(c1) u a");
            assert!(said(&outcome).ends_with("u a"));
        }
    });
}
