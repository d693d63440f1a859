//! Lines about the same thing become one.

use std::collections::HashMap;

use super::{Choice, Job};
use crate::category::Category;
use crate::facts::{Line, LineKind};
use crate::policy::Caps;
use crate::text;

/// All lines of the facts, repeats collapsed, in the order of what they say last.
pub(super) fn collapse(job: &Job<'_>) -> Vec<Choice> {
    let mut choices: Vec<Option<Choice>> = Vec::new();
    let mut seen: HashMap<(u8, Box<str>), usize> = HashMap::new();
    for line in job.facts.iter().flat_map(|facts| &facts.lines) {
        let mut choice = Choice {
            line: line.clone(),
            times: 1,
            reads: 0,
            failed_before: line.failed,
            taken: false,
            names: Vec::new(),
        };
        if let Some(class) = class(line, job.ledger)
            && let Some(key) = &line.key
        {
            let place = (class, key.clone());
            if let Some(earlier) = seen
                .get(&place)
                .and_then(|at| choices.get_mut(*at))
                .and_then(Option::take)
            {
                merge(&mut choice, earlier, job.caps);
            }
            seen.insert(place, choices.len());
        }
        choices.push(Some(choice));
    }
    let mut choices: Vec<Choice> = choices.into_iter().flatten().collect();
    mark_stale(&mut choices);
    choices
}

/// Lines of one class and key say the same; none for lines that stand for themselves.
fn class(line: &Line, ledger: bool) -> Option<u8> {
    let LineKind::Call(category) = line.kind else {
        return None;
    };
    match category {
        // Of a file only its last state matters in the long run.
        Category::Read if !line.failed => Some(u8::from(!ledger)),
        Category::Write if !line.failed => Some(0),
        Category::Execute if ledger || !line.failed => Some(2),
        Category::Query if !line.failed => Some(3),
        Category::Plan => Some(4),
        Category::Read
        | Category::Write
        | Category::Execute
        | Category::Query
        | Category::Structured
        | Category::Media
        | Category::Other => None,
    }
}

/// Put what an earlier line said into the later one.
fn merge(later: &mut Choice, earlier: Choice, caps: &Caps) {
    let reads = |choice: &Choice| choice.line.kind == LineKind::Call(Category::Read);
    later.names_from(&earlier);
    later.failed_before |= earlier.failed_before;
    match (reads(&earlier), reads(later)) {
        (true, false) => {
            // Read, then written: the write speaks for both.
            later.reads += earlier.times + earlier.reads;
        }
        (false, true) if earlier.line.is_write() => {
            // Written, then read: still a file that was written.
            let again = 1 + earlier.reads;
            let (seq, range) = (later.line.seq, later.line.range);
            let names = std::mem::take(&mut later.line.names);
            later.line = earlier.line;
            later.line.seq = seq;
            later.line.range = range;
            later.line.names = names;
            later.times = earlier.times;
            later.reads += again;
        }
        _ => {
            later.times += earlier.times;
            later.reads += earlier.reads;
            let (added, removed) = earlier.line.changed;
            later.line.changed.0 += added;
            later.line.changed.1 += removed;
            later.line.range = match (earlier.line.range, later.line.range) {
                (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
                _ => None,
            };
            if earlier.line.failed && later.line.rest != earlier.line.rest {
                // What went wrong first is often what the last error is about, and its first line is
                // not always the one that tells.
                let now = if later.line.failed { "" } else { ", resolved" };
                let first = text::start(&earlier.line.rest, 2 * caps.error_line).trim_end();
                later.line.rest.push_str(&format!(" (before{first}{now})"));
            }
        }
    }
}

impl Choice {
    /// Names that only the earlier line had.
    fn names_from(&mut self, earlier: &Self) {
        self.line.names.extend_from_slice(&earlier.line.names);
    }
}

/// A read that is older than a write of the same file no longer says what is there.
fn mark_stale(choices: &mut [Choice]) {
    let mut written: HashMap<Box<str>, u64> = HashMap::new();
    for choice in choices.iter() {
        if choice.line.is_write()
            && !choice.line.failed
            && let Some(key) = &choice.line.key
        {
            written.insert(key.clone(), choice.line.seq);
        }
    }
    for choice in choices {
        if choice.line.kind == LineKind::Call(Category::Read)
            && let Some(key) = &choice.line.key
            && written.get(key).is_some_and(|seq| *seq > choice.line.seq)
        {
            choice.line.rest.push_str(", changed since");
        }
    }
}
