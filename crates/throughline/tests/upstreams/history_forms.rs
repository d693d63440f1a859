//! The form in which earlier calls and results are sent, and services that refuse native items.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline::ChatClient;
use throughline::client::render::{Native, Options, TextEmbed, ToolEntry};
use throughline::client::{
    ChatRequest, ClientBuilder, ClientEvent, ErrorKind, HistoryForm, HistoryOwner, Markers,
    Observer, Target, ToolHistoryStrategy, View,
};
use throughline::compact::{Call, Planned, Policy, Scale, ToolHistory};
use throughline::model::{
    Body, CallId, Content, Message, Outcome, Output, Response, Role, ToolCall, Wire,
};
use throughline::store::ManualClock;
use throughline_testkit::scripted::Reading;
use throughline_testkit::upstream::{ModelInput, Recorded, Reply, Script, Upstream};

use crate::upstreams::common::{Ask, READINGS, WIRES, ask, client_of, run};

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A turn in which two tools were called.
fn turn(number: usize) -> Vec<Message> {
    let call = |name: &str, port: &str| {
        let id = CallId::natural(&format!("call_{name}_{number}")).unwrap();
        ToolCall::function(id, name, format!(r#"{{"port":"{port}"}}"#))
    };
    let calls = [
        call("tide", &format!("Brest-{number}")),
        call("berths", "all"),
    ];
    let results = calls.iter().map(|call| {
        let outcome = match call.name.as_str() {
            "berths" => Outcome::Error,
            _ => Outcome::Ok,
        };
        let text = format!("{} says {number}", call.name);
        Content::from(call.answer(outcome, Output::Text(text)))
    });
    let results = Message::new(Role::Tool, results.collect());
    let mut said = vec![Content::text(format!("Looking, {number}."))];
    said.extend(calls.into_iter().map(Content::from));
    vec![
        Message::user(format!("Question {number}?")),
        Message::new(Role::Assistant, said),
        results,
        Message::new(
            Role::Assistant,
            vec![Content::text(format!("Answer {number}."))],
        ),
    ]
}

/// A history of turns with tools, and a question.
fn history(turns: usize) -> View {
    let mut view = View::new((0..turns).flat_map(turn));
    view.push(Message::user("And now?"));
    view
}

/// What the model was sent in each request, as lines.
fn heard(upstream: &Upstream) -> Vec<Vec<String>> {
    let requests = upstream.requests();
    let lines = requests
        .iter()
        .map(|request| ModelInput::of(upstream.wire(), &request.body).lines());
    lines.collect()
}

fn is_native(lines: &[String]) -> bool {
    lines
        .iter()
        .any(|line| line.starts_with("call: ") || line.starts_with("result: "))
}

/// For each request, whether it had calls or results as native items.
fn natives(upstream: &Upstream) -> Vec<bool> {
    heard(upstream)
        .iter()
        .map(|lines| is_native(lines))
        .collect()
}

/// An "invalid input" error in each vendor's form.
fn invalid_input(wire: &Wire) -> Reply {
    refusal(wire, 400, "Invalid input")
}

fn refusal(wire: &Wire, status: u16, message: &str) -> Reply {
    let body = match wire {
        Wire::Anthropic => format!(
            r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#
        ),
        Wire::Gemini | Wire::GeminiInteractions => format!(
            r#"{{"error":{{"code":{status},"message":"{message}","status":"INVALID_ARGUMENT"}}}}"#
        ),
        _ => format!(
            r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":null,"code":null}}}}"#
        ),
    };
    Reply::raw(status, "application/json", body)
}

fn has_items(wire: &Wire, request: &Recorded) -> bool {
    is_native(&ModelInput::of(wire, &request.body).lines())
}

/// A server that refuses calls and results.
async fn text_only(wire: &Wire) -> Upstream {
    let speaks = wire.clone();
    let script = Script::respond_with(move |request| match has_items(&speaks, request) {
        true => invalid_input(&speaks),
        false => Reply::text("As you say."),
    });
    Upstream::start(wire.clone(), script).await
}

fn bare(builder: ClientBuilder) -> Arc<dyn ChatClient> {
    Arc::new(builder.build_bare().unwrap())
}

/// An observer that records fallbacks.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn observe(&self, event: &ClientEvent<'_>) {
        if let ClientEvent::FellBack { upstream, model } = event {
            self.0.lock().unwrap().push(format!("{upstream} {model}"));
        }
    }
}

