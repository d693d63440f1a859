//! When the history moves, and what interrupted runs leave.

use std::sync::{Arc, Mutex};

use throughline::agent::{AgentBuilder, Limits, RunError};
use throughline::client::ErrorKind;
use throughline::model::Message;
use throughline::store::{Ids, ManualClock, NodeId, StepRecord, ThreadId};
use throughline::thread::{HistoryPolicy, Parity, Persistence};
use throughline::tool::{Approval, CallContext, ToolOutput};
use throughline::{Agent, StopReason};
use throughline_testkit::scripted::{Ids as ServiceIds, ScriptedClient, Step, StoringService};
use throughline_testkit::stage::{Fake, How, Process, Stage, everywhere, said, short};
use tokio_util::sync::CancellationToken;

use crate::threads::snapshot::{newest, snapshot};

fn agent(process: &Process, client: &Arc<ScriptedClient>) -> AgentBuilder {
    Agent::builder(Arc::clone(client)).store(&process.store)
}

fn scripted(steps: impl IntoIterator<Item = Step>) -> Arc<ScriptedClient> {
    Arc::new(ScriptedClient::new(steps))
}

fn one_round() -> [Step; 2] {
    [Step::calls([("c1", "tide", "{}")]), Step::text("at four")]
}

/// A tool that ends the run.
fn ending() -> Fake {
    Fake::doing("tide", |_, _| async {
        Ok(ToolOutput::text("at four").and_terminate())
    })
}

/// What readers in another process see before each call of some methods: method, history, version,
/// open.
type Seen = Arc<Mutex<Vec<(&'static str, String, u64, bool)>>>;

async fn watched(stage: &Stage, process: &Process, thread: &ThreadId) -> Seen {
    let reader = Arc::new(stage.process().await);
    let seen = Seen::default();
    for method in ["step", "intend", "results", "publish"] {
        let (reader, seen, thread) = (Arc::clone(&reader), Arc::clone(&seen), thread.clone());
        process.faulty.on(method, move || {
            let (reader, seen, thread) = (Arc::clone(&reader), Arc::clone(&seen), thread.clone());
            async move {
                let look = snapshot(&reader, &thread).await;
                let mut seen = seen.lock().unwrap();
                seen.push((method, look.history, look.version, look.open));
            }
        });
    }
    seen
}

fn saw(seen: &Seen) -> Vec<String> {
    let seen = seen.lock().unwrap();
    seen.iter()
        .map(|(method, history, version, open)| {
            let open = if *open { " open" } else { "" };
            format!("{method}: [{history}] v{version}{open}")
        })
        .collect()
}

#[test]
fn b7_an_answer_without_calls_is_one_model_call_one_read_and_two_writes() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([Step::text("hello"), Step::text("at four")]);
        let agent = agent(&process, &client).build().unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        let id = thread.id().clone();

        process.counted.reset();
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.run_on(&thread, "when?")).await;
        let outcome = outcome.unwrap();
        assert_eq!(
            (said(&outcome), outcome.text()),
            ("u a".to_owned(), "at four".to_owned())
        );
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(client.calls(), 2);
        let counted = &process.counted;
        assert_eq!((counted.reads(), counted.writes()), (1, 2));
        if how == How::Whole {
            assert_eq!(counted.flushes(), 0);
            assert_eq!(counted.log(), ["open", "begin", "publish"]);
        }
        assert_eq!(process.history(&id).await, "u a u a");
    });
}

