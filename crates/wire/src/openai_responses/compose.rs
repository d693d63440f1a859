//! OpenAI Responses, and what Foundry has in common with it.

use throughline_model::AnswerShape;

use crate::compose::answer_schema;
use crate::compose::draft::{Choice, Continues, Draft};
use crate::compose::hosted::{Chosen, HostedTool, OfferedTool};
use crate::members::Members;
use crate::openai;
use crate::openai_responses::body;
use throughline_model::json::Value;

/// The smallest limit of tokens that OpenAI takes.
const LEAST_TOKENS: u64 = 16;

pub(crate) fn write(draft: &mut Draft<'_>) {
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
pub(crate) fn begin(draft: &mut Draft<'_>) {
    draft.body.str("model", draft.prompt.model);
    draft.said(Continues::ResponsesAndConversations);
    draft.body.bool("store", draft.prompt.target.stored);
}

/// Tools and settings.
pub(crate) fn rest(draft: &mut Draft<'_>) {
    let settings = draft.prompt.settings;
    if let Some(choice) = draft.tools(body::functions) {
        match choice {
            Choice::Auto => {}
            Choice::None => draft.body.str("tool_choice", "none"),
            Choice::Required => draft.body.str("tool_choice", "required"),
            Choice::Function(name) => {
                let mut named = Members::default();
                named.str("type", "function");
                named.str("name", name);
                draft.body.object("tool_choice", named);
            }
            Choice::Type(tag, name) => {
                let mut named = Members::default();
                named.str("type", &tag);
                if let Some(name) = name {
                    named.str("name", name);
                }
                draft.body.object("tool_choice", named);
            }
        }
        if let Some(parallel) = settings.parallel_calls {
            draft.body.bool("parallel_tool_calls", parallel);
        }
    }
    if let Some(most) = settings.max_output_tokens {
        if most < LEAST_TOKENS {
            let detail = format!("{LEAST_TOKENS} is the least, and was sent");
            draft.replaced("max_output_tokens", detail, &LEAST_TOKENS.to_string());
        }
        draft
            .body
            .number("max_output_tokens", most.max(LEAST_TOKENS));
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
    let mut reasoning = Members::default();
    if let Some(effort) = settings.effort {
        reasoning.str("effort", effort.as_str());
    }
    if settings.summary {
        reasoning.str("summary", "auto");
    }
    draft.body.object("reasoning", reasoning);
    let mut text = Members::default();
    if let Some(answer) = &settings.answer {
        text.object("format", format(draft, answer));
    }
    if let Some(verbosity) = settings.verbosity {
        text.str("verbosity", verbosity.as_str());
    }
    draft.body.object("text", text);
    openai::write_settings(draft, "safety_identifier");
    draft.leave_out(&[
        "summary",
        "verbosity",
        "user",
        "service_tier",
        "cache_key",
        "cache_retention",
    ]);
    if draft.is_streamed() {
        draft.body.bool("stream", true);
    }
}

fn format(draft: &mut Draft<'_>, answer: &AnswerShape) -> Members<'static> {
    let mut format = Members::default();
    match (&answer.schema, answer_schema::schema(draft)) {
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
    _draft: &mut Draft<'p>,
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
        chosen: match named {
            true => Chosen::TypeAndName(tag),
            false => Chosen::Type(tag),
        },
        json: json.get().to_owned(),
    })
}
