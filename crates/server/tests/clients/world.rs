//! A server with strict vendors behind it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::{Config, Flags, Server, Sources, serve};
use throughline_testkit::Scratch;
use throughline_testkit::upstream::{Gate, KEY, Upstream, talk};
use throughline_testkit::web::{Answer, Client, Request};

use crate::clients::webhook::{SECRET, SECRET_VARIABLE, Webhook};

/// The vendors: what the configuration calls them, their kind there, and a model of theirs.
pub(crate) const VENDORS: [(&str, Wire, &str); 4] = [
    ("anthropic", Wire::Anthropic, "claude-sonnet-4-5"),
    ("gemini", Wire::Gemini, "gemini-3-pro"),
    ("openai-chat", Wire::OpenAiChat, "gpt-5"),
    ("openai-responses", Wire::OpenAiResponses, "gpt-5"),
];

/// A bare name that goes to one of them. Sessions of agents SDKs have conversations put in short by
/// models with names of OpenAI's alone, whatever model makes the turns.
const COMPACTS: &str = "openai-responses";
const COMPACTING_MODEL: &str = "gpt-5";

/// One vendor and the gate before its answers.
pub(crate) struct Vendor {
    pub(crate) name: &'static str,
    pub(crate) model: String,
    pub(crate) upstream: Upstream,
    pub(crate) gate: Gate,
}

impl Vendor {
    async fn start((name, wire, model): (&'static str, Wire, &str), window: Option<u64>) -> Self {
        let gate = Gate::default();
        let script = talk(&wire, &gate);
        let upstream = Upstream::of(wire).script(script);
        let upstream = match window {
            Some(tokens) => upstream.window(tokens),
            None => upstream,
        };
        Self {
            name,
            model: format!("{name}/{model}"),
            upstream: upstream.start().await,
            gate,
        }
    }

    /// Nothing that the server sent was refused.
    pub(crate) fn refused_nothing(&self) {
        let counts = self.upstream.counts();
        let requests = self.upstream.requests();
        let refused = requests.iter().find(|request| !request.is_accepted());
        assert_eq!(counts.refused, 0, "{}: {refused:?}", self.name);
    }
}

pub(crate) struct World {
    pub(crate) vendors: Vec<Vendor>,
    pub(crate) server: Server,
    pub(crate) webhook: Webhook,
    scratch: Scratch,
    /// The text of its file.
    config: String,
}

impl World {
    /// A fresh server with all vendors behind it.
    pub(crate) async fn start() -> Self {
        Self::with_windows(None).await
    }

    /// The same with windows that hold so many tokens, which vendors keep to and the server knows of.
    pub(crate) async fn with_windows(window: Option<u64>) -> Self {
        let mut vendors = Vec::new();
        for vendor in VENDORS {
            vendors.push(Vendor::start(vendor, window).await);
        }
        let webhook = Webhook::start().await;
        let config = webhook.table() + &tables(&vendors, window);
        let scratch = Scratch::in_memory("clients");
        let server = begin(&config, &scratch).await;
        Self {
            vendors,
            server,
            webhook,
            scratch,
            config,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub(crate) fn vendor(&self, name: &str) -> &Vendor {
        let mut vendors = self.vendors.iter();
        let found = vendors.find(|vendor| vendor.name == name);
        found.unwrap_or_else(|| panic!("there is no vendor {name}"))
    }

    /// Stop the server, report the size of its file while it is closed, and start it again.
    pub(crate) async fn weigh(self) -> (Self, u64) {
        let Self {
            vendors,
            server,
            webhook,
            scratch,
            config,
        } = self;
        server.stop();
        server.join().await;
        let mut bytes = 0;
        for file in std::fs::read_dir(scratch.path()).expect("the directory is there") {
            let file = file.expect("it can be read");
            if file.file_name().to_string_lossy().starts_with("store.db") {
                bytes += file.metadata().expect("a file has a length").len();
            }
        }
        let server = begin(&config, &scratch).await;
        let world = Self {
            vendors,
            server,
            webhook,
            scratch,
            config,
        };
        (world, bytes)
    }
}

/// The vendors in the configuration.
fn tables(vendors: &[Vendor], window: Option<u64>) -> String {
    let mut text = String::new();
    for vendor in vendors {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[upstream]]\nname = {:?}\nkind = {:?}\nbase_url = {:?}\napi_key_env = \"VENDOR_KEY\"\n",
            vendor.name,
            vendor.name,
            vendor.upstream.base_url(),
        );
        if vendor.name == COMPACTS {
            let _ = writeln!(text, "models = [\"{COMPACTING_MODEL}\"]");
        }
        if let Some(tokens) = window {
            let _ = writeln!(text, "window = {tokens}");
        }
    }
    text
}

async fn begin(config: &str, scratch: &Scratch) -> Server {
    let file = scratch.path().join("throughline.toml");
    std::fs::write(&file, config).expect("the scratch directory can be written");
    let config = Config::load(&Sources {
        file: Some(file),
        environment: BTreeMap::from([
            ("VENDOR_KEY".to_owned(), KEY.to_owned()),
            (SECRET_VARIABLE.to_owned(), SECRET.to_owned()),
        ]),
        flags: Flags {
            listen: Some("127.0.0.1:0".to_owned()),
            store: Some(scratch.sqlite("store.db")),
        },
    });
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    serve(config)
        .await
        .unwrap_or_else(|error| panic!("the server does not start: {error}"))
}

/// A turn that is not streamed.
pub(crate) async fn create(client: &mut Client, body: &Value) -> Answer {
    let answer = client.send(Request::post("/v1/responses", body)).await;
    answer.expect("the server answers")
}

/// The body of a turn in a chain.
pub(crate) fn turn(model: &str, text: &str, previous: Option<&str>) -> Value {
    let mut body = json!({"model": model, "input": text});
    if let Some(previous) = previous {
        body["previous_response_id"] = json!(previous);
    }
    body
}

/// The id of a response and its text. The turn must have gone well.
pub(crate) fn said(answer: &Answer) -> (String, String) {
    let body = answer.json();
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(body["status"], "completed", "{}", answer.body);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (
        text(&body["id"]),
        text(&body["output"][0]["content"][0]["text"]),
    )
}
