//! What of a request cannot be carried out, as far as it is known before a model is asked.

use throughline::client::{ChatRequest, HistoryOwner, View};
use throughline_model::{Message, Settings, ToolChoice, ToolDef};

use super::offered::OfferedTools;
use super::wire::{CreateRequest, Handling, Ignored, handling, left_out, of_loss};
use crate::api::ignored::is_content;
use crate::api::openai::items::{InputItem, InputItems, messages_of};
use crate::config::HistoryLocation;
use crate::error::ApiError;
use crate::upstreams::Route;

/// A model call as it would be made.
pub(crate) struct ModelCall<'a> {
    pub(crate) route: &'a Route,
    pub(crate) request: &'a CreateRequest,
    pub(crate) settings: &'a Settings,
    pub(crate) choice: &'a ToolChoice,
    /// All tools on offer, and where the client's stand in the request.
    pub(crate) defs: &'a [ToolDef],
    pub(crate) offered: &'a OfferedTools,
}

impl ModelCall<'_> {
    /// What cannot be carried out. What must not be left out is refused.
    pub(crate) fn ignored(&self) -> Result<Vec<Ignored>, ApiError> {
        let native = self.route.upstream.kind.speaks_responses();
        let request = self.request;
        if !native {
            refuse_unsendable(request)?;
        }
        let mut ignored = left_out(request, native);
        let asks = request.compaction();
        if self.route.upstream.history == HistoryLocation::Service && asks.is_asked() {
            let reason =
                "the upstream keeps this conversation, and decides what its model is shown";
            for key in ["truncation", "context_management", "throughline.compaction"] {
                if asks.names(key) {
                    ignored.push(Ignored::new(key, reason));
                }
            }
        }
        let view = View::default();
        let losses = self.route.upstream.client.unsupported(&self.call(&view));
        let place = |def: &ToolDef| self.offered.place(&def.name);
        let places: Vec<Option<usize>> = self.defs.iter().map(place).collect();
        for loss in &losses {
            let Some(found) = of_loss(loss, request, &places) else {
                continue;
            };
            let same = |one: &Ignored| one.path == found.path;
            if !ignored.iter().any(same) {
                ignored.push(found);
            }
        }
        self.refuse_choice(&ignored)?;
        Ok(ignored)
    }

    fn call<'c>(&'c self, view: &'c View) -> ChatRequest<'c> {
        ChatRequest {
            model: self.route.model.as_deref(),
            instructions: None,
            view,
            tools: self.defs,
            choice: self.choice,
            settings: self.settings,
            history_owner: HistoryOwner::Caller,
            persist: None,
            losses: None,
        }
    }

    /// A tool that must be called has to be on offer.
    fn refuse_choice(&self, ignored: &[Ignored]) -> Result<(), ApiError> {
        let dropped = |def: &ToolDef| {
            let place = self.offered.place(&def.name);
            place.is_some_and(|place| {
                let path = format!("tools[{place}]");
                ignored.iter().any(|one| one.path == path)
            })
        };
        let name = match self.choice {
            ToolChoice::Auto | ToolChoice::None => return Ok(()),
            ToolChoice::Named(name) => {
                let mut named = self.defs.iter().filter(|def| def.name == *name);
                match named.next() {
                    Some(def) if dropped(def) => name.as_str(),
                    _ => return Ok(()),
                }
            }
            ToolChoice::Required => {
                let all = !self.defs.is_empty() && self.defs.iter().all(dropped);
                match all {
                    true => "required",
                    false => return Ok(()),
                }
            }
        };
        Err(ApiError::invalid(format!(
            "The tool choice '{name}' cannot be met: the upstream '{}' has no such tool.",
            self.route.upstream.name
        ))
        .code("unsupported_tool_choice")
        .param("tool_choice"))
    }

    /// Refuse contents of the request's own input that the model cannot be shown.
    pub(crate) fn refuse_contents(&self, input: &InputItems) -> Result<(), ApiError> {
        for item in input.items().iter().filter(|item| holds_media(item)) {
            let Ok(messages) = messages_of(item) else {
                continue;
            };
            self.refuse_item(item, &messages)?;
        }
        Ok(())
    }

    fn refuse_item(&self, item: &InputItem, messages: &[Message]) -> Result<(), ApiError> {
        let view = View::new(messages.iter().cloned());
        let losses = self.route.upstream.client.unsupported(&self.call(&view));
        let lost = losses
            .iter()
            .find(|loss| is_content(loss.kind) && loss.path.starts_with("messages"));
        let Some(lost) = lost else {
            return Ok(());
        };
        let place = lost.path.rsplit_once("contents[").map(|(_, rest)| rest);
        let place = place.and_then(|rest| rest.split(']').next());
        let param = match place.filter(|_| item.tag == "message") {
            Some(place) => format!("input[{}].content[{place}]", item.index),
            None => format!("input[{}]", item.index),
        };
        Err(ApiError::invalid(format!(
            "'{param}' cannot be sent to the upstream '{}': {}. Send the data itself in a form that \
             its models take, or leave it out.",
            self.route.upstream.name, lost.detail
        ))
        .code("unsupported_content")
        .param(param))
    }
}

/// Whether an item holds something else than text.
fn holds_media(item: &InputItem) -> bool {
    let json = item.json.get();
    [
        "\"input_image\"",
        "\"input_file\"",
        "\"input_audio\"",
        "\"input_video\"",
        "\"computer_screenshot\"",
    ]
    .iter()
    .any(|tag| json.contains(tag))
}

/// Refuse members without which the model would be asked something else.
fn refuse_unsendable(request: &CreateRequest) -> Result<(), ApiError> {
    for key in request.members() {
        if handling(&key) == Some(Handling::ResponsesOrRefused) {
            return Err(ApiError::invalid(format!(
                "'{key}' is only known to upstreams that speak the Responses API."
            ))
            .code("unsupported_parameter")
            .param(key));
        }
    }
    Ok(())
}
