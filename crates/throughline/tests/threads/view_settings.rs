//! Undone compactions, and pinned messages.

use std::sync::Arc;

use throughline::agent::Compaction;
use throughline::compact::Policy;
use throughline::model::Message;
use throughline::store::{At, NewThread, ThreadId};
use throughline::thread::Persistence;
use throughline::{Agent, Outcome, Thread};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{How, Process, everywhere};

use crate::threads::compaction::{digests, long, model, reader};

fn agent(
    client: &Arc<ScriptedClient>,
    process: &Process,
    mode: Persistence,
    compaction: impl Into<Compaction>,
) -> Agent {
    Agent::builder(Arc::clone(client))
        .store(&process.store)
        .persistence(mode)
        .compaction(compaction)
        .tool(reader())
        .build()
        .unwrap()
}

fn texts<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<String> {
    let text = |one: &Message| format!("{:?} {:?}", one.role, one.contents);
    messages.into_iter().map(text).collect()
}

fn epoch(outcome: &Outcome) -> u64 {
    outcome.compaction.as_ref().map_or(0, |one| one.epoch)
}

/// One more turn without calls: what the model was sent, and the outcome.
async fn asks(
    agent: &Agent,
    client: &ScriptedClient,
    how: How,
    thread: &Thread,
) -> (Vec<Message>, Outcome) {
    client.push(Step::text("here").without_usage());
    let outcome = how.finish(agent.run_on(thread, "and now?")).await.unwrap();
    (client.last_asked().unwrap().messages, outcome)
}

#[test]
fn after_an_uncompact_the_next_prompt_is_the_raw_history() {
    everywhere(async |stage, how| {
        for mode in [Persistence::PerRun, Persistence::PerCall] {
            let first = stage.process().await;
            let client = Arc::new(model(12));
            let writer = agent(&client, &first, mode, Compaction::default());
            let thread = writer.new_thread();
            assert!(!thread.uncompact().await.unwrap(), "nothing is there");
            let made = how.finish(writer.run_on(&thread, "read them all"));
            let made = made.await.unwrap();
            assert!(epoch(&made) > 0);
            let (shown, _) = asks(&writer, &client, how, &thread).await;
            assert!(digests(&shown) > 0);
            let id = thread.id().clone();
            let before = texts(thread.history().iter().map(|one| &**one));
            assert!(thread.uncompact().await.unwrap());
            assert!(!thread.uncompact().await.unwrap(), "once is enough");
            drop(thread);

            // In another process, and on a fork of the same node.
            let second = stage.process().await;
            let other = agent(&client, &second, mode, Compaction::default());
            let new = NewThread::new(ThreadId::new(&format!("{id}-fork")).unwrap());
            let threads = second.threads();
            let fork = threads.fork(At::from(id.clone()), new).await.unwrap();
            let mut again = second.threads().open(At::from(id.clone())).await.unwrap();
            for thread in [&mut again, &fork] {
                let (shown, outcome) = asks(&other, &client, how, thread).await;
                assert_eq!(texts(&shown)[..before.len()], before);
                assert_eq!((shown.len(), epoch(&outcome)), (before.len() + 1, 0));
            }
            // It stays so in every process, until the history has grown.
            let third = stage.process().await;
            let later = agent(&client, &third, mode, Compaction::default());
            let thread = third.threads().open(At::from(id.clone())).await.unwrap();
            assert!(!thread.uncompact().await.unwrap(), "nothing is folded");
            let (shown, _) = asks(&later, &client, how, &thread).await;
            assert_eq!(digests(&shown), 0);
            let more = how.finish(later.run_on(&thread, "read on"));
            assert!(epoch(&more.await.unwrap()) > epoch(&made));
            let record = texts(thread.history().iter().map(|one| &**one));
            assert_eq!(record[..before.len()], before);
        }
    });
}

#[test]
fn a_budget_holds_after_an_uncompact() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = Arc::new(model(12));
        let policy = Policy::with_budget(12_000);
        let agent = agent(&client, &process, Persistence::PerRun, policy);
        let thread = agent.new_thread();
        let made = how.finish(agent.run_on(&thread, "read them all"));
        let made = epoch(&made.await.unwrap());
        assert!(thread.uncompact().await.unwrap());
        let (shown, outcome) = asks(&agent, &client, how, &thread).await;
        assert!(digests(&shown) > 0);
        assert!(epoch(&outcome) > made);
        // The new epoch is another one, and stays.
        let (again, outcome) = asks(&agent, &client, how, &thread).await;
        assert_eq!(again[..shown.len()], shown);
        assert_eq!(epoch(&outcome), made + 1);
    });
}

#[test]
fn what_is_pinned_is_never_folded() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let client = Arc::new(model(3));
        let writer = agent(&client, &first, Persistence::PerRun, Compaction::default());
        let thread = writer.new_thread();
        how.finish(writer.run_on(&thread, "read them all"))
            .await
            .unwrap();
        // The second call and its result: the message after the first round.
        assert!(!thread.pin(4_711).await.unwrap());
        assert!(thread.pin(5).await.unwrap());
        assert!(!thread.pin(5).await.unwrap(), "it is pinned");
        assert_eq!(thread.pinned(), [5]);
        let id = thread.id().clone();
        drop(thread);
        let has = |messages: &[Message], file: usize| {
            let whole = long(file);
            let mut results = messages.iter().flat_map(|one| &one.contents);
            results.any(|one| format!("{:?}", one.body).contains(&format!("{whole:?}")[1..200]))
        };
        let mut folded = 0;
        let mut process = stage.process().await;
        for turn in 0..8 {
            let agent = agent(
                &client,
                &process,
                Persistence::PerRun,
                Compaction::default(),
            );
            let thread = process.threads().open(At::from(id.clone())).await.unwrap();
            assert_eq!(thread.pinned(), [5]);
            let outcome = how.finish(agent.run_on(&thread, "read on"));
            folded = epoch(&outcome.await.unwrap());
            let shown = client.last_asked().unwrap().messages;
            assert!(has(&shown, 1), "turn {turn}");
            assert_eq!(has(&shown, 0), folded == 0, "turn {turn}");
            if turn % 3 == 2 {
                process = stage.process().await;
            }
        }
        assert!(folded > 1);
        // A fork has the pin too; an unpinned message is compacted when the history has grown.
        let agent = agent(
            &client,
            &process,
            Persistence::PerRun,
            Compaction::default(),
        );
        let new = NewThread::new(ThreadId::new(&format!("{id}-fork")).unwrap());
        let threads = process.threads();
        let fork = threads.fork(At::from(id.clone()), new).await.unwrap();
        assert_eq!(fork.pinned(), [5]);
        let (shown, _) = asks(&agent, &client, how, &fork).await;
        assert!(has(&shown, 1));
        assert!(fork.unpin(5).await.unwrap());
        assert!(!fork.unpin(5).await.unwrap());
        assert!(fork.uncompact().await.unwrap());
        for _ in 0..4 {
            let run = agent.run_on(&fork, "read on");
            how.finish(run).await.unwrap();
        }
        assert!(!has(&client.last_asked().unwrap().messages, 1));
        let other = process.threads().open(At::from(id.clone())).await.unwrap();
        assert_eq!(other.pinned(), [5], "a fork's wishes are its own");
    });
}
