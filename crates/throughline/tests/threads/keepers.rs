//! Who keeps a conversation: the application's store for each call, defaults of agents, several
//! services on one thread, hand-overs, vendors' copies, and calls that were cut (B237 to B243).

use std::sync::Arc;
use std::time::Duration;

use throughline::agent::{
    AgentBuilder, HandOverError, Limits, ReadBackOutcome, RunError, ServiceClients,
};
use throughline::client::{Abilities, ErrorKind, StoresHistory};
use throughline::compact::Policy;
use throughline::model::json::RawJson;
use throughline::model::{Message, Role};
use throughline::thread::{
    CopyOutcome, HistoryPolicy, OnOtherUpstream, Owner, OwnerError, Parity, Persistence,
};
use throughline::tool::{Approval, ToolOutput};
use throughline::{Agent, StopReason, Thread};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{Ids, KeptBy, ScriptedClient, Step, StoringService};
use throughline_testkit::stage::{Fake, How, Process, everywhere, short};
use tokio_util::sync::CancellationToken;

use crate::threads::external::{Shelf, Shelving, carried, on_shelf};
use crate::threads::snapshot::snapshot;

const MODES: [Persistence; 2] = [Persistence::PerRun, Persistence::PerCall];

fn call(id: &str) -> Step {
    Step::calls([(id, "tide", "{}")])
}

fn shelved(process: &Process, client: &Arc<ScriptedClient>, shelf: &Shelf) -> AgentBuilder {
    Agent::builder(Arc::clone(client))
        .store(&process.store)
        .message_store("shelf", shelf.clone())
        .tool(Fake::named("tide"))
}

async fn on_the_shelf(agent: &Agent) -> Thread {
    let thread = agent.new_thread();
    thread.set_owner(on_shelf("7")).await.unwrap();
    thread
}

fn service(upstream: &str, ids: Ids, steps: impl IntoIterator<Item = Step>) -> Arc<StoringService> {
    let abilities = Abilities {
        stores_history: StoresHistory::Optional,
        ..Abilities::of(upstream)
    };
    Arc::new(StoringService::new(ids, steps).with_abilities(abilities))
}

/// What each call was sent, and the id that it continued.
fn sent(script: &ScriptedClient) -> Vec<String> {
    let asked = script.asked().into_iter();
    let lines = asked.map(|asked| {
        let messages = short(&asked.messages);
        match asked.kept {
            KeptBy::Caller => format!("[{messages}] ours"),
            KeptBy::Service(None) => format!("[{messages}] new"),
            KeptBy::Service(Some(id)) => format!("[{messages}] of {id}"),
        }
    });
    lines.collect()
}

fn ids(thread: &Thread) -> Vec<String> {
    let ids = thread.service_ids().into_iter();
    ids.map(|one| format!("{} {}", one.upstream, one.id))
        .collect()
}

#[test]
fn b237_each_call_is_appended_to_the_applications_store_after_its_step() {
    everywhere(async |stage, how| {
        for mode in MODES {
            let process = stage.process().await;
            let shelf = Shelf::new(Shelving::Plain);
            let client = Arc::new(ScriptedClient::new([
                call("c1"),
                call("c2"),
                Step::text("at four"),
                Step::text("yes"),
            ]));
            let agent = shelved(&process, &client, &shelf)
                .persistence(mode)
                .build()
                .unwrap();
            let thread = on_the_shelf(&agent).await;
            let run = how
                .finish(agent.run_on(&thread, "when?"))
                .await
                .unwrap()
                .run;
            let expected = match mode {
                Persistence::PerRun => vec![
                    "load 7 all".to_owned(),
                    format!("append 7 [u a(c1) t(c1) a(c2) t(c2) a] {run}.0"),
                ],
                Persistence::PerCall => vec![
                    "load 7 all".to_owned(),
                    format!("append 7 [u a(c1)] {run}.0"),
                    format!("append 7 [t(c1) a(c2)] {run}.2"),
                    format!("append 7 [t(c2) a] {run}.4"),
                ],
            };
            assert_eq!(shelf.log(), expected);
            how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
            let whole = "u a(c1) t(c1) a(c2) t(c2) a u a";
            assert_eq!(shelf.under("7"), whole);
            assert_eq!(process.history(thread.id()).await, whole);
        }
    });
    // A later failure leaves what was appended, and the next run goes on from it.
    everywhere(async |stage, how| {
        for mode in MODES {
            let process = stage.process().await;
            let shelf = Shelf::new(Shelving::Plain);
            let client = Arc::new(ScriptedClient::new([
                call("c1"),
                Step::fails(ErrorKind::Unavailable),
                Step::text("yes"),
            ]));
            let agent = shelved(&process, &client, &shelf)
                .persistence(mode)
                .build()
                .unwrap();
            let thread = on_the_shelf(&agent).await;
            how.finish(agent.run_on(&thread, "when?"))
                .await
                .unwrap_err();
            let (left, then) = match mode {
                Persistence::PerRun => ("", "u a"),
                Persistence::PerCall => ("u a(c1)", "u a(c1) t(c1) u a"),
            };
            assert_eq!(shelf.under("7"), left);
            assert_eq!(process.history(thread.id()).await, left);
            how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
            assert_eq!(shelf.under("7"), then);
            assert_eq!(process.history(thread.id()).await, then);
            let shown = short(&client.last_asked().unwrap().messages);
            assert_eq!(format!("{shown} a"), then);
        }
    });
}

