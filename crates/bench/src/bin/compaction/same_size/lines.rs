//! The lines of older messages whose words are rare: an extract by TF-IDF, without a query.

use std::collections::{HashMap, HashSet};

use throughline_testkit::trajectory::message_texts;

use crate::count::Counter;
use crate::groups::MessageGroup;

/// A line of the history.
struct ScoredLine {
    score: f64,
    /// Its place in the history.
    place: usize,
    tokens: u64,
    text: String,
}

/// Lines by score, the best first.
#[derive(Default)]
pub(super) struct Lines {
    /// Groups that were read.
    read: usize,
    /// In how many groups each word stands.
    groups_with: HashMap<String, usize>,
    known: HashSet<String>,
    ranked: Vec<ScoredLine>,
}

impl Lines {
    /// As many lines as there is room for, in the order of the history.
    pub(super) fn extract(
        &mut self,
        older: &[MessageGroup],
        room: u64,
        counter: &mut Counter,
    ) -> String {
        for group in older.iter().skip(self.read) {
            self.read += 1;
            self.learn(group, counter);
        }
        // Stable and fast on what is sorted already.
        self.ranked
            .sort_by(|one, two| two.score.total_cmp(&one.score));
        let mut left = room;
        let mut taken: Vec<&ScoredLine> = Vec::new();
        for line in &self.ranked {
            if line.tokens <= left {
                left -= line.tokens;
                taken.push(line);
            }
            if left == 0 {
                break;
            }
        }
        taken.sort_by_key(|line| line.place);
        taken.iter().map(|line| line.text.as_str()).collect()
    }

    /// A line is scored by what was known when it came in, so that a history costs no more than its
    /// length.
    fn learn(&mut self, group: &MessageGroup, counter: &mut Counter) {
        let texts: Vec<String> = group
            .iter()
            .flat_map(|message| message_texts(message))
            .collect();
        let words: HashSet<&str> = texts.iter().flat_map(|text| split(text)).collect();
        for word in words {
            *self.groups_with.entry(word.to_owned()).or_default() += 1;
        }
        let total = self.read as f64 + 1.0;
        for line in texts.iter().flat_map(|text| text.lines()) {
            let words: Vec<&str> = split(line).collect();
            if words.is_empty() || !self.known.insert(line.to_owned()) {
                continue;
            }
            let weight = |word: &&str| {
                let with = self.groups_with.get(*word).copied().unwrap_or(1);
                (total / with as f64).ln()
            };
            let sum: f64 = words.iter().map(weight).sum();
            let text = format!("{line}\n");
            self.ranked.push(ScoredLine {
                score: sum / (words.len() as f64).sqrt(),
                place: self.known.len(),
                tokens: counter.text(&text),
                text,
            });
        }
    }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.len() > 1)
}
