//! Which groups stay because an agent is likely to edit the files that they show.
//!
//! An edit repeats text of a file as it stands, and a digest has none of that. So what was last read of
//! files stays, and what was written to them since, as much as there is room for. It stays as it is until the
//! next ledger: sending it again with each epoch would cost more than a newer choice is worth.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::category::Category;
use crate::epoch::LeftOut;
use crate::facts::{Line, LineKind};
use crate::history::ToolHistory;
use crate::result_text;
use crate::trials::planted;

/// Units of the mark in place of a result.
const MARK: u64 = 14;

/// Groups that show files that are being worked on.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkingFiles {
    pub(super) groups: BTreeSet<usize>,
    /// Results of these groups that are not shown.
    pub(super) left_out: Vec<LeftOut>,
    pub(super) units: u64,
}

/// What is known of a file, from the newest group back.
#[derive(Debug, Default)]
struct KnownFile {
    /// All of it was read later.
    whole: bool,
    /// Lines that were read later.
    ranges: Vec<(u64, u64)>,
    /// Calls that were made since it was read or written last.
    untouched: Option<u64>,
}

impl KnownFile {
    /// Whether an older line about the file adds to what is known of it.
    fn needs(&self, line: &Line) -> bool {
        let within = |(from, to): (u64, u64)| {
            let mut ranges = self.ranges.iter();
            ranges.any(|(first, last)| *first <= from && to <= *last)
        };
        match line.range {
            _ if self.whole => false,
            Some(range) if !line.is_write() => !within(range),
            _ => true,
        }
    }

    /// How old a line counts that is so many calls old: mostly by when its file was last in use.
    fn age(&self, own: u64) -> u64 {
        (own + 3 * self.untouched.unwrap_or(own)) / 4
    }

    fn learn(&mut self, line: &Line, age: u64) {
        self.untouched.get_or_insert(age);
        if line.is_write() {
            return;
        }
        match line.range {
            Some(range) => self.ranges.push(range),
            None => self.whole = true,
        }
    }
}

/// A read or a write that may stay.
struct Candidate {
    group: usize,
    /// The place and the content of the result, of a read.
    read: Option<(usize, usize)>,
    units: u64,
    /// Calls that were made since, fewer if the file was read or written again later.
    age: u64,
}

impl Candidate {
    /// What is old and large goes first.
    fn rank(&self) -> (u64, std::cmp::Reverse<usize>) {
        let size = (self.units + 100).isqrt();
        ((self.age + 5) * size, std::cmp::Reverse(self.group))
    }
}

/// Those before the tail, which begins at `cut`, in so many units; what is shown already is not chosen.
pub(super) fn choose(
    history: &ToolHistory,
    cut: usize,
    room: u64,
    is_shown: impl Fn(&usize) -> bool,
) -> WorkingFiles {
    if planted("compact-reads-digested") {
        return WorkingFiles::default();
    }
    let mut candidates = candidates(history, cut);
    candidates.retain(|candidate| !is_shown(&candidate.group));
    candidates.sort_by_key(Candidate::rank);
    let mut shown: BTreeMap<usize, BTreeSet<(usize, usize)>> = BTreeMap::new();
    let mut units = 0;
    for candidate in candidates {
        let first = match shown.contains_key(&candidate.group) {
            true => 0,
            false => without_results(history, candidate.group),
        };
        let more = first
            + if candidate.read.is_some() {
                candidate.units
            } else {
                0
            };
        if units + more <= room {
            units += more;
            shown
                .entry(candidate.group)
                .or_default()
                .extend(candidate.read);
        }
    }
    let mut left_out = Vec::new();
    for (group, shown) in &shown {
        for (place, content, _) in results(history, *group) {
            if !shown.contains(&(place, content)) {
                left_out.push(LeftOut {
                    seq: history.record.entries()[place].seq,
                    content: content as u64,
                });
            }
        }
    }
    WorkingFiles {
        groups: shown.into_keys().collect(),
        left_out,
        units,
    }
}

