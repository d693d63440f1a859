//! Members that no schema names.

use serde_json::{Map, Value};

use super::OpenApi;
use super::check::problems;

/// The parts of schemas that a value matches: their own keywords, through references and unions.
fn parts<'s>(
    api: &'s OpenApi,
    schema: &'s Value,
    value: &Value,
    found: &mut Vec<&'s Map<String, Value>>,
) {
    let Value::Object(keys) = schema else {
        return;
    };
    if let Some(target) = keys
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|name| api.target(name))
    {
        parts(api, target, value, found);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for schema in keys
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if key == "allOf" || problems(api, schema, value, "$").is_empty() {
                parts(api, schema, value, found);
            }
        }
    }
    found.push(keys);
}

/// Collects members that none of the schemas names, at every level.
pub(super) fn unnamed(
    api: &OpenApi,
    schemas: &[&Value],
    value: &Value,
    at: &str,
    found: &mut Vec<String>,
) {
    let mut known = Vec::new();
    for schema in schemas {
        parts(api, schema, value, &mut known);
    }
    match value {
        Value::Object(members) => {
            let says_more = |keys: &&Map<String, Value>| keys.contains_key("additionalProperties");
            // Where a schema has no rules about members, all are allowed.
            let free = known.iter().any(says_more)
                || !known.iter().any(|keys| keys.contains_key("properties"));
            for (name, value) in members {
                let properties = known.iter().filter_map(|keys| keys.get("properties"));
                let named: Vec<&Value> = properties.filter_map(|list| list.get(name)).collect();
                let at = format!("{at}.{name}");
                match named.is_empty() {
                    true if free => {}
                    true => found.push(format!("{at}: no schema has this member")),
                    false => unnamed(api, &named, value, &at, found),
                }
            }
        }
        Value::Array(values) => {
            let items: Vec<&Value> = known.iter().filter_map(|keys| keys.get("items")).collect();
            for (index, value) in values.iter().enumerate() {
                if !items.is_empty() {
                    unnamed(api, &items, value, &format!("{at}[{index}]"), found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
