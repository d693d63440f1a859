//! The status of items and responses.

use throughline_model::json::RawJson;

/// An object with another status, if it has one.
pub(crate) fn with_status(object: &RawJson, status: &str) -> RawJson {
    let value = object.value();
    match value.get("status") {
        Some(found) => RawJson::of_with(&value, &[(found, &format!("\"{status}\""))]),
        None => object.clone(),
    }
}
