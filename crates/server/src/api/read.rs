//! Reading the body of a request and its members, with the errors that clients know.

use std::borrow::Cow;

use throughline_model::Path;
use throughline_model::json::{Limits, Value, parse_bytes};

use crate::ApiError;
use crate::suggest::{did_you_mean, suggest};

/// How deep a body may be nested.
const DEPTH: usize = 64;

/// How many values a body may hold. Each costs about 64 bytes while it is read.
const VALUES: usize = 1_000_000;

/// The longest string that a client may send as input or as the output of a tool, in characters.
pub(crate) const LONGEST_TEXT: usize = 10_485_760;

/// A body, which must be an object.
pub(crate) fn body(bytes: &[u8]) -> Result<Value<'_>, ApiError> {
    let limits = Limits {
        depth: DEPTH,
        values: VALUES,
    };
    let value = parse_bytes(bytes, limits).map_err(|error| {
        ApiError::invalid(format!(
            "We could not parse the JSON body of your request: {error}."
        ))
    })?;
    match value.as_object() {
        Some(_) => Ok(value),
        None => Err(ApiError::invalid(format!(
            "The body of your request must be a JSON object, not {}.",
            value.kind()
        ))),
    }
}

/// Refuse members that are not known, by name.
pub(crate) fn check_known(
    object: &Value<'_>,
    known: &[&'static str],
    path: &Path<'_>,
) -> Result<(), ApiError> {
    let members = object.members().iter();
    let mut names = members.map(|member| member.key.to_str());
    match names.find(|name| !known.contains(&&**name)) {
        Some(name) => Err(unknown(&name, known, path)),
        None => Ok(()),
    }
}

/// A member or a parameter that is not known.
pub(crate) fn unknown(name: &str, known: &[&'static str], path: &Path<'_>) -> ApiError {
    let name: String = name.chars().take(64).collect();
    let meant = did_you_mean(&suggest(&name, known.iter().copied()));
    let path = path.key(&name);
    ApiError::invalid(format!("Unknown parameter: '{path}'{meant}"))
        .code("unknown_parameter")
        .param(path.to_string())
}

/// A member that is there and not null.
pub(crate) fn member<'v, 'a>(object: &'v Value<'a>, key: &str) -> Option<&'v Value<'a>> {
    object.get(key).filter(|value| !value.is_null())
}

/// A member of the wrong type.
pub(crate) fn wrong_type(path: &Path<'_>, expected: &str, found: &Value<'_>) -> ApiError {
    ApiError::invalid(format!(
        "Invalid type for '{path}': expected {expected}, but got {} instead.",
        found.kind()
    ))
    .code("invalid_type")
    .param(path.to_string())
}

/// A member with a value that it cannot have.
pub(crate) fn wrong_value(path: &Path<'_>, found: &str, known: &[&str]) -> ApiError {
    let known: Vec<String> = known.iter().map(|word| format!("'{word}'")).collect();
    // What a client sent may be long, and is shown in an error.
    let found: String = found.chars().take(64).collect();
    ApiError::invalid(format!(
        "Invalid value: '{found}'. Supported values are: {}.",
        known.join(", ")
    ))
    .code("invalid_value")
    .param(path.to_string())
}

/// A member that must be there.
pub(crate) fn missing(path: &Path<'_>) -> ApiError {
    ApiError::invalid(format!("Missing required parameter: '{path}'."))
        .code("missing_required_parameter")
        .param(path.to_string())
}

/// A number outside its range, or a text or list that is too long.
pub(crate) fn out_of_range(path: &Path<'_>, code: &'static str, what: &str) -> ApiError {
    ApiError::invalid(format!("Invalid '{path}': {what}."))
        .code(code)
        .param(path.to_string())
}

/// An object among the members.
pub(crate) fn object<'v, 'a>(
    parent: &'v Value<'a>,
    key: &str,
    path: &Path<'_>,
) -> Result<Option<&'v Value<'a>>, ApiError> {
    let Some(value) = member(parent, key) else {
        return Ok(None);
    };
    match value.as_object() {
        Some(_) => Ok(Some(value)),
        None => Err(wrong_type(&path.key(key), "an object", value)),
    }
}

/// A list among the members.
pub(crate) fn list<'v, 'a>(
    parent: &'v Value<'a>,
    key: &str,
    path: &Path<'_>,
) -> Result<Option<&'v [Value<'a>]>, ApiError> {
    let Some(value) = member(parent, key) else {
        return Ok(None);
    };
    match value.as_array() {
        Some(values) => Ok(Some(values)),
        None => Err(wrong_type(&path.key(key), "an array", value)),
    }
}

/// A string among the members.
pub(crate) fn text<'a>(
    parent: &Value<'a>,
    key: &str,
    path: &Path<'_>,
) -> Result<Option<Cow<'a, str>>, ApiError> {
    let Some(value) = member(parent, key) else {
        return Ok(None);
    };
    match value.as_str() {
        Some(text) => Ok(Some(text)),
        None => Err(wrong_type(&path.key(key), "a string", value)),
    }
}

