//! Messages that are removed: no model is shown them again, whichever process remembers them.

use throughline::Threads;
use throughline::agent::RunOptions;
use throughline::model::{Body, Message};
use throughline::store::{
    Anchor, Begin, Begun, Claim, Error, Increment, ItemRef, NewItem, NewThread, NodeRef, Publish,
    RunState, ThreadFilter, ThreadId,
};
use throughline::thread::{HistoryCache, HistoryPolicy, MessageName, OnPark, Redacted, TailStart};
use throughline::tool::{Approval, Runs};
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, everywhere};

use crate::threads::actions::{built, client};

const CANARY: &str = "canary-4711";
const MARK: &str = "[redacted]";

fn said(messages: &[Message]) -> String {
    messages.iter().map(Message::to_json).collect()
}

async fn redact(threads: &Threads, thread: &ThreadId, position: u64) -> Redacted {
    let message = MessageName::Position(position);
    threads
        .redact(thread.clone(), &message, "ada")
        .await
        .unwrap()
}

#[test]
fn no_model_is_shown_a_redacted_message_again() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let script = (0..9).map(|_| Step::text(format!("noted {CANARY}")));
        let model = client(script);
        let agent = built(&process, &model, &[], |builder| builder);
        let views = HistoryCache::new(1 << 20);
        let cached = Threads::of(&process.store).with_history_cache(views.clone());
        let ask = format!("the key is {CANARY}");
        // A handle that stays open, one that was opened and never used, and a cached history.
        let open = agent.new_thread();
        how.finish(agent.run_on(&open, ask.as_str())).await.unwrap();
        let idle = agent.open(open.id().clone()).await.unwrap();
        let free = cached.make_free(NewThread::new(process.store.ids().thread()));
        let first = how.finish(agent.run_on(&free, ask.as_str())).await.unwrap();
        let fork = NewThread::new(process.store.ids().thread());
        let fork = process.threads().fork(first.run, fork).await.unwrap();

        // Another process removes all of it.
        let other = stage.process().await.threads();
        for (thread, position) in [
            (open.id(), 1),
            (open.id(), 2),
            (free.id(), 1),
            (fork.id(), 2),
        ] {
            let redacted = redact(&other, thread, position).await;
            assert_eq!((redacted.position, redacted.by.as_str()), (position, "ada"));
            assert_eq!((&redacted.thread, redacted.items.len()), (thread, 1));
        }
        assert!(!views.is_empty(), "this process was not told");

        let after = cached.after(first.run).await.unwrap();
        for thread in [&open, &idle, &free, &after, &fork] {
            let done = how.finish(agent.run_on(thread, "and now?")).await;
            done.unwrap();
            let shown = model.last_asked().unwrap().messages;
            let (old, new) = shown.split_at(2);
            let expected = [MARK, MARK];
            assert!(
                old.iter().map(Message::text).eq(expected),
                "{}",
                said(&shown)
            );
            assert!(!said(new).contains("the key"), "{}", said(&shown));
        }
    });
}

#[test]
fn calls_without_arguments_keep_their_results() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let arguments = format!(r#"{{"to":"{CANARY}"}}"#);
        let model = client([
            Step::calls([("c1", "pay", arguments.as_str()), ("c2", "pay", "{}")]),
            Step::text("paid"),
            Step::text("more"),
        ]);
        let pay = Fake::named("pay");
        let agent = built(&process, &model, &[&pay], |builder| builder);
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "pay both")).await.unwrap();
        let threads = process.threads();
        // The call, by its id, and the message with both results, by its position.
        let call = thread.history()[1].id.clone().unwrap();
        let redacted = threads
            .redact(thread.id().clone(), &MessageName::Id(call.clone()), "ada")
            .await
            .unwrap();
        assert_eq!(redacted.position, 2);
        let results = redact(&threads, thread.id(), 3).await;
        assert_eq!(results.items.len(), 2);
        // Once more, and by the name that it keeps.
        let again = threads
            .redact(thread.id().clone(), &MessageName::Id(call), "bob")
            .await
            .unwrap();
        assert_eq!((again.by.as_str(), again.at), ("ada", redacted.at));

        how.finish(agent.run_on(&thread, "what was paid?"))
            .await
            .unwrap();
        let shown = model.last_asked().unwrap().messages;
        assert!(!said(&shown).contains(CANARY), "{}", said(&shown));
        let bodies: Vec<&Body> = shown
            .iter()
            .flat_map(|message| &message.contents)
            .map(|content| &content.body)
            .collect();
        let ids = |of: fn(&Body) -> Option<&str>| {
            bodies.iter().copied().filter_map(of).collect::<Vec<_>>()
        };
        let calls = ids(|body| match body {
            Body::ToolCall(call) => Some(call.call.value()),
            _ => None,
        });
        let results = ids(|body| match body {
            Body::ToolResult(result) => Some(result.call().value()),
            _ => None,
        });
        assert_eq!((calls, results), (vec!["c1", "c2"], vec!["c1", "c2"]));
    });
}

