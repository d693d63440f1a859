//! Busy threads, idempotency keys that are used twice, and settings that change during a run.

use throughline::agent::RunError;
use throughline::model::Message;
use throughline::store::{Error, RunState, Span};
use throughline::thread::{OnBusy, Owner, OwnerError, Persistence};
use throughline::tool::Approval;
use throughline::{StopReason, Threads};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, everywhere, said, short};

use crate::threads::actions::{agent, client, gated, journals, standing, start};

#[test]
fn b207_a_second_run_on_a_busy_thread_does_what_the_policy_says() {
    everywhere(async |stage, how| {
        for apart in [false, true] {
            for on_busy in [
                OnBusy::Reject,
                OnBusy::Queue,
                OnBusy::Branch,
                OnBusy::Interrupt,
            ] {
                let (tide, gate) = gated("tide");
                let first = stage.process().await;
                let asked = client([Step::text("hello"), Step::calls([("c1", "tide", "{}")])]);
                let one = agent(&first, &asked, &[&tide]);
                let thread = one.new_thread();
                let id = thread.id().clone();
                one.run_on(&thread, "hi").await.unwrap();
                asked.push(Step::text("at four"));
                let task = start(how, one.run_on(&thread, "when?"));
                gate.reached().await;

                let other = stage.process().await;
                let second = if apart { &other } else { &first };
                let theirs = client([Step::text("theirs")]);
                let two = agent(second, &theirs, &[&tide]);
                let same = two.open(id.clone()).await.unwrap();
                let run = two.run_on(&same, "and?").on_busy(on_busy);
                let case = format!("{on_busy:?}, in two processes: {apart}");
                let (ended, history, seen) = match on_busy {
                    OnBusy::Reject => {
                        let failed = how.finish(run).await.unwrap_err();
                        let running = journals(&first, &id).await[0].run.id;
                        let RunError::Store(Error::Busy { run, .. }) = failed.source else {
                            panic!("{case}: {:?}", failed.source);
                        };
                        assert_eq!((run, theirs.calls()), (running, 0), "{case}");
                        gate.open();
                        (StopReason::Done, "u a u a(c1) t(c1) a", None)
                    }
                    OnBusy::Queue => {
                        let waits = start(how, run);
                        gate.open();
                        assert_eq!(said(&waits.await.unwrap().unwrap()), "u a", "{case}");
                        let all = "u a u a(c1) t(c1) a u a";
                        (StopReason::Done, all, Some("u a u a(c1) t(c1) a u"))
                    }
                    OnBusy::Branch => {
                        let branch = how.finish(run).await.unwrap();
                        // The branch has its own end; only the first run may move the head.
                        let there = second.threads().open(branch.run).await.unwrap();
                        let there = there.history();
                        let there = short(there.iter().map(|one| &**one));
                        assert_eq!(there, "u a u a", "{case}");
                        assert_eq!(second.history(&id).await, "u a", "{case}");
                        gate.open();
                        (StopReason::Done, "u a u a(c1) t(c1) a", Some("u a u"))
                    }
                    OnBusy::Interrupt => {
                        assert_eq!(said(&how.finish(run).await.unwrap()), "u a", "{case}");
                        let closed = "u a u a(c1) t(c1:unknown) u a";
                        let seen = "u a u a(c1) t(c1:unknown) u";
                        (StopReason::Cancelled, closed, Some(seen))
                    }
                };
                let outcome = task.await.unwrap().unwrap();
                assert_eq!(outcome.stop, ended, "{case}");
                assert_eq!(second.history(&id).await, history, "{case}");
                let shown = theirs.last_asked().map(|asked| short(&asked.messages));
                assert_eq!(shown.as_deref(), seen, "{case}");
                assert_eq!(tide.runs(), 1, "{case}");
            }
        }
    });
}

