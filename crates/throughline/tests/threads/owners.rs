//! Histories owned by our store, or by the service of an upstream.

use std::sync::Arc;

use throughline::agent::{AgentBuilder, RunError, RunOptions};
use throughline::client::{Abilities, ErrorKind, StoresHistory};
use throughline::model::Message;
use throughline::thread::{HistoryPolicy, OnServiceId, Owner, OwnerError};
use throughline::tool::ToolOutput;
use throughline::{Agent, StopReason, Thread};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{Ids, KeptBy, ScriptedClient, Step, StoringService};
use throughline_testkit::stage::{Fake, How, Process, everywhere, said, short};
use tokio_util::sync::CancellationToken;

use crate::threads::snapshot::{newest, snapshot};
use crate::threads::warnings;

fn at(upstream: &str) -> Owner {
    Owner::service(upstream)
}

fn agent(process: &Process, service: &Arc<StoringService>) -> AgentBuilder {
    Agent::builder(Arc::clone(service))
        .store(&process.store)
        .tool(Fake::named("tide"))
}

fn service(ids: Ids, steps: impl IntoIterator<Item = Step>) -> Arc<StoringService> {
    Arc::new(StoringService::new(ids, steps))
}

fn named(ids: Ids, upstream: &str, steps: impl IntoIterator<Item = Step>) -> Arc<StoringService> {
    let abilities = Abilities {
        stores_history: StoresHistory::Optional,
        ..Abilities::of(upstream)
    };
    Arc::new(StoringService::new(ids, steps).with_abilities(abilities))
}

fn call(id: &str) -> Step {
    Step::calls([(id, "tide", "{}")])
}

/// A new thread that the service owns.
async fn kept(agent: &Agent) -> Thread {
    let thread = agent.new_thread();
    thread.set_owner(at("scripted")).await.unwrap();
    thread
}

/// The ids of a thread: upstream and id.
fn ids(thread: &Thread) -> Vec<(String, String)> {
    let ids = thread.service_ids().into_iter();
    ids.map(|one| (one.upstream, one.id)).collect()
}

fn id(upstream: &str, id: &str) -> (String, String) {
    (upstream.to_owned(), id.to_owned())
}

/// What each call was sent, and the id that it continued: `[u] of resp_1`.
fn sent(script: &ScriptedClient) -> Vec<String> {
    let asked = script.asked().into_iter();
    asked
        .map(|asked| {
            let messages = short(&asked.messages);
            match asked.kept {
                KeptBy::Caller => format!("[{messages}] ours"),
                KeptBy::Service(None) => format!("[{messages}] new"),
                KeptBy::Service(Some(id)) => format!("[{messages}] of {id}"),
            }
        })
        .collect()
}

fn policy(on_service_id: OnServiceId) -> HistoryPolicy {
    HistoryPolicy {
        on_service_id,
        ..HistoryPolicy::default()
    }
}

#[test]
fn b109_a_service_is_sent_only_what_is_new_and_the_newest_id() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let service = service(
            Ids::PerCall,
            [call("c1"), Step::text("at four"), Step::text("yes")],
        );
        let agent = agent(&process, &service).build().unwrap();
        let thread = kept(&agent).await;
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(ids(&thread), [id("scripted", "resp_held_2")]);
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        assert_eq!(
            sent(service.script()),
            ["[u] new", "[t(c1)] of resp_held_1", "[u] of resp_held_2"]
        );
        let opened = process.threads().open(thread.id().clone()).await.unwrap();
        assert_eq!(ids(&opened), [id("scripted", "resp_held_3")]);
        assert_eq!(opened.owner(), at("scripted"));
        assert_eq!(
            short(&service.held("resp_held_3")),
            process.history(thread.id()).await
        );
    });
}

