use std::fmt::Write as _;

use serde_json::{Value, json};
use throughline_model::{Wire, json as exact};
use throughline_wire::sse::{Decoder, End, Limits};
use throughline_wire::{assemble, codec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Extent, Fault, KEY, Origins, Reply, Upstream, Verdict};
use crate::scripted::Reading;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

/// A request that the vendor accepts.
fn good(wire: &Wire, reading: Reading) -> (String, Value) {
    let stream = reading == Reading::Streamed;
    let said = json!([{"role": "user", "content": "hello"}]);
    match wire {
        Wire::OpenAiResponses => (
            "/v1/responses".into(),
            json!({"model": "gpt-5", "input": said, "stream": stream, "store": false}),
        ),
        Wire::Foundry => (
            "/api/projects/harbour/openai/v1/responses".into(),
            json!({"model": "gpt-5", "stream": stream,
                "input": [{"type": "message", "role": "user", "content": "hello"}]}),
        ),
        Wire::OpenAiChat => {
            let mut body = json!({"model": "gpt-5", "messages": said, "stream": stream});
            if stream {
                body["stream_options"] = json!({"include_usage": true});
            }
            ("/v1/chat/completions".into(), body)
        }
        Wire::Anthropic => (
            "/v1/messages".into(),
            json!({"model": "claude", "max_tokens": 100, "messages": said, "stream": stream}),
        ),
        Wire::Gemini => (
            match reading {
                Reading::Whole => "/v1beta/models/gemini-3:generateContent".into(),
                Reading::Streamed => "/v1beta/models/gemini-3:streamGenerateContent?alt=sse".into(),
            },
            json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}),
        ),
        _ => (
            "/v1beta/interactions".into(),
            json!({"model": "gemini-3", "input": "hello", "stream": stream}),
        ),
    }
}

fn signed(wire: &Wire) -> String {
    match wire {
        Wire::Anthropic => format!("x-api-key: {KEY}\r\nanthropic-version: 2023-06-01\r\n"),
        Wire::Gemini | Wire::GeminiInteractions => format!("x-goog-api-key: {KEY}\r\n"),
        _ => format!("authorization: Bearer {KEY}\r\n"),
    }
}

/// Sends a request unchanged, and reads the whole response: status and body.
async fn send(upstream: &Upstream, head: &str, body: &str) -> (u16, Vec<u8>) {
    let address = upstream.origin();
    let address = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    // The server closes the connection after its response, because nothing more can arrive.
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // A reset ends the response, too.
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return (0, answer);
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer[head.len() + 4..].to_vec();
    let body = match head.contains("transfer-encoding: chunked") {
        true => unchunked(&body),
        false => body,
    };
    (status, body)
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let rest = &bytes[end + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        bytes = rest.get(size + 2..).unwrap_or_default();
    }
    body
}

async fn post(upstream: &Upstream, target: &str, body: &Value) -> (u16, Vec<u8>) {
    let wire = upstream.wire();
    let head = format!(
        "POST {target} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{}",
        signed(wire).trim_end()
    );
    send(upstream, &head, &body.to_string()).await
}

