//! Names of things. Each kind has a type of its own and a prefix, so that none is taken for another.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Clock;

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

/// For how many ids randomness is asked for at once.
const AT_ONCE: usize = 32;

/// Makes ids: time-ordered, so that their indexes grow at one edge.
#[derive(Debug)]
pub struct Ids {
    clock: Arc<dyn Clock>,
    last: Mutex<u64>,
    /// Randomness that was not used yet: asking the system for each id costs more than the id.
    random: Mutex<Vec<[u8; 8]>>,
    /// Where randomness comes from, if not from the operating system.
    #[cfg(feature = "conformance")]
    seed: Option<Mutex<u64>>,
}

impl Ids {
    /// Ids from a clock and the operating system's randomness.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            last: Mutex::new(0),
            random: Mutex::default(),
            #[cfg(feature = "conformance")]
            seed: None,
        }
    }

    /// The same ids for the same seed and clock, for simulations. Never for what is kept: two
    /// stores with one seed make the same ids.
    #[cfg(feature = "conformance")]
    pub fn seeded(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self {
            seed: Some(Mutex::new(seed)),
            ..Self::new(clock)
        }
    }

    fn random(&self) -> [u8; 8] {
        #[cfg(feature = "conformance")]
        if let Some(seed) = &self.seed {
            let mut seed = seed.lock().unwrap_or_else(PoisonError::into_inner);
            *seed = seed.wrapping_add(1);
            let hash = blake3::hash(&seed.to_le_bytes());
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&hash.as_bytes()[..8]);
            return bytes;
        }
        let mut left = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = left.pop() {
            return bytes;
        }
        let mut fresh = [0; 8 * AT_ONCE];
        // Without randomness ids could repeat between processes; there is nothing sound to go on with.
        getrandom::fill(&mut fresh).expect("the operating system gives random bytes");
        let (pieces, _) = fresh.as_chunks::<8>();
        left.extend_from_slice(&pieces[1..]);
        pieces[0]
    }

    /// A UUID version 7 whose first 60 bits never go back in this process.
    fn next(&self) -> [u8; 16] {
        let mut bytes = [0u8; 16];
        bytes[8..].copy_from_slice(&self.random());
        let ticks = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            // Twelve bits below the millisecond count within it.
            *last = (*last + 1).max(self.clock.now() << 12);
            *last
        };
        bytes[..6].copy_from_slice(&(ticks >> 12).to_be_bytes()[2..]);
        let low = ticks.to_be_bytes();
        bytes[6] = 0x70 | (low[6] & 0x0F);
        bytes[7] = low[7];
        bytes[8] = 0x80 | (bytes[8] & 0x3F);
        bytes
    }

    /// A thread.
    pub fn thread(&self) -> ThreadId {
        let mut text = String::from("thr_");
        push_hex(&mut text, &self.next());
        ThreadId(text.into())
    }

    /// A run.
    pub fn run(&self) -> RunId {
        RunId(self.next())
    }

    /// An approval.
    pub fn approval(&self) -> ApprovalId {
        ApprovalId(self.next())
    }

    /// A process.
    pub fn owner(&self) -> OwnerId {
        OwnerId(self.next())
    }
}
