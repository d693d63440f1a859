//! Replays a session with a strategy and measures the view of each model call.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use throughline_model::{Message, Role};
use throughline_testkit::trajectory::{
    Fact, FactKind, Origin, Session, facts, folded, is_refused, message_texts, needs, stands_in,
};
use throughline_wire::Wire;

use crate::count::Counter;
use crate::probe::{Metric, Prober, Probes};
use crate::wire::{bytes, is_paired};

/// What a model is sent.
pub(crate) struct View {
    /// The messages.
    pub(crate) messages: Vec<Arc<Message>>,
    /// Its epoch: between epochs, earlier parts of a view must not change.
    pub(crate) epoch: u64,
}

/// A strategy.
pub(crate) trait Strategy {
    /// A message was added to the record.
    fn push(&mut self, place: usize, message: &Arc<Message>);
    /// The view of the next model call.
    fn view(&mut self, counter: &mut Counter) -> View;
    /// The tokens that the vendor billed for the previous view.
    fn billed(&mut self, tokens: u64);
}

/// A session with what its views must show.
pub(crate) struct Case {
    pub(crate) session: Session,
    pub(crate) probes: Probes,
    pub(crate) facts: Vec<Fact>,
    /// The tokens of the whole history at the last model call.
    pub(crate) size: u64,
}

impl Case {
    pub(crate) fn new(session: Session, counter: &mut Counter) -> Self {
        let last = session.model_calls().last().unwrap_or(0);
        Self {
            probes: Probes::of(&session, &needs(&session)),
            facts: facts(&session),
            size: counter.view(&session.messages[..last]),
            session,
        }
    }
}

/// A count and its total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) of: usize,
    pub(crate) kept: usize,
}

impl Share {
    fn add(&mut self, kept: bool) {
        self.of += 1;
        self.kept += usize::from(kept);
    }

    /// The ratio; 1 if the total is 0.
    pub(crate) fn ratio(self) -> f64 {
        match self.of {
            0 => 1.0,
            of => self.kept as f64 / of as f64,
        }
    }
}

/// The measurements of a session, which can be added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) calls: usize,
    pub(crate) tokens: u64,
    /// The tokens of each view.
    pub(crate) sizes: Vec<u64>,
    /// Views that are over the budget because of a single message that may not be cut.
    pub(crate) forced: usize,
    pub(crate) kept: BTreeMap<Metric, Share>,
    pub(crate) facts: BTreeMap<FactKind, Share>,
    pub(crate) bytes: usize,
    pub(crate) hit: usize,
    pub(crate) cost: f64,
    pub(crate) orphans: usize,
    pub(crate) epochs: u64,
    /// A digest of all bytes of all views.
    pub(crate) digest: u64,
    /// Views that begin with the previous view of the same epoch, of all such views.
    pub(crate) steady: Share,
    pub(crate) missed: Vec<(String, String)>,
    pub(crate) forgotten: Vec<(String, Fact)>,
}

impl Measured {
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.tokens += other.tokens;
        self.sizes.extend_from_slice(&other.sizes);
        self.bytes += other.bytes;
        self.hit += other.hit;
        self.cost += other.cost;
        self.forced += other.forced;
        self.orphans += other.orphans;
        self.epochs += other.epochs;
        self.digest = hash(&(self.digest, other.digest));
        let shares = |into: &mut Share, from: &Share| {
            into.of += from.of;
            into.kept += from.kept;
        };
        shares(&mut self.steady, &other.steady);
        for (metric, share) in &other.kept {
            shares(self.kept.entry(*metric).or_default(), share);
        }
        for (kind, share) in &other.facts {
            shares(self.facts.entry(*kind).or_default(), share);
        }
        self.missed.extend(other.missed.iter().cloned());
        self.forgotten.extend(other.forgotten.iter().cloned());
    }

    pub(crate) fn need(&self, origin: Origin) -> f64 {
        self.share(Metric::Need(origin)).ratio()
    }

    pub(crate) fn share(&self, metric: Metric) -> Share {
        self.kept.get(&metric).copied().unwrap_or_default()
    }

    pub(crate) fn fact(&self, kind: FactKind) -> f64 {
        self.facts.get(&kind).copied().unwrap_or_default().ratio()
    }

    /// How many views exceed a budget.
    pub(crate) fn over(&self, budget: u64) -> usize {
        self.sizes.iter().filter(|size| **size > budget).count()
    }

    pub(crate) fn hits(&self) -> f64 {
        self.hit as f64 / (self.bytes as f64).max(1.0)
    }
}

