//! What a response repeats of its request.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};

use super::ignored::Ignored;
use super::items::read::member;
use super::request::CreateRequest;
use crate::config::Dialect;

/// Members that every response has, and their defaults.
const DEFAULTS: [(&str, &str); 17] = [
    ("background", "false"),
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("model", "\"\""),
    ("parallel_tool_calls", "true"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("prompt_cache_key", "null"),
    ("safety_identifier", "null"),
    ("service_tier", "\"default\""),
    ("store", "true"),
    ("temperature", "1"),
    ("top_logprobs", "0"),
    ("top_p", "1"),
    ("truncation", "\"disabled\""),
    ("metadata", "{}"),
];

/// Members that only OpenAI's response has, if the request had them.
const IF_SENT: [&str; 3] = ["prompt", "prompt_cache_retention", "user"];

/// The members of a response that repeat its request, as an object: they are the same in every
/// event. What is not carried out is shown as it is without it, or as what was sent in its place.
pub(super) fn members(request: &CreateRequest, dialect: Dialect, ignored: &[Ignored]) -> RawJson {
    let kept = request.body().value();
    let effective = EffectiveValues(ignored);
    RawJson::object(|object| {
        for (key, default) in DEFAULTS {
            let said = member(&kept, key).map_or(default, Value::raw);
            object.raw(key, effective.of(key, said, default));
        }
        reasoning(object, member(&kept, "reasoning"), dialect, effective);
        text(object, member(&kept, "text"), dialect, effective);
        tools(object, member(&kept, "tools"), dialect, effective);
        choice(object, member(&kept, "tool_choice"), dialect, effective);
        if dialect == Dialect::OpenAi {
            for key in IF_SENT {
                if let Some(value) = member(&kept, key).filter(|_| effective.has(key)) {
                    object.raw(key, value.raw());
                }
            }
            // Only when both are known: a response says what was used.
            let options = member(&kept, "prompt_cache_options");
            let options = options.filter(|_| effective.has("prompt_cache_options"));
            let options = options.filter(|options| {
                member(options, "ttl").is_some() && member(options, "mode").is_some()
            });
            if let Some(options) = options {
                object.raw("prompt_cache_options", options.raw());
            }
        }
    })
}

/// What holds of a request.
#[derive(Clone, Copy)]
struct EffectiveValues<'i>(&'i [Ignored]);

impl<'i> EffectiveValues<'i> {
    /// A value as it holds.
    fn of<'a>(self, path: &str, said: &'a str, default: &'a str) -> &'a str
    where
        'i: 'a,
    {
        let found = self.0.iter().find(|one| one.path == path);
        match found.map(|one| one.sent.as_deref()) {
            None => said,
            Some(None) => default,
            Some(Some(sent)) => sent,
        }
    }

    /// Whether a member or element holds at all.
    fn has(self, path: &str) -> bool {
        !self.0.iter().any(|one| one.path == path)
    }
}

fn reasoning(
    object: &mut ObjectWriter<'_>,
    said: Option<&Value<'_>>,
    dialect: Dialect,
    effective: EffectiveValues<'_>,
) {
    let mut inner = ObjectWriter::new(object.key("reasoning"));
    // Words that the other specification does not have.
    let own = |value: &&Value<'_>| {
        dialect == Dialect::OpenAi || !value.is_str("minimal") && !value.is_str("max")
    };
    for key in ["effort", "summary"] {
        let value = said.and_then(|said| member(said, key)).filter(own);
        let value = value.map_or("null", Value::raw);
        inner.raw(
            key,
            effective.of(&format!("reasoning.{key}"), value, "null"),
        );
    }
    if let (Some(said), Dialect::OpenAi) = (said, dialect) {
        let holds = |key: &str| effective.has(&format!("reasoning.{key}"));
        others(&mut inner, said, &["effort", "summary"], holds);
    }
    inner.end();
}