#[test]
fn b11_a_tool_can_read_where_it_is_as_the_journal_has_it() {
    everywhere(async |stage, how| {
        assert!(CallContext::current().is_none());
        let process = stage.process().await;
        let seen: Arc<Mutex<Vec<CallContext>>> = Arc::default();
        let heard = Arc::clone(&seen);
        let tool = Fake::doing("tide", move |_, context: CallContext| {
            let heard = Arc::clone(&heard);
            async move {
                let current = CallContext::current().unwrap();
                assert_eq!(current.idempotency_key, context.idempotency_key);
                heard.lock().unwrap().push(current);
                Ok(ToolOutput::text("at four"))
            }
        });
        let client = scripted([
            Step::calls([("c1", "tide", "{}")]),
            Step::calls([("c2", "tide", "{}"), ("c3", "tide", "{}")]),
            Step::text("at four"),
        ]);
        let agent = agent(&process, &client)
            .tool(tool)
            .serial_calls()
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let outcome = how.finish(agent.run_on(&thread, "when?")).await;
        let outcome = outcome.unwrap();

        let journal = newest(&process, &id).await;
        let journaled: Vec<_> = journal
            .calls
            .iter()
            .map(|call| {
                let place = (call.at.run, call.at.step, call.at.position);
                (place, call.call.clone(), call.key.clone())
            })
            .collect();
        let read: Vec<_> = {
            let seen = seen.lock().unwrap();
            let read = seen.iter().map(|context| {
                let place = (context.run, context.step, context.position);
                let call = context.call.value().to_owned();
                (place, call, context.idempotency_key.clone())
            });
            read.collect()
        };
        assert_eq!(read, journaled);
        let seen = seen.lock().unwrap();
        let rounds: Vec<_> = seen.iter().map(|one| one.round).collect();
        assert_eq!(rounds, [0, 1, 1]);
        assert!(seen.iter().all(|one| one.run == outcome.run));
        assert!(seen.iter().all(|one| one.thread == id));
        // The run is over, so that code which still listens to its token stops.
        assert!(seen.iter().all(|one| one.cancel.is_cancelled()));
        assert!(CallContext::current().is_none());
    });
}

#[test]
fn b18_the_run_after_a_limit_starts_with_all_tools_and_counters_at_zero() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tool = Fake::failing("tide");
        let round = |call| Step::calls([(call, "tide", "{}")]);
        let client = scripted([
            round("c1"),
            round("c2"),
            Step::text("enough"),
            round("c3"),
            round("c4"),
            Step::text("enough"),
        ]);
        let limits = Limits {
            rounds: 2,
            failed_rounds: 2,
            calls: Some(2),
            ..Limits::default()
        };
        let agent = agent(&process, &client)
            .tool(tool.clone())
            .limits(limits)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        for turn in 1..=2 {
            let outcome = how.finish(agent.run_on(&thread, "when?")).await;
            let outcome = outcome.unwrap();
            assert_eq!(outcome.stop, StopReason::ErrorLimit);
            // Two complete rounds each time: counters start at zero in each run.
            assert_eq!((tool.runs(), client.calls()), (2 * turn, 3 * turn));
        }
        let offered: Vec<usize> = client.asked().iter().map(|one| one.tools.len()).collect();
        assert_eq!(offered, [1, 1, 0, 1, 1, 0]);
    });
}

/// How the run ends during which a message is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Terminated,
    Cancelled,
    Failed,
}

