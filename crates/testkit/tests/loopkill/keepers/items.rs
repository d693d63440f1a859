//! What a conversation consists of, in a form in which a record and a service's copy are compared.

use serde_json::Value;
use throughline_model::{Arguments, Body, Message, Output, Role};
use throughline_testkit::loopkill::brackets;

/// A text, a call or a result, without ids and dates, which differ between keepers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// What the user wrote.
    User(String),
    /// What the model wrote.
    Model(String),
    /// A call, by its tool and arguments.
    Call(String, String),
    /// A result, by the call that ran; none if the call was closed without running.
    Result(Option<String>),
}

fn ran(text: &str) -> Option<String> {
    brackets(text, "ran").next().map(str::to_owned)
}

/// The items of a message. Reasoning is left out: a service keeps its own.
pub(super) fn of_message(message: &Message) -> Vec<Item> {
    let items = message
        .contents
        .iter()
        .filter_map(|content| match &content.body {
            Body::Text(text) if message.role == Role::User => Some(Item::User(text.text.clone())),
            Body::Text(text) => Some(Item::Model(text.text.clone())),
            Body::ToolCall(call) => {
                let text = match &call.arguments {
                    Arguments::Text(text) | Arguments::Free(text) => text.as_str(),
                    Arguments::Json(json) => json.get(),
                    Arguments::None => "",
                };
                Some(Item::Call(call.name.clone(), text.to_owned()))
            }
            Body::ToolResult(result) => Some(Item::Result(match &result.output {
                Output::Text(text) => ran(text),
                other => ran(&format!("{other:?}")),
            })),
            _ => None,
        });
    items.collect()
}

/// The items of an entry of a Responses conversation.
fn of_entry(entry: &Value) -> Option<Item> {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    match entry["type"].as_str().unwrap_or("message") {
        "message" => {
            let parts = entry["content"].as_array().into_iter().flatten();
            let said: String = parts.filter_map(|part| part["text"].as_str()).collect();
            Some(match entry["role"].as_str() {
                Some("assistant") => Item::Model(said),
                _ => Item::User(said),
            })
        }
        "function_call" => Some(Item::Call(text("name"), text("arguments"))),
        "function_call_output" => Some(Item::Result(ran(&entry["output"].to_string()))),
        _ => None,
    }
}

/// A conversation of a service: the numbers of its answers, and its items.
pub(super) struct Chain {
    pub(super) answers: Vec<u64>,
    pub(super) items: Vec<Item>,
}

impl Chain {
    /// Reads what the server of services shows.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let links = value
            .as_array()
            .ok_or("the service does not have all of it")?;
        let mut chain = Self {
            answers: Vec::new(),
            items: Vec::new(),
        };
        for link in links {
            let id = link["id"].as_str().unwrap_or_default();
            chain.answers.push(number(id).ok_or("an id has no number")?);
            for key in ["input", "output"] {
                let entries = link[key].as_array().into_iter().flatten();
                chain.items.extend(entries.filter_map(of_entry));
            }
        }
        Ok(chain)
    }
}

/// The number of the request in the id of an answer that a text names.
pub(super) fn number(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("resp_")?;
    u64::from_str_radix(rest.get(..8)?, 16).ok()
}

/// Where two conversations differ.
pub(super) fn difference(one: &[Item], other: &[Item]) -> String {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let rest =
        |items: &[Item]| format!("{:?}", items.iter().skip(same).take(4).collect::<Vec<_>>());
    format!(
        "of {} and {} items the first {same} are equal, then {} and {}",
        one.len(),
        other.len(),
        rest(one),
        rest(other)
    )
}