/// A string that must be there.
pub(crate) fn required<'a>(
    parent: &Value<'a>,
    key: &str,
    path: &Path<'_>,
) -> Result<Cow<'a, str>, ApiError> {
    text(parent, key, path)?.ok_or_else(|| missing(&path.key(key)))
}

/// A string of a closed set.
pub(crate) fn one_of(
    parent: &Value<'_>,
    key: &str,
    known: &[&'static str],
    path: &Path<'_>,
) -> Result<Option<&'static str>, ApiError> {
    let Some(found) = text(parent, key, path)? else {
        return Ok(None);
    };
    match known.iter().find(|word| ***word == *found) {
        Some(word) => Ok(Some(*word)),
        None => Err(wrong_value(&path.key(key), &found, known)),
    }
}

/// A truth value among the members.
pub(crate) fn flag(
    parent: &Value<'_>,
    key: &str,
    path: &Path<'_>,
) -> Result<Option<bool>, ApiError> {
    let Some(value) = member(parent, key) else {
        return Ok(None);
    };
    match value.as_bool() {
        Some(flag) => Ok(Some(flag)),
        None => Err(wrong_type(&path.key(key), "a boolean", value)),
    }
}

/// A whole number of a range among the members.
pub(crate) fn integer(
    parent: &Value<'_>,
    key: &str,
    (least, most): (u64, u64),
    path: &Path<'_>,
) -> Result<Option<u64>, ApiError> {
    let Some(value) = member(parent, key) else {
        return Ok(None);
    };
    let path = path.key(key);
    let below = |found: &str| {
        let what = format!(
            "integer below minimum value. Expected a value >= {least}, but got {found} instead"
        );
        out_of_range(&path, "integer_below_min_value", &what)
    };
    let Some(number) = value.as_u64() else {
        let raw = value.raw();
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        return Err(match (whole, raw.starts_with('-')) {
            (true, true) => below(raw),
            (true, false) => above(&path, "integer", most, raw),
            (false, _) => wrong_type(&path, "an integer", value),
        });
    };
    match number {
        number if number < least => Err(below(value.raw())),
        number if number > most => Err(above(&path, "integer", most, value.raw())),
        number => Ok(Some(number)),
    }
}

fn above(path: &Path<'_>, kind: &str, most: impl std::fmt::Display, found: &str) -> ApiError {
    let found: String = found.chars().take(32).collect();
    let what =
        format!("{kind} above maximum value. Expected a value <= {most}, but got {found} instead");
    let code = match kind {
        "integer" => "integer_above_max_value",
        _ => "decimal_above_max_value",
    };
    out_of_range(path, code, &what)
}

/// A number of a range among the members.
pub(crate) fn decimal(
    parent: &Value<'_>,
    key: &str,
    (least, most): (f64, f64),
    path: &Path<'_>,
) -> Result<Option<f64>, ApiError> {
    let Some(value) = member(parent, key) else {
        return Ok(None);
    };
    let path = path.key(key);
    let is_number = matches!(value.node(), throughline_model::json::Node::Number);
    let number: Option<f64> = value.raw().parse().ok().filter(|_| is_number);
    match number {
        None => Err(wrong_type(&path, "a number", value)),
        Some(number) if number < least => {
            let found: String = value.raw().chars().take(32).collect();
            let what = format!(
                "decimal below minimum value. Expected a value >= {least}, but got {found} instead"
            );
            Err(out_of_range(&path, "decimal_below_min_value", &what))
        }
        Some(number) if number > most => Err(above(&path, "decimal", most, value.raw())),
        Some(number) => Ok(Some(number)),
    }
}

/// Refuse a text of more characters than are allowed.
pub(crate) fn check_length(path: &Path<'_>, text: &str, most: usize) -> Result<(), ApiError> {
    // A character has at least one byte, so nearly all texts need not be counted.
    if text.len() <= most || text.chars().count() <= most {
        return Ok(());
    }
    let what = format!(
        "string too long. Expected a string with maximum length {most}, but got a string with \
         length {} instead",
        text.chars().count()
    );
    Err(out_of_range(path, "string_above_max_length", &what))
}
