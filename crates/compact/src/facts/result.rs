//! How a call ended, and what a structured result says.

use throughline_model::Outcome;
use throughline_model::json::{self, Limits, Node, Value};

use super::{Called, errors};
use crate::category::Category;
use crate::text;

/// How a call ended.
pub(super) struct Ended {
    pub(super) failed: bool,
    /// The exit code, if there is one.
    pub(super) code: Option<i64>,
    /// What to say where there is no result to speak of.
    pub(super) missing: Option<&'static str>,
}

pub(super) fn ended(called: &Called<'_>, said: &str) -> Ended {
    let Some(result) = called.result else {
        return Ended {
            failed: false,
            code: None,
            missing: Some("no result recorded"),
        };
    };
    let missing = match result.outcome {
        Outcome::Ok | Outcome::Error => None,
        Outcome::Rejected => Some("rejected by a person, did not run"),
        Outcome::Expired => Some("not approved in time, did not run"),
        Outcome::Withdrawn => Some("withdrawn, did not run"),
        Outcome::Limit => Some("did not run: a limit was reached"),
        Outcome::Terminated => Some("did not run: the run was ended"),
        Outcome::Cancelled => Some("cancelled"),
        Outcome::Unknown => Some("result lost, whether it ran is unknown"),
    };
    // What only looks at things has no exit code; its text may speak of those of others.
    let runs = match called.category {
        Category::Execute | Category::Other => true,
        Category::Read
        | Category::Write
        | Category::Query
        | Category::Structured
        | Category::Plan
        | Category::Media => false,
    };
    let code = runs.then(|| errors::exit_code(said)).flatten();
    let looks =
        called.category == Category::Execute && code.is_none() && errors::looks_failed(said);
    Ended {
        failed: result.outcome == Outcome::Error || code.is_some_and(|code| code != 0) || looks,
        code,
        missing,
    }
}

/// Bytes of a structured result that are read.
const READ: usize = 1 << 20;

/// The scalars of a JSON text, depth first: `k=v, …`.
pub(super) fn scalars(said: &str, most: usize) -> Option<String> {
    let trimmed = said.trim();
    if trimmed.len() > READ {
        return None;
    }
    let limits = Limits {
        depth: 64,
        values: 200_000,
    };
    let value = json::parse_with(trimmed, limits).ok()?;
    let mut out = String::new();
    walk(&value, "", most, &mut out);
    (!out.is_empty()).then(|| text::one_line(&out, most))
}

fn walk(value: &Value<'_>, key: &str, most: usize, out: &mut String) {
    if out.len() >= most * 2 {
        return;
    }
    match value.node() {
        Node::Object(members) => {
            for member in members {
                walk(&member.value, &member.key.to_str(), most, out);
            }
        }
        Node::Array(values) => {
            for value in values {
                walk(value, key, most, out);
            }
        }
        Node::Null => {}
        Node::String(_) | Node::Number | Node::Bool(_) => {
            let said = match value.as_str() {
                Some(said) => text::one_line(&said, 80),
                None => value.raw().to_owned(),
            };
            if !out.is_empty() {
                out.push_str(", ");
            }
            if !key.is_empty() {
                out.push_str(&text::one_line(key, 40));
                out.push('=');
            }
            out.push_str(&said);
        }
    }
}
