//! Gemini's `generateContent`. The model, and whether the answer is streamed, stand in the address.

use throughline_model::{Effort, ToolChoice};

use super::draft::{Continues, Draft};
use super::shape;
use crate::gemini::encode;
use crate::members::Members;

/// As many texts as may end an answer.
pub(super) const MOST_STOPS: usize = 5;

pub(super) fn write(draft: &mut Draft<'_>) {
    draft.said(Continues::Nothing);
    let choice = draft.tools(encode::functions);
    let mut calling = Members::default();
    match choice {
        None | Some(ToolChoice::Auto) => {}
        Some(ToolChoice::None) => calling.str("mode", "NONE"),
        Some(ToolChoice::Required) => calling.str("mode", "ANY"),
        Some(ToolChoice::Named(name)) => {
            calling.str("mode", "ANY");
            calling.strings("allowedFunctionNames", std::slice::from_ref(name));
        }
    }
    let mut tool_config = Members::default();
    tool_config.object("functionCallingConfig", calling);
    draft.body.object("toolConfig", tool_config);
    if choice.is_some() {
        note_parallel(draft);
    }
    let config = generation(draft, choice.is_some());
    draft.body.object("generationConfig", config);
}

/// Gemini calls as many functions at once as it likes.
pub(super) fn note_parallel(draft: &mut Draft<'_>) {
    if draft.prompt.settings.parallel_calls == Some(false) {
        draft.lost("parallel_calls", "parallel calls cannot be switched off");
    }
}

fn generation(draft: &mut Draft<'_>, tools: bool) -> Members<'static> {
    let settings = draft.prompt.settings;
    let mut config = Members::default();
    if let Some(most) = settings.max_output_tokens {
        config.number("maxOutputTokens", most);
    }
    if let Some(temperature) = draft.temperature(2.0) {
        config.raw("temperature", temperature);
    }
    if let Some(share) = draft.top_p() {
        config.raw("topP", share);
    }
    let stop = draft.stop(MOST_STOPS);
    if !stop.is_empty() {
        config.strings("stopSequences", stop);
    }
    if tools && settings.answer.is_some() && !draft.prompt.target.generation.tool_combination {
        draft.lost("answer", "not together with functions on this model");
    } else if let Some(schema) = shape::schema(draft) {
        config.str("responseMimeType", "application/json");
        config.raw("responseJsonSchema", schema);
    }
    config.object("thinkingConfig", thinking(draft));
    config
}

fn thinking(draft: &mut Draft<'_>) -> Members<'static> {
    let target = draft.prompt.target;
    let mut config = Members::default();
    if target.thinking {
        config.bool("includeThoughts", true);
    }
    let Some(effort) = draft.prompt.settings.effort else {
        return config;
    };
    if target.generation.thinking_levels {
        config.str("thinkingLevel", &level(draft, effort).to_ascii_uppercase());
    } else {
        config.number(
            "thinkingBudget",
            match effort {
                Effort::Off => 0,
                Effort::Minimal => 512,
                Effort::Low => 1024,
                Effort::Medium => 8192,
                Effort::High => 24_576,
            },
        );
    }
    config
}

/// Google's words for how much to think.
pub(super) fn level(draft: &mut Draft<'_>, effort: Effort) -> &'static str {
    match effort {
        Effort::Off => {
            draft.lost("effort", "thinking cannot be switched off, only made short");
            "minimal"
        }
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}
