//! A generated case: the calls of one model response, the answer to each, and the faults.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::Rng;
use throughline_testkit::property::MAX_SIZE;
use throughline_testkit::serverkill::Guard;
use throughline_testkit::upstream::ReplyId;

use super::model::WIRES;

/// Points of the server at which an answering create can be killed.
pub(crate) const POINTS: [&str; 18] = [
    "answer.pre",
    "answer.commit_sent",
    "answer.post",
    "begin.pre",
    "begin.post",
    "step.pre",
    "step.post",
    "tool.pre_intent",
    "tool.post_intent",
    "tool.mid",
    "tool.returned",
    "result.pre",
    "result.commit_sent",
    "result.post",
    "model.pre_send",
    "publish.pre",
    "publish.commit_sent",
    "publish.post",
];

/// The number of cases without repetition: each combination of answers to two and to three calls
/// with one id, then calls with other ids. A test run does each once.
pub(crate) const SLOTS: u64 = 50;

/// The combinations of answers to calls with one id.
pub(crate) const COMBINATIONS: usize = 9 + 27;

/// The index of a case, from its size: sizes follow from the number of the case.
pub(crate) fn slot(size: usize) -> usize {
    (size - 1) * SLOTS as usize / MAX_SIZE
}

/// How the ids of the calls relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ids {
    /// All calls have the same id.
    Equal,
    /// Two of three have the same id.
    Pair,
    /// Each call has its own id.
    Different,
    /// No call has an id.
    Absent,
    /// All ids are empty.
    Empty,
}

impl Ids {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Pair => "pair",
            Self::Different => "different",
            Self::Absent => "absent",
            Self::Empty => "empty",
        }
    }
}

/// The answer to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Yes,
    No,
    /// No answer.
    Missing,
}

impl Answer {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Missing => "missing",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No | Self::Missing => Self::Yes,
        }
    }
}

/// Where an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// In the create.
    Create,
    /// In the store, as `approvals answer` does, before the create.
    Store,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: ReplyId,
    pub(crate) amount: u64,
    /// The first answer.
    pub(crate) answer: Answer,
    /// The later answer, if there was none at first.
    pub(crate) later: Answer,
    pub(crate) channel: Channel,
    /// The reason of a denial.
    pub(crate) reason: Option<String>,
}

impl Call {
    pub(crate) fn arguments(&self, code: &str) -> Value {
        json!({"case": code, "amount": self.amount})
    }
}

/// What a client does when the create was refused because answers were missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OnMissing {
    /// The create is not refused, because it has `on_open_calls: "close"`.
    Close,
    /// It sends all answers.
    SendAll,
    /// It sends the missing ones.
    SendMissing,
    /// It sends all, with one of the former ones changed.
    ChangeOne,
}

/// When the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    Never,
    /// Between request and answer.
    Between,
    /// During the answering create, at the n-th pass of this point.
    At(&'static str, usize),
    /// During the answering create, some time after this trigger.
    On(Trigger, usize),
}

/// What triggers a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The request was sent.
    Sent,
    /// The n-th execution of the tool.
    Charged(usize),
    /// The upstream was called.
    Asked,
    /// The n-th event was read; the create is streamed.
    Event(usize),
}

/// Additional actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extra {
    Nothing,
    /// First an answer names an approval request of another response.
    Foreign,
    /// Two branches answer concurrently, with the same answers.
    SameRace,
    /// Two branches answer concurrently, with different answers.
    OtherRace,
}

/// A case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Its name, which is part of inputs and arguments.
    pub(crate) code: String,
    pub(crate) wire: Wire,
    pub(crate) ids: Ids,
    pub(crate) calls: Vec<Call>,
    /// Whether the model writes text before its calls.
    pub(crate) text: bool,
    /// The order of the answers.
    pub(crate) order: Vec<usize>,
    /// New input, and how many answers precede it.
    pub(crate) input: Option<usize>,
    pub(crate) asks_streamed: bool,
    pub(crate) answers_streamed: bool,
    pub(crate) on_missing: OnMissing,
    pub(crate) kill: Kill,
    /// The point at which the server that takes over is killed too.
    pub(crate) again: Option<&'static str>,
    pub(crate) guard: Guard,
    pub(crate) extra: Extra,
    /// The answers of a branch that is too late.
    pub(crate) late_answers: Vec<Answer>,
    /// Whether the chain takes another turn, on another server.
    pub(crate) continues: bool,
}