/// Where a process dies around the append that follows the first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// The step is committed, the append was not made.
    BeforeAppend,
    /// The append was made, and nothing else since.
    AfterAppend,
}

/// What is done about the run that the dead process left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Resume,
    Input,
    Discard,
}

#[test]
fn b237_after_a_crash_each_message_is_appended_once_whatever_comes_next() {
    for shelving in [Shelving::Plain, Shelving::Moving] {
        for death in [Death::BeforeAppend, Death::AfterAppend] {
            for then in [Then::Resume, Then::Input, Then::Discard] {
                everywhere(async |stage, how| {
                    let name =
                        format!("{shelving:?} {death:?} {then:?} {:?} {how:?}", stage.engine);
                    let first = stage.process().await;
                    let shelf = Shelf::new(shelving);
                    let client = Arc::new(ScriptedClient::new([Step::text("hello"), call("c1")]));
                    let agent = shelved(&first, &client, &shelf)
                        .persistence(Persistence::PerCall)
                        .build()
                        .unwrap();
                    let thread = on_the_shelf(&agent).await;
                    let id = thread.id().clone();
                    how.finish(agent.run_on(&thread, "hi")).await.unwrap();
                    match death {
                        Death::BeforeAppend => first.die_in("step", Fault::HangAfter),
                        Death::AfterAppend => first.die_in("intend", Fault::HangBefore),
                    }
                    let run = agent.run_on(&thread, "when?");
                    tokio::spawn(async move { how.finish(run).await });
                    first.died().await;

                    let second = stage.process().await;
                    let client = Arc::new(ScriptedClient::answering(|_| Step::text("so")));
                    let agent = shelved(&second, &client, &shelf)
                        .persistence(Persistence::PerCall)
                        .build()
                        .unwrap();
                    let thread = agent.open(id.clone()).await.unwrap();
                    let whole = match then {
                        Then::Resume => {
                            how.finish(agent.resume(&thread)).await.unwrap();
                            "u a u a(c1) t(c1) a"
                        }
                        Then::Input => {
                            how.finish(agent.run_on(&thread, "well?")).await.unwrap();
                            "u a u a(c1) t(c1) a u a"
                        }
                        Then::Discard => {
                            thread.discard().await.unwrap();
                            how.finish(agent.run_on(&thread, "well?")).await.unwrap();
                            "u a u a(c1) u a"
                        }
                    };
                    let key = carried(&thread).unwrap_or_else(|| "7".to_owned());
                    assert_eq!(shelf.under(&key), whole, "{name}");
                    assert_eq!(second.history(&id).await, whole, "{name}");
                    // A call without a result is answered where the prompt is rendered.
                    let shown = short(&client.last_asked().unwrap().messages);
                    assert_eq!(format!("{shown} a"), whole, "{name}");
                });
            }
        }
    }
}

#[test]
fn b237_a_cancelled_run_that_dies_between_append_and_publication_appends_the_same_again() {
    for mode in MODES {
        everywhere(async |stage, how| {
            let first = stage.process().await;
            let shelf = Shelf::new(Shelving::Plain);
            let client = Arc::new(ScriptedClient::new([call("c1"), Step::hang_after("at f")]));
            let agent = shelved(&first, &client, &shelf)
                .persistence(mode)
                .build()
                .unwrap();
            let thread = on_the_shelf(&agent).await;
            let id = thread.id().clone();
            first.die_in("publish", Fault::HangBefore);
            let token = CancellationToken::new();
            let run = agent.run_on(&thread, "when?").cancelled_by(token.clone());
            tokio::spawn(async move { how.finish(run).await });
            client.begun(2).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            token.cancel();
            first.died().await;
            let appended = shelf.under("7");

            let second = stage.process().await;
            let client = Arc::new(ScriptedClient::answering(|_| Step::text("so")));
            let agent = shelved(&second, &client, &shelf)
                .persistence(mode)
                .build()
                .unwrap();
            let thread = agent.open(id.clone()).await.unwrap();
            let outcome = how.finish(agent.resume(&thread)).await.unwrap();
            assert_eq!(outcome.stop, StopReason::Cancelled);
            assert_eq!(client.calls(), 0);
            assert_eq!(shelf.under("7"), appended);
            assert_eq!(second.history(&id).await, appended);
        });
    }
}

