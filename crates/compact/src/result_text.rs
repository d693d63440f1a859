//! The text of a result that can be shown in part.

use std::borrow::Cow;

use throughline_model::json::{self, RawJson};
use throughline_model::{Output, ToolResult};

use crate::shorten::shorten;
use crate::text;
use crate::tokens;

/// The text of a result, if it can be shown in part: media must stay beside its text.
fn divisible(result: &ToolResult) -> Option<Cow<'_, str>> {
    match &result.output {
        Output::None => None,
        Output::Json(json) => match only_text(json) {
            Some((_, text)) => Some(text),
            None => Some(Cow::Borrowed(json.get())),
        },
        Output::Text(_) => Some(text::of_output(&result.output)),
        Output::Parts(parts) => {
            let only_text = parts.iter().all(|part| part.as_text().is_some());
            only_text.then(|| text::of_output(&result.output))
        }
    }
}

/// The key and the text of an object with one text and nothing else, which is how Gemini has plain outputs. As JSON
/// it would be one line, and longer each time that it is cut and read again.
fn only_text(json: &RawJson) -> Option<(&str, Cow<'_, str>)> {
    let mut members = json.members();
    let (key, value) = members.next()?;
    if members.next().is_some() || key.contains('\\') {
        return None;
    }
    let value = json::parse(json.get().get(value)?).ok()?;
    Some((key, value.as_str()?))
}

/// Units of the text of a result that can be shown in part.
pub(crate) fn text_size(result: &ToolResult) -> Option<u64> {
    divisible(result).map(|text| tokens::text_units(&text).into())
}

/// The text of a result that is larger than a cap.
pub(crate) fn over(result: &ToolResult, cap: u64) -> Option<Cow<'_, str>> {
    let text = divisible(result)?;
    is_over(&text, cap).then_some(text)
}

/// Whether a text has more units.
pub(crate) fn is_over(text: &str, cap: u64) -> bool {
    // A token has at least one byte.
    text.len() as u64 > cap && u64::from(tokens::text_units(text)) > cap
}

/// A result that is larger than a cap, in part.
pub(crate) fn shorter(result: &ToolResult, cap: u64, seq: u64) -> Option<ToolResult> {
    let text = over(result, cap)?;
    let short = shorten(&text, cap, seq, result.outcome);
    let output = match &result.output {
        Output::Json(json) => only_text(json).map(|(key, _)| {
            Output::Json(RawJson::object(|object| {
                object.str(key, &short);
            }))
        }),
        Output::None | Output::Text(_) | Output::Parts(_) => None,
    };
    let mut result = result.clone();
    result.output = output.unwrap_or(Output::Text(short));
    Some(result)
}

#[cfg(test)]
mod tests {
    use throughline_model::json::{RawJson, Value};
    use throughline_model::{CallId, Outcome, Output, ToolCall};

    use super::{shorter, text_size};

    #[test]
    fn an_object_with_one_text_is_cut_by_its_lines_and_cut_once() {
        let lines: Vec<String> = (0..400).map(|line| format!("\t\"berth {line}\"")).collect();
        let whole = RawJson::object(|object| {
            object.str("output", &lines.join("\n"));
        });
        let call = ToolCall::function(CallId::natural("c").unwrap(), "read", "{}");
        let result = call.answer(Outcome::Ok, Output::Json(whole));
        let short = shorter(&result, 500, 7).unwrap();
        let Output::Json(json) = &short.output else {
            panic!("{:?}", short.output);
        };
        let value = json.value();
        let text = value.get("output").and_then(Value::as_str).unwrap();
        assert!(text.contains(" lines left out, all of it is #7]"), "{text}");
        assert!(text.starts_with("\t\"berth 0\"\n"), "{text}");
        assert!(text_size(&short) <= Some(500));
        assert!(shorter(&short, 500, 7).is_none());

        let more = RawJson::object(|object| {
            object.str("output", &lines.join("\n")).number("code", 0);
        });
        let result = call.answer(Outcome::Ok, Output::Json(more));
        let short = shorter(&result, 500, 7).unwrap();
        assert!(
            matches!(short.output, Output::Text(_)),
            "{:?}",
            short.output
        );
    }
}