impl Case {
    pub(crate) fn generate(rng: &mut Rng, slot: usize) -> Self {
        let code = format!("c{:012x}", rng.next_u64() >> 16);
        let (ids, answers) = combination(slot, rng);
        let wire = wire(ids, rng);
        let count = answers.len();
        let calls = calls(ids, &answers, &code, rng);
        let missing = calls.iter().filter(|call| call.answer == Answer::Missing);
        let missing = missing.count();
        let mut order: Vec<usize> = (0..count).collect();
        rng.shuffle(&mut order);
        let answers_here = calls
            .iter()
            .any(|call| call.answer != Answer::Missing && call.channel == Channel::Create);
        // A create needs some input.
        let input = (!answers_here || rng.chance(0.4)).then(|| rng.below(count + 1));
        let answers_streamed = rng.bool();
        let kill = kill(&calls, answers_streamed, rng);
        // Without a key and without an answer, a repeated create is a new request.
        let guards = match answers_here {
            true => &[Guard::Key, Guard::Sdk, Guard::None][..],
            false => &[Guard::Key, Guard::Sdk],
        };
        let guard = *rng.pick(guards);
        let extra = match rng.below(20) {
            0 => Extra::Foreign,
            1 | 2 if kill == Kill::Never && missing == 0 && answers_here => Extra::SameRace,
            3 | 4 if kill == Kill::Never && missing == 0 && answers_here => Extra::OtherRace,
            _ => Extra::Nothing,
        };
        Self {
            wire,
            ids,
            text: rng.chance(0.3),
            order,
            input,
            asks_streamed: rng.bool(),
            answers_streamed,
            on_missing: *rng.pick(&[
                OnMissing::Close,
                OnMissing::SendAll,
                OnMissing::SendMissing,
                OnMissing::ChangeOne,
            ]),
            kill,
            again: (matches!(kill, Kill::At(..) | Kill::On(..)) && rng.chance(0.15))
                .then(|| *rng.pick(&["recover.claim", "tool.pre_intent", "result.post"])),
            guard,
            extra,
            late_answers: calls
                .iter()
                .map(|_| *rng.pick(&[Answer::Yes, Answer::No]))
                .collect(),
            continues: rng.chance(0.3),
            calls,
            code,
        }
    }

    /// Whether some calls are not answered at first.
    pub(crate) fn is_partial(&self) -> bool {
        self.calls.iter().any(|call| call.answer == Answer::Missing)
    }

    /// The answers of the first create, by call.
    pub(crate) fn first(&self) -> Vec<Answer> {
        self.calls.iter().map(|call| call.answer).collect()
    }

    /// The final answers, by call; a call without one was withdrawn.
    pub(crate) fn last(&self) -> Vec<Answer> {
        let answers = self
            .calls
            .iter()
            .map(|call| match (call.answer, self.on_missing) {
                (
                    Answer::Missing,
                    OnMissing::SendAll | OnMissing::SendMissing | OnMissing::ChangeOne,
                ) => call.later,
                (answer, _) => answer,
            });
        answers.collect()
    }

    /// The same answers with one of them inverted, by call; `None` if the create answers nothing.
    pub(crate) fn changed(&self, answers: &[Answer]) -> Option<Vec<Answer>> {
        let turned = self.order.iter().copied().find(|place| {
            let call = &self.calls[*place];
            call.answer != Answer::Missing && call.channel == Channel::Create
        })?;
        let mut answers = answers.to_vec();
        answers[turned] = answers[turned].other();
        Some(answers)
    }

