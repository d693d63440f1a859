use std::fmt;
use std::sync::Arc;

use throughline_model::Arguments;
use throughline_model::json::{self, RawJson, Value};

use super::error::SHOWN;
use super::schema::{Finding, Schema, SchemaError, Verdict, found};
use super::written::not_json;
use super::{ArgumentError, Violation};

/// What a tool takes: a JSON schema, read once and ready to check calls with. Copies are cheap.
///
/// Invariant: the schema describes an object and says so (`type` and `properties` are there), as
/// vendors demand, and all of it that is checked makes sense.
#[derive(Clone)]
pub struct Parameters(Arc<Inner>);

struct Inner {
    json: RawJson,
    schema: Arc<Schema>,
}

impl Parameters {
    /// Nothing.
    pub fn none() -> Self {
        Self::sound(r#"{"type":"object","properties":{}}"#)
    }

    /// Any object: what the tool takes is not known, or only the tool can tell.
    pub fn any() -> Self {
        Self::sound(r#"{"type":"object","properties":{},"additionalProperties":true}"#)
    }

    fn sound(text: &str) -> Self {
        Self::parse(text).expect("the text is a schema of an object")
    }

    /// Read a schema from its text.
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

    /// Take a schema.
    pub fn new(schema: &RawJson) -> Result<Self, SchemaError> {
        Self::of(&schema.value())
    }

    /// Take a schema as it is, whatever it says: models are given it, and calls are only held
    /// against being objects. For tools that another program runs and checks.
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
        // A list of one type is the same as the type, and vendors want the type itself.
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

    /// The schema as models are given it.
    pub fn as_json(&self) -> &RawJson {
        &self.0.json
    }

    /// The arguments of a call as an object, if they fit.
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
