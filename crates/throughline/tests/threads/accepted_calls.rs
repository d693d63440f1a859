//! Calls that a service has accepted: the journal has their handle, and the service is asked for the
//! answer instead of a second one (B244).

use std::sync::Arc;

use throughline::client::{Abilities, StoresHistory};
use throughline::model::{Content, Message, Wire};
use throughline::thread::{Owner, Persistence};
use throughline::{Agent, ChatClient as _};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{Ids, LostHow, LostStream, Step, StoringService};
use throughline_testkit::stage::{Fake, Process, everywhere, short};
use throughline_testkit::upstream::{Reply, Upstream};

use crate::threads::snapshot::newest;
use crate::upstreams::common::client_of;

fn service(ids: Ids, steps: impl IntoIterator<Item = Step>) -> Arc<StoringService> {
    let abilities = Abilities {
        stores_history: StoresHistory::Optional,
        ..Abilities::of("east")
    };
    Arc::new(StoringService::new(ids, steps).with_abilities(abilities))
}

fn agent(process: &Process, service: &Arc<StoringService>, mode: Persistence) -> Agent {
    Agent::builder(Arc::clone(service))
        .store(&process.store)
        .persistence(mode)
        .new_threads_owned_by(|_| Owner::service("east"))
        .tool(Fake::named("tide"))
        .build()
        .unwrap()
}

const MODES: [Persistence; 2] = [Persistence::PerRun, Persistence::PerCall];

fn steps() -> [Step; 2] {
    [Step::calls([("c1", "tide", "{}")]), Step::text("at four")]
}

/// The stream stops after its handle, or in the middle of the answer.
const PLACES: [usize; 2] = [2, 3];

#[test]
fn b244_after_a_crash_the_service_is_asked_for_the_answer_and_nothing_is_sent_twice() {
    for mode in MODES {
        for ids in [Ids::PerCall, Ids::Stable] {
            for (call, after) in [
                (0, PLACES[0]),
                (0, PLACES[1]),
                (1, PLACES[0]),
                (1, PLACES[1]),
            ] {
                everywhere(async |stage, how| {
                    let name =
                        format!("{mode:?} {ids:?} {call} {after} {:?} {how:?}", stage.engine);
                    let first = stage.process().await;
                    let service = service(ids, steps());
                    service.lose_stream(
                        call,
                        LostStream {
                            after,
                            then: LostHow::Hangs,
                            running: 1,
                            is_answered: true,
                        },
                    );
                    let agent = agent(&first, &service, mode);
                    let thread = agent.new_thread();
                    let id = thread.id().clone();
                    let run = agent.run_on(&thread, "when?");
                    tokio::spawn(async move { how.finish(run).await });
                    service.script().begun(call + 1).await;
                    // Until the handle is in the journal.
                    loop {
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        let journal = newest(&first, &id).await;
                        if journal.remote.is_some() {
                            break;
                        }
                    }
                    first.kill();

                    let second = stage.process().await;
                    let agent = self::agent(&second, &service, mode);
                    let thread = agent.open(id.clone()).await.unwrap();
                    let outcome = how.finish(agent.resume(&thread)).await.unwrap();
                    assert_eq!(outcome.text(), "at four", "{name}");
                    // Each answer was made, and paid, once.
                    assert_eq!(service.script().calls(), 2, "{name}");
                    assert_eq!(service.look_ups(), 2, "{name}");
                    let history = second.history(&id).await;
                    assert_eq!(history, "u a(c1) t(c1) a", "{name}");
                    let held = service.held(&thread.service_ids()[0].id);
                    assert_eq!(short(&held), history, "{name}");
                    // The next turn goes on from there.
                    service.script().push(Step::text("yes"));
                    how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
                    let shown = service.script().last_asked().unwrap().messages;
                    assert_eq!(short(&shown), "u", "{name}");
                });
            }
        }
    }
}

#[test]
fn b244_a_stream_that_breaks_is_followed_by_a_question_and_not_by_a_second_call() {
    everywhere(async |stage, how| {
        for after in PLACES {
            let process = stage.process().await;
            let service = service(Ids::PerCall, steps());
            service.lose_stream(
                1,
                LostStream {
                    after,
                    then: LostHow::Cut,
                    running: 1,
                    is_answered: true,
                },
            );
            let agent = agent(&process, &service, Persistence::PerRun);
            let thread = agent.new_thread();
            let outcome = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
            assert_eq!(outcome.text(), "at four");
            assert_eq!((service.script().calls(), service.look_ups()), (2, 2));
            assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a");
        }
    });
}