impl Notes {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[test]
fn b173_text_has_no_call_and_each_result_under_the_name_of_its_tool() {
    run(async {
        for wire in WIRES {
            for reading in READINGS {
                let script = Script::respond_with(|_| Reply::text("Yes."));
                let upstream = Upstream::start(wire.clone(), script).await;
                let (with, view) = (Ask::with_tools(), history(3));
                for form in [HistoryForm::Native, HistoryForm::Text] {
                    let client = bare(client_of(&upstream).tool_history(form));
                    let native = form == HistoryForm::Native;
                    assert_eq!(client.abilities().native_tool_history, native);
                    ask(&client, &with.about(&view), reading).await.unwrap();
                }
                assert!(upstream.requests().iter().all(Recorded::is_accepted));
                assert_eq!(natives(&upstream), [true, false], "{wire}");
                let bodies = upstream.requests();
                let bodies = bodies.iter().map(|request| request.body.to_string());
                let bodies: Vec<String> = bodies.collect();
                // The same groups, each in its form.
                for number in 0..3 {
                    let port = format!("Brest-{number}");
                    let said = format!("tide says {number}");
                    assert_eq!(bodies[0].matches(&port).count(), 1, "{wire}: {}", bodies[0]);
                    assert_eq!(bodies[0].matches(&said).count(), 1, "{wire}: {}", bodies[0]);
                    let shown = format!(
                        "[Result of tide, which was given port: \"{port}\"]\n{said}\n\
                         [End of result]\n\n\
                         [Result of berths, which was given port: \"all\" (error)]\n\
                         berths says {number}\n[End of result]"
                    );
                    let shown = serde_json::to_string(&shown).unwrap();
                    assert_eq!(
                        bodies[1].matches(&shown).count(),
                        1,
                        "{wire}: {}",
                        bodies[1]
                    );
                }
                if wire == Wire::GeminiInteractions {
                    // The mock server does not parse the texts of this format.
                    continue;
                }
                let told = heard(&upstream);
                let (native, text) = (&told[0], &told[1]);
                // Nothing else differs.
                let plain = |lines: &[String]| -> Vec<String> {
                    let said = |line: &&String| {
                        let shown = line.starts_with("user: [Result of ");
                        !shown && !line.starts_with("call: ") && !line.starts_with("result: ")
                    };
                    lines.iter().filter(said).cloned().collect()
                };
                assert_eq!(plain(native), plain(text), "{wire}");
            }
        }
    });
}

#[test]
fn b173_a_compacted_view_keeps_the_same_groups_in_both_forms() {
    let mut tools = ToolHistory::new(Policy {
        threshold: 50,
        ..Policy::default()
    });
    let mut seq = 1;
    for mut message in (0..12).flat_map(turn) {
        let places = message.contents.len() as u64;
        // Long enough to be digested.
        for content in &mut message.contents {
            if let Body::ToolResult(result) = &mut content.body
                && let Output::Text(text) = &mut result.output
            {
                text.push_str(&"\nNothing else was seen from the pier.".repeat(20));
            }
        }
        tools.push(seq, message);
        seq += places;
    }
    tools.push(seq, Message::user("And now?"));
    let call = Call {
        overhead: 0,
        scale: Scale::ONE,
        open: Vec::new(),
    };
    let Ok(Planned::Epoch(epoch, report)) = tools.plan(&call) else {
        panic!("the history is far above the threshold");
    };
    tools.install(epoch);
    let view = View::new(tools.view().iter().cloned());
    run(async {
        for wire in WIRES {
            let script = Script::respond_with(|_| Reply::text("Yes."));
            let upstream = Upstream::start(wire.clone(), script).await;
            let with = Ask::with_tools();
            for form in [HistoryForm::Native, HistoryForm::Text] {
                let client = bare(client_of(&upstream).tool_history(form));
                let answer = ask(&client, &with.about(&view), Reading::Whole).await;
                answer.unwrap_or_else(|error| panic!("{wire} {form}: {error}"));
            }
            assert_eq!(natives(&upstream), [true, false], "{wire}");
            let bodies = upstream.requests();
            let bodies = bodies.iter().map(|request| request.body.to_string());
            let bodies: Vec<String> = bodies.collect();
            let kept: Vec<Vec<usize>> = bodies
                .iter()
                .map(|body| {
                    let whole = |n: &usize| body.contains(&format!("tide says {n}\\nNothing"));
                    (0..12).filter(whole).collect()
                })
                .collect();
            assert_eq!(kept[0], kept[1], "{wire}");
            assert_eq!(kept[0], [9, 10, 11], "{wire}: whole groups until six calls");
            // Digests are text in both, byte for byte.
            let digests = |body: &str| -> Vec<String> {
                let lines = body.split("[Earlier: ").skip(1);
                let lines = lines.filter_map(|line| line.split_once(']'));
                lines.map(|(line, _)| line.to_owned()).collect()
            };
            assert_eq!(digests(&bodies[0]), digests(&bodies[1]), "{wire}");
            let digests = digests(&bodies[0]).len();
            assert!(
                digests >= 18,
                "{wire}: {digests} for nine turns of two calls"
            );
        }
    });
    println!("groups digested={}", report.groups_digested);
}

#[test]
fn b177_auto_repeats_once_as_text_and_remembers_it_for_upstream_and_model() {
    run(async {
        for wire in WIRES {
            for reading in READINGS {
                let upstream = text_only(&wire).await;
                let notes = Arc::new(Notes::default());
                let client = client_of(&upstream)
                    .upstream("harbour")
                    .observer(notes.clone())
                    .build()
                    .unwrap();
                assert!(client.abilities().native_tool_history);
                let (with, view) = (Ask::with_tools(), history(2));
                let answer = ask(&client, &with.about(&view), reading).await.unwrap();
                assert_eq!(answer.messages[0].text(), "As you say.");
                assert_eq!(natives(&upstream), [true, false], "{wire} {reading:?}");
                // The next call sends text at once, in the other reading too.
                for reading in READINGS {
                    ask(&client, &with.about(&view), reading).await.unwrap();
                }
                assert_eq!(natives(&upstream), [true, false, false, false], "{wire}");
                // Another model of the same service is not affected.
                let other = ChatRequest {
                    model: Some("other"),
                    ..with.about(&view)
                };
                ask(&client, &other, reading).await.unwrap();
                assert_eq!(natives(&upstream)[4..], [true, false], "{wire}");
                let model = client.abilities().model.clone().unwrap();
                let expected = [format!("harbour {model}"), "harbour other".to_owned()];
                assert_eq!(notes.all(), expected, "{wire}");
                assert!(client.abilities().native_tool_history);
            }
        }
    });
}

#[test]
fn b177_another_error_kind_is_told_as_it_is_and_nothing_is_repeated() {
    let others = [
        (
            400,
            "maximum context length is 8192 tokens",
            ErrorKind::TooLong,
        ),
        (400, "Unknown parameter: temperature", ErrorKind::Invalid),
        (400, "Invalid schema for function tide", ErrorKind::Invalid),
        (400, "the request was refused", ErrorKind::Invalid),
        (404, "Invalid input", ErrorKind::NotFound),
        (401, "Invalid input", ErrorKind::Auth),
        (429, "Invalid input", ErrorKind::RateLimited),
        (503, "Invalid input", ErrorKind::Unavailable),
    ];
    run(async {
        for wire in WIRES {
            for reading in READINGS {
                for (status, message, kind) in others {
                    let speaks = wire.clone();
                    let script = Script::respond_with(move |_| refusal(&speaks, status, message));
                    let upstream = Upstream::start(wire.clone(), script).await;
                    let client = bare(client_of(&upstream));
                    let (with, view) = (Ask::with_tools(), history(1));
                    let error = ask(&client, &with.about(&view), reading).await.unwrap_err();
                    assert_eq!(error.kind(), kind, "{wire} {message}");
                    assert_eq!(natives(&upstream), [true], "{wire} {message}");
                    ask(&client, &with.about(&view), reading).await.unwrap_err();
                    assert_eq!(natives(&upstream), [true, true], "{wire} {message}");
                }
            }
        }
    });
}

#[test]
fn b177_without_calls_in_the_history_there_is_nothing_to_repeat() {
    run(async {
        for wire in WIRES {
            for reading in READINGS {
                let speaks = wire.clone();
                let script = Script::respond_with(move |_| invalid_input(&speaks));
                let upstream = Upstream::start(wire.clone(), script).await;
                let client = bare(client_of(&upstream));
                let view = View::new([Message::user("When is high water?")]);
                let with = Ask::with_tools();
                let error = ask(&client, &with.about(&view), reading).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Invalid, "{wire}");
                assert_eq!(upstream.counts().requests, 1, "{wire}");
            }
        }
    });
}

