//! Holds what a model wrote against the record, sentence by sentence.
//!
//! Only what can be decided is decided: whether names and numbers occur, and whether a plain claim that something was
//! done, worked or failed agrees with its results. A sentence that fails is left out whole.

use std::collections::HashMap;

use super::NarrativeScope;
use crate::history::ToolHistory;
use crate::names::{Kind, scan};
use crate::recall::each_text;
use crate::text;

/// Characters of one sentence.
const LONGEST: usize = 800;
/// How often the texts of the part are looked through for a name that is not known as it is written.
const LOOKS: u32 = 32;

/// What is left of a text.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) text: String,
    pub(super) kept: u64,
    pub(super) dropped: u64,
}

pub(super) fn checked(history: &ToolHistory, part: &NarrativeScope, answer: &str) -> Checked {
    let mut judge = SentenceChecker {
        history,
        part,
        ends: ends(history, part),
        looks: LOOKS,
    };
    let mut checked = Checked::default();
    for line in answer.lines() {
        let mut first = true;
        for sentence in sentences(line) {
            let sentence = text::one_line(sentence, LONGEST);
            if sentence.is_empty() {
                continue;
            }
            if !judge.stands(&sentence) {
                checked.dropped += 1;
                continue;
            }
            checked.kept += 1;
            if !checked.text.is_empty() {
                checked.text.push(if first { '\n' } else { ' ' });
            }
            checked.text.push_str(&sentence);
            first = false;
        }
    }
    checked
}

/// How the calls about each thing ended.
fn ends<'h>(history: &'h ToolHistory, part: &NarrativeScope) -> HashMap<&'h str, End> {
    let mut ends: HashMap<&str, End> = HashMap::new();
    let facts = history.facts.iter().flatten();
    for line in facts.flat_map(|facts| &facts.lines) {
        let (Some(ended), Some(key)) = (line.ended, &line.key) else {
            continue;
        };
        if line.seq > part.last || key.is_empty() {
            continue;
        }
        let end = ends.entry(key).or_default();
        end.worked = ended.is_ok() && !ended.failed();
        end.ever_failed |= !end.worked;
        end.ever_ran |= ended.ran();
    }
    ends
}

/// How the calls about one thing ended.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// Whether the last of them ran and succeeded.
    worked: bool,
    /// Whether one of them did not.
    ever_failed: bool,
    /// Whether one of them was carried out.
    ever_ran: bool,
}

/// The sentences of a line: each ends with a full stop, or its like, and a space.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = |(at, letter): (usize, char)| {
            let after = &rest[at + letter.len_utf8()..];
            let end = match letter {
                '。' | '！' | '？' => true,
                '.' | '!' | '?' => after.starts_with(char::is_whitespace),
                _ => false,
            };
            end.then_some(at + letter.len_utf8())
        };
        let end = rest.char_indices().find_map(ends).unwrap_or(rest.len());
        let (sentence, after) = rest.split_at(end);
        rest = after.trim_start();
        Some(sentence)
    })
}

struct SentenceChecker<'h> {
    history: &'h ToolHistory,
    part: &'h NarrativeScope,
    ends: HashMap<&'h str, End>,
    looks: u32,
}

impl SentenceChecker<'_> {
    fn stands(&mut self, sentence: &str) -> bool {
        // A truncated sentence may have another meaning; what looks like a line of a digest is
        // none.
        let whole = !sentence.ends_with('…') && !sentence.contains("(Earlier:");
        whole && self.is_founded(sentence) && !self.is_contradicted(sentence)
    }

    /// Whether everything that it names occurs in the record.
    fn is_founded(&mut self, sentence: &str) -> bool {
        let mut names = Vec::new();
        scan(sentence, |name| names.push(name));
        let known = names.iter().all(|name| {
            let counts = match name.kind {
                Kind::Path | Kind::File | Kind::Id | Kind::Identifier | Kind::Dotted => true,
                // People write dashes; ids have digits.
                Kind::Dashed => name.shown.bytes().any(|byte| byte.is_ascii_digit()),
                Kind::Word => false,
            };
            let name_index = &self.history.name_index;
            let entry = name_index.known(name.key).and_then(|id| name_index.get(id));
            // Paths are known by their last components; what stands before these counts too.
            !counts
                || entry.is_some_and(|entry| *entry.shown == *name.shown)
                || self.finds(name.shown)
        });
        known && self.numbers_occur(sentence)
    }

    /// Whether numbers in it that could be ids occur, and references are to messages that exist.
    fn numbers_occur(&mut self, sentence: &str) -> bool {
        let mut before = None;
        let mut rest = sentence;
        while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let before_digits = rest[..at].chars().next_back().or(before);
            let digits = rest[at..].len()
                - rest[at..]
                    .trim_start_matches(|letter: char| letter.is_ascii_digit())
                    .len();
            let number = &rest[at..at + digits];
            rest = &rest[at + digits..];
            before = number.chars().next_back();
            let alone = |letter: Option<char>| letter.is_none_or(|one| !one.is_alphanumeric());
            let stands = match before_digits {
                Some('#') => number
                    .parse()
                    .is_ok_and(|seq| self.history.record.exactly(seq).is_some()),
                _ if digits >= 4 && alone(before_digits) && alone(rest.chars().next()) => {
                    self.finds(number)
                }
                _ => true,
            };
            if !stands {
                return false;
            }
        }
        true
    }

    /// Whether the messages of the part, or what is shown before them, have a name as it is written.
    fn finds(&mut self, name: &str) -> bool {
        if self.looks == 0 {
            return false;
        }
        self.looks -= 1;
        let record = &self.history.record;
        let from = record.place(self.part.first);
        let to = record.place(self.part.last.saturating_add(1));
        let entries = record.entries()[from..to.max(from)].iter();
        let mut found = false;
        for content in entries.flat_map(|entry| &entry.message.contents) {
            each_text(content, |text| found = found || has(text, name));
        }
        let pinned = self.history.view.messages.iter();
        let shown = pinned.take(self.history.view.head);
        for content in shown.flat_map(|message| &message.contents) {
            each_text(content, |text| found = found || has(text, name));
        }
        found
    }

    /// Whether it claims that something was done, worked or failed although the results contradict it.
    fn is_contradicted(&self, sentence: &str) -> bool {
        let words: Vec<String> = words(sentence).collect();
        let named = |key: &str| has(sentence, key);
        let literal: Vec<&End> = {
            let ends = self.ends.iter().filter(|(key, _)| named(key));
            ends.map(|(_, end)| end).collect()
        };
        let never_ran = !literal.is_empty() && literal.iter().all(|end| !end.ever_ran);
        if never_ran && says_done(&words) {
            return true;
        }
        let Some(claim) = claim(&words) else {
            return false;
        };
        let about = match literal.is_empty() {
            false => literal,
            true => {
                let spoken = |word: &str| words.iter().any(|one| stem(one) == stem(word));
                let shares =
                    |key: &str| self::words(key).any(|word| word.len() > 3 && spoken(&word));
                let ends = self.ends.iter().filter(|(key, _)| shares(key));
                ends.map(|(_, end)| end).collect()
            }
        };
        match claim {
            Claim::Worked => about.iter().any(|end| !end.worked),
            Claim::Failed => !about.is_empty() && about.iter().all(|end| !end.ever_failed),
        }
    }
}

