//! What the two published descriptions of the API say of answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throughline_testkit::openapi::{OpenApi, Others};

use crate::schema::schemas::is_shared;
use crate::schema::support::{fixture, without_cache_writes};

/// One description.
struct Description {
    api: OpenApi,
    /// The schema of each event.
    events: BTreeMap<String, String>,
    others: Others,
}

impl Description {
    fn read(file: &str, others: Others) -> Self {
        let text = fixture(file);
        let api = OpenApi::read(&text).unwrap();
        let root: Value = serde_json::from_str(&text).unwrap();
        let mut events = BTreeMap::new();
        for name in api.names().filter(|name| name.ends_with("Event")) {
            let tag = &root["components"]["schemas"][name]["properties"]["type"]["enum"][0];
            if let Some(tag) = tag.as_str() {
                events.insert(tag.to_owned(), name.to_owned());
            }
        }
        assert!(events.len() > 20, "{file}: {events:?}");
        Self {
            api,
            events,
            others,
        }
    }

    fn check(&self, schema: &str, value: &Value) {
        let checked = match self.others {
            Others::Allowed => self.api.check(schema, value, self.others),
            Others::Refused => {
                let value = without_cache_writes(value);
                self.api.check(schema, &value, self.others)
            }
        };
        checked.unwrap_or_else(|why| panic!("{schema}: {why:#?}\n{value}"));
    }
}

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Response,
    Message,
    Compaction,
    /// An error as a message of a WebSocket.
    SocketError,
    /// An object that OpenAI alone describes.
    OpenAi(&'static str),
}

impl Shape {
    /// The names of its schema at OpenAI and in Open Responses.
    fn names(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Response => ("Response", Some("ResponseResource")),
            Self::Message => ("OutputMessage", Some("Message")),
            Self::Compaction => ("CompactResource", Some("CompactResource")),
            Self::SocketError => ("ResponseWsError", Some("WebSocketErrorEvent")),
            Self::OpenAi(name) => (name, None),
        }
    }
}

/// Both descriptions. An answer has events of that of its dialect, and hardly anything else in it if that is
/// Open Responses; it is valid by the other description too, as far as that has what it is about.
pub(crate) struct Published {
    openai: Description,
    open: Description,
    is_open: bool,
}

impl Published {
    pub(crate) fn of(dialect: &str) -> Self {
        let is_open = dialect == "openresponses";
        let others = match is_open {
            true => Others::Refused,
            false => Others::Allowed,
        };
        Self {
            openai: Description::read(
                "openai-responses-conversations.openapi.json",
                Others::Allowed,
            ),
            open: Description::read("openresponses-2026-04-24.openapi.json", others),
            is_open,
        }
    }

    pub(crate) fn check(&self, shape: Shape, value: &Value) {
        let (openai, open) = shape.names();
        self.openai.check(openai, value);
        let is_shared = self.is_open || is_shared(&json!({"response": value}));
        if let Some(open) = open.filter(|_| is_shared) {
            self.open.check(open, value);
        }
    }

    /// All events of a response; the response in the last one.
    pub(crate) fn check_events(&self, events: &[Value]) -> Value {
        for (number, event) in events.iter().enumerate() {
            let kind = event["type"].as_str().unwrap();
            let own = if self.is_open {
                &self.open
            } else {
                &self.openai
            };
            assert!(
                own.events.contains_key(kind),
                "{kind} is not in the dialect"
            );
            let shared = [&self.openai, &self.open];
            let descriptions = match is_shared(event) {
                true => &shared[..],
                false => std::slice::from_ref(&own),
            };
            for description in descriptions {
                if let Some(schema) = description.events.get(kind) {
                    description.check(schema, event);
                }
            }
            assert_eq!(event["sequence_number"], number, "{event}");
        }
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        self.check(Shape::Response, &last["response"]);
        last["response"].clone()
    }

    /// The events of a body, which has them all; the response in the last one.
    pub(crate) fn check_stream(&self, body: &str) -> (Value, usize) {
        assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
        let data = body.lines().filter_map(|line| line.strip_prefix("data: {"));
        let events: Vec<Value> = data
            .map(|data| serde_json::from_str(&format!("{{{data}")).unwrap())
            .collect();
        (self.check_events(&events), events.len())
    }
}
