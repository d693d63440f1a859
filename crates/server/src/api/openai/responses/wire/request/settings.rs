//! What a request sets for model calls.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::{AnswerShape, Effort, Path, Settings, Verbosity};

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
    let text = |key| read::text(body, key, &root).map(|text| text.map(Into::into));
    let user: Option<String> = text("safety_identifier")?;
    let (effort, summary) = reasoning(body)?;
    Ok(Settings {
        max_output_tokens: read::integer(body, "max_output_tokens", (1, u64::MAX), &root)?,
        temperature: read::decimal(body, "temperature", (0.0, 2.0), &root)?,
        top_p: read::decimal(body, "top_p", (0.0, 1.0), &root)?,
        stop: Vec::new(),
        effort,
        summary,
        verbosity: verbosity(body)?,
        presence_penalty: read::decimal(body, "presence_penalty", (-2.0, 2.0), &root)?,
        frequency_penalty: read::decimal(body, "frequency_penalty", (-2.0, 2.0), &root)?,
        parallel_calls: read::flag(body, "parallel_tool_calls", &root)?,
        answer: answer(body)?,
        user: match user {
            Some(user) => Some(user),
            None => text("user")?,
        },
        service_tier: text("service_tier")?,
        cache_key: text("prompt_cache_key")?,
        cache_retention: text("prompt_cache_retention")?,
        betas: Vec::new(),
        extra: None,
    })
}

/// Reasoning effort and summary.
fn reasoning(body: &Value<'_>) -> Result<(Option<Effort>, bool), ApiError> {
    let Some(reasoning) = read::object(body, "reasoning", &Path::Root)? else {
        return Ok((None, false));
    };
    let path = Path::Root.key("reasoning");
    let known = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let styles = ["auto", "concise", "detailed"];
    let summary = read::one_of(reasoning, "summary", &styles, &path)?;
    let older = read::one_of(reasoning, "generate_summary", &styles, &path)?;
    let word = read::one_of(reasoning, "effort", &known, &path)?;
    let effort = word.map(|word| match word {
        "none" => Effort::Off,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "xhigh" => Effort::ExtraHigh,
        "max" => Effort::Max,
        _ => Effort::High,
    });
    Ok((effort, summary.or(older).is_some()))
}

fn verbosity(body: &Value<'_>) -> Result<Option<Verbosity>, ApiError> {
    let Some(text) = read::object(body, "text", &Path::Root)? else {
        return Ok(None);
    };
    let known = Verbosity::ALL.map(Verbosity::as_str);
    let word = read::one_of(text, "verbosity", &known, &Path::Root.key("text"))?;
    let mut all = Verbosity::ALL.into_iter();
    Ok(word.and_then(|word| all.find(|one| one.as_str() == word)))
}

fn answer(body: &Value<'_>) -> Result<Option<AnswerShape>, ApiError> {
    let Some(text) = read::object(body, "text", &Path::Root)? else {
        return Ok(None);
    };
    let path = Path::Root.key("text");
    let Some(format) = read::object(text, "format", &path)? else {
        return Ok(None);
    };
    let path = path.key("format");
    let known = ["text", "json_object", "json_schema"];
    match read::one_of(format, "type", &known, &path)? {
        None => Err(read::missing(&path.key("type"))),
        Some("json_schema") => {
            let schema = read::object(format, "schema", &path)?;
            let schema = schema.ok_or_else(|| read::missing(&path.key("schema")))?;
            Ok(Some(AnswerShape {
                name: read::required(format, "name", &path)?.into_owned(),
                description: read::text(format, "description", &path)?.map(Into::into),
                schema: Some(RawJson::of(schema)),
                strict: read::flag(format, "strict", &path)?,
            }))
        }
        Some("json_object") => Ok(Some(AnswerShape {
            name: "json_object".to_owned(),
            ..AnswerShape::default()
        })),
        Some(_) => Ok(None),
    }
}

/// Members for a vendor who speaks Responses, as the client wrote them.
pub(super) fn extra_for_responses(kept: &RawJson, hosted: bool, seals: bool) -> Option<RawJson> {
    let body = kept.value();
    let extra = RawJson::object(|object| {
        for key in RESPONSES_ONLY {
            if let Some(value) = read::member(&body, key) {
                object.raw(key, value.raw());
            }
        }
        // It bounds the vendor's own tools; ours are counted here.
        if let Some(most) = read::member(&body, "max_tool_calls").filter(|_| hosted) {
            object.raw("max_tool_calls", most.raw());
        }
        if let Some(asked) = read::member(&body, "include") {
            include(object, asked, seals);
        }
    });
    (extra.get() != "{}").then_some(extra)
}

/// What the client asked for, and what reasoning needs to go back where the vendor gives it.
fn include(object: &mut ObjectWriter<'_>, asked: &Value<'_>, seals: bool) {
    let mut list = ArrayWriter::new(object.key("include"));
    let sealed = Include::EncryptedReasoning.as_str();
    let mut has = false;
    for value in asked.as_array().unwrap_or_default() {
        has |= value.is_str(sealed);
        list.raw(value.raw());
    }
    if !has && seals {
        throughline_model::json::push_string(list.slot(), sealed);
    }
    list.end();
}
