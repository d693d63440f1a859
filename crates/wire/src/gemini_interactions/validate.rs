//! Gemini Interactions: typed steps with ids on every call and every result.

use std::collections::{BTreeMap, BTreeSet};

use throughline_model::Path;
use throughline_model::json::Value;

use crate::validate::object_schema::{
    Field, Kind, KnownObject, filled, member, optional, required, text,
};
use crate::validate::profile::{Chain, Profile};
use crate::validate::report::Report;

const TEXT: Kind = Kind::TEXT;
const LIST: Kind = Kind::LIST;
const OBJECT: Kind = Kind::OBJECT;
const BODY: Kind = OBJECT.or(LIST).or(TEXT);
const SIGNATURE: Field = optional("signature", TEXT);
const IS_ERROR: Field = optional("is_error", Kind::FLAG);

/// A pair of step types: the call with its members, the result with its own.
struct Pair {
    call: &'static str,
    call_fields: &'static [Field],
    result: &'static str,
    result_fields: &'static [Field],
}

const fn pair(
    (call, call_fields): (&'static str, &'static [Field]),
    (result, result_fields): (&'static str, &'static [Field]),
) -> Pair {
    Pair {
        call,
        call_fields,
        result,
        result_fields,
    }
}

static PAIRS: &[Pair] = &[
    pair(
        (
            FUNCTION_CALL,
            &[required("arguments", OBJECT), required("name", TEXT)],
        ),
        (
            "function_result",
            &[required("result", BODY), IS_ERROR, optional("name", TEXT)],
        ),
    ),
    pair(
        (
            "code_execution_call",
            &[required("arguments", OBJECT), SIGNATURE],
        ),
        (
            "code_execution_result",
            &[required("result", LIST.or(TEXT)), IS_ERROR, SIGNATURE],
        ),
    ),
    pair(
        (
            "google_search_call",
            &[required("arguments", OBJECT), SIGNATURE],
        ),
        (
            "google_search_result",
            &[required("result", LIST), IS_ERROR, SIGNATURE],
        ),
    ),
    pair(
        (
            "url_context_call",
            &[required("arguments", OBJECT), SIGNATURE],
        ),
        (
            "url_context_result",
            &[required("result", LIST), IS_ERROR, SIGNATURE],
        ),
    ),
    pair(
        ("file_search_call", &[SIGNATURE]),
        ("file_search_result", &[SIGNATURE]),
    ),
    pair(
        (
            "mcp_server_tool_call",
            &[
                required("arguments", OBJECT),
                required("name", TEXT),
                required("server_name", TEXT),
            ],
        ),
        (
            "mcp_server_tool_result",
            &[
                required("result", BODY),
                optional("name", TEXT),
                optional("server_name", TEXT),
            ],
        ),
    ),
    pair(
        (
            "google_maps_call",
            &[optional("arguments", OBJECT), SIGNATURE],
        ),
        ("google_maps_result", &[required("result", LIST), SIGNATURE]),
    ),
    pair(
        (
            "retrieval_call",
            &[required("arguments", OBJECT), SIGNATURE],
        ),
        ("retrieval_result", &[IS_ERROR, SIGNATURE]),
    ),
    pair(
        ("processing_call", &[SIGNATURE]),
        ("processing_result", &[SIGNATURE]),
    ),
];

/// The one call that the application runs.
const FUNCTION_CALL: &str = "function_call";

/// What a step does in a pair.
enum Step {
    Call(&'static Pair),
    Result(&'static Pair),
    Other,
}

fn step(tag: &str) -> Step {
    let pair = PAIRS
        .iter()
        .find(|pair| pair.call == tag || pair.result == tag);
    match pair {
        Some(pair) if pair.call == tag => Step::Call(pair),
        Some(pair) => Step::Result(pair),
        None => Step::Other,
    }
}

/// Calls of one kind and id; results close the oldest first.
#[derive(Default)]
struct Calls {
    places: Vec<usize>,
    done: usize,
}

pub(super) fn check(request: &Value<'_>, profile: &Profile, report: &mut Report) {
    let input = Path::Root.key("input");
    let is_body = request.as_object().is_some();
    let given = if is_body {
        request.get("input")
    } else {
        Some(request)
    };
    let steps = match given.map(|value| (value, value.as_array())) {
        Some((_, Some(steps))) => steps,
        Some((value, None)) if is_body && TEXT.or(OBJECT).allows(value) => return,
        Some(_) | None => {
            let message = "`input` must be a string, a content, or an array of steps";
            report.add("S-I1", &input, message);
            return;
        }
    };
    let continues = member(request, "previous_interaction_id").is_some();
    let chain = Chain::new(is_body.then_some(continues), profile);
    let mut calls: BTreeMap<(&str, String), Calls> = BTreeMap::new();
    let mut behind = BTreeSet::new();
    for (index, value) in steps.iter().enumerate() {
        let path = input.index(index);
        if value.as_object().is_none() {
            let message = format!("a step must be an object, not {}", value.kind());
            report.add("S-I1", &path, message);
            continue;
        }
        let tag = text(value, "type").unwrap_or_default();
        let (key, fields, pair) = match step(&tag) {
            Step::Call(pair) => ("id", pair.call_fields, pair),
            Step::Result(pair) => ("call_id", pair.result_fields, pair),
            Step::Other => continue,
        };
        let known = KnownObject {
            rule: "S-I2",
            tag: &tag,
            object: value,
            path: &path,
        };
        known.check(fields, report);
        let Some(id) = filled(value, key) else {
            let message = format!("`{tag}` must have `{key}`");
            report.add("I-1", &path.key(key), message).about([tag]);
            continue;
        };
        let name = (pair.call, id.clone());
        if key == "id" {
            calls.entry(name).or_default().places.push(index);
            continue;
        }
        let place = path.key(key);
        if let Some(calls) = calls.get_mut(&name) {
            if calls.done < calls.places.len() {
                calls.done += 1;
            } else {
                second(&id, &place, report);
            }
        } else if chain.has_answer(&id) || behind.contains(&id) {
            second(&id, &place, report);
        } else if chain.may_hold(&id) {
            behind.insert(id);
        } else {
            let wanted = pair.call;
            let message = format!(
                "no `{wanted}` with this id comes before the result; send the call too, or the \
                 result as text"
            );
            report.add("I-2", &place, message).about([id]);
        }
    }
    for ((_, id), calls) in calls.iter().filter(|((tag, _), _)| *tag == FUNCTION_CALL) {
        for place in &calls.places[calls.done..] {
            let message = "the call has no result; answer it, if need be with an error";
            report.add("I-3", &input.index(*place), message).about([id]);
        }
    }
    for id in chain.open() {
        if !behind.contains(id) && !calls.contains_key(&(FUNCTION_CALL, id.to_owned())) {
            let message = "a call of the interaction before has no result; answer it here";
            report.add("I-3", &input, message).about([id]);
        }
    }
}

fn second(id: &str, path: &Path<'_>, report: &mut Report) {
    let message = "the call has its result already; send one result per call";
    report.add("I-3", path, message).about([id]);
}
