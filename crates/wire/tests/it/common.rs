//! The wire catalogue as the tests use it.

use std::path::PathBuf;

use throughline_model::json::{self, RawJson, Value};
use throughline_wire::{Codec, Wire, codec};

/// One example of the catalogue.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) wire: Wire,
    pub(crate) wire_type: String,
    pub(crate) case: String,
    pub(crate) tag: String,
    pub(crate) role: String,
    pub(crate) family: String,
    pub(crate) class: String,
    pub(crate) id_path: Option<String>,
    pub(crate) call_id_path: Option<String>,
    pub(crate) pairs_with: String,
    pub(crate) direction: String,
    pub(crate) catalogue: String,
    pub(crate) example: RawJson,
}

impl Entry {
    pub(crate) fn name(&self) -> String {
        let case = if self.case.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.case)
        };
        format!("{} {}{case}", self.wire, self.wire_type)
    }

    pub(crate) fn codec(&self) -> &'static Codec {
        codec(&self.wire).expect("entries are only listed for known formats")
    }

    /// The example in its smallest message, as JSON text.
    pub(crate) fn wrapped(&self) -> String {
        self.wrap(self.example.get())
    }

    /// Any form of the example in its smallest message.
    pub(crate) fn wrap(&self, example: &str) -> String {
        match (&self.wire, self.tag.as_str()) {
            (Wire::OpenAiChat, "function" | "custom") => {
                format!(r#"{{"role":"assistant","content":null,"tool_calls":[{example}]}}"#)
            }
            (Wire::Anthropic, tag) => {
                let role = match tag {
                    "tool_result" => "user",
                    "tool_addition" => "system",
                    _ => "assistant",
                };
                format!(r#"{{"role":"{role}","content":[{example}]}}"#)
            }
            (Wire::Gemini, tag) => {
                let role = if tag == "functionResponse" {
                    "user"
                } else {
                    "model"
                };
                format!(r#"{{"role":"{role}","parts":[{example}]}}"#)
            }
            _ => example.to_owned(),
        }
    }
}

fn wire(provider: &str, api: &str) -> Wire {
    match (provider, api) {
        ("openai", "chat") => Wire::OpenAiChat,
        ("openai", _) => Wire::OpenAiResponses,
        ("anthropic", _) => Wire::Anthropic,
        ("gemini", "interactions") => Wire::GeminiInteractions,
        ("gemini", _) => Wire::Gemini,
        ("foundry", _) => Wire::Foundry,
        other => Wire::Other(format!("{other:?}").into()),
    }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/catalogue")
        .join(name)
}

/// The same file beside the project, where there is one.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/wire")
        .join(name);
    path.exists().then_some(path)
}

/// The project's own copy, and the one beside the project if it is there.
fn texts(name: &str) -> Vec<String> {
    let mut texts = vec![fixture(name)];
    texts.extend(shared(name));
    texts
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a fixture is readable"))
        .collect()
}

fn string(value: &Value<'_>, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .map(std::borrow::Cow::into_owned)
        .unwrap_or_default()
}

/// Every example, of every format that has a codec, of every catalogue that is there.
pub(crate) fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for text in texts("examples.json") {
        let list = json::parse(&text).expect("the catalogue is JSON");
        for row in list.as_array().expect("the catalogue is a list") {
            let optional = |key| Some(string(row, key)).filter(|text| !text.is_empty());
            let (provider, api) = (string(row, "provider"), string(row, "api"));
            let wire = wire(&provider, &api);
            if codec(&wire).is_none() {
                continue;
            }
            entries.push(Entry {
                wire,
                wire_type: string(row, "wire_type"),
                case: string(row, "case"),
                tag: string(row, "tag"),
                role: string(row, "role"),
                family: string(row, "family"),
                class: string(row, "call_id_class"),
                id_path: optional("id_path"),
                call_id_path: optional("call_id_path"),
                pairs_with: string(row, "pairs_with"),
                direction: string(row, "direction"),
                catalogue: string(row, "catalogue"),
                example: RawJson::of(row.get("example").expect("an entry has an example")),
            });
        }
    }
    entries
}

/// One streamed response of the catalogue.
pub(crate) struct Stream {
    pub(crate) wire: Wire,
    pub(crate) name: String,
    pub(crate) events: Vec<RawJson>,
    pub(crate) expect: RawJson,
}

pub(crate) fn streams() -> Vec<Stream> {
    let mut streams = Vec::new();
    for text in texts("streams.json") {
        let list = json::parse(&text).expect("the catalogue is JSON");
        for row in list.as_array().expect("the catalogue is a list") {
            let wire = wire(&string(row, "provider"), &string(row, "api"));
            if codec(&wire).is_none() {
                continue;
            }
            let events = row.get("events").and_then(Value::as_array);
            streams.push(Stream {
                wire,
                name: string(row, "name"),
                events: events
                    .expect("a stream has events")
                    .iter()
                    .map(RawJson::of)
                    .collect(),
                expect: RawJson::of(row.get("expect").expect("a stream says what to expect")),
            });
        }
    }
    streams
}

/// Decode an array of messages or items.
pub(crate) fn decode(
    codec: &Codec,
    array: &str,
) -> Result<Vec<throughline_model::Message>, String> {
    let value = json::parse(array).map_err(|error| error.to_string())?;
    let items = value.as_array().ok_or("not an array")?;
    codec
        .decode_messages(items)
        .map_err(|error| error.to_string())
}
