//! The text of messages.

use throughline_model::json::{self, Node, Value};
use throughline_model::{Arguments, Body, Content, Message, Output};

/// All text of a message, one piece per content: strings unescaped, arguments as their strings.
///
/// Reasoning is not included, because it is not sent to other vendors.
pub fn message_texts(message: &Message) -> Vec<String> {
    message.contents.iter().map(content).collect()
}

/// The strings in the arguments of a call, with the keys that lead to each.
pub fn argument_strings(arguments: &Arguments) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match arguments {
        Arguments::None => {}
        Arguments::Json(raw) => leaves(&raw.value(), "", &mut found),
        Arguments::Text(text) => match json::parse(text) {
            Ok(value) => leaves(&value, "", &mut found),
            Err(_) => found.push((String::new(), text.clone())),
        },
        Arguments::Free(text) => found.push((String::new(), text.clone())),
    }
    found
}

fn content(content: &Content) -> String {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => text.text.clone(),
        Body::ToolCall(call) => {
            let mut out = call.name.clone();
            for (_, text) in argument_strings(&call.arguments) {
                out.push('\n');
                out.push_str(&text);
            }
            out
        }
        Body::ToolResult(result) => output(&result.output),
        Body::Media(media) => media.transcript.clone().unwrap_or_default(),
        Body::Error(fault) => fault.message.clone(),
        Body::Reasoning(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => String::new(),
    }
}

fn output(output: &Output) -> String {
    match output {
        Output::None => String::new(),
        Output::Text(text) => text.clone(),
        Output::Json(raw) => raw.get().to_owned(),
        Output::Parts(parts) => {
            let parts: Vec<String> = parts.iter().map(content).collect();
            parts.join("\n")
        }
    }
}

fn leaves(value: &Value<'_>, key: &str, found: &mut Vec<(String, String)>) {
    match value.node() {
        Node::Null | Node::Bool(_) => {}
        Node::Number => found.push((key.to_owned(), value.raw().to_owned())),
        Node::String(_) => {
            let text = value.as_str().unwrap_or_default().into_owned();
            found.push((key.to_owned(), text));
        }
        Node::Array(values) => values.iter().for_each(|value| leaves(value, key, found)),
        Node::Object(members) => {
            for member in members {
                leaves(&member.value, &member.key.to_str(), found);
            }
        }
    }
}
