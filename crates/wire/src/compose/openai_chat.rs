//! OpenAI Chat Completions, and the many servers that speak it. The instructions are a message of
//! the role `system`: they all know that one, and OpenAI itself reads it as `developer` where it
//! must.

use throughline_model::ToolChoice;

use super::draft::{Continues, Draft};
use super::openai_responses::word;
use super::{TokenLimit, shape};
use crate::members::Members;
use crate::openai_chat::body;

/// As many texts as may end an answer.
const MOST_STOPS: usize = 4;

pub(super) fn write(draft: &mut Draft<'_>) {
    let settings = draft.prompt.settings;
    draft.body.str("model", draft.prompt.model);
    draft.said(Continues::Nothing);
    if let Some(choice) = draft.tools(body::functions) {
        match choice {
            ToolChoice::Auto => {}
            ToolChoice::None => draft.body.str("tool_choice", "none"),
            ToolChoice::Required => draft.body.str("tool_choice", "required"),
            ToolChoice::Named(name) => {
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
        draft.body.str("reasoning_effort", word(effort));
    }
    if let (Some(answer), Some(schema)) = (&settings.answer, shape::schema(draft)) {
        let mut shape = Members::default();
        shape.str("name", &shape::name(answer));
        shape.raw("schema", schema);
        shape.bool("strict", false);
        let mut format = Members::default();
        format.str("type", "json_schema");
        format.object("json_schema", shape);
        draft.body.object("response_format", format);
    }
    if draft.is_streamed() {
        draft.body.bool("stream", true);
        // The last chunk says what the answer cost only if asked to.
        draft
            .body
            .raw("stream_options", r#"{"include_usage":true}"#);
    }
}
