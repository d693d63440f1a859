//! Memory that peers make a server use: unread answers, endless answers of upstreams, and large
//! bodies. It stays within `limits.memory`, and other clients are served meanwhile.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use throughline_testkit::loopkill::read_post;
use throughline_testkit::serverkill::{Exchange, Request};
use throughline_testkit::{Scratch, property};

use crate::serverkill::process::Process;

const MEBIBYTE: usize = 1 << 20;

/// The memory limit of the server.
const LIMIT: usize = 256 * MEBIBYTE;

/// A text of 2 MB.
const LONG: usize = 2_000_000;

/// Answers by the model's name: a long one, or one of three endless kinds.
struct Upstream {
    url: String,
}

impl Upstream {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        // The thread lasts as long as the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The client may close the connection.
                std::thread::spawn(move || drop(answer(stream)));
            }
        });
        Ok(Self { url })
    }
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    while let Some(body) = read_post(&mut reader)? {
        let request: Value = serde_json::from_slice(&body)?;
        let streamed = request["stream"] == true;
        match request["model"].as_str().unwrap_or_default() {
            "endless-json" => {
                head(&mut out, "application/json")?;
                chunk(
                    &mut out,
                    "{\"id\":\"c\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"",
                )?;
                loop {
                    chunk(&mut out, &"word ".repeat(2_000))?;
                }
            }
            "endless-text" => {
                head(&mut out, "text/event-stream")?;
                loop {
                    let delta = json!({"content": "word ".repeat(200)});
                    chunk(&mut out, &event(&delta, None))?;
                }
            }
            "endless-arguments" => {
                head(&mut out, "text/event-stream")?;
                loop {
                    let function = json!({"name": "look", "arguments": "word ".repeat(200)});
                    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
                    chunk(&mut out, &event(&json!({"tool_calls": [call]}), None))?;
                }
            }
            name => {
                let text = match name {
                    "long" => "word ".repeat(LONG / 5),
                    _ => "Hello.".to_owned(),
                };
                if streamed {
                    head(&mut out, "text/event-stream")?;
                    for piece in text.as_bytes().chunks(4_000) {
                        let delta = json!({"content": String::from_utf8_lossy(piece)});
                        chunk(&mut out, &event(&delta, None))?;
                    }
                    chunk(&mut out, &event(&json!({}), Some("stop")))?;
                    chunk(&mut out, "data: [DONE]\n\n")?;
                } else {
                    head(&mut out, "application/json")?;
                    let message = json!({"role": "assistant", "content": text});
                    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
                    let whole =
                        json!({"id": "c", "object": "chat.completion", "choices": [choice]});
                    chunk(&mut out, &whole.to_string())?;
                }
                out.write_all(b"0\r\n\r\n")?;
            }
        }
    }
    Ok(())
}

fn head(out: &mut TcpStream, kind: &str) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    out.write_all(head.as_bytes())
}

fn chunk(out: &mut TcpStream, text: &str) -> std::io::Result<()> {
    out.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

fn event(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let data = json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]});
    format!("data: {data}\n\n")
}

fn ask(model: &str, streamed: bool) -> Request {
    let body = json!({"model": format!("up/{model}"), "stream": streamed, "input": "Hello"});
    Request::post("/v1/responses", body.to_string())
}

/// A body of this size, with texts that are short enough to be accepted.
fn large(bytes: usize) -> Request {
    let text = "word ".repeat(MEBIBYTE / 5);
    let item = json!({"role": "user", "content": text});
    let items = vec![item; bytes / MEBIBYTE];
    Request::post(
        "/v1/responses",
        json!({"model": "up/plain", "input": items}).to_string(),
    )
}