#[test]
fn b110_after_a_crash_the_id_of_the_last_call_is_used() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let service = service(Ids::PerCall, [Step::text("hello"), call("c1")]);
        let agent = agent(&first, &service).build().unwrap();
        let thread = kept(&agent).await;
        let thread_id = thread.id().clone();
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        first.die_in("intend", Fault::HangBefore);
        let run = agent.run_on(&thread, "when?");
        tokio::spawn(async move { how.finish(run).await });
        first.died().await;

        let second = stage.process().await;
        // No tool has run yet, and the journal has the id.
        let journal = newest(&second, &thread_id).await;
        let note = journal.steps[0].note.as_ref().unwrap();
        assert!(note.get().contains(r#""service":"resp_held_2""#));
        service.script().push(Step::text("at four"));
        service.script().push(Step::text("yes"));
        let agent = self::agent(&second, &service).build().unwrap();
        let thread = agent.open(thread_id.clone()).await.unwrap();
        assert_eq!(ids(&thread), [id("scripted", "resp_held_1")]);
        how.finish(agent.resume(&thread)).await.unwrap();
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        assert_eq!(
            sent(service.script()),
            [
                "[u] new",
                "[u] of resp_held_1",
                "[t(c1)] of resp_held_2",
                "[u] of resp_held_3"
            ]
        );
        assert_eq!(
            short(&service.held("resp_held_4")),
            second.history(&thread_id).await
        );
    });
}

#[test]
fn b111_a_service_without_an_id_fails_the_run_and_the_last_good_id_stays() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = Arc::new(ScriptedClient::new([
            Step::text("hello").kept_as("resp_1"),
            call("c1").kept_as("resp_2"),
            Step::text("at four"),
        ]));
        let agent = Agent::builder(Arc::clone(&client))
            .store(&process.store)
            .tool(Fake::named("tide"))
            .build()
            .unwrap();
        let thread = kept(&agent).await;
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        let failed = failed.unwrap_err();
        assert!(
            matches!(&failed.source, RunError::NoServiceId { upstream } if upstream == "scripted")
        );
        assert_eq!(said(failed.outcome()), "u a(c1) t(c1) a");
        assert_eq!(failed.outcome().text(), "at four");
        let opened = process.threads().open(thread.id().clone()).await.unwrap();
        assert_eq!(opened.owner(), at("scripted"));
        assert_eq!(ids(&opened), [id("scripted", "resp_1")]);
        assert_eq!(process.history(thread.id()).await, "u a");
    });
}

#[test]
fn b112_another_service_id_in_the_options_is_refused_before_the_call() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let service = service(
            Ids::PerCall,
            [Step::text("hello"), Step::text("yes"), Step::text("no")],
        );
        let agent = agent(&process, &service).build().unwrap();
        let thread = kept(&agent).await;
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        let options = |id: &str| RunOptions {
            service_id: Some(id.to_owned()),
            ..RunOptions::default()
        };
        let other = options("resp_other");
        let run = agent.run_on(&thread, "sure?").options(&other);
        let refused = how.finish(run).await.unwrap_err();
        assert!(matches!(
            &refused.source,
            RunError::OtherServiceId { named, known: Some(known) }
                if named == "resp_other" && known == "resp_held_1"
        ));
        assert_eq!(service.script().calls(), 1);
        assert_eq!(newest(&process, thread.id()).await.run.next_step, 1);

        let same = options("resp_held_1");
        let run = agent.run_on(&thread, "sure?").options(&same);
        how.finish(run).await.unwrap();
        assert_eq!(process.history(thread.id()).await, "u a u a");
        assert_eq!(other.service_id.as_deref(), Some("resp_other"));
        assert_eq!(same.service_id.as_deref(), Some("resp_held_1"));

        // A thread that our store owns has no id to name.
        let ours = agent.new_thread();
        let run = agent.run_on(&ours, "hi").options(&same);
        let refused = how.finish(run).await.unwrap_err();
        assert!(matches!(
            refused.source,
            RunError::OtherServiceId { known: None, .. }
        ));
        assert_eq!(service.script().calls(), 2);
    });
}