#[test]
fn what_cannot_be_redacted_is_refused_by_name() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let model = client([Step::text("one"), Step::text("two")]);
        let agent = built(&process, &model, &[], |builder| builder);
        let thread = agent.new_thread();
        let first = how.finish(agent.run_on(&thread, "first")).await.unwrap();
        let threads = process.threads();
        let id = thread.id();
        for name in ["0", "3", "#99", "msg_nothing", "18446744073709551616", ""] {
            let name: MessageName = name.parse().unwrap();
            let error = threads.redact(id.clone(), &name, "ada").await.unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::NotFound {
                        what: "message",
                        ..
                    }
                ),
                "{name}: {error}"
            );
        }
        // A run that is at work has read the messages.
        let begin = Begin::new(
            process.store.ids().run(),
            Anchor::Node(NodeRef::Run(first.run)),
            NewItem::of(&[Message::user("beside")]),
        );
        let begun = process.store.begin(threads.scope(), &begin).await.unwrap();
        let Begun::Started(started) = begun else {
            panic!("{begun:?}");
        };
        let name = MessageName::Position(1);
        let error = threads.redact(id.clone(), &name, "ada").await.unwrap_err();
        assert!(
            matches!(&error, Error::Busy { run, state: RunState::Running, .. } if *run == begin.run),
            "{error}"
        );
        process
            .store
            .park(threads.scope(), started.lease, None)
            .await
            .unwrap();
        redact(&threads, id, 1).await;
        // A message of another branch of the thread is found by its id.
        let publish = Publish::new(0, Vec::new());
        let claimed = process
            .store
            .claim(threads.scope(), begin.run, 1, Claim::Parked)
            .await
            .unwrap();
        let lease = claimed.lease;
        process
            .store
            .publish(threads.scope(), lease, &publish)
            .await
            .unwrap();
        how.finish(agent.run_on(&thread, "second")).await.unwrap();
        let item = ItemRef {
            run: begin.run,
            no: 1,
        };
        let name = MessageName::Id(item.message_id());
        let found = threads.redact(id.clone(), &name, "ada").await.unwrap();
        assert_eq!((found.position, found.items), (3, vec![item]));
    });
}

#[test]
fn a_call_that_waits_keeps_its_arguments() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let model = client([
            Step::calls([("c1", "pay", r#"{"to":"ada"}"#)]),
            Step::text("paid"),
        ]);
        let pay = Fake::named("pay").with(|spec| spec.approval = Approval::Always);
        let agent = built(&process, &model, &[&pay], |builder| {
            builder.history(HistoryPolicy {
                on_park: OnPark::Publish,
                ..HistoryPolicy::default()
            })
        });
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "pay")).await.unwrap();
        let threads = process.threads();
        let call = MessageName::Position(2);
        let error = threads.redact(thread.id().clone(), &call, "ada").await;
        let error = error.unwrap_err();
        assert!(matches!(error, Error::WrongState { .. }), "{error}");
        redact(&threads, thread.id(), 1).await;
        // New input closes the call; then there is nothing left to carry out.
        how.finish(agent.run_on(&thread, "never mind"))
            .await
            .unwrap();
        redact(&threads, thread.id(), 2).await;
    });
}

