//! Gemini's `generateContent`. The model, and whether the answer is streamed, stand in the address.

use throughline_model::{Effort, Family};

use crate::compose::answer_schema;
use crate::compose::draft::{Choice, Continues, Draft};
use crate::compose::hosted::{
    Chosen, HostedTool, OfferedTool, is_code, is_plain_container, says_nothing,
};
use crate::gemini::encode;
use crate::google;
use crate::members::Members;
use crate::openai::tool_definition;

pub(crate) fn write(draft: &mut Draft<'_>) {
    draft.said(Continues::Nothing);
    let choice = draft.tools(encode::functions);
    let mut calling = Members::default();
    match &choice {
        // Tools of this vendor cannot be chosen.
        None | Some(Choice::Auto | Choice::Type(..)) => {}
        Some(Choice::None) => calling.str("mode", "NONE"),
        Some(Choice::Required) => calling.str("mode", "ANY"),
        Some(Choice::Function(name)) => {
            calling.str("mode", "ANY");
            calling.strings("allowedFunctionNames", &[(*name).to_owned()]);
        }
    }
    let mut tool_config = Members::default();
    tool_config.object("functionCallingConfig", calling);
    let tools = draft.prompt.tools.iter();
    let functions = tools.filter(|tool| tool.family == Family::FUNCTION).count();
    if functions > 0 && functions < draft.prompt.tools.len() {
        // With functions beside Gemini's own tools, the answer must hold the calls of its own tools,
        // because they have to be sent back (G-10).
        tool_config.bool("includeServerSideToolInvocations", true);
    }
    draft.body.object("toolConfig", tool_config);
    if choice.is_some() {
        google::note_parallel_calls(draft);
    }
    let config = generation(draft, choice.is_some());
    draft.body.object("generationConfig", config);
    google::note_strict_tools(draft);
    match draft.prompt.settings.service_tier.as_deref() {
        None | Some("auto") => {}
        Some("default" | "standard") => draft.body.str("serviceTier", "STANDARD"),
        Some("flex") => draft.body.str("serviceTier", "FLEX"),
        Some("priority") => draft.body.str("serviceTier", "PRIORITY"),
        Some(tier) => draft.lost("service_tier", format!("there is no class '{tier}'")),
    }
    draft.leave_out(&[
        "summary",
        "presence_penalty",
        "frequency_penalty",
        "service_tier",
    ]);
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
    let stop = draft.stop(google::MAX_STOP_SEQUENCES);
    if !stop.is_empty() {
        config.strings("stopSequences", stop);
    }
    if tools && settings.answer.is_some() && !draft.prompt.target.generation.tool_combination {
        draft.lost("answer", "not together with functions on this model");
    } else if let Some(answer) = &settings.answer {
        let schema = answer_schema::schema(draft);
        if answer.schema.is_none() || schema.is_some() {
            config.str("responseMimeType", "application/json");
        }
        if let Some(schema) = schema {
            config.raw("responseJsonSchema", schema);
        }
    }
    for (key, name, value) in [
        (
            "presence_penalty",
            "presencePenalty",
            settings.presence_penalty,
        ),
        (
            "frequency_penalty",
            "frequencyPenalty",
            settings.frequency_penalty,
        ),
    ] {
        if let Some(penalty) = draft.penalty(key, value) {
            config.raw(name, penalty);
        }
    }
    config.object("thinkingConfig", thinking(draft));
    config
}

fn thinking(draft: &mut Draft<'_>) -> Members<'static> {
    let target = draft.prompt.target;
    let mut config = Members::default();
    if target.thinking || draft.prompt.settings.summary {
        config.bool("includeThoughts", true);
    }
    let Some(effort) = draft.prompt.settings.effort else {
        return config;
    };
    if target.generation.thinking_levels {
        config.str(
            "thinkingLevel",
            &google::thinking_level(draft, effort).to_ascii_uppercase(),
        );
    } else {
        config.number(
            "thinkingBudget",
            match effort {
                Effort::Off => 0,
                Effort::Minimal => 512,
                Effort::Low => 1024,
                Effort::Medium => 8192,
                Effort::High => 24_576,
                Effort::ExtraHigh | Effort::Max => 32_768,
            },
        );
    }
    config
}

/// Web search and code execution; they take no options.
pub(crate) fn hosted_tool<'p>(
    draft: &mut Draft<'p>,
    offered: &OfferedTool<'p>,
) -> Option<HostedTool<'p>> {
    let tool = offered.tool;
    let json = match &tool.family {
        family if *family == Family::WEB_SEARCH => r#"{"googleSearch":{}}"#,
        family if is_code(family) => r#"{"codeExecution":{}}"#,
        _ => return None,
    };
    if offered.beside_functions && !draft.prompt.target.generation.tool_combination {
        return None;
    }
    if let Some(options) = tool_definition(tool) {
        let value = options.value();
        for member in value.members() {
            let key = member.key.to_str();
            let plain = matches!(&*key, "type" | "name")
                || says_nothing(&member.value)
                || is_plain_container(&key, &member.value);
            if !plain {
                offered.lost(draft, Some(&key), "the tool has no such option here");
            }
        }
    }
    Some(HostedTool {
        name: &tool.name,
        chosen: Chosen::Never,
        json: json.to_owned(),
    })
}
