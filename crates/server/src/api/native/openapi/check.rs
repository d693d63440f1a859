//! Checks a request against the schemas of its operation, with the errors that clients know.

use throughline_model::Path;
use throughline_model::json::{Node, Value};

use super::components;
use super::schema::{OtherMembers, Schema, SchemaKind, SchemaMember};
use crate::api::query::wrong;
use crate::api::read;
use crate::error::ApiError;

/// Refuse a value that does not fit, with its path.
pub(in crate::api::native) fn check(
    schema: &Schema,
    value: &Value<'_>,
    path: &Path<'_>,
) -> Result<(), ApiError> {
    if value.is_null() && schema.is_nullable {
        return Ok(());
    }
    let expect = |found: bool, what: &str| match found {
        true => Ok(()),
        false => Err(read::wrong_type(path, what, value)),
    };
    match &schema.kind {
        SchemaKind::Any => Ok(()),
        SchemaKind::Named(name) => match components::schema(name) {
            Some(schema) => check(&schema, value, path),
            None => Err(ApiError::server(format!("There is no schema {name}."))),
        },
        SchemaKind::Text { least, most, .. } => {
            let text = value.as_str();
            expect(text.is_some(), "a string")?;
            let text = text.unwrap_or_default();
            check_text(&text, (*least, *most), path)
        }
        SchemaKind::Word(words) => {
            let text = value.as_str();
            expect(text.is_some(), "a string")?;
            let text = text.unwrap_or_default();
            match words.contains(&&*text) {
                true => Ok(()),
                false => Err(read::wrong_value(path, &text, words)),
            }
        }
        SchemaKind::Integer { least, most } => check_integer(value, (*least, *most), path),
        SchemaKind::Flag => expect(value.as_bool().is_some(), "a boolean"),
        SchemaKind::List { of, most } => {
            let values = value.as_array();
            expect(values.is_some(), "an array")?;
            let values = values.unwrap_or_default();
            if most.is_some_and(|most| values.len() > most) {
                let what = format!("array too long: it has {} values", values.len());
                return Err(read::out_of_range(path, "array_above_max_length", &what));
            }
            let mut values = values.iter().enumerate();
            values.try_for_each(|(index, value)| check(of, value, &path.index(index)))
        }
        SchemaKind::Object { members, others } => {
            expect(value.as_object().is_some(), "an object")?;
            check_object(members, *others, value, path)
        }
    }
}

fn check_object(
    members: &[SchemaMember],
    others: OtherMembers,
    value: &Value<'_>,
    path: &Path<'_>,
) -> Result<(), ApiError> {
    if value.has_duplicate_keys() {
        let what = "a member is given twice";
        return Err(read::out_of_range(path, "invalid_value", what));
    }
    if others == OtherMembers::Refused {
        let known: Vec<&'static str> = members.iter().map(|member| member.name).collect();
        read::check_known(value, &known, path)?;
    }
    for member in members {
        let path = path.key(member.name);
        match value.get(member.name) {
            Some(value) => check(&member.schema, value, &path)?,
            None if member.is_required => return Err(read::missing(&path)),
            None => {}
        }
    }
    Ok(())
}

fn check_text(
    text: &str,
    (least, most): (usize, Option<usize>),
    path: &Path<'_>,
) -> Result<(), ApiError> {
    if text.chars().take(least).count() < least {
        let what = format!("string too short. Expected at least {least} characters");
        return Err(read::out_of_range(path, "string_below_min_length", &what));
    }
    match most {
        Some(most) => read::check_length(path, text, most),
        None => Ok(()),
    }
}

fn check_integer(
    value: &Value<'_>,
    (least, most): (u64, u64),
    path: &Path<'_>,
) -> Result<(), ApiError> {
    let digits = value.raw().strip_prefix('-').unwrap_or(value.raw());
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(value.node(), Node::Number) || !is_whole {
        return Err(read::wrong_type(path, "an integer", value));
    }
    match value.as_u64() {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        _ => {
            let found: String = value.raw().chars().take(32).collect();
            let what = format!("expected an integer from {least} to {most}, but got {found}");
            Err(read::out_of_range(path, "integer_out_of_range", &what))
        }
    }
}

/// Refuse a text of a query that does not fit.
pub(in crate::api::native) fn check_parameter(
    name: &str,
    schema: &Schema,
    text: &str,
) -> Result<(), ApiError> {
    let path = Path::Root;
    let path = path.key(name);
    match &schema.kind {
        SchemaKind::Text { least, most, .. } => check_text(text, (*least, *most), &path),
        SchemaKind::Word(words) => match words.contains(&text) {
            true => Ok(()),
            false => Err(read::wrong_value(&path, text, words)),
        },
        SchemaKind::Flag => match text {
            "true" | "false" => Ok(()),
            _ => Err(wrong(name, "true or false")),
        },
        SchemaKind::Integer { least, most } => {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|_| is_number);
            match number {
                Some(number) if (*least..=*most).contains(&number) => Ok(()),
                _ => Err(wrong(
                    name,
                    &format!("a whole number from {least} to {most}"),
                )),
            }
        }
        // Each value of a repeated parameter is checked by itself.
        SchemaKind::List { of, .. } => check_parameter(name, of, text),
        SchemaKind::Any | SchemaKind::Object { .. } | SchemaKind::Named(_) => Ok(()),
    }
}