#[test]
fn b244_an_answer_that_the_service_lost_is_made_again() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let service = service(Ids::PerCall, [Step::text("at f"), Step::text("at four")]);
        service.lose_stream(
            0,
            LostStream {
                after: 2,
                then: LostHow::Hangs,
                running: 0,
                is_answered: false,
            },
        );
        let agent = agent(&first, &service, Persistence::PerRun);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&thread, "when?");
        tokio::spawn(async move { how.finish(run).await });
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            let exists = first.threads().open(id.clone()).await.is_ok();
            if exists && newest(&first, &id).await.remote.is_some() {
                break;
            }
        }
        first.kill();
        let second = stage.process().await;
        let agent = self::agent(&second, &service, Persistence::PerRun);
        let thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(outcome.text(), "at four");
        assert_eq!((service.script().calls(), service.look_ups()), (2, 1));
        assert_eq!(second.history(&id).await, "u a");
    });
}

#[test]
fn b244_a_message_that_came_while_the_answer_was_lost_waits_for_the_next_call() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let service = service(Ids::PerCall, steps());
        service.lose_stream(
            1,
            LostStream {
                after: 2,
                then: LostHow::Hangs,
                running: 0,
                is_answered: true,
            },
        );
        let agent = agent(&first, &service, Persistence::PerRun);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&thread, "when?");
        tokio::spawn(async move { how.finish(run).await });
        service.script().begun(2).await;
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            if newest(&first, &id).await.remote.is_some() {
                break;
            }
        }
        first.kill();
        let second = stage.process().await;
        let agent = self::agent(&second, &service, Persistence::PerRun);
        let thread = agent.open(id.clone()).await.unwrap();
        thread
            .mailbox()
            .leave(Message::user("and the berth?"))
            .await
            .unwrap();
        service.script().push(Step::text("free"));
        how.finish(agent.resume(&thread)).await.unwrap();
        service.script().push(Step::text("yes"));
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        // The service was sent each message once, in the order of the record.
        let history = second.history(&id).await;
        assert_eq!(history.matches('u').count(), 3, "{history}");
        let held = service.held(&thread.service_ids()[0].id);
        assert_eq!(short(&held), history);
    });
}

/// Vendors whose services store conversations, over HTTP.
const STORING: [Wire; 3] = [
    Wire::OpenAiResponses,
    Wire::Foundry,
    Wire::GeminiInteractions,
];

#[test]
fn b244_a_storing_vendor_is_asked_for_what_it_went_on_with_after_a_crash() {
    for wire in STORING {
        for mode in MODES {
            everywhere(async |stage, how| {
                let name = format!("{wire} {mode:?} {:?} {how:?}", stage.engine);
                let calls = Reply::calls([("tide", "{}")]);
                // The vendor goes on with its answer when the connection has ended.
                let lost = Reply::text("at four").detached().running_for(1);
                let vendor = [calls, lost, Reply::text("yes")];
                let vendor = Upstream::start(wire.clone(), vendor).await;
                let agent = |process: &Process| {
                    let client = client_of(&vendor).build().unwrap();
                    let upstream = client.abilities().upstream.clone();
                    Agent::builder(client)
                        .store(&process.store)
                        .persistence(mode)
                        .new_threads_owned_by(move |_| Owner::service(&upstream))
                        .tool(Fake::named("tide"))
                        .build()
                        .unwrap()
                };
                let first = stage.process().await;
                let here = agent(&first);
                let thread = here.new_thread();
                let id = thread.id().clone();
                // The handle of the second call is in the journal, and nothing behind it.
                first.die_in("remote_call", Fault::HangAfter);
                let run = here.run_on(&thread, "when?");
                tokio::spawn(async move { how.finish(run).await });
                first.died().await;

                let mut process = stage.process().await;
                if vendor.counts().model_calls == 1 {
                    // It died in the first call: the next one dies in the second.
                    process.die_in("remote_call", Fault::HangAfter);
                    let here = agent(&process);
                    let thread = here.open(id.clone()).await.unwrap();
                    let run = here.resume(&thread);
                    tokio::spawn(async move { how.finish(run).await });
                    process.died().await;
                    process = stage.process().await;
                }
                assert_eq!(vendor.counts().model_calls, 2, "{name}");
                assert!(newest(&process, &id).await.remote.is_some(), "{name}");
                let there = agent(&process);
                let thread = there.open(id.clone()).await.unwrap();
                let outcome = how.finish(there.resume(&thread)).await.unwrap();
                assert_eq!(outcome.text(), "at four", "{name}");
                assert_eq!(vendor.counts().model_calls, 2, "{name}");
                how.finish(there.run_on(&thread, "sure?")).await.unwrap();
                let messages = thread.history();
                let mut contents = messages.iter().flat_map(|one| &one.contents);
                let call = contents.find_map(Content::as_tool_call).unwrap();
                let whole = "u a(c1) t(c1) a u a".replace("c1", call.call.value());
                assert_eq!(process.history(&id).await, whole, "{name}");
                assert_eq!(vendor.counts().model_calls, 3, "{name}");
                assert_eq!(vendor.counts().refused, 0, "{name}");
            });
        }
    }
}
