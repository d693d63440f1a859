//! Would this vendor accept this history? Every rule of the rule sheet, checked before sending.
//!
//! The checks read the request's JSON themselves and know nothing of codecs and renderers, so that
//! a mistake there cannot hide here. They refuse what a rule refuses and nothing else: where the
//! sheet is silent, anything goes. Rules are data too, see [`RULES`]; what cannot be seen in a
//! request alone is in the [`Profile`].
//!
//! Not here on purpose: repairing. A [`Violation`] has advice; the renderer repairs.
//!
//! ```
//! use throughline_model::json;
//! use throughline_wire::Wire;
//! use throughline_wire::validate::{Profile, validate};
//!
//! let request = json::parse(
//!     r#"{"input":[{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}]}"#,
//! )?;
//! let violations = validate(&request, &Profile::newest(Wire::OpenAiResponses));
//! assert_eq!(violations.len(), 1);
//! assert_eq!((violations[0].rule, violations[0].path.as_str()), ("O-1", "input[0]"));
//! # Ok::<(), json::JsonError>(())
//! ```

pub(crate) mod issued;
pub(crate) mod object_schema;
pub(crate) mod profile;
pub(crate) mod report;
mod rules;
pub(crate) mod violation;

use throughline_model::Path;
use throughline_model::json::Value;

use crate::vendors;

use report::{PathStyle, Report};

pub use issued::Issued;
pub use profile::{Chained, Generation, Profile};
pub use rules::{ProfileField, RULES, Rule, RuleClass, rule};
pub use violation::Violation;

/// How the requests of one vendor format are checked.
pub(crate) struct ValidateFormat {
    /// How the vendor writes an index into a path.
    pub(crate) paths: PathStyle,
    /// Report every rule that a request breaks.
    pub(crate) check: fn(&Value<'_>, &Profile, &mut Report),
}

/// Check a request against the rules of the profile's vendor.
///
/// The request is a whole body or a bare array of its messages or items; of a bare array the
/// rules about the rest of the body are not checked. An empty list means that no known rule
/// refuses it. Violations come in the order of the messages that they are about.
pub fn validate(request: &Value<'_>, profile: &Profile) -> Vec<Violation> {
    let Some(vendor) = vendors::find(&profile.wire) else {
        // An empty list would read as "accepted".
        let mut report = Report::new(PathStyle::Brackets);
        let name = profile.wire.as_str();
        let message = format!("no rules are known for the format {name}; nothing was checked");
        report.add("S-1", &Path::Root, message).about([name]);
        return report.finish();
    };
    let mut report = Report::new(vendor.validate.paths);
    (vendor.validate.check)(request, profile, &mut report);
    report.finish()
}
