//! The format in which a model is sent a history, by the model's name.

use throughline_server::api::native::view::ModelChoice;
use throughline_wire::Wire;

use crate::failure::Failure;

/// How names of models begin, the upstream that is meant where none is configured, and its form.
const MODELS: [(&str, &str, Wire); 4] = [
    ("gpt-", "openai", Wire::OpenAiResponses),
    ("o", "openai", Wire::OpenAiResponses),
    ("claude-", "anthropic", Wire::Anthropic),
    ("gemini-", "gemini", Wire::Gemini),
];

/// The model that needs no vendor.
const DEMO: &str = "demo";

/// What a name means: `claude-…`, or `anthropic/claude-…`.
pub(super) fn named(name: Option<&str>) -> Result<ModelChoice, Failure> {
    let Some(name) = name else {
        return Ok(ModelChoice::default());
    };
    let (upstream, model) = match name.split_once('/') {
        Some((upstream, model)) => (Some(upstream), model),
        None => (None, name),
    };
    if model == DEMO {
        return Ok(ModelChoice {
            upstream: upstream.unwrap_or(DEMO).to_owned(),
            model: model.to_owned(),
            wire: None,
        });
    }
    let known = MODELS.iter().find(|(start, ..)| model.starts_with(start));
    let Some((_, usual, wire)) = known else {
        return Err(Failure::usage(format!(
            "{name:?} does not say whose model it is; names begin with gpt-, o, claude- or \
             gemini-, an upstream may stand before them (anthropic/claude-…), and without \
             --model the form is our own"
        )));
    };
    Ok(ModelChoice {
        upstream: upstream.unwrap_or(usual).to_owned(),
        model: model.to_owned(),
        wire: Some(wire.clone()),
    })
}
