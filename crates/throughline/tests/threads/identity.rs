//! Ids, aliases and forks of threads.

use throughline::store::{
    Alias, At, Authority, ErrorKind, NewThread, Tenant, ThreadFilter, ThreadId,
};
use throughline::thread::{HistoryPolicy, OnBusy};
use throughline::{Agent, Thread, Threads};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{How, Process, everywhere, short};

use crate::threads::providers::Provider;

fn named(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

/// An agent that repeats its input, and counts its runs in its state.
fn echo(process: &Process) -> Agent {
    let client = ScriptedClient::answering(|asked| {
        let last = asked.messages.last().unwrap().text();
        Step::text(format!("re: {last}"))
    });
    Agent::builder(client)
        .store(&process.store)
        .provider(Provider::counting("memory"))
        .build()
        .unwrap()
}

async fn say(agent: &Agent, thread: &Thread, how: How, text: &str) -> throughline::store::RunId {
    how.finish(agent.run_on(thread, text)).await.unwrap().run
}

fn texts(thread: &Thread) -> Vec<String> {
    let history = thread.history();
    history.iter().map(|message| message.text()).collect()
}

fn count(thread: &Thread) -> Option<String> {
    let state = thread.state();
    state.provider("memory").map(|state| state.get().to_owned())
}

async fn ids(threads: &Threads) -> Vec<String> {
    let listed = threads.list(&ThreadFilter::default(), None).await.unwrap();
    let ids = listed.found.iter().map(|thread| thread.id.to_string());
    ids.collect()
}

#[test]
fn b119_a_thread_has_one_id_and_opens_by_it_or_an_alias_in_one_round_trip() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let aliases = [
            Alias::new("conversation", "conv_1"),
            Alias::new("a2a", "ctx"),
        ];
        let id = named("ticket-4711");
        let thread = first.threads().make(NewThread {
            aliases: aliases.to_vec(),
            ..NewThread::new(id.clone())
        });
        assert_eq!(thread.id(), &id);
        say(&echo(&first), &thread, how, "one").await;
        assert_eq!(thread.id(), &id);

        let second = stage.process().await;
        let threads = second.threads();
        let names = aliases.iter().cloned().map(At::Alias);
        for at in [At::Thread(id.clone())].into_iter().chain(names) {
            second.counted.reset();
            let opened = threads.open(at.clone()).await.unwrap();
            assert_eq!(second.counted.log(), ["open"], "{at:?}");
            assert_eq!(opened.id(), &id, "{at:?}");
            assert_eq!(texts(&opened), ["one", "re: one"], "{at:?}");
            assert_eq!(count(&opened).as_deref(), Some("1"), "{at:?}");
        }
        // A run on an opened thread does not read it again.
        let opened = threads.open(aliases[1].clone()).await.unwrap();
        second.counted.reset();
        say(&echo(&second), &opened, how, "two").await;
        let mut calls = second.counted.log();
        calls.retain(|call| *call != "flush");
        assert_eq!(calls, ["begin", "publish"]);
        assert_eq!(opened.id(), &id);
        // Its id is its key in the store, whatever it was opened by.
        assert_eq!(ids(&threads).await, ["ticket-4711"]);
        assert_eq!(second.history(&id).await, "u a u a");
    });
}

#[test]
fn b135_a_fork_sees_the_ancestors_of_its_node_and_the_state_recorded_there() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (agent, threads) = (echo(&process), process.threads());
        let thread = threads.make(NewThread::new(named("trunk")));
        say(&agent, &thread, how, "one").await;
        let second = say(&agent, &thread, how, "two").await;
        say(&agent, &thread, how, "three").await;

        // By the run of the node, and from there by the fork itself.
        let fork = threads
            .fork(second, NewThread::new(named("fork")))
            .await
            .unwrap();
        assert_eq!(texts(&fork), ["one", "re: one", "two", "re: two"]);
        assert_eq!(count(&fork).as_deref(), Some("2"));
        let twig = threads
            .fork(fork.id().clone(), NewThread::new(named("twig")))
            .await
            .unwrap();

        say(&agent, &fork, how, "other").await;
        say(&agent, &fork, how, "more").await;
        say(&agent, &twig, how, "third").await;
        say(&agent, &thread, how, "four").await;
        let other = stage.process().await;
        let expected = [
            ("trunk", &["one", "two", "three", "four"][..], "4"),
            ("fork", &["one", "two", "other", "more"], "4"),
            ("twig", &["one", "two", "third"], "3"),
        ];
        for (id, asks, runs) in expected {
            let opened = other.threads().open(named(id)).await.unwrap();
            let said = asks
                .iter()
                .flat_map(|ask| [(*ask).to_owned(), format!("re: {ask}")]);
            assert_eq!(texts(&opened), said.collect::<Vec<_>>(), "{id}");
            assert_eq!(count(&opened).as_deref(), Some(runs), "{id}");
        }

        // Continuing at a node without a fork moves no head.
        let aside = threads.open(second).await.unwrap();
        say(&agent, &aside, how, "aside").await;
        assert_eq!(
            texts(&aside),
            ["one", "re: one", "two", "re: two", "aside", "re: aside"]
        );
        assert_eq!(count(&aside).as_deref(), Some("3"));
        assert_eq!(process.history(&named("trunk")).await, "u a u a u a u a");
    });
}