#[test]
fn b208_one_key_is_one_run_one_answer_and_one_dispatch() {
    everywhere(async |stage, how| {
        let (tide, gate) = gated("tide");
        let process = stage.process().await;
        let other = stage.process().await;
        let asked = client([Step::calls([("c1", "tide", "{}")]), Step::text("at four")]);
        let here = agent(&process, &asked, &[&tide]);
        let there = agent(&other, &asked, &[&tide]);
        let thread = here.new_thread();
        let id = thread.id().clone();
        let keyed = here.run_on(&thread, "when?").idempotency_key("k1");
        let first = start(how, keyed);
        gate.reached().await;
        // At once, in the same process and in another one; that the thread is busy does not matter.
        let mut tasks = Vec::new();
        for agent in [&here, &there] {
            let same = agent.open(id.clone()).await.unwrap();
            let run = agent.run_on(&same, "when?").idempotency_key("k1");
            tasks.push(start(how, run));
            let run = agent.run_on(&same, "else?").idempotency_key("k1");
            let failed = how.finish(run).await.unwrap_err();
            assert!(
                matches!(failed.source, RunError::Store(Error::KeyReused { .. })),
                "{:?}",
                failed.source
            );
        }
        gate.open();
        let outcome = first.await.unwrap().unwrap();
        for task in tasks {
            let same = task.await.unwrap().unwrap();
            assert_eq!((same.run, same.stop), (outcome.run, outcome.stop));
            assert_eq!(same.messages, outcome.messages);
        }
        // Later, after another turn, and while the thread is busy.
        asked.push(Step::text("sure"));
        how.finish(here.run_on(&thread, "sure?")).await.unwrap();
        let run = here.run_on(&thread, "when?").idempotency_key("k1");
        let same = how.finish(run).await.unwrap();
        assert_eq!((same.run, &same.messages), (outcome.run, &outcome.messages));
        asked.push(Step::hang());
        let task = start(how, here.run_on(&thread, "wait"));
        asked.begun(4).await;
        let again = there.open(id.clone()).await.unwrap();
        let run = there.run_on(&again, "when?").idempotency_key("k1");
        assert_eq!(how.finish(run).await.unwrap().run, outcome.run);
        let run = there.run_on(&again, "else?").idempotency_key("k1");
        let failed = how.finish(run).await.unwrap_err();
        assert!(matches!(
            failed.source,
            RunError::Store(Error::KeyReused { .. })
        ));
        task.abort();
        here.settled().await;
        assert_eq!((tide.runs(), asked.calls()), (1, 4));
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a u a u");
    });
}

#[test]
fn a_key_of_a_parked_run_gives_its_pending_calls_and_withdraws_nothing() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let pay = Fake::named("pay").with(|spec| spec.approval = Approval::Always);
        let asked = client([Step::calls([("c1", "pay", "{}")])]);
        let agent = agent(&process, &asked, &[&pay]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&thread, "pay").idempotency_key("k1");
        let parked = how.finish(run).await.unwrap();
        let run = agent.run_on(&thread, "pay").idempotency_key("k1");
        let again = how.finish(run).await.unwrap();
        assert_eq!((again.run, again.stop), (parked.run, StopReason::Parked));
        assert_eq!(again.pending, parked.pending);
        let found = journals(&process, &id).await;
        assert_eq!(found.len(), 1);
        assert_eq!(standing(&found[0]), "parked c1:approval");
    });
}

#[test]
fn b209_two_runs_that_continue_one_node_are_two_branches() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let asked = client([Step::text("hello"), Step::text("more")]);
        let agent = agent(&process, &asked, &[]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let root = how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        how.finish(agent.run_on(&thread, "go on")).await.unwrap();
        let node = journals(&process, &id).await[1].run.published.unwrap();
        // By the run and by its node, concurrently.
        let by_run = agent.open(root.run).await.unwrap();
        let by_node = agent.open(node).await.unwrap();
        asked.push(Step::hang());
        asked.push(Step::text("right"));
        let left = start(how, agent.run_on(&by_run, "left?"));
        asked.begun(3).await;
        let right = how.finish(agent.run_on(&by_node, "right?")).await;
        let right = right.unwrap();
        let by_run = agent.open(root.run).await.unwrap();
        asked.push(Step::text("left"));
        let second = how.finish(agent.run_on(&by_run, "left?")).await;
        let second = second.unwrap();
        left.abort();
        agent.settled().await;
        for outcome in [&right, &second] {
            let branch = process.threads().open(outcome.run).await.unwrap();
            let texts: Vec<String> = branch.history().iter().map(|one| one.text()).collect();
            assert_eq!(texts[..2], ["hi", "hello"]);
            assert_eq!(texts[2..], [outcome.messages[0].text(), outcome.text()]);
        }
        assert_ne!(right.text(), second.text());
        // The head is where the thread's own turn left it.
        assert_eq!(process.history(&id).await, "u a u a");
        let texts = process.threads().open(id).await.unwrap().history();
        assert_eq!(texts[3].text(), "more");
    });
}

