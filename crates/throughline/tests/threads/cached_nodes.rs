//! Continuing after a cached run: nothing is read, and no change by another process is missed.

use std::sync::Arc;

use throughline::agent::{RunError, RunFailed};
use throughline::model::Message;
use throughline::model::json::RawJson;
use throughline::store::{Authority, Error, Mode, NewThread, RunId, Tenant, ThreadPatch};
use throughline::thread::HistoryCache;
use throughline::{Agent, StopReason, Thread, Threads};
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, How, Process, everywhere, short};

use crate::threads::actions::{Client, built, client};

/// A host with a history cache, and its first turn.
struct Host {
    process: Process,
    views: HistoryCache,
    threads: Threads,
    agent: Agent,
    client: Client,
    first: RunId,
}

async fn host(process: Process, how: How) -> Host {
    let client = client((0..9).map(|no| Step::text(format!("{no}"))));
    let agent = built(&process, &client, &[], |builder| builder);
    let views = HistoryCache::new(1 << 20);
    let threads = Threads::of(&process.store).with_history_cache(views.clone());
    let thread = threads.make_free(NewThread::new(process.store.ids().thread()));
    let first = how.finish(agent.run_on(&thread, "first")).await;
    Host {
        views,
        first: first.unwrap().run,
        process,
        threads,
        agent,
        client,
    }
}

impl Host {
    /// Continues after a run from the cache.
    async fn after(&self, run: RunId) -> Thread {
        self.process.counted.reset();
        let thread = self.threads.after(run).await.unwrap();
        assert_eq!(self.process.counted.log(), [""; 0], "nothing is read");
        thread
    }

    async fn turn(&self, how: How, after: RunId) -> Result<throughline::Outcome, RunFailed> {
        let thread = self.after(after).await;
        how.finish(self.agent.run_on(&thread, "next")).await
    }

    fn asked(&self) -> Vec<Message> {
        self.client.last_asked().unwrap().messages
    }
}

#[test]
fn a_turn_after_a_cached_run_is_two_writes_and_no_read() {
    everywhere(async |stage, how| {
        let host = host(stage.process().await, how).await;
        let mut last = host.first;
        for turn in 1..4 {
            let outcome = host.turn(how, last).await.unwrap();
            let counted = &host.process.counted;
            assert_eq!((counted.reads(), counted.writes()), (0, 2));
            assert_eq!(outcome.stop, StopReason::Done);
            assert_eq!(host.asked().len(), 2 * turn + 1);
            last = outcome.run;
        }
        // A branch from the first run is no different, and every process sees the same.
        let branch = host.turn(how, host.first).await.unwrap();
        assert_eq!(short(&host.asked()), "u a u");
        let other = stage.process().await;
        for (run, messages) in [(last, 8), (branch.run, 4)] {
            let thread = other.threads().open_after(run).await.unwrap();
            assert_eq!(thread.history().len(), messages);
        }
    });
}

#[test]
fn a_long_message_list_is_moved_and_copied_only_if_another_handle_has_it() {
    everywhere(async |stage, how| {
        let host = host(stage.process().await, how).await;
        let mut thread = host.after(host.first).await;
        let long = "x".repeat(64 << 10);
        let run = how.finish(host.agent.run_on(&thread, long)).await;
        let mut last = run.unwrap().run;
        let mut older = None;
        for turn in 2..6 {
            drop(thread);
            thread = host.after(last).await;
            let list = Arc::as_ptr(&thread.snapshot());
            if turn == 4 {
                older = Some(thread.snapshot());
            }
            let run = how.finish(host.agent.run_on(&thread, "next")).await;
            last = run.unwrap().run;
            assert_eq!(thread.snapshot().len(), 2 * turn + 2);
            let is_same = Arc::as_ptr(&thread.snapshot()) == list;
            assert_eq!(is_same, turn != 4, "turn {turn}");
        }
        let older = older.map(|list| list.len());
        assert_eq!(older, Some(8), "what somebody has does not change");
    });
}

#[test]
fn a_thread_or_run_removed_by_another_process_is_not_found() {
    everywhere(async |stage, how| {
        for deletes in [true, false] {
            let host = host(stage.process().await, how).await;
            let second = host.turn(how, host.first).await.unwrap();
            let other = stage.process().await;
            match deletes {
                true => other.threads().delete(&second.thread).await.map(drop),
                false => other.store.hide(&other.scope(), second.run).await,
            }
            .unwrap();
            let thread = host.after(second.run).await;
            let gone = thread.refresh().await;
            assert!(matches!(gone, Err(Error::NotFound { .. })));
            drop(thread);
            let asked = host.client.calls();
            let failed = host.turn(how, second.run).await.unwrap_err();
            assert!(
                matches!(failed.source, RunError::Store(Error::NotFound { .. })),
                "{}",
                failed.source
            );
            assert_eq!(host.client.calls(), asked, "no model was asked");
            // Hiding a run keeps the rest of the thread.
            assert_eq!(host.turn(how, host.first).await.is_ok(), !deletes);
        }
    });
}

