//! The forms that nearly everything has, told in one pass over their members.

use throughline_model::json::RawJson;
use throughline_model::{
    Arguments, Body, Content, Family, Output, Runner, Slot, ToolCall, ToolResult, Wire,
};

use super::{legal, special};

/// Whether a form is one that the vendor takes as it is and that says what its content says. No
/// means that it needs a closer look.
pub(super) fn is_plain(content: &Content, raw: &RawJson, by_model: bool) -> bool {
    let Some(wire) = content.vendor.as_ref().map(|vendor| &vendor.wire) else {
        return false;
    };
    match &content.body {
        Body::Text(_) => is_text(raw, wire, by_model),
        Body::ToolCall(call) => {
            call.runner == Runner::Client
                && call.family == Family::FUNCTION
                && !call.name.is_empty()
                && is_call(content, raw, wire, call)
        }
        Body::ToolResult(result) => {
            result.runner == Runner::Client
                && result.family == Family::FUNCTION
                && is_result(content, raw, wire, result)
        }
        _ => false,
    }
}

/// The members that a plain form has.
struct Members<'m> {
    /// The member that says what it is, and the word.
    tag: (&'m str, &'m str),
    /// The member with the id of the call.
    id: Option<&'m str>,
    name: Option<&'m str>,
    /// The member whose text is kept elsewhere.
    text: Option<&'m str>,
    /// The member whose value is kept elsewhere.
    value: Option<&'m str>,
    /// Strings that may be there too.
    strings: &'m [&'m str],
    /// Lists that may be there if they are empty.
    lists: &'m [&'m str],
    /// What may be true or false.
    flags: &'m [&'m str],
}

const NONE: Members<'_> = Members {
    tag: ("type", ""),
    id: None,
    name: None,
    text: None,
    value: None,
    strings: &[],
    lists: &[],
    flags: &[],
};

/// A string token without escapes, as the string.
fn word(token: &str) -> Option<&str> {
    let word = token.strip_prefix('"')?.strip_suffix('"')?;
    (!word.contains('\\')).then_some(word)
}

impl Members<'_> {
    fn fit(&self, content: Option<&Content>, raw: &RawJson) -> bool {
        let mut missing = 1
            + usize::from(self.id.is_some())
            + usize::from(self.name.is_some())
            + usize::from(self.text.is_some())
            + usize::from(self.value.is_some());
        for (key, at) in raw.members() {
            let token = &raw.get()[at];
            let fits = if key == self.tag.0 {
                missing = missing.wrapping_sub(1);
                word(token) == Some(self.tag.1)
            } else if Some(key) == self.text {
                missing = missing.wrapping_sub(1);
                token.starts_with('"')
            } else if Some(key) == self.id {
                missing = missing.wrapping_sub(1);
                let id = word(token).filter(|id| !id.is_empty());
                id.zip(content)
                    .is_some_and(|(id, content)| legal::says_id(content, id))
            } else if Some(key) == self.value {
                missing = missing.wrapping_sub(1);
                token == "null"
            } else if key == "name" && self.name.is_some() {
                missing = missing.wrapping_sub(1);
                word(token) == self.name
            } else {
                (self.strings.contains(&key) && token.starts_with('"'))
                    || (self.lists.contains(&key) && token == "[]")
                    || (self.flags.contains(&key) && matches!(token, "true" | "false"))
            };
            if !fits {
                return false;
            }
        }
        missing == 0
    }
}

fn is_text(raw: &RawJson, wire: &Wire, by_model: bool) -> bool {
    let tag = match wire {
        Wire::OpenAiResponses | Wire::Foundry if by_model => "output_text",
        Wire::OpenAiResponses | Wire::Foundry => "input_text",
        Wire::Gemini => {
            let mut members = raw.members();
            let only = members
                .next()
                .is_some_and(|(key, at)| key == "text" && raw.get()[at].starts_with('"'));
            return only && members.next().is_none();
        }
        Wire::OpenAiChat | Wire::Anthropic | Wire::GeminiInteractions => "text",
        Wire::Other(_) => return false,
    };
    let lists: &[&str] = match tag {
        "output_text" => &["annotations", "logprobs"],
        _ => &[],
    };
    let members = Members {
        tag: ("type", tag),
        text: Some("text"),
        lists,
        ..NONE
    };
    members.fit(None, raw)
}

