//! Threads as JSON.

use std::path::Path;
use std::sync::Arc;

use throughline::agent::AgentBuilder;
use throughline::client::{Abilities, StoresHistory};
use throughline::model::json::RawJson;
use throughline::model::{Message, Response, Role, Source, Stop, Wire};
use throughline::store::{Error, ServiceId, ThreadFilter, ThreadId};
use throughline::thread::{Owner, Persistence, ThreadJsonError};
use throughline::tool::{Approval, ToolOutput};
use throughline::{Agent, StopReason, Thread, Threads};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, everywhere, short};

use crate::threads::providers::Provider;
use crate::threads::sources::{decode, encode, fixture, messages};

fn named(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

/// A client whose service can store conversations.
fn keeping(steps: impl IntoIterator<Item = Step>) -> Arc<ScriptedClient> {
    let abilities = Abilities {
        stores_history: StoresHistory::Optional,
        ..Abilities::of("scripted")
    };
    Arc::new(ScriptedClient::new(steps).with_abilities(abilities))
}

/// An answer, and the id under which the service stores the conversation from then on.
fn kept(text: &str, service: &str) -> Step {
    let message = Message::new(
        Role::Assistant,
        vec![throughline::model::Content::text(text)],
    );
    Step::response(Response {
        id: None,
        model: None,
        messages: vec![message],
        usage: None,
        stop: Stop::Done,
        error: None,
        vendor: None,
        service: Some(service.to_owned()),
    })
}

fn service() -> Owner {
    Owner::service("scripted")
}

fn service_id(id: &str) -> ServiceId {
    ServiceId {
        upstream: "scripted".to_owned(),
        agent: String::new(),
        id: id.to_owned(),
    }
}

fn agent(client: &Arc<ScriptedClient>) -> AgentBuilder {
    Agent::builder(Arc::clone(client)).provider(Provider::counting("memory"))
}

async fn queued(thread: &Thread) -> Vec<Message> {
    thread.mailbox().waiting().await.unwrap()
}

#[test]
fn b120_a_thread_of_a_store_is_its_id_in_json_and_opens_elsewhere_with_everything() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let client = keeping([kept("one", "resp_1")]);
        let run = agent(&client).store(&first.store).build().unwrap();
        let thread = first
            .threads()
            .make(throughline::store::NewThread::new(named("t")));
        thread.set_owner(service()).await.unwrap();
        how.finish(run.run_on(&thread, "one?")).await.unwrap();
        let text = thread.to_json().await.unwrap();
        assert_eq!(text, r#"{"format":"throughline.thread/1","id":"t"}"#);

        let second = stage.process().await;
        second.counted.reset();
        let back = second.threads().from_json(&text).await.unwrap();
        assert_eq!(second.counted.log(), ["open"]);
        assert_eq!(messages(&back), messages(&thread));
        assert_eq!(messages(&back).len(), 2);
        assert_eq!(back.state(), thread.state());
        assert_eq!(back.state().provider("memory").unwrap().get(), "1");
        assert_eq!(back.service_ids(), [service_id("resp_1")]);
        assert_eq!(back.owner(), service());
        assert_eq!(back.to_json().await.unwrap(), text);
        // A run continues there: the service has the rest.
        let client = keeping([kept("two", "resp_2")]);
        let run = agent(&client).store(&second.store).build().unwrap();
        how.finish(run.run_on(&back, "two?")).await.unwrap();
        assert_eq!(short(&client.last_asked().unwrap().messages), "u");
        assert_eq!(back.service_ids(), [service_id("resp_2")]);
        assert_eq!(first.history(&named("t")).await, "u a u a");
        // Without the store it is only an id.
        match Thread::from_json(&text).await.unwrap_err() {
            ThreadJsonError::InStore { id } => assert_eq!(id, named("t")),
            other => panic!("{other}"),
        }
    });
}

