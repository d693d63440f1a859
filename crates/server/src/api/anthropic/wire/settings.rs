//! What a request for a message sets, in words that every vendor has.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::{AnswerShape, Effort, Path, Settings};

use crate::api::read;
use crate::error::ApiError;

/// The longest id of a user that other vendors take.
const LONGEST_USER: usize = 64;

/// Budgets for thinking, and the effort that takes about as much.
const BUDGETS: [(u64, Effort); 5] = [
    (1024, Effort::Minimal),
    (4096, Effort::Low),
    (16_384, Effort::Medium),
    (32_768, Effort::High),
    (u64::MAX, Effort::Max),
];

pub(super) fn settings(body: &Value<'_>) -> Result<Settings, ApiError> {
    let root = Path::Root;
    let effort = effort(body)?;
    Ok(Settings {
        max_output_tokens: read::integer(body, "max_tokens", (1, u64::MAX), &root)?,
        temperature: read::decimal(body, "temperature", (0.0, 1.0), &root)?,
        top_p: read::decimal(body, "top_p", (0.0, 1.0), &root)?,
        stop: stop(body)?,
        effort,
        summary: thinks(body)?,
        parallel_calls: parallel_calls(body)?,
        answer: answer(body)?,
        user: user(body)?.filter(|user| !is_long_user(user)),
        service_tier: service_tier(body)?,
        ..Settings::default()
    })
}

/// Whether only Anthropic takes an id of this length.
pub(super) fn is_long_user(user: &str) -> bool {
    user.chars().count() > LONGEST_USER
}

/// The end user, if one is named.
pub(super) fn user(body: &Value<'_>) -> Result<Option<String>, ApiError> {
    let metadata = read::object(body, "metadata", &Path::Root)?;
    let path = Path::Root.key("metadata");
    match metadata {
        Some(metadata) => Ok(read::text(metadata, "user_id", &path)?.map(Into::into)),
        None => Ok(None),
    }
}

/// How thinking is set: the word, and whether it is shown.
fn thinking<'v, 'a>(
    body: &'v Value<'a>,
) -> Result<Option<(&'static str, &'v Value<'a>)>, ApiError> {
    let path = Path::Root.key("thinking");
    let Some(thinking) = read::object(body, "thinking", &Path::Root)? else {
        return Ok(None);
    };
    let known = ["enabled", "disabled", "adaptive"];
    match read::one_of(thinking, "type", &known, &path)? {
        Some(word) => Ok(Some((word, thinking))),
        None => Err(read::missing(&path.key("type"))),
    }
}

/// Whether the client asked to be shown thinking.
pub(super) fn thinks(body: &Value<'_>) -> Result<bool, ApiError> {
    let Some((word, thinking)) = thinking(body)? else {
        return Ok(false);
    };
    let path = Path::Root.key("thinking");
    let display = read::text(thinking, "display", &path)?;
    Ok(word != "disabled" && display.as_deref() != Some("omitted"))
}

fn effort(body: &Value<'_>) -> Result<Option<Effort>, ApiError> {
    let set = thinking(body)?;
    let config = read::object(body, "output_config", &Path::Root)?;
    let path = Path::Root.key("output_config");
    let known = ["low", "medium", "high", "xhigh", "max"];
    let word = match config {
        Some(config) => read::one_of(config, "effort", &known, &path)?,
        None => None,
    };
    let mut all = Effort::ALL.into_iter();
    let asked = word.and_then(|word| all.find(|one| one.as_str() == word));
    Ok(match set {
        Some(("disabled", _)) => Some(Effort::Off),
        Some(("enabled", thinking)) => {
            let path = Path::Root.key("thinking");
            let budget = read::integer(thinking, "budget_tokens", (1024, u64::MAX), &path)?;
            let budget = budget.ok_or_else(|| read::missing(&path.key("budget_tokens")))?;
            let fits = BUDGETS.iter().find(|(most, _)| budget <= *most);
            asked.or(fits.map(|(_, effort)| *effort))
        }
        // The model decides.
        Some(_) | None => asked,
    })
}

fn stop(body: &Value<'_>) -> Result<Vec<String>, ApiError> {
    let path = Path::Root.key("stop_sequences");
    let list = read::list(body, "stop_sequences", &Path::Root)?.unwrap_or_default();
    let texts = list.iter().enumerate().map(|(index, text)| {
        let found = text.as_str().map(Into::into);
        found.ok_or_else(|| read::wrong_type(&path.index(index), "a string", text))
    });
    texts.collect()
}

fn parallel_calls(body: &Value<'_>) -> Result<Option<bool>, ApiError> {
    let path = Path::Root.key("tool_choice");
    let Some(choice) = read::object(body, "tool_choice", &Path::Root)? else {
        return Ok(None);
    };
    let one = read::flag(choice, "disable_parallel_tool_use", &path)?;
    Ok(one.map(|one| !one))
}

/// The class of service in OpenAI's words, which ours are.
fn service_tier(body: &Value<'_>) -> Result<Option<String>, ApiError> {
    let known = ["auto", "standard_only"];
    let word = read::one_of(body, "service_tier", &known, &Path::Root)?;
    Ok(word.map(|word| match word {
        "auto" => "auto".to_owned(),
        _ => "default".to_owned(),
    }))
}

/// The shape of the answer: `output_config.format`, or `output_format` as it was called in beta.
fn answer(body: &Value<'_>) -> Result<Option<AnswerShape>, ApiError> {
    let root = Path::Root;
    let config = read::object(body, "output_config", &root)?;
    let (newer, older) = (root.key("output_config"), root.key("output_format"));
    let newer_format = match config {
        Some(config) => read::object(config, "format", &newer)?,
        None => None,
    };
    let (format, path) = match newer_format {
        Some(format) => (format, newer.key("format")),
        None => match read::object(body, "output_format", &root)? {
            Some(format) => (format, older),
            None => return Ok(None),
        },
    };
    read::one_of(format, "type", &["json_schema"], &path)?
        .ok_or_else(|| read::missing(&path.key("type")))?;
    let schema = read::object(format, "schema", &path)?;
    let schema = schema.ok_or_else(|| read::missing(&path.key("schema")))?;
    Ok(Some(AnswerShape {
        name: "answer".to_owned(),
        description: None,
        schema: Some(RawJson::of(schema)),
        strict: Some(true),
    }))
}

/// Write the instructions of an agent, and below them the client's system text as it wrote it.
pub(super) fn system_below(object: &mut ObjectWriter<'_>, agent: &str, system: Option<&Value<'_>>) {
    let mut blocks = ArrayWriter::new(object.key("system"));
    let text = |text: &str| {
        RawJson::object(|block| {
            block.str("type", "text").str("text", text);
        })
    };
    blocks.raw(text(agent).get());
    if let Some(system) = system {
        match (system.as_str(), system.as_array()) {
            (Some(own), _) => drop(blocks.raw(text(&own).get())),
            (None, list) => {
                for block in list.unwrap_or_default() {
                    blocks.raw(block.raw());
                }
            }
        }
    }
    blocks.end();
}
