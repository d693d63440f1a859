//! Gemini Interactions.

use crate::compose::answer_schema;
use crate::compose::draft::{Choice, Continues, Draft};
use crate::gemini_interactions::encode;
use crate::google;
use crate::members::Members;

pub(crate) fn write(draft: &mut Draft<'_>) {
    draft.body.str("model", draft.prompt.model);
    draft.said(Continues::Responses);
    draft.body.bool("store", draft.prompt.target.stored);
    let choice = draft.tools(encode::functions);
    if choice.is_some() {
        google::note_parallel_calls(draft);
    }
    google::note_strict_tools(draft);
    draft.leave_out(&["summary"]);
    let config = generation(draft, choice.as_ref());
    draft.body.object("generation_config", config);
    if let Some(answer) = &draft.prompt.settings.answer {
        let schema = answer_schema::schema(draft);
        if answer.schema.is_none() || schema.is_some() {
            let mut format = Members::default();
            format.str("type", "text");
            format.str("mime_type", "application/json");
            if let Some(schema) = schema {
                format.raw("schema", schema);
            }
            draft.body.object("response_format", format);
        }
    }
    if draft.is_streamed() {
        draft.body.bool("stream", true);
    }
}

fn generation(draft: &mut Draft<'_>, choice: Option<&Choice<'_>>) -> Members<'static> {
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
    let stop = draft.stop(google::MAX_STOP_SEQUENCES);
    if !stop.is_empty() {
        config.strings("stop_sequences", stop);
    }
    if let Some(effort) = settings.effort {
        config.str("thinking_level", google::thinking_level(draft, effort));
    }
    if draft.prompt.target.thinking || settings.summary {
        config.str("thinking_summaries", "auto");
    }
    match choice {
        None | Some(Choice::Auto | Choice::Type(..)) => {}
        Some(Choice::None) => config.str("tool_choice", "none"),
        Some(Choice::Required) => config.str("tool_choice", "any"),
        Some(Choice::Function(name)) => {
            let mut tools = Members::default();
            tools.str("mode", "any");
            tools.strings("tools", &[(*name).to_owned()]);
            let mut allowed = Members::default();
            allowed.object("allowed_tools", tools);
            config.object("tool_choice", allowed);
        }
    }
    config
}
