//! A server with a strict vendor of each kind behind it.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_testkit::upstream::{KEY, Recorded, Script, Upstream};

use crate::http::support::{Answer, Client, config, start_with};

/// The kinds of upstreams, the format of each, and a model of its vendor.
pub(crate) const KINDS: [(&str, Wire, &str); 5] = [
    ("openai-responses", Wire::OpenAiResponses, "gpt-5"),
    ("openai-chat", Wire::OpenAiChat, "gpt-5"),
    ("anthropic", Wire::Anthropic, "claude-opus-4-8"),
    ("gemini", Wire::Gemini, "gemini-3-pro"),
    ("foundry", Wire::Foundry, "gpt-5"),
];

pub(crate) struct Vendor {
    pub(crate) kind: &'static str,
    pub(crate) wire: Wire,
    pub(crate) model: String,
    pub(crate) upstream: Upstream,
}

impl Vendor {
    /// All requests that came.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.upstream.requests()
    }

    /// The body of the last request, which was taken.
    pub(crate) fn asked(&self) -> Value {
        let requests = self.upstream.requests();
        let last = requests.last().expect("the vendor was asked");
        assert!(last.is_accepted(), "{}: {last:?}", self.kind);
        last.body.clone()
    }
}

pub(crate) struct World {
    pub(crate) vendors: Vec<Vendor>,
    pub(crate) server: Server,
}

impl World {
    /// One vendor of each kind, which answers by a script, and a few more lines of configuration.
    pub(crate) async fn start(script: impl Fn(&Wire) -> Script, more: &str) -> Self {
        let mut file = more.to_owned();
        let mut vendors = Vec::new();
        for (kind, wire, model) in KINDS {
            let upstream = Upstream::start(wire.clone(), script(&wire)).await;
            let url = match wire {
                Wire::Foundry => upstream.project(),
                _ => upstream.base_url(),
            };
            file.push_str(&format!(
                "[[upstream]]\nname = \"{kind}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\n\
                 api_key_env = \"VENDOR_KEY\"\n"
            ));
            vendors.push(Vendor {
                kind,
                wire,
                model: format!("{kind}/{model}"),
                upstream,
            });
        }
        let server = start_with(config(&file, &[("VENDOR_KEY", KEY)])).await;
        Self { vendors, server }
    }

    /// Send a request.
    pub(crate) async fn send(&self, body: &Value) -> Answer {
        let mut client = Client::to(self.server.address).await;
        let body = body.to_string();
        client
            .send("POST /v1/responses", &[], body.as_bytes())
            .await
    }

    /// Send a request to a route.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let mut client = Client::to(self.server.address).await;
        let body = body.to_string();
        client
            .send(&format!("POST {path}"), &[], body.as_bytes())
            .await
    }

    /// Send a request that is answered; its response, whole or from the last event of a stream.
    pub(crate) async fn create(&self, body: &Value) -> Value {
        let answer = self.send(body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        response(&answer)
    }
}

/// The response in an answer, whole or streamed.
pub(crate) fn response(answer: &Answer) -> Value {
    let last = answer.body.lines().rev().find_map(|line| {
        let event: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
        event.get("response").cloned()
    });
    last.unwrap_or_else(|| serde_json::from_str(&answer.body).expect("an answer is JSON"))
}

/// What a response says is not carried out.
pub(crate) fn ignored(response: &Value) -> Vec<(String, String)> {
    let list = response["throughline"]["ignored"].as_array();
    let list = list.map(Vec::as_slice).unwrap_or_default().iter();
    list.map(|one| {
        let text = |key: &str| one[key].as_str().expect("a text").to_owned();
        (text("path"), text("reason"))
    })
    .collect()
}

/// A function that the client runs.
pub(crate) fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "description": "When the tide turns.",
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}},
            "required": ["port"], "additionalProperties": false}})
}
