//! The notes that are stored with steps and with the end of a run.

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Path, Response, Stop};

use throughline_store::CallRef;
use throughline_wire::Loss;

use super::stop::StopReason;

/// The note of a step: what recovery needs beside the step's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepNote {
    pub(crate) response: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) finish: Option<Stop>,
    /// The id under which the service stores the conversation after this call.
    pub(crate) service: Option<String>,
    /// The upstream of that service.
    pub(crate) upstream: Option<String>,
    /// The stop reason, if the run ends with this step.
    pub(crate) end: Option<StopReason>,
    /// Calls of an earlier run that this step took over, by position. Such a step has no messages.
    pub(crate) taken: Vec<CallRef>,
    /// What the service could not be sent in this call.
    pub(crate) losses: Vec<Loss>,
}

const FINISHES: [Stop; 6] = [
    Stop::Done,
    Stop::ToolCalls,
    Stop::Length,
    Stop::ContentFilter,
    Stop::Refusal,
    Stop::Paused,
];

fn word(stop: &Stop) -> &str {
    match stop {
        Stop::Done => "done",
        Stop::ToolCalls => "tool_calls",
        Stop::Length => "length",
        Stop::ContentFilter => "content_filter",
        Stop::Refusal => "refusal",
        Stop::Paused => "paused",
        Stop::Cancelled => "cancelled",
        Stop::Failed => "failed",
        Stop::InProgress => "in_progress",
        Stop::Cut => "cut",
        Stop::Other(word) => word,
    }
}

fn finish(word: String) -> Stop {
    let known = FINISHES.iter().find(|known| self::word(known) == word);
    known.cloned().unwrap_or_else(|| Stop::Other(word.into()))
}

/// The text form of a call's position.
fn place(call: &CallRef) -> String {
    format!("{}:{}:{}", call.run, call.step, call.position)
}

fn placed(word: &str) -> Option<CallRef> {
    let mut parts = word.split(':');
    Some(CallRef {
        run: parts.next()?.parse().ok()?,
        step: parts.next()?.parse().ok()?,
        position: parts.next()?.parse().ok()?,
    })
}

impl StepNote {
    pub(crate) fn of(response: &Response, upstream: &str) -> Self {
        let service = response.service.clone();
        Self {
            response: response.id.clone(),
            model: response.model.clone(),
            finish: Some(response.stop.clone()),
            upstream: service.is_some().then(|| upstream.to_owned()),
            service,
            end: None,
            taken: Vec::new(),
            losses: Vec::new(),
        }
    }

    pub(crate) fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            let mut text = |key: &str, text: Option<&str>| {
                if let Some(text) = text {
                    object.str(key, text);
                }
            };
            text("response", self.response.as_deref());
            text("model", self.model.as_deref());
            text("finish", self.finish.as_ref().map(word));
            text("service", self.service.as_deref());
            text("upstream", self.upstream.as_deref());
            text("end", self.end.map(StopReason::as_str));
            let taken = self.taken.iter().map(place).collect::<Vec<_>>().join(" ");
            text("taken", (!taken.is_empty()).then_some(&taken));
            write_losses(object, &self.losses);
        })
    }

    pub(crate) fn read(note: Option<&RawJson>) -> Result<Self, StoredError> {
        let Some(note) = note else {
            return Ok(Self::default());
        };
        let value = json::parse(note.get())?;
        let root = Path::Root;
        let mut fields = Fields::of(&value, &root)?;
        Ok(Self {
            response: fields.str("response")?,
            model: fields.str("model")?,
            finish: fields.str("finish")?.map(finish),
            service: fields.str("service")?,
            upstream: fields.str("upstream")?,
            end: fields.str("end")?.and_then(|word| StopReason::named(&word)),
            taken: match fields.str("taken")? {
                Some(places) => places.split(' ').filter_map(placed).collect(),
                None => Vec::new(),
            },
            losses: read_losses(&value),
        })
    }
}

fn write_losses(object: &mut ObjectWriter<'_>, losses: &[Loss]) {
    if losses.is_empty() {
        return;
    }
    let mut list = ArrayWriter::new(object.key("losses"));
    for loss in losses {
        loss.write_json(list.slot());
    }
    list.end();
}

/// The losses of a note. Kinds that this version does not know are skipped.
fn read_losses(note: &Value<'_>) -> Vec<Loss> {
    let list = note.get("losses").and_then(Value::as_array);
    list.unwrap_or_default()
        .iter()
        .filter_map(Loss::read_json)
        .collect()
}

/// The note of the end of a run.
pub(crate) struct EndNote<'a> {
    pub(crate) stop: StopReason,
    pub(crate) finish: Option<&'a Stop>,
    pub(crate) tokens: u64,
    /// The kind of the error, and its text.
    pub(crate) error: Option<(&'static str, String)>,
    /// Whether the run was cancelled because its future was dropped, and not on request.
    pub(crate) abandoned: bool,
    /// What services could not be sent in the calls of the run.
    pub(crate) losses: &'a [Loss],
    /// The upstream and the id under which a service stores the conversation after the last answer,
    /// if no step has it.
    pub(crate) service: Option<(&'a str, &'a str)>,
}

impl EndNote<'_> {
    pub(crate) fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.str("stop", self.stop.as_str());
            if let Some(finish) = self.finish {
                object.str("finish", word(finish));
            }
            if self.tokens > 0 {
                object.number("tokens", self.tokens);
            }
            if let Some((kind, error)) = &self.error {
                object.str("kind", kind).str("error", error);
            }
            if self.abandoned {
                object.str("cause", "abandoned");
            }
            if let Some((upstream, id)) = self.service {
                object.str("service", id).str("upstream", upstream);
            }
            write_losses(object, self.losses);
        })
    }
}

/// The stop reason of a run and of its last answer, from the note of its end.
pub(crate) fn ended(note: Option<&RawJson>) -> (Option<StopReason>, Option<Stop>) {
    let stop = word_of(note, "stop");
    let last = word_of(note, "finish");
    (
        stop.and_then(|word| StopReason::named(&word)),
        last.map(finish),
    )
}

/// The stop reason of the last answer, and the kind and text of the error, from the note of a run's
/// end.
pub(crate) fn end_of(note: Option<&RawJson>) -> (Option<Stop>, Option<(String, String)>) {
    let error = word_of(note, "error").map(|error| {
        let kind = word_of(note, "kind");
        (kind.unwrap_or_else(|| "run".to_owned()), error)
    });
    (word_of(note, "finish").map(finish), error)
}

/// A string member of a note; `None` if the note cannot be read.
fn word_of(note: Option<&RawJson>, key: &str) -> Option<String> {
    let value = json::parse(note?.get()).ok()?;
    let root = Path::Root;
    let mut fields = Fields::of(&value, &root).ok()?;
    fields.str(key).ok().flatten()
}

/// What services could not be sent in the calls of a run, from the note of its end.
pub(crate) fn losses_of(note: Option<&RawJson>) -> Vec<Loss> {
    let value = note.and_then(|note| json::parse(note.get()).ok());
    value.as_ref().map(read_losses).unwrap_or_default()
}

/// The upstream and the id under which a service stores the conversation, from the note of a step or
/// of the end of a run.
pub(crate) fn service_of(note: Option<&RawJson>) -> Option<(String, String)> {
    Some((word_of(note, "upstream")?, word_of(note, "service")?))
}