#[test]
fn b237_a_withdrawn_run_that_dies_between_append_and_publication_appends_the_same_again() {
    for mode in MODES {
        everywhere(async |stage, how| {
            let first = stage.process().await;
            let shelf = Shelf::new(Shelving::Plain);
            let asking = || Fake::named("pay").with(|spec| spec.approval = Approval::Always);
            let pay = Step::calls([("c1", "pay", "{}")]);
            let client = Arc::new(ScriptedClient::new([pay]));
            let agent = shelved(&first, &client, &shelf)
                .tool(asking())
                .persistence(mode)
                .build()
                .unwrap();
            let thread = on_the_shelf(&agent).await;
            let id = thread.id().clone();
            let parked = how.finish(agent.run_on(&thread, "pay")).await.unwrap();
            assert_eq!(parked.stop, StopReason::Parked);
            first.die_in("publish", Fault::HangBefore);
            let run = agent.run_on(&thread, "never mind");
            tokio::spawn(async move { how.finish(run).await });
            first.died().await;
            let appended = shelf.under("7");

            // An answer that comes now is too late: the application has the call as withdrawn.
            let second = stage.process().await;
            let client = Arc::new(ScriptedClient::answering(|_| Step::text("so")));
            let tool = asking();
            let agent = shelved(&second, &client, &shelf)
                .tool(tool.clone())
                .persistence(mode)
                .build()
                .unwrap();
            let thread = agent.open(id.clone()).await.unwrap();
            let resumed = agent.resume(&thread).approve(&parked.pending[0]);
            let _ = how.finish(resumed).await;
            assert_eq!(tool.runs(), 0);
            assert_eq!(client.calls(), 0);
            assert_eq!(shelf.under("7"), appended);
            how.finish(agent.run_on(&thread, "well?")).await.unwrap();
            assert_eq!(shelf.under("7"), second.history(&id).await);
        });
    }
}

/// A tool whose results are long.
fn long() -> Fake {
    Fake::doing("tide", |_, _| async {
        let lines = (0..120).map(|line| format!("tides/table_{line}.py: low at {line}"));
        Ok(ToolOutput::text(lines.collect::<Vec<_>>().join("\n")))
    })
}

/// An agent that compacts tool history of more than a number of tokens.
fn compacting(
    process: &Process,
    client: &Arc<ScriptedClient>,
    shelf: &Shelf,
    threshold: u64,
) -> Agent {
    let policy = Policy {
        threshold,
        recent_calls: 1,
        ..Policy::default()
    };
    Agent::builder(Arc::clone(client))
        .store(&process.store)
        .message_store("shelf", shelf.clone())
        .tool(long())
        .compaction(policy)
        .build()
        .unwrap()
}

