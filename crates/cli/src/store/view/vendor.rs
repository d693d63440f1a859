//! The format in which a model is sent a history, by the model's name.

use std::sync::Arc;

use throughline_model::Message;
use throughline_wire::render::{self, Options, Repair, Target};
use throughline_wire::{Loss, Wire};

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

/// The model that would be asked; empty if none was given.
pub(super) struct ModelChoice<'a> {
    pub(super) upstream: &'a str,
    pub(super) model: &'a str,
    wire: Option<Wire>,
}

/// A history as its vendor would be sent it.
pub(super) struct Rendered {
    pub(super) format: String,
    /// The members of a request that follow from the history.
    pub(super) body: String,
    pub(super) items: u64,
    pub(super) losses: Vec<Loss>,
    pub(super) repairs: Vec<Repair>,
}

impl<'a> ModelChoice<'a> {
    /// What a name means: `claude-…`, or `anthropic/claude-…`.
    pub(super) fn named(name: Option<&'a str>) -> Result<Self, Failure> {
        let Some(name) = name else {
            return Ok(Self {
                upstream: "",
                model: "",
                wire: None,
            });
        };
        let (upstream, model) = match name.split_once('/') {
            Some((upstream, model)) => (Some(upstream), model),
            None => (None, name),
        };
        if model == DEMO {
            return Ok(Self {
                upstream: upstream.unwrap_or(DEMO),
                model,
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
        Ok(Self {
            upstream: upstream.unwrap_or(usual),
            model,
            wire: Some(wire.clone()),
        })
    }

    /// A history in the vendor's form; none in our own.
    pub(super) fn rendered(&self, messages: &[Arc<Message>]) -> Option<Rendered> {
        let wire = self.wire.clone()?;
        let format = wire.to_string();
        let (target, options) = (Target::newest(wire), Options::default());
        let messages: Vec<Message> = messages.iter().map(|one| (**one).clone()).collect();
        let rendered = render::render(&messages, &target, &options);
        Some(Rendered {
            format,
            body: rendered.body(&target, &options),
            items: rendered.items.len() as u64,
            losses: rendered.losses,
            repairs: rendered.repairs,
        })
    }
}
