//! The calls of a run, found by their position in its journal.
//!
//! Call ids repeat: models restart their numbering in each turn, and one response may use an id
//! twice. Therefore the position of a call (run, step and index) is the only key for its execution,
//! its approval and its result; no lookup uses an id.

use throughline_model::{Content, Message, Source};
use throughline_store::{CallRef, Error, Execution, Journal, Result, RunId, StepRecord};

use super::note::StepNote;
use super::open::{OpenCall, open_calls};
use crate::thread::ScopedStore;

/// The calls of a run, and of the runs from which it took calls over.
pub(crate) struct Calls<'j> {
    journal: &'j Journal,
    origins: Vec<Journal>,
}

impl<'j> Calls<'j> {
    /// Reads the journals of the runs from which calls were taken over, if there are any.
    pub(crate) async fn of(home: &ScopedStore, journal: &'j Journal) -> Result<Self> {
        let mut calls = Self {
            journal,
            origins: Vec::new(),
        };
        let mut wanted = sources(journal);
        if journal.steps.is_empty() {
            // The run may have died between taking calls over and planning them.
            wanted.extend(journal.run.base.map(|base| base.run));
        }
        while let Some(run) = wanted.pop() {
            if calls.journal_of(run).is_some() {
                continue;
            }
            match home.store.journal(&home.scope, run).await {
                Ok(origin) => {
                    wanted.extend(sources(&origin));
                    calls.origins.push(origin);
                }
                // That run was deleted: none of its calls can run.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(calls)
    }

    fn journal_of(&self, run: RunId) -> Option<&Journal> {
        if self.journal.run.id == run {
            return Some(self.journal);
        }
        self.origins.iter().find(|origin| origin.run.id == run)
    }

    /// The call at a position, as the model made it.
    pub(crate) fn at(&self, place: CallRef) -> Option<OpenCall> {
        let journal = self.journal_of(place.run)?;
        if crate::trials::planted("approval-by-id") {
            return newest_of_its_id(journal, place);
        }
        let step = journal.steps.iter().find(|step| step.no == place.step)?;
        let taken = taken_in(step);
        let position = place.position as usize;
        match taken.is_empty() {
            true => calls_of(journal, step).into_iter().nth(position),
            // A position names an earlier run: the search ends at the run that made the call.
            false => taken
                .get(position)
                .filter(|earlier| earlier.run != place.run)
                .and_then(|earlier| self.at(*earlier)),
        }
    }

    /// The executions of the base run that this run took over, with their calls.
    pub(crate) fn taken_over(&self) -> Vec<(&Execution, OpenCall)> {
        let run = self.journal.run.id;
        let base = self.journal.run.base.map(|base| base.run);
        let Some(origin) = base.and_then(|base| self.journal_of(base)) else {
            return Vec::new();
        };
        let mine = origin
            .calls
            .iter()
            .filter(|call| call.taken_by == Some(run));
        mine.filter_map(|call| Some((call, self.at(call.at)?)))
            .collect()
    }
}

/// A planted mistake: finds the newest call with the same id.
fn newest_of_its_id(journal: &Journal, place: CallRef) -> Option<OpenCall> {
    let id = &journal.calls.iter().find(|call| call.at == place)?.call;
    let steps = journal.steps.iter().rev();
    let mut made = steps.flat_map(|step| calls_of(journal, step).into_iter().rev());
    made.find(|open| open.call.call.value() == id)
}

/// The calls that a step made, by position.
pub(crate) fn calls_of(journal: &Journal, step: &StepRecord) -> Vec<OpenCall> {
    let said = step.first..step.first + step.items;
    let entries = journal.entries.iter();
    let answer: Vec<Message> = entries
        .filter(|entry| said.contains(&entry.at.no))
        .filter(|entry| entry.message.source != Some(Source::Caller))
        .map(|entry| entry.message.clone())
        .collect();
    open_calls(&answer)
}

/// The calls that a step took over, by position.
fn taken_in(step: &StepRecord) -> Vec<CallRef> {
    let note = StepNote::read(step.note.as_ref());
    note.map(|note| note.taken).unwrap_or_default()
}

/// The runs from which a run took calls over.
fn sources(journal: &Journal) -> Vec<RunId> {
    let taken = journal.steps.iter().flat_map(taken_in);
    taken.map(|call| call.run).collect()
}

/// The result of a call, if the journal has it.
pub(crate) fn result_of<'j>(journal: &'j Journal, call: &Execution) -> Option<&'j Content> {
    if call.state != throughline_store::CallState::Done {
        return None;
    }
    let mut entries = journal.entries.iter().flat_map(|entry| {
        let items = entry.item_refs().map(|item| item.no);
        items.zip(&entry.message.contents)
    });
    let (_, content) = entries.find(|(no, _)| *no == call.result)?;
    Some(content)
}