#[test]
fn b238_a_thread_in_the_applications_store_is_shown_compacted() {
    everywhere(async |stage, how| {
        for shelving in [Shelving::Plain, Shelving::Moving] {
            let process = stage.process().await;
            let shelf = Shelf::new(shelving);
            let mut shown = Vec::new();
            for is_external in [true, false] {
                let rounds =
                    (0..6).flat_map(|turn| [call(&format!("c{turn}")), Step::text("noted")]);
                let abilities = Abilities {
                    window: Some(50_000),
                    ..Abilities::of("scripted")
                };
                let client = Arc::new(ScriptedClient::new(rounds).with_abilities(abilities));
                let agent = compacting(&process, &client, &shelf, 2_500);
                let mut thread = match is_external {
                    true => on_the_shelf(&agent).await,
                    false => agent.new_thread(),
                };
                let id = thread.id().clone();
                for turn in 0..6 {
                    // As another process would: a handle remembers what was billed.
                    if turn > 0 {
                        thread = agent.open(id.clone()).await.unwrap();
                    }
                    let outcome = how.finish(agent.run_on(&thread, "and now?")).await.unwrap();
                    let report = outcome.compaction.unwrap_or_default();
                    assert!(turn < 4 || report.epoch > 0, "turn {turn}");
                }
                if is_external {
                    let key = carried(&thread).unwrap_or_else(|| "7".to_owned());
                    let kept = shelf.messages(&key);
                    let bytes = |messages: &[Message]| -> usize {
                        messages.iter().map(|one| one.to_json().len()).sum()
                    };
                    let last = client.last_asked().unwrap().messages;
                    assert!(bytes(&last) * 2 < bytes(&kept), "models are shown less");
                    // The application's copy, and our record, have everything.
                    assert_eq!(short(&kept), process.history(thread.id()).await);
                    assert_eq!(kept.iter().filter(|one| one.role == Role::Tool).count(), 6);
                    // The budget of the model was named.
                    assert!(shelf.log().iter().any(|line| line.ends_with(" 50000")));
                }
                let asked = client.asked().into_iter();
                let texts = asked.map(|asked| {
                    let contents = asked.messages.into_iter().map(|one| one.contents);
                    contents.collect::<Vec<_>>()
                });
                shown.push(texts.collect::<Vec<_>>());
            }
            // Call for call what a thread of our own store is shown, epochs included.
            assert!(
                shown[0] == shown[1],
                "other views than those of a local thread"
            );
        }
    });
    // A history that the application changed is compacted as it is now.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Reducing);
        let rounds = (0..4).flat_map(|turn| [call(&format!("c{turn}")), Step::text("noted")]);
        let client = Arc::new(ScriptedClient::new(rounds));
        let agent = compacting(&process, &client, &shelf, 200);
        let thread = on_the_shelf(&agent).await;
        for _ in 0..4 {
            how.finish(agent.run_on(&thread, "and now?")).await.unwrap();
        }
        // One turn, its calls in short once there are two; a digest of an earlier turn never comes back.
        let asked = client.asked().into_iter();
        let asked: Vec<String> = asked.map(|asked| short(&asked.messages)).collect();
        assert_eq!(asked[..2], ["u", "u a(c0) t(c0)"]);
        for turn in 1..4 {
            let before = format!("u a(c{0}) t(c{0}) a u", turn - 1);
            let after = format!("u u a u a(c{turn}) t(c{turn})");
            assert_eq!(asked[turn * 2..][..2], [before, after]);
        }
    });
}

#[test]
fn b238_a_compaction_of_the_applications_history_is_undone_on_request() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Plain);
        let rounds = (0..4).flat_map(|turn| [call(&format!("c{turn}")), Step::text("noted")]);
        let client = Arc::new(ScriptedClient::new(rounds.chain([Step::text("all")])));
        let agent = compacting(&process, &client, &shelf, 2_500);
        let thread = on_the_shelf(&agent).await;
        assert!(!thread.uncompact().await.unwrap(), "nothing is compacted");
        for _ in 0..4 {
            how.finish(agent.run_on(&thread, "and now?")).await.unwrap();
        }
        let digests = |messages: &[Message]| {
            let texts = messages.iter().map(Message::text);
            texts
                .filter(|text| text.starts_with("Earlier tool history"))
                .count()
        };
        assert!(digests(&client.last_asked().unwrap().messages) > 0);
        assert!(thread.uncompact().await.unwrap());
        assert!(!thread.uncompact().await.unwrap(), "it is undone");
        how.finish(agent.run_on(&thread, "and all?")).await.unwrap();
        let shown = client.last_asked().unwrap().messages;
        assert_eq!(digests(&shown), 0);
        assert_eq!(format!("{} a", short(&shown)), shelf.under("7"));
    });
}

#[test]
fn b239_an_agent_chooses_who_owns_its_new_threads() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Plain);
        let client = Arc::new(ScriptedClient::answering(|_| Step::text("yes")));
        let case = |id: &throughline::store::ThreadId| {
            RawJson::object(|key| {
                key.str("case", id.as_str());
            })
        };
        let agent = shelved(&process, &client, &shelf)
            .new_threads_owned_by(move |id| Owner::External {
                store: "shelf".to_owned(),
                key: case(id),
            })
            .build()
            .unwrap();
        let (one, two) = (agent.new_thread(), agent.new_thread());
        for thread in [&one, &two] {
            assert_eq!(thread.owner().kind(), "external");
            how.finish(agent.run_on(thread, "hi")).await.unwrap();
            assert_eq!(shelf.under(case(thread.id()).get()), "u a");
            let opened = agent.open(thread.id().clone()).await.unwrap();
            assert_eq!(opened.owner(), thread.owner());
        }
        let east = service("east", Ids::PerCall, [Step::text("yes")]);
        let agent = Agent::builder(Arc::clone(&east))
            .store(&process.store)
            .new_threads_owned_by(|_| Owner::service("east"))
            .build()
            .unwrap();
        let outcome = how.finish(agent.run("hi")).await.unwrap();
        let opened = agent.open(outcome.thread).await.unwrap();
        assert_eq!(opened.owner(), Owner::service("east"));
        assert_eq!(ids(&opened), ["east resp_held_1"]);
    });
}