#[test]
fn b113_a_local_thread_never_sends_a_service_id() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let service = service(
            Ids::PerCall,
            [
                call("c1"),
                Step::text("at four"),
                Step::text("yes"),
                Step::text("no"),
            ],
        );
        let agent = agent(&process, &service).build().unwrap();
        let thread = agent.new_thread();
        assert_eq!(thread.owner(), Owner::Local);
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        // An id that the thread has from earlier changes nothing: only the owner counts.
        thread.set_owner(at("scripted")).await.unwrap();
        how.finish(agent.run_on(&thread, "so?")).await.unwrap();
        thread.set_owner(Owner::Local).await.unwrap();
        service.script().push(Step::text("well"));
        how.finish(agent.run_on(&thread, "now?")).await.unwrap();
        assert_eq!(ids(&thread).len(), 1);
        assert_eq!(
            sent(service.script()),
            [
                "[u] ours",
                "[u a(c1) t(c1)] ours",
                "[u a(c1) t(c1) a u] ours",
                "[u a(c1) t(c1) a u a u] new",
                "[u a(c1) t(c1) a u a u a u] ours",
            ]
        );
    });
}

#[test]
fn b114_a_service_that_always_keeps_history_is_refused_before_the_first_call() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let steps = [Step::text("hello")];
        let always = StoringService::new(Ids::PerCall, steps).storing(StoresHistory::Always);
        let always = Arc::new(always);
        let agent = agent(&process, &always).build().unwrap();
        let thread = agent.new_thread();
        let refused = how.finish(agent.run_on(&thread, "hi")).await;
        let refused = refused.unwrap_err();
        assert!(matches!(
            &refused.source,
            RunError::ServiceKeepsHistory { upstream } if upstream == "scripted"
        ));
        assert_eq!(always.script().calls(), 0);
        assert!(always.ids().is_empty());
        // Nothing was stored either.
        assert!(process.threads().open(thread.id().clone()).await.is_err());

        let optional = service(Ids::PerCall, [Step::text("hello")]);
        let agent = self::agent(&process, &optional).build().unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        assert_eq!(sent(optional.script()), ["[u] ours"]);
        assert!(optional.ids().is_empty());
    });
}

/// An upstream that returns ids although it was not asked to store anything.
fn unasked(steps: impl IntoIterator<Item = Step>) -> Arc<ScriptedClient> {
    let steps = steps.into_iter().zip(1..);
    let steps = steps.map(|(step, number): (Step, u32)| step.kept_as(format!("resp_{number}")));
    Arc::new(ScriptedClient::new(steps))
}

fn local(process: &Process, client: &Arc<ScriptedClient>, on_service_id: OnServiceId) -> Agent {
    Agent::builder(Arc::clone(client))
        .store(&process.store)
        .tool(Fake::named("tide"))
        .history(policy(on_service_id))
        .build()
        .unwrap()
}

#[test]
fn b115_an_unrequested_service_id_fails_the_run_and_is_not_adopted() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tool = Fake::named("tide");
        let client = unasked([Step::text_and_calls("let me see", [("c1", "tide", "{}")])]);
        let agent = Agent::builder(Arc::clone(&client))
            .store(&process.store)
            .tool(tool.clone())
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        let failed = failed.unwrap_err();
        assert!(matches!(
            failed.source,
            RunError::ServiceKeepsHistory { .. }
        ));
        assert_eq!(failed.outcome().stop, StopReason::Failed);
        assert_eq!(failed.outcome().messages[1].text(), "let me see");
        assert_eq!((tool.runs(), client.calls()), (0, 1));
        let after = snapshot(&process, thread.id()).await;
        assert_eq!((&*after.history, after.version), ("", 0));
        assert_eq!(after.run, "failed");
        let opened = process.threads().open(thread.id().clone()).await.unwrap();
        assert_eq!(opened.owner(), Owner::Local);
        assert!(ids(&opened).is_empty());
    });
}

