//! What is stored after each of three turns, and what that costs, as literals.

use std::sync::Arc;

use throughline::client::StoresHistory;
use throughline::model::Message;
use throughline::thread::{HistoryPolicy, OnServiceId, Owner};
use throughline::{Agent, Thread};
use throughline_testkit::scripted::{Ids, Step, StoringService};
use throughline_testkit::stage::{Engine, How, Process, Stage, everywhere};

use crate::threads::external::{Shelf, Shelving, carried, on_shelf};

/// Where the turns begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// On a thread that does not exist yet.
    New,
    /// On a thread with a turn, opened for these.
    Existing,
    /// As `Existing`, with the history in a message store of the application whose key changes.
    External,
}

/// The upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// It stores nothing.
    Local,
    /// It stores the conversation under a new id in each turn; unasked on a thread whose history
    /// the application stores.
    Service,
}

/// The state after a turn: history, the service's id, the key, version; and the reads and writes of
/// the turn, including opening the thread.
type Turn = (
    &'static str,
    &'static str,
    &'static str,
    u64,
    (usize, usize),
);

struct Sequence {
    begins: Begins,
    over: Over,
    turns: [Turn; 3],
}

#[rustfmt::skip]
const SEQUENCES: [Sequence; 6] = [
    Sequence { begins: Begins::New, over: Over::Local, turns: [
        ("u a",             "", "", 1, (0, 2)),
        ("u a u a",         "", "", 2, (1, 2)),
        ("u a u a u a",     "", "", 3, (1, 2)),
    ] },
    Sequence { begins: Begins::New, over: Over::Service, turns: [
        ("u a",             "resp_held_1", "", 1, (0, 3)),
        ("u a u a",         "resp_held_2", "", 2, (1, 3)),
        ("u a u a u a",     "resp_held_3", "", 3, (1, 3)),
    ] },
    Sequence { begins: Begins::Existing, over: Over::Local, turns: [
        ("u a u a",         "", "", 2, (1, 2)),
        ("u a u a u a",     "", "", 3, (1, 2)),
        ("u a u a u a u a", "", "", 4, (1, 2)),
    ] },
    Sequence { begins: Begins::Existing, over: Over::Service, turns: [
        ("u a u a",         "resp_held_2", "", 2, (1, 3)),
        ("u a u a u a",     "resp_held_3", "", 3, (1, 3)),
        ("u a u a u a u a", "resp_held_4", "", 4, (1, 3)),
    ] },
    // One more write: the answer is journaled before the application's store has it. A service that
    // stores answers anyway has one more each: the handle of the call.
    Sequence { begins: Begins::External, over: Over::Local, turns: [
        ("u a u a",         "", r#"{"revision":2}"#, 2, (1, 3)),
        ("u a u a u a",     "", r#"{"revision":3}"#, 3, (1, 3)),
        ("u a u a u a u a", "", r#"{"revision":4}"#, 4, (1, 3)),
    ] },
    Sequence { begins: Begins::External, over: Over::Service, turns: [
        ("u a u a",         "", r#"{"revision":2}"#, 2, (1, 4)),
        ("u a u a u a",     "", r#"{"revision":3}"#, 3, (1, 4)),
        ("u a u a u a u a", "", r#"{"revision":4}"#, 4, (1, 4)),
    ] },
];

struct Set {
    agent: Agent,
    shelf: Shelf,
}

fn set(process: &Process, sequence: &Sequence) -> Set {
    let steps = (0..4).map(|_| Step::text("yes"));
    let stores = match (sequence.over, sequence.begins) {
        (Over::Local, _) => StoresHistory::Never,
        (Over::Service, Begins::External) => StoresHistory::Always,
        (Over::Service, _) => StoresHistory::Optional,
    };
    let service = StoringService::new(Ids::PerCall, steps).storing(stores);
    let shelf = Shelf::new(Shelving::Moving);
    let agent = Agent::builder(Arc::new(service))
        .store(&process.store)
        .message_store("shelf", shelf.clone())
        .history(HistoryPolicy {
            on_service_id: OnServiceId::Warn,
            ..HistoryPolicy::default()
        })
        .build()
        .unwrap();
    Set { agent, shelf }
}

fn owner(sequence: &Sequence) -> Owner {
    match (sequence.begins, sequence.over) {
        (Begins::External, _) => on_shelf("7"),
        (_, Over::Local) => Owner::Local,
        (_, Over::Service) => Owner::service("scripted"),
    }
}

async fn follow(stage: &Stage, how: How, sequence: &Sequence) {
    let process = stage.process().await;
    let Set { agent, shelf } = set(&process, sequence);
    let mut thread = agent.new_thread();
    thread.set_owner(owner(sequence)).await.unwrap();
    let id = thread.id().clone();
    if sequence.begins != Begins::New {
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
    }
    process.counted.reset();
    if sequence.begins != Begins::New {
        thread = agent.open(id.clone()).await.unwrap();
    }
    for (number, turn) in sequence.turns.iter().enumerate() {
        let (history, service, key, version, (reads, writes)) = *turn;
        how.finish(agent.run_on(&thread, Message::user("more")))
            .await
            .unwrap();
        let counted = &process.counted;
        let cost = (counted.reads(), counted.writes());
        let name = format!(
            "{:?} {:?} turn {} {:?} {how:?}: {:?}",
            sequence.begins,
            sequence.over,
            number + 1,
            stage.engine,
            counted.log()
        );
        assert_eq!(cost, (reads, writes), "{name}");
        if how == How::Whole {
            assert_eq!(counted.flushes(), 0, "{name}");
        }
        // The handle of the run and a new handle agree.
        let opened = process.threads().open(id.clone()).await.unwrap();
        for thread in [&thread, &opened] {
            assert_eq!(
                found(thread),
                (service.to_owned(), key.to_owned()),
                "{name}"
            );
            assert_eq!(thread.owner(), owner(sequence), "{name}");
        }
        assert_eq!(process.history(&id).await, history, "{name}");
        let at = throughline::store::At::Thread(id.clone());
        let stored = process.store.open(&process.scope(), &at, 0).await.unwrap();
        assert_eq!(stored.thread.version.0, version, "{name}");
        if sequence.begins == Begins::External {
            assert_eq!(shelf.under(key), history, "{name}");
        }
        if (stage.engine, how) == (Engine::Memory, How::Whole) {
            println!(
                "table sequences {:?} over {:?}, turn {}: [{history}] id [{service}] key [{key}] v{version}, {reads} reads, {writes} writes, {} flushes",
                sequence.begins,
                sequence.over,
                number + 1,
                counted.flushes()
            );
        }
        counted.reset();
    }
}

/// The service's id and the key of a thread.
fn found(thread: &Thread) -> (String, String) {
    let ids = thread.service_ids();
    let id = ids.first().map(|one| one.id.clone()).unwrap_or_default();
    (id, carried(thread).unwrap_or_default())
}

#[test]
fn three_turns_store_what_the_sequences_say_and_cost_what_they_say() {
    for sequence in &SEQUENCES {
        everywhere(async |stage, how| follow(stage, how, sequence).await);
    }
}
