//! What a request for a completion sets, in words that every vendor has.

use throughline_model::json::{RawJson, Value};
use throughline_model::{AnswerShape, Effort, Path, Settings, Verbosity};

use crate::api::read;
use crate::error::ApiError;

pub(super) fn settings(body: &Value<'_>) -> Result<Settings, ApiError> {
    let root = Path::Root;
    let text = |key| read::text(body, key, &root).map(|text| text.map(Into::into));
    let most = |key| read::integer(body, key, (1, u64::MAX), &root);
    let user: Option<String> = text("safety_identifier")?;
    let older_user = text("user")?;
    let known = Verbosity::ALL.map(Verbosity::as_str);
    let verbosity = read::one_of(body, "verbosity", &known, &root)?;
    let older_most = most("max_tokens")?;
    Ok(Settings {
        max_output_tokens: most("max_completion_tokens")?.or(older_most),
        temperature: read::decimal(body, "temperature", (0.0, 2.0), &root)?,
        top_p: read::decimal(body, "top_p", (0.0, 1.0), &root)?,
        stop: stop(body)?,
        effort: effort(body)?,
        summary: false,
        verbosity: Verbosity::ALL
            .into_iter()
            .find(|one| Some(one.as_str()) == verbosity),
        presence_penalty: read::decimal(body, "presence_penalty", (-2.0, 2.0), &root)?,
        frequency_penalty: read::decimal(body, "frequency_penalty", (-2.0, 2.0), &root)?,
        parallel_calls: read::flag(body, "parallel_tool_calls", &root)?,
        answer: answer(body)?,
        user: user.or(older_user),
        service_tier: text("service_tier")?,
        cache_key: text("prompt_cache_key")?,
        cache_retention: text("prompt_cache_retention")?,
        betas: Vec::new(),
        extra: None,
    })
}

/// One text or a few.
fn stop(body: &Value<'_>) -> Result<Vec<String>, ApiError> {
    let path = Path::Root.key("stop");
    let Some(value) = read::member(body, "stop") else {
        return Ok(Vec::new());
    };
    if let Some(text) = value.as_str() {
        return Ok(vec![text.into_owned()]);
    }
    let Some(list) = value.as_array() else {
        return Err(read::wrong_type(&path, "a string or an array", value));
    };
    let texts = list.iter().enumerate().map(|(index, text)| {
        let found = text.as_str().map(Into::into);
        found.ok_or_else(|| read::wrong_type(&path.index(index), "a string", text))
    });
    texts.collect()
}

fn effort(body: &Value<'_>) -> Result<Option<Effort>, ApiError> {
    let known = Effort::ALL.map(Effort::as_str);
    let word = read::one_of(body, "reasoning_effort", &known, &Path::Root)?;
    let mut all = Effort::ALL.into_iter();
    Ok(word.and_then(|word| all.find(|one| one.as_str() == word)))
}

fn answer(body: &Value<'_>) -> Result<Option<AnswerShape>, ApiError> {
    let Some(format) = read::object(body, "response_format", &Path::Root)? else {
        return Ok(None);
    };
    let path = Path::Root.key("response_format");
    match read::one_of(
        format,
        "type",
        &["text", "json_object", "json_schema"],
        &path,
    )? {
        None => Err(read::missing(&path.key("type"))),
        Some("json_schema") => {
            let shape = read::object(format, "json_schema", &path)?;
            let path = path.key("json_schema");
            let shape = shape.ok_or_else(|| read::missing(&path))?;
            Ok(Some(AnswerShape {
                name: read::required(shape, "name", &path)?.into_owned(),
                description: read::text(shape, "description", &path)?.map(Into::into),
                schema: read::object(shape, "schema", &path)?.map(RawJson::of),
                strict: read::flag(shape, "strict", &path)?,
            }))
        }
        Some("json_object") => Ok(Some(AnswerShape {
            name: "json_object".to_owned(),
            ..AnswerShape::default()
        })),
        Some(_) => Ok(None),
    }
}
