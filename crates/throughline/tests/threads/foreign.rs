//! Histories of other origin: ids that repeat, are missing or too long, truncated histories, late
//! results.

use throughline::model::{
    CallId, Content, Message, Outcome, Output, Response, Role, ToolCall, json, pairs,
};
use throughline::store::{Append, NewItem, NewThread};
use throughline::tool::ToolOutput;
use throughline::{StopReason, Thread};
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, everywhere, said, short};
use throughline_wire::render::{Options, Target, render};
use throughline_wire::validate::{Profile, validate};
use throughline_wire::{Losses, Wire, codec};

use crate::threads::actions::{agent, client, gated};

const VENDORS: [Wire; 6] = [
    Wire::OpenAiChat,
    Wire::OpenAiResponses,
    Wire::Anthropic,
    Wire::Gemini,
    Wire::GeminiInteractions,
    Wire::Foundry,
];

/// The request that a vendor is sent for a history.
fn rendered(messages: &[Message], wire: &Wire) -> String {
    let (target, options) = (Target::newest(wire.clone()), Options::default());
    render(messages, &target, &options).body(&target, &options)
}

/// Checks that every vendor accepts the history.
pub(crate) fn assert_valid(messages: &[Message]) {
    for wire in VENDORS {
        let body = rendered(messages, &wire);
        let request = json::parse(&body).unwrap();
        let violations = validate(&request, &Profile::newest(wire.clone()));
        let history = short(messages);
        assert!(
            violations.is_empty(),
            "{wire:?} of {history}: {violations:?}"
        );
    }
}

/// The strings of a key, at any depth, in order.
fn strings(body: &str, key: &str) -> Vec<String> {
    let mark = format!("\"{key}\":\"");
    let found = body.split(&mark).skip(1);
    found
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

/// A tool that returns how often it ran.
fn counting(name: &str) -> Fake {
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    Fake::doing(name, move |_, _| {
        let run = runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move { Ok(ToolOutput::text(format!("answer {run}"))) }
    })
}

fn output(content: &Content) -> String {
    match &content.as_tool_result().unwrap().output {
        Output::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn owned(messages: &[std::sync::Arc<Message>]) -> Vec<Message> {
    messages.iter().map(|message| (**message).clone()).collect()
}

#[test]
fn b213_each_result_stays_with_its_own_occurrence_of_a_reused_id() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = counting("tide");
        let round = || Step::calls([("call_0", "tide", "{}")]);
        let asked = client([
            round(),
            round(),
            Step::text("one"),
            round(),
            Step::text("two"),
        ]);
        let agent = agent(&process, &asked, &[&tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        for input in ["when?", "and?"] {
            let run = agent.run_on(&thread, input);
            assert_eq!(how.finish(run).await.unwrap().stop, StopReason::Done);
        }
        let stored = owned(&process.threads().open(id).await.unwrap().history());
        let turn = "a(call_0) t(call_0)";
        assert_eq!(short(&stored), format!("u {turn} {turn} a u {turn} a"));
        let found = pairs(&stored);
        let answers: Vec<(usize, String)> = found
            .iter()
            .map(|pair| {
                let result = &stored[pair.result.message].contents[pair.result.content];
                (pair.call.message, output(result))
            })
            .collect();
        let expected = [(1, "answer 0"), (3, "answer 1"), (7, "answer 2")];
        assert_eq!(answers, expected.map(|(at, text)| (at, text.to_owned())));
        assert_valid(&stored);
        // Where ids must be unique they are, in calls and results alike.
        let body = rendered(&stored, &Wire::Anthropic);
        let (calls, results) = (strings(&body, "id"), strings(&body, "tool_use_id"));
        assert_eq!(calls, results);
        let mut unique = calls.clone();
        unique.sort();
        unique.dedup();
        assert_eq!((calls.len(), unique.len()), (3, 3));
    });
}

#[test]
fn b214_two_calls_of_one_id_both_run_and_are_paired_by_position() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = Fake::doing("tide", |_, context| async move {
            let key = context.idempotency_key;
            Ok(ToolOutput::text(format!("{} {key}", context.position)))
        });
        let twice = [("c1", "tide", "{}"), ("c1", "tide", "{}")];
        let asked = client([Step::calls(twice), Step::text("both")]);
        let agent = agent(&process, &asked, &[&tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let outcome = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c1) t(c1,c1) a");
        assert_eq!((tide.runs(), asked.calls()), (2, 2));
        let stored = owned(&process.threads().open(id).await.unwrap().history());
        let texts: Vec<String> = stored[2].contents.iter().map(output).collect();
        assert!(
            texts[0].starts_with("0 ") && texts[1].starts_with("1 "),
            "{texts:?}"
        );
        // They are two calls for the tool as well.
        assert_ne!(texts[0][2..], texts[1][2..]);
        let found = pairs(&stored);
        let places: Vec<_> = found
            .iter()
            .map(|pair| (pair.call.content, pair.result.content))
            .collect();
        assert_eq!(places, [(0, 0), (1, 1)]);
        assert_valid(&stored);
    });
}

