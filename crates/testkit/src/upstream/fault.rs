//! Faults between a client and a vendor, and their required outcomes.

use std::fmt;

use throughline::client::{ErrorKind, TimeoutPhase};
use throughline_model::Wire;

use crate::scripted::Reading;

/// A fault of a model call. `docs/faults.md` describes each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "described by `Fault::about`, which a test compares with the docs"
)]
pub enum Fault {
    Refused,
    Reset,
    Silent,
    CutInHead,
    Stalls,
    Drip,
    CutBetweenEvents,
    CutInCharacter,
    NoEndMark,
    ErrorInAnswer,
    InvalidRequest,
    Unauthorised,
    NoSuchModel,
    RateLimited,
    OutOfQuota,
    ServerError,
    BadGateway,
    Overloaded,
    WrongContentType,
    NotJson,
    NotUtf8,
    UnknownEvents,
    AfterTheEnd,
    Oversized,
    Empty,
    Redirect,
    BrokenCall,
    NoUsage,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// For a number of requests.
    Times(usize),
    /// Until the server is healed.
    Always,
}

/// The required outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The complete answer.
    Success,
    /// An error of one of these kinds, and no answer.
    Error(&'static [ErrorKind]),
    /// The complete answer, after another attempt.
    RetriedThenSuccess,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("answer"),
            Self::RetriedThenSuccess => f.write_str("retried, then answer"),
            Self::Error(kinds) => {
                for (place, kind) in kinds.iter().enumerate() {
                    let between = if place == 0 { "" } else { " or " };
                    write!(f, "{between}{}", kind.as_str())?;
                }
                Ok(())
            }
        }
    }
}

const FIRST_BYTE: ErrorKind = ErrorKind::Timeout(TimeoutPhase::FirstByte);
const IDLE: ErrorKind = ErrorKind::Timeout(TimeoutPhase::Idle);

impl Fault {
    /// Whether the vendor answers with an error status in its own form.
    pub(super) fn is_error_status(self) -> bool {
        matches!(
            self,
            Self::InvalidRequest
                | Self::Unauthorised
                | Self::NoSuchModel
                | Self::RateLimited
                | Self::OutOfQuota
                | Self::ServerError
                | Self::Overloaded
        )
    }

    /// All faults.
    pub const ALL: [Self; 28] = [
        Self::Refused,
        Self::Reset,
        Self::Silent,
        Self::CutInHead,
        Self::Stalls,
        Self::Drip,
        Self::CutBetweenEvents,
        Self::CutInCharacter,
        Self::NoEndMark,
        Self::ErrorInAnswer,
        Self::InvalidRequest,
        Self::Unauthorised,
        Self::NoSuchModel,
        Self::RateLimited,
        Self::OutOfQuota,
        Self::ServerError,
        Self::BadGateway,
        Self::Overloaded,
        Self::WrongContentType,
        Self::NotJson,
        Self::NotUtf8,
        Self::UnknownEvents,
        Self::AfterTheEnd,
        Self::Oversized,
        Self::Empty,
        Self::Redirect,
        Self::BrokenCall,
        Self::NoUsage,
    ];

