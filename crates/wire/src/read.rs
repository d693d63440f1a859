//! Reading members of vendor objects: absent, null and wrong are three things.

use std::borrow::Cow;

use throughline_model::json::Value;
use throughline_model::{IdField, Path};

use crate::DecodeError;

/// A member that is neither absent nor null.
pub(crate) fn member<'v, 'a>(object: &'v Value<'a>, key: &str) -> Option<&'v Value<'a>> {
    object.get(key).filter(|value| !value.is_null())
}

/// A string member; absent and null are none, anything else is an error.
pub(crate) fn optional_str<'a>(
    object: &Value<'a>,
    key: &str,
    path: &Path<'_>,
) -> Result<Option<Cow<'a, str>>, DecodeError> {
    match member(object, key) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(DecodeError::expected(&path.key(key), "a string", value)),
        },
    }
}

/// A string member that must be there.
pub(crate) fn required_str<'a>(
    object: &Value<'a>,
    key: &str,
    path: &Path<'_>,
) -> Result<Cow<'a, str>, DecodeError> {
    match object.get(key) {
        None => Err(DecodeError::missing(&path.key(key), "a string")),
        Some(value) => value
            .as_str()
            .ok_or_else(|| DecodeError::expected(&path.key(key), "a string", value)),
    }
}

/// An array member that must be there.
pub(crate) fn required_array<'v, 'a>(
    object: &'v Value<'a>,
    key: &str,
    path: &Path<'_>,
) -> Result<&'v [Value<'a>], DecodeError> {
    match object.get(key) {
        None => Err(DecodeError::missing(&path.key(key), "an array")),
        Some(value) => value
            .as_array()
            .ok_or_else(|| DecodeError::expected(&path.key(key), "an array", value)),
    }
}

/// A string, or nothing for whatever else stands there.
pub(crate) fn text_of(object: &Value<'_>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(Cow::into_owned)
}

/// A whole number, or nothing for whatever else stands there.
pub(crate) fn number_of(object: &Value<'_>, path: &[&str]) -> Option<u64> {
    object.at(path).and_then(Value::as_u64)
}

/// An id field as it is; anything but a string or null is an error.
pub(crate) fn id_field(
    object: &Value<'_>,
    key: &str,
    path: &Path<'_>,
) -> Result<IdField, DecodeError> {
    Ok(match object.get(key) {
        None => IdField::Missing,
        Some(value) if value.is_null() => IdField::Null,
        Some(value) => match value.as_str() {
            Some(text) => IdField::Set(text.into()),
            None => {
                return Err(DecodeError::expected(
                    &path.key(key),
                    "a string or null",
                    value,
                ));
            }
        },
    })
}
