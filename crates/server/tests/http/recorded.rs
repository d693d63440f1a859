//! Recorded requests whose store fails.

use serde_json::{Value, json};
use throughline_server::Server;
use throughline_store::{At, RunFilter, RunState, Store, TenantScope, ThreadFilter};
use throughline_testkit::engines::{Fault, Faulty};

use crate::http::support::{Answer, Client, config, end, get};

const IGNORE: &str = "[record]\nstateless = true\n";
const ERROR: &str = "[record]\nstateless = true\non_failure = \"error\"\n";

async fn served(file: &str) -> (Server, Store, std::sync::Arc<Faulty>) {
    let opened = Store::open("memory:").await.unwrap();
    let (store, faulty) = Faulty::over(&opened);
    let server = Server::builder(config(file, &[])).store(store.clone());
    (server.serve().await.unwrap(), store, faulty)
}

async fn ask(server: &Server, said: &[&str], streamed: bool) -> Answer {
    let messages: Vec<Value> = said
        .iter()
        .enumerate()
        .map(|(place, text)| {
            let role = ["user", "assistant"][place % 2];
            json!({"role": role, "content": text})
        })
        .collect();
    let body = json!({"model": "demo", "messages": messages, "stream": streamed});
    let mut client = Client::to(server.address).await;
    let body = body.to_string();
    let line = "POST /v1/chat/completions";
    client.send(line, &[], body.as_bytes()).await
}

fn said(answer: &Answer) -> String {
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let text = body["choices"][0]["message"]["content"].as_str();
    text.unwrap().to_owned()
}

async fn failures(server: &Server, at: &str) -> bool {
    let metrics = get(server.address, "/metrics").await.body;
    metrics.contains(&format!(
        "throughline_record_failures_total{{at=\"{at}\"}} 1"
    ))
}

#[tokio::test]
async fn a_request_that_cannot_be_recorded_is_answered() {
    let (server, store, faulty) = served(IGNORE).await;
    for streamed in [false, true] {
        faulty.next("begin", Fault::Before);
        let answer = ask(&server, &["Good morning."], streamed).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.header("x-throughline-thread"), None);
    }
    let (scope, filter) = (TenantScope::local(), ThreadFilter::default());
    let threads = store.threads(&scope, &filter, None, 10).await;
    assert_eq!(threads.unwrap().found, []);
    // The answer goes out; the run is left, and closed later.
    // It is tried twice.
    faulty.times("publish", 2, Fault::Before);
    let answer = ask(&server, &["Good morning."], false).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.header("x-throughline-thread").is_some());
    assert!(failures(&server, "end").await);
    // A write that was made although it seemed to fail is not made twice.
    faulty.next("publish", Fault::After);
    let answer = ask(&server, &["Good evening."], false).await;
    let thread = answer.header("x-throughline-thread").unwrap();
    let thread = throughline_store::ThreadId::new(thread).unwrap();
    let at = At::Thread(thread);
    let opened = store.open(&scope, &at, 10).await.unwrap();
    assert_eq!(opened.entries.len(), 2);
    end(server).await;
}

#[tokio::test]
async fn a_request_that_cannot_be_recorded_fails_if_that_is_asked_for() {
    let (server, _, faulty) = served(ERROR).await;
    for (method, times) in [("begin", 1), ("publish", 2)] {
        faulty.times(method, times, Fault::Before);
        let answer = ask(&server, &["Good morning."], false).await;
        assert_eq!(
            (answer.status, answer.code()),
            (503, "not_recorded".to_owned())
        );
    }
    faulty.times("publish", 2, Fault::Before);
    let answer = ask(&server, &["Good morning."], true).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("not_recorded"), "{}", answer.body);
    assert!(!answer.body.contains("[DONE]"), "{}", answer.body);
    end(server).await;
}

#[tokio::test]
async fn a_conversation_is_one_thread_for_its_tenant() {
    let (server, store, _) = served(IGNORE).await;
    let first = ask(&server, &["Good morning."], false).await;
    let thread = first.header("x-throughline-thread").unwrap().to_owned();
    let words = said(&first);
    let second = ask(&server, &["Good morning.", &words, "How many?"], true).await;
    assert_eq!(second.header("x-throughline-thread"), Some(&*thread));
    let scope = TenantScope::local();
    let runs = store.runs(&scope, &RunFilter::default(), None, 10).await;
    let states: Vec<_> = runs.unwrap().found.iter().map(|run| run.state).collect();
    assert_eq!(states, [RunState::Committed; 2]);
    end(server).await;
}