#[test]
fn b240_several_services_take_turns_and_each_is_sent_what_it_has_not_seen_once() {
    everywhere(async |stage, how| {
        for mode in MODES {
            let process = stage.process().await;
            let east = service(
                "east",
                Ids::PerCall,
                [call("e1"), Step::text("from the east"), Step::text("again")],
            );
            let west = service(
                "west",
                Ids::Stable,
                [
                    call("w1"),
                    Step::text("from the west"),
                    Step::text("once more"),
                ],
            );
            let [eastern, western] = [&east, &west].map(|service| {
                Agent::builder(Arc::clone(service))
                    .store(&process.store)
                    .persistence(mode)
                    .tool(Fake::named("tide"))
                    .build()
                    .unwrap()
            });
            let thread = eastern.new_thread();
            thread.set_owner(Owner::service("east")).await.unwrap();
            how.finish(eastern.run_on(&thread, "one")).await.unwrap();
            // Adding a service is explicit.
            let refused = how
                .finish(western.run_on(&thread, "two"))
                .await
                .unwrap_err();
            let text = refused.to_string();
            assert!(matches!(refused.source, RunError::KeptElsewhere { .. }));
            assert!(
                text.contains("add_service") && text.contains("hand_over"),
                "{text}"
            );
            assert_eq!(west.script().calls(), 0);
            assert!(thread.add_service("west").await.unwrap());
            for (agent, input) in [(&western, "two"), (&eastern, "three"), (&western, "four")] {
                how.finish(agent.run_on(&thread, input)).await.unwrap();
            }
            assert_eq!(
                sent(east.script()),
                [
                    "[u] new",
                    "[t(e1)] of resp_held_1",
                    "[u a(w1) t(w1) a u] of resp_held_2",
                ]
            );
            assert_eq!(
                sent(west.script()),
                [
                    "[u a(e1) t(e1) a u] new",
                    "[t(w1)] of conv_held_1",
                    "[u a u] of conv_held_1",
                ]
            );
            assert_eq!(ids(&thread), ["east resp_held_3", "west conv_held_1"]);
            let history = process.history(thread.id()).await;
            assert_eq!(history, "u a(e1) t(e1) a u a(w1) t(w1) a u a u a");
            assert_eq!(short(&west.held("conv_held_1")), history);
            let opened = process.threads().open(thread.id().clone()).await.unwrap();
            assert_eq!(opened.owner(), thread.owner());
        }
    });
    // Two sub-agents of one service have a conversation each.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = service(
            "east",
            Ids::Stable,
            [
                Step::text("a plan"),
                Step::text("a draft"),
                Step::text("a better plan"),
            ],
        );
        let [planner, writer] = ["planner", "writer"].map(|name| {
            Agent::builder(Arc::clone(&east))
                .store(&process.store)
                .sub_agent(name)
                .build()
                .unwrap()
        });
        let thread = planner.new_thread();
        thread.set_owner(Owner::service("east")).await.unwrap();
        for agent in [&planner, &writer, &planner] {
            how.finish(agent.run_on(&thread, "go on")).await.unwrap();
        }
        assert_eq!(
            sent(east.script()),
            ["[u] new", "[u a u] new", "[u a u] of conv_held_1"]
        );
        assert_eq!(short(&east.held("conv_held_1")), "u a u a u a");
    });
    // A run that one service began is finished by another one of the thread.
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let east = service("east", Ids::PerCall, [call("e1")]);
        let agent = Agent::builder(Arc::clone(&east))
            .store(&first.store)
            .tool(Fake::named("tide"))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        thread.set_owner(Owner::service("east")).await.unwrap();
        thread.add_service("west").await.unwrap();
        first.die_in("intend", Fault::HangBefore);
        let run = agent.run_on(&thread, "one");
        tokio::spawn(async move { how.finish(run).await });
        first.died().await;

        let second = stage.process().await;
        let west = service("west", Ids::PerCall, [Step::text("done")]);
        let agent = Agent::builder(Arc::clone(&west))
            .store(&second.store)
            .tool(Fake::named("tide"))
            .build()
            .unwrap();
        let thread = agent.open(id.clone()).await.unwrap();
        how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(sent(west.script()), ["[u a(e1) t(e1)] new"]);
        assert_eq!(ids(&thread), ["east resp_held_1", "west resp_held_1"]);
        // Back at the first one: it has the question and its call.
        east.script().push(Step::text("so"));
        let agent = Agent::builder(Arc::clone(&east))
            .store(&second.store)
            .build()
            .unwrap();
        how.finish(agent.run_on(&thread, "two")).await.unwrap();
        assert_eq!(
            sent(east.script()).last().unwrap(),
            "[t(e1) a u] of resp_held_1"
        );
    });
}

