//! Tools that a vendor runs itself, in the words of another vendor.

use throughline_model::json::{RawJson, Value};
use throughline_model::{Family, Path, ToolDef, Wire};

use super::draft::Draft;
use crate::LossKind;
use crate::members::Members;
use crate::openai_responses::body::own_definition;

/// A tool of the vendor, ready for its list of tools.
pub(super) struct Hosted<'t> {
    /// The name by which it is chosen.
    pub(super) name: &'t str,
    /// How this vendor names it in a choice.
    pub(super) chosen: Chosen,
    /// Its definition.
    pub(super) json: String,
}

/// How a tool of the vendor is named in a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// By a name, as functions are.
    Name(&'static str),
    /// By its type alone.
    Type(String),
    /// By its type and its name.
    TypeAndName(String),
    /// It cannot be demanded.
    Never,
}

/// The tools of the list that this vendor runs itself. What it has no such tool for is a loss.
pub(super) fn hosted<'p>(draft: &mut Draft<'p>) -> Vec<Hosted<'p>> {
    let tools = draft.prompt.tools;
    let functions = tools.iter().any(|tool| tool.family == Family::FUNCTION);
    let mut found = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        if tool.family == Family::FUNCTION {
            continue;
        }
        let one = match draft.prompt.target.wire {
            Wire::OpenAiResponses | Wire::Foundry => own(tool),
            Wire::Anthropic => anthropic(draft, tool, index),
            Wire::Gemini => gemini(draft, tool, index, functions),
            Wire::OpenAiChat | Wire::GeminiInteractions | Wire::Other(_) => None,
        };
        match one {
            Some(one) => found.push(one),
            None => {
                let name = if tool.name.is_empty() {
                    tool.family.as_str()
                } else {
                    &tool.name
                };
                let detail = format!("{} has no tool {name}", draft.prompt.target.wire);
                lost(draft, index, None, detail);
            }
        }
    }
    found
}

/// A tool that came from this vendor's own API.
fn own(tool: &ToolDef) -> Option<Hosted<'_>> {
    let json = own_definition(tool)?;
    let tag = json
        .value()
        .get("type")
        .and_then(Value::as_str)?
        .into_owned();
    let named = json
        .value()
        .get("name")
        .is_some_and(|name| name.as_text().is_some());
    Some(Hosted {
        name: &tool.name,
        chosen: match named {
            true => Chosen::TypeAndName(tag),
            false => Chosen::Type(tag),
        },
        json: json.get().to_owned(),
    })
}

fn anthropic<'p>(draft: &mut Draft<'p>, tool: &'p ToolDef, index: usize) -> Option<Hosted<'p>> {
    let mut json = Members::default();
    let name = match &tool.family {
        family if *family == Family::WEB_SEARCH => {
            json.str("type", "web_search_20250305");
            json.str("name", "web_search");
            "web_search"
        }
        family if is_code(family) => {
            json.str("type", "code_execution_20250825");
            json.str("name", "code_execution");
            "code_execution"
        }
        _ => return None,
    };
    if let Some(options) = own_definition(tool) {
        let value = options.value();
        for member in value.members() {
            let key = member.key.to_str();
            match &*key {
                "type" | "name" => {}
                "filters" => {
                    for filter in member.value.members() {
                        match &*filter.key.to_str() {
                            "allowed_domains" => {
                                json.raw("allowed_domains", filter.value.raw().to_owned());
                            }
                            "blocked_domains" => {
                                json.raw("blocked_domains", filter.value.raw().to_owned());
                            }
                            other => {
                                let key = format!("filters.{other}");
                                lost(draft, index, Some(&key), "the search has no such filter");
                            }
                        }
                    }
                }
                "user_location" if !member.value.is_null() => {
                    json.raw("user_location", approximate(&member.value));
                }
                other
                    if says_nothing(&member.value) || is_plain_container(other, &member.value) => {}
                other => lost(
                    draft,
                    index,
                    Some(other),
                    "the tool has no such option here",
                ),
            }
        }
    }
    Some(Hosted {
        name: &tool.name,
        chosen: Chosen::Name(name),
        json: json.into_text(),
    })
}

fn gemini<'p>(
    draft: &mut Draft<'p>,
    tool: &'p ToolDef,
    index: usize,
    functions: bool,
) -> Option<Hosted<'p>> {
    let json = match &tool.family {
        family if *family == Family::WEB_SEARCH => r#"{"googleSearch":{}}"#,
        family if is_code(family) => r#"{"codeExecution":{}}"#,
        _ => return None,
    };
    if functions && !draft.prompt.target.generation.tool_combination {
        return None;
    }
    if let Some(options) = own_definition(tool) {
        let value = options.value();
        for member in value.members() {
            let key = member.key.to_str();
            let plain = matches!(&*key, "type" | "name")
                || says_nothing(&member.value)
                || is_plain_container(&key, &member.value);
            if !plain {
                lost(draft, index, Some(&key), "the tool has no such option here");
            }
        }
    }
    Some(Hosted {
        name: &tool.name,
        chosen: Chosen::Never,
        json: json.to_owned(),
    })
}

fn lost(draft: &mut Draft<'_>, index: usize, key: Option<&str>, detail: impl Into<String>) {
    let root = Path::Root.key("tools");
    let path = root.index(index);
    match key {
        Some(key) => draft
            .losses
            .note(&path.key(key), LossKind::ToolDefinition, detail),
        None => draft.losses.note(&path, LossKind::ToolDefinition, detail),
    }
}

fn is_code(family: &Family) -> bool {
    *family == Family::CODE_INTERPRETER || *family == Family::CODE_EXECUTION
}

fn says_nothing(value: &Value<'_>) -> bool {
    value.is_null()
        || value.as_array().is_some_and(<[_]>::is_empty)
        || value.as_object().is_some_and(<[_]>::is_empty)
}

/// A container that the vendor makes: it makes one anyway.
fn is_plain_container(key: &str, value: &Value<'_>) -> bool {
    let only_type = |value: &Value<'_>| {
        let mut members = value.members().iter();
        members.all(|member| &*member.key.to_str() == "type" || says_nothing(&member.value))
    };
    key == "container"
        && value.get("type").is_some_and(|tag| tag.is_str("auto"))
        && only_type(value)
}

/// A place as Anthropic wants it: with its type.
fn approximate(value: &Value<'_>) -> String {
    RawJson::object(|object| {
        object.str("type", "approximate");
        for member in value.members() {
            let key = member.key.to_str();
            if key != "type" && !member.value.is_null() {
                object.raw(&key, member.value.raw());
            }
        }
    })
    .get()
    .to_owned()
}
