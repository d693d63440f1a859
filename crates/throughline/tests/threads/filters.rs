//! Message filters change what is sent, and never the record.

use std::sync::Arc;

use throughline::Agent;
use throughline::model::{Message, Role};
use throughline::thread::Persistence;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, everywhere, short};

fn last(count: usize) -> impl Fn(&[Arc<Message>]) -> Vec<Arc<Message>> {
    move |messages| messages[messages.len().saturating_sub(count)..].to_vec()
}

fn without_tools(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let plain = |message: &&Arc<Message>| {
        let calls = message
            .contents
            .iter()
            .any(|one| one.as_tool_call().is_some());
        message.role != Role::Tool && !calls
    };
    messages.iter().filter(plain).cloned().collect()
}

/// Replaces the texts of messages.
fn masked(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mask = |message: &Arc<Message>| match message.text().contains("secret") {
        true => Arc::new(Message::user("[masked]")),
        false => Arc::clone(message),
    };
    messages.iter().map(mask).collect()
}

#[test]
fn a_filter_changes_what_is_sent_and_never_the_record() {
    everywhere(async |stage, how| {
        for mode in [Persistence::PerRun, Persistence::PerCall] {
            let process = stage.process().await;
            let client = Arc::new(ScriptedClient::new([
                Step::calls([("c1", "tide", "{}")]),
                Step::text("at four"),
                Step::text("noted"),
                Step::text("you said nothing"),
            ]));
            let plain = Agent::builder(Arc::clone(&client))
                .store(&process.store)
                .persistence(mode)
                .tool(Fake::named("tide"))
                .build()
                .unwrap();
            let filtered = Agent::builder(Arc::clone(&client))
                .store(&process.store)
                .persistence(mode)
                .filter(without_tools)
                .filter(masked)
                .filter(last(3))
                .build()
                .unwrap();
            let thread = plain.new_thread();
            how.finish(plain.run_on(&thread, "when?")).await.unwrap();
            let outcome = how.finish(filtered.run_on(&thread, "a secret"));
            let outcome = outcome.await.unwrap();
            assert_eq!(short(&outcome.messages), "u a");
            how.finish(filtered.run_on(&thread, "and?")).await.unwrap();

            let asked = client.asked();
            let sent = |call: usize| -> Vec<String> {
                asked[call].messages.iter().map(Message::text).collect()
            };
            assert_eq!(sent(1), ["when?", "", ""]);
            // Each filter gets the output of the one before.
            assert_eq!(sent(2), ["when?", "at four", "[masked]"]);
            assert_eq!(sent(3), ["[masked]", "noted", "and?"]);

            let said = [
                "when?",
                "",
                "",
                "at four",
                "a secret",
                "noted",
                "and?",
                "you said nothing",
            ];
            let other = stage.process().await;
            let opened = other.threads().open(thread.id().clone()).await.unwrap();
            for history in [thread.history(), opened.history()] {
                let texts: Vec<String> = history.iter().map(|one| one.text()).collect();
                assert_eq!(texts, said);
            }
            assert_eq!(other.history(thread.id()).await, "u a(c1) t(c1) a u a u a");
        }
    });
}

#[test]
fn a_filter_is_asked_before_every_model_call_with_all_that_would_be_sent() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let client = Arc::new(ScriptedClient::new([
            Step::calls([("c1", "tide", "{}")]),
            Step::calls([("c2", "tide", "{}")]),
            Step::text("at four"),
        ]));
        let watching = {
            let seen = Arc::clone(&seen);
            move |messages: &[Arc<Message>]| {
                let line = short(messages.iter().map(|one| &**one));
                seen.lock().unwrap().push(line);
                messages[..1].to_vec()
            }
        };
        let agent = Agent::builder(Arc::clone(&client))
            .store(&process.store)
            .tool(Fake::named("tide"))
            .filter(watching)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(
            *seen.lock().unwrap(),
            ["u", "u a(c1) t(c1)", "u a(c1) t(c1) a(c2) t(c2)"]
        );
        let sent: Vec<String> = client
            .asked()
            .iter()
            .map(|one| short(&one.messages))
            .collect();
        assert_eq!(sent, ["u", "u", "u"]);
        let whole = "u a(c1) t(c1) a(c2) t(c2) a";
        assert_eq!(process.history(thread.id()).await, whole);
    });
}
