//! The members of a request body that follow from a history and its target.

use super::switches::Switches;
use super::target::Target;
use crate::object_builder::{Items, ObjectBuilder};
use crate::vendors;

/// A rendered history, ready for a request body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenderedInput<'s> {
    /// System text that stands outside the messages.
    pub(crate) system: Option<&'s str>,
    /// The messages or items, a JSON array.
    pub(crate) items: Items<'s>,
}

/// Add system text, messages, and what the request continues.
pub(crate) fn add<'m>(
    body: &mut ObjectBuilder<'m>,
    input: RenderedInput<'m>,
    target: &'m Target,
    switches: Switches,
) {
    (vendors::render_format(&target.wire).add_input)(body, input, target, switches);
}
