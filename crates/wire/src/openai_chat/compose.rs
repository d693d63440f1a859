//! OpenAI Chat Completions, and the many servers that speak it. The instructions are a message of
//! the role `system`: they all know that one, and OpenAI itself reads it as `developer` where it
//! must.

use throughline_model::AnswerShape;

use crate::compose::draft::{Choice, Continues, Draft};
use crate::compose::{TokenLimit, answer_schema};
use crate::members::Members;
use crate::openai;
use crate::openai_chat::body;

/// As many texts as may end an answer.
const MOST_STOPS: usize = 4;

pub(crate) fn write(draft: &mut Draft<'_>) {
    let settings = draft.prompt.settings;
    draft.body.str("model", draft.prompt.model);
    draft.said(Continues::Nothing);
    if let Some(choice) = draft.tools(body::functions) {
        match choice {
            // There are functions alone.
            Choice::Auto | Choice::Type(..) => {}
            Choice::None => draft.body.str("tool_choice", "none"),
            Choice::Required => draft.body.str("tool_choice", "required"),
            Choice::Function(name) => {
                let mut function = Members::default();
                function.str("name", name);
                let mut named = Members::default();
                named.str("type", "function");
                named.object("function", function);
                draft.body.object("tool_choice", named);
            }
        }
        if let Some(parallel) = settings.parallel_calls {
            draft.body.bool("parallel_tool_calls", parallel);
        }
    }
    if let Some(most) = settings.max_output_tokens {
        let key = match draft.prompt.limit {
            TokenLimit::MaxCompletionTokens => "max_completion_tokens",
            TokenLimit::MaxTokens => "max_tokens",
        };
        draft.body.number(key, most);
    }
    if let Some(temperature) = draft.temperature(2.0) {
        draft.body.raw("temperature", temperature);
    }
    if let Some(share) = draft.top_p() {
        draft.body.raw("top_p", share);
    }
    let stop = draft.stop(MOST_STOPS);
    if !stop.is_empty() {
        draft.body.strings("stop", stop);
    }
    if let Some(effort) = settings.effort {
        draft.body.str("reasoning_effort", effort.as_str());
    }
    if let Some(answer) = &settings.answer {
        let format = format(draft, answer);
        draft.body.object("response_format", format);
    }
    if let Some(verbosity) = settings.verbosity {
        draft.body.str("verbosity", verbosity.as_str());
    }
    for (key, value) in [
        ("presence_penalty", settings.presence_penalty),
        ("frequency_penalty", settings.frequency_penalty),
    ] {
        if let Some(penalty) = draft.penalty(key, value) {
            draft.body.raw(key, penalty);
        }
    }
    // All compatible servers know this name; OpenAI takes it beside the newer one.
    openai::write_settings(draft, "user");
    draft.leave_out(&[
        "verbosity",
        "presence_penalty",
        "frequency_penalty",
        "user",
        "service_tier",
        "cache_key",
        "cache_retention",
    ]);
    if draft.is_streamed() {
        draft.body.bool("stream", true);
        // The last chunk says what the answer cost only if asked to.
        draft
            .body
            .raw("stream_options", r#"{"include_usage":true}"#);
    }
}

fn format(draft: &mut Draft<'_>, answer: &AnswerShape) -> Members<'static> {
    let mut format = Members::default();
    match (&answer.schema, answer_schema::schema(draft)) {
        (None, _) => format.str("type", "json_object"),
        (Some(_), None) => {}
        (Some(_), Some(schema)) => {
            let mut shape = Members::default();
            openai::write_json_schema(&mut shape, answer, schema);
            format.str("type", "json_schema");
            format.object("json_schema", shape);
        }
    }
    format
}
