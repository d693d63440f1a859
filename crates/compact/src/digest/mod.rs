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
use crate::report::DigestCounts;
use crate::tokens;

use input::{CandidateLine, Detail, HEADER};

pub(crate) use input::DigestInput;
pub(crate) use names::VisibleNames;

/// Percent of the room that requests take at most before files and failures have theirs.
const REQUESTS: u64 = 40;
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
    finish(job, &mut choices, detail, &also)
}

/// Take lines as long as there is room for them; returns the level of detail.
fn choose_lines(job: &DigestInput<'_>, choices: &mut [CandidateLine]) -> Detail {
    let Some(room) = job.room else {
        for choice in choices.iter_mut() {
            choice.taken = true;
        }
        return Detail::Full;
    };
    let header = u64::from(tokens::text_units(HEADER)) + 2;
    let room = room.saturating_sub(header);
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
    let request = |choice: &CandidateLine| choice.line.kind == LineKind::Request;
    take(choices, room * REQUESTS / 100, &request);
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
