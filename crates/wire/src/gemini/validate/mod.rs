//! Gemini generateContent. Keys may be in camel or in snake case; the service takes both.

mod part;
mod turns;

use throughline_model::Path;
use throughline_model::json::Value;

use crate::validate::object_schema::{filled, member};
use crate::validate::profile::Profile;
use crate::validate::report::Report;

/// The documented value for a call that another model made.
const PLACEHOLDER: &str = "skip_thought_signature_validator";

const CALL: &str = "functionCall";
const RESPONSE: &str = "functionResponse";
const CODE: &str = "executableCode";
const CODE_RESULT: &str = "codeExecutionResult";
const TOOL_CALL: &str = "toolCall";
const TOOL_RESPONSE: &str = "toolResponse";

/// A part of a kind that is known.
struct Part<'v, 'a> {
    index: usize,
    /// The data key in camel case, for comparing.
    tag: &'static str,
    /// The data key as it is spelled.
    key: &'static str,
    /// The data key as the vendor's errors spell it.
    snake: &'static str,
    body: &'v Value<'a>,
    signature: Option<String>,
}

impl Part<'_, '_> {
    fn id(&self) -> Option<String> {
        filled(self.body, "id")
    }

    fn name(&self) -> Option<String> {
        filled(self.body, "name")
    }
}

/// An element of `contents`.
struct Content<'v, 'a> {
    index: usize,
    is_model: bool,
    parts: Vec<Part<'v, 'a>>,
}

impl<'v, 'a> Content<'v, 'a> {
    fn of(&self, tag: &'static str) -> impl Iterator<Item = &Part<'v, 'a>> {
        self.parts.iter().filter(move |part| part.tag == tag)
    }

    fn has(&self, tag: &'static str) -> bool {
        self.of(tag).next().is_some()
    }

    /// What a call is known by: its id, else its name.
    fn names(&self, tag: &'static str) -> Vec<String> {
        let name = |part: &Part<'_, '_>| part.id().or_else(|| part.name());
        self.of(tag).filter_map(name).collect()
    }
}

struct Checker<'c> {
    profile: &'c Profile,
    /// Whether contents that are not in the request come before its first.
    cached: bool,
    report: &'c mut Report,
}

pub(super) fn check(request: &Value<'_>, profile: &Profile, report: &mut Report) {
    let contents = Path::Root.key("contents");
    let given = match request.as_array() {
        Some(list) => Some(list),
        None => request.get("contents").and_then(Value::as_array),
    };
    let Some(list) = given else {
        let message = "`contents` must be an array of contents";
        report.add("S-G1", &contents, message);
        return;
    };
    let cached = either(request, "cachedContent", "cached_content").is_some();
    let mut checker = Checker {
        profile,
        cached,
        report,
    };
    let mut read = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        read.extend(checker.content(index, value));
    }
    checker.turns(&read);
    checker.signatures(&read);
}

fn either<'v, 'a>(object: &'v Value<'a>, key: &str, snake: &str) -> Option<&'v Value<'a>> {
    member(object, key).or_else(|| member(object, snake))
}