    /// Its ids and its first answers, for counting.
    pub(crate) fn combination(&self) -> String {
        let answers: Vec<&str> = self.calls.iter().map(|call| call.answer.as_str()).collect();
        format!("{} {}", self.ids.as_str(), answers.join(","))
    }
}

/// The ids of the calls, and the answer to each.
fn combination(slot: usize, rng: &mut Rng) -> (Ids, Vec<Answer>) {
    const ANSWERS: [Answer; 3] = [Answer::Yes, Answer::No, Answer::Missing];
    let ids = match slot {
        0..9 => return (Ids::Equal, vec![ANSWERS[slot / 3], ANSWERS[slot % 3]]),
        9..COMBINATIONS => {
            let place = slot - 9;
            let answers = [place / 9, place / 3 % 3, place % 3];
            return (Ids::Equal, answers.map(|answer| ANSWERS[answer]).into());
        }
        36..42 => Ids::Pair,
        42..46 => Ids::Different,
        46..48 => Ids::Absent,
        _ => Ids::Empty,
    };
    let count = match ids {
        Ids::Pair => 3,
        _ => 2 + usize::from(rng.bool()),
    };
    let mut answers: Vec<Answer> = (0..count)
        .map(|_| *rng.pick(&[Answer::Yes, Answer::Yes, Answer::No]))
        .collect();
    if rng.chance(0.4) {
        let missing = rng.below(count);
        answers[missing] = Answer::Missing;
    }
    (ids, answers)
}

/// A vendor whose calls can have such ids.
fn wire(ids: Ids, rng: &mut Rng) -> Wire {
    match ids {
        Ids::Equal | Ids::Pair | Ids::Different => rng.pick(&WIRES).clone(),
        // Compatible servers are not strict, and Gemini's calls had no ids for years.
        Ids::Absent => rng.pick(&[Wire::OpenAiChat, Wire::Gemini]).clone(),
        Ids::Empty => Wire::OpenAiChat,
    }
}

fn calls(ids: Ids, answers: &[Answer], code: &str, rng: &mut Rng) -> Vec<Call> {
    let id = |place: usize| ReplyId::Given(format!("call_{code}_{place}"));
    let single = rng.below(answers.len());
    let amounts = rng.below(900) as u64;
    let alike = rng.chance(0.15);
    let made = answers.iter().enumerate().map(|(place, answer)| Call {
        id: match ids {
            Ids::Equal => id(0),
            Ids::Pair => id(usize::from(place == single)),
            Ids::Different => id(place),
            Ids::Absent => ReplyId::Absent,
            Ids::Empty => ReplyId::Given(String::new()),
        },
        // Neighbours differ, unless the same call is made twice.
        amount: 1 + amounts + if alike { 0 } else { place as u64 * 7 },
        answer: *answer,
        later: *rng.pick(&[Answer::Yes, Answer::No]),
        channel: match rng.chance(0.08) {
            true => Channel::Store,
            false => Channel::Create,
        },
        reason: rng
            .chance(0.7)
            .then(|| format!("not this one ({code}.{place})")),
    });
    made.collect()
}

fn kill(calls: &[Call], streamed: bool, rng: &mut Rng) -> Kill {
    let moments = *rng.pick(&[0, 20, 2_000, 20_000]);
    let moments = rng.below(moments + 1);
    let charges = calls
        .iter()
        .filter(|call| call.answer == Answer::Yes)
        .count();
    match rng.below(20) {
        0..=1 => Kill::Between,
        2..=4 => {
            let point: &&'static str = rng.pick(&POINTS);
            Kill::At(point, 1 + usize::from(rng.chance(0.3)))
        }
        5..=7 => {
            let trigger = match rng.below(4) {
                0 => Trigger::Sent,
                1 if charges > 0 => Trigger::Charged(1 + rng.below(charges)),
                2 if streamed => Trigger::Event(1 + rng.below(12)),
                _ => Trigger::Asked,
            };
            Kill::On(trigger, moments)
        }
        _ => Kill::Never,
    }
}
