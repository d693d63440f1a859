//! Replays a session with a strategy and measures the view of each model call.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use throughline_model::Message;
use throughline_testkit::trajectory::{
    Fact, FactKind, Need, Origin, Session, facts, folded, is_refused, message_texts, needs,
    stands_in,
};
use throughline_wire::Wire;

use crate::count::Counter;
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

/// A session with its needs and facts.
pub(crate) struct Case {
    pub(crate) session: Session,
    pub(crate) needs: Vec<Need>,
    pub(crate) facts: Vec<Fact>,
    /// The tokens of the whole history at the last model call.
    pub(crate) size: u64,
}

impl Case {
    pub(crate) fn new(session: Session, counter: &mut Counter) -> Self {
        let last = session.model_calls().last().unwrap_or(0);
        Self {
            needs: needs(&session),
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
    pub(crate) needs: BTreeMap<Origin, Share>,
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
    pub(crate) missed: Vec<(String, Need)>,
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
        self.orphans += other.orphans;
        self.epochs += other.epochs;
        self.digest = hash(&(self.digest, other.digest));
        let shares = |into: &mut Share, from: &Share| {
            into.of += from.of;
            into.kept += from.kept;
        };
        shares(&mut self.steady, &other.steady);
        for (origin, share) in &other.needs {
            shares(self.needs.entry(*origin).or_default(), share);
        }
        for (kind, share) in &other.facts {
            shares(self.facts.entry(*kind).or_default(), share);
        }
        self.missed.extend(other.missed.iter().cloned());
        self.forgotten.extend(other.forgotten.iter().cloned());
    }

    pub(crate) fn need(&self, origin: Origin) -> f64 {
        self.needs.get(&origin).copied().unwrap_or_default().ratio()
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

/// Replays a session; the rules of `wires` are checked for each view.
pub(crate) fn replay(
    case: &Case,
    strategy: &mut dyn Strategy,
    wires: &[Wire],
    counter: &mut Counter,
) -> Measured {
    let mut measured = Measured::default();
    let messages = &case.session.messages;
    let calls: Vec<usize> = case.session.model_calls().collect();
    let mut before: Option<(String, u64)> = None;
    let mut needs = case.needs.iter().peekable();
    let mut pushed = 0;
    for (number, &at) in calls.iter().enumerate() {
        for (place, message) in messages.iter().enumerate().take(at).skip(pushed) {
            strategy.push(place, message);
        }
        pushed = at;
        let view = strategy.view(counter);
        let tokens = counter.view(&view.messages);
        measured.calls += 1;
        measured.tokens += tokens;
        measured.sizes.push(tokens);

        let sent = bytes(&view.messages, &Wire::OpenAiChat);
        let hit = before.as_ref().map_or(0, |(last, _)| common(last, &sent));
        if let Some((last, epoch)) = &before {
            match *epoch == view.epoch {
                true => measured.steady.add(hit == last.len()),
                false => measured.epochs += 1,
            }
        }
        measured.bytes += sent.len();
        measured.hit += hit;
        measured.digest = hash(&(measured.digest, &sent));
        let share = hit as f64 / (sent.len() as f64).max(1.0);
        measured.cost += tokens as f64 * (0.1 * share + 1.25 * (1.0 - share));

        let refused = wires.iter().any(|wire| is_refused(&view.messages, wire));
        let paired = is_paired(&view.messages, &messages[..at]);
        measured.orphans += usize::from(refused || !paired);

        let last = number + 1 == calls.len();
        if last || needs.peek().is_some_and(|need| need.at == at) {
            let text = shown(&view.messages);
            while let Some(need) = needs.next_if(|need| need.at == at) {
                let kept = stands_in(&text, &need.atom);
                measured.needs.entry(need.origin).or_default().add(kept);
                if !kept {
                    let missed = (case.session.name.clone(), need.clone());
                    measured.missed.push(missed);
                }
            }
            if last {
                let text = folded(&text);
                for fact in &case.facts {
                    let kept = match fact.kind {
                        FactKind::Written => stands_in(&text, &fact.text),
                        FactKind::Failed | FactKind::ErrorLine | FactKind::Request => {
                            text.contains(&fact.text)
                        }
                    };
                    measured.facts.entry(fact.kind).or_default().add(kept);
                    if !kept {
                        let forgotten = (case.session.name.clone(), fact.clone());
                        measured.forgotten.push(forgotten);
                    }
                }
            }
        }
        before = Some((sent, view.epoch));
        strategy.billed(tokens);
    }
    measured
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
