//! The JSON schema of a Rust type, in the form that vendors accept.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use throughline_model::json::RawJson;

use crate::tool::Parameters;

/// The field that holds arguments of a type that is not an object.
const FIELD: &str = "input";

/// The definition of a recursive type that is held by the field.
const MOVED: &str = "#/$defs/input";

/// The parameters that were derived from a type.
pub struct Derived {
    pub(super) parameters: Parameters,
    /// Whether the type is held by the field `input`.
    pub(super) wrapped: bool,
}

impl Derived {
    pub(super) fn plain(parameters: Parameters) -> Self {
        Self {
            parameters,
            wrapped: false,
        }
    }
}

pub(super) fn of<T: JsonSchema>() -> Derived {
    // Vendors differ in whether they follow references, so only recursive types keep theirs.
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RemoveAnnotations.transform(&mut schema);
    let object = schema.get("type").and_then(Value::as_str) == Some("object");
    let combined = ["oneOf", "anyOf", "allOf", "$ref"];
    if object
        && !combined
            .iter()
            .any(|keyword| schema.get(*keyword).is_some())
    {
        return Derived::plain(parameters(&schema));
    }
    // A recursive type refers to the root of the schema, from which it has moved.
    let mut moved = RedirectRootRefs { found: false };
    moved.transform(&mut schema);
    let mut defs = match schema.remove("$defs") {
        Some(Value::Object(defs)) => defs,
        _ => serde_json::Map::new(),
    };
    if moved.found {
        defs.insert(FIELD.to_owned(), schema.to_value());
        schema = schemars::json_schema!({ "$ref": MOVED });
    }
    let mut outer = schemars::json_schema!({
        "type": "object",
        "properties": { FIELD: schema },
        "required": [FIELD],
    });
    if !defs.is_empty() {
        outer.insert("$defs".to_owned(), Value::Object(defs));
    }
    Derived {
        parameters: parameters(&outer),
        wrapped: true,
    }
}

/// The schema of a type as an object; other types are held by the field `input`.
pub(crate) fn schema_of<T: JsonSchema>() -> RawJson {
    of::<T>().parameters.as_json().clone()
}

fn parameters(schema: &Schema) -> Parameters {
    Parameters::parse(&schema.as_value().to_string()).unwrap_or_else(|error| {
        // A type may derive an invalid schema. Deserialising still refuses invalid arguments.
        tracing::warn!(%error, "the schema of an argument type cannot be used, any object is taken");
        Parameters::any()
    })
}

/// The value of the field in wrapped arguments.
pub(crate) fn unwrapped(arguments: &RawJson) -> &str {
    match arguments.locate(&[FIELD]) {
        Some(range) => &arguments.get()[range],
        None => "null",
    }
}

/// Removes keywords that tell a model nothing and that some vendors refuse.
struct RemoveAnnotations;

impl Transform for RemoveAnnotations {
    fn transform(&mut self, schema: &mut Schema) {
        schema.remove("$schema");
        schema.remove("title");
        let format = schema.get("format").and_then(Value::as_str);
        // Formats of Rust's number types that no standard defines; the bounds are separate
        // keywords.
        let ours = ["int", "int8", "int16", "int128"];
        if format.is_some_and(|format| format.starts_with("uint") || ours.contains(&format)) {
            schema.remove("format");
        }
        transform_subschemas(self, schema);
    }
}

/// Redirects references to the root to the moved type.
struct RedirectRootRefs {
    found: bool,
}

impl Transform for RedirectRootRefs {
    fn transform(&mut self, schema: &mut Schema) {
        if schema.get("$ref").and_then(Value::as_str) == Some("#") {
            schema.insert("$ref".to_owned(), MOVED.into());
            self.found = true;
        }
        transform_subschemas(self, schema);
    }
}
