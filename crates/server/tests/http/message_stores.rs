//! Histories in message stores of the embedding application.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use throughline::model::json::RawJson;
use throughline::model::{Body, Message};
use throughline::thread::{MessageStore, MessageStoreError};
use throughline_server::{ServeError, Server};
use throughline_testkit::Scratch;

use crate::http::mcp::Scripted;
use crate::http::support::{Answer, Client, config, end, get};
use crate::http::vendors::response;

/// A message store in memory, as an application has one.
#[derive(Clone, Default)]
struct Crm(Arc<Mutex<Cases>>);

#[derive(Default)]
struct Cases {
    messages: BTreeMap<String, Vec<Message>>,
    /// Appends that were made.
    made: BTreeSet<String>,
    /// What each append brought, in short.
    appends: Vec<String>,
    loads: usize,
    /// So many loads from now on fail, and so many appends.
    failures: (usize, usize),
}

impl Crm {
    fn cases(&self) -> MutexGuard<'_, Cases> {
        self.0.lock().unwrap()
    }

    /// The appends since this was asked last.
    fn appends(&self) -> Vec<String> {
        std::mem::take(&mut self.cases().appends)
    }

    fn keys(&self) -> Vec<Value> {
        let cases = self.cases();
        let keys = cases.messages.keys();
        keys.map(|key| serde_json::from_str(key).unwrap()).collect()
    }

    fn fail(&self, loads: usize, appends: usize) {
        self.cases().failures = (loads, appends);
    }
}

fn check(failures: &mut usize) -> Result<(), MessageStoreError> {
    match failures.checked_sub(1) {
        None => Ok(()),
        Some(left) => {
            *failures = left;
            Err("the CRM is closed".into())
        }
    }
}

#[async_trait]
impl MessageStore for Crm {
    async fn load(
        &self,
        key: &RawJson,
        _budget: Option<u64>,
    ) -> Result<Vec<Message>, MessageStoreError> {
        let mut cases = self.cases();
        check(&mut cases.failures.0)?;
        cases.loads += 1;
        Ok(cases.messages.get(key.get()).cloned().unwrap_or_default())
    }

    async fn append(
        &self,
        key: &RawJson,
        messages: &[Message],
        idempotency: &str,
    ) -> Result<Option<RawJson>, MessageStoreError> {
        let mut cases = self.cases();
        check(&mut cases.failures.1)?;
        if cases.made.insert(idempotency.to_owned()) {
            let brought: Vec<&str> = messages.iter().flat_map(kinds).collect();
            cases.appends.push(brought.join(" "));
            let kept = cases.messages.entry(key.get().to_owned()).or_default();
            kept.extend_from_slice(messages);
        }
        Ok(None)
    }
}

/// The contents of a message, in one word each.
fn kinds(message: &Message) -> impl Iterator<Item = &'static str> {
    let role = message.role.clone();
    message
        .contents
        .iter()
        .map(move |content| match &content.body {
            Body::ToolCall(_) => "call",
            Body::ToolResult(_) => "result",
            Body::Text(_) if role == throughline::model::Role::User => "user",
            _ => "answer",
        })
}

const AGENT: &str = "[[agent]]\nid = \"support\"\nmodel = \"demo\"\nmessage_store = \"crm\"\n";

async fn serve(file: &str, store: &str, crm: &Crm) -> Server {
    let config = config(file, &[("THROUGHLINE_STORE", store)]);
    let server = Server::builder(config).message_store("crm", crm.clone());
    server.serve().await.unwrap()
}

async fn send(server: &Server, body: &Value) -> Answer {
    let mut client = Client::to(server.address).await;
    let body = body.to_string();
    client
        .send("POST /v1/responses", &[], body.as_bytes())
        .await
}

