//! The stored form of an event: a number for its kind, and bytes.
//!
//! Bytes begin with the numbers of the event, seven bits to a byte and low ones first; what is
//! left is the text of a delta as it is, or a value in the model's stored form. A body is never
//! empty: an empty one is what is left of an event whose run was redacted.

#[cfg(test)]
mod tests;

use throughline_compact::{NarrativeOutcome, Report};
use throughline_model::stored::StoredError;
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Message, Path, Place, Runner, ToolCall, json,
};
use throughline_store::{RunId, StoredEvent, ThreadId};

use crate::run::event::RunEvent;
use crate::thread::StopReason;

/// Numbers of kinds. They are stored: one is never changed, nor given to another kind. No kind has 0;
/// the store writes it in the place of events that it cannot read.
mod kind {
    pub(super) const STARTED: u16 = 1;
    pub(super) const ASKED: u16 = 2;
    pub(super) const TEXT: u16 = 3;
    pub(super) const REASONING: u16 = 4;
    pub(super) const CONTENT: u16 = 5;
    pub(super) const DISPATCHED: u16 = 6;
    pub(super) const RESULT: u16 = 7;
    pub(super) const MESSAGE: u16 = 8;
    pub(super) const ENDED: u16 = 9;
    pub(super) const INCOMPLETE: u16 = 10;
    pub(super) const SUMMARY: u16 = 11;
    pub(super) const REFUSAL: u16 = 12;
    pub(super) const COMPACTED: u16 = 13;
    pub(super) const NARRATED: u16 = 14;
}

/// Why a stored event cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEvent {
    /// A newer version wrote it. A reader skips it: the events of known kinds still have everything
    /// that this version knows of a run.
    #[error("no event of kind {kind} is known; a newer version wrote it")]
    Unknown {
        /// The number of its kind.
        kind: u16,
    },
    /// Its content was redacted. A reader skips it.
    #[error("the event of kind {kind} was redacted")]
    Redacted {
        /// The number of its kind.
        kind: u16,
    },
    /// Its bytes are not those of its kind.
    #[error("the event of kind {kind} is damaged: expected {expected}")]
    Damaged {
        /// The number of its kind.
        kind: u16,
        /// What should have stood there.
        expected: &'static str,
    },
    /// The message or content in it cannot be read.
    #[error("what is in the event of kind {kind} cannot be read")]
    Unreadable {
        /// The number of its kind.
        kind: u16,
        /// Why.
        source: StoredError,
    },
}

impl BadEvent {
    /// Whether a reader skips it and goes on.
    pub const fn can_be_skipped(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::Redacted { .. } => true,
            Self::Damaged { .. } | Self::Unreadable { .. } => false,
        }
    }

    /// Whether it is the end of a run that was redacted.
    pub(super) const fn is_redacted_end(&self) -> bool {
        matches!(self, Self::Redacted { kind: kind::ENDED })
    }
}

