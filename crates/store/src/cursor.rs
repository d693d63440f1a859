//! Cursors: where a consumer of a thread stands. Stateless, opaque, tied to tenant and thread.

use std::fmt;
use std::str::FromStr;

use crate::{BadId, Position, TenantScope, ThreadId};

/// A place in a thread's history after which something is new.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    pub(crate) timeline: i64,
    pub(crate) position: Position,
    /// Says that this store made it, for this tenant and thread.
    pub(crate) seal: [u8; 8],
}

/// The secret with which a store seals its cursors.
#[derive(Clone, Copy)]
pub(crate) struct Seal(pub(crate) [u8; 32]);

impl Seal {
    fn of(&self, scope: &TenantScope, thread: &ThreadId, timeline: i64, position: u64) -> [u8; 8] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for text in [scope.tenant().as_str(), thread.as_str()] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.update(&timeline.to_le_bytes());
        hasher.update(&position.to_le_bytes());
        let mut seal = [0; 8];
        seal.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        seal
    }

    /// The seal on bytes that a client keeps. Its key is another than that of cursors, so that
    /// a client cannot pass off one for the other.
    pub(crate) fn bytes(&self, scope: &TenantScope, purpose: &str, bytes: &[u8]) -> [u8; 16] {
        let key = blake3::derive_key("throughline 2026-11 sealed bytes", &self.0);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        for text in [scope.tenant().as_str(), purpose] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.update(bytes);
        let mut seal = [0; 16];
        seal.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        seal
    }

    /// A cursor of this store.
    pub(crate) fn cursor(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        timeline: i64,
        position: Position,
    ) -> Cursor {
        Cursor {
            timeline,
            position,
            seal: self.of(scope, thread, timeline, position),
        }
    }

    /// Whether this store made it, for this tenant and thread.
    pub(crate) fn fits(&self, scope: &TenantScope, thread: &ThreadId, cursor: &Cursor) -> bool {
        self.of(scope, thread, cursor.timeline, cursor.position) == cursor.seal
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seal = u64::from_be_bytes(self.seal);
        write!(f, "cur_{:x}_{:x}_{seal:016x}", self.timeline, self.position)
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Cursor {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let read = || {
            let mut parts = text.strip_prefix("cur_")?.split('_');
            let timeline = i64::from_str_radix(parts.next()?, 16).ok()?;
            let position = u64::from_str_radix(parts.next()?, 16).ok()?;
            let seal = u64::from_str_radix(parts.next()?, 16).ok()?;
            let cursor = Self {
                timeline,
                position,
                seal: seal.to_be_bytes(),
            };
            // One cursor, one spelling.
            (parts.next().is_none() && cursor.to_string() == text).then_some(cursor)
        };
        read().ok_or_else(|| BadId {
            kind: "cursor",
            expected: "take the one that the page before ended with",
            text: text.chars().take(64).collect(),
        })
    }
}
