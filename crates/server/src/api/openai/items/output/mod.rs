//! What was said, as the items that a client reads.
//!
//! Each text is a message of its own with one part, each call and each thought an item: so what a
//! reader saw growing and what is made of the record later are the same items with the same ids.
//! What has no equivalent here is left out; the record has it.

mod call;
mod exact;
mod message;
mod reasoning;
mod server;
mod vendor;

use throughline_model::{Body, Content, Family, Runner, ToolCall, ToolResult, Wire};

use super::envelope;
use crate::api::openai::items::{Labels, ServerTool};
use crate::config::Dialect;

pub(crate) use call::Call;
pub(crate) use exact::exact;
pub(crate) use message::MessageDraft;
pub(crate) use reasoning::ReasoningDraft;
pub(crate) use server::{Listed, Question, ServerCall};
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
    /// Words.
    MessageDraft(MessageDraft),
    /// Thoughts.
    ReasoningDraft(ReasoningDraft),
    /// A call that the client runs.
    Call(Call),
    /// A call that runs here.
    Server(ServerCall),
    /// Leave that a vendor's tool host asks for.
    Question(Question),
    /// A vendor's item as it came.
    VendorItem(VendorItem),
}

/// What carries the signature of a content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Carrier {
    /// There is nothing to carry.
    None,
    /// An item that is not shown.
    Unseen,
    /// An item.
    Shown(ReasoningDraft),
}

/// What items are made for.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'m> {
    pub(crate) dialect: Dialect,
    pub(crate) labels: &'m Labels,
    /// Whether reasoning comes with what is needed to send it back.
    pub(crate) seals: bool,
    /// Whether texts come with the likelihood of their words.
    pub(crate) logprobs: bool,
    /// Whether a summary of reasoning was asked for: what a vendor sends of it is shown as one.
    pub(crate) summarizes: bool,
    /// The model that was asked.
    pub(crate) model: &'m str,
}

impl Maker<'_> {
    /// The item for a content that the model made; `next` is the one after it. `phase` is carried
    /// from the first content of a vendor's message to the others.
    pub(crate) fn draft(
        &self,
        content: &Content,
        next: Option<&Content>,
        phase: &mut Option<String>,
    ) -> Option<Draft> {
        message::carry_phase(content, phase);
        match &content.body {
            Body::Text(_) | Body::Refusal(_) => {
                let said = self.said(content, phase.as_deref())?;
                Some(Draft::MessageDraft(said))
            }
            Body::Reasoning(_) => Some(Draft::ReasoningDraft(self.thought(content)?)),
            Body::ToolCall(call) => self.call(content, call, next),
            Body::ApprovalRequest(request) => Question::of(request, self.dialect),
            Body::Opaque(_) => VendorItem::of(content, None, self.dialect).map(Draft::VendorItem),
            // Within the item of its call, or nowhere.
            Body::ToolResult(_) => self.result_item(content),
            Body::Media(_) | Body::ApprovalResponse(_) | Body::Error(_) | Body::Unknown(_) => None,
        }
    }

    fn call(&self, content: &Content, call: &ToolCall, next: Option<&Content>) -> Option<Draft> {
        if call.runner == Runner::Client
            && let Some(tool) = self.labels.find(&call.name)
        {
            return Some(Draft::Server(ServerCall::new(call, tool, self.dialect)));
        }
        if call.runner == Runner::Client
            && let Some(tool) = self.labels.declared(&call.name)
        {
            // The other specification has neither namespaces nor free text.
            return Some(Draft::Call(match self.dialect {
                Dialect::OpenAi => Call::declared(call, tool),
                Dialect::OpenResponses => Call::of(call, false),
            }));
        }
        match (call.runner, self.dialect) {
            // Every client knows functions.
            (Runner::Client, Dialect::OpenResponses) => Some(Draft::Call(Call::of(call, false))),
            (Runner::Client, Dialect::OpenAi) => {
                Some(match VendorItem::of(content, next, self.dialect) {
                    Some(whole) => Draft::VendorItem(whole),
                    None => Draft::Call(Call::of(call, call.family == Family::CUSTOM)),
                })
            }
            (Runner::Vendor, _) => VendorItem::of(content, next, self.dialect)
                .or_else(|| VendorItem::of_another(call, self.dialect))
                .map(Draft::VendorItem),
        }
    }

    /// A result that a vendor shows as an item of its own.
    fn result_item(&self, content: &Content) -> Option<Draft> {
        let result = content.as_tool_result()?;
        let own = content.vendor.as_ref()?;
        let apart = own.wire == Wire::OpenAiResponses && result.runner == Runner::Vendor;
        apart.then(|| VendorItem::of(content, None, self.dialect).map(Draft::VendorItem))?
    }

    /// The item that carries a signature beside the item of a content. It has a number of its own
    /// whether it is shown or not: ids do not depend on what a client asked to see.
    pub(crate) fn carrier(&self, content: &Content) -> Carrier {
        match (envelope::is_signed(content), self.seals) {
            (false, _) => Carrier::None,
            (true, false) => Carrier::Unseen,
            (true, true) => Carrier::Shown(ReasoningDraft {
                sealed: Some(envelope::seal(content, self.model)),
                dialect: self.dialect,
                ..ReasoningDraft::default()
            }),
        }
    }

    /// A call of a server, with its result.
    pub(crate) fn server_call(&self, call: &ToolCall) -> Option<ServerCall> {
        let tool: &ServerTool = self.labels.find(&call.name)?;
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
            Self::MessageDraft(_)
            | Self::ReasoningDraft(_)
            | Self::Call(_)
            | Self::Question(_)
            | Self::VendorItem(_) => self,
        }
    }

    /// The type of the item.
    pub(crate) fn tag(&self) -> &str {
        match self {
            Self::MessageDraft(_) => "message",
            Self::ReasoningDraft(_) => "reasoning",
            Self::Call(call) => call.tag(),
            Self::Server(call) => call.tag(),
            Self::Question(_) => "mcp_approval_request",
            Self::VendorItem(whole) => &whole.tag,
        }
    }

    /// The whole item.
    pub(crate) fn whole(&self, id: &str, state: ItemStatus) -> String {
        match self {
            Self::MessageDraft(said) => said.item(id, state),
            Self::ReasoningDraft(thought) => thought.item(id, state),
            Self::Call(call) => call.item(id, state),
            Self::Server(call) => call.item(id, None),
            Self::Question(question) => question.item(id),
            Self::VendorItem(whole) => whole.item(id, state),
        }
    }
}
