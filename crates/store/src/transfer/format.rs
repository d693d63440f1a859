//! The lines of an export as values.

use throughline_model::json::RawJson;
use throughline_model::{Message, Source};

use super::Extent;
use crate::{
    ItemKind, ItemNo, ItemRef, Millis, Mode, NewThread, NodeId, Position, Redaction, RunKind,
    RunState, State,
};

/// The name and version of the format that is written. Version 1, without token counts, is read too.
pub const FORMAT: &str = "throughline.export/2";

/// The name before the version.
pub(super) const NAME: &str = "throughline.export/";

/// The version that is written.
pub(super) const VERSION: u32 = 2;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Header(Header),
    Thread(Box<ThreadLine>),
    Node(Box<NodeLine>),
    Item(Box<ItemLine>),
    End(EndLine),
}

impl Line {
    /// The word in `type`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Header(_) => "header",
            Self::Thread(_) => "thread",
            Self::Node(_) => "node",
            Self::Item(_) => "item",
            Self::End(_) => "end",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// At most [`VERSION`].
    pub(super) version: u32,
    pub(super) extent: Extent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadLine {
    pub(super) thread: NewThread,
    pub(super) created: Millis,
    pub(super) touched: Millis,
    pub(super) head: Option<NodeId>,
    /// Tokens of all items up to the head; not in version 1.
    pub(super) tokens: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeLine {
    pub(super) node: NodeId,
    pub(super) parent: Option<NodeId>,
    pub(super) first: Position,
    pub(super) first_item: ItemNo,
    pub(super) items: u32,
    pub(super) open: bool,
    pub(super) hidden: bool,
    pub(super) created: Millis,
    pub(super) kind: RunKind,
    pub(super) mode: Mode,
    /// Committed or cancelled; see [`ended`].
    pub(super) ended: RunState,
    pub(super) begun: Millis,
    pub(super) note: Option<RawJson>,
    pub(super) state: Option<State>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemLine {
    pub(super) no: ItemNo,
    pub(super) position: Position,
    /// Not in version 1 where nothing was counted, and not for gaps.
    pub(super) tokens: Option<u32>,
    pub(super) what: What,
}

/// What an item says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Message {
        kind: ItemKind,
        message: Box<Message>,
        /// Where it was said first, if it is said again here.
        again: Option<ItemRef>,
    },
    Redacted {
        kind: ItemKind,
        source: Option<Source>,
        redaction: Redaction,
    },
    Gap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndLine {
    pub(super) nodes: u64,
    pub(super) items: u64,
    pub(super) digest: [u8; 16],
}

/// How a run ended, as an export says it. The journal stays behind, so a run that is still going
/// on, or that failed after it had published something, is over where the export is read: what it
/// published stands, and no process can go on with it.
pub(super) fn ended(state: RunState) -> RunState {
    match state {
        RunState::Committed => RunState::Committed,
        RunState::Running
        | RunState::Interrupted
        | RunState::Parked
        | RunState::Held
        | RunState::Cancelled
        | RunState::Failed
        | RunState::Unpublished
        | RunState::Discarded => RunState::Cancelled,
    }
}

/// The digest of all lines before the last.
pub(super) fn digest(hasher: &blake3::Hasher) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}
