//! Gemini Interactions.

use throughline_model::ToolChoice;

use super::draft::{Continues, Draft};
use super::gemini::{MOST_STOPS, level, note_parallel};
use super::shape;
use crate::gemini_interactions::encode;
use crate::members::Members;

pub(super) fn write(draft: &mut Draft<'_>) {
    draft.body.str("model", draft.prompt.model);
    draft.said(Continues::Responses);
    draft.body.bool("store", draft.prompt.target.stored);
    let choice = draft.tools(encode::functions);
    if choice.is_some() {
        note_parallel(draft);
    }
    let config = generation(draft, choice);
    draft.body.object("generation_config", config);
    if let Some(schema) = shape::schema(draft) {
        let mut format = Members::default();
        format.str("type", "text");
        format.str("mime_type", "application/json");
        format.raw("schema", schema);
        draft.body.object("response_format", format);
    }
    if draft.is_streamed() {
        draft.body.bool("stream", true);
    }
}

fn generation(draft: &mut Draft<'_>, choice: Option<&ToolChoice>) -> Members<'static> {
    let settings = draft.prompt.settings;
    let mut config = Members::default();
    if let Some(most) = settings.max_output_tokens {
        config.number("max_output_tokens", most);
    }
    if let Some(temperature) = draft.temperature(2.0) {
        config.raw("temperature", temperature);
    }
    if let Some(share) = draft.top_p() {
        config.raw("top_p", share);
    }
    let stop = draft.stop(MOST_STOPS);
    if !stop.is_empty() {
        config.strings("stop_sequences", stop);
    }
    if let Some(effort) = settings.effort {
        config.str("thinking_level", level(draft, effort));
    }
    if draft.prompt.target.thinking {
        config.str("thinking_summaries", "auto");
    }
    match choice {
        None | Some(ToolChoice::Auto) => {}
        Some(ToolChoice::None) => config.str("tool_choice", "none"),
        Some(ToolChoice::Required) => config.str("tool_choice", "any"),
        Some(ToolChoice::Named(name)) => {
            let mut tools = Members::default();
            tools.str("mode", "any");
            tools.strings("tools", std::slice::from_ref(name));
            let mut allowed = Members::default();
            allowed.object("allowed_tools", tools);
            config.object("tool_choice", allowed);
        }
    }
    config
}