#[test]
fn b50_a_message_that_no_model_call_took_is_delivered_once_in_the_next_run() {
    for (ends, stop, left) in [
        (Ends::Terminated, StopReason::Terminated, "u a(c1) t(c1) "),
        (
            Ends::Cancelled,
            StopReason::Cancelled,
            "u a(c1) t(c1:unknown) ",
        ),
        // It was part of the request that failed.
        (Ends::Failed, StopReason::Failed, ""),
    ] {
        everywhere(async |stage, how| {
            let process = stage.process().await;
            let client = scripted([
                Step::calls([("c1", "tide", "{}")]),
                Step::fails(ErrorKind::Unavailable),
            ]);
            let token = CancellationToken::new();
            let cancel = token.clone();
            let thread = process.threads().new_thread();
            let id = thread.id().clone();
            let mailbox = thread.mailbox();
            let tool = Fake::doing("tide", move |_, _| {
                let (mailbox, cancel) = (mailbox.clone(), cancel.clone());
                async move {
                    mailbox.leave(Message::user("and the moon?")).await.unwrap();
                    let output = ToolOutput::text("at four");
                    match ends {
                        Ends::Terminated => Ok(output.and_terminate()),
                        Ends::Failed => Ok(output),
                        Ends::Cancelled => {
                            cancel.cancel();
                            std::future::pending().await
                        }
                    }
                }
            });
            let agent = agent(&process, &client).tool(tool.clone()).build().unwrap();
            let run = agent.run_on(&thread, "when?").cancelled_by(token);
            let ended = match how.finish(run).await {
                Ok(outcome) => outcome.stop,
                Err(failed) => failed.outcome().stop,
            };
            assert_eq!(ended, stop);
            process.kill();

            let second = stage.process().await;
            let client = scripted([Step::text("full"), Step::text("no")]);
            let agent = self::agent(&second, &client).tool(tool).build().unwrap();
            let thread = agent.open(id.clone()).await.unwrap();
            assert_eq!(thread.mailbox().waiting().await.unwrap().len(), 1);
            how.finish(agent.run_on(&thread, "well?")).await.unwrap();
            let texts: Vec<String> = client.asked()[0]
                .messages
                .iter()
                .rev()
                .take(2)
                .map(Message::text)
                .collect();
            assert_eq!(texts, ["well?", "and the moon?"]);
            assert_eq!(thread.mailbox().waiting().await.unwrap().len(), 0);
            how.finish(agent.run_on(&thread, "so?")).await.unwrap();
            assert_eq!(second.history(&id).await, format!("{left}u u a u a"));
        });
    }
    // A run that adopts the failed one counts as the next run.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Unavailable),
            Step::text("full"),
        ]);
        let thread = process.threads().new_thread();
        let mailbox = thread.mailbox();
        let tool = Fake::doing("tide", move |_, _| {
            let mailbox = mailbox.clone();
            async move {
                mailbox.leave(Message::user("and the moon?")).await.unwrap();
                Ok(ToolOutput::text("at four"))
            }
        });
        let agent = agent(&process, &client).tool(tool).build().unwrap();
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        assert_eq!(said(failed.unwrap_err().outcome()), "u a(c1) t(c1) u");
        how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(short(&client.asked()[2].messages), "u a(c1) t(c1) u");
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) u a");
        assert_eq!(thread.mailbox().waiting().await.unwrap().len(), 0);
    });
    // Queued in the last round: delivered with the last call.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted(one_round());
        let thread = process.threads().new_thread();
        let mailbox = thread.mailbox();
        let tool = Fake::doing("tide", move |_, _| {
            let mailbox = mailbox.clone();
            async move {
                mailbox.leave(Message::user("and the moon?")).await.unwrap();
                Ok(ToolOutput::text("at four"))
            }
        });
        let limits = Limits {
            rounds: 1,
            ..Limits::default()
        };
        let agent = agent(&process, &client)
            .tool(tool)
            .limits(limits)
            .build()
            .unwrap();
        let outcome = how.finish(agent.run_on(&thread, "when?")).await;
        assert_eq!(outcome.unwrap().stop, StopReason::RoundLimit);
        let id = thread.id().clone();
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) u a");
        assert_eq!(short(&client.asked()[1].messages), "u a(c1) t(c1) u");
        assert_eq!(thread.mailbox().waiting().await.unwrap().len(), 0);
    });
}

#[test]
fn b95_per_run_readers_see_the_old_head_and_then_everything_at_once() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([Step::text("hello")].into_iter().chain(one_round()));
        let agent = agent(&process, &client)
            .tool(Fake::named("tide"))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        let id = thread.id().clone();
        let seen = watched(stage, &process, &id).await;
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(
            saw(&seen),
            [
                "step: [u a] v1",
                "intend: [u a] v1",
                "results: [u a] v1",
                "publish: [u a] v1"
            ]
        );
        let after = snapshot(&process, &id).await;
        assert_eq!(after.history, "u a u a(c1) t(c1) a");
        assert_eq!((after.version, after.open), (2, false));
    });
}

/// The messages of a turn in a mode, with ids and dates that are the same in each.
async fn turn(stage: &Stage, how: How, mode: Persistence) -> Vec<Message> {
    let process = stage.process().await;
    let client = scripted(one_round());
    let clock = Arc::new(ManualClock::at(1_790_000_000_000));
    let agent = agent(&process, &client)
        .tool(Fake::named("tide"))
        .persistence(mode)
        .ids(Ids::seeded(Arc::<ManualClock>::clone(&clock), 3))
        .clock(clock)
        .build()
        .unwrap();
    let thread = agent.new_thread();
    how.finish(agent.run_on(&thread, "when?")).await.unwrap();
    let opened = process.threads().open(thread.id().clone()).await.unwrap();
    let history = opened.history();
    history.iter().map(|one| Message::clone(one)).collect()
}

