//! The list of vendor formats, and what each vendor folder contributes.
//!
//! `render`, `compose` and `validate` look up what they need of a vendor here instead of matching
//! on the format. A new vendor is a folder with the same file names and one line in [`VENDORS`].

use throughline_model::{ApprovalResponse, Vendor, Wire};

use crate::Codec;
use crate::compose::ComposeFormat;
use crate::render::RenderFormat;
use crate::validate::ValidateFormat;
use crate::{anthropic, foundry, gemini, gemini_interactions, openai_chat, openai_responses};

/// Everything that this crate knows about one vendor format.
pub(crate) struct VendorFormat {
    /// The format that this entry is about.
    pub(crate) wire: Wire,
    /// Decodes and encodes it.
    pub(crate) codec: &'static Codec,
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
    &openai_chat::FORMAT,
    &openai_responses::FORMAT,
    &anthropic::FORMAT,
    &gemini::FORMAT,
    &gemini_interactions::FORMAT,
    &foundry::FORMAT,
];

/// All vendor formats.
pub(crate) fn all() -> impl Iterator<Item = &'static VendorFormat> {
    VENDORS.into_iter()
}

/// The entry of a format; `None` for one that this version does not know.
pub(crate) fn find(wire: &Wire) -> Option<&'static VendorFormat> {
    all().find(|vendor| vendor.wire == *wire)
}

/// The format in which model calls are written for a format that this version does not know: servers with a format
/// of their own mostly copied Chat Completions.
pub(crate) fn fallback() -> &'static VendorFormat {
    &openai_chat::FORMAT
}

/// What the vendor of a format requires of a rendered history. For a format that this version does not know, that
/// is what most formats have in common.
pub(crate) fn render_format(wire: &Wire) -> &'static RenderFormat {
    find(wire).map_or(&openai_chat::render::UNKNOWN, |vendor| vendor.render)
}
