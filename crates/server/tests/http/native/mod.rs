//! The native API over real sockets and SQLite. Every answer is held against the OpenAPI document.

mod approvals;
mod document;
mod runs;
mod tails;
mod threads;
mod views;

use serde_json::{Value, json};
use throughline::{Agent, Demo, Threads, tool};
use throughline_server::Server;
use throughline_server::api::native::openapi_document;
use throughline_store::{RunId, Store};
use throughline_testkit::Scratch;
use throughline_testkit::openapi::{OpenApi, Others};

use crate::http::support::{Answer, Client, config, end};

/// A server on a store that the test has too.
struct Native {
    server: Server,
    store: Store,
    document: Value,
    _scratch: Scratch,
}

impl Native {
    async fn start() -> Self {
        Self::with("").await
    }

    async fn with(file: &str) -> Self {
        let scratch = Scratch::in_memory("native");
        let store = Store::open(&scratch.sqlite("store.db")).await.unwrap();
        let server = Server::builder(config(file, &[])).store(store.clone());
        Self {
            server: server.serve().await.unwrap(),
            store,
            document: serde_json::from_str(&openapi_document()).unwrap(),
            _scratch: scratch,
        }
    }

    async fn end(self) {
        end(self.server).await;
    }

    /// An agent whose tool `open_sluice` needs approval, so that its runs wait.
    fn agent(&self) -> Agent {
        let open = tool("open_sluice", "Opens the sluice.", || async { "open" });
        Agent::builder(Demo::new())
            .threads(&Threads::of(&self.store))
            .tool(open.needs_approval())
            .build()
            .unwrap()
    }

    /// A thread on which each of these was said to the built-in model, and the last run.
    async fn talk(&self, said: &[&str]) -> (String, RunId) {
        let agent = self.agent();
        let thread = agent.new_thread();
        let mut last = None;
        for text in said {
            last = Some(agent.run_on(&thread, *text).await.unwrap().run);
        }
        (thread.id().to_string(), last.unwrap())
    }

    /// What the server answers, as it came.
    async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut client = Client::to(self.server.address).await;
        let answer = client.send(line, headers, body.as_bytes()).await;
        self.check(line, &answer);
        answer
    }

    /// A request without a body, whose answer is JSON with this status.
    async fn call(&self, line: &str, status: u16) -> Value {
        self.call_with(line, &Value::Null, status).await
    }

    async fn call_with(&self, line: &str, body: &Value, status: u16) -> Value {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let answer = self.send(line, &[], &body).await;
        assert_eq!(answer.status, status, "{line} {body}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// A request that is refused: its code and the parameter that it is about.
    async fn refused(&self, line: &str, body: &Value, status: u16) -> (String, String) {
        let answer = self.call_with(line, body, status).await;
        let text = |key: &str| answer["error"][key].as_str().unwrap_or_default().to_owned();
        (text("code"), text("param"))
    }

    /// Hold an answer against the document: the status, the type and the body of its operation.
    fn check(&self, line: &str, answer: &Answer) {
        let (method, path) = line.split_once(' ').unwrap();
        let path = path.split('?').next().unwrap();
        let Some(operation) = self.operation(&method.to_lowercase(), path) else {
            panic!("{line}: the document has no such operation");
        };
        let mut response = &operation["responses"][answer.status.to_string()];
        if let Some(name) = response["$ref"].as_str() {
            response = self.document.pointer(&name[1..]).unwrap();
        }
        assert!(
            !response.is_null(),
            "{line}: {} {}",
            answer.status,
            answer.body
        );
        let kind = answer.header("content-type").unwrap();
        let schema = &response["content"][kind]["schema"];
        assert!(!schema.is_null(), "{line}: {kind} is not in the document");
        if kind != "application/json" {
            return;
        }
        let mut document = self.document.clone();
        document["components"]["schemas"]["Answer"] = schema.clone();
        let schemas = OpenApi::read(&document.to_string()).unwrap();
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        let checked = schemas.check("Answer", &body, Others::Refused);
        assert_eq!(checked, Ok(()), "{line}: {}", answer.body);
    }

    /// The operation of a path: the one whose fixed parts match the most.
    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let parts: Vec<&str> = path.split('/').collect();
        let paths = self.document["paths"].as_object()?;
        let fits = |template: &str| {
            let wanted: Vec<&str> = template.split('/').collect();
            let fits = |(wanted, part): (&&str, &&str)| wanted.starts_with('{') || wanted == part;
            wanted.len() == parts.len() && wanted.iter().zip(&parts).all(fits)
        };
        let found = paths.iter().filter(|(template, _)| fits(template));
        let found = found.min_by_key(|(template, _)| template.matches('{').count());
        found?.1.get(method)
    }
}

/// An object that is empty.
fn empty() -> Value {
    json!({})
}
