//! Conversations that a strict server accepts, whole and streamed.

use std::sync::Arc;

use throughline::ChatClient;
use throughline::client::{ErrorKind, RetryPolicy, View};
use throughline::model::{
    Body, Content, Effort, Media, MediaKind, MediaSource, Message, Outcome, Output, Response, Role,
    Stop, Wire,
};
use throughline_testkit::scripted::Reading;
use throughline_testkit::upstream::{KEY, Recorded, Reply, Script, Upstream};

use crate::upstreams::common::{
    Ask, READINGS, WIRES, all_words, ask, client_of, run, run_in_turns,
};
use crate::upstreams::log_capture;

/// A red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

fn script() -> Script {
    Script::new([
        Reply::text("Let me look that up, à bientôt.")
            .and_calls([
                ("tide", r#"{"port":"Brest"}"#),
                ("berths", r#"{"port":"Brest"}"#),
            ])
            .reasoning_first("They want the tide and a berth.")
            .with_usage(120, 40),
        Reply::calls([("tide", r#"{"port":"Douarnenez"}"#)])
            .reasoning_first("Brest is full; what of Douarnenez?"),
        Reply::text("High water at 04:12; berth 7 is free.").reasoning_first("Now I know."),
        Reply::text("You are welcome. ⚓"),
        Reply::calls([("tide", r#"{"port":"Ouessant"}"#)]).reasoning_first("One more."),
        Reply::text("05:30."),
    ])
}

/// The results for the calls of a response.
fn results(response: &Response) -> Option<Message> {
    let calls = response.messages[0].contents.iter();
    let results: Vec<Content> = calls
        .filter_map(Content::as_tool_call)
        .map(|call| {
            let outcome = match call.name.as_str() {
                "berths" => (
                    Outcome::Error,
                    Output::Text("the harbour office is shut".into()),
                ),
                _ => (Outcome::Ok, Output::Text(format!("04:12 {}", call.name))),
            };
            Content::from(call.answer(outcome.0, outcome.1))
        })
        .collect();
    (!results.is_empty()).then(|| Message::new(Role::Tool, results))
}

/// Plays the script to its end; returns every answer.
async fn talk(wire: Wire, reading: Reading, effort: Option<Effort>) -> (Vec<Response>, Upstream) {
    let upstream = Upstream::start(wire, script()).await;
    let client: Arc<dyn ChatClient> = Arc::new(client_of(&upstream).build_bare().unwrap());
    let mut with = Ask::with_tools();
    with.settings.effort = effort;
    let picture = Content::new(Body::Media(Media {
        kind: MediaKind::Image,
        media_type: Some("image/png".into()),
        source: MediaSource::Data(PIXEL.into()),
        name: None,
        transcript: None,
    }));
    let first = Message::new(
        Role::User,
        vec![
            Content::text("When can I come in? This is my boat."),
            picture,
        ],
    );
    let mut view = View::new(vec![first]);
    let mut answers = Vec::new();
    let mut more = ["Thank you!", "And at Ouessant?"].into_iter();
    loop {
        let answer = ask(&client, &with.about(&view), reading)
            .await
            .unwrap_or_else(|error| {
                let last = upstream.requests().pop();
                panic!("{} {reading:?}: {error}\n{last:#?}", upstream.wire())
            });
        for message in &answer.messages {
            view.push(message.clone());
        }
        match results(&answer) {
            Some(results) => view.push(results),
            None => match more.next() {
                Some(text) => view.push(Message::user(text)),
                None => {
                    answers.push(answer);
                    return (answers, upstream);
                }
            },
        }
        answers.push(answer);
    }
}

#[test]
fn a_strict_server_accepts_every_turn_and_both_readings_are_one_answer() {
    log_capture::begin();
    run(async {
        for wire in WIRES {
            for effort in [None, Some(Effort::Medium), Some(Effort::Off)] {
                let (whole, server) = talk(wire.clone(), Reading::Whole, effort).await;
                let (streamed, _) = talk(wire.clone(), Reading::Streamed, effort).await;
                assert_eq!(whole.len(), 6, "{wire}");
                assert_eq!(whole[0].stop, Stop::ToolCalls, "{wire}");
                assert_eq!(whole[2].stop, Stop::Done, "{wire}");
                for (turn, (whole, streamed)) in whole.iter().zip(&streamed).enumerate() {
                    assert_eq!(whole, streamed, "{wire}, answer {turn}");
                }
                assert_eq!(server.left(), 0, "{wire}");
                assert!(server.requests().iter().all(Recorded::is_accepted));
            }
        }
    });
    assert!(!log_capture::logged().contains(KEY));
}

#[test]
fn reasoning_goes_back_to_the_vendor_that_thought() {
    run(async {
        for (wire, mark) in [
            (Wire::OpenAiResponses, "encrypted_content"),
            (Wire::Anthropic, "signature"),
            (Wire::Gemini, "thoughtSignature"),
        ] {
            let (_, server) = talk(wire.clone(), Reading::Streamed, Some(Effort::Medium)).await;
            let second = &server.requests()[1];
            let text = second.body.to_string();
            assert!(text.contains(mark), "{wire}: {text}");
            assert!(text.contains("sealedA=="), "{wire}: {text}");
        }
    });
}

#[test]
fn one_connection_serves_one_call_after_the_other() {
    // With several threads a call may begin before the connection is back in the pool.
    run_in_turns(async {
        for wire in WIRES {
            for reading in READINGS {
                let script = Script::respond_with(|_| Reply::text("High water at 04:12."));
                let upstream = Upstream::start(wire.clone(), script).await;
                let client: Arc<dyn ChatClient> =
                    Arc::new(client_of(&upstream).build_bare().unwrap());
                let view = View::new(vec![Message::user("When is high water?")]);
                for _ in 0..10 {
                    let answer = ask(&client, &Ask::plain().about(&view), reading).await;
                    assert_eq!(answer.unwrap().messages[0].text(), "High water at 04:12.");
                }
                let counts = upstream.counts();
                assert_eq!(
                    (counts.requests, counts.connections),
                    (10, 1),
                    "{wire} {reading:?}"
                );
            }
        }
    });
}

#[test]
fn a_key_that_a_server_repeats_goes_no_further() {
    log_capture::begin();
    run(async {
        for wire in WIRES {
            for reading in READINGS {
                let words = format!(
                    r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","type":"x","code":"{KEY}","status":"{KEY}","param":null}},"type":"error"}}"#
                );
                let reply =
                    Reply::raw(401, "application/json", words).with_header("x-request-id", "req_1");
                let upstream = Upstream::start(wire.clone(), [reply]).await;
                let client = client_of(&upstream)
                    .retry(RetryPolicy::never())
                    .build()
                    .unwrap();
                let view = View::new(vec![Message::user("hello")]);
                let error = ask(&client, &Ask::plain().about(&view), reading).await;
                let error = error.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Auth, "{wire}");
                assert!(!all_words(&error).contains(KEY), "{wire}: {error:?}");
                assert!(!format!("{:?}", upstream.requests()).contains(KEY));
            }
        }
    });
    assert!(!log_capture::logged().contains(KEY));
}

#[test]
fn a_wrong_key_is_refused_before_anything_is_answered() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::start(wire.clone(), [Reply::text("hello")]).await;
            let client = client_of(&upstream)
                .api_key("sk-another")
                .retry(RetryPolicy::never())
                .build()
                .unwrap();
            let view = View::new(vec![Message::user("hello")]);
            let error = ask(&client, &Ask::plain().about(&view), Reading::Whole).await;
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Auth, "{wire}");
            assert_eq!(upstream.left(), 1, "{wire}");
        }
    });
}