    /// The stable name, and a description in one line.
    pub fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Refused => ("refused", "no process listens at the address"),
            Self::Reset => (
                "reset",
                "the connection is reset when the request has been read",
            ),
            Self::Silent => ("silent", "the request is read and never answered"),
            Self::CutInHead => (
                "cut_in_head",
                "the connection ends in the middle of the head",
            ),
            Self::Stalls => ("stalls", "half of the body comes, then nothing more"),
            Self::Drip => ("drip", "the whole answer comes one byte at a time"),
            Self::CutBetweenEvents => (
                "cut_between_events",
                "the connection ends between two events, or short of the announced length",
            ),
            Self::CutInCharacter => (
                "cut_in_character",
                "the connection ends in an event, in the middle of a character",
            ),
            Self::NoEndMark => (
                "no_end_mark",
                "the body ends properly, but the vendor's end mark or the end of the JSON is missing",
            ),
            Self::ErrorInAnswer => (
                "error_in_answer",
                "status 200, then an error: as the body, or as an event after some text",
            ),
            Self::InvalidRequest => (
                "invalid_request",
                "400, the vendor does not like the request",
            ),
            Self::Unauthorised => ("unauthorised", "401, the vendor does not know the key"),
            Self::NoSuchModel => ("no_such_model", "404, the vendor has no such model"),
            Self::RateLimited => ("rate_limited", "429 and when to come back"),
            Self::OutOfQuota => ("out_of_quota", "the money or the quota is used up"),
            Self::ServerError => ("server_error", "500 with the vendor's error"),
            Self::BadGateway => (
                "bad_gateway",
                "502 with a page of HTML from something between",
            ),
            Self::Overloaded => ("overloaded", "529 or 503, the vendor has too much to do"),
            Self::WrongContentType => ("wrong_content_type", "status 200 and a page of HTML"),
            Self::NotJson => ("not_json", "the body, or one of its events, is not JSON"),
            Self::NotUtf8 => ("not_utf8", "a byte in the text is not UTF-8"),
            Self::UnknownEvents => (
                "unknown_events",
                "unknown members, events and comments stand between the others",
            ),
            Self::AfterTheEnd => (
                "after_the_end",
                "a second end mark and garbage follow the end; garbage follows the body",
            ),
            Self::Oversized => ("oversized", "the body, or one event, does not end"),
            Self::Empty => ("empty", "status 200 and an empty body"),
            Self::Redirect => (
                "redirect",
                "307 to another address, with the key to take along",
            ),
            Self::BrokenCall => (
                "broken_call",
                "the limit of tokens ends the answer inside a call",
            ),
            Self::NoUsage => ("no_usage", "the vendor reports no tokens"),
        }
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// The fault with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// The required outcome of one attempt.
    pub fn expected(self, wire: &Wire, reading: Reading) -> Expected {
        use ErrorKind as Kind;
        // Streams of this format have no end mark: all bytes are part of the answer.
        let endless = *wire == Wire::Gemini && reading == Reading::Streamed;
        Expected::Error(match (self, reading) {
            (Self::AfterTheEnd, _) if endless => &[Kind::Malformed],
            (Self::Refused, _) => &[Kind::Connect],
            (Self::Reset | Self::CutInHead | Self::CutBetweenEvents | Self::CutInCharacter, _) => {
                &[Kind::Cut]
            }
            (Self::Silent, _) => &[FIRST_BYTE],
            (Self::Stalls, _) => &[IDLE],
            (Self::NoEndMark | Self::Empty, _) => &[Kind::Cut],
            (Self::InvalidRequest, _) => &[Kind::Invalid],
            (Self::Unauthorised, _) => &[Kind::Auth],
            (Self::NoSuchModel, _) => &[Kind::NotFound],
            (Self::RateLimited, _) => &[Kind::RateLimited],
            (Self::OutOfQuota, _) => &[Kind::Quota],
            (Self::ErrorInAnswer | Self::ServerError | Self::BadGateway | Self::Overloaded, _) => {
                &[Kind::Unavailable]
            }
            (Self::WrongContentType | Self::NotJson | Self::NotUtf8, _)
            | (Self::AfterTheEnd, Reading::Whole) => &[Kind::Malformed],
            (Self::Oversized, _) => &[Kind::TooLarge],
            (Self::Redirect, _) => &[Kind::Setup],
            (Self::AfterTheEnd, Reading::Streamed)
            | (Self::Drip | Self::UnknownEvents | Self::BrokenCall | Self::NoUsage, _) => {
                return Expected::Success;
            }
        })
    }

    /// The required outcome for a client with retries, if the fault is gone at the second attempt.
    ///
    /// A fault after the first words of a stream is final, because those were returned.
    pub fn expected_with_retries(self, wire: &Wire, reading: Reading) -> Expected {
        let once = self.expected(wire, reading);
        let Expected::Error(kinds) = once else {
            return once;
        };
        let late = matches!(
            self,
            Self::Stalls
                | Self::CutBetweenEvents
                | Self::CutInCharacter
                | Self::NoEndMark
                | Self::ErrorInAnswer
        ) && reading == Reading::Streamed;
        match kinds.iter().all(|kind| kind.is_transient()) && !late {
            true => Expected::RetriedThenSuccess,
            false => once,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