/// Two turns, the first with a round of tools, of an upstream that returns unexpected ids.
async fn turns(
    process: &Process,
    how: How,
    on_service_id: OnServiceId,
) -> (Thread, Vec<String>, Vec<String>) {
    warnings::listen();
    let client = unasked([call("c1"), Step::text("at four"), Step::text("yes")]);
    let agent = local(process, &client, on_service_id);
    let thread = agent.new_thread();
    let outcome = how.finish(agent.run_on(&thread, "when?")).await;
    let warned = warnings::of(outcome.unwrap().run);
    how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
    (thread, sent(&client), warned)
}

const KEEPS: &str = "the service keeps a conversation whose history is local";

#[test]
fn b116_warn_keeps_the_history_and_clear_hands_this_thread_over() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (thread, sent, warned) = turns(&process, how, OnServiceId::Warn).await;
        assert_eq!(warned, [KEEPS]);
        assert_eq!(
            sent,
            [
                "[u] ours",
                "[u a(c1) t(c1)] ours",
                "[u a(c1) t(c1) a u] ours"
            ]
        );
        let opened = process.threads().open(thread.id().clone()).await.unwrap();
        assert_eq!(opened.owner(), Owner::Local);
        assert!(ids(&opened).is_empty());
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a u a");
    });
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (thread, sent, warned) = turns(&process, how, OnServiceId::Clear).await;
        assert!(warned.is_empty());
        assert_eq!(sent, ["[u] ours", "[t(c1)] of resp_1", "[u] of resp_2"]);
        let opened = process.threads().open(thread.id().clone()).await.unwrap();
        assert_eq!(
            (opened.owner(), thread.owner()),
            (at("scripted"), at("scripted"))
        );
        assert_eq!(ids(&opened), [id("scripted", "resp_3")]);
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a u a");
    });
    // Other threads of the agent do not change, and earlier messages stay readable.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let plain = Arc::new(ScriptedClient::new([Step::text("hello"), Step::text("oh")]));
        let agent = local(&process, &plain, OnServiceId::Clear);
        let other = agent.new_thread();
        how.finish(agent.run_on(&other, "hi")).await.unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        plain.push(Step::text("at four").kept_as("resp_1"));
        plain.push(Step::text("yes"));
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        how.finish(agent.run_on(&other, "well?")).await.unwrap();
        for (thread, owner) in [(&thread, at("scripted")), (&other, Owner::Local)] {
            let opened = process.threads().open(thread.id().clone()).await.unwrap();
            assert_eq!(opened.owner(), owner);
            assert_eq!(process.history(thread.id()).await, "u a u a");
        }
        assert_eq!(
            sent(&plain),
            ["[u] ours", "[u] ours", "[u a u] ours", "[u a u] ours"]
        );
    });
    // A service that always stores causes one warning, before the first call.
    for (how_to, owner, first, warnings_given) in [
        (OnServiceId::Warn, Owner::Local, "[u] ours", 1),
        (OnServiceId::Clear, at("scripted"), "[u] new", 0),
    ] {
        everywhere(async |stage, how| {
            warnings::listen();
            let process = stage.process().await;
            let steps = [call("c1"), Step::text("at four")];
            let always = StoringService::new(Ids::PerCall, steps).storing(StoresHistory::Always);
            let always = Arc::new(always);
            let agent = agent(&process, &always)
                .history(policy(how_to))
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let outcome = how.finish(agent.run_on(&thread, "when?")).await;
            let outcome = outcome.unwrap();
            assert_eq!(warnings::of(outcome.run).len(), warnings_given);
            assert_eq!(sent(always.script())[0], first);
            let opened = process.threads().open(thread.id().clone()).await.unwrap();
            assert_eq!(opened.owner(), owner);
            assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a");
        });
    }
}