#[test]
fn b241_a_thread_is_handed_over_with_what_its_service_has_more() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = service(
            "east",
            Ids::Stable,
            [Step::text("at four"), Step::text("back")],
        );
        let eastern = Agent::builder(Arc::clone(&east))
            .store(&process.store)
            .build()
            .unwrap();
        let thread = eastern.new_thread();
        thread.set_owner(Owner::service("east")).await.unwrap();
        how.finish(eastern.run_on(&thread, "when?")).await.unwrap();
        // Someone spoke to the service without us.
        let mut held = east.held("conv_held_1");
        held.push(Message::user("by phone"));
        held.push(Message::assistant("noted"));
        east.put("conv_held_1", held);

        let clients = ServiceClients::new().with(Arc::clone(&east));
        let moved = clients.hand_over(&thread, Owner::Local).await.unwrap();
        assert_eq!(moved.from, Owner::service("east"));
        assert_eq!(moved.read_back[0].outcome, ReadBackOutcome::Added(2));
        assert_eq!(process.history(thread.id()).await, "u a u a");

        let client = Arc::new(ScriptedClient::new([Step::text("sure")]));
        let other = Agent::builder(Arc::clone(&client))
            .store(&process.store)
            .build()
            .unwrap();
        how.finish(other.run_on(&thread, "sure?")).await.unwrap();
        assert_eq!(sent(&client), ["[u a u a u] ours"]);
        // The id stays, as that of a vendor's copy.
        assert_eq!(ids(&thread), ["east conv_held_1"]);

        // And back: the service is sent what it has not seen.
        clients
            .hand_over(&thread, Owner::service("east"))
            .await
            .unwrap();
        how.finish(eastern.run_on(&thread, "well?")).await.unwrap();
        assert_eq!(sent(east.script())[1], "[u a u] of conv_held_1");
        assert_eq!(
            short(&east.held("conv_held_1")),
            process.history(thread.id()).await
        );
    });
    // Without a client, with another conversation there, and with none: the record is the history.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = service("east", Ids::Stable, [Step::text("at four")]);
        let agent = Agent::builder(Arc::clone(&east))
            .store(&process.store)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let back = || async {
            thread.set_owner(Owner::service("east")).await.unwrap();
        };
        back().await;
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        let clients = ServiceClients::new().with(Arc::clone(&east));
        let none = ServiceClients::new();
        let held = east.held("conv_held_1");
        for (clients, there, outcome) in [
            (&clients, Some(held.clone()), ReadBackOutcome::Same),
            (&none, Some(held), ReadBackOutcome::NotAsked),
            (
                &clients,
                Some(vec![Message::user("who?")]),
                ReadBackOutcome::Differs,
            ),
            (&clients, None, ReadBackOutcome::Absent),
        ] {
            match there {
                Some(there) => east.put("conv_held_1", there),
                None => east.forget("conv_held_1"),
            }
            let moved = clients.hand_over(&thread, Owner::Local).await.unwrap();
            assert_eq!(moved.read_back[0].outcome, outcome);
            assert_eq!(process.history(thread.id()).await, "u a");
            back().await;
        }
    });
    // A run that is unsettled keeps its owner.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = service("east", Ids::Stable, [call("c1")]);
        let asks = Fake::named("tide").with(|spec| spec.approval = Approval::Always);
        let agent = Agent::builder(Arc::clone(&east))
            .store(&process.store)
            .tool(asks)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        thread.set_owner(Owner::service("east")).await.unwrap();
        let parked = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(parked.stop, StopReason::Parked);
        let refused = ServiceClients::new().hand_over(&thread, Owner::Local).await;
        assert!(matches!(
            refused.unwrap_err(),
            HandOverError::Owner(OwnerError::Unsettled { .. })
        ));
        assert_eq!(thread.owner(), Owner::service("east"));
    });
}

