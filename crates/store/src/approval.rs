//! Approvals: durable records, bound to the arguments that were shown, answered once.

use throughline_model::json::RawJson;

use crate::{ApprovalId, CallRef, Millis, ThreadId};

/// A digest of what was shown to the approver: 16 bytes of BLAKE3.
pub type ArgumentsDigest = [u8; 16];

/// The digest of arguments.
///
/// ```
/// use throughline_store::arguments_digest;
///
/// assert_ne!(arguments_digest("transfer", r#"{"to":"a"}"#), arguments_digest("transfer", r#"{"to":"b"}"#));
/// ```
pub fn arguments_digest(tool: &str, arguments: &str) -> ArgumentsDigest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(tool.len() as u64).to_le_bytes());
    hasher.update(tool.as_bytes());
    hasher.update(arguments.as_bytes());
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

/// An approval that a call waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApproval {
    /// Its id.
    pub id: ApprovalId,
    /// The step of the call.
    pub step: u32,
    /// The call's position in the step.
    pub position: u32,
    /// The digest of tool and arguments, see [`arguments_digest`].
    pub shown: ArgumentsDigest,
    /// When it can no longer be answered.
    pub expires: Option<Millis>,
    /// What is shown, an object.
    pub detail: Option<RawJson>,
}

/// The decision of the approver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The call may run, once.
    Approved,
    /// It may not.
    Denied,
}

/// An answer to an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which.
    pub approval: ApprovalId,
    /// The digest of what was shown; another one than was asked for is refused.
    pub shown: ArgumentsDigest,
    /// The word.
    pub decision: Decision,
    /// Who answered.
    pub by: String,
    /// Why, in words that the model may read.
    pub reason: Option<String>,
}

/// Where an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApprovalState {
    /// It has no answer yet.
    Waiting,
    /// Approved, and not used yet.
    Approved,
    /// Denied.
    Denied,
    /// Approved, and the call was dispatched.
    Used,
    /// Too late. Never stored: waiting past its time.
    Expired,
    /// Its run ended without it.
    Withdrawn,
}

impl ApprovalState {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Approved,
        Self::Denied,
        Self::Used,
        Self::Expired,
        Self::Withdrawn,
    ];

    /// The word in listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Used => "used",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// An approval as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The thread.
    pub thread: ThreadId,
    /// The call.
    pub call: CallRef,
    /// The digest of what was shown.
    pub shown: ArgumentsDigest,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked for.
    pub created: Millis,
    /// When it can no longer be answered.
    pub expires: Option<Millis>,
    /// What is shown, an object.
    pub detail: Option<RawJson>,
    /// Who answered, and when.
    pub answered: Option<(String, Millis)>,
    /// Why, in words that the model may read.
    pub reason: Option<String>,
}

/// Which approvals to list, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ApprovalFilter {
    /// Only those of this thread.
    pub thread: Option<ThreadId>,
    /// Only those that can still be answered.
    pub waiting: bool,
}