#[test]
fn b96_per_call_the_head_moves_with_each_model_call_and_ends_as_per_run() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted(one_round());
        let agent = agent(&process, &client)
            .tool(Fake::named("tide"))
            .persistence(Persistence::PerCall)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let seen = watched(stage, &process, &id).await;
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(
            saw(&seen),
            [
                "step: [] v0",
                "intend: [u a(c1)] v1 open",
                "results: [u a(c1)] v1 open",
                "publish: [u a(c1)] v1 open"
            ]
        );
        let after = snapshot(&process, &id).await;
        assert_eq!(after.history, "u a(c1) t(c1) a");
        assert_eq!((after.version, after.open), (2, false));

        let per_run = turn(&Stage::new(stage.engine), how, Persistence::PerRun).await;
        let per_call = turn(&Stage::new(stage.engine), how, Persistence::PerCall).await;
        assert_eq!(per_run, per_call);
        assert_eq!(short(&per_run), "u a(c1) t(c1) a");
    });
}

#[test]
fn b97_a_parked_run_leaves_the_head_or_the_node_of_its_last_call() {
    for (mode, expected) in [
        (
            Persistence::PerRun,
            "history [] v0 unsent [] run parked calls [c1 approval, c2 done] \
             journal [u a(c1,c2) t(c2)]",
        ),
        (
            Persistence::PerCall,
            "history [u a(c1,c2)] v1 open unsent [] run parked calls [c1 approval, c2 done] \
             journal [u a(c1,c2) t(c2)]",
        ),
    ] {
        everywhere(async |stage, how| {
            let process = stage.process().await;
            let client = scripted([Step::calls([("c1", "book", "{}"), ("c2", "tide", "{}")])]);
            let agent = agent(&process, &client)
                .tool(Fake::named("tide"))
                .tool(Fake::named("book").with(|spec| spec.approval = Approval::Always))
                .persistence(mode)
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let id = thread.id().clone();
            let outcome = how.finish(agent.run_on(&thread, "book it")).await;
            assert_eq!(outcome.unwrap().stop, StopReason::Parked);
            assert_eq!(snapshot(&process, &id).await.to_string(), expected);
            // A process that opens the thread finds the waiting calls through the run.
            let other = stage.process().await;
            let thread = other.threads().open(id).await.unwrap();
            thread.refresh().await.unwrap();
            let waits: Vec<String> = thread
                .pending()
                .iter()
                .map(|one| one.call.to_string())
                .collect();
            assert_eq!(waits, ["c1"]);
        });
    }
}

/// The nodes of all steps of a journal.
fn nodes(steps: &[StepRecord]) -> Vec<Option<NodeId>> {
    steps.iter().map(|step| step.node).collect()
}

#[test]
fn b98_per_call_results_that_no_model_call_took_are_in_the_journal_and_not_in_the_history() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([Step::calls([("c1", "tide", "{}")]), Step::hang()]);
        let agent = agent(&process, &client)
            .tool(Fake::named("tide"))
            .persistence(Persistence::PerCall)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&thread, "when?");
        let task = tokio::spawn(async move { how.finish(run).await });
        client.begun(2).await;
        let during = snapshot(&process, &id).await;
        assert_eq!(
            during.to_string(),
            "history [u a(c1)] v1 open unsent [] run running calls [c1 done] \
             journal [u a(c1) t(c1)]"
        );
        // The result is stored after the run's last node: that makes it unsent.
        let journal = newest(&process, &id).await;
        assert_eq!(nodes(&journal.steps), [journal.run.published]);
        assert_eq!(journal.calls[0].result, 3);
        task.abort();
    });
    // Once the run is settled, opening the thread returns the result separately from the history.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([Step::calls([("c1", "tide", "{}")])]);
        let agent = agent(&process, &client)
            .tool(ending())
            .persistence(Persistence::PerCall)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        let after = snapshot(&process, &id).await;
        assert_eq!((&*after.history, &*after.unsent), ("u a(c1)", "t(c1)"));
    });
}

