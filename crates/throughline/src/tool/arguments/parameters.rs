use std::fmt;
use std::sync::Arc;

use throughline_model::Arguments;
use throughline_model::json::{self, RawJson, Value};

use super::error::SHOWN;
use super::parse_error::not_json;
use super::schema::{Finding, Schema, SchemaError, Verdict, found};
use super::{ArgumentError, Violation};

/// What a tool takes: a JSON schema, compiled once. Clones are cheap.
///
/// Invariant: the schema describes an object and has `type` and `properties`, as vendors require,
/// and all its keywords that are checked are valid.
#[derive(Clone)]
pub struct Parameters(Arc<Inner>);

struct Inner {
    json: RawJson,
    schema: Arc<Schema>,
}

impl Parameters {
    /// No parameters.
    pub fn none() -> Self {
        Self::sound(r#"{"type":"object","properties":{}}"#)
    }

    /// Any object: for tools whose parameters are unknown or are checked by the tool.
    pub fn any() -> Self {
        Self::sound(r#"{"type":"object","properties":{},"additionalProperties":true}"#)
    }

    fn sound(text: &str) -> Self {
        Self::parse(text).expect("the text is a schema of an object")
    }

    /// Parses a schema.
    ///
    /// ```
    /// use throughline::tool::Parameters;
    ///
    /// let schema = r#"{"properties": {"port": {"type": "string"}}, "required": ["port"]}"#;
    /// let parameters = Parameters::parse(schema)?;
    /// assert_eq!(
    ///     parameters.as_json().get(),
    ///     r#"{"type":"object","properties":{"port":{"type":"string"}},"required":["port"]}"#
    /// );
    /// # Ok::<(), throughline::tool::SchemaError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let value = json::parse(text).map_err(SchemaError::NotJson)?;
        Self::of(&value)
    }

    /// Compiles a schema.
    pub fn new(schema: &RawJson) -> Result<Self, SchemaError> {
        Self::of(&schema.value())
    }

    /// Takes a schema without checking it: models are shown it, and the arguments of calls must
    /// only be an object. For tools that another program runs and checks.
    ///
    /// ```
    /// use throughline::tool::Parameters;
    /// use throughline::model::json::RawJson;
    ///
    /// let odd = RawJson::new(r#"{"$ref":"https://example.com/schema"}"#)?;
    /// assert!(Parameters::new(&odd).is_err());
    /// assert_eq!(Parameters::unchecked(&odd).as_json(), &odd);
    /// # Ok::<(), throughline::model::json::JsonError>(())
    /// ```
    pub fn unchecked(schema: &RawJson) -> Self {
        let any = Self::any();
        Self(Arc::new(Inner {
            json: schema.clone(),
            schema: Arc::clone(&any.0.schema),
        }))
    }

    fn of(value: &Value<'_>) -> Result<Self, SchemaError> {
        let compiled = Schema::compile(value)?;
        let members = value.as_object().ok_or(SchemaError::NotObject)?;
        if let Some(types) = value.get("type") {
            let object = types.is_str("object")
                || matches!(types.as_array(), Some([only]) if only.is_str("object"));
            if !object {
                return Err(SchemaError::NotObject);
            }
        }
        // A list of one type means the type, and vendors require the latter form.
        let json = RawJson::object(|out| {
            out.str("type", "object");
            if value.get("properties").is_none() {
                out.raw("properties", "{}");
            }
            for member in members.iter().filter(|member| !member.key.is("type")) {
                json::push_compact(out.key_token(&member.key), &member.value);
            }
        });
        Ok(Self(Arc::new(Inner {
            json,
            schema: Arc::new(compiled),
        })))
    }

    /// The schema as models are shown it.
    pub fn as_json(&self) -> &RawJson {
        &self.0.json
    }

    /// Checks the arguments of a call and returns them as an object.
    pub fn check(&self, arguments: &Arguments) -> Result<RawJson, ArgumentError> {
        let text = match arguments {
            Arguments::None => "{}",
            Arguments::Text(text) if text.trim().is_empty() => "{}",
            Arguments::Text(text) => text,
            Arguments::Json(json) => json.get(),
            Arguments::Free(_) => {
                let found = "free text".to_owned();
                return Err(ArgumentError::NotObject { found });
            }
        };
        let value = json::parse(text).map_err(|error| not_json(text, error))?;
        if value.as_object().is_none() {
            let found = found(&value);
            return Err(ArgumentError::NotObject { found });
        }
        match self.0.schema.check(&value, SHOWN + 1) {
            Verdict::Fits => Ok(RawJson::of(&value)),
            Verdict::TooMuch => Err(ArgumentError::TooLarge),
            Verdict::Refused(findings) => {
                let more = findings.len() > SHOWN;
                let violations = findings.into_iter().take(SHOWN);
                Err(ArgumentError::Refused {
                    violations: violations.map(Violation::from).collect(),
                    more,
                })
            }
        }
    }
}

impl From<Finding> for Violation {
    fn from(finding: Finding) -> Self {
        Self {
            path: finding.path,
            message: finding.message,
        }
    }
}

impl PartialEq for Parameters {
    fn eq(&self, other: &Self) -> bool {
        self.0.json == other.0.json
    }
}

impl Eq for Parameters {}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.json.fmt(f)
    }
}