/// The stored form of an event.
pub(crate) fn encode(event: &RunEvent) -> StoredEvent {
    let mut body = Vec::new();
    let kind = match event {
        RunEvent::Started { run, thread } => {
            body.extend_from_slice(run.as_bytes());
            body.extend_from_slice(thread.as_str().as_bytes());
            kind::STARTED
        }
        RunEvent::Asked { step } => {
            push_number(&mut body, u64::from(*step));
            kind::ASKED
        }
        RunEvent::Compacted { step, report } => {
            push_number(&mut body, u64::from(*step));
            body.extend_from_slice(report.to_json().as_bytes());
            kind::COMPACTED
        }
        RunEvent::Narrated { narrated } => {
            let mut text = String::new();
            narrated.write(&mut text);
            body.extend_from_slice(text.as_bytes());
            kind::NARRATED
        }
        RunEvent::Text { step, at, delta } => {
            push_delta(&mut body, *step, *at, delta);
            kind::TEXT
        }
        RunEvent::Reasoning { step, at, delta } => {
            push_delta(&mut body, *step, *at, delta);
            kind::REASONING
        }
        RunEvent::Refusal { step, at, delta } => {
            push_delta(&mut body, *step, *at, delta);
            kind::REFUSAL
        }
        RunEvent::Summary {
            step,
            at,
            part,
            delta,
        } => {
            push_number(&mut body, u64::from(*part));
            push_delta(&mut body, *step, *at, delta);
            kind::SUMMARY
        }
        RunEvent::Content { step, at, content } => {
            push_number(&mut body, u64::from(*step));
            push_place(&mut body, *at);
            push_content(&mut body, content);
            kind::CONTENT
        }
        RunEvent::Incomplete { step, at } => {
            push_number(&mut body, u64::from(*step));
            push_place(&mut body, *at);
            kind::INCOMPLETE
        }
        RunEvent::Dispatched {
            step,
            position,
            call,
            tool,
        } => {
            push_number(&mut body, u64::from(*step));
            push_number(&mut body, u64::from(*position));
            push_content(&mut body, &named_call(call, tool));
            kind::DISPATCHED
        }
        RunEvent::Result {
            step,
            position,
            result,
        } => {
            push_number(&mut body, u64::from(*step));
            push_number(&mut body, u64::from(*position));
            push_content(&mut body, &Content::new(Body::ToolResult(result.clone())));
            kind::RESULT
        }
        RunEvent::Message(message) => {
            body = message.to_json().into_bytes();
            kind::MESSAGE
        }
        RunEvent::Ended { stop } => {
            body.extend_from_slice(stop.as_str().as_bytes());
            kind::ENDED
        }
    };
    StoredEvent { kind, body }
}

/// Read the stored form. Bytes of any kind are read or refused, and never panic.
pub(crate) fn decode(event: &StoredEvent) -> Result<RunEvent, BadEvent> {
    let mut bytes = Bytes {
        kind: event.kind,
        rest: &event.body,
    };
    let read: fn(&mut Bytes<'_>) -> Result<RunEvent, BadEvent> = match event.kind {
        kind::STARTED => started,
        kind::ASKED => |bytes| {
            let step = bytes.small("the number of a step")?;
            bytes.end()?;
            Ok(RunEvent::Asked { step })
        },
        kind::COMPACTED => |bytes| {
            let step = bytes.small("the number of a step")?;
            let report = Report::from_json(bytes.text()?);
            let report = report.map_err(|source| bytes.unreadable(source))?;
            Ok(RunEvent::Compacted { step, report })
        },
        kind::NARRATED => |bytes| {
            let narrated = NarrativeOutcome::from_json(bytes.text()?);
            let narrated = narrated.map_err(|source| bytes.unreadable(source))?;
            Ok(RunEvent::Narrated { narrated })
        },
        kind::TEXT => |bytes| {
            let (step, at, delta) = bytes.delta()?;
            Ok(RunEvent::Text { step, at, delta })
        },
        kind::REASONING => |bytes| {
            let (step, at, delta) = bytes.delta()?;
            Ok(RunEvent::Reasoning { step, at, delta })
        },
        kind::REFUSAL => |bytes| {
            let (step, at, delta) = bytes.delta()?;
            Ok(RunEvent::Refusal { step, at, delta })
        },
        kind::SUMMARY => |bytes| {
            let part = bytes.small("the number of a part")?;
            let (step, at, delta) = bytes.delta()?;
            Ok(RunEvent::Summary {
                step,
                at,
                part,
                delta,
            })
        },
        kind::CONTENT => |bytes| {
            Ok(RunEvent::Content {
                step: bytes.small("the number of a step")?,
                at: bytes.place()?,
                content: bytes.content()?,
            })
        },
        kind::INCOMPLETE => |bytes| {
            let step = bytes.small("the number of a step")?;
            let at = bytes.place()?;
            bytes.end()?;
            Ok(RunEvent::Incomplete { step, at })
        },
        kind::DISPATCHED => dispatched,
        kind::RESULT => result,
        kind::MESSAGE => |bytes| {
            let read = Message::from_json(bytes.text()?);
            Ok(RunEvent::Message(
                read.map_err(|source| bytes.unreadable(source))?,
            ))
        },
        kind::ENDED => |bytes| {
            let word = bytes.text()?;
            let stop = StopReason::ALL.into_iter().find(|s| s.as_str() == word);
            Ok(RunEvent::Ended {
                stop: stop.ok_or_else(|| bytes.damaged("the word of a stop reason"))?,
            })
        },
        kind => return Err(BadEvent::Unknown { kind }),
    };
    if event.body.is_empty() {
        return Err(BadEvent::Redacted { kind: event.kind });
    }
    read(&mut bytes)
}

