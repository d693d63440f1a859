//! The state of a server, and its answer to one request.

use serde_json::Value;
use throughline_model::Wire;
use throughline_wire::validate::Profile;
use throughline_wire::{Losses, codec};

use super::counted::counted;
use super::fault::{Extent, Fault};
use super::frames;
use super::http::{Act, Head, Incoming};
use super::inflict::{self, PreparedResponse, Shape, To};
use super::memory::Memory;
use super::recorded::{Recorded, Verdict};
use super::reply::{Part, PlainReply, Raw, Reply, ReplyId, Script, What};
use super::stored::{Operation, Storage};
use super::strict::{self, Accepted};
use super::vendor::{self, Refusal};
use super::vendor_body;
use super::window::Window;
use crate::scripted::Reading;

/// How many requests are recorded; more are only counted.
const KEPT: usize = 10_000;

/// How many bodies are kept with a context window.
const FULL: usize = 8;

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were made.
    pub connections: usize,
    /// Requests that came.
    pub requests: usize,
    /// Requests for an answer of the model: all but those about stored answers.
    pub model_calls: usize,
    /// Requests that were refused in the vendor's form.
    pub refused: usize,
    /// Requests that were answered with a fault.
    pub faults: usize,
}

pub(super) struct ServerState {
    pub(super) profile: Profile,
    pub(super) script: Script,
    pub(super) memory: Memory,
    pub(super) fault: Option<(Fault, Extent)>,
    pub(super) recorded: Vec<Recorded>,
    pub(super) counts: Counts,
    pub(super) origin: String,
    /// The context window, if there is one.
    pub(super) window: Option<Window>,
    pub(super) storage: Storage,
    pub(super) numbered_after: usize,
}

impl ServerState {
    /// Records a request and decides the actions on its connection.
    pub(super) fn answer(&mut self, request: &Incoming, connection: usize) -> Vec<Act> {
        self.counts.requests += 1;
        let number = self.numbered_after + self.counts.requests;
        let wire = self.profile.wire.clone();
        let origin = self.origin.clone();
        let to = To {
            wire: &wire,
            number,
            origin: &origin,
        };
        let mut recorded = Recorded::of(&wire, request, number, connection);
        if let Some(operation) = Operation::of(&wire, request) {
            let acts = self.about_stored(&to, request, &operation, &mut recorded);
            return self.record(recorded, acts);
        }
        if let Some(counted) = counted(&self.profile, &self.memory, request) {
            let acts = self.about_tokens(&to, counted, &mut recorded);
            return self.record(recorded, acts);
        }
        self.counts.model_calls += 1;
        let mut judged = strict::judge(&self.profile, &self.memory, request);
        if let (Ok(accepted), Some(window)) = (&mut judged, &mut self.window) {
            match window.take(&wire, &request.body) {
                Ok(tokens) => accepted.tokens = Some(tokens),
                Err(refusal) => judged = Err(refusal),
            }
        }
        let acts = match judged {
            Err(refusal) => {
                recorded.verdict = Verdict::Refused(refusal.status, refusal.message.clone());
                self.counts.refused += 1;
                inflict::refusal(&to, &refusal)
            }
            Ok(accepted) => {
                recorded.verdict = Verdict::Accepted(accepted.reading);
                self.accepted(&to, &accepted, &mut recorded)
            }
        };
        self.record(recorded, acts)
    }

    /// Records a request, and returns the actions on its connection.
    fn record(&mut self, recorded: Recorded, acts: Vec<Act>) -> Vec<Act> {
        self.counts.faults += usize::from(recorded.fault.is_some());
        if self.recorded.len() < KEPT {
            self.recorded.push(recorded);
        }
        let full = self.recorded.len().checked_sub(FULL);
        if let (Some(old), true) = (full, self.window.is_some()) {
            // Bodies that fill context windows would exhaust the memory.
            self.recorded[old].body = Value::Null;
        }
        acts
    }

    /// Answers a request about what is stored.
    fn about_stored(
        &mut self,
        to: &To<'_>,
        request: &Incoming,
        operation: &Operation,
        recorded: &mut Recorded,
    ) -> Vec<Act> {
        let deletes = matches!(operation, Operation::Delete(_));
        let found = match vendor::check_key(to.wire, request) {
            Err(refusal) => Err(refusal),
            Ok(()) if deletes && !self.storage.deletes => {
                let message = format!("Not allowed to DELETE on {}.", request.target);
                Err(Refusal::new(to.wire, 405, message))
            }
            Ok(()) => {
                recorded.fault = self.next_fault();
                // A deletion that is answered with an error status has deleted nothing.
                if let Some(fault) = recorded.fault.filter(|fault| fault.is_error_status()) {
                    return inflict::error_status(to, fault);
                }
                let body = self.memory.perform(to.wire, self.storage, operation);
                body.ok_or_else(|| strict::not_stored(to.wire, operation.subject()))
            }
        };
        let body = match found {
            Ok(body) => body.to_string().into_bytes(),
            Err(refusal) => {
                recorded.verdict = Verdict::Refused(refusal.status, refusal.message.clone());
                self.counts.refused += 1;
                return inflict::refusal(to, &refusal);
            }
        };
        let answer = PreparedResponse {
            head: vendor::head(to.wire, 200, to.number),
            shape: Shape::Whole(body),
        };
        match recorded.fault {
            Some(fault) => inflict::faulty(to, fault, &answer),
            None => inflict::plain(to, &answer),
        }
    }

