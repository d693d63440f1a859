//! What a request sets for model calls.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::{AnswerShape, Effort, Path, Settings, ToolDef};

use super::tools::RequestTool;
use super::{Include, read};
use crate::ApiError;

/// Members that a vendor who speaks Responses understands and others do not.
const RESPONSES_ONLY: [&str; 11] = [
    "text",
    "reasoning",
    "top_logprobs",
    "service_tier",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "safety_identifier",
    "user",
    "moderation",
];

/// What is set, in words that every vendor has.
pub(super) fn settings(body: &Value<'_>) -> Result<Settings, ApiError> {
    let root = Path::Root;
    Ok(Settings {
        max_output_tokens: read::integer(body, "max_output_tokens", (1, u64::MAX), &root)?,
        temperature: read::decimal(body, "temperature", (0.0, 2.0), &root)?,
        top_p: read::decimal(body, "top_p", (0.0, 1.0), &root)?,
        stop: Vec::new(),
        effort: effort(body)?,
        parallel_calls: read::flag(body, "parallel_tool_calls", &root)?,
        answer: answer(body)?,
        extra: None,
    })
}

fn effort(body: &Value<'_>) -> Result<Option<Effort>, ApiError> {
    let Some(reasoning) = read::object(body, "reasoning", &Path::Root)? else {
        return Ok(None);
    };
    let path = Path::Root.key("reasoning");
    let known = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let styles = ["auto", "concise", "detailed"];
    read::word(reasoning, "summary", &styles, &path)?;
    read::word(reasoning, "generate_summary", &styles, &path)?;
    let word = read::word(reasoning, "effort", &known, &path)?;
    Ok(word.map(|word| match word {
        "none" => Effort::Off,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        // The others are words of one vendor, who gets them as they are.
        _ => Effort::High,
    }))
}

fn answer(body: &Value<'_>) -> Result<Option<AnswerShape>, ApiError> {
    let Some(text) = read::object(body, "text", &Path::Root)? else {
        return Ok(None);
    };
    let path = Path::Root.key("text");
    read::word(text, "verbosity", &["low", "medium", "high"], &path)?;
    let Some(format) = read::object(text, "format", &path)? else {
        return Ok(None);
    };
    let path = path.key("format");
    let known = ["text", "json_object", "json_schema"];
    match read::word(format, "type", &known, &path)? {
        None => Err(read::missing(&path.key("type"))),
        Some("json_schema") => {
            let name = read::required(format, "name", &path)?;
            read::flag(format, "strict", &path)?;
            read::text(format, "description", &path)?;
            let schema = read::object(format, "schema", &path)?;
            let schema = schema.ok_or_else(|| read::missing(&path.key("schema")))?;
            Ok(Some(AnswerShape {
                name: name.into_owned(),
                schema: RawJson::of(schema),
            }))
        }
        Some("json_object") => Ok(Some(AnswerShape {
            name: "json_object".to_owned(),
            schema: RawJson::object(|object| {
                object.str("type", "object");
            }),
        })),
        Some(_) => Ok(None),
    }
}

/// Members for a vendor who speaks Responses, as the client wrote them.
pub(super) fn extra_for_responses(
    kept: &RawJson,
    tools: &[RequestTool],
    server: &[ToolDef],
) -> Option<RawJson> {
    let body = kept.value();
    let extra = RawJson::object(|object| {
        for key in RESPONSES_ONLY {
            if let Some(value) = read::member(&body, key) {
                object.raw(key, value.raw());
            }
        }
        if let Some(asked) = read::member(&body, "include") {
            include(object, asked);
        }
        let own = |tool: &RequestTool| !matches!(tool, RequestTool::Mcp(_));
        if tools.iter().any(own) {
            offered(object, tools, server);
        }
    });
    (extra.get() != "{}").then_some(extra)
}

/// What the client asked for, and always what reasoning needs to go back.
fn include(object: &mut ObjectWriter<'_>, asked: &Value<'_>) {
    let mut list = ArrayWriter::new(object.key("include"));
    let sealed = Include::EncryptedReasoning.as_str();
    let mut has = false;
    for value in asked.as_array().unwrap_or_default() {
        has |= value.is_str(sealed);
        list.raw(value.raw());
    }
    if !has {
        throughline_model::json::push_string(list.slot(), sealed);
    }
    list.end();
}

/// All tools: the client's as it wrote them, and those that we run as functions.
fn offered(object: &mut ObjectWriter<'_>, tools: &[RequestTool], server: &[ToolDef]) {
    let mut list = ArrayWriter::new(object.key("tools"));
    for tool in tools {
        match tool {
            RequestTool::Function { json, .. } | RequestTool::Other { json, .. } => {
                list.raw(json.get());
            }
            RequestTool::Mcp(_) => {}
        }
    }
    for tool in server {
        let mut function = ObjectWriter::new(list.slot());
        function.str("type", "function").str("name", &tool.name);
        if let Some(description) = &tool.description {
            function.str("description", description);
        }
        let parameters = tool.parameters.as_ref();
        function.raw("parameters", parameters.map_or("{}", RawJson::get));
        function.bool("strict", false);
        function.end();
    }
    list.end();
}