#[test]
fn b177_if_text_is_refused_too_the_first_refusal_is_told_and_nothing_is_remembered() {
    run(async {
        for wire in WIRES {
            for reading in READINGS {
                let speaks = wire.clone();
                let script =
                    Script::respond_with(move |request| match has_items(&speaks, request) {
                        true => invalid_input(&speaks),
                        false => refusal(&speaks, 403, "not you"),
                    });
                let upstream = Upstream::start(wire.clone(), script).await;
                let notes = Arc::new(Notes::default());
                let client = bare(client_of(&upstream).observer(notes.clone()));
                let (with, view) = (Ask::with_tools(), history(1));
                for round in 1..=2 {
                    let error = ask(&client, &with.about(&view), reading).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Invalid, "{wire}: {error}");
                    assert!(error.to_string().contains("Invalid input"), "{error}");
                    assert_eq!(natives(&upstream), [true, false].repeat(round), "{wire}");
                }
                assert!(notes.all().is_empty());
            }
        }
    });
}

#[test]
fn b177_after_its_time_native_is_tried_again_and_comes_back() {
    run(async {
        for wire in WIRES {
            let learnt = Arc::new(Mutex::new(false));
            let (speaks, knows) = (wire.clone(), Arc::clone(&learnt));
            let script = Script::respond_with(move |request| {
                match has_items(&speaks, request) && !*knows.lock().unwrap() {
                    true => invalid_input(&speaks),
                    false => Reply::text("As you say."),
                }
            });
            let upstream = Upstream::start(wire.clone(), script).await;
            let clock = Arc::new(ManualClock::at(1_000));
            let client = bare(client_of(&upstream).clock(clock.clone()));
            let (with, view) = (Ask::with_tools(), history(1));
            let request = with.about(&view);
            let mut expected = vec![true, false];
            let all = [Reading::Whole, Reading::Streamed];
            ask(&client, &request, all[0]).await.unwrap();
            clock.advance(A_DAY - Duration::from_millis(1));
            ask(&client, &request, all[1]).await.unwrap();
            expected.push(false);
            assert_eq!(natives(&upstream), expected, "{wire}: a day is not over");
            clock.advance(Duration::from_millis(1));
            ask(&client, &request, all[1]).await.unwrap();
            expected.extend([true, false]);
            assert_eq!(natives(&upstream), expected, "{wire}: tried again");
            ask(&client, &request, all[0]).await.unwrap();
            expected.push(false);
            assert_eq!(natives(&upstream), expected, "{wire}: remembered anew");
            *learnt.lock().unwrap() = true;
            clock.advance(A_DAY);
            for reading in all {
                ask(&client, &request, reading).await.unwrap();
                expected.push(true);
            }
            assert_eq!(natives(&upstream), expected, "{wire}: it has learnt");
        }
    });
}

