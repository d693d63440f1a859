//! Lines about the same thing become one.

use std::collections::{HashMap, HashSet};

use throughline_model::Outcome;

use super::input::{CandidateLine, DigestInput};
use crate::category::Category;
use crate::facts::call::changed;
use crate::facts::{Line, LineKind};
use crate::trials::planted;

/// Distinct errors of the failures that one line stands for.
const MOST_ERRORS: usize = 8;

/// What lines must have in common to become one: their class, how they ended, what they are about.
type MergeKey = (u8, (Option<Outcome>, bool, Option<i64>), Box<str>);

/// All lines of the facts, repeats collapsed, in the order of their last calls.
pub(super) fn collapse(job: &DigestInput<'_>) -> Vec<CandidateLine> {
    let mut choices: Vec<Option<CandidateLine>> = Vec::new();
    let mut seen: HashMap<MergeKey, usize> = HashMap::new();
    for line in job.facts.iter().flat_map(|facts| &facts.lines) {
        let mut choice = CandidateLine {
            line: line.clone(),
            times: 1,
            reads: 0,
            unresolved: job.successes.is_unresolved(line),
            after_failure: false,
            taken: false,
            names: Vec::new(),
        };
        if let Some(same) = merge_key(line, job.ledger) {
            if let Some(earlier) = seen
                .get(&same)
                .and_then(|at| choices.get_mut(*at))
                .and_then(Option::take)
            {
                merge(&mut choice, earlier);
            }
            seen.insert(same, choices.len());
        }
        choices.push(Some(choice));
    }
    let mut choices: Vec<CandidateLine> = choices.into_iter().flatten().collect();
    mark_stale(&mut choices);
    mark_settled(&mut choices);
    choices
}

/// What a line may be merged by; none for lines that stand for themselves.
fn merge_key(line: &Line, ledger: bool) -> Option<MergeKey> {
    let (LineKind::Call(category), Some(key), Some(ended)) = (line.kind, &line.key, line.ended)
    else {
        return None;
    };
    let failed = ended.failed();
    let class = match category {
        // Of a file only its last state matters in the long run.
        Category::Read if !failed => u8::from(!ledger),
        Category::Write if !failed => 0,
        Category::Execute if ledger || !failed => 2,
        Category::Query if !failed => 3,
        Category::Plan => 4,
        Category::Read
        | Category::Write
        | Category::Execute
        | Category::Query
        | Category::Structured
        | Category::Media
        | Category::Other => return None,
    };
    // What was only asked for leaves a file as it is: asking to read it and asking to write it
    // are two things.
    let class = match (ended.is_ok(), category) {
        (false, Category::Read) => 1,
        _ => class,
    };
    let alike = match planted("compact-outcomes-merged") {
        true => (None, failed, None),
        false => ended.comparison_key(),
    };
    Some((class, alike, key.clone()))
}

/// Merge an earlier line into the later one with the same outcome.
fn merge(later: &mut CandidateLine, earlier: CandidateLine) {
    let reads = |choice: &CandidateLine| choice.line.kind == LineKind::Call(Category::Read);
    later.names_from(&earlier);
    match (reads(&earlier), reads(later)) {
        (true, false) => {
            // Read, then written: the line of the write stands for both.
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
            resize(&mut later.line);
            // What went wrong first is often what the last error is about.
            for error in earlier.line.errors {
                if later.line.errors.len() < MOST_ERRORS && !later.line.errors.contains(&error) {
                    later.line.errors.push(error);
                }
            }
        }
    }
}

/// Say again how much a merged line is about.
fn resize(line: &mut Line) {
    if line.own {
        return;
    }
    match line.kind {
        LineKind::Call(Category::Write) => line.size = changed(line.changed),
        LineKind::Call(Category::Read) => {
            let lines = |(from, to): (u64, u64)| format!(" lines {from}-{to}");
            line.size = line.range.map(lines).unwrap_or_default();
        }
        // Of what was found, the last time counts.
        LineKind::Call(
            Category::Execute
            | Category::Query
            | Category::Structured
            | Category::Plan
            | Category::Media
            | Category::Other,
        )
        | LineKind::Request
        | LineKind::Statement => {}
    }
}

impl CandidateLine {
    /// Names that only the earlier line had.
    fn names_from(&mut self, earlier: &Self) {
        self.line.names.extend_from_slice(&earlier.line.names);
    }
}

/// A read that is older than a write of the same file no longer matches the file; one that is older than a write whose
/// result was lost may not.
fn mark_stale(choices: &mut [CandidateLine]) {
    let mut written: HashMap<Box<str>, u64> = HashMap::new();
    let mut perhaps: HashMap<Box<str>, u64> = HashMap::new();
    for line in choices.iter().map(|choice| &choice.line) {
        let (true, Some(key), Some(ended)) = (line.is_write(), &line.key, line.ended) else {
            continue;
        };
        match ended.outcome {
            Some(Outcome::Ok) => written.insert(key.clone(), line.seq),
            Some(Outcome::Unknown) => perhaps.insert(key.clone(), line.seq),
            Some(
                Outcome::Error
                | Outcome::Rejected
                | Outcome::Expired
                | Outcome::Withdrawn
                | Outcome::Limit
                | Outcome::Terminated
                | Outcome::Cancelled,
            )
            | None => None,
        };
    }
    for line in choices.iter_mut().map(|choice| &mut choice.line) {
        let (LineKind::Call(Category::Read), Some(key), true) =
            (line.kind, &line.key, line.is_ok())
        else {
            continue;
        };
        let later = |all: &HashMap<Box<str>, u64>| all.get(key).is_some_and(|seq| *seq > line.seq);
        if later(&written) {
            line.rest.push_str(", changed since");
            // Its lines are others now.
            line.names.iter_mut().for_each(|name| name.line = 0);
        } else if later(&perhaps) {
            line.rest.push_str(", may have changed since");
        }
    }
}

/// Find the commands that failed and were run again.
fn mark_settled(choices: &mut [CandidateLine]) {
    let mut failed: HashSet<Box<str>> = HashSet::new();
    for choice in choices {
        let line = &choice.line;
        let (LineKind::Call(Category::Execute), Some(key)) = (line.kind, &line.key) else {
            continue;
        };
        match line.failed() {
            true => {
                failed.insert(key.clone());
            }
            false => choice.after_failure = failed.contains(key),
        }
    }
}