#[test]
fn b210_the_same_words_twice_are_two_messages() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let asked = client([Step::text("fine"), Step::text("fine")]);
        let agent = agent(&process, &asked, &[]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        for key in ["k1", "k2"] {
            let run = agent.run_on(&thread, "ok").idempotency_key(key);
            how.finish(run).await.unwrap();
        }
        let texts = |messages: &[Message]| {
            let texts: Vec<String> = messages.iter().map(Message::text).collect();
            texts.join(" ")
        };
        // What the model was sent.
        let shown = asked.last_asked().unwrap().messages;
        assert_eq!(texts(&shown), "ok fine ok");
        let stored = process.threads().open(id.clone()).await.unwrap().history();
        let mut ids: Vec<_> = stored.iter().map(|one| one.id.clone()).collect();
        ids.dedup();
        assert_eq!((stored.len(), ids.len()), (4, 4));
        // In increments of any size, too.
        for size in 1..=4 {
            let (store, scope) = (&process.store, process.scope());
            let mut cursor = None;
            let mut seen = Vec::new();
            loop {
                let page = store.increment(&scope, &id, cursor.as_ref(), size).await;
                let page = page.unwrap();
                if page.entries.is_empty() {
                    break;
                }
                seen.extend(page.entries.into_iter().map(|entry| entry.message));
                cursor = Some(page.next);
            }
            assert_eq!(texts(&seen), "ok fine ok fine");
        }
        let at = throughline::store::At::Thread(id);
        let page = process
            .store
            .read(&process.scope(), &at, Span::Tail, 10)
            .await;
        assert_eq!(page.unwrap().entries.len(), 4);
    });
}

#[test]
fn b211_a_run_ends_in_the_mode_it_began_with() {
    everywhere(async |stage, how| {
        // A run in progress.
        let (tide, gate) = gated("tide");
        let process = stage.process().await;
        let calls = || Step::calls([("c1", "tide", "{}")]);
        let asked = client([calls(), Step::text("at four")]);
        let here = agent(&process, &asked, &[&tide]);
        let thread = here.new_thread();
        let id = thread.id().clone();
        let task = start(how, here.run_on(&thread, "when?"));
        gate.reached().await;
        let handle = process.threads().open(id.clone()).await.unwrap();
        let per_call = Some(Persistence::PerCall);
        handle.set_persistence(per_call).await.unwrap();
        assert_eq!(process.history(&id).await, "");
        gate.open();
        task.await.unwrap().unwrap();
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
        let modes = async |process: &throughline_testkit::stage::Process| {
            let found = journals(process, &id).await;
            let modes: Vec<_> = found.iter().map(|one| one.run.mode).collect();
            modes
        };
        assert_eq!(modes(&process).await, [Persistence::PerRun]);

        // An interrupted run: begun per call, resumed after the thread was set back.
        asked.push(calls());
        process.die_in("results", Fault::HangAfter);
        let thread = here.open(id.clone()).await.unwrap();
        start(how, here.run_on(&thread, "and?"));
        process.died().await;
        let second = stage.process().await;
        let published = "u a(c1) t(c1) a u a(c1)";
        assert_eq!(second.history(&id).await, published);
        let handle = second.threads().open(id.clone()).await.unwrap();
        handle
            .set_persistence(Some(Persistence::PerRun))
            .await
            .unwrap();
        asked.push(Step::text("at five"));
        let there = agent(&second, &asked, &[&tide]);
        let thread = there.open(id.clone()).await.unwrap();
        how.finish(there.resume(&thread)).await.unwrap();
        let all = "u a(c1) t(c1) a u a(c1) t(c1) a";
        assert_eq!(second.history(&id).await, all);
        let (per_run, per_call) = (Persistence::PerRun, Persistence::PerCall);
        assert_eq!(modes(&second).await, [per_call, per_run]);

        // The next run has the new mode.
        asked.push(Step::text("bye"));
        how.finish(there.run_on(&thread, "bye")).await.unwrap();
        assert_eq!(modes(&second).await, [per_run, per_call, per_run]);
        assert_eq!(second.history(&id).await, format!("{all} u a"));
        assert_eq!(tide.runs(), 2);
    });
}