/// Requests plain answers until the test ends; returns their number. All must succeed.
fn plain_client(address: String, over: Arc<AtomicBool>) -> JoinHandle<Result<u64, String>> {
    std::thread::spawn(move || {
        let mut answered = 0;
        while !over.load(Ordering::Relaxed) {
            let answer = Exchange::open(&address, &ask("plain", false));
            let mut answer = answer.map_err(|error| format!("a plain request: {error}"))?;
            let body = answer
                .whole()
                .map_err(|error| format!("a plain answer: {error}"))?;
            if answer.status != 200 {
                let body = String::from_utf8_lossy(&body).into_owned();
                return Err(format!("a plain request gets {}: {body}", answer.status));
            }
            answered += 1;
        }
        Ok(answered)
    })
}

/// Sends all requests concurrently and reads the answers; returns how many had this status.
fn all_at_once(address: &str, requests: Vec<Request>, wanted: u16) -> Result<usize, String> {
    let sent: Vec<JoinHandle<std::io::Result<u16>>> = requests
        .into_iter()
        .map(|request| {
            let address = address.to_owned();
            std::thread::spawn(move || {
                let mut answer = Exchange::open(&address, &request)?;
                // The server may cut the answer off.
                let _ = answer.whole();
                Ok(answer.status)
            })
        })
        .collect();
    let mut found = 0;
    for one in sent {
        let status = one.join().map_err(|_| "a client panicked")?;
        match status {
            Ok(status) if status == wanted => found += 1,
            Ok(200 | 413 | 502 | 503) | Err(_) => {}
            Ok(status) => return Err(format!("an answer has status {status}")),
        }
    }
    Ok(found)
}

#[test]
fn r15_over_http_memory_stays_within_its_limit_whatever_peers_do() {
    let (readers, runaways, bodies) = (
        property::scaled(50),
        property::scaled(3),
        property::scaled(8),
    );
    let upstream = Upstream::start().unwrap();
    let scratch = Scratch::new("servermemory");
    let (url, memory) = (scratch.sqlite("store.db"), LIMIT.to_string());
    let memory = format!("THROUGHLINE_LIMITS_MEMORY={memory}");
    let histories = format!("THROUGHLINE_LIMITS_HISTORY_BYTES={}", 32 * MEBIBYTE);
    let answers = format!("THROUGHLINE_LIMITS_ANSWER_BYTES={}", 8 * MEBIBYTE);
    let mut words = vec!["serve", &url, "0", "openai-chat", &upstream.url];
    words.extend([memory.as_str(), &histories, &answers]);
    let (process, address) = Process::start(&words, "").unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let plain = plain_client(address.clone(), Arc::clone(&over));

    // Half of them streams, half of them whole answers, all of them unread.
    let unread: Vec<TcpStream> = (0..readers)
        .map(|number| Exchange::send(&address, &ask("long", number % 2 == 0)).unwrap())
        .collect();
    let kinds = [
        ("endless-json", false),
        ("endless-text", true),
        ("endless-arguments", true),
    ];
    for (model, streamed) in kinds {
        let requests = (0..runaways.div_ceil(3))
            .map(|_| ask(model, streamed))
            .collect();
        all_at_once(&address, requests, 502).unwrap();
    }
    let mut taken = 0;
    let mut left = bodies;
    while left > 0 {
        let some = left.min(6);
        left -= some;
        let requests = (0..some).map(|_| large(10 * MEBIBYTE)).collect();
        taken += all_at_once(&address, requests, 200).unwrap();
    }
    // A refused client may retry, and is served when there are no others.
    for _ in 0..60 {
        taken += all_at_once(&address, vec![large(10 * MEBIBYTE)], 200).unwrap();
        if taken > 0 {
            break;
        }
        // The value of `Retry-After`.
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    over.store(true, Ordering::Relaxed);
    let answered = plain.join().unwrap().unwrap();
    drop(unread);
    let peak = process.peak_memory().unwrap();
    println!(
        "campaign r15_over_http_memory: readers={readers} runaways={runaways} bodies={bodies} bodies_taken={taken} plain_answers={answered} peak_mib={} limit_mib={}",
        peak / MEBIBYTE,
        LIMIT / MEBIBYTE
    );
    assert!(taken > 0, "a large body is taken when there is room");
    assert!(answered > 0);
    assert!(peak <= LIMIT, "{} MiB", peak / MEBIBYTE);
}