fn text(
    object: &mut ObjectWriter<'_>,
    said: Option<&Value<'_>>,
    dialect: Dialect,
    effective: EffectiveValues<'_>,
) {
    let mut inner = ObjectWriter::new(object.key("text"));
    let format = said.and_then(|said| member(said, "format"));
    match format.filter(|_| effective.has("text.format")) {
        None => drop(inner.raw("format", r#"{"type":"text"}"#)),
        Some(format) if dialect == Dialect::OpenResponses && is(format, "json_schema") => {
            let mut shape = ObjectWriter::new(inner.key("format"));
            shape.str("type", "json_schema");
            for (key, default) in [
                ("name", "\"\""),
                ("description", "null"),
                ("strict", "false"),
            ] {
                shape.raw(key, member(format, key).map_or(default, Value::raw));
            }
            // The specification has no other value here.
            shape.raw("schema", "null");
            shape.end();
        }
        Some(format) => drop(inner.raw("format", format.raw())),
    }
    let verbosity = said.and_then(|said| member(said, "verbosity"));
    if let Some(verbosity) = verbosity.filter(|_| effective.has("text.verbosity")) {
        inner.raw("verbosity", verbosity.raw());
    }
    if let (Some(said), Dialect::OpenAi) = (said, dialect) {
        let holds = |key: &str| effective.has(&format!("text.{key}"));
        others(&mut inner, said, &["format", "verbosity"], holds);
    }
    inner.end();
}

fn is(value: &Value<'_>, tag: &str) -> bool {
    value.get("type").is_some_and(|found| found.is_str(tag))
}

/// The members that were not written yet.
fn others(
    object: &mut ObjectWriter<'_>,
    said: &Value<'_>,
    written: &[&str],
    holds: impl Fn(&str) -> bool,
) {
    for found in said.members() {
        let key = found.key.to_str();
        let last = said
            .get(&key)
            .is_some_and(|last| std::ptr::eq(last, &found.value));
        if last && !written.contains(&&*key) && holds(&key) {
            object.raw(&key, found.value.raw());
        }
    }
}

fn tools(
    object: &mut ObjectWriter<'_>,
    said: Option<&Value<'_>>,
    dialect: Dialect,
    effective: EffectiveValues<'_>,
) {
    let said = said.and_then(Value::as_array).unwrap_or_default();
    let mut list = ArrayWriter::new(object.key("tools"));
    for (index, tool) in said.iter().enumerate() {
        let path = format!("tools[{index}]");
        if !effective.has(&path) {
            continue;
        }
        let holds = |key: &str| effective.has(&format!("{path}.{key}"));
        if is(tool, "function") {
            function(list.slot(), tool, dialect, holds);
        } else if dialect == Dialect::OpenAi {
            // Credentials are not echoed.
            let mut shown = ObjectWriter::new(list.slot());
            others(&mut shown, tool, &["authorization", "headers"], holds);
            shown.end();
        }
    }
    list.end();
}

/// A function with all the members that readers count on.
fn function(out: &mut String, tool: &Value<'_>, dialect: Dialect, holds: impl Fn(&str) -> bool) {
    let mut object = ObjectWriter::new(out);
    object.str("type", "function");
    let keys = ["name", "description", "parameters", "strict"];
    for key in keys {
        let value = member(tool, key).filter(|_| holds(key));
        object.raw(key, value.map_or("null", Value::raw));
    }
    if dialect == Dialect::OpenAi {
        others(
            &mut object,
            tool,
            &["type", "name", "description", "parameters", "strict"],
            holds,
        );
    }
    object.end();
}

fn choice(
    object: &mut ObjectWriter<'_>,
    said: Option<&Value<'_>>,
    dialect: Dialect,
    effective: EffectiveValues<'_>,
) {
    let known = |choice: &&Value<'_>| {
        let open =
            choice.as_text().is_some() || is(choice, "function") || is(choice, "allowed_tools");
        dialect == Dialect::OpenAi || open
    };
    let said = said.filter(known).map_or("\"auto\"", Value::raw);
    object.raw("tool_choice", effective.of("tool_choice", said, "\"auto\""));
}