#[test]
fn b225_opening_an_absent_thread_fails_and_open_or_create_makes_one_for_all() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        let id = named("shared");
        for at in [
            At::Thread(id.clone()),
            At::Alias(Alias::new("a2a", "shared")),
        ] {
            let error = first.threads().open(at).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        assert_eq!(ids(&first.threads()).await, [""; 0]);

        let new = || NewThread::new(id.clone());
        let (one, two) = (first.threads(), second.threads());
        let (one, two) = tokio::join!(one.open_or_create(new()), two.open_or_create(new()));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(ids(&first.threads()).await, ["shared"]);
        say(&echo(&first), &one, how, "one").await;
        say(&echo(&second), &two, how, "two").await;
        assert_eq!(texts(&two), ["one", "re: one", "two", "re: two"]);
        one.refresh().await.unwrap();
        assert_eq!(texts(&one), texts(&two));

        // Two new threads with one id become the same thread when they are stored.
        let id = named("said");
        let mut runs = tokio::task::JoinSet::new();
        for process in [&first, &second] {
            let client = ScriptedClient::new([Step::text("yes")]);
            let agent = Agent::builder(client)
                .store(&process.store)
                .history(HistoryPolicy {
                    on_busy: OnBusy::Queue,
                    ..HistoryPolicy::default()
                })
                .build()
                .unwrap();
            let thread = process.threads().make(NewThread::new(id.clone()));
            runs.spawn(async move { how.finish(agent.run_on(&thread, "hello")).await });
        }
        while let Some(run) = runs.join_next().await {
            run.unwrap().unwrap();
        }
        assert_eq!(first.history(&id).await, "u a u a");
        assert_eq!(ids(&second.threads()).await.len(), 2);
    });
}

#[test]
fn b226_a_callers_own_id_is_used_as_it_is_and_tenants_never_meet() {
    let longest = "x".repeat(128);
    let good = ["a", "ticket-4711", "!~:[]{}\\%", &longest].map(str::to_owned);
    let too_long = "x".repeat(129);
    let bad = [
        "", " ", "a b", "a/b", "/", "a\tb", "a\nb", "a\u{a0}b", "a\0", "\u{7f}", &too_long,
    ];
    for id in bad {
        let reason = ThreadId::new(id).unwrap_err().to_string();
        assert!(
            reason.contains("1 to 128 visible ASCII characters without slashes"),
            "{id:?}: {reason}"
        );
    }
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tenant = |name: &str| {
            let scope = Authority::assume().scope(Tenant::new(name).unwrap());
            Threads::scoped(&process.store, scope)
        };
        let (ours, theirs) = (tenant("ours"), tenant("theirs"));
        let agent = echo(&process);
        for id in &good {
            let thread = ours.make(NewThread::new(named(id)));
            say(&agent, &thread, how, id).await;
            assert_eq!(thread.id().as_str(), id);
            let error = theirs.open(named(id)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        let mut listed = ids(&ours).await;
        listed.sort_unstable();
        let mut expected = good.to_vec();
        expected.sort_unstable();
        assert_eq!(listed, expected);
        assert_eq!(ids(&theirs).await, [""; 0]);

        let same = theirs.make(NewThread::new(named("ticket-4711")));
        say(&agent, &same, how, "of them").await;
        assert_eq!(texts(&same), ["of them", "re: of them"]);
        let mine = ours.open(named("ticket-4711")).await.unwrap();
        assert_eq!(texts(&mine), ["ticket-4711", "re: ticket-4711"]);
        theirs.delete(&named("ticket-4711")).await.unwrap();
        let mine = ours.open(named("ticket-4711")).await.unwrap();
        assert_eq!(short(mine.history().iter().map(|one| &**one)), "u a");
    });
}
