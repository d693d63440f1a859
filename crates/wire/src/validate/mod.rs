//! Would this vendor accept this history? Every rule of the rule sheet, checked before sending.
//!
//! The checks read the request's JSON themselves and know nothing of codecs and renderers, so
//! that a mistake there cannot hide here. They refuse what a rule refuses and nothing else: where
//! the sheet is silent, anything goes. Rules are data too, see [`RULES`]; what cannot be told from
//! a request alone is in the [`Profile`].
//!
//! Not here on purpose: mending. A [`Violation`] says how to mend, somebody else does it.
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

mod anthropic;
mod foundry;
mod gemini;
mod gemini_interactions;
mod issued;
mod openai_chat;
mod openai_responses;
mod profile;
mod report;
mod rules;
mod shape;
mod violation;

use throughline_model::json::Value;
use throughline_model::{Path, Wire};

use report::{Report, Style};

pub(crate) use anthropic::takes_member;

pub use issued::Issued;
pub use profile::{Chained, Generation, Profile};
pub use rules::{ProfileField, RULES, Rule, RuleClass, rule};
pub use violation::Violation;

/// Check a request against the rules of the profile's vendor.
///
/// The request is a whole body or a bare array of its messages or items; of a bare array the
/// rules about the rest of the body are not checked. An empty list means that no known rule
/// refuses it. Violations come in the order of the messages that they are about.
pub fn validate(request: &Value<'_>, profile: &Profile) -> Vec<Violation> {
    let style = match profile.wire {
        Wire::Anthropic => Style::Dots,
        Wire::OpenAiChat
        | Wire::OpenAiResponses
        | Wire::Gemini
        | Wire::GeminiInteractions
        | Wire::Foundry
        | Wire::Other(_) => Style::Brackets,
    };
    let mut report = Report::new(style);
    match &profile.wire {
        Wire::OpenAiChat => openai_chat::check(request, &mut report),
        Wire::OpenAiResponses => openai_responses::check(request, profile, &mut report),
        Wire::Anthropic => anthropic::check(request, profile, &mut report),
        Wire::Gemini => gemini::check(request, profile, &mut report),
        Wire::GeminiInteractions => gemini_interactions::check(request, profile, &mut report),
        Wire::Foundry => foundry::check(request, profile, &mut report),
        // Saying nothing would read as "accepted".
        Wire::Other(name) => {
            report
                .add(
                    "S-1",
                    &Path::Root,
                    format!("no rules are known for the format {name}; nothing was checked"),
                )
                .about([name.as_ref()]);
        }
    }
    report.finish()
}