/// An answer of a chat model with one call with the given id.
fn without_id(id: &str) -> (Response, String) {
    let message = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{{id}"type":"function","function":{{"name":"tide","arguments":"{{}}"}}}}]}}"#
    );
    let body = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{message},"finish_reason":"tool_calls"}}]}}"#
    );
    let chat = codec(&Wire::OpenAiChat).unwrap();
    let response = chat.decode_response(&json::parse(&body).unwrap()).unwrap();
    (response, message)
}

#[test]
fn b215_a_call_without_an_id_gets_one_of_ours_and_goes_back_as_it_was() {
    everywhere(async |stage, how| {
        for id in ["", r#""id":null,"#, r#""id":"","#] {
            let process = stage.process().await;
            let tide = Fake::named("tide");
            let (response, message) = without_id(id);
            let call = |response: &Response| {
                let call = response.messages[0]
                    .contents
                    .iter()
                    .find_map(Content::as_tool_call);
                call.unwrap().call.clone()
            };
            let minted = call(&response);
            assert_eq!(minted, call(&without_id(id).0), "decoded twice");
            assert!(!minted.value().is_empty());
            let asked = client([Step::response(response), Step::text("at four")]);
            let agent = agent(&process, &asked, &[&tide]);
            let thread = agent.new_thread();
            let outcome = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
            assert_eq!(said(&outcome), format!("u a({minted}) t({minted}) a"));
            assert_eq!(tide.runs(), 1);
            let opened = process.threads().open(thread.id().clone()).await.unwrap();
            let stored = owned(&opened.history());
            assert_eq!(stored[1].contents[0].as_tool_call().unwrap().call, minted);
            // Back through the codec: absent, null or empty as it was.
            let chat = codec(&Wire::OpenAiChat).unwrap();
            let mut losses = Losses::default();
            let written = chat.encode_items(&stored[1..2], &mut losses);
            assert_eq!(written, [message]);
            // The rendered form has ids in calls and results, and they match.
            assert_valid(&stored);
            let body = rendered(&stored, &Wire::OpenAiChat);
            let (calls, results) = (strings(&body, "id"), strings(&body, "tool_call_id"));
            assert_eq!(calls, results);
            assert!(!calls[0].is_empty());
        }
    });
}

#[test]
fn b216_a_long_id_is_kept_and_shortened_alike_only_where_a_vendor_has_a_limit() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = Fake::named("tide");
        let long = |end: char| format!("{}{end}", "x".repeat(115));
        let (one, two) = (long('1'), long('2'));
        let asked = client([
            Step::calls([(&one, "tide", "{}"), (&two, "tide", "{}")]),
            Step::text("at four"),
        ]);
        let agent = agent(&process, &asked, &[&tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let outcome = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(said(&outcome), format!("u a({one},{two}) t({one},{two}) a"));
        let stored = owned(&process.threads().open(id).await.unwrap().history());
        assert_eq!(short(&stored), said(&outcome));
        assert_valid(&stored);
        let limits = [
            (Wire::OpenAiChat, "id", "tool_call_id", 40),
            (Wire::OpenAiResponses, "call_id", "call_id", 64),
            (Wire::Anthropic, "id", "tool_use_id", 64),
        ];
        for (wire, call, result, most) in limits {
            let body = rendered(&stored, &wire);
            let (mut calls, mut results) = (strings(&body, call), strings(&body, result));
            if call == result {
                results = calls.split_off(2);
            }
            assert_eq!(calls, results, "{wire:?}");
            assert_eq!(calls.len(), 2, "{wire:?}");
            assert_ne!(calls[0], calls[1], "{wire:?}");
            let fits = calls.iter().all(|id| id.len() <= most && !id.is_empty());
            assert!(fits, "{wire:?}: {calls:?}");
        }
    });
}

