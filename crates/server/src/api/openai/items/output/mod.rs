//! Output items: contents of the model as a client reads them.
//!
//! Each text is a message of its own with one part; each call and each piece of reasoning is an item. So
//! the items of a stream and those made from the store later are the same, with the same ids. Contents
//! without an equivalent in the API are left out; the store has them.

mod call;
mod message;
mod original;
mod reasoning;
mod server;
mod vendor;

use throughline_model::{Body, Content, Family, Runner, ToolCall, ToolResult, Wire};

use super::envelope;
use crate::api::openai::items::{ServerTool, ToolIndex};
use crate::config::Dialect;

pub(crate) use call::ClientCall;
pub(crate) use message::MessageDraft;
pub(crate) use original::original_items;
pub(crate) use reasoning::ReasoningDraft;
pub(crate) use server::{ApprovalQuestion, ServerCall, tool_list_item};
pub(crate) use vendor::OWN_WIRE;
pub(crate) use vendor::VendorItem;

/// How far an item got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemStatus {
    InProgress,
    Completed,
    Incomplete,
}

impl ItemStatus {
    /// The word for it in an item of a type: some have no word for what is not whole.
    pub(crate) fn of(self, tag: &str) -> &'static str {
        match (self, tag) {
            (Self::Incomplete, "web_search_call" | "image_generation_call") => "failed",
            _ => self.as_str(),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// An item that has no id yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draft {
    /// A text or a refusal.
    Message(MessageDraft),
    /// Reasoning.
    Reasoning(ReasoningDraft),
    /// A call that the client runs.
    Call(ClientCall),
    /// A call that runs here.
    Server(ServerCall),
    /// A question of a vendor's tool host whether a call may run.
    Question(ApprovalQuestion),
    /// A vendor's item as it came.
    Vendor(VendorItem),
}

/// What carries the signature of a content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SignatureItem {
    /// There is nothing to carry.
    None,
    /// An item that is not shown.
    Hidden,
    /// An item.
    Shown(ReasoningDraft),
}

/// What items are made for.
#[derive(Clone, Copy)]
pub(crate) struct ItemBuilder<'m> {
    pub(crate) dialect: Dialect,
    pub(crate) tool_index: &'m ToolIndex,
    /// Whether reasoning comes with what is needed to send it back.
    pub(crate) seals: bool,
    /// Whether texts come with the likelihood of their words.
    pub(crate) logprobs: bool,
    /// Whether a summary of reasoning was asked for: what a vendor sends of it is shown as one.
    pub(crate) summarizes: bool,
    /// The model that was asked.
    pub(crate) model: &'m str,
}

impl ItemBuilder<'_> {
    /// The item for a content that the model made; `next` is the one after it. `phase` is carried
    /// from the first content of a vendor's message to the others.
    pub(crate) fn draft(
        &self,
        content: &Content,
        next: Option<&Content>,
        phase: &mut Option<String>,
    ) -> Option<Draft> {
        message::track_phase(content, phase);
        match &content.body {
            Body::Text(_) | Body::Refusal(_) => {
                let said = self.message_draft(content, phase.as_deref())?;
                Some(Draft::Message(said))
            }
            Body::Reasoning(_) => Some(Draft::Reasoning(self.reasoning_draft(content)?)),
            Body::ToolCall(call) => self.call(content, call, next),
            Body::ApprovalRequest(request) => ApprovalQuestion::of(request, self.dialect),
            Body::Opaque(_) => VendorItem::of(content, None, self.dialect).map(Draft::Vendor),
            // Within the item of its call, or nowhere.
            Body::ToolResult(_) => self.result_item(content),
            Body::Media(_) | Body::ApprovalResponse(_) | Body::Error(_) | Body::Unknown(_) => None,
        }
    }

    fn call(&self, content: &Content, call: &ToolCall, next: Option<&Content>) -> Option<Draft> {
        if call.runner == Runner::Client
            && let Some(tool) = self.tool_index.find(&call.name)
        {
            return Some(Draft::Server(ServerCall::new(call, tool, self.dialect)));
        }
        if call.runner == Runner::Client
            && let Some(tool) = self.tool_index.declared(&call.name)
        {
            // The other specification has neither namespaces nor free text.
            return Some(Draft::Call(match self.dialect {
                Dialect::OpenAi => ClientCall::declared(call, tool),
                Dialect::OpenResponses => ClientCall::of(call, false),
            }));
        }
        match (call.runner, self.dialect) {
            // Every client knows functions.
            (Runner::Client, Dialect::OpenResponses) => {
                Some(Draft::Call(ClientCall::of(call, false)))
            }
            (Runner::Client, Dialect::OpenAi) => {
                Some(match VendorItem::of(content, next, self.dialect) {
                    Some(whole) => Draft::Vendor(whole),
                    None => Draft::Call(ClientCall::of(call, call.family == Family::CUSTOM)),
                })
            }
            (Runner::Vendor, _) => VendorItem::of(content, next, self.dialect)
                .or_else(|| VendorItem::of_other_vendor(call, self.dialect))
                .map(Draft::Vendor),
        }
    }

    /// A result that a vendor shows as an item of its own.
    fn result_item(&self, content: &Content) -> Option<Draft> {
        let result = content.as_tool_result()?;
        let own = content.vendor.as_ref()?;
        let apart = own.wire == Wire::OpenAiResponses && result.runner == Runner::Vendor;
        apart.then(|| VendorItem::of(content, None, self.dialect).map(Draft::Vendor))?
    }

    /// The item that carries a signature beside the item of a content. It has a number of its own
    /// whether it is shown or not: ids do not depend on what a client asked to see.
    pub(crate) fn signature_item(&self, content: &Content) -> SignatureItem {
        match (envelope::is_signed(content), self.seals) {
            (false, _) => SignatureItem::None,
            (true, false) => SignatureItem::Hidden,
            (true, true) => SignatureItem::Shown(ReasoningDraft {
                sealed: Some(envelope::seal(content, self.model)),
                dialect: self.dialect,
                ..ReasoningDraft::default()
            }),
        }
    }

    /// A call of a server, with its result.
    pub(crate) fn server_call(&self, call: &ToolCall) -> Option<ServerCall> {
        let tool: &ServerTool = self.tool_index.find(&call.name)?;
        Some(ServerCall::new(call, tool, self.dialect))
    }
}

/// Whether a call did what it was asked.
pub(crate) fn succeeded(result: &ToolResult) -> bool {
    server::is_ok(result)
}

impl Draft {
    /// The same for the n-th call of its id in its message.
    pub(crate) fn with_occurrence(self, occurrence: u32) -> Self {
        match self {
            Self::Server(call) => Self::Server(call.with_occurrence(occurrence)),
            Self::Message(_)
            | Self::Reasoning(_)
            | Self::Call(_)
            | Self::Question(_)
            | Self::Vendor(_) => self,
        }
    }

    /// The type of the item.
    pub(crate) fn tag(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::Reasoning(_) => "reasoning",
            Self::Call(call) => call.tag(),
            Self::Server(call) => call.tag(),
            Self::Question(_) => "mcp_approval_request",
            Self::Vendor(whole) => &whole.tag,
        }
    }

    /// The whole item.
    pub(crate) fn item(&self, id: &str, state: ItemStatus) -> String {
        match self {
            Self::Message(said) => said.item(id, state),
            Self::Reasoning(thought) => thought.item(id, state),
            Self::Call(call) => call.item(id, state),
            Self::Server(call) => call.item(id, None),
            Self::Question(question) => question.item(id),
            Self::Vendor(whole) => whole.item(id, state),
        }
    }
}