#[test]
fn changes_by_another_process_are_seen() {
    everywhere(async |stage, how| {
        let host = host(stage.process().await, how).await;
        let other = stage.process().await;
        let elsewhere = other.threads().open_after(host.first).await.unwrap();
        // A changed thread is read again, once, and the run uses its new settings.
        let per_call = RawJson::new(r#"{"v":1,"persistence":"per_call"}"#).unwrap();
        let patch = ThreadPatch {
            settings: Some(Some(per_call)),
            ..ThreadPatch::default()
        };
        let (scope, id) = (other.scope(), elsewhere.id());
        other.store.patch(&scope, id, &patch).await.unwrap();
        let second = host.turn(how, host.first).await.unwrap();
        assert_eq!(
            host.process.counted.reads(),
            1,
            "the thread with its messages"
        );
        assert_eq!(short(&host.asked()), "u a u");
        let run = other.store.run(&scope, second.run).await.unwrap();
        assert_eq!(run.mode, Mode::PerCall);
        // And back: no trace of the change is left in the cache.
        let patch = ThreadPatch {
            settings: Some(None),
            ..ThreadPatch::default()
        };
        other.store.patch(&scope, id, &patch).await.unwrap();
        let again = host.turn(how, second.run).await.unwrap();
        let run = other.store.run(&scope, again.run).await.unwrap();
        assert_eq!(run.mode, Mode::PerRun);
        // A handle sees the change with the next run.
        let elsewhere = other.threads().open_after(host.first).await.unwrap();
        assert!(elsewhere.pin(1).await.unwrap());
        let thread = host.after(second.run).await;
        assert_eq!(thread.pinned(), [0; 0], "as it is remembered");
        let third = how.finish(host.agent.run_on(&thread, "next")).await;
        assert_eq!(thread.pinned(), [1]);
        drop(thread);
        let thread = host.after(third.unwrap().run).await;
        assert_eq!(thread.pinned(), [1], "what was read is remembered");
        drop(thread);
        let second = host.turn(how, second.run).await.unwrap();
        assert_eq!(
            host.process.counted.reads(),
            1,
            "of what was before the pin"
        );
        let second = host.turn(how, second.run).await.unwrap();
        assert_eq!(host.process.counted.reads(), 0);
        // A queued message is delivered with the next turn.
        let letter = other.threads().open(second.thread.clone()).await.unwrap();
        let letter = letter.mailbox();
        letter
            .leave(Message::user("a word from elsewhere"))
            .await
            .unwrap();
        host.turn(how, second.run).await.unwrap();
        assert_eq!(short(&host.asked()), "u a u a u a u a u u");
        let told = |one: &Message| one.text() == "a word from elsewhere";
        assert!(host.asked().iter().any(told));
        assert!(letter.waiting().await.unwrap().is_empty());
    });
}

#[test]
fn cached_nodes_are_not_shared_between_tenants() {
    everywhere(async |stage, how| {
        let host = host(stage.process().await, how).await;
        let scope = Authority::assume().scope(Tenant::new("somebody-else").unwrap());
        let theirs =
            Threads::scoped(&host.process.store, scope).with_history_cache(host.views.clone());
        let found = theirs.after(host.first).await;
        assert!(matches!(found, Err(Error::NotFound { .. })));
        host.turn(how, host.first).await.unwrap();
    });
}

#[test]
fn a_node_with_open_calls_or_unsent_results_is_read_from_the_store() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let outside = Fake::named("pay").with(|spec| spec.runs = throughline::tool::Runs::Outside);
        let client = client([Step::calls([("c1", "pay", "{}")]), Step::text("paid")]);
        let agent = built(&process, &client, &[&outside], |builder| {
            builder.history(throughline::thread::HistoryPolicy {
                on_park: throughline::thread::OnPark::Publish,
                ..throughline::thread::HistoryPolicy::default()
            })
        });
        let threads = Threads::of(&process.store).with_history_cache(HistoryCache::new(1 << 20));
        let thread = threads.make_free(NewThread::new(process.store.ids().thread()));
        let first = how.finish(agent.run_on(&thread, "pay")).await.unwrap();
        assert_eq!(first.stop, StopReason::Parked);
        process.counted.reset();
        let _thread = threads.after(first.run).await.unwrap();
        assert_eq!(process.counted.log(), ["open", "journal"]);
    });
}
