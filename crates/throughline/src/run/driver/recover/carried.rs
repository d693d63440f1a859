//! What is stored with the request of a run beside its options: what the failed runs that it
//! continues have used of its limits, and input that follows the results of calls that it takes over.

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Message, Path, ToolCall};
use throughline_store::{CallState, Entry, Journal};

use super::restore::{JournalIndex, closed_without_arguments, deleted_call, recorded_answer};
use crate::run::driver::start::Plan;
use crate::run::machine::{Recorded, Spent, Turn, Verdict};
use crate::thread::StopReason;
use crate::thread::journal::Calls;
use crate::thread::journal::StepNote;

/// Stored with the request of a run, for a worker that resumes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) spent: Spent,
    /// Messages that are added with its first model call.
    pub(crate) later: Vec<Message>,
}

impl Carried {
    /// Add this to the stored request.
    pub(crate) fn into_request(self, request: RawJson) -> RawJson {
        if self == Self::default() {
            return request;
        }
        RawJson::object(|object| {
            object.members_of(request.get());
            if self.spent != Spent::default() {
                write_spent(ObjectWriter::new(object.key("spent")), &self.spent);
            }
            if !self.later.is_empty() {
                let mut list = ArrayWriter::new(object.key("later"));
                for message in &self.later {
                    list.raw(&message.to_json());
                }
                list.end();
            }
        })
    }

    pub(crate) fn read(request: Option<&RawJson>) -> Result<Self, StoredError> {
        let Some(request) = request else {
            return Ok(Self::default());
        };
        let value = json::parse(request.get())?;
        let root = Path::Root;
        let mut fields = Fields::of(&value, &root)?;
        let spent = match fields.get("spent") {
            Some(value) => read_spent(value, &root.key("spent"))?,
            None => Spent::default(),
        };
        let later = match fields.get("later") {
            Some(_) => fields.list("later", Message::from_value)?,
            None => Vec::new(),
        };
        Ok(Self { spent, later })
    }
}

fn write_spent(mut object: ObjectWriter<'_>, spent: &Spent) {
    object
        .number("rounds", u64::from(spent.rounds))
        .number("failed_rounds", u64::from(spent.failed_rounds))
        .number("calls", u64::from(spent.calls))
        .number("tokens", spent.tokens)
        .number("ms", spent.ms);
    if let Some(closing) = spent.closing {
        object.str("closing", closing.as_str());
    }
    object.end();
}

fn read_spent(value: &json::Value<'_>, path: &Path<'_>) -> Result<Spent, StoredError> {
    let mut fields = Fields::of(value, path)?;
    let mut count = |key: &str| Ok::<_, StoredError>(fields.number(key)?.unwrap_or(0));
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let (rounds, failed, calls) = (count("rounds")?, count("failed_rounds")?, count("calls")?);
    let (tokens, ms) = (count("tokens")?, count("ms")?);
    Ok(Spent {
        rounds: small(rounds),
        failed_rounds: small(failed),
        calls: small(calls),
        tokens,
        ms,
        closing: fields
            .str("closing")?
            .and_then(|word| StopReason::named(&word)),
    })
}

/// What the run of a journal has used of its limits. Its open calls count as closed in the way the
/// next run closes them.
pub(crate) fn spent_by(
    journal: &Journal,
    calls: &Calls<'_>,
    plan: &Plan,
) -> Result<Spent, StoredError> {
    let before = Carried::read(journal.request.as_ref())?.spent;
    let mut turn = Turn::new(journal.run.id, plan.limits.clone(), plan.calling);
    turn.charge(&before);
    turn.start_after(journal.inputs as usize);
    let index = JournalIndex::new(journal);
    for step in &journal.steps {
        let note = StepNote::read(step.note.as_ref())?;
        let executions = index.calls(step.no);
        let mut position = 0;
        let mut judge = |_: &ToolCall| {
            let execution = executions.get(position);
            position += 1;
            match execution {
                Some(execution) if execution.state == CallState::Done => {
                    index.result(execution).unwrap_or(Verdict::Outside)
                }
                Some(execution) => closed_without_arguments(execution),
                None => Verdict::Outside,
            }
        };
        if note.taken.is_empty() {
            let entries: Vec<&Entry> = index.entries(step).collect();
            turn.replay(Recorded {
                delivered: Vec::new(),
                response: recorded_answer(&entries, &note),
                judge: &mut judge,
            });
        } else {
            let taken = executions.iter().map(|execution| {
                let call = calls.at(execution.at);
                call.unwrap_or_else(|| deleted_call(execution))
            });
            let taken = taken.collect();
            turn.take(taken, &mut judge);
        }
    }
    Ok(Spent {
        ms: before.ms.saturating_add(journal.run.worked),
        ..turn.spent()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_comes_back_and_leaves_the_request_as_it_was() {
        let carried = Carried {
            spent: Spent {
                rounds: 3,
                failed_rounds: 1,
                calls: 7,
                tokens: 10_400,
                ms: 5_000,
                closing: Some(StopReason::ErrorLimit),
            },
            later: vec![Message::user("more")],
        };
        let request = RawJson::new(r#"{"v":1,"host":{"a":[1.50]}}"#).unwrap();
        let kept = carried.clone().into_request(request.clone());
        assert_eq!(Carried::read(Some(&kept)).unwrap(), carried);
        assert!(kept.get().starts_with(request.get().trim_end_matches('}')));
        assert_eq!(Carried::default().into_request(request.clone()), request);
    }
}
