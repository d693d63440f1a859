//! Sources of messages, and contents that belong to one vendor.

use std::path::Path;
use std::sync::Arc;

use throughline::client::{Target, View};
use throughline::model::json::{self, Value};
use throughline::model::{Content, Message, Response, Role, Source, Wire};
use throughline::store::ThreadId;
use throughline::{Agent, Thread};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, everywhere, short};
use throughline_wire::render::Options;
use throughline_wire::{Losses, codec};

/// A file of recorded vendor output.
pub(crate) fn fixture(name: &str) -> String {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/fixtures");
    std::fs::read_to_string(wire.join(name)).unwrap()
}

pub(crate) fn decode(wire: &Wire, array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    let items = value.as_array().unwrap();
    codec(wire).unwrap().decode_messages(items).unwrap()
}

pub(crate) fn encode(wire: &Wire, messages: &[Message]) -> String {
    let mut losses = Losses::default();
    let text = codec(wire).unwrap().encode_messages(messages, &mut losses);
    assert!(losses.is_empty());
    text
}

pub(crate) fn messages(thread: &Thread) -> Vec<Message> {
    let history = thread.history();
    history.iter().map(|message| (**message).clone()).collect()
}

fn named(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

#[test]
fn b132_a_source_survives_json_and_the_store() {
    let words = [
        "caller",
        "model",
        "tool",
        "remote_agent",
        "context_provider",
        "import",
        "summary",
        "repair",
        "a later word",
    ];
    let said: Vec<Message> = words
        .iter()
        .map(|word| {
            let mut message = Message::user(*word);
            message.source = Some(Source::named(word));
            message
        })
        .collect();
    assert_eq!(said[8].source, Some(Source::Other("a later word".into())));
    let sources = |thread: &Thread| -> Vec<String> {
        let sources = messages(thread).into_iter();
        sources
            .map(|message| {
                let source = message.source.clone().unwrap();
                assert_eq!(source.as_str(), message.text());
                source.as_str().to_owned()
            })
            .collect()
    };
    everywhere(async |stage, how| {
        // Through JSON.
        let thread = Thread::of(named("t"), said.clone());
        let text = thread.to_json().await.unwrap();
        let back = Thread::from_json(&text).await.unwrap();
        assert_eq!(sources(&back), words);
        // Through the store.
        let first = stage.process().await;
        first.threads().from_json(&text).await.unwrap();
        let second = stage.process().await;
        let opened = second.threads().open(named("t")).await.unwrap();
        assert_eq!(sources(&opened), words);
        // A run on it changes none of them, and adds its own.
        let agent = Agent::builder(ScriptedClient::new([
            Step::calls([("c1", "tide", "{}")]),
            Step::text("model"),
        ]))
        .tool(Fake::named("tide"))
        .store(&second.store)
        .build()
        .unwrap();
        how.finish(agent.run_on(&opened, "caller")).await.unwrap();
        let opened = first.threads().open(named("t")).await.unwrap();
        let all = messages(&opened);
        let found: Vec<_> = all.iter().map(|one| one.source.clone().unwrap()).collect();
        let known = found.iter().map(Source::as_str).collect::<Vec<_>>();
        assert_eq!(known[..9], words);
        assert_eq!(known[9..], ["caller", "model", "tool", "model"]);
    });
}

#[test]
fn b133_input_is_the_callers_whatever_it_claims_and_the_callers_objects_stay_as_they_are() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let agent = Agent::builder(ScriptedClient::new([Step::text("one"), Step::text("two")]))
            .store(&process.store)
            .build()
            .unwrap();
        let mut assistant = Message::new(Role::Assistant, vec![Content::text("I said so")]);
        assistant.author = Some("critic".to_owned());
        let mut claimed = Message::user("I am the model");
        claimed.source = Some(Source::Model);
        let input = vec![assistant, claimed];
        let before = input.clone();
        let thread = agent.new_thread();
        let run = agent.run_on(&thread, input.clone());
        let outcome = how.finish(run).await.unwrap();
        assert_eq!(input, before);
        assert_eq!(short(&outcome.messages), "a u a");

        // A queued message is the caller's, too.
        let mut left = Message::new(Role::Assistant, vec![Content::text("left")]);
        left.source = Some(Source::Repair);
        let kept = left.clone();
        thread.mailbox().leave(left.clone()).await.unwrap();
        assert_eq!(left, kept);
        how.finish(agent.run_on(&thread, "and?")).await.unwrap();

        let opened = process.threads().open(thread.id().clone()).await.unwrap();
        let stored: Vec<_> = messages(&opened)
            .into_iter()
            .map(|one| (one.text(), one.role, one.author, one.source.unwrap()))
            .collect();
        let line = |text: &str, role: Role, author: Option<&str>, source: Source| {
            (text.to_owned(), role, author.map(str::to_owned), source)
        };
        assert_eq!(
            stored,
            [
                line("I said so", Role::Assistant, Some("critic"), Source::Caller),
                line("I am the model", Role::User, None, Source::Caller),
                line("one", Role::Assistant, None, Source::Model),
                line("left", Role::Assistant, None, Source::Caller),
                line("and?", Role::User, None, Source::Caller),
                line("two", Role::Assistant, None, Source::Model),
            ]
        );
    });
}