#[test]
fn what_a_provider_adds_reaches_a_service_that_keeps_the_conversation() {
    everywhere(async |_, how| {
        let provider = Provider::named("weather").before(|_| {
            Ok(throughline::agent::Additions {
                messages: vec![Message::user("it rains")],
                ..throughline::agent::Additions::default()
            })
        });
        let client = keeping([kept("one", "resp_1"), kept("two", "resp_2")]);
        let agent = Agent::builder(Arc::clone(&client))
            .provider(provider)
            .build()
            .unwrap();
        let thread = Thread::new();
        thread.set_owner(service()).await.unwrap();
        how.finish(agent.run_on(&thread, "one?")).await.unwrap();
        how.finish(agent.run_on(&thread, "two?")).await.unwrap();
        let sent = |call: usize| -> Vec<String> {
            let asked = client.asked();
            asked[call].messages.iter().map(Message::text).collect()
        };
        assert_eq!(sent(0), ["it rains", "one?"]);
        assert_eq!(sent(1), ["it rains", "two?"]);
        assert_eq!(short(&messages(&thread)), "u a u a");
    });
}

#[test]
fn b121_a_thread_without_a_store_is_all_in_its_json_and_goes_on_from_there() {
    everywhere(async |_, how| {
        for owner in [Owner::Local, service()] {
            let client = match owner {
                Owner::Local => keeping([
                    Step::calls([("c1", "tide", "{}"), ("c2", "tide", "{}")]).thinking("hm"),
                    Step::text("at four"),
                ]),
                _ => keeping([kept("at four", "resp_1")]),
            };
            let before = agent(&client).tool(Fake::named("tide")).build().unwrap();
            let thread = Thread::with_id(named("mine"));
            thread.set_owner(owner.clone()).await.unwrap();
            thread
                .set_persistence(Some(Persistence::PerCall))
                .await
                .unwrap();
            how.finish(before.run_on(&thread, "when?")).await.unwrap();
            thread
                .mailbox()
                .leave(Message::user("and where?"))
                .await
                .unwrap();
            let mut noted = Message::user("and why?");
            noted.meta = Some(RawJson::new(r#"{"n":1.0}"#).unwrap());
            thread.mailbox().leave(noted).await.unwrap();

            let text = thread.to_json().await.unwrap();
            let back = Thread::from_json(&text).await.unwrap();
            assert_eq!(back.id(), thread.id());
            assert_eq!(messages(&back), messages(&thread));
            assert_eq!(back.state(), thread.state());
            assert_eq!(back.state().provider("memory").unwrap().get(), "1");
            assert_eq!(back.owner(), owner);
            let services = match owner {
                Owner::Local => vec![],
                _ => vec![service_id("resp_1")],
            };
            assert_eq!(back.service_ids(), services);
            let waits = queued(&back).await;
            assert_eq!(waits, queued(&thread).await);
            let texts: Vec<String> = waits.iter().map(Message::text).collect();
            assert_eq!(texts, ["and where?", "and why?"]);
            assert_eq!(back.to_json().await.unwrap(), text);

            // A run continues: with the full history, or with what the service does not have.
            let client = match owner {
                Owner::Local => keeping([Step::text("here")]),
                _ => keeping([kept("here", "resp_2")]),
            };
            let after = agent(&client).build().unwrap();
            let outcome = how.finish(after.run_on(&back, "so?")).await.unwrap();
            assert_eq!(short(&outcome.messages), "u u u a");
            let (sent, whole) = match owner {
                Owner::Local => (
                    "u a(c1,c2) t(c1,c2) a u u u",
                    "u a(c1,c2) t(c1,c2) a u u u a",
                ),
                _ => ("u u u", "u a u u u a"),
            };
            assert_eq!(short(&client.last_asked().unwrap().messages), sent);
            assert_eq!(short(&messages(&back)), whole);
            assert_eq!(queued(&back).await, []);
            assert_eq!(back.state().provider("memory").unwrap().get(), "2");
            // And so does its JSON.
            let text = back.to_json().await.unwrap();
            let again = Thread::from_json(&text).await.unwrap();
            assert_eq!(messages(&again), messages(&back));
            assert_eq!(again.to_json().await.unwrap(), text);
        }
    });
}

#[test]
fn results_that_were_never_sent_are_in_the_json_of_a_thread() {
    everywhere(async |_, how| {
        let tool = Fake::doing("tide", |_, _| async {
            Ok(ToolOutput::text("at four").and_terminate())
        });
        let client = keeping([Step::calls([("c1", "tide", "{}")]), Step::text("I see")]);
        let agent = Agent::builder(Arc::clone(&client))
            .persistence(Persistence::PerCall)
            .tool(tool)
            .build()
            .unwrap();
        let thread = Thread::new();
        let outcome = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Terminated);
        assert_eq!(short(&messages(&thread)), "u a(c1)");
        let text = thread.to_json().await.unwrap();
        let back = Thread::from_json(&text).await.unwrap();
        assert_eq!(short(&messages(&back)), "u a(c1) t(c1)");
        assert_eq!(back.to_json().await.unwrap(), text);
        how.finish(agent.run_on(&back, "and?")).await.unwrap();
        let asked = client.last_asked().unwrap();
        assert_eq!(short(&asked.messages), "u a(c1) t(c1) u");
    });
}

#[test]
fn a_thread_with_a_run_that_waits_is_not_written() {
    everywhere(async |_, how| {
        let client = keeping([Step::calls([("c1", "pay", "{}")]), Step::text("paid")]);
        let agent = Agent::builder(client)
            .tool(Fake::named("pay").with(|spec| spec.approval = Approval::Always))
            .build()
            .unwrap();
        let thread = Thread::new();
        let parked = how.finish(agent.run_on(&thread, "pay")).await.unwrap();
        match thread.to_json().await.unwrap_err() {
            ThreadJsonError::Unsettled { run, state } => {
                assert_eq!((run, state.as_str()), (parked.run, "parked"));
            }
            other => panic!("{other}"),
        }
        let run = agent.resume(&thread).approve(&parked.pending[0]);
        how.finish(run).await.unwrap();
        let text = thread.to_json().await.unwrap();
        let back = Thread::from_json(&text).await.unwrap();
        assert_eq!(short(&messages(&back)), "u a(c1) t(c1) a");
    });
}

/// The error of a thread's JSON.
fn fault(error: ThreadJsonError) -> String {
    match error {
        ThreadJsonError::Newer { found } => format!("newer: {found}"),
        ThreadJsonError::Malformed(_) => "malformed".to_owned(),
        other => other.to_string(),
    }
}

async fn count(threads: &Threads) -> usize {
    let listed = threads.list(&ThreadFilter::default(), None).await.unwrap();
    listed.found.len()
}

#[test]
fn b122_json_that_is_no_thread_or_a_newer_one_is_refused_and_nothing_is_loaded() {
    let message = r#"{"v":1,"role":"user","contents":[]}"#;
    let whole = |members: &str| {
        format!(r#"{{"format":"throughline.thread/1","id":"t","messages":[{message}],{members}}}"#)
    };
    let cases = [
        ("".to_owned(), "malformed"),
        ("null".to_owned(), "malformed"),
        ("[]".to_owned(), "malformed"),
        (r#""throughline.thread/1""#.to_owned(), "malformed"),
        (r#"{"id":"t"}"#.to_owned(), "malformed"),
        (r#"{"format":7,"id":"t"}"#.to_owned(), "malformed"),
        (r#"{"format":"other/1","id":"t"}"#.to_owned(), "malformed"),
        (
            r#"{"format":"throughline.thread/0","id":"t"}"#.to_owned(),
            "malformed",
        ),
        (
            r#"{"format":"throughline.thread/1"}"#.to_owned(),
            "malformed",
        ),
        (
            r#"{"format":"throughline.thread/1","id":""}"#.to_owned(),
            "malformed",
        ),
        (
            r#"{"format":"throughline.thread/1","id":"a b"}"#.to_owned(),
            "malformed",
        ),
        (
            r#"{"format":"throughline.thread/2","id":{"of":"another kind"}}"#.to_owned(),
            "newer: throughline.thread/2",
        ),
        (
            r#"{"format":"throughline.thread/10","id":"t"}"#.to_owned(),
            "newer: throughline.thread/10",
        ),
        (whole(r#""queued":[7]"#), "malformed"),
        (whole(r#""queued":{}"#), "malformed"),
        (whole(r#""state":[]"#), "malformed"),
        (whole(r#""state":{"v":2}"#), "malformed"),
        (whole(r#""settings":{"v":2}"#), "malformed"),
        (
            whole(r#""settings":{"owner":{"kind":"ghost"}}"#),
            "malformed",
        ),
        (whole(r#""settings":7"#), "malformed"),
        (
            r#"{"format":"throughline.thread/1","id":"t","messages":[{"v":1}]}"#.to_owned(),
            "malformed",
        ),
        (
            r#"{"format":"throughline.thread/1","id":"t","messages":{}}"#.to_owned(),
            "malformed",
        ),
    ];
    everywhere(async |stage, _| {
        let process = stage.process().await;
        let threads = process.threads();
        for (text, expected) in &cases {
            let alone = Thread::from_json(text).await.unwrap_err();
            assert_eq!(fault(alone), *expected, "{text}");
            let stored = threads.from_json(text).await.unwrap_err();
            assert_eq!(fault(stored), *expected, "{text}");
        }
        assert_eq!(process.counted.log(), [""; 0]);
        assert_eq!(count(&threads).await, 0);

        // An existing thread is not merged with another one of the same id.
        let good = whole(r#""queued":[]"#);
        threads.from_json(&good).await.unwrap();
        let other = Thread::of(named("t"), vec![Message::user("other")]);
        other.mailbox().leave(Message::user("left")).await.unwrap();
        let other = other.to_json().await.unwrap();
        match threads.from_json(&other).await.unwrap_err() {
            ThreadJsonError::Store(Error::Exists { what, id }) => {
                assert_eq!((what, id.as_str()), ("thread", "t"));
            }
            other => panic!("{other}"),
        }
        let opened = threads.open(named("t")).await.unwrap();
        assert_eq!(messages(&opened)[0].text(), "");
        assert_eq!(queued(&opened).await, []);
    });
}

#[test]
fn b123_what_we_do_not_know_is_byte_equal_after_json_every_store_and_back_at_its_vendor() {
    let unknown = concat!(
        r#"[{"role":"user","content":"hi","x_new":1.50},{"type":"brand_new","id":"bn_1","#,
        r#""x":1.0,"x":{"big":123456789012345678901234567890,"e":1e400,"esc":"\u00e9\/"}},"#,
        r#"{"type":"message","role":"assistant","id":"msg_x","content":"#,
        r#"[{"type":"hologram","depth":[0.10,null]}],"status":"a_new_word"}]"#
    );
    let vendors = [
        (Wire::OpenAiResponses, unknown.to_owned()),
        (
            Wire::OpenAiResponses,
            fixture("transcripts/hosted-tools.openai-responses.json"),
        ),
        (Wire::Anthropic, fixture("anthropic/history.json")),
        (Wire::OpenAiChat, fixture("openai-chat/messages-odd.json")),
        (Wire::Gemini, fixture("gemini/contents.json")),
    ];
    // In our own form: kinds, roles, sources, families and members of a later version.
    let later = concat!(
        r#"{"v":1,"role":"critic","contents":[{"kind":"hologram","n":1.0e0,"n":2},"#,
        r#"{"kind":"text","text":"hi","later":[1.50]}],"source":"oracle","z":{"deep":[{}]}}"#
    );
    everywhere(async |stage, _| {
        let first = stage.process().await;
        let second = stage.process().await;
        for (n, (wire, text)) in vendors.iter().enumerate() {
            let decoded = decode(wire, text);
            let exact = encode(wire, &decoded);
            if n == 0 {
                assert_eq!(exact, *text);
            }
            let alone = Thread::of(named(&format!("t{n}")), decoded);
            let json = alone.to_json().await.unwrap();
            let back = Thread::from_json(&json).await.unwrap();
            assert_eq!(encode(wire, &messages(&back)), exact, "{wire:?}");
            first.threads().from_json(&json).await.unwrap();
            let opened = second.threads().open(back.id().clone()).await.unwrap();
            assert_eq!(encode(wire, &messages(&opened)), exact, "{wire:?}");
        }
        let message = Message::from_json(later).unwrap();
        let alone = Thread::of(named("later"), vec![message]);
        let json = alone.to_json().await.unwrap();
        assert!(json.contains(later), "{json}");
        first.threads().from_json(&json).await.unwrap();
        let opened = second.threads().open(named("later")).await.unwrap();
        let mut stored = messages(&opened).remove(0);
        // The id is assigned when the message is stored.
        stored.id = None;
        assert_eq!(stored.to_json(), later);
    });
}

fn checked_in(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/threads/fixtures");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn threads_of_the_first_format_are_read() {
    everywhere(async |stage, how| {
        let text = checked_in("thread-1.json");
        let thread = Thread::from_json(&text).await.unwrap();
        assert_eq!(thread.id().as_str(), "harbour");
        assert_eq!(short(&messages(&thread)), "u a(c1,c2) t(c1,c2:error) a");
        let said = messages(&thread);
        assert_eq!(said[0].text(), "When is high water at Ys?");
        assert_eq!(said[1].source, Some(Source::Model));
        assert_eq!(said[3].usage.as_ref().unwrap().total, Some(15));
        assert_eq!(thread.owner(), Owner::Local);
        assert_eq!(thread.service_ids(), [service_id("resp_1")]);
        let state = thread.state();
        assert_eq!(state.provider("memory").unwrap().get(), r#"{"port":"Ys"}"#);
        assert_eq!(state.provider("empty").unwrap().get(), "null");
        let texts: Vec<String> = queued(&thread).await.iter().map(Message::text).collect();
        assert_eq!(texts, ["and low water?"]);
        // Written as it was read, and continued.
        assert_eq!(thread.to_json().await.unwrap(), text.trim_end());
        let client = keeping([Step::text("at ten")]);
        let agent = Agent::builder(Arc::clone(&client)).build().unwrap();
        how.finish(agent.run_on(&thread, "and?")).await.unwrap();
        assert_eq!(
            short(&client.last_asked().unwrap().messages),
            "u a(c1,c2) t(c1,c2:error) a u u"
        );

        let external = checked_in("thread-1-external.json");
        let external = Thread::from_json(&external).await.unwrap();
        assert_eq!(
            external.owner(),
            Owner::External {
                store: "crm".to_owned(),
                key: RawJson::new(r#"{"case":4711,"page":[1]}"#).unwrap(),
            }
        );

        let process = stage.process().await;
        process.threads().from_json(&text).await.unwrap();
        let name = checked_in("thread-1-in-store.json");
        let opened = process.threads().from_json(&name).await.unwrap();
        assert_eq!(messages(&opened), said);
        assert_eq!(opened.state(), state);
        assert_eq!(opened.to_json().await.unwrap(), name.trim_end());
    });
}

#[test]
fn threads_of_a_newer_format_are_refused() {
    everywhere(async |stage, _| {
        let text = checked_in("thread-2.json");
        let alone = Thread::from_json(&text).await.unwrap_err();
        assert_eq!(
            alone.to_string(),
            "the thread was written as \"throughline.thread/2\", this program reads \
             \"throughline.thread/1\"; use a newer one"
        );
        let process = stage.process().await;
        let stored = process.threads().from_json(&text).await.unwrap_err();
        assert_eq!(fault(stored), "newer: throughline.thread/2");
        assert_eq!(count(&process.threads()).await, 0);
    });
}