/// A conversation with two rounds, as another system stored it.
fn kept_elsewhere() -> Vec<Message> {
    let call = |id: &str| ToolCall::function(CallId::natural(id).unwrap(), "tide", "{}");
    let answer = |id: &str| call(id).answer(Outcome::Ok, Output::Text(format!("{id} says")));
    vec![
        Message::user("when?"),
        Message::new(
            Role::Assistant,
            vec![
                Content::text("I look"),
                call("c1").into(),
                call("c2").into(),
            ],
        ),
        Message::new(Role::Tool, vec![answer("c1").into(), answer("c2").into()]),
        Message::new(Role::Assistant, vec![call("c3").into()]),
        Message::new(Role::Tool, vec![answer("c3").into()]),
        Message::new(Role::Assistant, vec![Content::text("at four")]),
    ]
}

/// The part of a history between two of its contents.
fn between(history: &[Message], start: usize, end: usize) -> Vec<Message> {
    let mut place = 0;
    let mut left = Vec::new();
    for message in history {
        let mut part = message.clone();
        part.contents.retain(|_| {
            let kept = (start..end).contains(&place);
            place += 1;
            kept
        });
        if !part.contents.is_empty() {
            left.push(part);
        }
    }
    left
}

fn bare(messages: &[Message]) -> Vec<Message> {
    let bare = |message: &Message| Message {
        id: None,
        created: None,
        ..message.clone()
    };
    messages.iter().map(bare).collect()
}

#[test]
fn b217_an_import_that_was_cut_anywhere_goes_on_and_stays_as_it_was() {
    everywhere(async |stage, how| {
        let whole = kept_elsewhere();
        let contents: usize = whole.iter().map(|message| message.contents.len()).sum();
        let process = stage.process().await;
        for start in 0..contents {
            for end in start + 1..=contents {
                let part = between(&whole, start, end);
                let asked = client([Step::text("here"), Step::text("here")]);
                let tide = Fake::named("tide");
                let agent = agent(&process, &asked, &[&tide]);
                // In a thread with its own store.
                let id = process.store.ids().thread();
                let mut own = Thread::of(id.clone(), part.clone());
                // In a shared store.
                let new = NewThread::new(id.clone());
                let kept = process.threads().open_or_create(new).await.unwrap();
                let append = Append {
                    run: process.store.ids().run(),
                    thread: id.clone(),
                    expected: None,
                    items: NewItem::of(&part),
                    state: None,
                    key: None,
                };
                let scope = process.scope();
                process.store.append(&scope, &append).await.unwrap();
                drop(kept);
                let mut stored = agent.open(id).await.unwrap();
                for thread in [&mut own, &mut stored] {
                    let outcome = how.finish(agent.run_on(thread, "and now?")).await.unwrap();
                    assert_eq!(said(&outcome), "u a");
                    let shown = asked.last_asked().unwrap().messages;
                    assert_valid(&shown);
                    let history = owned(&thread.history());
                    assert_eq!(history.len(), part.len() + 2);
                    assert_eq!(bare(&history[..part.len()]), part);
                    assert_eq!(bare(&shown[..part.len()]), part);
                }
                assert_eq!(tide.runs(), 0);
            }
        }
    });
}

#[test]
fn b218_a_real_result_that_comes_late_is_kept_beside_and_shown_instead() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (tide, gate) = gated("tide");
        let asked = client([Step::calls([("c1", "tide", "{}")])]);
        let agent = agent(&process, &asked, &[&tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let token = tokio_util::sync::CancellationToken::new();
        let run = agent.run_on(&thread, "when?").cancelled_by(token.clone());
        let task = crate::threads::actions::start(how, run);
        gate.reached().await;
        token.cancel();
        let cut = task.await.unwrap().unwrap();
        assert_eq!(said(&cut), "u a(c1) t(c1:unknown)");

        let call = cut.messages[1].contents[0].as_tool_call().unwrap();
        let made_up = output(&cut.messages[2].contents[0]);
        let real = call.answer(Outcome::Ok, Output::Text("04:12 it is".into()));
        let late = vec![
            Message::new(Role::Tool, vec![real.into()]),
            Message::user("it came"),
        ];
        asked.push(Step::text("at four"));
        how.finish(agent.run_on(&thread, late)).await.unwrap();
        let stored = owned(&process.threads().open(id).await.unwrap().history());
        assert_eq!(short(&stored), "u a(c1) t(c1:unknown) t(c1) u a");
        let shown = asked.last_asked().unwrap().messages;
        assert_eq!(short(&shown), "u a(c1) t(c1:unknown) t(c1) u");
        assert_valid(&shown);
        for wire in VENDORS {
            let body = rendered(&shown, &wire);
            assert_eq!(body.matches("04:12 it is").count(), 1, "{wire:?}: {body}");
            assert!(!body.contains(&made_up), "{wire:?}: {body}");
        }
    });
}