#[test]
fn b99_per_call_a_failed_call_leaves_what_was_published_and_an_unsent_result() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Unavailable),
            Step::text("at four"),
        ]);
        let tool = Fake::named("tide");
        let agent = agent(&process, &client)
            .tool(tool.clone())
            .persistence(Persistence::PerCall)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        let failed = failed.unwrap_err();
        assert_eq!(said(failed.outcome()), "u a(c1) t(c1)");
        assert_eq!(
            snapshot(&process, &id).await.to_string(),
            "history [u a(c1)] v1 open unsent [] run failed calls [c1 done] \
             journal [u a(c1) t(c1)]"
        );
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!((client.calls(), tool.runs()), (3, 1));
        assert_eq!(short(&client.asked()[2].messages), "u a(c1) t(c1)");
        let after = snapshot(&process, &id).await;
        assert_eq!(
            (&*after.history, after.open, &*after.unsent),
            ("u a(c1) t(c1) a", false, "")
        );
    });
    // New input instead: the result goes out first, directly after its call.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Unavailable),
            Step::text("at four"),
        ]);
        let tool = Fake::named("tide");
        let agent = agent(&process, &client)
            .tool(tool.clone())
            .persistence(Persistence::PerCall)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        assert_eq!(failed.unwrap_err().outcome().stop, StopReason::Failed);
        let outcome = how.finish(agent.run_on(&thread, "well?")).await;
        assert_eq!(said(&outcome.unwrap()), "u a");
        assert_eq!(short(&client.asked()[2].messages), "u a(c1) t(c1) u");
        assert_eq!((client.calls(), tool.runs()), (3, 1));
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) u a");
    });
}

#[test]
fn b100_per_run_a_failed_call_leaves_the_head_and_resuming_adopts_the_journal() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Unavailable),
            Step::text("at four"),
        ]);
        let tool = Fake::named("tide");
        let agent = agent(&process, &client).tool(tool.clone()).build().unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        let failed = failed.unwrap_err();
        assert!(matches!(failed.source, RunError::Client(_)));
        assert_eq!(failed.outcome().stop, StopReason::Failed);
        assert_eq!(said(failed.outcome()), "u a(c1) t(c1)");
        let journal = newest(&process, &id).await;
        assert_eq!(journal.run.id, failed.outcome().run);
        assert_eq!(
            snapshot(&process, &id).await.to_string(),
            "history [] v0 unsent [] run failed calls [c1 done] journal [u a(c1) t(c1)]"
        );

        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_ne!(outcome.run, failed.outcome().run);
        assert_eq!((client.calls(), tool.runs()), (3, 1));
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        let after = snapshot(&process, &id).await;
        assert_eq!(
            after.to_string(),
            "history [u a(c1) t(c1) a] v1 unsent [] run committed calls [] \
             journal [u a(c1) t(c1) a]"
        );
        // The failed run stays failed, and the new one has the head.
        let old = process
            .store
            .run(&process.scope(), failed.outcome().run)
            .await;
        assert_eq!(old.unwrap().state.as_str(), "failed");
        let journal = newest(&process, &id).await;
        assert_eq!(journal.run.id, outcome.run);
        assert_eq!(
            journal.run.published.map(|node| node.run),
            Some(outcome.run)
        );
        // Nothing is left to resume.
        let again = how.finish(agent.resume(&thread)).await.unwrap_err();
        assert!(matches!(again.source, RunError::NothingToResume { .. }));
    });
}

