//! What the built-in model ignores.

use throughline_model::{Body, Family, MediaKind, Path, Settings};
use throughline_wire::{Loss, LossKind, Losses};

use crate::client::ChatRequest;

/// The parts of a request that the model ignores. It calls functions, respects the token limit and
/// the tool choice, and answers in plain text.
pub(super) fn losses(request: &ChatRequest<'_>) -> Vec<Loss> {
    let mut losses = Losses::default();
    let tools = Path::Root.key("tools");
    for (index, tool) in request.tools.iter().enumerate() {
        let path = tools.index(index);
        if tool.family != Family::FUNCTION {
            let detail = format!("demo has no tool {}", tool.name);
            losses.note(&path, LossKind::ToolDefinition, detail);
        } else if tool.strict == Some(true) {
            let detail = "arguments are not held to their schema";
            losses.note(&path.key("strict"), LossKind::ToolDefinition, detail);
        }
    }
    let settings = Path::Root.key("settings");
    for (key, said) in said(request.settings) {
        if said {
            let detail = "the built-in model has no such setting";
            losses.note(&settings.key(key), LossKind::Setting, detail);
        }
    }
    let messages = Path::Root.key("messages");
    for (index, message) in request.view.messages().iter().enumerate() {
        let path = messages.index(index);
        let path = path.key("contents");
        for (place, content) in message.contents.iter().enumerate() {
            if let Body::Media(media) = &content.body
                && media.kind != MediaKind::Image
            {
                let detail = "the built-in model takes texts and images alone";
                losses.note(&path.index(place), LossKind::Media, detail);
            }
        }
    }
    let mut losses = losses.into_vec();
    let most = crate::prompt::MOST_LOSSES;
    losses.truncate(most);
    losses
}

fn said(settings: &Settings) -> [(&'static str, bool); 15] {
    let penalty = |penalty: Option<f64>| penalty.is_some_and(|penalty| penalty != 0.0);
    [
        ("temperature", settings.temperature.is_some()),
        ("top_p", settings.top_p.is_some()),
        ("stop", !settings.stop.is_empty()),
        ("effort", settings.effort.is_some()),
        ("summary", settings.summary),
        ("verbosity", settings.verbosity.is_some()),
        ("presence_penalty", penalty(settings.presence_penalty)),
        ("frequency_penalty", penalty(settings.frequency_penalty)),
        ("answer", settings.answer.is_some()),
        ("user", settings.user.is_some()),
        ("service_tier", settings.service_tier.is_some()),
        ("cache_key", settings.cache_key.is_some()),
        ("cache_retention", settings.cache_retention.is_some()),
        ("betas", !settings.betas.is_empty()),
        ("extra", settings.extra.is_some()),
    ]
}
