//! Gemini Interactions.

use crate::compose::answer_schema;
use crate::compose::body_builder::{BodyBuilder, Continuation, ToolSelection};
use crate::gemini_interactions::encode;
use crate::google;
use crate::object_builder::ObjectBuilder;

pub(crate) fn write(builder: &mut BodyBuilder<'_>) {
    builder.body.str("model", builder.prompt.model);
    builder.add_input(Continuation::Responses);
    builder.body.bool("store", builder.prompt.target.stored);
    let choice = builder.add_tools(encode::functions);
    if choice.is_some() {
        google::note_parallel_calls(builder);
    }
    google::note_strict_tools(builder);
    builder.note_unsupported(&["summary"]);
    let config = generation(builder, choice.as_ref());
    builder.body.object("generation_config", config);
    if let Some(answer) = &builder.prompt.settings.answer {
        let schema = answer_schema::schema(builder);
        if answer.schema.is_none() || schema.is_some() {
            let mut format = ObjectBuilder::default();
            format.str("type", "text");
            format.str("mime_type", "application/json");
            if let Some(schema) = schema {
                format.raw("schema", schema);
            }
            builder.body.object("response_format", format);
        }
    }
    if builder.is_streamed() {
        builder.body.bool("stream", true);
    }
}

fn generation(
    builder: &mut BodyBuilder<'_>,
    choice: Option<&ToolSelection<'_>>,
) -> ObjectBuilder<'static> {
    let settings = builder.prompt.settings;
    let mut config = ObjectBuilder::default();
    if let Some(most) = settings.max_output_tokens {
        config.number("max_output_tokens", most);
    }
    if let Some(temperature) = builder.temperature(2.0) {
        config.raw("temperature", temperature);
    }
    if let Some(share) = builder.top_p() {
        config.raw("top_p", share);
    }
    let stop = builder.stop(google::MAX_STOP_SEQUENCES);
    if !stop.is_empty() {
        config.strings("stop_sequences", stop);
    }
    if let Some(effort) = settings.effort {
        config.str("thinking_level", google::thinking_level(builder, effort));
    }
    if builder.prompt.target.thinking || settings.summary {
        config.str("thinking_summaries", "auto");
    }
    match choice {
        None | Some(ToolSelection::Auto | ToolSelection::Type(..)) => {}
        Some(ToolSelection::None) => config.str("tool_choice", "none"),
        Some(ToolSelection::Required) => config.str("tool_choice", "any"),
        Some(ToolSelection::Function(name)) => {
            let mut tools = ObjectBuilder::default();
            tools.str("mode", "any");
            tools.strings("tools", &[(*name).to_owned()]);
            let mut allowed = ObjectBuilder::default();
            allowed.object("allowed_tools", tools);
            config.object("tool_choice", allowed);
        }
    }
    config
}