#[test]
fn b177_calls_at_the_same_time_each_repeat_at_most_once_and_share_what_is_learnt() {
    const CALLERS: usize = 8;
    run(async {
        for wire in WIRES {
            let upstream = text_only(&wire).await;
            let client = client_of(&upstream).build().unwrap();
            let view = Arc::new(history(2));
            for round in 0..2 {
                let before = upstream.counts().requests;
                let mut callers = tokio::task::JoinSet::new();
                for caller in 0..CALLERS {
                    let (client, view) = (Arc::clone(&client), Arc::clone(&view));
                    callers.spawn(async move {
                        let with = Ask::with_tools();
                        let reading = READINGS[caller % READINGS.len()];
                        ask(&client, &with.about(&view), reading).await
                    });
                }
                while let Some(ended) = callers.join_next().await {
                    let answer: Response = ended.unwrap().unwrap();
                    assert_eq!(answer.messages[0].text(), "As you say.", "{wire}");
                }
                let sent = natives(&upstream)[before..].to_vec();
                let native = sent.iter().filter(|native| **native).count();
                assert_eq!(sent.len(), CALLERS + native, "{wire}");
                match round {
                    0 => assert!((1..=CALLERS).contains(&native), "{wire}"),
                    _ => assert_eq!(native, 0, "{wire}: everybody knows"),
                }
            }
        }
    });
}