/// How a session is replayed.
#[derive(Clone, Copy)]
pub(crate) struct Replay<'a> {
    /// The vendors whose rules are checked for each view.
    pub(crate) wires: &'a [Wire],
    /// The budget, if there is one.
    pub(crate) budget: Option<u64>,
}

/// Replays a session with a strategy: each call's view follows from the one before, as an agent gets
/// them.
pub(crate) fn replay(
    case: &Case,
    strategy: &mut dyn Strategy,
    how: Replay<'_>,
    counter: &mut Counter,
) -> Measured {
    let mut measured = Measured::default();
    let messages = &case.session.messages;
    let mut prober = Prober::new(&case.probes);
    let mut before: Option<(String, u64)> = None;
    let mut pushed = 0;
    let mut last = Vec::new();
    for at in case.session.model_calls() {
        for (place, message) in messages.iter().enumerate().take(at).skip(pushed) {
            strategy.push(place, message);
        }
        pushed = at;
        let view = strategy.view(counter);
        let tokens = counter.view(&view.messages);
        measured.calls += 1;
        measured.tokens += tokens;
        measured.sizes.push(tokens);
        let over = how.budget.is_some_and(|budget| tokens > budget);
        measured.forced += usize::from(over && is_forced(&view.messages, how.budget, counter));
        measured.send(&view, tokens, &mut before);

        let refused = how
            .wires
            .iter()
            .any(|wire| is_refused(&view.messages, wire));
        let paired = is_paired(&view.messages, &messages[..at]);
        measured.orphans += usize::from(refused || !paired);
        for checked in prober.check(at, &view.messages) {
            let share = measured.kept.entry(checked.metric).or_default();
            share.add(checked.is_shown);
            if let Some(what) = checked.missed {
                let what = format!("{} at {at}: {what}", checked.metric.name());
                measured.missed.push((case.session.name.clone(), what));
            }
        }
        strategy.billed(tokens);
        last = view.messages;
    }
    measured.remember(case, &last);
    counter.forget_messages();
    measured
}

impl Measured {
    /// Adds the bytes of a view, and what they have in common with the view before.
    fn send(&mut self, view: &View, tokens: u64, before: &mut Option<(String, u64)>) {
        let sent = bytes(&view.messages, &Wire::OpenAiChat);
        let hit = before.as_ref().map_or(0, |(last, _)| common(last, &sent));
        if let Some((last, epoch)) = before {
            match *epoch == view.epoch {
                true => self.steady.add(hit == last.len()),
                false => self.epochs += 1,
            }
        }
        self.bytes += sent.len();
        self.hit += hit;
        self.digest = hash(&(self.digest, &sent));
        let share = hit as f64 / (sent.len() as f64).max(1.0);
        self.cost += tokens as f64 * (0.1 * share + 1.25 * (1.0 - share));
        *before = Some((sent, view.epoch));
    }

    /// Searches the last view for the facts of the session.
    fn remember(&mut self, case: &Case, last: &[Arc<Message>]) {
        let text = folded(&shown(last));
        for fact in &case.facts {
            let kept = match fact.kind {
                FactKind::Written => stands_in(&text, &fact.text),
                FactKind::Failed | FactKind::ErrorLine | FactKind::Request => {
                    text.contains(&fact.text)
                }
            };
            self.facts.entry(fact.kind).or_default().add(kept);
            if !kept {
                let forgotten = (case.session.name.clone(), fact.clone());
                self.forgotten.push(forgotten);
            }
        }
    }
}

/// Whether a single message that may not be cut is larger than the budget: instructions, or what the
/// model wrote itself. Results and requests may be cut.
fn is_forced(view: &[Arc<Message>], budget: Option<u64>, counter: &mut Counter) -> bool {
    view.iter().any(|message| {
        let whole = match message.role {
            Role::System | Role::Developer | Role::Assistant => true,
            Role::User | Role::Tool | Role::Other(_) => false,
        };
        whole && budget.is_some_and(|budget| counter.message(message) > budget)
    })
}

fn shown(view: &[Arc<Message>]) -> String {
    let texts: Vec<String> = view
        .iter()
        .flat_map(|message| message_texts(message))
        .collect();
    texts.join("\n")
}

/// The length of the common prefix of two texts.
fn common(one: &str, two: &str) -> usize {
    let (one, two) = (one.as_bytes(), two.as_bytes());
    let most = one.len().min(two.len());
    // Whole blocks first: most views share most of the previous one.
    let mut at = 0;
    while at + 4096 <= most && one[at..at + 4096] == two[at..at + 4096] {
        at += 4096;
    }
    at + one[at..most]
        .iter()
        .zip(&two[at..most])
        .take_while(|(a, b)| a == b)
        .count()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
