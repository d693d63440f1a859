//! Lines as they are read.

use std::fmt::Write;

use super::input::{CandidateLine, Detail, DigestInput};
use super::names;
use crate::category::Category;
use crate::facts::outcome::Wording;
use crate::facts::{Line, LineKind};
use crate::names::NameUse;
use crate::policy::Caps;
use crate::read_back::{HEADER, LEDGER};
use crate::text;
use crate::tokens;
use crate::trials::planted;

/// The whole text: its header, then the lines.
pub(super) fn text(
    job: &DigestInput<'_>,
    choices: &[CandidateLine],
    detail: Detail,
    also: &[NameUse],
) -> String {
    if choices.is_empty() && also.is_empty() {
        return String::new();
    }
    let mut out = String::from(if job.ledger { LEDGER } else { HEADER });
    let mut order: Vec<&CandidateLine> = choices.iter().collect();
    if job.ledger {
        order.sort_by_key(|choice| (section(choice), choice.line.seq));
    } else {
        order.sort_by_key(|choice| choice.line.seq);
    }
    if planted("compact-order-by-chance") {
        use std::hash::BuildHasher;
        let chance = std::collections::hash_map::RandomState::new();
        order.sort_by_key(|choice| chance.hash_one(choice.line.seq));
    }
    for choice in order {
        out.push('\n');
        line(&mut out, job, choice, detail);
    }
    if !also.is_empty() {
        out.push_str("\n[Earlier: Also seen");
        list(&mut out, job, "", also.iter());
        out.push(']');
    }
    out
}

/// Requests, files, commands, other calls, statements.
fn section(choice: &CandidateLine) -> u8 {
    match choice.line.kind {
        LineKind::Request => 0,
        LineKind::Call(Category::Read | Category::Write) => 1,
        LineKind::Call(Category::Execute) => 2,
        LineKind::Call(
            Category::Query
            | Category::Structured
            | Category::Plan
            | Category::Media
            | Category::Other,
        ) => 3,
        LineKind::Statement => 4,
    }
}

fn line(out: &mut String, job: &DigestInput<'_>, choice: &CandidateLine, detail: Detail) {
    let plain = plain(choice, detail, job.caps);
    // The number comes last, after the names.
    let cut = plain.rfind(" #").unwrap_or(plain.len());
    out.push_str(&plain[..cut]);
    // What was only asked for defines, touches and finds nothing.
    let done = choice.line.is_ok();
    let defined = choice.names.iter().filter(|name| name.defined && done);
    let other = choice.names.iter().filter(|name| !(name.defined && done));
    let word = match choice.line.kind {
        LineKind::Call(Category::Write) if done => " touching",
        LineKind::Call(Category::Query) if done => ":",
        LineKind::Call(_) | LineKind::Request | LineKind::Statement => " mentions",
    };
    list(out, job, " defines", defined);
    list(out, job, word, other);
    out.push_str(&plain[cut..]);
}

fn list<'a>(
    out: &mut String,
    job: &DigestInput<'_>,
    word: &str,
    all: impl Iterator<Item = &'a NameUse>,
) {
    let mut first = true;
    for name in all {
        let Some(entry) = job.name_index.get(name.id) else {
            continue;
        };
        out.push_str(if first { word } else { "," });
        out.push(' ');
        out.push_str(names::shown(entry));
        if let Some(line) = names::line_number(name) {
            let _ = write!(out, ":{line}");
        }
        first = false;
    }
}

/// A line without names. The outcome of a call is written in full at every level of detail.
pub(super) fn plain(choice: &CandidateLine, detail: Detail, caps: &Caps) -> String {
    let line = &choice.line;
    let ended = ended(line, detail);
    let mut out = String::from("[Earlier: ");
    let (head, rest) = match (line.kind, detail) {
        (_, Detail::Full) => (usize::MAX, usize::MAX),
        (LineKind::Request, Detail::Short) => (caps.user * 2 / 5, 0),
        (LineKind::Request, Detail::Terse) => (caps.user / 8, 0),
        (LineKind::Request, Detail::Bare) => (96, 0),
        (_, Detail::Short) => (200, 240),
        (_, Detail::Terse) if line.failed() => (140, 120),
        (_, Detail::Terse) => (140, 60),
        (_, Detail::Bare) if ended.is_empty() => (100, 12),
        (_, Detail::Bare) => (100, 0),
    };
    clipped(&mut out, &line.head, head);
    if choice.times > 1 {
        let _ = write!(out, " ×{}", choice.times);
    }
    // Half a number would be another one.
    if line.size.len() <= rest.max(LONGEST_SIZE) {
        out.push_str(&line.size);
    }
    out.push_str(&ended);
    if choice.unresolved {
        errors(&mut out, line, detail);
    } else {
        clipped(&mut out, &line.rest, rest);
    }
    if choice.reads > 0 {
        let _ = write!(out, ", read ×{}", choice.reads);
    }
    let _ = write!(out, " #{}]", line.seq);
    out
}

/// What failed, and was not resolved since: the first line about each error, whatever the detail.
fn errors(out: &mut String, line: &Line, detail: Detail) {
    let mut said = String::new();
    if detail == Detail::Full || line.errors.is_empty() {
        said.push_str(&line.rest);
    }
    for error in &line.errors {
        if said.is_empty() {
            let _ = write!(said, ": {error}");
        } else if !said.contains(error.as_str()) {
            let _ = write!(said, " (before: {error})");
        }
    }
    out.push_str(&said);
}

/// Bytes that the count of lines has at most on a short line.
const LONGEST_SIZE: usize = 12;

/// How a call ended, in the words of a level of detail.
fn ended(line: &Line, detail: Detail) -> String {
    let (LineKind::Call(category), Some(ended)) = (line.kind, line.ended) else {
        return String::new();
    };
    if line.own && ended.is_ok() {
        return String::new();
    }
    let words = match detail {
        Detail::Full | Detail::Short => Wording::All,
        Detail::Terse | Detail::Bare => Wording::One,
    };
    if planted("compact-outcome-clipped") && detail == Detail::Bare {
        return String::new();
    }
    ended.words(category, words)
}

/// As much of a text as the limit allows.
fn clipped(out: &mut String, text: &str, most: usize) {
    if text.len() <= most {
        out.push_str(text);
    } else if most > 0 {
        out.push_str(text::start(text, most).trim_end());
        out.push('…');
    }
}

/// Units of the lines that were taken, names not counted.
pub(super) fn units(choices: &[CandidateLine], detail: Detail, job: &DigestInput<'_>) -> u64 {
    let taken = choices.iter().filter(|choice| choice.taken);
    let lines = taken.map(|choice| u64::from(tokens::text_units(&plain(choice, detail, job.caps))));
    let header = u64::from(tokens::text_units(HEADER)) + 6;
    header + lines.map(|units| units + 1).sum::<u64>()
}