#[test]
fn b241_a_policy_hands_a_thread_over_when_another_upstream_is_asked() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = service("east", Ids::PerCall, [Step::text("at four")]);
        let agent = Agent::builder(Arc::clone(&east))
            .store(&process.store)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        thread.set_owner(Owner::service("east")).await.unwrap();
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        let policy = HistoryPolicy {
            on_other_upstream: OnOtherUpstream::HandOver,
            ..HistoryPolicy::default()
        };
        let never = Arc::new(ScriptedClient::new([Step::text("sure")]));
        let agent = Agent::builder(Arc::clone(&never))
            .store(&process.store)
            .history(policy)
            .build()
            .unwrap();
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        assert_eq!(sent(&never), ["[u a u] ours"]);
        assert_eq!(thread.owner(), Owner::Local);
        assert_eq!(ids(&thread), ["east resp_held_1"]);
    });
}

#[test]
fn b242_every_vendor_copy_of_a_thread_is_named_and_deleted_on_request() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = service(
            "east",
            Ids::PerCall,
            [
                call("c1"),
                Step::text("at four"),
                Step::text("yes"),
                Step::text("no"),
            ],
        );
        let agent = Agent::builder(Arc::clone(&east))
            .store(&process.store)
            .tool(Fake::named("tide"))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        thread.set_owner(Owner::service("east")).await.unwrap();
        let first = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        let threads = process.threads();
        let copies = |copies: Vec<throughline::thread::VendorCopy>| -> Vec<String> {
            let copies = copies.into_iter();
            copies
                .map(|copy| format!("{} {} {}", copy.upstream, copy.id, copy.outcome.as_str()))
                .collect()
        };
        let listed = threads.vendor_copies(thread.id()).await.unwrap();
        assert_eq!(
            copies(listed),
            [
                "east resp_held_1 remains",
                "east resp_held_2 remains",
                "east resp_held_3 remains"
            ]
        );
        // A fork brings an id of the thread that it comes from.
        let fork = throughline::store::ThreadId::new(&format!("{}-fork", thread.id())).unwrap();
        let fork = throughline::store::NewThread::new(fork);
        let fork = threads.fork(first.run, fork).await.unwrap();
        fork.set_owner(Owner::service("east")).await.unwrap();
        how.finish(agent.run_on(&fork, "so?")).await.unwrap();
        let clients = ServiceClients::new().with(Arc::clone(&east));
        let deleted = clients.delete(&threads, fork.id()).await.unwrap();
        assert_eq!(copies(deleted.vendor_copies), ["east resp_held_4 deleted"]);
        assert_eq!(east.deleted(), ["resp_held_4"]);

        east.forget("resp_held_1");
        let deleted = clients.delete(&threads, thread.id()).await.unwrap();
        assert!(deleted.is_deleted);
        assert_eq!(
            copies(deleted.vendor_copies),
            [
                "east resp_held_1 absent",
                "east resp_held_2 deleted",
                "east resp_held_3 deleted"
            ]
        );
        assert!(east.ids().is_empty());
        assert!(threads.open(thread.id().clone()).await.is_err());
    });
    // Without a client of the service, the outcome of the copy is `unsupported`.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let east = service("east", Ids::PerCall, [Step::text("at four")]);
        let agent = Agent::builder(Arc::clone(&east))
            .store(&process.store)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        thread.set_owner(Owner::service("east")).await.unwrap();
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        let threads = process.threads();
        let deleted = ServiceClients::new().delete(&threads, thread.id()).await;
        let copy = &deleted.unwrap().vendor_copies[0];
        assert_eq!(copy.outcome, CopyOutcome::Unsupported);
    });
}

/// How a call is cut off in the middle of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Cancelled,
    OutOfTime,
}

