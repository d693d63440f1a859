//! Tools on offer, read.

use throughline_model::json::{RawJson, Value};
use throughline_model::{Family, ToolDef};

use crate::google::{self, either_member};
use crate::read::{member, text_of};

/// The tools on offer. One object may offer several.
pub(super) fn decode(body: &Value<'_>) -> Vec<ToolDef> {
    let list = body.get("tools").and_then(Value::as_array);
    let mut tools = Vec::new();
    for member in list.unwrap_or_default().iter().flat_map(Value::members) {
        let key = member.key.to_str();
        match &*key {
            "functionDeclarations" | "function_declarations" => {
                let declared = member.value.as_array();
                tools.extend(declared.unwrap_or_default().iter().map(function));
            }
            _ => tools.push(ToolDef {
                family: google::tool_family(&key),
                name: String::new(),
                description: None,
                parameters: None,
                ..ToolDef::default()
            }),
        }
    }
    tools
}

fn function(declared: &Value<'_>) -> ToolDef {
    let schema = either_member(declared, ("parametersJsonSchema", "parameters_json_schema"));
    let schema = schema.map(|(_, schema)| RawJson::of(schema));
    ToolDef {
        family: Family::FUNCTION,
        name: text_of(declared, "name").unwrap_or_default(),
        description: text_of(declared, "description"),
        parameters: schema.or_else(|| member(declared, "parameters").map(json_schema)),
        ..ToolDef::default()
    }
}

/// The schema in `parameters`, whose types are written in capitals, as JSON schema.
fn json_schema(schema: &Value<'_>) -> RawJson {
    let mut lowered = Vec::new();
    types(schema, &mut lowered);
    let edits: Vec<_> = lowered
        .iter()
        .map(|(value, text)| (*value, text.as_str()))
        .collect();
    RawJson::of_with(schema, &edits)
}

fn types<'v, 'a>(schema: &'v Value<'a>, lowered: &mut Vec<(&'v Value<'a>, String)>) {
    for member in schema.members() {
        match &*member.key.to_str() {
            "type" => {
                if let Some(text) = member.value.as_text() {
                    lowered.push((
                        &member.value,
                        format!("\"{}\"", text.token().to_ascii_lowercase()),
                    ));
                }
            }
            "properties" => {
                for property in member.value.members() {
                    types(&property.value, lowered);
                }
            }
            "anyOf" | "any_of" => {
                for option in member.value.as_array().unwrap_or_default() {
                    types(option, lowered);
                }
            }
            "items" => types(&member.value, lowered),
            _ => {}
        }
    }
}