/// A stream that ends with "invalid input", with or without output before.
fn broken_stream(wire: &Wire, output: bool) -> Option<Reply> {
    let frames = match (wire, output) {
        (Wire::OpenAiChat, false) => {
            "data: {\"error\":{\"message\":\"Invalid input\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}\n\n"
        }
        (Wire::OpenAiChat, true) => {
            "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"As\"},\"finish_reason\":null}]}\n\ndata: {\"error\":{\"message\":\"Invalid input\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}\n\n"
        }
        (Wire::Anthropic, false) => {
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Invalid input\"}}\n\n"
        }
        (Wire::Anthropic, true) => {
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"As\"}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Invalid input\"}}\n\n"
        }
        _ => return None,
    };
    Some(Reply::raw(200, "text/event-stream", frames))
}

#[test]
fn b177_a_refusal_inside_a_stream_counts_before_any_output_only() {
    run(async {
        for wire in [Wire::OpenAiChat, Wire::Anthropic] {
            for output in [false, true] {
                let speaks = wire.clone();
                let script =
                    Script::respond_with(move |request| match has_items(&speaks, request) {
                        true => broken_stream(&speaks, output).unwrap(),
                        false => Reply::text("As you say."),
                    });
                let upstream = Upstream::start(wire.clone(), script).await;
                let client = bare(client_of(&upstream));
                let (with, view) = (Ask::with_tools(), history(1));
                let answer = ask(&client, &with.about(&view), Reading::Streamed).await;
                match output {
                    false => {
                        assert_eq!(answer.unwrap().messages[0].text(), "As you say.");
                        assert_eq!(natives(&upstream), [true, false], "{wire}");
                    }
                    true => {
                        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Invalid, "{wire}");
                        assert_eq!(natives(&upstream), [true], "{wire}");
                    }
                }
            }
        }
    });
}

#[test]
fn native_and_own_strategies_are_never_tried_in_another_way() {
    struct Loud;
    impl ToolHistoryStrategy for Loud {
        fn keeps_calls(&self) -> bool {
            true
        }
        fn entry(&self, round: Vec<ToolEntry>) -> Vec<Message> {
            Native.entry(round)
        }
        fn summary(&self, text: &str) -> Message {
            Message::user(text.to_uppercase())
        }
    }
    run(async {
        for wire in WIRES {
            for own in [false, true] {
                let upstream = text_only(&wire).await;
                let builder = client_of(&upstream);
                let client = bare(match own {
                    true => builder.tool_history_by(Arc::new(Loud)),
                    false => builder.tool_history(HistoryForm::Native),
                });
                assert!(client.abilities().native_tool_history);
                let (with, view) = (Ask::with_tools(), history(1));
                let answer = ask(&client, &with.about(&view), Reading::Whole).await;
                assert_eq!(answer.unwrap_err().kind(), ErrorKind::Invalid, "{wire}");
                assert_eq!(natives(&upstream), [true], "{wire}");
            }
        }
    });
}

#[test]
fn markers_of_ones_own_stand_around_results() {
    run(async {
        let upstream = text_only(&Wire::OpenAiChat).await;
        let markers = Markers::new("<<{tool}>>", "<<over>>").unwrap();
        let client = bare(client_of(&upstream).text_markers(markers));
        let (with, view) = (Ask::with_tools(), history(1));
        ask(&client, &with.about(&view), Reading::Whole)
            .await
            .unwrap();
        let told = heard(&upstream)[1].join("\n");
        let shown = "<<tide, which was given port: \"Brest-0\">>\ntide says 0\n<<over>>";
        assert!(told.contains(shown), "{told}");
    });
}

