//! What a session had shown before a message.

use std::collections::HashMap;

use throughline_model::{Body, Role};

use super::text::message_texts;
use super::{Origin, Session};

/// The text of one content.
pub(super) struct Piece {
    /// The index of its message.
    pub(super) at: usize,
    /// The number of the call it belongs to, counted from 1.
    ordinal: usize,
    pub(super) role: Role,
    /// The id of the call that it is the result of.
    pub(super) answers: Option<String>,
    pub(super) text: String,
}

impl Piece {
    /// Where a name comes from that occurs here first; `None` for what the model wrote itself.
    pub(super) fn origin(&self) -> Option<Origin> {
        match self.role {
            Role::Tool => Some(Origin::Result),
            Role::User | Role::System | Role::Developer => Some(Origin::User),
            Role::Assistant | Role::Other(_) => None,
        }
    }
}

/// The texts of a session in order.
pub(super) struct Past {
    pieces: Vec<Piece>,
    /// For each message, how many pieces and how many calls come before it.
    before: Vec<(usize, usize)>,
}

impl Past {
    pub(super) fn of(session: &Session) -> Self {
        let mut pieces = Vec::new();
        let mut before = Vec::with_capacity(session.messages.len());
        let mut ordinals: HashMap<String, usize> = HashMap::new();
        let mut calls = 0;
        for (at, message) in session.messages.iter().enumerate() {
            before.push((pieces.len(), calls));
            for (content, text) in message.contents.iter().zip(message_texts(message)) {
                let mut answers = None;
                let ordinal = match &content.body {
                    Body::ToolCall(call) => {
                        calls += 1;
                        ordinals.insert(call.call.value().to_owned(), calls);
                        calls
                    }
                    Body::ToolResult(result) => {
                        let id = result.call().value();
                        answers = Some(id.to_owned());
                        ordinals.get(id).copied().unwrap_or(calls)
                    }
                    _ => calls,
                };
                pieces.push(Piece {
                    at,
                    ordinal,
                    role: message.role.clone(),
                    answers,
                    text,
                });
            }
        }
        Self { pieces, before }
    }

    /// The pieces before a message.
    pub(super) fn before(&self, at: usize) -> &[Piece] {
        let end = self.before.get(at).map_or(0, |(pieces, _)| *pieces);
        &self.pieces[..end]
    }

    /// The pieces of a message, with their places among all.
    pub(super) fn at(&self, at: usize) -> impl Iterator<Item = (usize, &Piece)> {
        let from = self.before(at).len();
        let pieces = self.pieces.iter().enumerate().skip(from);
        pieces.take_while(move |(_, piece)| piece.at == at)
    }

    pub(super) fn piece(&self, place: usize) -> Option<&Piece> {
        self.pieces.get(place)
    }

    /// How many calls before a message a piece stands; the newest call is one call back.
    pub(super) fn back(&self, at: usize, piece: &Piece) -> usize {
        let calls = self.before.get(at).map_or(0, |(_, calls)| *calls);
        calls.saturating_sub(piece.ordinal) + 1
    }

    /// The pieces of the newest calls before a message, so many of them.
    pub(super) fn recent(&self, at: usize, calls: usize) -> impl Iterator<Item = &Piece> {
        let pieces = self.before(at).iter().rev();
        pieces.filter(move |piece| self.back(at, piece) < calls)
    }
}