/// Whether a text has a name that is not the inside of a longer one.
fn has(text: &str, name: &str) -> bool {
    let inside = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    };
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !inside(before) && !inside(after)
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Worked,
    Failed,
}

/// What a sentence plainly claims; `None` if it claims both, or what should or might be.
fn claim(words: &[String]) -> Option<Claim> {
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if any(OPEN) {
        return None;
    }
    let claim = match (any(WORKED), any(FAILED)) {
        (true, false) => Claim::Worked,
        (false, true) => Claim::Failed,
        (true, true) | (false, false) => return None,
    };
    Some(match (any(NOT), claim) {
        (false, claim) => claim,
        (true, Claim::Worked) => Claim::Failed,
        (true, Claim::Failed) => Claim::Worked,
    })
}

/// Whether a sentence plainly claims that something was done, and not only requested.
fn says_done(words: &[String]) -> bool {
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    any(DONE) && !any(NOT) && !any(OPEN) && !any(UNDONE) && !any(FAILED)
}

/// Words of what tools do, as something that happened.
const DONE: &[&str] = &[
    "added",
    "applied",
    "built",
    "called",
    "changed",
    "checked",
    "committed",
    "copied",
    "created",
    "deleted",
    "edited",
    "executed",
    "fetched",
    "found",
    "inserted",
    "installed",
    "looked",
    "modified",
    "moved",
    "opened",
    "patched",
    "pushed",
    "ran",
    "read",
    "removed",
    "renamed",
    "replaced",
    "restarted",
    "returned",
    "rewritten",
    "rewrote",
    "run",
    "saved",
    "searched",
    "sent",
    "set",
    "showed",
    "started",
    "updated",
    "viewed",
    "written",
    "wrote",
];
/// Words of what was asked for and did not come about, or of which that is not known.
const UNDONE: &[&str] = &[
    "attempt",
    "attempted",
    "cancelled",
    "canceled",
    "declined",
    "denied",
    "expired",
    "limit",
    "lost",
    "perhaps",
    "planned",
    "proposed",
    "refused",
    "rejected",
    "terminated",
    "tried",
    "unknown",
    "withdrawn",
];

const WORKED: &[&str] = &[
    "pass",
    "passes",
    "passed",
    "passing",
    "succeed",
    "succeeds",
    "succeeded",
    "successful",
    "successfully",
    "fixed",
    "works",
    "worked",
    "green",
    "resolved",
    "completed",
    "compiles",
];
const FAILED: &[&str] = &[
    "fail",
    "fails",
    "failed",
    "failing",
    "failure",
    "failures",
    "broken",
    "broke",
    "crashes",
    "crashed",
    "unresolved",
];
const NOT: &[&str] = &[
    "not", "no", "never", "cannot", "none", "nothing", "isn", "wasn", "doesn", "didn", "don",
    "won", "hasn", "couldn",
];
/// Words of what is to be, or of more than one state.
const OPEN: &[&str] = &[
    "should", "must", "will", "would", "could", "might", "may", "if", "until", "unless", "whether",
    "when", "first", "then", "before", "after", "now", "to", "need", "needs", "try",
];

/// The words of a text in lower case: letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// A word without the ending of many.
fn stem(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}
