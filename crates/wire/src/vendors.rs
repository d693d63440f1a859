//! The list of vendor formats, and what each vendor folder contributes.
//!
//! `render`, `compose` and `validate` look up what they need of a vendor here instead of matching
//! on the format. A new vendor is a folder with the same file names and one line in [`VENDORS`].

use throughline_model::{ApprovalResponse, Vendor, Wire};

use crate::Codec;
use crate::compose::ComposeFormat;
use crate::render::RenderFormat;
use crate::validate::ValidateFormat;

/// Everything that this crate knows about one vendor format.
pub(crate) struct VendorFormat {
    /// The format that this entry is about.
    pub(crate) wire: Wire,
    /// Decodes and encodes it.
    pub(crate) codec: &'static dyn Codec,
    /// What the vendor requires of a rendered history.
    pub(crate) render: &'static RenderFormat,
    /// How the body of a model call is written.
    pub(crate) compose: ComposeFormat,
    /// How a request is checked.
    pub(crate) validate: ValidateFormat,
    /// The vendor's item for a decision on an approval request of its own tool host; `None` if it
    /// has no such item.
    pub(crate) approval_item: fn(&ApprovalResponse) -> Option<Vendor>,
}

/// Every vendor format, in the order in which they are listed to users.
static VENDORS: [&VendorFormat; 6] = [
    &crate::openai_chat::FORMAT,
    &crate::openai_responses::FORMAT,
    &crate::anthropic::FORMAT,
    &crate::gemini::FORMAT,
    &crate::gemini_interactions::FORMAT,
    &crate::foundry::FORMAT,
];

/// All vendor formats.
pub(crate) fn all() -> impl Iterator<Item = &'static VendorFormat> {
    VENDORS.into_iter()
}

/// The entry of a format; `None` for one that this version does not know.
pub(crate) fn find(wire: &Wire) -> Option<&'static VendorFormat> {
    all().find(|vendor| vendor.wire == *wire)
}
