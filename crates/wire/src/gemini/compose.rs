//! Gemini's `generateContent`. The model, and whether the answer is streamed, stand in the address.

use throughline_model::{Effort, Family};

use crate::compose::answer_schema;
use crate::compose::body_builder::{BodyBuilder, Continuation, ToolSelection};
use crate::compose::hosted::{
    HostedTool, OfferedTool, SelectedBy, is_automatic_container, is_empty_option, runs_code,
};
use crate::gemini::encode;
use crate::google;
use crate::object_builder::ObjectBuilder;
use crate::openai::tool_definition;

pub(crate) fn write(builder: &mut BodyBuilder<'_>) {
    builder.add_input(Continuation::Nothing);
    let choice = builder.add_tools(encode::functions);
    let mut calling = ObjectBuilder::default();
    match &choice {
        // Tools of this vendor cannot be chosen.
        None | Some(ToolSelection::Auto | ToolSelection::Type(..)) => {}
        Some(ToolSelection::None) => calling.str("mode", "NONE"),
        Some(ToolSelection::Required) => calling.str("mode", "ANY"),
        Some(ToolSelection::Function(name)) => {
            calling.str("mode", "ANY");
            calling.strings("allowedFunctionNames", &[(*name).to_owned()]);
        }
    }
    let mut tool_config = ObjectBuilder::default();
    tool_config.object("functionCallingConfig", calling);
    let tools = builder.prompt.tools.iter();
    let functions = tools.filter(|tool| tool.family == Family::FUNCTION).count();
    if functions > 0 && functions < builder.prompt.tools.len() {
        // With functions beside Gemini's own tools, the answer must hold the calls of its own tools,
        // because they have to be sent back (G-10).
        tool_config.bool("includeServerSideToolInvocations", true);
    }
    builder.body.object("toolConfig", tool_config);
    if choice.is_some() {
        google::note_parallel_calls(builder);
    }
    let config = generation(builder, choice.is_some());
    builder.body.object("generationConfig", config);
    google::note_strict_tools(builder);
    match builder.prompt.settings.service_tier.as_deref() {
        None | Some("auto") => {}
        Some("default" | "standard") => builder.body.str("serviceTier", "STANDARD"),
        Some("flex") => builder.body.str("serviceTier", "FLEX"),
        Some("priority") => builder.body.str("serviceTier", "PRIORITY"),
        Some(tier) => builder.note_loss("service_tier", format!("there is no class '{tier}'")),
    }
    builder.note_unsupported(&[
        "summary",
        "presence_penalty",
        "frequency_penalty",
        "service_tier",
    ]);
}

fn generation(builder: &mut BodyBuilder<'_>, tools: bool) -> ObjectBuilder<'static> {
    let settings = builder.prompt.settings;
    let mut config = ObjectBuilder::default();
    if let Some(most) = settings.max_output_tokens {
        config.number("maxOutputTokens", most);
    }
    if let Some(temperature) = builder.temperature(2.0) {
        config.raw("temperature", temperature);
    }
    if let Some(share) = builder.top_p() {
        config.raw("topP", share);
    }
    let stop = builder.stop(google::MAX_STOP_SEQUENCES);
    if !stop.is_empty() {
        config.strings("stopSequences", stop);
    }
    if tools && settings.answer.is_some() && !builder.prompt.target.generation.tool_combination {
        builder.note_loss("answer", "not together with functions on this model");
    } else if let Some(answer) = &settings.answer {
        let schema = answer_schema::schema(builder);
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
        if let Some(penalty) = builder.penalty(key, value) {
            config.raw(name, penalty);
        }
    }
    config.object("thinkingConfig", thinking(builder));
    config
}

fn thinking(builder: &mut BodyBuilder<'_>) -> ObjectBuilder<'static> {
    let target = builder.prompt.target;
    let mut config = ObjectBuilder::default();
    if target.thinking || builder.prompt.settings.summary {
        config.bool("includeThoughts", true);
    }
    let Some(effort) = builder.prompt.settings.effort else {
        return config;
    };
    if target.generation.thinking_levels {
        config.str(
            "thinkingLevel",
            &google::thinking_level(builder, effort).to_ascii_uppercase(),
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
    builder: &mut BodyBuilder<'p>,
    offered: &OfferedTool<'p>,
) -> Option<HostedTool<'p>> {
    let tool = offered.tool;
    let json = match &tool.family {
        family if *family == Family::WEB_SEARCH => r#"{"googleSearch":{}}"#,
        family if runs_code(family) => r#"{"codeExecution":{}}"#,
        _ => return None,
    };
    if offered.beside_functions && !builder.prompt.target.generation.tool_combination {
        return None;
    }
    if let Some(options) = tool_definition(tool) {
        let value = options.value();
        for member in value.members() {
            let key = member.key.to_str();
            let plain = matches!(&*key, "type" | "name")
                || is_empty_option(&member.value)
                || is_automatic_container(&key, &member.value);
            if !plain {
                offered.note_loss(builder, Some(&key), "the tool has no such option here");
            }
        }
    }
    Some(HostedTool {
        name: &tool.name,
        selected_by: SelectedBy::Never,
        json: json.to_owned(),
    })
}
