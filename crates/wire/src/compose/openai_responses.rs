//! OpenAI Responses, and what Foundry has in common with it.

use throughline_model::{Effort, ToolChoice};

use super::draft::{Continues, Draft};
use super::shape;
use crate::members::Members;
use crate::openai_responses::body;

pub(super) fn write(draft: &mut Draft<'_>) {
    begin(draft);
    if !draft.prompt.target.stored {
        // Without it reasoning could not go back: the service has not kept it.
        draft
            .body
            .raw("include", r#"["reasoning.encrypted_content"]"#);
    }
    rest(draft);
}

/// The model, what is said, and who keeps it.
pub(super) fn begin(draft: &mut Draft<'_>) {
    draft.body.str("model", draft.prompt.model);
    draft.said(Continues::ResponsesAndConversations);
    draft.body.bool("store", draft.prompt.target.stored);
}

/// Tools and settings.
pub(super) fn rest(draft: &mut Draft<'_>) {
    let settings = draft.prompt.settings;
    if let Some(choice) = draft.tools(body::functions) {
        match choice {
            ToolChoice::Auto => {}
            ToolChoice::None => draft.body.str("tool_choice", "none"),
            ToolChoice::Required => draft.body.str("tool_choice", "required"),
            ToolChoice::Named(name) => {
                let mut named = Members::default();
                named.str("type", "function");
                named.str("name", name);
                draft.body.object("tool_choice", named);
            }
        }
        if let Some(parallel) = settings.parallel_calls {
            draft.body.bool("parallel_tool_calls", parallel);
        }
    }
    if let Some(most) = settings.max_output_tokens {
        draft.body.number("max_output_tokens", most);
    }
    if let Some(temperature) = draft.temperature(2.0) {
        draft.body.raw("temperature", temperature);
    }
    if let Some(share) = draft.top_p() {
        draft.body.raw("top_p", share);
    }
    if !settings.stop.is_empty() {
        draft.lost("stop", "there are no stop texts here");
    }
    if let Some(effort) = settings.effort {
        let mut reasoning = Members::default();
        reasoning.str("effort", word(effort));
        draft.body.object("reasoning", reasoning);
    }
    if let (Some(answer), Some(schema)) = (&settings.answer, shape::schema(draft)) {
        let mut format = Members::default();
        format.str("type", "json_schema");
        format.str("name", &shape::name(answer));
        format.raw("schema", schema);
        format.bool("strict", false);
        let mut text = Members::default();
        text.object("format", format);
        draft.body.object("text", text);
    }
    if draft.is_streamed() {
        draft.body.bool("stream", true);
    }
}

/// OpenAI's words for how much to think.
pub(super) fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Off => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}
