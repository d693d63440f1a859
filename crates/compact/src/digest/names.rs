//! Chooses the names of a digest.

use std::collections::HashSet;

use super::input::{CandidateLine, DigestInput};
use crate::facts::LineKind;
use crate::group::Group;
use crate::names::{Kind, NameIndex, NameUse, scan, worth};
use crate::tokens;

/// Names that can be read in the view already.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisibleNames {
    known: Vec<bool>,
    /// The first place of the tail: names that stand there are in full view.
    cut: usize,
}

impl VisibleNames {
    pub(crate) fn new(name_index: &NameIndex, cut: usize) -> Self {
        Self {
            known: vec![false; name_index.len()],
            cut,
        }
    }

    /// Take in the names of a text of the view.
    pub(crate) fn learn(&mut self, name_index: &NameIndex, text: &str) {
        scan(text, |name| {
            self.mark(name_index.known(name.key));
            if name.kind == Kind::Dotted {
                for part in name.key.split('.') {
                    self.mark(name_index.known(part));
                }
            }
            if name.kind == Kind::Path
                && let Some((_, file)) = name.key.rsplit_once('/')
            {
                self.mark(name_index.known(file));
            }
        });
    }

    /// Take in the names of a group that is shown in full.
    pub(crate) fn learn_group(&mut self, name_index: &NameIndex, group: &Group) {
        for member in &group.members {
            for content in 0..name_index.contents(member.place) {
                for name in name_index.names(member.place, content) {
                    self.mark(Some(name.id));
                }
            }
        }
    }

    fn mark(&mut self, id: Option<u32>) {
        if let Some(place) = id.and_then(|id| self.known.get_mut(id as usize)) {
            *place = true;
        }
    }

    fn has(&self, name_index: &NameIndex, id: u32) -> bool {
        self.known.get(id as usize).copied().unwrap_or(true)
            || name_index
                .get(id)
                .is_none_or(|entry| entry.last >= self.cut)
    }
}

/// A name that may be written.
struct Candidate {
    worth: u64,
    cost: u64,
    choice: usize,
    name: NameUse,
}

/// Give each line the names that are worth it; names without a line that is written are returned.
pub(super) fn choose(
    job: &DigestInput<'_>,
    choices: &mut [CandidateLine],
    visible: &mut VisibleNames,
    spent: u64,
) -> Vec<NameUse> {
    let mut candidates = candidates(job, choices, visible);
    match job.room {
        None => by_caps(job, choices, candidates),
        Some(room) => {
            // By worth for each unit; the order of the record decides between equals.
            candidates.sort_by(|one, two| {
                let (left, right) = (one.worth * two.cost, two.worth * one.cost);
                right.cmp(&left)
            });
            by_room(job, choices, candidates, room.saturating_sub(spent))
        }
    }
}

/// Every name that is not visible in the view, at the last line that has it.
fn candidates(
    job: &DigestInput<'_>,
    choices: &[CandidateLine],
    visible: &mut VisibleNames,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (at, choice) in choices.iter().enumerate().rev() {
        for name in &choice.line.names {
            if visible.has(job.name_index, name.id) {
                continue;
            }
            let Some(entry) = job.name_index.get(name.id) else {
                continue;
            };
            visible.mark(Some(name.id));
            let mut worth = worth(entry, *name, job.calls);
            if choice.line.kind == LineKind::Request {
                worth *= 2;
            }
            candidates.push(Candidate {
                worth,
                cost: u64::from(tokens::text_units(shown(entry)))
                    + 1
                    + line_number(name).map_or(0, |_| LINE_NUMBER),
                choice: at,
                name: *name,
            });
        }
    }
    candidates
}

/// The line of a file where a name is defined, or a search found it.
pub(super) fn line_number(name: &NameUse) -> Option<u32> {
    (name.line > 0).then_some(name.line)
}

/// Units of a number of a line and the colon before it.
const LINE_NUMBER: u64 = 2;

/// How a name is written among others: of a long path the last two components.
pub(super) fn shown(entry: &crate::names::NameEntry) -> &str {
    if entry.kind != Kind::Path {
        return &entry.shown;
    }
    let mut slashes = entry.shown.rmatch_indices('/');
    slashes.next();
    match slashes.next() {
        Some((place, _)) => &entry.shown[place + 1..],
        None => &entry.shown,
    }
}

fn by_caps(
    job: &DigestInput<'_>,
    choices: &mut [CandidateLine],
    mut candidates: Vec<Candidate>,
) -> Vec<NameUse> {
    candidates.sort_by_key(|one| std::cmp::Reverse(one.worth));
    for candidate in candidates {
        let choice = &mut choices[candidate.choice];
        let defined = candidate.name.defined;
        let cap = if defined {
            job.caps.definitions
        } else {
            job.caps.names
        };
        let has = choice.names.iter().filter(|name| name.defined == defined);
        if has.count() < cap {
            choice.names.push(candidate.name);
        }
    }
    Vec::new()
}

/// Whether a name is not a part of one that was chosen: a path names its file, `thing.part` its parts.
fn adds_information(name_index: &NameIndex, id: u32, chosen: &mut HashSet<u32>) -> bool {
    if !chosen.insert(id) {
        return false;
    }
    if let Some(entry) = name_index.get(id) {
        match entry.kind {
            Kind::Path => {
                let file = entry.shown.rsplit('/').next().unwrap_or_default();
                chosen.extend(name_index.known(file));
            }
            Kind::Dotted => chosen.extend(
                entry
                    .shown
                    .split('.')
                    .filter_map(|part| name_index.known(part)),
            ),
            Kind::File | Kind::Identifier | Kind::Dashed | Kind::Id | Kind::Word => {}
        }
    }
    true
}

fn by_room(
    job: &DigestInput<'_>,
    choices: &mut [CandidateLine],
    candidates: Vec<Candidate>,
    mut room: u64,
) -> Vec<NameUse> {
    // The word before a list of names.
    const WORD: u64 = 2;
    let mut also = Vec::new();
    let mut chosen = HashSet::new();
    for candidate in candidates {
        let choice = &mut choices[candidate.choice];
        let (list, cap) = if choice.taken {
            (&mut choice.names, job.caps.names_ever)
        } else {
            (&mut also, usize::MAX)
        };
        let cost = candidate.cost + if list.is_empty() { WORD } else { 0 };
        if cost > room || list.len() >= cap {
            continue;
        }
        if adds_information(job.name_index, candidate.name.id, &mut chosen) {
            room -= cost;
            list.push(candidate.name);
        }
        if room == 0 {
            break;
        }
    }
    also
}
