//! Validates a value against a schema.

use serde_json::{Map, Value};

use super::OpenApi;

/// The violations.
pub(super) fn problems(api: &OpenApi, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let keys = match schema {
        Value::Object(keys) => keys,
        Value::Bool(false) => return vec![format!("{at}: nothing may stand here")],
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    if let Some(target) = keys.get("$ref").and_then(Value::as_str) {
        match api.target(target) {
            Some(target) => found.extend(problems(api, target, value, at)),
            None => found.push(format!("{at}: {target} leads nowhere")),
        }
    }
    for schema in list(keys, "allOf") {
        found.extend(problems(api, schema, value, at));
    }
    for key in ["anyOf", "oneOf"] {
        union(api, list(keys, key), value, at, &mut found);
    }
    if let Some(schema) = keys.get("not")
        && problems(api, schema, value, at).is_empty()
    {
        found.push(format!("{at}: fits what it must not"));
    }
    if let Some(kinds) = keys.get("type")
        && !is_of(kinds, keys, value)
    {
        found.push(format!("{at}: {} is not of type {kinds}", short(value)));
        return found;
    }
    if let Some(known) = keys.get("enum").and_then(Value::as_array)
        && !known.contains(value)
    {
        found.push(format!(
            "{at}: {} is none of {}",
            short(value),
            short(&known.clone().into())
        ));
    }
    if let Some(only) = keys.get("const")
        && only != value
    {
        found.push(format!("{at}: {} is not {only}", short(value)));
    }
    match value {
        Value::Object(members) => object(api, keys, members, at, &mut found),
        Value::Array(values) => {
            bounds(
                keys,
                ("minItems", "maxItems"),
                values.len() as f64,
                at,
                &mut found,
            );
            if let Some(schema) = keys.get("items") {
                for (index, value) in values.iter().enumerate() {
                    found.extend(problems(api, schema, value, &format!("{at}[{index}]")));
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as f64;
            bounds(keys, ("minLength", "maxLength"), length, at, &mut found);
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            bounds(keys, ("minimum", "maximum"), number, at, &mut found);
            let above = keys.get("exclusiveMinimum").and_then(Value::as_f64);
            if above.is_some_and(|least| number <= least) {
                found.push(format!("{at}: {number} is too small"));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    found
}

fn list<'s>(keys: &'s Map<String, Value>, key: &str) -> &'s [Value] {
    keys.get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// At least one of the schemas must match. If none does, the violations of the closest one are
/// reported.
fn union(api: &OpenApi, schemas: &[Value], value: &Value, at: &str, found: &mut Vec<String>) {
    let mut closest: Option<Vec<String>> = None;
    for schema in schemas {
        let wrong = problems(api, schema, value, at);
        if wrong.is_empty() {
            return;
        }
        // A wrong type is less informative than one wrong member.
        let rank = |wrong: &[String]| {
            let tagged = wrong
                .iter()
                .any(|one| one.starts_with(&format!("{at}.type:")));
            let whole = wrong.iter().any(|one| one.starts_with(&format!("{at}: ")));
            (tagged, whole, wrong.len())
        };
        if closest
            .as_ref()
            .is_none_or(|known| rank(&wrong) < rank(known))
        {
            closest = Some(wrong);
        }
    }
    found.extend(closest.into_iter().flatten());
}

fn is_of(kinds: &Value, keys: &Map<String, Value>, value: &Value) -> bool {
    let one = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    };
    let nullable = keys.get("nullable") == Some(&Value::Bool(true));
    nullable && value.is_null()
        || match kinds {
            Value::String(kind) => one(kind),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(one),
            _ => false,
        }
}

fn object(
    api: &OpenApi,
    keys: &Map<String, Value>,
    members: &Map<String, Value>,
    at: &str,
    found: &mut Vec<String>,
) {
    for name in list(keys, "required").iter().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            found.push(format!("{at}: {name} is missing"));
        }
    }
    let count = members.len() as f64;
    bounds(keys, ("minProperties", "maxProperties"), count, at, found);
    let properties = keys.get("properties").and_then(Value::as_object);
    for (name, value) in members {
        let at = format!("{at}.{name}");
        match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => found.extend(problems(api, schema, value, &at)),
            None => {
                if let Some(schema) = keys.get("additionalProperties") {
                    found.extend(problems(api, schema, value, &at));
                }
            }
        }
        if let Some(schema) = keys.get("propertyNames") {
            found.extend(problems(api, schema, &Value::String(name.clone()), &at));
        }
    }
}

fn bounds(
    keys: &Map<String, Value>,
    (least, most): (&str, &str),
    size: f64,
    at: &str,
    found: &mut Vec<String>,
) {
    let limit = |key: &str| keys.get(key).and_then(Value::as_f64);
    if limit(least).is_some_and(|least| size < least) || limit(most).is_some_and(|most| size > most)
    {
        found.push(format!("{at}: {size} is outside of {least} and {most}"));
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