#[test]
fn a_conversation_that_the_service_keeps_goes_on_in_its_own_items() {
    run(async {
        for wire in [
            Wire::OpenAiResponses,
            Wire::Foundry,
            Wire::GeminiInteractions,
        ] {
            for form in HistoryForm::ALL {
                let script = Script::new([
                    Reply::calls([("tide", r#"{"port":"Brest"}"#)]),
                    Reply::text("04:12."),
                ]);
                let upstream = Upstream::start(wire.clone(), script).await;
                let client = bare(client_of(&upstream).tool_history(form));
                let with = Ask::with_tools();
                let first = View::new([Message::user("When is high water?")]);
                let request = ChatRequest {
                    history_owner: HistoryOwner::Service { id: None },
                    ..with.about(&first)
                };
                let answer = ask(&client, &request, Reading::Whole).await.unwrap();
                let call = answer.messages[0].contents.iter();
                let call = call.filter_map(Content::as_tool_call).next().unwrap();
                let result = call.answer(Outcome::Ok, Output::Text("04:12".into()));
                let result = Message::new(Role::Tool, vec![Content::from(result)]);
                let second = View::new([result]);
                let request = ChatRequest {
                    history_owner: HistoryOwner::Service {
                        id: answer.service.as_deref(),
                    },
                    ..with.about(&second)
                };
                let answer = ask(&client, &request, Reading::Streamed).await;
                let answer = answer.unwrap_or_else(|error| panic!("{wire} {form}: {error}"));
                assert_eq!(answer.messages[0].text(), "04:12.", "{wire} {form}");
            }
        }
    });
}

#[test]
fn b174_each_request_as_text_begins_with_the_one_before_it() {
    run(async {
        for wire in WIRES {
            let script = Script::respond_with(|_| Reply::text("Yes."));
            let upstream = Upstream::start(wire.clone(), script).await;
            let client = bare(client_of(&upstream).tool_history(HistoryForm::Text));
            let with = Ask::with_tools();
            let mut view = View::default();
            for number in 0..10 {
                for message in turn(number) {
                    view.push(message);
                }
                view.push(Message::user("And now?"));
                ask(&client, &with.about(&view), Reading::Whole)
                    .await
                    .unwrap();
            }
            let requests = upstream.requests();
            let member = ["messages", "contents", "input"];
            let items: Vec<&Vec<serde_json::Value>> = requests
                .iter()
                .map(|request| {
                    let found = member.iter().find_map(|name| request.body.get(*name));
                    found.unwrap().as_array().unwrap()
                })
                .collect();
            for pair in items.windows(2) {
                let (short, long) = (pair[0], pair[1]);
                assert!(long.len() > short.len(), "{wire}");
                assert_eq!(&long[..short.len()], &short[..], "{wire}");
            }
        }
    });
}

#[test]
fn two_forms_of_one_view_are_rendered_apart_and_both_go_on() {
    for wire in WIRES {
        let target = Target::newest(wire.clone());
        let marked = TextEmbed::with_markers(Markers::new("~{tool}~", "").unwrap());
        let forms = [
            Options::default(),
            Options::text(),
            Options::with_strategy(Arc::new(marked)),
        ];
        let mut view = View::new(turn(0));
        for number in 1..6 {
            let shown: Vec<String> = forms
                .iter()
                .map(|options| {
                    let kept = view.render(&target, options).items().to_string();
                    let fresh = View::new(view.messages().iter().cloned());
                    let fresh = fresh.render(&target, options).items().to_string();
                    assert_eq!(kept, fresh, "{wire}");
                    kept
                })
                .collect();
            assert_ne!(shown[0], shown[1], "{wire}");
            assert_ne!(shown[1], shown[2], "{wire}");
            // A strategy that is made anew each time is rendered correctly too, and does not fill
            // the cache.
            let anew = Options::with_strategy(Arc::new(TextEmbed::default()));
            let anew = view.render(&target, &anew).items().to_string();
            assert_eq!(anew, shown[1], "{wire}");
            for message in turn(number) {
                view.push(message);
            }
        }
    }
}
