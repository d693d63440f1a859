//! A small validator for OpenAPI 3.1: does a JSON value match a schema of a description?
//!
//! It knows the keywords that the published descriptions of the Responses API use and refuses a
//! description with any other, so that no rule is silently skipped. Two things are lenient on
//! purpose: `oneOf` requires at least one matching schema, because published unions overlap, and
//! `pattern` and `format` are ignored.

mod check;
mod members;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

/// How members that a schema does not name are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are allowed, as in JSON Schema.
    Allowed,
    /// They are an error, unless the schema allows other members.
    Refused,
}

/// The schemas of a description.
#[derive(Debug)]
pub struct OpenApi {
    schemas: Map<String, Value>,
}

/// Keywords that do not constrain values, or that are ignored.
const SILENT: [&str; 20] = [
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "format",
    "pattern",
    "readOnly",
    "writeOnly",
    "discriminator",
    "externalDocs",
    "contentEncoding",
    "contentMediaType",
    "uniqueItems",
    "nullable",
    "xml",
    "$comment",
    "$recursiveAnchor",
    "$recursiveRef",
];

/// Keywords that are checked.
const CHECKED: [&str; 21] = [
    "$ref",
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "properties",
    "required",
    "additionalProperties",
    "propertyNames",
    "maxProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
];

impl OpenApi {
    /// Parses a description.
    pub fn read(text: &str) -> Result<Self, String> {
        let root: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let schemas = root
            .pointer("/components/schemas")
            .and_then(Value::as_object);
        let schemas = schemas.ok_or("there are no components.schemas")?.clone();
        let api = Self { schemas };
        for (name, schema) in &api.schemas {
            api.known(schema, name)?;
        }
        Ok(api)
    }

    /// The names of all schemas.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.schemas.keys().map(String::as_str)
    }

    /// Validates a value against a schema; returns the violations with their places.
    pub fn check(&self, name: &str, value: &Value, others: Others) -> Result<(), Vec<String>> {
        let Some(schema) = self.schemas.get(name) else {
            return Err(vec![format!("there is no schema {name}")]);
        };
        let mut problems = check::problems(self, schema, value, "$");
        if problems.is_empty() && others == Others::Refused {
            members::unnamed(self, &[schema], value, "$", &mut problems);
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems),
        }
    }

    /// The target of a reference.
    fn target(&self, reference: &str) -> Option<&Value> {
        self.schemas
            .get(reference.strip_prefix("#/components/schemas/")?)
    }

    /// Refuses unknown keywords, and references without a target.
    fn known(&self, schema: &Value, at: &str) -> Result<(), String> {
        let Value::Object(keys) = schema else {
            return match schema {
                Value::Bool(_) => Ok(()),
                _ => Err(format!("{at}: a schema is an object")),
            };
        };
        for (key, value) in keys {
            let at = format!("{at}.{key}");
            match key.as_str() {
                "$ref" => {
                    let found = value.as_str().and_then(|name| self.target(name));
                    found.ok_or_else(|| format!("{at}: {value} leads nowhere"))?;
                }
                "properties" => {
                    for (name, schema) in value.as_object().into_iter().flatten() {
                        self.known(schema, &format!("{at}.{name}"))?;
                    }
                }
                "items" | "additionalProperties" | "not" | "propertyNames" => {
                    self.known(value, &at)?;
                }
                "anyOf" | "oneOf" | "allOf" => {
                    for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
                        self.known(schema, &format!("{at}[{index}]"))?;
                    }
                }
                key if CHECKED.contains(&key) || SILENT.contains(&key) => {}
                key if key.starts_with("x-") => {}
                _ => return Err(format!("{at}: this keyword is not known")),
            }
        }
        Ok(())
    }
}
