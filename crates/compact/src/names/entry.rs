//! One name, and where it was seen.

use super::scan::Kind;

/// One name and where it was seen.
#[derive(Clone, Debug)]
pub(crate) struct NameEntry {
    /// As it is shown.
    pub(crate) shown: Box<str>,
    pub(crate) kind: Kind,
    /// How many messages have it.
    pub(crate) messages: u32,
    /// The last place of the record that has it.
    pub(crate) last: usize,
    /// How many calls had been made before the last place.
    pub(crate) last_call: u32,
    /// How often calls were made with it.
    pub(crate) in_arguments: u16,
    /// How often the model spoke of it.
    pub(crate) in_prose: u16,
    pub(crate) in_user: bool,
    pub(crate) defined: bool,
    /// The content that had it last, and where in that content's list.
    pub(super) stamp: (u32, u32),
}

/// A name of one content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameUse {
    pub(crate) id: u32,
    /// Whether the content defines it.
    pub(crate) defined: bool,
    /// How often it stands there.
    pub(crate) times: u16,
    /// Whether it stands in a text that is to be written.
    pub(crate) body: bool,
    /// The line of its file where it stands first; 0 if that is not known.
    pub(crate) line: u32,
    /// Whether the text itself says which line that is; else it is counted from the start of the text.
    pub(crate) numbered: bool,
}
