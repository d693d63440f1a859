//! Checks that a history of appends and reads is that of one append-only log.
//!
//! Every append has a unique id, so the order of the log decides everything and no search is
//! needed: the check is O(n log n). It is complete for logs that are only appended to and read from
//! the start.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// A moment, on one clock that all clients share.
pub type Time = u64;

/// How an append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged.
    Acknowledged,
    /// It was refused.
    Refused,
    /// The outcome is unknown.
    Unknown,
}

/// One append, as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Its own id.
    pub id: u64,
    /// The run that it belongs to.
    pub run: u64,
    /// The client.
    pub process: u64,
    /// When it was called.
    pub begun: Time,
    /// When it ended; never, if its client died.
    pub ended: Option<Time>,
    /// How.
    pub outcome: Outcome,
}

/// One read of the whole log, as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The client.
    pub process: u64,
    /// When it was called.
    pub begun: Time,
    /// When it ended.
    pub ended: Time,
    /// What it saw.
    pub ids: Vec<u64>,
}

/// What clients saw of one log, and its final order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All appends.
    pub appends: Vec<Append>,
    /// All reads.
    pub reads: Vec<Read>,
    /// The order in the end.
    pub order: Vec<u64>,
}

/// Why a history is not that of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// An acknowledged append is missing.
    Lost(u64),
    /// An append is there more than once.
    Doubled(u64),
    /// A refused append is there.
    Risen(u64),
    /// An id that no append has.
    Invented(u64),
    /// A read is not a prefix of the order, from this place on.
    NotAPrefix {
        /// Which read.
        read: usize,
        /// Where it differs.
        place: usize,
    },
    /// The first ended before the second began and comes after it.
    Reordered {
        /// The first.
        first: u64,
        /// The second.
        second: u64,
    },
    /// A read began after an append ended and does not have it.
    Unseen {
        /// Which read.
        read: usize,
        /// What it misses.
        id: u64,
    },
    /// A run is not contiguous.
    Torn(u64),
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(id) => write!(f, "{id} was acknowledged and is lost"),
            Self::Doubled(id) => write!(f, "{id} is there more than once"),
            Self::Risen(id) => write!(f, "{id} was refused and is there"),
            Self::Invented(id) => write!(f, "nobody appended {id}"),
            Self::NotAPrefix { read, place } => {
                write!(f, "read {read} differs from the order at place {place}")
            }
            Self::Reordered { first, second } => {
                write!(f, "{first} ended before {second} began and stands after it")
            }
            Self::Unseen { read, id } => write!(f, "read {read} began after {id} and misses it"),
            Self::Torn(run) => write!(f, "run {run} is not in one piece"),
        }
    }
}

