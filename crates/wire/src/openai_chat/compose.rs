//! OpenAI Chat Completions, and the many servers that speak it. The instructions are a message of
//! the role `system`: they all know that one, and OpenAI itself reads it as `developer` where it
//! must.

use throughline_model::AnswerShape;

use crate::compose::body_builder::{BodyBuilder, Continuation, ToolSelection};
use crate::compose::{TokenLimit, answer_schema};
use crate::object_builder::ObjectBuilder;
use crate::openai;
use crate::openai_chat::body;

/// As many texts as may end an answer.
const MOST_STOPS: usize = 4;

pub(crate) fn write(builder: &mut BodyBuilder<'_>) {
    let settings = builder.prompt.settings;
    builder.body.str("model", builder.prompt.model);
    builder.add_input(Continuation::Nothing);
    if let Some(choice) = builder.add_tools(body::functions) {
        match choice {
            // There are functions alone.
            ToolSelection::Auto | ToolSelection::Type(..) => {}
            ToolSelection::None => builder.body.str("tool_choice", "none"),
            ToolSelection::Required => builder.body.str("tool_choice", "required"),
            ToolSelection::Function(name) => {
                let mut function = ObjectBuilder::default();
                function.str("name", name);
                let mut named = ObjectBuilder::default();
                named.str("type", "function");
                named.object("function", function);
                builder.body.object("tool_choice", named);
            }
        }
        if let Some(parallel) = settings.parallel_calls {
            builder.body.bool("parallel_tool_calls", parallel);
        }
    }
    if let Some(most) = settings.max_output_tokens {
        let key = match builder.prompt.limit {
            TokenLimit::MaxCompletionTokens => "max_completion_tokens",
            TokenLimit::MaxTokens => "max_tokens",
        };
        builder.body.number(key, most);
    }
    if let Some(temperature) = builder.temperature(2.0) {
        builder.body.raw("temperature", temperature);
    }
    if let Some(share) = builder.top_p() {
        builder.body.raw("top_p", share);
    }
    let stop = builder.stop(MOST_STOPS);
    if !stop.is_empty() {
        builder.body.strings("stop", stop);
    }
    if let Some(effort) = settings.effort {
        builder.body.str("reasoning_effort", effort.as_str());
    }
    if let Some(answer) = &settings.answer {
        let format = format(builder, answer);
        builder.body.object("response_format", format);
    }
    if let Some(verbosity) = settings.verbosity {
        builder.body.str("verbosity", verbosity.as_str());
    }
    for (key, value) in [
        ("presence_penalty", settings.presence_penalty),
        ("frequency_penalty", settings.frequency_penalty),
    ] {
        if let Some(penalty) = builder.penalty(key, value) {
            builder.body.raw(key, penalty);
        }
    }
    // All compatible servers know this name; OpenAI takes it beside the newer one.
    openai::write_settings(builder, "user");
    builder.note_unsupported(&[
        "verbosity",
        "presence_penalty",
        "frequency_penalty",
        "user",
        "service_tier",
        "cache_key",
        "cache_retention",
    ]);
    if builder.is_streamed() {
        builder.body.bool("stream", true);
        // The last chunk has the usage only if the request asks for it.
        builder
            .body
            .raw("stream_options", r#"{"include_usage":true}"#);
    }
}

fn format(builder: &mut BodyBuilder<'_>, answer: &AnswerShape) -> ObjectBuilder<'static> {
    let mut format = ObjectBuilder::default();
    match (&answer.schema, answer_schema::schema(builder)) {
        (None, _) => format.str("type", "json_object"),
        (Some(_), None) => {}
        (Some(_), Some(schema)) => {
            let mut shape = ObjectBuilder::default();
            openai::write_json_schema(&mut shape, answer, schema);
            format.str("type", "json_schema");
            format.object("json_schema", shape);
        }
    }
    format
}
