//! An expired thread is removed by a running server, and its bytes from the files.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_store::{Store, TenantScope, ThreadId, ThreadPatch};
use throughline_testkit::Scratch;
use throughline_testkit::record::block_on;
use throughline_testkit::serverkill::{Exchange, Request};

use crate::serverkill::process::Process;

/// The retention of the thread, in milliseconds.
const KEEP: u64 = 1_000;

/// How long after its expiry it must be gone.
const LIMIT: Duration = Duration::from_secs(60);

/// How often the test checks.
const LOOK: Duration = Duration::from_millis(100);

/// Part of the input, and of its idempotency key.
const CANARY: &str = "canary-5d0c1f";

/// How often a word occurs in the files of a folder, and their total size.
fn found(folder: &Path) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        // A WAL file may be removed meanwhile.
        let text = std::fs::read(&path).unwrap_or_default();
        let word = CANARY.as_bytes();
        count += text
            .windows(word.len())
            .filter(|part| *part == word)
            .count();
        bytes += text.len();
    }
    (count, bytes)
}

fn body(mut answer: Exchange) -> Value {
    let bytes = answer.whole().expect("a body");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn create(address: &str, key: &str, body: &Value) -> Exchange {
    let request = Request::post("/v1/responses", body.to_string());
    Exchange::open(address, &request.with("idempotency-key", key)).expect("an answer")
}

#[test]
fn r23_a_thread_whose_time_is_over_is_gone_from_a_running_server() {
    let folder = Scratch::new("expiry");
    let url = folder.sqlite("expiry.db");
    let serve = ["serve", &url, "0", "openai-chat", "http://127.0.0.1:9/v1"];
    let (_server, address) = Process::start(&serve, "").expect("a server");

    // One that stays and one that expires; streamed, so that there are events too.
    let stays = create(
        &address,
        "stays",
        &json!({"model": "demo", "input": "stay"}),
    );
    assert_eq!(stays.status, 200);
    let stays = body(stays)["id"].as_str().expect("an id").to_owned();
    let key = format!("{CANARY}-key");
    let input = json!({"model": "demo", "input": format!("{CANARY} input"), "stream": true});
    let mut stream = create(&address, &key, &input);
    let text = String::from_utf8(stream.whole().expect("a stream")).expect("text");
    let last = text
        .lines()
        .rfind(|line| line.contains("response.completed\""));
    let last = last.and_then(|line| line.strip_prefix("data: "));
    let last: Value = serde_json::from_str(last.expect("an end")).expect("JSON");
    let goes = last["response"]["id"].as_str().expect("an id").to_owned();
    let thread = last["response"]["throughline"]["thread"].as_str();
    let thread = ThreadId::new(thread.expect("a thread")).expect("an id");
    let (before, _) = found(folder.path());
    assert!(before >= 3, "{before}: it is seen while it is there");

    // Another process sets the retention; it counts from the last turn.
    let store = block_on(Store::open(&url)).expect("the store");
    let patch = ThreadPatch {
        keep: Some(Some(KEEP)),
        ..ThreadPatch::default()
    };
    let patched = block_on(store.patch(&TenantScope::local(), &thread, &patch));
    patched.expect("it can be written");
    block_on(store.close()).expect("the store can be closed");
    let due = Instant::now() + Duration::from_millis(KEEP);

    let status = |id: &str| {
        let request = Request::get(format!("/v1/responses/{id}"));
        Exchange::open(&address, &request)
            .expect("an answer")
            .status
    };
    let mut hidden = None;
    let (after, files) = loop {
        let late = due.elapsed();
        if hidden.is_none() && status(&goes) == 404 {
            hidden = Some(late);
        }
        let (left, files) = found(folder.path());
        if hidden.is_some() && left == 0 {
            break (late, files);
        }
        assert!(late <= LIMIT, "hidden after {hidden:?}, {left} canaries");
        std::thread::sleep(LOOK);
    };
    let hidden = hidden.unwrap_or_default();
    assert_eq!(status(&stays), 200, "what has no time stays");
    // Its key is free, and it cannot be continued.
    let again = json!({"model": "demo", "input": "something else"});
    assert_eq!(create(&address, &key, &again).status, 200);
    let next = json!({"model": "demo", "input": "and?", "previous_response_id": goes});
    let next = create(&address, "next", &next);
    assert_eq!(next.status, 400);
    assert_eq!(body(next)["error"]["code"], "previous_response_not_found");
    println!(
        "campaign r23 server expiry: threads=1 gone_after={:.1}s erased_after={:.1}s limit={}s canaries_before={before} canaries=0 bytes={files}",
        hidden.as_secs_f64(),
        after.as_secs_f64(),
        LIMIT.as_secs()
    );
}
