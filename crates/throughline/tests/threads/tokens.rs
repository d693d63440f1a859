//! Stored messages are counted, and threads have the sum.

use std::sync::Arc;

use throughline::compact::Policy;
use throughline::model::{Message, tokens};
use throughline::store::{Append, At, NewItem, NewThread, Span, ThreadFilter, ThreadId, transfer};
use throughline::thread::Persistence;
use throughline::tool::ToolOutput;
use throughline::{Agent, StopReason, Thread};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, Process, everywhere};

use crate::threads::compaction::{long, model, reader};

/// The total of a thread from its handle, its listing and its record, after comparing the record
/// message by message.
async fn total(process: &Process, thread: &Thread) -> u64 {
    let scope = process.scope();
    let at = At::Thread(thread.id().clone());
    let page = process.store.read(&scope, &at, Span::After(0), 10_000);
    let mut sum = 0;
    for entry in page.await.unwrap().entries {
        assert_eq!(entry.tokens, tokens::units(&entry.message), "{entry:?}");
        assert_ne!(entry.tokens, 0);
        sum += u64::from(entry.tokens);
    }
    assert_eq!(thread.tokens().await.unwrap(), sum);
    let filter = ThreadFilter::default();
    let listed = process.threads().list(&filter, None).await.unwrap();
    let listed = listed.found.iter().find(|listed| listed.id == *thread.id());
    assert_eq!(listed.map_or(0, throughline::store::Thread::tokens), sum);
    sum
}

/// The tokens of messages.
fn counted<'m>(messages: impl IntoIterator<Item = &'m Message>) -> u64 {
    messages.into_iter().map(tokens::units).map(u64::from).sum()
}

#[test]
fn b245_whatever_enters_is_counted_and_the_total_of_a_thread_is_the_sum() {
    everywhere(async |stage, how| {
        for mode in [Persistence::PerRun, Persistence::PerCall] {
            let process = stage.process().await;
            let client = Arc::new(ScriptedClient::new([
                Step::text("hello"),
                Step::calls([("c1", "tide", "{}"), ("c2", "tide", r#"{"at":"Hamburg"}"#)])
                    .thinking("which gauge?"),
                Step::text("at four"),
                Step::calls([("c3", "tide", "{}"), ("c4", "nothing", "{}")]),
                Step::text("sorry"),
            ]));
            let tide = Fake::doing("tide", |_, _| async { Ok(ToolOutput::text(long(1))) });
            let agent = Agent::builder(client)
                .store(&process.store)
                .persistence(mode)
                .tool(tide)
                .build()
                .unwrap();
            let thread = agent.new_thread();
            assert_eq!(thread.tokens().await.unwrap(), 0);
            let mut expected = 0;
            for input in ["hi", "when is high water?", "and in the harbour next door?"] {
                // A queued message is counted with the run that delivers it.
                let left = Message::user("and hurry");
                thread.mailbox().leave(left).await.unwrap();
                let outcome = how.finish(agent.run_on(&thread, input)).await.unwrap();
                assert_eq!(outcome.stop, StopReason::Done);
                expected += counted(&outcome.messages);
                assert_eq!(total(&process, &thread).await, expected, "after {input:?}");
            }
            let queue = process.store.queue(&process.scope(), thread.id()).await;
            assert_eq!(queue.unwrap(), []);

            // Items added by hand, a fork, an export that is imported.
            let by_hand = Append {
                run: process.store.ids().run(),
                thread: thread.id().clone(),
                expected: None,
                items: NewItem::of(&[Message::user("by hand")]),
                state: None,
                key: None,
            };
            process
                .store
                .append(&process.scope(), &by_hand)
                .await
                .unwrap();
            thread.refresh().await.unwrap();
            expected += counted(&[Message::user("by hand")]);
            assert_eq!(total(&process, &thread).await, expected);

            let at = At::Thread(thread.id().clone());
            let fork = process
                .threads()
                .fork(at.clone(), NewThread::new(process.store.ids().thread()))
                .await
                .unwrap();
            assert_eq!(total(&process, &fork).await, expected);

            let (mut text, extent) = (Vec::new(), transfer::Extent::Tree);
            let (store, scope) = (&process.store, process.scope());
            let exported =
                transfer::export(store, &scope, &at, extent, &mut text, &mut |_| {}).await;
            assert_eq!(exported.unwrap().tokens, expected);
            let copy = process.store.ids().thread();
            let options = transfer::ImportOptions {
                rename: Some(copy.clone()),
                ..transfer::ImportOptions::default()
            };
            let mut bytes = text.as_slice();
            let imported =
                transfer::import(store, &scope, &mut bytes, 0, options, &mut |_| {}).await;
            assert_eq!(imported.unwrap().tokens, expected);
            let copy = process.threads().open(copy).await;
            assert_eq!(total(&process, &copy.unwrap()).await, expected);

            // Deleting the origin takes nothing from the threads that share its nodes.
            process.threads().delete(thread.id()).await.unwrap();
            while process.store.purge(100).await.unwrap().more {}
            assert_eq!(total(&process, &fork).await, expected);
            assert_eq!(process.store.check(&mut |_| {}).await.unwrap().damage, []);
        }
    });
}

#[test]
fn b245_compaction_changes_what_is_shown_and_not_what_is_counted() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = Arc::new(model(6));
        let agent = Agent::builder(Arc::clone(&client))
            .store(&process.store)
            .compaction(Policy::default())
            .tool(reader())
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let mut expected = 0;
        let mut epochs = 0;
        for input in ["read", "go on", "and on"] {
            let outcome = how.finish(agent.run_on(&thread, input)).await.unwrap();
            expected += counted(&outcome.messages);
            epochs = outcome.compaction.map_or(0, |report| report.epoch);
            assert_eq!(total(&process, &thread).await, expected, "after {input:?}");
        }
        assert!(epochs > 0, "nothing was compacted");
        let shown = counted(&client.last_asked().unwrap().messages);
        assert!(shown * 4 < expected * 3, "{shown} of {expected} are shown");
    });
}

#[test]
fn a_thread_that_is_not_stored_yet_counts_what_it_begins_with() {
    everywhere(async |_, how| {
        let client = Arc::new(ScriptedClient::new([Step::text("hello")]));
        let agent = Agent::builder(client).build().unwrap();
        let begins = vec![Message::user("one"), Message::user("two")];
        let thread = Thread::of(ThreadId::new("mine").unwrap(), begins.clone());
        assert_eq!(thread.tokens().await.unwrap(), counted(&begins));
        let outcome = how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        let sum = counted(&begins) + counted(&outcome.messages);
        assert_eq!(thread.tokens().await.unwrap(), sum);
    });
}