#[test]
fn b101_a_first_call_that_fails_leaves_no_history_and_the_input_can_be_sent_again() {
    for mode in [Persistence::PerRun, Persistence::PerCall] {
        everywhere(async |stage, how| {
            let process = stage.process().await;
            let client = scripted([Step::fails(ErrorKind::Unavailable), Step::text("at four")]);
            let agent = agent(&process, &client).persistence(mode).build().unwrap();
            let thread = agent.new_thread();
            let id = thread.id().clone();
            let failed = how.finish(agent.run_on(&thread, "when?")).await;
            assert_eq!(said(failed.unwrap_err().outcome()), "u");
            assert_eq!(
                snapshot(&process, &id).await.to_string(),
                "history [] v0 unsent [] run failed calls [] journal [u]"
            );
            let nothing = how.finish(agent.resume(&thread)).await.unwrap_err();
            assert!(matches!(nothing.source, RunError::NothingToResume { .. }));
            how.finish(agent.run_on(&thread, "when?")).await.unwrap();
            assert_eq!(process.history(&id).await, "u a");
            assert_eq!(short(&client.asked()[1].messages), "u");
        });
    }
}

#[test]
fn b102_per_call_results_of_a_terminated_run_go_out_first_with_the_next() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Unavailable),
            Step::text("so it is"),
        ]);
        let tool = ending();
        let agent = agent(&process, &client)
            .tool(tool.clone())
            .persistence(Persistence::PerCall)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let outcome = how.finish(agent.run_on(&thread, "when?")).await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.stop, StopReason::Terminated);
        assert_eq!(said(&outcome), "u a(c1) t(c1)");
        let before = snapshot(&process, &id).await;
        assert_eq!((&*before.history, &*before.unsent), ("u a(c1)", "t(c1)"));

        // A failed call has not sent them.
        let failed = how.finish(agent.run_on(&thread, "sure?")).await;
        assert_eq!(said(failed.unwrap_err().outcome()), "u");
        let between = snapshot(&process, &id).await;
        assert_eq!((&*between.history, &*between.unsent), ("u a(c1)", "t(c1)"));

        let outcome = how.finish(agent.run_on(&thread, "sure?")).await;
        assert_eq!(said(&outcome.unwrap()), "u a");
        for asked in &client.asked()[1..] {
            assert_eq!(short(&asked.messages), "u a(c1) t(c1) u");
        }
        let after = snapshot(&process, &id).await;
        assert_eq!((&*after.history, &*after.unsent), ("u a(c1) t(c1) u a", ""));
        assert_eq!(tool.runs(), 1);
    });
}

#[test]
fn b103_with_parity_the_history_is_what_a_storing_service_holds() {
    for (parity, history, unsent) in [
        (Parity::Service, "u a(c1)", "t(c1)"),
        (Parity::None, "u a(c1) t(c1)", ""),
    ] {
        everywhere(async |stage, how| {
            let process = stage.process().await;
            let service = Arc::new(StoringService::new(
                ServiceIds::PerCall,
                [Step::calls([("c1", "tide", "{}")])],
            ));
            let kept = Agent::builder(Arc::clone(&service))
                .store(&process.store)
                .tool(ending())
                .build()
                .unwrap();
            let there = kept.new_thread();
            let upstream = "scripted".to_owned();
            there
                .set_owner(throughline::thread::Owner::service(upstream))
                .await
                .unwrap();
            how.finish(kept.run_on(&there, "when?")).await.unwrap();
            let held = service.held("resp_held_1");
            assert_eq!(short(&held), "u a(c1)");

            let client = scripted([Step::calls([("c1", "tide", "{}")]), Step::text("yes")]);
            let agent = agent(&process, &client)
                .tool(ending())
                .history(HistoryPolicy {
                    parity,
                    ..HistoryPolicy::default()
                })
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let id = thread.id().clone();
            how.finish(agent.run_on(&thread, "when?")).await.unwrap();
            let after = snapshot(&process, &id).await;
            assert_eq!((&*after.history, &*after.unsent), (history, unsent));
            assert_eq!((after.version, after.run), (1, "committed"));
            how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
            assert_eq!(process.history(&id).await, "u a(c1) t(c1) u a");
        });
    }
    // Results that a model message follows are never trimmed.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted(one_round());
        let agent = agent(&process, &client)
            .tool(Fake::named("tide"))
            .history(HistoryPolicy {
                parity: Parity::Service,
                ..HistoryPolicy::default()
            })
            .build()
            .unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        let after = snapshot(&process, thread.id()).await;
        assert_eq!((&*after.history, &*after.unsent), ("u a(c1) t(c1) a", ""));
    });
}
