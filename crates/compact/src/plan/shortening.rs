//! Which results of the tail are shown in part, and how much of them.

use throughline_model::Content;

use crate::epoch::Shortened;
use crate::history::ToolHistory;
use crate::result_text;

/// Units that a result is brought down to, one step after the other.
const STEPS: [u64; 7] = [8_000, 5_000, 3_000, 1_200, 500, 200, 80];

/// The newest messages with results, which the next call is likeliest to be about.
const NEWEST: usize = 2;

/// Units that results before those are brought down to first.
const OLDER_STEPS: [u64; 2] = [3_000, 1_200];

/// The results of one message of the tail.
struct Results {
    seq: u64,
    /// Units of the text of each.
    sizes: Vec<u64>,
    /// Units that each may have.
    cap: u64,
    shortened: bool,
}

impl Results {
    fn units(&self) -> u64 {
        self.sizes.iter().map(|size| (*size).min(self.cap)).sum()
    }

    fn largest(&self) -> u64 {
        let largest = self.sizes.iter().max().copied();
        largest.unwrap_or_default().min(self.cap)
    }
}

/// Shorten results, oldest first and no more than needed, until the tail has at most `target` units. Gives
/// also what the tail has then.
pub(super) fn until(
    history: &ToolHistory,
    cut: usize,
    tail: u64,
    target: u64,
) -> (Vec<Shortened>, u64) {
    let record = &history.record;
    let single = history.frame.single;
    let mut left = tail;
    let mut all = Vec::new();
    for entry in &record.entries()[record.begins(cut)..] {
        // What is smaller than the last step stays as it is.
        if u64::from(entry.units) <= STEPS[STEPS.len() - 1] {
            continue;
        }
        let contents = entry.message.contents.iter();
        let results = contents.filter_map(Content::as_tool_result);
        let sizes: Vec<u64> = results.filter_map(result_text::text_size).collect();
        if sizes.is_empty() {
            continue;
        }
        let before: u64 = sizes.iter().sum();
        let results = Results {
            seq: entry.seq,
            sizes,
            cap: single,
            shortened: false,
        };
        left = left.saturating_sub(before - results.units());
        all.push(results);
    }
    let older = all.len().saturating_sub(NEWEST);
    let first = OLDER_STEPS.map(|step| (step, older));
    for (step, upto) in first.into_iter().chain(STEPS.map(|step| (step, all.len()))) {
        for results in &mut all[..upto] {
            if left <= target {
                break;
            }
            if results.largest() > step {
                let before = results.units();
                results.cap = step;
                results.shortened = true;
                left = left.saturating_sub(before - results.units());
            }
        }
    }
    let shortened = all.into_iter().filter(|results| results.shortened);
    let shortened = shortened.map(|results| Shortened {
        seq: results.seq,
        cap: results.cap,
    });
    (shortened.collect(), left)
}
