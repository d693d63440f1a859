//! OpenAI Responses, and what Foundry has in common with it.

use throughline_model::AnswerShape;

use crate::compose::answer_schema;
use crate::compose::body_builder::{BodyBuilder, Continuation, ToolSelection};
use crate::compose::hosted::{HostedTool, OfferedTool, SelectedBy};
use crate::object_builder::ObjectBuilder;
use crate::openai;
use crate::openai_responses::body;
use throughline_model::json::Value;

/// The smallest limit of tokens that OpenAI takes.
const LEAST_TOKENS: u64 = 16;

pub(crate) fn write(builder: &mut BodyBuilder<'_>) {
    add_model_and_input(builder);
    if !builder.prompt.target.stored {
        // Without it reasoning could not go back: the service has not kept it.
        builder
            .body
            .raw("include", r#"["reasoning.encrypted_content"]"#);
    }
    add_tools_and_settings(builder);
}

/// The model, the input, and whether the service stores the response.
pub(crate) fn add_model_and_input(builder: &mut BodyBuilder<'_>) {
    builder.body.str("model", builder.prompt.model);
    builder.add_input(Continuation::ResponsesAndConversations);
    builder.body.bool("store", builder.prompt.target.stored);
}

/// Tools and settings.
pub(crate) fn add_tools_and_settings(builder: &mut BodyBuilder<'_>) {
    let settings = builder.prompt.settings;
    if let Some(choice) = builder.add_tools(body::functions) {
        match choice {
            ToolSelection::Auto => {}
            ToolSelection::None => builder.body.str("tool_choice", "none"),
            ToolSelection::Required => builder.body.str("tool_choice", "required"),
            ToolSelection::Function(name) => {
                let mut named = ObjectBuilder::default();
                named.str("type", "function");
                named.str("name", name);
                builder.body.object("tool_choice", named);
            }
            ToolSelection::Type(tag, name) => {
                let mut named = ObjectBuilder::default();
                named.str("type", &tag);
                if let Some(name) = name {
                    named.str("name", name);
                }
                builder.body.object("tool_choice", named);
            }
        }
        if let Some(parallel) = settings.parallel_calls {
            builder.body.bool("parallel_tool_calls", parallel);
        }
    }
    if let Some(most) = settings.max_output_tokens {
        if most < LEAST_TOKENS {
            let detail = format!("{LEAST_TOKENS} is the least, and was sent");
            builder.note_replaced("max_output_tokens", detail, &LEAST_TOKENS.to_string());
        }
        builder
            .body
            .number("max_output_tokens", most.max(LEAST_TOKENS));
    }
    if let Some(temperature) = builder.temperature(2.0) {
        builder.body.raw("temperature", temperature);
    }
    if let Some(share) = builder.top_p() {
        builder.body.raw("top_p", share);
    }
    if !settings.stop.is_empty() {
        builder.note_loss("stop", "there are no stop texts here");
    }
    let mut reasoning = ObjectBuilder::default();
    if let Some(effort) = settings.effort {
        reasoning.str("effort", effort.as_str());
    }
    if settings.summary {
        reasoning.str("summary", "auto");
    }
    builder.body.object("reasoning", reasoning);
    let mut text = ObjectBuilder::default();
    if let Some(answer) = &settings.answer {
        text.object("format", format(builder, answer));
    }
    if let Some(verbosity) = settings.verbosity {
        text.str("verbosity", verbosity.as_str());
    }
    builder.body.object("text", text);
    openai::write_settings(builder, "safety_identifier");
    builder.note_unsupported(&[
        "summary",
        "verbosity",
        "user",
        "service_tier",
        "cache_key",
        "cache_retention",
    ]);
    if builder.is_streamed() {
        builder.body.bool("stream", true);
    }
}

fn format(builder: &mut BodyBuilder<'_>, answer: &AnswerShape) -> ObjectBuilder<'static> {
    let mut format = ObjectBuilder::default();
    match (&answer.schema, answer_schema::schema(builder)) {
        (None, _) => format.str("type", "json_object"),
        (Some(_), None) => {}
        (Some(_), Some(schema)) => {
            format.str("type", "json_schema");
            openai::write_json_schema(&mut format, answer, schema);
        }
    }
    format
}

/// A tool that came from this vendor's own API.
pub(crate) fn hosted_tool<'p>(
    _draft: &mut BodyBuilder<'p>,
    offered: &OfferedTool<'p>,
) -> Option<HostedTool<'p>> {
    let tool = offered.tool;
    let json = openai::tool_definition(tool)?;
    let tag = json
        .value()
        .get("type")
        .and_then(Value::as_str)?
        .into_owned();
    let named = json
        .value()
        .get("name")
        .is_some_and(|name| name.as_text().is_some());
    Some(HostedTool {
        name: &tool.name,
        selected_by: match named {
            true => SelectedBy::TypeAndName(tag),
            false => SelectedBy::Type(tag),
        },
        json: json.get().to_owned(),
    })
}