fn started(bytes: &mut Bytes<'_>) -> Result<RunEvent, BadEvent> {
    let (run, thread) = bytes
        .rest
        .split_first_chunk::<16>()
        .ok_or_else(|| bytes.damaged("the id of a run"))?;
    let run = RunId::from_bytes(*run);
    bytes.rest = thread;
    let thread = ThreadId::new(bytes.text()?).map_err(|_| bytes.damaged("the id of a thread"))?;
    Ok(RunEvent::Started { run, thread })
}

fn dispatched(bytes: &mut Bytes<'_>) -> Result<RunEvent, BadEvent> {
    let step = bytes.small("the number of a step")?;
    let position = bytes.small("the position of a call")?;
    let Body::ToolCall(ToolCall { call, name, .. }) = bytes.content()?.body else {
        return Err(bytes.damaged("a call"));
    };
    Ok(RunEvent::Dispatched {
        step,
        position,
        call,
        tool: name,
    })
}

fn result(bytes: &mut Bytes<'_>) -> Result<RunEvent, BadEvent> {
    let step = bytes.small("the number of a step")?;
    let position = bytes.small("the position of a call")?;
    let Body::ToolResult(result) = bytes.content()?.body else {
        return Err(bytes.damaged("a result"));
    };
    Ok(RunEvent::Result {
        step,
        position,
        result,
    })
}

/// A call with an id and a name and nothing else, since only the stored form of a call keeps the
/// origin of its id.
fn named_call(call: &CallId, tool: &str) -> Content {
    Content::new(Body::ToolCall(ToolCall {
        call: call.clone(),
        family: Family::FUNCTION,
        name: tool.to_owned(),
        arguments: Arguments::None,
        status: None,
        runner: Runner::Client,
    }))
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | (number & 0x7F) as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_place(out: &mut Vec<u8>, at: Place) {
    for number in [at.choice, at.item, at.part] {
        push_number(out, number as u64);
    }
}

fn push_delta(out: &mut Vec<u8>, step: u32, at: Place, delta: &str) {
    out.reserve(delta.len() + 4);
    push_number(out, u64::from(step));
    push_place(out, at);
    out.extend_from_slice(delta.as_bytes());
}

fn push_content(out: &mut Vec<u8>, content: &Content) {
    let mut text = String::new();
    content.write_json(&mut text);
    out.extend_from_slice(text.as_bytes());
}

/// What is left to read of a body.
struct Bytes<'b> {
    kind: u16,
    rest: &'b [u8],
}

impl<'b> Bytes<'b> {
    fn damaged(&self, expected: &'static str) -> BadEvent {
        BadEvent::Damaged {
            kind: self.kind,
            expected,
        }
    }

    fn unreadable(&self, source: StoredError) -> BadEvent {
        BadEvent::Unreadable {
            kind: self.kind,
            source,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, after) = self.rest.split_first()?;
            self.rest = after;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte has room for one bit.
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self, expected: &'static str) -> Result<u32, BadEvent> {
        let number = self.number().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.damaged(expected))
    }

    fn place(&mut self) -> Result<Place, BadEvent> {
        let mut next = || {
            let number = self
                .number()
                .and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| self.damaged("a place"))
        };
        Ok(Place::new(next()?, next()?, next()?))
    }

    fn text(&self) -> Result<&'b str, BadEvent> {
        std::str::from_utf8(self.rest).map_err(|_| self.damaged("text in UTF-8"))
    }

    fn delta(&mut self) -> Result<(u32, Place, String), BadEvent> {
        let step = self.small("the number of a step")?;
        let at = self.place()?;
        Ok((step, at, self.text()?.to_owned()))
    }

    fn content(&self) -> Result<Content, BadEvent> {
        let value = json::parse(self.text()?).map_err(|error| self.unreadable(error.into()))?;
        Content::from_value(&value, &Path::Root).map_err(|source| self.unreadable(source))
    }

    fn end(&self) -> Result<(), BadEvent> {
        match self.rest {
            [] => Ok(()),
            _ => Err(self.damaged("nothing more")),
        }
    }
}
