//! Packs what is known of older groups into a text that fits.
//!
//! What must not be lost comes first: requests of users, files written, failures. Then every other call
//! gets its line, newest first, and what room remains is spent on the names that are likeliest to be
//! needed again. Names that can be read elsewhere in the view are not said twice.

mod collapse;
mod job;
mod names;
#[cfg(test)]
mod tests;
mod write;

use crate::facts::LineKind;
use crate::report::Kept;
use crate::tokens;

use job::{Choice, Detail, HEADER};

pub(crate) use job::Job;
pub(crate) use names::Visible;

/// Percent of the room that requests take at most before files and failures have theirs.
const REQUESTS: u64 = 40;
/// Percent of the room that statements of the model may take.
const STATEMENTS: u64 = 13;

/// A packed text.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    pub(crate) text: String,
    pub(crate) kept: Kept,
}

/// Pack the facts; `visible` knows the names that can be read elsewhere and learns those of the text.
pub(crate) fn pack(job: &Job<'_>, visible: &mut Visible) -> Packed {
    let mut choices = collapse::collapse(job);
    if choices.is_empty() || job.room.is_some_and(|room| room < 24) {
        return Packed::default();
    }
    let detail = choose_lines(job, &mut choices);
    for choice in choices.iter().filter(|choice| choice.taken) {
        visible.learn(job.atoms, &write::plain(choice, detail, job.caps));
    }
    let spent = write::units(&choices, detail, job);
    let also = names::choose(job, &mut choices, visible, spent);
    finish(job, &mut choices, detail, &also)
}

/// Take lines as long as there is room for them; says how tersely they are written.
fn choose_lines(job: &Job<'_>, choices: &mut [Choice]) -> Detail {
    let Some(room) = job.room else {
        for choice in choices.iter_mut() {
            choice.taken = true;
        }
        return Detail::Full;
    };
    let header = u64::from(tokens::text_units(HEADER)) + 2;
    let room = room.saturating_sub(header);
    let cost = |choice: &Choice, detail: Detail| {
        u64::from(tokens::text_units(&write::plain(choice, detail, job.caps))) + 1
    };
    let protected = |detail: Detail| -> u64 {
        let lines = choices.iter().filter(|choice| choice.protected());
        lines.map(|choice| cost(choice, detail)).sum()
    };
    let details = [Detail::Full, Detail::Short, Detail::Terse];
    let detail = details
        .into_iter()
        .find(|detail| protected(*detail) <= room * 6 / 10)
        .unwrap_or(Detail::Bare);
    let mut spent = 0;
    let mut take = |choices: &mut [Choice], limit: u64, wanted: &dyn Fn(&Choice) -> bool| {
        for choice in choices.iter_mut().rev() {
            if choice.taken || !wanted(choice) {
                continue;
            }
            let cost = cost(choice, detail);
            if spent + cost <= limit {
                spent += cost;
                choice.taken = true;
            }
        }
        spent
    };
    // Where not all fits, no class of what must not be lost takes the room of the others.
    let request = |choice: &Choice| choice.line.kind == LineKind::Request;
    take(choices, room * REQUESTS / 100, &request);
    let other = |choice: &Choice| choice.protected() && !request(choice);
    take(choices, room, &other);
    take(choices, room, &Choice::protected);
    let is_call = |choice: &Choice| matches!(choice.line.kind, LineKind::Call(_));
    let spent = take(choices, room * 70 / 100, &is_call);
    let said = |choice: &Choice| choice.line.kind == LineKind::Statement;
    let limit = (spent + room * STATEMENTS / 100).min(room * 3 / 4);
    take(choices, limit, &said);
    detail
}

fn finish(
    job: &Job<'_>,
    choices: &mut Vec<Choice>,
    detail: Detail,
    also: &[crate::atoms::Name],
) -> Packed {
    choices.retain(|choice| choice.taken);
    let text = write::text(job, choices, detail, also);
    if text.is_empty() {
        return Packed::default();
    }
    let count = |wanted: &dyn Fn(&Choice) -> bool| {
        choices.iter().filter(|choice| wanted(choice)).count() as u64
    };
    let kept = Kept {
        requests: count(&|one| one.line.kind == LineKind::Request),
        files_written: count(&|one| one.line.is_write() && one.line.is_ok()),
        failures: count(&|one| one.line.failed()),
        calls: count(&|one| {
            let written = one.line.is_write() && one.line.is_ok();
            matches!(one.line.kind, LineKind::Call(_)) && !written && !one.line.failed()
        }),
        names: choices.iter().map(|one| one.names.len()).sum::<usize>() as u64 + also.len() as u64,
        statements: count(&|one| one.line.kind == LineKind::Statement),
    };
    Packed { text, kept }
}
