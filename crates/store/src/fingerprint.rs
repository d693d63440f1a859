//! Fingerprints: digests by which a conversation is found again that a client sends in full with every
//! request. The layer above decides what is digested; a store compares digests and nothing else.

use crate::{ItemNo, NodeId, Run, ThreadId};

/// A digest of what a client sends again.
pub type FingerprintDigest = [u8; 16];

/// A digest that finds an item of a run. It is written with the item, by the same `begin` or `publish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint {
    /// The item that it finds.
    pub item: ItemNo,
    /// What it is found by.
    pub digest: FingerprintDigest,
}

/// An item that was found by a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintMatch {
    /// The digest.
    pub digest: FingerprintDigest,
    /// The item.
    pub item: ItemNo,
    /// Its run.
    pub run: Run,
    /// The head of the run's thread.
    pub head: Option<NodeId>,
}

impl FingerprintMatch {
    /// The thread that its run works on.
    pub fn thread(&self) -> &ThreadId {
        &self.run.thread
    }

    /// Whether the run's last node is the head of its thread.
    pub fn is_head(&self) -> bool {
        self.head.is_some() && self.head == self.run.published
    }
}

/// How many items are returned for one digest, the newest ones. A text that opens thousands of
/// conversations ("hello") finds as many items.
pub const MATCHES_PER_DIGEST: usize = 4;