impl History {
    /// All anomalies; empty if there are none.
    ///
    /// ```
    /// use throughline_testkit::checkers::append_log::{Append, History, Outcome};
    ///
    /// let append = |id, begun, ended| Append {
    ///     id, run: id, process: 0, begun, ended: Some(ended), outcome: Outcome::Acknowledged,
    /// };
    /// let mut history = History { appends: vec![append(1, 0, 1), append(2, 2, 3)], ..History::default() };
    /// history.order = vec![1, 2];
    /// assert_eq!(history.check(), []);
    /// history.order = vec![2, 1];
    /// assert_eq!(history.check()[0].to_string(), "1 ended before 2 began and stands after it");
    /// ```
    pub fn check(&self) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let appends: HashMap<u64, &Append> = self
            .appends
            .iter()
            .map(|append| (append.id, append))
            .collect();
        let mut places = HashMap::with_capacity(self.order.len());
        for (place, id) in self.order.iter().enumerate() {
            if places.insert(*id, place).is_some() {
                found.push(Anomaly::Doubled(*id));
            }
            match appends.get(id).map(|append| append.outcome) {
                Some(Outcome::Refused) => found.push(Anomaly::Risen(*id)),
                Some(Outcome::Acknowledged | Outcome::Unknown) => {}
                None => found.push(Anomaly::Invented(*id)),
            }
        }
        for append in &self.appends {
            let acknowledged = append.outcome == Outcome::Acknowledged;
            if acknowledged && !places.contains_key(&append.id) {
                found.push(Anomaly::Lost(append.id));
            }
        }
        self.in_real_time(&appends, &mut found);
        self.prefixes(&mut found);
        self.fresh_reads(&places, &mut found);
        self.in_one_piece(&appends, &mut found);
        found
    }

    /// An append that ended before another one began comes before it.
    fn in_real_time(&self, appends: &HashMap<u64, &Append>, found: &mut Vec<Anomaly>) {
        // From the back: the earliest end of all later ones.
        let mut earliest: Option<(Time, u64)> = None;
        for id in self.order.iter().rev() {
            let Some(append) = appends.get(id) else {
                continue;
            };
            if let Some((ended, first)) = earliest
                && ended < append.begun
            {
                found.push(Anomaly::Reordered { first, second: *id });
            }
            // An append whose end was not seen may have taken effect at any time later.
            let sure = append.outcome == Outcome::Acknowledged;
            if let Some(ended) = append.ended.filter(|_| sure)
                && earliest.is_none_or(|(before, _)| ended < before)
            {
                earliest = Some((ended, *id));
            }
        }
    }

    fn prefixes(&self, found: &mut Vec<Anomaly>) {
        for (read, seen) in self.reads.iter().enumerate() {
            let differs = seen
                .ids
                .iter()
                .enumerate()
                .position(|(place, id)| self.order.get(place) != Some(id));
            if let Some(place) = differs {
                found.push(Anomaly::NotAPrefix { read, place });
            }
        }
    }

    /// A read has all appends that ended before it began.
    fn fresh_reads(&self, places: &HashMap<u64, usize>, found: &mut Vec<Anomaly>) {
        let mut ends: Vec<(Time, usize, u64)> = self
            .appends
            .iter()
            .filter(|append| append.outcome == Outcome::Acknowledged)
            .filter_map(|append| Some((append.ended?, *places.get(&append.id)?, append.id)))
            .collect();
        ends.sort_unstable();
        let mut reads: Vec<usize> = (0..self.reads.len()).collect();
        reads.sort_by_key(|read| self.reads[*read].begun);
        let mut next = 0;
        let mut furthest: Option<(usize, u64)> = None;
        for read in reads {
            let seen = &self.reads[read];
            while let Some((_, place, id)) = ends.get(next).filter(|end| end.0 < seen.begun) {
                if furthest.is_none_or(|(before, _)| before < *place) {
                    furthest = Some((*place, *id));
                }
                next += 1;
            }
            if let Some((_, id)) = furthest.filter(|(place, _)| *place >= seen.ids.len()) {
                found.push(Anomaly::Unseen { read, id });
            }
        }
    }

    fn in_one_piece(&self, appends: &HashMap<u64, &Append>, found: &mut Vec<Anomaly>) {
        let mut over = HashSet::new();
        let mut current = None;
        for id in &self.order {
            let Some(run) = appends.get(id).map(|append| append.run) else {
                continue;
            };
            if current != Some(run) {
                if !over.insert(run) {
                    found.push(Anomaly::Torn(run));
                }
                current = Some(run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Anomaly, Append, History, Outcome, Read};
    use crate::Rng;
    use crate::property;

    fn append(id: u64, begun: u64, ended: u64, outcome: Outcome) -> Append {
        Append {
            id,
            run: id,
            process: 0,
            begun,
            ended: Some(ended),
            outcome,
        }
    }

    /// A valid log: appends and reads take effect at one moment within their time.
    fn sound(rng: &mut Rng, size: usize) -> History {
        let mut history = History::default();
        let mut effects: Vec<(u64, bool, usize)> = Vec::new();
        for id in 0..size as u64 {
            let moment = rng.next_u64() % 1000;
            let before = rng.next_u64() % 20;
            let outcome = match rng.below(10) {
                0 => Outcome::Refused,
                1 => Outcome::Unknown,
                _ => Outcome::Acknowledged,
            };
            if rng.chance(0.3) {
                effects.push((moment, true, history.reads.len()));
                history.reads.push(Read {
                    process: 0,
                    begun: moment.saturating_sub(before),
                    ended: moment + rng.next_u64() % 20,
                    ids: Vec::new(),
                });
                continue;
            }
            let happens =
                outcome == Outcome::Acknowledged || outcome == Outcome::Unknown && rng.bool();
            if happens {
                effects.push((moment, false, history.appends.len()));
            }
            history.appends.push(Append {
                id,
                run: id,
                process: 0,
                begun: moment.saturating_sub(before),
                ended: Some(moment + rng.next_u64() % 20),
                outcome,
            });
        }
        effects.sort_unstable();
        for (_, is_read, place) in effects {
            if is_read {
                history.reads[place].ids = history.order.clone();
            } else {
                history.order.push(history.appends[place].id);
            }
        }
        history
    }

    #[test]
    fn sound_histories_pass_and_each_damage_is_found() {
        let mut damaged = 0;
        property("append log", 2000, |rng, size| {
            let history = sound(rng, 2 + size);
            if let Some(anomaly) = history.check().first() {
                return Err(format!("{anomaly} in {history:?}"));
            }
            let acknowledged: Vec<usize> = (0..history.order.len())
                .filter(|place| {
                    let id = history.order[*place];
                    let append = history.appends.iter().find(|append| append.id == id);
                    append.is_some_and(|append| append.outcome == Outcome::Acknowledged)
                })
                .collect();
            if acknowledged.is_empty() {
                return Ok(());
            }
            damaged += 1;
            let place = *rng.pick(&acknowledged);
            let id = history.order[place];
            let mut lost = history.clone();
            lost.order.remove(place);
            let mut doubled = history.clone();
            doubled.order.push(id);
            let mut invented = history.clone();
            invented.order.push(u64::MAX);
            let mut refused = history.clone();
            refused
                .appends
                .iter_mut()
                .filter(|a| a.id == id)
                .for_each(|a| a.outcome = Outcome::Refused);
            let expected = [
                (lost, Anomaly::Lost(id)),
                (doubled, Anomaly::Doubled(id)),
                (invented, Anomaly::Invented(u64::MAX)),
                (refused, Anomaly::Risen(id)),
            ];
            for (history, anomaly) in expected {
                if !history.check().contains(&anomaly) {
                    return Err(format!("{anomaly} is not found in {history:?}"));
                }
            }
            Ok(())
        });
        assert!(damaged > 100);
    }

    #[test]
    fn each_rule_has_a_history_that_breaks_it() {
        use Outcome::Acknowledged;
        let two = || History {
            appends: vec![append(1, 0, 1, Acknowledged), append(2, 2, 3, Acknowledged)],
            reads: Vec::new(),
            order: vec![1, 2],
        };
        let read = |begun, ids: &[u64]| Read {
            process: 1,
            begun,
            ended: begun + 1,
            ids: ids.to_vec(),
        };
        assert_eq!(two().check(), []);
        let mut history = two();
        history.order = vec![2, 1];
        assert_eq!(
            history.check(),
            [Anomaly::Reordered {
                first: 1,
                second: 2
            }]
        );
        let mut history = two();
        history.reads = vec![read(0, &[]), read(2, &[2])];
        assert_eq!(history.check(), [Anomaly::NotAPrefix { read: 1, place: 0 }]);
        let mut history = two();
        history.reads = vec![read(4, &[1])];
        assert_eq!(history.check(), [Anomaly::Unseen { read: 0, id: 2 }]);
        let mut history = two();
        history.appends.push(Append {
            run: 1,
            ..append(3, 4, 5, Acknowledged)
        });
        history.order.push(3);
        assert_eq!(history.check(), [Anomaly::Torn(1)]);
    }
}