#[test]
fn a_call_that_the_application_runs_may_lose_its_arguments() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let model = client([
            Step::calls([("c1", "pay", r#"{"to":"ada"}"#)]),
            Step::text("noted"),
        ]);
        let outside = Fake::named("pay").with(|spec| spec.runs = Runs::Outside);
        let agent = built(&process, &model, &[&outside], |builder| {
            builder.history(HistoryPolicy {
                on_park: OnPark::Publish,
                ..HistoryPolicy::default()
            })
        });
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "pay")).await.unwrap();
        let threads = process.threads();
        redact(&threads, thread.id(), 2).await;
        thread.refresh().await.unwrap();
        how.finish(agent.run_on(&thread, "never mind"))
            .await
            .unwrap();
        let shown = said(&model.last_asked().unwrap().messages);
        assert!(!shown.contains("ada"), "{shown}");
        assert!(shown.contains("never mind"), "{shown}");
    });
}

#[test]
fn a_tail_waits_for_what_others_commit_and_loses_nothing() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let model = client((0..3).map(|no| Step::text(format!("answer {no}"))));
        let agent = built(&process, &model, &[], |builder| builder);
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "ask 0")).await.unwrap();
        let other = stage.process().await.threads();
        let mut now = other.tail(thread.id(), TailStart::Now);
        let mut all = other.tail(thread.id(), TailStart::First).with_page(1);
        let texts = |found: &Increment| -> Vec<String> {
            found
                .entries
                .iter()
                .map(|entry| entry.message.text())
                .collect()
        };
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.extend(texts(&all.next().await.unwrap()));
        }
        assert_eq!(seen, ["ask 0", "answer 0"]);
        let TailStart::After(here) = all.start() else {
            panic!("{:?}", all.start());
        };
        // It waits, and is dropped while it does.
        assert!(futures_util::FutureExt::now_or_never(now.next()).is_none());
        let (found, done) = tokio::join!(now.next(), how.finish(agent.run_on(&thread, "ask 1")));
        done.unwrap();
        let mut found = texts(&found.unwrap());
        if found.len() < 2 {
            found.extend(texts(&now.next().await.unwrap()));
        }
        assert_eq!(found, ["ask 1", "answer 1"]);
        // A consumer that stopped goes on after its cursor.
        let mut again = other.tail(thread.id(), TailStart::After(here));
        assert_eq!(texts(&again.next().await.unwrap()), ["ask 1", "answer 1"]);
        // A deleted thread ends it.
        let threads = process.threads();
        let (gone, deleted) = tokio::join!(again.next(), threads.delete(thread.id()));
        deleted.unwrap();
        assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    });
}

#[test]
fn threads_are_listed_by_the_agent_and_the_model_of_their_newest_turn() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let model = client((0..4).map(|_| Step::text("yes")));
        let named = |name: &str, of: Option<&str>| {
            built(&process, &model, &[], |builder| {
                let builder = builder.name(name);
                match of {
                    Some(of) => builder.model(of),
                    None => builder,
                }
            })
        };
        let desk = named("desk", Some("large"));
        let pilot = named("pilot", None);
        let (one, two) = (desk.new_thread(), pilot.new_thread());
        how.finish(desk.run_on(&one, "hello")).await.unwrap();
        how.finish(pilot.run_on(&two, "hello")).await.unwrap();
        let threads = process.threads();
        let listed = async |agent: Option<&str>, model: Option<&str>| {
            let filter = ThreadFilter {
                agent: agent.map(str::to_owned),
                model: model.map(str::to_owned),
                ..ThreadFilter::default()
            };
            let page = threads.list(&filter, None).await.unwrap();
            page.found.into_iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(listed(Some("desk"), None).await, [one.id().clone()]);
        assert_eq!(listed(Some("pilot"), None).await, [two.id().clone()]);
        assert_eq!(listed(None, Some("large")).await, [one.id().clone()]);
        let small = RunOptions {
            model: Some("small".to_owned()),
            ..RunOptions::default()
        };
        let again = pilot.run_on(&one, "again").options(&small);
        how.finish(again).await.unwrap();
        assert_eq!(listed(Some("desk"), None).await, []);
        assert_eq!(
            listed(Some("pilot"), Some("small")).await,
            [one.id().clone()]
        );
    });
}