#[test]
fn b117_each_upstream_has_its_own_id_and_only_the_owner_is_run_on() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = named(
            Ids::PerCall,
            "east",
            [Step::text("one"), Step::text("three")],
        );
        let west = named(Ids::Stable, "west", [Step::text("two")]);
        let at_east = agent(&process, &east).build().unwrap();
        let at_west = agent(&process, &west).build().unwrap();
        let thread = at_east.new_thread();
        thread.set_owner(at("east")).await.unwrap();
        how.finish(at_east.run_on(&thread, "hi")).await.unwrap();

        let refused = how.finish(at_west.run_on(&thread, "hi")).await;
        let refused = refused.unwrap_err();
        assert!(matches!(
            &refused.source,
            RunError::KeptElsewhere { owner, upstream } if owner == "east" && upstream == "west"
        ));
        let told = refused.source.to_string();
        for operation in ["hand_over", "add_service", "on_other_upstream"] {
            assert!(told.contains(operation), "{told}");
        }
        assert_eq!(west.script().calls(), 0);
        assert_eq!(process.history(thread.id()).await, "u a");

        thread.set_owner(at("west")).await.unwrap();
        how.finish(at_west.run_on(&thread, "and?")).await.unwrap();
        let both = [id("east", "resp_held_1"), id("west", "conv_held_1")];
        assert_eq!(ids(&thread), both);
        // Back again: the old id, and the messages that were sent elsewhere meanwhile.
        thread.set_owner(at("east")).await.unwrap();
        how.finish(at_east.run_on(&thread, "so?")).await.unwrap();
        assert_eq!(sent(east.script()), ["[u] new", "[u a u] of resp_held_1"]);
        assert_eq!(sent(west.script()), ["[u a u] new"]);
        assert_eq!(
            short(&east.held("resp_held_2")),
            process.history(thread.id()).await
        );
    });
}

#[test]
fn b118_a_service_that_takes_over_is_sent_everything_once_and_gives_back_nothing_less() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let service = service(
            Ids::PerCall,
            [
                call("c1"),
                Step::text("at four"),
                call("c2"),
                Step::text("yes"),
                Step::text("no"),
                Step::text("well"),
            ],
        );
        let agent = agent(&process, &service).build().unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        thread.set_owner(at("scripted")).await.unwrap();
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        how.finish(agent.run_on(&thread, "so?")).await.unwrap();
        thread.set_owner(Owner::Local).await.unwrap();
        how.finish(agent.run_on(&thread, "now?")).await.unwrap();
        assert_eq!(
            sent(service.script()),
            [
                "[u] ours",
                "[u a(c1) t(c1)] ours",
                "[u a(c1) t(c1) a u] new",
                "[t(c2)] of resp_held_1",
                "[u] of resp_held_2",
                "[u a(c1) t(c1) a u a(c2) t(c2) a u a u] ours",
            ]
        );
        assert_eq!(
            process.history(thread.id()).await,
            "u a(c1) t(c1) a u a(c2) t(c2) a u a u a"
        );
    });
    // Not while a run is unsettled.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let service = service(Ids::PerCall, [call("c1"), Step::hang()]);
        let agent = agent(&process, &service).build().unwrap();
        let thread = agent.new_thread();
        let handle = thread.mailbox();
        let run = agent.run_on(&thread, "when?");
        let task = tokio::spawn(async move { how.finish(run).await });
        service.script().begun(2).await;
        let refused = thread.set_owner(at("scripted")).await.unwrap_err();
        assert!(matches!(refused, OwnerError::Unsettled { .. }));
        drop(handle);
        task.abort();
    });
}

#[test]
fn b219_a_service_id_that_never_changes_costs_no_write_of_its_own() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let service = service(
            Ids::Stable,
            [Step::text("one"), Step::text("two"), Step::text("three")],
        );
        let agent = agent(&process, &service).build().unwrap();
        let thread = kept(&agent).await;
        for turn in 1..=3 {
            process.counted.reset();
            how.finish(agent.run_on(&thread, "more")).await.unwrap();
            let counted = &process.counted;
            let reads = usize::from(turn > 1);
            // The two of a plain turn, and the handle of the call that the service accepted (B244).
            assert_eq!((counted.reads(), counted.writes()), (reads, 3));
            assert_eq!(
                counted
                    .log()
                    .iter()
                    .filter(|op| **op == "remote_call")
                    .count(),
                1
            );
            assert_eq!(ids(&thread), [id("scripted", "conv_held_1")]);
            let opened = process.threads().open(thread.id().clone()).await.unwrap();
            assert_eq!(ids(&opened), [id("scripted", "conv_held_1")]);
        }
        assert_eq!(
            sent(service.script()),
            ["[u] new", "[u] of conv_held_1", "[u] of conv_held_1"]
        );
        assert_eq!(service.ids(), ["conv_held_1"]);
    });
}

