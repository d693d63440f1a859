//! A thread of a campaign, and its next action.

use throughline_testkit::Rng;
use throughline_testkit::loopkill::{Code, Keeping, Kind, WIRES};

/// The state of a thread, as far as the test knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has no unfinished run.
    Free,
    /// A run on it died.
    Left,
    /// A run waits for an approval.
    Parked,
    /// The approval was answered, and the run was not resumed.
    Answered,
}

/// The owner of a thread's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    Us,
    /// The service is to own it, and no turn has requested that yet.
    ServiceNext,
    Service,
    /// Who its name says: services that store conversations, or the application.
    ByName(Keeping),
}

/// A thread of a campaign.
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) standing: Standing,
    pub(crate) keeper: Keeper,
    /// The turn in progress, or the unfinished one.
    pub(crate) current: Option<Code>,
    turn: u32,
    /// The wire or the service of the last command.
    wire: &'static str,
}

/// The aim of a campaign's actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// All actions, in these modes.
    Work(Modes),
    /// Settle unfinished runs, begin nothing.
    Settle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modes {
    Both,
    PerRun,
}

/// A command, without its number.
pub(crate) struct Order {
    pub(crate) line: String,
    /// The turn that it sends.
    pub(crate) sends: Option<Code>,
    /// Whether its answer contains all messages of the turn.
    pub(crate) answers: bool,
}

fn order(line: String) -> Order {
    Order {
        line,
        sends: None,
        answers: true,
    }
}

fn how(rng: &mut Rng) -> &'static str {
    if rng.bool() { "events" } else { "whole" }
}

impl Thread {
    pub(crate) fn new(name: String, keeper: Keeper) -> Self {
        Self {
            name,
            standing: Standing::Free,
            keeper,
            current: None,
            turn: 0,
            wire: "openai-responses",
        }
    }

    /// A thread whose name says who keeps its history.
    pub(crate) fn kept_by_name(name: &str) -> Self {
        Self::new(name.to_owned(), Keeper::ByName(Keeping::of(name)))
    }

    /// Whether a service owns its history.
    pub(crate) fn is_kept_by_service(&self) -> bool {
        match self.keeper {
            Keeper::Us => false,
            Keeper::ServiceNext | Keeper::Service => true,
            Keeper::ByName(keeping) => !keeping.services().is_empty(),
        }
    }

    /// The wire or the service for the next command.
    fn wire(&self, rng: &mut Rng) -> &'static str {
        static NAMES: [&str; 5] = [
            "openai-responses",
            "openai-chat",
            "anthropic",
            "gemini",
            "foundry",
        ];
        debug_assert!(WIRES.iter().all(|wire| NAMES.contains(&wire.as_str())));
        match self.keeper {
            Keeper::Us => rng.pick::<&str>(&NAMES),
            Keeper::ServiceNext | Keeper::Service => "openai-responses",
            Keeper::ByName(keeping) => match keeping.services() {
                [] => rng.pick::<&str>(&NAMES),
                // Mostly the service goes on that began.
                services if services.contains(&self.wire) && self.standing != Standing::Free => {
                    match rng.chance(0.85) {
                        true => self.wire,
                        false => rng.pick::<&str>(services),
                    }
                }
                services => rng.pick::<&str>(services),
            },
        }
    }

    /// Cancels what runs on it, or was left.
    pub(crate) fn cancel(&self) -> Order {
        let wire = match self.is_kept_by_service() {
            true => self.wire,
            false => "openai-responses",
        };
        Order {
            line: format!("cancel {} {wire}", self.name),
            sends: None,
            answers: false,
        }
    }

    /// A turn of a kind, with a wire.
    pub(crate) fn turn(&mut self, kind: Kind, wire: &str, modes: Modes, rng: &mut Rng) -> Order {
        self.turn += 1;
        let code = Code {
            thread: self.name.clone(),
            turn: self.turn,
            seed: rng.below(100_000) as u32,
            kind,
        };
        let mode = match modes {
            Modes::Both if rng.bool() => "per_call",
            Modes::Both | Modes::PerRun => "per_run",
        };
        let answers = if rng.chance(0.7) { "streamed" } else { "whole" };
        let left = match rng.chance(0.15) {
            true => "close",
            false => "resume",
        };
        let (name, how) = (&self.name, how(rng));
        Order {
            line: format!("turn {name} {code} {wire} {mode} {how} {answers} {left}"),
            sends: Some(code),
            answers: true,
        }
    }

    /// Queues a message for the next model call.
    pub(crate) fn leave(&self, rng: &mut Rng) -> Order {
        let name = &self.name;
        order(format!("leave {name} {name}-{}", rng.next_u64()))
    }

    /// The next action.
    pub(crate) fn next(&mut self, aim: Aim, rng: &mut Rng) -> Option<Order> {
        let name = self.name.clone();
        let wire = self.wire(rng);
        self.wire = wire;
        let resume = |rng: &mut Rng| {
            let answers = if rng.chance(0.8) { "streamed" } else { "whole" };
            order(format!("resume {name} {wire} {} {answers}", how(rng)))
        };
        let reply = |rng: &mut Rng| {
            let word = if rng.chance(0.7) { "yes" } else { "no" };
            order(format!("reply {name} {wire} {} {word}", how(rng)))
        };
        let modes = match (aim, self.standing) {
            (Aim::Work(modes), _) => modes,
            (Aim::Settle, Standing::Free) => return None,
            (Aim::Settle, Standing::Parked) => return Some(reply(rng)),
            (Aim::Settle, Standing::Left | Standing::Answered) => return Some(resume(rng)),
        };
        if self.keeper == Keeper::ServiceNext && self.standing == Standing::Free {
            self.keeper = Keeper::Service;
            return Some(order(format!("own {name} service openai")));
        }
        Some(match (self.standing, rng.below(20)) {
            (Standing::Free, 0) => self.leave(rng),
            (Standing::Free, 1) => self.turn(Kind::Budget, wire, modes, rng),
            (Standing::Parked | Standing::Left, 17) => self.leave(rng),
            (Standing::Free, 2..=6) => self.turn(Kind::Sign, wire, modes, rng),
            (Standing::Free, 7) => self.turn(Kind::Brief, wire, modes, rng),
            (Standing::Free, 8..=10) => self.turn(Kind::Budget, wire, modes, rng),
            (Standing::Left, 0..=9) | (Standing::Answered, 0..=15) => resume(rng),
            (Standing::Left | Standing::Answered | Standing::Parked, 19) => self.cancel(),
            (Standing::Parked, 0..=8) => reply(rng),
            (Standing::Parked, 9..=12) => order(format!("decide {name} yes")),
            (Standing::Parked, 13 | 14) => order(format!("decide {name} no")),
            (Standing::Parked, 15) => order(format!("decide {name} forged")),
            (Standing::Parked, 16) => order(format!("decide {name} foreign")),
            (Standing::Free | Standing::Left | Standing::Parked | Standing::Answered, _) => {
                self.turn(Kind::Plain, wire, modes, rng)
            }
        })
    }
}