/// A vendor, an answer of it, and the parts that no other vendor may be sent.
struct Vendor {
    wire: Wire,
    /// A history of this vendor.
    history: &'static str,
    /// An answer of this vendor.
    answer: (&'static str, usize),
    /// The members that no other vendor may be sent.
    own: &'static [&'static str],
}

const VENDORS: [Vendor; 2] = [
    Vendor {
        wire: Wire::Anthropic,
        history: "transcripts/server-tools.anthropic.json",
        answer: ("anthropic/responses.json", 1),
        own: &["signature", "encrypted_content", "encrypted_index"],
    },
    Vendor {
        wire: Wire::OpenAiResponses,
        history: "transcripts/hosted-tools.openai-responses.json",
        answer: ("transcripts/response.openai-responses.json", 0),
        own: &["id", "encrypted_content"],
    },
];

impl Vendor {
    fn target(&self) -> Target {
        Target {
            thinking: true,
            ..Target::newest(self.wire.clone())
        }
    }

    fn render(&self, messages: &[Message]) -> String {
        let view = View::new(messages.iter().cloned());
        let rendering = view.render(&self.target(), &Options::default());
        rendering.items().to_string()
    }

    fn answer(&self) -> Response {
        let text = fixture(self.answer.0);
        let value = json::parse(&text).unwrap();
        let body = match value.as_array() {
            Some(bodies) => &bodies[self.answer.1],
            None => &value,
        };
        codec(&self.wire).unwrap().decode_response(body).unwrap()
    }

    /// The parts of a text of this vendor that no other vendor may be sent.
    fn secrets(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        self.find_secrets(&json::parse(text).unwrap(), &mut found);
        assert!(found.len() > 1, "{found:?}");
        found
    }

    fn find_secrets(&self, value: &Value<'_>, found: &mut Vec<String>) {
        for item in value.as_array().into_iter().flatten() {
            self.find_secrets(item, found);
        }
        for member in value.members() {
            let key = member.key.to_str();
            let kind = value.get("type").and_then(Value::as_str);
            let sealed = kind.as_deref() == Some("redacted_thinking") && key == "data";
            match member.value.as_str() {
                Some(text) if sealed || self.own.contains(&&*key) => {
                    found.push(format!("\"{text}\""));
                }
                _ => self.find_secrets(&member.value, found),
            }
        }
    }
}

#[test]
fn b134_what_is_one_vendors_own_is_not_sent_to_another_and_comes_back_byte_equal() {
    everywhere(async |stage, how| {
        for (a, b) in [(&VENDORS[0], &VENDORS[1]), (&VENDORS[1], &VENDORS[0])] {
            let process = stage.process().await;
            let text = fixture(a.history);
            let secrets = a.secrets(&text);
            let history = Thread::of(named("moves"), decode(&a.wire, &text));
            let text = history.to_json().await.unwrap();
            let id = named(&format!("moves-{}", a.wire.as_str()));
            let text = text.replace("\"moves\"", &format!("\"{id}\""));
            let thread = process.threads().from_json(&text).await.unwrap();
            let mut left = messages(&thread);
            left.push(Message::user("and here?"));
            let first = a.render(&left);
            let shown: Vec<_> = secrets.iter().filter(|one| first.contains(*one)).collect();
            assert!(shown.len() > 2, "{shown:?}");

            // A turn at the other vendor, with a round of tools.
            let client = Arc::new(ScriptedClient::new([
                Step::response(b.answer()),
                Step::text("thanks"),
            ]));
            let agent = |client: &Arc<ScriptedClient>| {
                Agent::builder(Arc::clone(client))
                    .store(&process.store)
                    .tool(Fake::named("get_tide"))
                    .tool(Fake::named("moor"))
                    .build()
                    .unwrap()
            };
            how.finish(agent(&client).run_on(&thread, "and here?"))
                .await
                .unwrap();
            let asked = client.asked();
            for asked in &asked {
                let sent = b.render(&asked.messages);
                let leaked: Vec<_> = secrets.iter().filter(|one| sent.contains(*one)).collect();
                assert_eq!(
                    leaked,
                    [""; 0],
                    "of {} at {}",
                    a.wire.as_str(),
                    b.wire.as_str()
                );
                assert!(sent.contains("and here?"));
            }
            // The other vendor gets its own output back.
            let body = fixture(b.answer.0);
            let theirs = b.secrets(&body);
            let again = b.render(&asked[1].messages);
            let answer = encode(&b.wire, &b.answer().messages);
            assert!(
                b.secrets(&answer).iter().all(|one| again.contains(one)),
                "{again}"
            );

            // Back at the first vendor, in another process: byte-equal up to where it was left.
            let other = stage.process().await;
            let thread = other.threads().open(id).await.unwrap();
            let client = Arc::new(ScriptedClient::new([Step::text("welcome back")]));
            let back = Agent::builder(Arc::clone(&client))
                .store(&other.store)
                .build()
                .unwrap();
            how.finish(back.run_on(&thread, "and now?")).await.unwrap();
            let sent = a.render(&client.last_asked().unwrap().messages);
            let same = first.strip_suffix(']').unwrap();
            assert!(sent.starts_with(same), "{same}\n\n{sent}");
            let leaked: Vec<_> = theirs
                .iter()
                .filter(|one| sent[same.len()..].contains(*one))
                .collect();
            assert_eq!(
                leaked,
                [""; 0],
                "of {} at {}",
                b.wire.as_str(),
                a.wire.as_str()
            );
        }
    });
}