#[test]
fn b220_warn_and_clear_warns_once_and_hands_this_thread_over() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (thread, sent, warned) = turns(&process, how, OnServiceId::WarnAndClear).await;
        assert_eq!(warned, [KEEPS]);
        assert_eq!(sent, ["[u] ours", "[t(c1)] of resp_1", "[u] of resp_2"]);
        let opened = process.threads().open(thread.id().clone()).await.unwrap();
        assert_eq!(opened.owner(), at("scripted"));
        assert_eq!(ids(&opened), [id("scripted", "resp_3")]);
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a u a");
    });
}

/// How a run on a service-owned thread ends so that the service lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    Terminated,
    CancelledInTool,
    CancelledInAnswer,
    Failed,
    FailedThenResumed,
}

#[test]
fn what_a_service_does_not_have_is_sent_with_the_next_call() {
    for ids in [Ids::PerCall, Ids::Stable] {
        for (leaves, next) in [
            (Leaves::Terminated, "[t(c1) u]"),
            (Leaves::CancelledInTool, "[t(c1:unknown) u]"),
            (Leaves::CancelledInAnswer, "[t(c1) u]"),
            (Leaves::FailedThenResumed, "[t(c1)]"),
        ] {
            everywhere(async |stage, how| {
                after(stage.process().await, how, ids, leaves, next).await;
            });
        }
    }
    // A failed run is not history; a service with an id per answer can continue before it.
    everywhere(async |stage, how| {
        after(
            stage.process().await,
            how,
            Ids::PerCall,
            Leaves::Failed,
            "[u]",
        )
        .await;
    });
}

async fn after(process: Process, how: How, ids: Ids, leaves: Leaves, next: &str) {
    let service = service(ids, [Step::text("hello"), call("c1")]);
    let token = CancellationToken::new();
    let cancel = token.clone();
    let tool = Fake::doing("tide", move |_, _| {
        let cancel = cancel.clone();
        async move {
            let output = ToolOutput::text("at four");
            match leaves {
                Leaves::Terminated => Ok(output.and_terminate()),
                Leaves::CancelledInTool => {
                    cancel.cancel();
                    std::future::pending().await
                }
                Leaves::CancelledInAnswer | Leaves::Failed | Leaves::FailedThenResumed => {
                    Ok(output)
                }
            }
        }
    });
    let agent = Agent::builder(Arc::clone(&service))
        .store(&process.store)
        .tool(tool)
        .build()
        .unwrap();
    match leaves {
        Leaves::CancelledInAnswer => service.script().push(Step::hang()),
        Leaves::Failed | Leaves::FailedThenResumed => {
            service.script().push(Step::fails(ErrorKind::Unavailable));
        }
        Leaves::Terminated | Leaves::CancelledInTool => {}
    }
    let thread = kept(&agent).await;
    how.finish(agent.run_on(&thread, "hi")).await.unwrap();
    let run = agent.run_on(&thread, "when?").cancelled_by(token.clone());
    let running = tokio::spawn(async move { how.finish(run).await });
    if leaves == Leaves::CancelledInAnswer {
        service.script().begun(3).await;
        token.cancel();
    }
    drop(running.await.unwrap());
    service.script().push(Step::text("so"));
    let ended = match leaves {
        Leaves::FailedThenResumed => how.finish(agent.resume(&thread)).await,
        _ => how.finish(agent.run_on(&thread, "well?")).await,
    };
    ended.unwrap();
    let last = sent(service.script()).pop().unwrap();
    assert!(last.starts_with(next), "{leaves:?}: {last}");
    let id = thread.service_ids().pop().unwrap().id;
    let held: Vec<Message> = service.held(&id);
    assert_eq!(short(&held), process.history(thread.id()).await);
}