#[test]
fn b243_with_parity_a_cut_call_leaves_what_a_storing_service_would_keep() {
    for (first_call, history, unsent, then) in [
        (true, "", "", "u a"),
        (false, "u a(c1)", "t(c1)", "u a(c1) t(c1) u a"),
    ] {
        for mode in MODES {
            for cut in [Cut::Cancelled, Cut::OutOfTime] {
                everywhere(async |stage, how| {
                    if cut == Cut::OutOfTime && (first_call || how == How::Whole) {
                        // The time limit of a model call passes in real time; four cases are enough.
                        return;
                    }
                    let name = format!("{first_call} {mode:?} {cut:?} {:?} {how:?}", stage.engine);
                    let process = stage.process().await;
                    let policy = HistoryPolicy {
                        parity: Parity::Service,
                        persistence: mode,
                        ..HistoryPolicy::default()
                    };
                    let steps = || {
                        let first = (!first_call).then(|| call("c1"));
                        first.into_iter().chain([Step::hang_after("at f")])
                    };
                    let theirs = service("scripted", Ids::PerCall, steps());
                    let ours = Arc::new(ScriptedClient::new(steps()));
                    let build = |builder: AgentBuilder| {
                        let limits = Limits {
                            time: (cut == Cut::OutOfTime).then_some(Duration::from_millis(700)),
                            ..Limits::default()
                        };
                        let builder = builder.store(&process.store).tool(Fake::named("tide"));
                        builder.history(policy).limits(limits).build().unwrap()
                    };
                    let there = build(Agent::builder(Arc::clone(&theirs)));
                    let here = build(Agent::builder(Arc::clone(&ours)));
                    let kept_there = there.new_thread();
                    kept_there
                        .set_owner(Owner::service("scripted"))
                        .await
                        .unwrap();
                    let kept_here = here.new_thread();
                    let calls = if first_call { 1 } else { 2 };
                    for (agent, thread, script) in [
                        (&there, &kept_there, theirs.script()),
                        (&here, &kept_here, &*ours),
                    ] {
                        let token = CancellationToken::new();
                        let run = agent.run_on(thread, "when?").cancelled_by(token.clone());
                        let running = tokio::spawn(async move { how.finish(run).await });
                        if cut == Cut::Cancelled {
                            script.begun(calls).await;
                            tokio::time::sleep(Duration::from_millis(5)).await;
                            token.cancel();
                        }
                        let outcome = running.await.unwrap().unwrap();
                        assert_eq!(
                            outcome.stop,
                            match cut {
                                Cut::Cancelled => StopReason::Cancelled,
                                Cut::OutOfTime => StopReason::Budget,
                            },
                            "{name}"
                        );
                        // The caller still gets what came.
                        assert_eq!(outcome.cut_off[0].text(), "at f", "{name}");
                        let stored = snapshot(&process, thread.id()).await;
                        assert_eq!(
                            (&*stored.history, &*stored.unsent),
                            (history, unsent),
                            "{name}"
                        );
                    }
                    let id = kept_there.service_ids().first().map(|one| one.id.clone());
                    let held = id.map(|id| short(&theirs.held(&id))).unwrap_or_default();
                    assert_eq!(held, history, "{name}");
                    theirs.script().push(Step::text("yes"));
                    ours.push(Step::text("yes"));
                    for (agent, thread) in [(&there, &kept_there), (&here, &kept_here)] {
                        let run = agent.run_on(thread, "well?");
                        how.finish(run).await.unwrap();
                        assert_eq!(process.history(thread.id()).await, then, "{name}");
                    }
                    let held = theirs.held(&kept_there.service_ids()[0].id);
                    assert_eq!(short(&held), then, "{name}");
                });
            }
        }
    }
}

#[test]
fn b243_a_queued_message_outlives_the_call_that_was_cut() {
    for mode in MODES {
        everywhere(async |stage, how| {
            let process = stage.process().await;
            let policy = HistoryPolicy {
                parity: Parity::Service,
                persistence: mode,
                ..HistoryPolicy::default()
            };
            let theirs = service("scripted", Ids::PerCall, [Step::hang_after("at f")]);
            let ours = Arc::new(ScriptedClient::new([Step::hang_after("at f")]));
            let there = Agent::builder(Arc::clone(&theirs)).store(&process.store);
            let here = Agent::builder(Arc::clone(&ours)).store(&process.store);
            for (agent, owner, script) in [
                (there, Owner::service("scripted"), theirs.script()),
                (here, Owner::Local, &*ours),
            ] {
                let agent = agent.history(policy).build().unwrap();
                let thread = agent.new_thread();
                thread.set_owner(owner).await.unwrap();
                let left = thread.mailbox().leave(Message::user("by phone")).await;
                left.unwrap();
                let token = CancellationToken::new();
                let run = agent.run_on(&thread, "when?").cancelled_by(token.clone());
                let running = tokio::spawn(async move { how.finish(run).await });
                script.begun(1).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
                token.cancel();
                let outcome = running.await.unwrap().unwrap();
                assert_eq!(outcome.cut_off[0].text(), "at f");
                script.push(Step::text("yes"));
                how.finish(agent.run_on(&thread, "well?")).await.unwrap();
                let shown = script.last_asked().unwrap().messages;
                let texts: Vec<String> = shown.iter().map(Message::text).collect();
                assert_eq!(texts, ["by phone", "when?", "well?"]);
                assert_eq!(process.history(thread.id()).await, "u u u a");
            }
        });
    }
}
