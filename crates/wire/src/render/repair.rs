use std::fmt;

use throughline_model::Path;
use throughline_model::json::ObjectWriter;

/// What kind of change made a history acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RepairKind {
    /// A call without a result got a marked one.
    ClosedCall,
    /// A result was moved to its call.
    LateResult,
    /// A result without a call became text.
    OrphanResult,
    /// A second result of one call was left out.
    ExtraResult,
    /// A call id was used before, or does not fit the id field; both ends have a new one.
    RenamedId,
    /// An item id that may not be sent was left out.
    ItemId,
    /// Reasoning that may not be sent was left out.
    SealedReasoning,
    /// An empty text or message was left out.
    Empty,
    /// A user message was put first.
    LeadingUser,
    /// A user message was put last.
    TrailingUser,
    /// A user message was put between two of the model's.
    BetweenModels,
    /// System text moved to where the target takes it.
    SystemPlace,
    /// A tool of another vendor, or one that only answers, became text.
    HostedText,
    /// A pair that only comes in responses became a function call and its output.
    ResponseOnlyPair,
    /// A key that only comes in responses, or that messages do not have, was left out.
    OutputOnlyKey,
    /// A whole tool group became text.
    TextGroup,
    /// A signature placeholder was set on a call of another vendor.
    SignaturePlaceholder,
    /// A call of the vendor without a result was left out.
    UnansweredVendorCall,
    /// A message changed its role.
    Role,
    /// What the service has already was left out.
    Chained,
    /// The vendor's form of a content is inconsistent, so the content was written anew.
    BrokenForm,
}

impl RepairKind {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClosedCall => "closed_call",
            Self::LateResult => "late_result",
            Self::OrphanResult => "orphan_result",
            Self::ExtraResult => "extra_result",
            Self::RenamedId => "renamed_id",
            Self::ItemId => "item_id",
            Self::SealedReasoning => "sealed_reasoning",
            Self::Empty => "empty",
            Self::LeadingUser => "leading_user",
            Self::TrailingUser => "trailing_user",
            Self::BetweenModels => "between_models",
            Self::SystemPlace => "system_place",
            Self::HostedText => "hosted_text",
            Self::ResponseOnlyPair => "response_only_pair",
            Self::OutputOnlyKey => "output_only_key",
            Self::TextGroup => "text_group",
            Self::SignaturePlaceholder => "signature_placeholder",
            Self::UnansweredVendorCall => "unanswered_vendor_call",
            Self::Role => "role",
            Self::Chained => "chained",
            Self::BrokenForm => "broken_form",
        }
    }
}

/// A change that made a history acceptable to its target. The record itself is never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Where it concerns the history: `messages[3].contents[1]`.
    pub path: String,
    /// What kind of change.
    pub kind: RepairKind,
    /// What exactly, in words.
    pub detail: String,
    /// The first rendered item that the change concerns.
    pub item: usize,
}

impl Repair {
    pub(super) fn new(
        path: &Path<'_>,
        kind: RepairKind,
        detail: impl Into<String>,
        item: usize,
    ) -> Self {
        Self {
            path: path.to_string(),
            kind,
            detail: detail.into(),
            item,
        }
    }

    /// Append as JSON.
    pub fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object
            .str("path", &self.path)
            .str("kind", self.kind.as_str())
            .str("detail", &self.detail);
        object.end();
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.path, self.detail, self.kind.as_str())
    }
}
