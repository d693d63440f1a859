//! Schemas whose objects have no other members than those that they name.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};

/// A schema with `additionalProperties: false` in every object that does not mention other members: what fits it fits
/// the schema as it was. `None` if an object allows others.
pub(crate) fn closed_schema(schema: &RawJson) -> Option<String> {
    let mut out = String::new();
    close(&schema.value(), &mut out).is_ok().then_some(out)
}

/// An object of a schema allows members that it does not name.
struct Open;

fn close(schema: &Value<'_>, out: &mut String) -> Result<(), Open> {
    if schema.as_object().is_none() {
        out.push_str(schema.raw());
        return Ok(());
    }
    let kind = schema.get("type");
    let is_object = kind.is_some_and(|kind| match kind.as_array() {
        Some(kinds) => kinds.iter().any(|kind| kind.is_str("object")),
        None => kind.is_str("object"),
    });
    let is_object = is_object || schema.get("properties").is_some();
    let others = schema.get("additionalProperties");
    if is_object && others.is_some_and(|others| others.as_bool() != Some(false)) {
        return Err(Open);
    }
    let mut object = ObjectWriter::new(out);
    for member in schema.members() {
        let key = member.key.to_str();
        let slot = object.key(&key);
        match &*key {
            "properties" | "$defs" | "definitions" => {
                let mut inner = ObjectWriter::new(slot);
                for member in member.value.members() {
                    close(&member.value, inner.key(&member.key.to_str()))?;
                }
                inner.end();
            }
            "items" => close(&member.value, slot)?,
            "anyOf" | "allOf" | "oneOf" | "prefixItems" => {
                let mut list = ArrayWriter::new(slot);
                for value in member.value.as_array().unwrap_or_default() {
                    close(value, list.slot())?;
                }
                list.end();
            }
            _ => slot.push_str(member.value.raw()),
        }
    }
    if is_object && others.is_none() {
        object.bool("additionalProperties", false);
    }
    object.end();
    Ok(())
}