#[test]
fn b211_a_parked_run_ends_in_the_mode_it_began_with() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let pay = Fake::named("pay").with(|spec| spec.approval = Approval::Always);
        let asked = client([Step::calls([("c1", "pay", "{}")]), Step::text("paid")]);
        let agent = agent(&process, &asked, &[&pay]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let parked = how.finish(agent.run_on(&thread, "pay")).await.unwrap();
        thread
            .set_persistence(Some(Persistence::PerCall))
            .await
            .unwrap();
        let run = agent.resume(&thread).approve(&parked.pending[0]);
        assert_eq!(how.finish(run).await.unwrap().stop, StopReason::Done);
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
        let found = journals(&process, &id).await;
        assert_eq!(found[0].run.mode, Persistence::PerRun);
        let nodes = found[0].steps.iter().filter(|step| step.node.is_some());
        assert_eq!(nodes.count(), 0, "published once, at the end");
    });
}

#[test]
fn b212_the_owner_does_not_change_under_a_run() {
    everywhere(async |stage, how| {
        let (tide, gate) = gated("tide");
        let pay = Fake::named("pay").with(|spec| spec.approval = Approval::Always);
        let process = stage.process().await;
        let asked = client([Step::calls([("c1", "tide", "{}")])]);
        let here = agent(&process, &asked, &[&tide, &pay]);
        let thread = here.new_thread();
        let id = thread.id().clone();
        let service = || Owner::service("scripted");
        let refused = async |threads: Threads, state: RunState| {
            let handle = threads.open(id.clone()).await.unwrap();
            let refused = handle.set_owner(service()).await.unwrap_err();
            let OwnerError::Unsettled { state: found, .. } = refused else {
                panic!("{refused}");
            };
            assert_eq!(found, state);
            assert_eq!(handle.owner(), Owner::Local);
            let again = threads.open(id.clone()).await.unwrap();
            assert_eq!(again.owner(), Owner::Local);
        };
        // A run in progress.
        let task = start(how, here.run_on(&thread, "when?"));
        gate.reached().await;
        refused(process.threads(), RunState::Running).await;
        asked.push(Step::calls([("c2", "pay", "{}")]));
        gate.open();
        // A parked run.
        let parked = task.await.unwrap().unwrap();
        assert_eq!(parked.stop, StopReason::Parked);
        refused(process.threads(), RunState::Parked).await;
        // An interrupted run.
        let thread = here.open(id.clone()).await.unwrap();
        process.die_in("publish", Fault::HangBefore);
        asked.push(Step::text("paid"));
        let run = here.resume(&thread).approve(&parked.pending[0]);
        start(how, run);
        process.died().await;
        let second = stage.process().await;
        refused(second.threads(), RunState::Interrupted).await;
        // A settled run.
        asked.push(Step::text("paid"));
        let there = agent(&second, &asked, &[&tide, &pay]);
        let thread = there.open(id.clone()).await.unwrap();
        how.finish(there.resume(&thread)).await.unwrap();
        thread.set_owner(service()).await.unwrap();
        let opened = second.threads().open(id.clone()).await.unwrap();
        assert_eq!(opened.owner(), service());
        assert_eq!((tide.runs(), pay.runs()), (1, 1));
    });
}