fn reply() -> Reply {
    Reply::text("La marée haute est à 04:12, à bientôt.")
        .and_calls([("tide", r#"{"port":"Brest"}"#), ("tide", "{}")])
        .reasoning_first("They want the tide.")
        .with_usage(40, 20)
}

#[test]
fn whole_and_streamed_answers_are_the_vendors_and_the_same() {
    run(async {
        for wire in Wire::KNOWN {
            let mut read = Vec::new();
            for reading in [Reading::Whole, Reading::Streamed] {
                let upstream = Upstream::start(wire.clone(), [reply()]).await;
                let (target, body) = good(&wire, reading);
                let (status, answer) = post(&upstream, &target, &body).await;
                let text = String::from_utf8(answer).unwrap();
                assert_eq!(status, 200, "{wire}: {text}");
                let codec = codec(&wire).unwrap();
                read.push(match reading {
                    Reading::Whole => codec
                        .decode_response(&exact::parse(&text).unwrap())
                        .unwrap(),
                    Reading::Streamed => {
                        let mut decoder = Decoder::new(Limits::default());
                        decoder.push(text.as_bytes());
                        let mut frames = Vec::new();
                        while let Some(frame) = decoder.next_frame().unwrap() {
                            frames.push(frame);
                        }
                        assert_eq!(decoder.finish().unwrap(), End::Complete);
                        assert!(frames.len() > 8, "{wire}: {}", frames.len());
                        assemble(codec, &frames).unwrap()
                    }
                });
            }
            assert_eq!(read[0], read[1], "{wire}");
            assert!(read[0].usage.is_some(), "{wire}");
        }
    });
}

#[test]
fn what_a_vendor_refuses_is_refused_in_its_words() {
    run(async {
        for wire in Wire::KNOWN {
            let upstream = Upstream::start(wire.clone(), [reply()]).await;
            let (target, body) = good(&wire, Reading::Whole);
            let text = body.to_string();
            let json = "content-type: application/json";
            let key = signed(&wire);
            let key = key.trim_end();
            let mut unknown = body.clone();
            unknown["brand_new"] = json!(1);
            let cases = [
                (
                    format!("POST /nowhere HTTP/1.1\r\n{json}\r\n{key}"),
                    text.clone(),
                ),
                (
                    format!("GET {target} HTTP/1.1\r\n{json}\r\n{key}"),
                    text.clone(),
                ),
                (format!("POST {target} HTTP/1.1\r\n{json}"), text.clone()),
                (format!("POST {target} HTTP/1.1\r\n{key}"), text.clone()),
                (
                    format!("POST {target} HTTP/1.1\r\n{json}\r\n{key}"),
                    "{".into(),
                ),
                (
                    format!("POST {target} HTTP/1.1\r\n{json}\r\n{key}"),
                    "{}".into(),
                ),
                (
                    format!("POST {target} HTTP/1.1\r\n{json}\r\n{key}"),
                    unknown.to_string(),
                ),
            ];
            let count = cases.len();
            for (head, body) in cases {
                let (status, answer) = send(&upstream, &head, &body).await;
                assert!((400..500).contains(&status), "{wire} {head}: {status}");
                let answer = String::from_utf8(answer).unwrap();
                let parsed = exact::parse(&answer).unwrap();
                let error = codec(&wire).unwrap().decode_error(&parsed);
                assert!(
                    error.is_some_and(|error| !error.message.is_empty()),
                    "{answer}"
                );
            }
            assert_eq!(upstream.counts().refused, count, "{wire}");
            assert_eq!(upstream.left(), 1, "{wire}");
            assert!(!format!("{:?}", upstream.requests()).contains(KEY));
        }
    });
}

#[test]
fn histories_are_held_against_what_was_issued_and_kept() {
    run(async {
        let wire = Wire::OpenAiResponses;
        let upstream = Upstream::start(wire, [reply(), Reply::text("05:30")]).await;
        let first = json!({"model": "gpt-5", "input": "hello"});
        let (_, answer) = post(&upstream, "/v1/responses", &first).await;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let chain = |outputs: Vec<&str>, previous: &Value| {
            let outputs: Vec<Value> = outputs
                .into_iter()
                .map(|id| json!({"type": "function_call_output", "call_id": id, "output": "ok"}))
                .collect();
            json!({"model": "gpt-5", "previous_response_id": previous, "input": outputs})
        };
        let calls: Vec<&str> = answer["output"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["call_id"].as_str())
            .collect();
        let one_open = chain(vec![calls[0]], &answer["id"]);
        assert_eq!(post(&upstream, "/v1/responses", &one_open).await.0, 400);
        let stranger = chain(vec!["call_other", calls[0], calls[1]], &answer["id"]);
        assert_eq!(post(&upstream, "/v1/responses", &stranger).await.0, 400);
        let nowhere = chain(calls.clone(), &json!("resp_nowhere"));
        assert_eq!(post(&upstream, "/v1/responses", &nowhere).await.0, 400);
        let both = chain(calls, &answer["id"]);
        assert_eq!(post(&upstream, "/v1/responses", &both).await.0, 200);
        let last = upstream.requests().pop().unwrap();
        assert_eq!(last.verdict, Verdict::Accepted(Reading::Whole));

        // A signature that this server never issued, unless it accepts any.
        let forged = json!({"model": "claude", "max_tokens": 100, "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "forged"},
                {"type": "text", "text": "Hello."}]},
            {"role": "user", "content": "again"}]});
        for (origins, status) in [(Origins::Own, 400), (Origins::Any, 200)] {
            let upstream = Upstream::of(Wire::Anthropic)
                .script([Reply::text("Hello.")])
                .origins(origins)
                .start()
                .await;
            let (came, answer) = post(&upstream, "/v1/messages", &forged).await;
            assert_eq!(came, status, "{}", String::from_utf8_lossy(&answer));
        }
    });
}

#[test]
fn a_fault_lasts_as_long_as_it_is_told_to() {
    run(async {
        let upstream = Upstream::of(Wire::OpenAiChat)
            .script([Reply::text("hello")])
            .fault(Fault::ServerError, Extent::Times(2))
            .start()
            .await;
        let (target, body) = good(&Wire::OpenAiChat, Reading::Whole);
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(post(&upstream, &target, &body).await.0);
        }
        assert_eq!(seen, [500, 500, 200, 501]);
        upstream.inflict(Fault::Refused, Extent::Always).await;
        let address = upstream.origin();
        let address = address.trim_start_matches("http://");
        assert!(TcpStream::connect(address).await.is_err());
        upstream.heal().await;
        upstream.push(Reply::text("hello"));
        assert_eq!(post(&upstream, &target, &body).await.0, 200);
    });
}

/// The table of `docs/faults.md`.
fn table() -> String {
    let mut table = String::from(
        "| fault | what happens | whole | streamed | whole, tried again | streamed, tried again |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    // Any format without exceptions.
    let wire = Wire::OpenAiChat;
    for fault in Fault::ALL {
        let (name, about) = fault.about();
        let cells = [Reading::Whole, Reading::Streamed];
        let once = cells.map(|reading| fault.expected(&wire, reading));
        let again = cells.map(|reading| fault.expected_with_retries(&wire, reading));
        writeln!(
            table,
            "| `{name}` | {about} | {} | {} | {} | {} |",
            once[0], once[1], again[0], again[1]
        )
        .unwrap();
    }
    table
}

#[test]
fn the_docs_describe_every_fault_and_its_outcome() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/faults.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let table = table();
    assert!(
        docs.contains(&table),
        "docs/faults.md wants this table:\n{table}"
    );
    for fault in Fault::ALL {
        assert_eq!(Fault::named(fault.name()), Some(fault));
    }
}