fn is_call(content: &Content, raw: &RawJson, wire: &Wire, call: &ToolCall) -> bool {
    let object = matches!(&call.arguments, Arguments::Json(json) if json.get().starts_with('{'));
    let text = matches!(call.arguments, Arguments::Text(_));
    let name = Some(call.name.as_str());
    let members = match wire {
        Wire::OpenAiResponses | Wire::Foundry if text => Members {
            tag: ("type", "function_call"),
            id: Some("call_id"),
            name,
            text: Some("arguments"),
            strings: &["id", "status"],
            ..NONE
        },
        Wire::Anthropic if object => Members {
            tag: ("type", "tool_use"),
            id: Some("id"),
            name,
            value: Some("input"),
            ..NONE
        },
        Wire::GeminiInteractions if object => Members {
            tag: ("type", "function_call"),
            id: Some("id"),
            name,
            value: Some("arguments"),
            ..NONE
        },
        Wire::OpenAiChat => return text && is_chat_call(content, raw, call),
        Wire::Gemini => return object && is_gemini_call(content, raw, call),
        _ => return false,
    };
    members.fit(Some(content), raw)
}

fn at<'r>(raw: &'r RawJson, path: &[&str]) -> Option<&'r str> {
    raw.locate(path).map(|at| &raw.get()[at])
}

fn is_chat_call(content: &Content, raw: &RawJson, call: &ToolCall) -> bool {
    let mut seen = 0;
    for (key, at) in raw.members() {
        seen += 1;
        let token = &raw.get()[at];
        let fits = match key {
            "type" => word(token) == Some("function"),
            "id" => word(token).is_some_and(|id| !id.is_empty() && legal::says_id(content, id)),
            "function" => true,
            _ => false,
        };
        if !fits {
            return false;
        }
    }
    let arguments = at(raw, &["function", "arguments"]);
    seen == 3
        && at(raw, &["function", "name"]).and_then(word) == Some(call.name.as_str())
        && arguments.is_some_and(|token| token.starts_with('"'))
}

/// Whether an id is the one that is kept beside the form, or there is none in both.
fn says_id_or_none(content: &Content, found: Option<&str>) -> bool {
    let kept = content.vendor.as_ref().map(|vendor| &vendor.slots.call);
    match found {
        None => matches!(kept, Some(Slot::Missing)),
        Some(token) => word(token).is_some_and(|id| !id.is_empty() && legal::says_id(content, id)),
    }
}

fn is_gemini_call(content: &Content, raw: &RawJson, call: &ToolCall) -> bool {
    let fits = |(key, at): (&str, std::ops::Range<usize>)| match key {
        "functionCall" => true,
        "thoughtSignature" => special::is_signature(&raw.get()[at]),
        _ => false,
    };
    raw.members().all(fits)
        && at(raw, &["functionCall", "name"]).and_then(word) == Some(call.name.as_str())
        && at(raw, &["functionCall", "args"]) == Some("null")
        && says_id_or_none(content, at(raw, &["functionCall", "id"]))
}

fn is_result(content: &Content, raw: &RawJson, wire: &Wire, result: &ToolResult) -> bool {
    if *wire == Wire::Gemini {
        return is_gemini_result(content, raw, result);
    }
    if !matches!(result.output, Output::Text(_)) {
        return false;
    }
    let members = match wire {
        Wire::OpenAiResponses | Wire::Foundry => Members {
            tag: ("type", "function_call_output"),
            id: Some("call_id"),
            text: Some("output"),
            strings: &["id", "status"],
            ..NONE
        },
        Wire::OpenAiChat => Members {
            tag: ("role", "tool"),
            id: Some("tool_call_id"),
            text: Some("content"),
            ..NONE
        },
        Wire::Anthropic => Members {
            tag: ("type", "tool_result"),
            id: Some("tool_use_id"),
            text: Some("content"),
            flags: &["is_error"],
            ..NONE
        },
        Wire::GeminiInteractions => Members {
            tag: ("type", "function_result"),
            id: Some("call_id"),
            text: Some("result"),
            strings: &["name"],
            flags: &["is_error"],
            ..NONE
        },
        Wire::Gemini | Wire::Other(_) => return false,
    };
    members.fit(Some(content), raw)
}

fn is_gemini_result(content: &Content, raw: &RawJson, result: &ToolResult) -> bool {
    let object = matches!(&result.output, Output::Json(json) if json.get().starts_with('{'));
    let named = result.name.as_deref();
    object
        && named.is_some()
        && raw.members().all(|(key, _)| key == "functionResponse")
        && at(raw, &["functionResponse", "name"]).and_then(word) == named
        && at(raw, &["functionResponse", "response"]) == Some("null")
        && at(raw, &["functionResponse", "parts"]).is_none()
        && says_id_or_none(content, at(raw, &["functionResponse", "id"]))
}
