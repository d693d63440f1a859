//! The schema of a Rust type, as vendors take it.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use throughline_model::json::RawJson;

use crate::tool::Parameters;

/// The field under which a type is offered that is not an object.
const FIELD: &str = "input";

/// Where a type stands that is offered in the field and holds itself.
const MOVED: &str = "#/$defs/input";

/// What a type takes as arguments.
pub struct Derived {
    pub(super) parameters: Parameters,
    /// Whether the type stands in the field `input` of the arguments.
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
    // Vendors differ in whether they follow references, so only types that hold themselves keep
    // theirs.
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    Clean.transform(&mut schema);
    let object = schema.get("type").and_then(Value::as_str) == Some("object");
    let combined = ["oneOf", "anyOf", "allOf", "$ref"];
    if object
        && !combined
            .iter()
            .any(|keyword| schema.get(*keyword).is_some())
    {
        return Derived::plain(parameters(&schema));
    }
    // A type that holds itself refers to the root, where it stands no longer.
    let mut moved = Moved { found: false };
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

/// The schema of a type, an object; a type that is none stands in its field `input`.
pub(crate) fn schema_of<T: JsonSchema>() -> RawJson {
    of::<T>().parameters.as_json().clone()
}

fn parameters(schema: &Schema) -> Parameters {
    Parameters::parse(&schema.as_value().to_string()).unwrap_or_else(|error| {
        // A type may say anything of itself. What it cannot read it still refuses.
        tracing::warn!(%error, "the schema of an argument type cannot be used, any object is taken");
        Parameters::any()
    })
}

/// What stands in the field of wrapped arguments.
pub(crate) fn unwrapped(arguments: &RawJson) -> &str {
    match arguments.locate(&[FIELD]) {
        Some(range) => &arguments.get()[range],
        None => "null",
    }
}

/// Takes away what says nothing to a model and irritates some vendors.
struct Clean;

impl Transform for Clean {
    fn transform(&mut self, schema: &mut Schema) {
        schema.remove("$schema");
        schema.remove("title");
        let format = schema.get("format").and_then(Value::as_str);
        // Names of Rust's numbers that no standard knows; bounds are said by numbers besides.
        let ours = ["int", "int8", "int16", "int128"];
        if format.is_some_and(|format| format.starts_with("uint") || ours.contains(&format)) {
            schema.remove("format");
        }
        transform_subschemas(self, schema);
    }
}

/// Lets references to the root lead to where the type went.
struct Moved {
    found: bool,
}

impl Transform for Moved {
    fn transform(&mut self, schema: &mut Schema) {
        if schema.get("$ref").and_then(Value::as_str) == Some("#") {
            schema.insert("$ref".to_owned(), MOVED.into());
            self.found = true;
        }
        transform_subschemas(self, schema);
    }
}
