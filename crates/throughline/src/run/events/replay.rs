//! The events of a run that stored none, made from what it journaled.

#[cfg(test)]
mod tests;

use throughline_model::{Body, Content, Message, Place, Role};
use throughline_store::{CallState, Entry, Execution, Journal, Run, RunState};

use crate::run::event::RunEvent;
use crate::thread::StopReason;

/// The events that a reader would have seen if every content had come in one piece. Event n is number
/// n, for every reader.
///
/// The events of a run that is not settled stay the same when it is resumed: a round of calls without
/// all its results is left out, and there is no end.
pub(crate) fn replayed(journal: &Journal) -> Vec<RunEvent> {
    let mut events = vec![RunEvent::Started {
        run: journal.run.id,
        thread: journal.run.thread.clone(),
    }];
    let mut entries = journal.entries.as_slice();
    for entry in take(&mut entries, |no| no <= journal.inputs) {
        events.push(RunEvent::Message(entry.message.clone()));
    }
    for step in &journal.steps {
        let end = step.first + step.items;
        push_messages(&mut events, step.no, take(&mut entries, |no| no < end));
        let calls: Vec<&Execution> = journal
            .calls
            .iter()
            .filter(|c| c.at.step == step.no)
            .collect();
        let last = calls.iter().map(|call| call.result).max();
        let round = take(&mut entries, |no| last.is_some_and(|last| no <= last));
        // Results that come later are part of the same message.
        let open = |call: &&Execution| !matches!(call.state, CallState::Done | CallState::Taken);
        if journal.run.state.is_settled() || !calls.iter().any(open) {
            push_round(&mut events, &calls, round);
        }
    }
    // Messages of the publication are no step in the journal, but have the number after the last one.
    let step = journal.steps.last().map_or(0, |step| step.no + 1);
    push_messages(&mut events, step, entries);
    if let Some(stop) = stop_of(&journal.run) {
        events.push(RunEvent::Ended { stop });
    }
    events
}

/// Why a run stopped: by its note, else by its state. `None` while it is not settled.
pub(crate) fn stop_of(run: &Run) -> Option<StopReason> {
    let by_state = match run.state {
        RunState::Running | RunState::Interrupted | RunState::Parked | RunState::Held => {
            return None;
        }
        RunState::Committed | RunState::Unpublished => StopReason::Done,
        RunState::Cancelled | RunState::Discarded => StopReason::Cancelled,
        RunState::Failed => StopReason::Failed,
    };
    let named = || {
        let note = run.note.as_ref()?.value();
        let word = note.get("stop")?.as_str()?;
        StopReason::ALL
            .into_iter()
            .find(|stop| stop.as_str() == word)
    };
    Some(named().unwrap_or(by_state))
}

/// The entries at the front whose numbers are meant.
fn take<'e>(entries: &mut &'e [Entry], meant: impl Fn(u32) -> bool) -> &'e [Entry] {
    let end = entries.iter().position(|entry| !meant(entry.at.no));
    let (front, rest) = entries.split_at(end.unwrap_or(entries.len()));
    *entries = rest;
    front
}

/// Add the messages of a step: first those to the model, then its answer.
fn push_messages(events: &mut Vec<RunEvent>, step: u32, entries: &[Entry]) {
    let first = entries.iter().position(|entry| !is_asking(&entry.message));
    let (asking, answer) = entries.split_at(first.unwrap_or(entries.len()));
    let whole = |entry: &Entry| RunEvent::Message(entry.message.clone());
    events.extend(asking.iter().map(whole));
    // A step without an answer only closes the run: no model was called.
    if answer.is_empty() {
        return;
    }
    events.push(RunEvent::Asked { step });
    for (choice, entry) in answer.iter().enumerate() {
        if is_asking(&entry.message) {
            continue;
        }
        for (item, content) in entry.message.contents.iter().enumerate() {
            push_content(events, step, Place::new(choice, item, 0), content);
        }
    }
    events.extend(answer.iter().map(whole));
}

/// Whether a message is sent to the model.
fn is_asking(message: &Message) -> bool {
    match message.role {
        Role::System | Role::Developer | Role::User => true,
        Role::Assistant | Role::Tool | Role::Other(_) => false,
    }
}

fn push_content(events: &mut Vec<RunEvent>, step: u32, at: Place, content: &Content) {
    RunEvent::deltas_of(step, at, content, |event| events.push(event));
    events.push(RunEvent::Content {
        step,
        at,
        content: content.clone(),
    });
}

/// Add the results of a round in the order of its calls, then the messages that have them.
fn push_round(events: &mut Vec<RunEvent>, calls: &[&Execution], round: &[Entry]) {
    let items = round.iter().flat_map(|entry| {
        let items = entry.item_refs().map(|item| item.no);
        items.zip(&entry.message.contents)
    });
    for (no, content) in items {
        let Body::ToolResult(result) = &content.body else {
            continue;
        };
        // The store has reserved an item for the result of each call.
        let Some(call) = calls.iter().find(|call| call.result == no) else {
            continue;
        };
        events.push(RunEvent::Result {
            step: call.at.step,
            position: call.at.position,
            result: result.clone(),
        });
    }
    let whole = |entry: &Entry| RunEvent::Message(entry.message.clone());
    events.extend(round.iter().map(whole));
}