async fn completed(server: &Server, body: &Value) -> Value {
    let answer = send(server, body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let response = response(&answer);
    assert_eq!(response["status"], "completed", "{response}");
    response
}

fn said(response: &Value) -> &str {
    let last = response["output"].as_array().unwrap().last().unwrap();
    last["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn b239_an_application_that_embeds_the_server_keeps_histories_in_its_own_store() {
    let scripted = Scripted::start().await;
    let folder = Scratch::new("message-stores");
    for (mode, turn) in [
        ("per_run", &["user call result answer"][..]),
        ("per_call", &["user call", "result answer"][..]),
    ] {
        let file = format!(
            "{AGENT}tools = [\"mcp:orders\"]\npersistence = \"{mode}\"\n[mcp.orders]\nurl = \"{}\"\n",
            scripted.url
        );
        for streamed in [false, true] {
            let sqlite = folder.sqlite(&format!("{mode}-{streamed}.db"));
            for store in ["memory:", sqlite.as_str()] {
                let crm = Crm::default();
                let server = serve(&file, store, &crm).await;
                let place = format!("{mode}, streamed {streamed}, {store}");
                let first = completed(
                    &server,
                    &json!({"model": "agent/support", "stream": streamed,
                        "input": "Call get_order with {}"}),
                )
                .await;
                assert_eq!(crm.appends(), turn, "{place}");
                let thread = &first["throughline"]["thread"];
                assert_eq!(crm.keys(), [json!({"tenant": "local", "thread": thread})]);

                // Every model goes on from what the store has.
                crm.cases().messages.values_mut().for_each(|kept| {
                    kept.insert(0, Message::user("The tide is at four."));
                });
                let next = completed(
                    &server,
                    &json!({"model": "demo", "stream": streamed, "input": "What did I say first?",
                        "previous_response_id": first["id"]}),
                )
                .await;
                assert!(
                    said(&next).contains("The tide is at four."),
                    "{place}: {next}"
                );
                assert_eq!(crm.appends(), ["user answer"], "{place}");
                assert_eq!(crm.cases().loads, 2, "{place}");

                let path = format!("/api/v1/threads/{}", thread.as_str().unwrap());
                let shown: Value =
                    serde_json::from_str(&get(server.address, &path).await.body).unwrap();
                assert_eq!(
                    shown["owner"],
                    json!({"kind": "external", "store": "crm",
                        "key": {"tenant": "local", "thread": thread}}),
                    "{place}"
                );
                end(server).await;
            }
        }
    }
}

#[tokio::test]
async fn b239_what_is_not_stored_and_what_other_models_begin_is_not_kept_there() {
    let crm = Crm::default();
    let server = serve(AGENT, "memory:", &crm).await;
    for body in [
        json!({"model": "agent/support", "input": "hi", "store": false}),
        json!({"model": "demo", "input": "hi"}),
    ] {
        completed(&server, &body).await;
        assert_eq!((crm.appends().len(), crm.cases().loads), (0, 0), "{body}");
    }
    end(server).await;
}

#[tokio::test]
async fn a_message_store_that_fails_loses_nothing() {
    let crm = Crm::default();
    let server = serve(AGENT, "memory:", &crm).await;
    let ask = json!({"model": "agent/support", "input": "hi"});
    // Nothing has begun.
    crm.fail(1, 0);
    let answer = send(&server, &ask).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "message_store_failed")
    );
    let text = answer.error("message").unwrap();
    assert!(text.ends_with("failed: the CRM is closed"), "{text}");
    let first = completed(&server, &ask).await;
    assert_eq!(crm.appends(), ["user answer"]);
    crm.fail(0, 1);
    let next = json!({"model": "demo", "input": "and?", "previous_response_id": first["id"]});
    let answer = send(&server, &next).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "outcome_unknown"),
        "{}",
        answer.body
    );
    assert_eq!(crm.appends().len(), 0);
    // The server makes the append again by itself, and the response has the answer that was made.
    let id = answer.header("x-throughline-response-id").unwrap();
    let path = format!("/v1/responses/{id}");
    let mut read = Value::Null;
    for _ in 0..600 {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(2)).await;
        tokio::time::resume();
        read = serde_json::from_str(&get(server.address, &path).await.body).unwrap();
        if read["status"] != "in_progress" {
            break;
        }
    }
    assert_eq!(read["status"], "completed", "{read}");
    assert_eq!(crm.appends(), ["user answer"]);
    let next = json!({"model": "demo", "input": "now?", "previous_response_id": id});
    completed(&server, &next).await;
    assert_eq!(crm.appends(), ["user answer"]);
    end(server).await;
}

#[tokio::test]
async fn a_message_store_that_is_not_registered_refuses_to_start_by_its_name() {
    let refused = async |file: &str, registered: &[&str]| {
        let stores = registered.iter();
        let builder = stores.fold(Server::builder(config(file, &[])), |builder, name| {
            builder.message_store(*name, Crm::default())
        });
        match builder.serve().await {
            Err(ServeError::Config(error)) => {
                assert_eq!(error.key(), Some("agent.support.message_store"));
                error.to_string()
            }
            Err(error) => panic!("{error}"),
            Ok(server) => {
                end(server).await;
                String::new()
            }
        }
    };
    assert_eq!(refused(AGENT, &["crm", "other"]).await, "");
    let text = refused(AGENT, &[]).await;
    assert!(
        text.ends_with(
            "no message store \"crm\" is registered: a program that embeds the server registers it \
             with Server::builder(config).message_store(\"crm\", …), and `throughline serve` has \
             none; take the key out"
        ),
        "{text}"
    );
    let text = refused(AGENT, &["other", "crn"]).await;
    assert!(
        text.ends_with("is registered, only crn, other; did you mean \"crn\"?"),
        "{text}"
    );
    let both = "[[upstream]]\nname = \"v\"\nkind = \"openai-responses\"\nhistory = \"service\"\n\
                base_url = \"http://127.0.0.1:9\"\n[[agent]]\nid = \"support\"\nmodel = \"v/m\"\n\
                message_store = \"crm\"\n";
    let text = refused(both, &["crm"]).await;
    assert!(
        text.ends_with(
            "excludes history = \"service\" of the upstream v, which keeps its conversations \
             itself; take one of them out"
        ),
        "{text}"
    );
}
