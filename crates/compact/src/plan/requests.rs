//! Which requests are shown in part, and how much of them.

use std::collections::BTreeMap;

use throughline_model::Body;

use super::bounds::Bounds;
use crate::epoch::Shortened;
use crate::history::ToolHistory;
use crate::record::Entry;
use crate::shorten::shorten;
use crate::tokens;
use crate::trials::planted;

/// Units that a text is brought down to, one step after the other.
const STEPS: [u64; 6] = [4_000, 2_000, 1_000, 500, 250, 120];

/// Requests that are shown in part, and what that saves.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortRequests {
    pub(super) shortened: Vec<Shortened>,
    /// Units that are saved, by place.
    saved: BTreeMap<usize, u64>,
}

impl ShortRequests {
    /// Shorten the first request and the input of the current turn, no more than is needed to save so
    /// many units.
    pub(super) fn saving(history: &ToolHistory, bounds: &Bounds, wanted: u64) -> Self {
        let record = &history.record;
        let groups = bounds.input.iter().chain(&bounds.first);
        let members = groups.flat_map(|at| &record.groups()[*at].members);
        let mut places: Vec<usize> = members.map(|member| member.place).collect();
        places.sort_unstable();
        places.dedup();
        let mut short = Self::default();
        if planted("compact-requests-whole") {
            return short;
        }
        for cap in STEPS {
            short = Self::default();
            for place in &places {
                let entry = &record.entries()[*place];
                let saved = saved(entry, cap);
                if saved > 0 {
                    short.saved.insert(*place, saved);
                    let seq = entry.seq;
                    short.shortened.push(Shortened { seq, cap });
                }
            }
            if short.all() >= wanted {
                break;
            }
        }
        short
    }

    fn all(&self) -> u64 {
        self.saved.values().sum()
    }

    /// Units that are saved from one place of the record to before another.
    pub(super) fn saved(&self, places: std::ops::Range<usize>) -> u64 {
        self.saved.range(places).map(|(_, saved)| saved).sum()
    }
}

/// Units that a cap for each text of a message saves.
fn saved(entry: &Entry, cap: u64) -> u64 {
    let texts = entry.message.contents.iter();
    let texts = texts.filter_map(|content| match &content.body {
        Body::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let saved = texts.map(|text| {
        let units = u64::from(tokens::text_units(text));
        if units <= cap {
            return 0;
        }
        let short = shorten(text, cap, entry.seq, throughline_model::Outcome::Ok);
        units.saturating_sub(tokens::text_units(&short).into())
    });
    saved.sum()
}