/// What adds to what the tail and newer groups show of their files.
fn candidates(history: &ToolHistory, cut: usize) -> Vec<Candidate> {
    let all = history.record.groups();
    let mut files: HashMap<&str, KnownFile> = HashMap::new();
    let mut age = 0;
    for at in (cut..all.len()).rev() {
        for (path, line) in files_of(history, at) {
            files.entry(path).or_default().learn(line, age);
        }
        age += u64::from(all[at].calls);
    }
    let mut candidates = Vec::new();
    for at in (0..cut).rev() {
        age += u64::from(all[at].calls);
        let sizes = results(history, at);
        for (path, line) in files_of(history, at).collect::<Vec<_>>().into_iter().rev() {
            let file = files.entry(path).or_default();
            let needs = file.needs(line);
            file.learn(line, age);
            if !needs {
                continue;
            }
            let read = line.result.filter(|_| !line.is_write());
            let size = |(place, content): (usize, usize)| {
                let mut sizes = sizes.iter();
                let found = sizes.find(|one| (one.0, one.1) == (place, content));
                found.map_or(0, |(.., units)| *units)
            };
            candidates.push(Candidate {
                group: at,
                read,
                units: read.map_or_else(|| without_results(history, at), size),
                age: file.age(age),
            });
        }
    }
    candidates
}

/// Units of a group that an older block shows.
pub(super) fn units_of_held(history: &ToolHistory, at: usize, units: u64) -> u64 {
    let is_left_out = |place: usize, content: usize| {
        let left_out = history.frame.left_out.get(&place).into_iter().flatten();
        left_out
            .into_iter()
            .any(|one| one.content == content as u64)
    };
    let results = results(history, at).into_iter();
    let left_out = results.filter(|(place, content, _)| is_left_out(*place, *content));
    let saved: u64 = left_out.map(|(.., size)| size.saturating_sub(MARK)).sum();
    units.saturating_sub(saved)
}

/// Whether older blocks show so little of a group that is pinned now that it has to be shown again.
pub(super) fn hides_pinned(history: &ToolHistory, pinned: &BTreeSet<usize>) -> bool {
    let shown = pinned.intersection(&history.frame.kept);
    shown.into_iter().any(|at| {
        let members = &history.record.groups()[*at].members;
        members
            .iter()
            .any(|member| history.frame.left_out.contains_key(&member.place))
    })
}

/// Units of a group with marks in place of its results.
fn without_results(history: &ToolHistory, at: usize) -> u64 {
    let sizes = results(history, at).into_iter();
    let saved: u64 = sizes.map(|(.., units)| units.saturating_sub(MARK)).sum();
    history.record.group_units(at).saturating_sub(saved)
}

/// The results of a group that can be left out: place, content, units.
fn results(history: &ToolHistory, at: usize) -> Vec<(usize, usize, u64)> {
    let record = &history.record;
    let mut found = Vec::new();
    for member in &record.groups()[at].members {
        let contents = &record.entries()[member.place].message.contents;
        for (index, content) in contents.iter().enumerate() {
            let own = member
                .contents
                .as_ref()
                .is_none_or(|some| some.contains(&index));
            let units = content.as_tool_result().and_then(result_text::text_size);
            if let Some(units) = units.filter(|units| own && *units > MARK) {
                found.push((member.place, index, units));
            }
        }
    }
    found
}

/// The files that calls of a group read or wrote.
fn files_of(history: &ToolHistory, at: usize) -> impl Iterator<Item = (&str, &Line)> {
    let facts = history.facts.get(at).and_then(Option::as_ref);
    let lines = facts.into_iter().flat_map(|facts| &facts.lines);
    lines.filter_map(|line| match (line.kind, &line.key) {
        (LineKind::Call(Category::Read | Category::Write), Some(key)) if line.is_ok() => {
            Some((&**key, line))
        }
        _ => None,
    })
}
