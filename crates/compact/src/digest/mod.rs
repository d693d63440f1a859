//! Packs what is known of older groups into a text that fits.
//!
//! What must not be lost comes first: requests of users, files written, failures. Then every other call gets its line,
//! newest first, and what room remains is spent on the names that are likeliest to be needed again. Names that can be
//! read in another part of the view are not repeated.

mod collapse;
mod input;
mod names;
#[cfg(test)]
mod tests;
mod write;

use crate::facts::LineKind;
use crate::read_back::HEADER;
use crate::report::DigestCounts;
use crate::tokens;

use input::{CandidateLine, Detail};

pub(crate) use input::DigestInput;
pub(crate) use names::VisibleNames;

/// Percent of the room that requests take at most before files and failures have theirs.
const REQUESTS: u64 = 40;
/// Percent of all room that failures take at most before all else.
pub(crate) const FAILURES: u64 = 75;
/// Percent of the room that statements of the model may take.
const STATEMENTS: u64 = 13;

/// A packed text.
#[derive(Debug, Default)]
pub(crate) struct DigestText {
    pub(crate) text: String,
    pub(crate) kept: DigestCounts,
}

/// Pack the facts; `visible` has the names that can be read in other parts of the view and gets those of the text.
pub(crate) fn write_digest(job: &DigestInput<'_>, visible: &mut VisibleNames) -> DigestText {
    let mut choices = collapse::collapse(job);
    if choices.is_empty() || job.room.is_some_and(|room| room < 24) {
        return DigestText::default();
    }
    let detail = choose_lines(job, &mut choices);
    for choice in choices.iter().filter(|choice| choice.taken) {
        visible.learn(job.name_index, &write::plain(choice, detail, job.caps));
    }
    let spent = write::units(&choices, detail, job);
    let also = names::choose(job, &mut choices, visible, spent);
    fill_up(job, &mut choices, detail, &also);
    finish(job, &mut choices, detail, &also)
}

/// Units that the failures of a digest need, at the lowest level of detail, with its header.
pub(crate) fn units_of_failures(job: &DigestInput<'_>) -> u64 {
    let choices = collapse::collapse(job);
    let failures = choices.iter().filter(|choice| choice.unresolved);
    let units = |choice| {
        let line = write::plain(choice, Detail::Bare, job.caps);
        u64::from(tokens::text_units(&line)) + 1
    };
    match failures.map(units).sum() {
        0 => 0,
        lines => lines + header_units(),
    }
}

/// Units of what a digest opens with.
fn header_units() -> u64 {
    u64::from(tokens::text_units(HEADER)) + 2
}

/// Take lines as long as there is room for them; returns the level of detail.
fn choose_lines(job: &DigestInput<'_>, choices: &mut [CandidateLine]) -> Detail {
    let Some(room) = job.room else {
        for choice in choices.iter_mut() {
            choice.taken = true;
        }
        return Detail::Full;
    };
    let room = room.saturating_sub(header_units());
    let cost = |choice: &CandidateLine, detail: Detail| {
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
    let mut take =
        |choices: &mut [CandidateLine], limit: u64, wanted: &dyn Fn(&CandidateLine) -> bool| {
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
    let failures = job.failures.saturating_sub(header_units());
    let failures = failures.max(room * 6 / 10).min(room);
    let spent = take(choices, failures, &|choice| choice.unresolved);
    let request = |choice: &CandidateLine| choice.line.kind == LineKind::Request;
    take(choices, (spent + room * REQUESTS / 100).min(room), &request);
    let other = |choice: &CandidateLine| choice.protected() && !request(choice);
    take(choices, room, &other);
    take(choices, room, &CandidateLine::protected);
    let is_call = |choice: &CandidateLine| matches!(choice.line.kind, LineKind::Call(_));
    let spent = take(choices, room * 70 / 100, &is_call);
    let is_statement = |choice: &CandidateLine| choice.line.kind == LineKind::Statement;
    let limit = (spent + room * STATEMENTS / 100).min(room * 3 / 4);
    take(choices, limit, &is_statement);
    detail
}

/// Take more lines of calls, newest first, in the room that names have left.
fn fill_up(
    job: &DigestInput<'_>,
    choices: &mut [CandidateLine],
    detail: Detail,
    also: &[crate::names::NameUse],
) {
    let Some(room) = job.room else { return };
    let taken: Vec<CandidateLine> = choices.iter().filter(|one| one.taken).cloned().collect();
    let text = write::text(job, &taken, detail, also);
    let mut left = room.saturating_sub(tokens::text_units(&text).into());
    for choice in choices.iter_mut().rev() {
        if choice.taken || !matches!(choice.line.kind, LineKind::Call(_)) {
            continue;
        }
        let line = write::plain(choice, detail, job.caps);
        let cost = u64::from(tokens::text_units(&line)) + 1;
        if cost > left {
            break;
        }
        left -= cost;
        choice.taken = true;
    }
}

fn finish(
    job: &DigestInput<'_>,
    choices: &mut Vec<CandidateLine>,
    detail: Detail,
    also: &[crate::names::NameUse],
) -> DigestText {
    choices.retain(|choice| choice.taken);
    let text = write::text(job, choices, detail, also);
    if text.is_empty() {
        return DigestText::default();
    }
    let count = |wanted: &dyn Fn(&CandidateLine) -> bool| {
        choices.iter().filter(|choice| wanted(choice)).count() as u64
    };
    let kept = DigestCounts {
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
    DigestText { text, kept }
}