    /// Answers a request for the number of tokens.
    fn about_tokens(
        &mut self,
        to: &To<'_>,
        counted: Result<Value, Refusal>,
        recorded: &mut Recorded,
    ) -> Vec<Act> {
        recorded.fault = self.next_fault();
        if let Some(fault) = recorded.fault.filter(|fault| fault.is_error_status()) {
            return inflict::error_status(to, fault);
        }
        let body = match counted {
            Ok(body) => body.to_string().into_bytes(),
            Err(refusal) => {
                recorded.verdict = Verdict::Refused(refusal.status, refusal.message.clone());
                self.counts.refused += 1;
                return inflict::refusal(to, &refusal);
            }
        };
        let answer = PreparedResponse {
            head: vendor::head(to.wire, 200, to.number),
            shape: Shape::Whole(body),
        };
        match recorded.fault {
            Some(fault) => inflict::faulty(to, fault, &answer),
            None => inflict::plain(to, &answer),
        }
    }

    fn accepted(&mut self, to: &To<'_>, accepted: &Accepted, recorded: &mut Recorded) -> Vec<Act> {
        let inflicted = self.next_fault();
        let Some(reply) = self.script.next(recorded, inflicted.is_some()) else {
            let message = "the script of this server has no more answers";
            recorded.verdict = Verdict::Refused(501, message.into());
            return inflict::refusal(to, &Refusal::new(to.wire, 501, message));
        };
        let fault = inflicted.or(reply.fault);
        recorded.fault = fault;
        let gate = reply.gate.clone();
        let detached = reply.detached;
        let Some(answer) = self.prepared(to, accepted, reply, fault) else {
            let message = "this vendor cannot say what the script says";
            recorded.verdict = Verdict::Refused(501, message.into());
            return inflict::refusal(to, &Refusal::new(to.wire, 501, message));
        };
        let mut acts = match fault {
            Some(fault) => inflict::faulty(to, fault, &answer),
            None if detached => inflict::detached(to, &answer),
            None => inflict::plain(to, &answer),
        };
        if let Some(gate) = gate {
            let place = match answer.shape {
                Shape::Whole(_) => 0,
                Shape::Streamed(_) => acts.len() / 2,
            };
            acts.insert(place, Act::Wait(gate));
        }
        acts
    }

    /// The fault for this request, if one is active.
    fn next_fault(&mut self) -> Option<Fault> {
        let (fault, extent) = self.fault?;
        self.fault = match extent {
            Extent::Always => self.fault,
            Extent::Times(0 | 1) => None,
            Extent::Times(more) => Some((fault, Extent::Times(more - 1))),
        };
        (extent != Extent::Times(0)).then_some(fault)
    }

    fn prepared(
        &mut self,
        to: &To<'_>,
        accepted: &Accepted,
        reply: Reply,
        fault: Option<Fault>,
    ) -> Option<PreparedResponse> {
        let stored = strict::stores(to.wire, &accepted.body);
        let body = match reply.what {
            What::Raw(raw) => return Some(raw_answer(raw)),
            What::Response(response) => {
                codec(to.wire)?.encode_response(&response, &mut Losses::default())
            }
            What::Plain(mut said) => {
                if fault == Some(Fault::BrokenCall) {
                    break_call(&mut said);
                }
                if let Some(tokens) = accepted.tokens {
                    let made = said.usage.map_or(7, |(_, made)| made);
                    said.usage = Some((tokens, made));
                }
                let asked = vendor_body::RequestContext {
                    model: &accepted.model,
                    body: &accepted.body,
                    number: to.number,
                    stored,
                };
                vendor_body::body(to.wire, &asked, &said).to_string()
            }
        };
        self.memory.issue(&body);
        if stored {
            let value: Value = serde_json::from_str(&body).ok()?;
            self.memory
                .keep(to.wire, &accepted.body, &value, &reply.fate);
        }
        let mut head = vendor::head(to.wire, 200, to.number);
        let shape = match accepted.reading {
            Reading::Whole => Shape::Whole(body.into_bytes()),
            Reading::Streamed => {
                head = head.with("content-type", event_stream(to.wire));
                let mut frames = frames::frames(to.wire, &accepted.body, &body)?;
                if fault == Some(Fault::BrokenCall) && *to.wire == Wire::Anthropic {
                    frames::break_input(&mut frames);
                }
                Shape::Streamed(frames)
            }
        };
        Some(PreparedResponse { head, shape })
    }
}

fn event_stream(wire: &Wire) -> &'static str {
    match wire {
        Wire::Gemini => "text/event-stream",
        _ => "text/event-stream; charset=utf-8",
    }
}

fn raw_answer(raw: Raw) -> PreparedResponse {
    PreparedResponse {
        head: Head {
            status: raw.status,
            headers: raw.headers,
        },
        shape: Shape::Whole(raw.body),
    }
}

/// Cuts an answer off inside of its last call, which is added if there is none.
fn break_call(said: &mut PlainReply) {
    said.cut_off = true;
    let broken = r#"{"port": "Bre"#.to_owned();
    for part in said.parts.iter_mut().rev() {
        if let Part::Call { arguments, .. } = part {
            *arguments = broken;
            return;
        }
    }
    said.parts.push(Part::Call {
        id: ReplyId::Fresh,
        name: "tide".into(),
        arguments: broken,
    });
}
