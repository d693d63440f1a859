//! The messages of a request as digests.

use throughline_model::{Body, Message, Role};
use throughline_store::{FingerprintDigest, NewItem};

use super::canonical::canonical;

/// Answers from this size on are found by their longest line too: clients that compact a conversation
/// put its summary, which is an answer, between words of their own.
const LONG_ANSWER: usize = 1_000;

/// Lines shorter than this are no evidence.
const LONG_LINE: usize = 80;

/// How many lines of a message are looked up.
const LINES_LOOKED_UP: usize = 128;

/// How many messages at the start of a request are its instructions: they are kept with the run, and a
/// conversation goes on when they change.
pub(super) fn instructions(messages: &[&Message]) -> usize {
    let is_instruction =
        |message: &&&Message| matches!(message.role, Role::System | Role::Developer);
    messages.iter().take_while(is_instruction).count()
}

/// The state of the digest over the messages of a conversation so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct History([u8; 32]);

impl History {
    pub(super) fn start() -> Self {
        Self(*blake3::hash(b"throughline record 1").as_bytes())
    }

    #[must_use]
    pub(super) fn with(self, message: &MessageDigest) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(&message.0);
        Self(*hasher.finalize().as_bytes())
    }

    /// Finds the answer that ends this history.
    pub(super) fn end(self) -> FingerprintDigest {
        short(b'h', &self.0)
    }

    /// Finds the last input of the first request of a thread.
    pub(super) fn opening(self) -> FingerprintDigest {
        short(b'o', &self.0)
    }
}

/// The digest of one message, wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageDigest([u8; 32]);

impl MessageDigest {
    pub(super) fn of(message: &Message) -> Self {
        Self(*blake3::hash(&canonical(message)).as_bytes())
    }

    /// Finds the message, to be stored once. Its calls count here, by their ids: an equal result of another
    /// call is another message.
    pub(super) fn content(self, message: &Message) -> FingerprintDigest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(&NewItem::count(message).to_be_bytes());
        for content in &message.contents {
            let id = match &content.body {
                Body::ToolCall(call) => &call.call,
                Body::ToolResult(result) => result.call(),
                _ => continue,
            };
            hasher.update(id.value().as_bytes()).update(&[0]);
        }
        short(b'c', hasher.finalize().as_bytes())
    }
}

fn short(kind: u8, digest: &[u8; 32]) -> FingerprintDigest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]).update(digest);
    let mut short = FingerprintDigest::default();
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    short
}

fn line(text: &str) -> FingerprintDigest {
    short(b'l', blake3::hash(text.as_bytes()).as_bytes())
}

/// Finds a long answer that is quoted in another text.
pub(super) fn quotable(answer: &Message) -> Option<FingerprintDigest> {
    let text = text(answer);
    if text.len() < LONG_ANSWER {
        return None;
    }
    let longest = text.lines().map(str::trim).max_by_key(|line| line.len())?;
    (longest.len() >= LONG_LINE).then(|| line(longest))
}

/// What may quote an answer in a message.
pub(super) fn quoted(message: &Message) -> Vec<FingerprintDigest> {
    let text = text(message);
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| line.len() >= LONG_LINE);
    lines.take(LINES_LOOKED_UP).map(line).collect()
}

fn text(message: &Message) -> String {
    let texts = message
        .contents
        .iter()
        .filter_map(|content| match &content.body {
            Body::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
    texts.collect::<Vec<_>>().join("\n")
}

/// A message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DigestedMessage {
    /// Finds the message.
    pub(super) content: FingerprintDigest,
    /// The history that ends with it.
    pub(super) history: History,
    /// How many items it is stored as.
    pub(super) items: u32,
    /// Whether the model said it.
    pub(super) is_answer: bool,
}

/// The messages of a request without its instructions, in their order.
pub(super) fn digested(messages: &[&Message]) -> Vec<DigestedMessage> {
    let mut history = History::start();
    let digested = messages.iter().map(|message| {
        let digest = MessageDigest::of(message);
        history = history.with(&digest);
        DigestedMessage {
            content: digest.content(message),
            history,
            items: NewItem::count(message),
            is_answer: message.role == Role::Assistant,
        }
    });
    digested.collect()
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
