//! Names and places of things. Each kind has a type of its own and ids have a prefix, so that none is
//! taken for another.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use throughline_model::MessageId;

/// A text that is not an id of the kind asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {kind}; {expected}")]
pub struct BadId {
    /// What was asked for.
    pub kind: &'static str,
    /// How one looks.
    pub expected: &'static str,
    /// The first characters of the text.
    pub text: String,
}

fn bad(kind: &'static str, expected: &'static str, text: &str) -> BadId {
    BadId {
        kind,
        expected,
        text: text.chars().take(48).collect(),
    }
}

/// The public id of a thread, which is also its storage key: the caller's own, or `thr_` and a
/// UUID version 7 in hex.
///
/// Invariant: 1 to 128 visible ASCII characters without slashes, so that an id is one part of a path.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(Arc<str>);

impl ThreadId {
    /// Take over an id.
    ///
    /// ```
    /// use throughline_store::ThreadId;
    ///
    /// assert_eq!(ThreadId::new("ticket-4711").unwrap().as_str(), "ticket-4711");
    /// assert!(ThreadId::new("").is_err());
    /// assert!(ThreadId::new("a/b").is_err());
    /// ```
    pub fn new(text: &str) -> Result<Self, BadId> {
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        if (1..=128).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(Self(text.into()));
        }
        Err(bad(
            "thread id",
            "one has 1 to 128 visible ASCII characters without slashes",
            text,
        ))
    }

    /// The id that the store makes of 16 bytes.
    pub(crate) fn from_bytes(bytes: &[u8; 16]) -> Self {
        let mut text = String::from("thr_");
        push_hex(&mut text, bytes);
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ThreadId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        Self::new(text)
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn push_hex(out: &mut String, bytes: &[u8; 16]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 32];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    out.push_str(str::from_utf8(&text).unwrap_or_default());
}

fn from_hex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        // Upper case would give one id two spellings.
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $prefix:literal, $($other:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; 16]);

        impl $name {
            /// The id with the given 16 bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Its 16 bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Its 32 hex digits, without the prefix.
            pub fn to_hex(&self) -> String {
                let mut out = String::with_capacity(32);
                push_hex(&mut out, &self.0);
                out
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                let digits = text.strip_prefix($prefix);
                $(let digits = digits.or_else(|| text.strip_prefix($other));)?
                digits
                    .and_then(from_hex)
                    .map(Self)
                    .ok_or_else(|| bad($kind, concat!("one is ", $prefix, " and 32 hex digits"), text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.to_hex())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(
    /// The id of a run, `run_…`; over HTTP the same id is a response id, `resp_…`.
    ///
    /// ```
    /// use throughline_store::RunId;
    ///
    /// let run = RunId::from_bytes([7; 16]);
    /// let response = run.to_string().replace("run_", "resp_");
    /// assert_eq!(response.parse(), Ok(run));
    /// ```
    RunId, "run id", "run_", "resp_"
);
id!(
    /// The id of an approval, `appr_…`.
    ApprovalId, "approval id", "appr_",
);
id!(
    /// The id of a process that holds leases.
    OwnerId, "owner id", "own_",
);

impl RunId {
    /// Append its hex digits.
    pub(crate) fn push_hex(&self, out: &mut String) {
        push_hex(out, &self.0);
    }

    /// The id with these hex digits.
    pub(crate) fn from_hex(digits: &str) -> Option<Self> {
        from_hex(digits).map(Self)
    }
}

/// The name of a node: the run whose items it holds and the step that published it. The run alone
/// names its last node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// Whose items it holds.
    pub run: RunId,
    /// The step that published it.
    pub step: u32,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node_{}_{}", self.run.to_hex(), self.step)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for NodeId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let read = || {
            let (run, step) = text.strip_prefix("node_")?.split_once('_')?;
            let number: u32 = step.parse().ok()?;
            // "01" and "+1" would be second spellings.
            (number.to_string() == step).then_some(())?;
            Some(Self {
                run: RunId(from_hex(run)?),
                step: number,
            })
        };
        read().ok_or_else(|| {
            bad(
                "node id",
                "one is node_, 32 hex digits, _ and the number of a step",
                text,
            )
        })
    }
}

/// The number of an item in its run, from 1.
pub type ItemNo = u32;

/// The place of an item along its branch, from 1. Never reused, never renumbered.
pub type Position = u64;

/// The place of an item in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemRef {
    /// Its run.
    pub run: RunId,
    /// Its number there.
    pub no: ItemNo,
}

impl ItemRef {
    /// The id that the message at this place has if it brought none of its own.
    pub fn message_id(&self) -> MessageId {
        let mut text = String::with_capacity(48);
        text.push_str("msg_");
        self.run.push_hex(&mut text);
        write!(text, "{}", self.no).expect("a string takes every number");
        MessageId::new(&text).expect("letters and digits, far below the limit")
    }

    /// The place that a message id names, if it is one of ours.
    ///
    /// ```
    /// use throughline_store::{ItemRef, RunId};
    ///
    /// let place = ItemRef { run: RunId::from_bytes([7; 16]), no: 12 };
    /// assert_eq!(ItemRef::of_message(&place.message_id()), Some(place));
    /// ```
    pub fn of_message(id: &MessageId) -> Option<Self> {
        let rest = id.as_str().strip_prefix("msg_")?;
        let (run, no) = rest.split_at_checked(32)?;
        // A second spelling would be a second name.
        let first = *no.as_bytes().first()?;
        if !first.is_ascii_digit() || (first == b'0' && no.len() > 1) {
            return None;
        }
        Some(Self {
            run: RunId::from_hex(run)?,
            no: no.parse().ok()?,
        })
    }
}

/// A node by its own name, or the last node of a run by the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeRef {
    /// The last published node of a run; a response id is that.
    Run(RunId),
    /// A node.
    Node(NodeId),
}

impl NodeRef {
    /// The run whose items the node holds.
    pub fn run(&self) -> RunId {
        match self {
            Self::Run(run) => *run,
            Self::Node(node) => node.run,
        }
    }
}

/// The place of a tool call: run, step, and position among the calls of the step, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallRef {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// The position.
    pub position: u32,
}

/// Counts the moves of a thread's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version(pub u64);
