//! A model of the line in which runs wait for a thread, explored exhaustively.
//!
//! Processes line up, begin when the store lets them, leave, die, or are paused for so long that their
//! leases lapse and come back later; a newcomer never waits. The guards are those of
//! `docs/record.md`; taking one away must break a property, or the model does not see what the guard
//! is for.

use stateright::{Checker, Expectation, Model, Property};

/// The guards that can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Guards {
    /// While runs wait, only the first in line begins.
    turn: bool,
    /// The place of a process whose lease has lapsed does not count.
    lapse: bool,
    /// Places that were passed over are removed.
    passed: bool,
    /// A run gives up its place in the write that begins it.
    used: bool,
    /// A waiter that goes away gives up its place.
    leaves: bool,
}

const ALL: Guards = Guards {
    turn: true,
    lapse: true,
    passed: true,
    used: true,
    leaves: true,
};

/// A process, as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Up,
    /// It stands still, and its lease has lapsed.
    Paused,
    /// It is gone; its lease lapses some time.
    Dead,
    /// It is gone, and so is its lease.
    Lapsed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    processes: Vec<Life>,
    /// Which processes wait, as they know it themselves.
    waiting: Vec<bool>,
    /// Places that the store has: number and process, in the order of the numbers.
    line: Vec<(u8, usize)>,
    next: u8,
    /// Whether a run is at work.
    busy: bool,
    /// Numbers in the order in which their runs began.
    begun: Vec<u8>,
    /// A run began although one that lives and waits was accepted before it.
    jumped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    JoinWaitQueue(usize),
    Begin(usize),
    /// A run that never waited begins.
    Newcomer,
    /// The run at work ends or fails.
    End,
    Leave(usize),
    Die(usize),
    Pause(usize),
    Revive(usize),
    Lapse(usize),
}

struct Lines {
    processes: usize,
    places: u8,
    guards: Guards,
}

impl Lines {
    fn counts(&self, state: &State, process: usize) -> bool {
        let alive = matches!(state.processes[process], Life::Up | Life::Dead);
        alive || !self.guards.lapse
    }

    /// The place of the first in line.
    fn first(&self, state: &State) -> Option<(u8, usize)> {
        let mut line = state.line.iter().copied();
        line.find(|(_, process)| self.counts(state, *process))
    }

    fn begin(&self, state: &mut State, process: Option<usize>) -> bool {
        if state.busy {
            return false;
        }
        let first = self.first(state);
        let is_turn = first.is_none_or(|(_, first)| Some(first) == process);
        if self.guards.turn && !is_turn {
            return false;
        }
        let place = state
            .line
            .iter()
            .copied()
            .find(|(_, of)| Some(*of) == process);
        // What holds whatever the store does: who lives, waits and was accepted before.
        let before = |(no, of): &(u8, usize)| {
            let waits = state.waiting[*of] && matches!(state.processes[*of], Life::Up);
            waits && Some(*of) != process && place.is_none_or(|(mine, _)| *no < mine)
        };
        state.jumped |= state.line.iter().any(before);
        state.busy = true;
        if self.guards.passed {
            let upto = first.map_or(u8::MAX, |(no, _)| no);
            state.line.retain(|(no, _)| *no >= upto);
        }
        if let Some((no, of)) = place {
            state.begun.push(no);
            state.waiting[of] = false;
            if self.guards.used {
                state.line.retain(|(other, _)| *other != no);
            }
        }
        true
    }
}

impl Model for Lines {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            processes: vec![Life::Up; self.processes],
            waiting: vec![false; self.processes],
            line: Vec::new(),
            next: 1,
            busy: true,
            begun: Vec::new(),
            jumped: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Newcomer);
        actions.push(Action::End);
        for (place, life) in state.processes.iter().enumerate() {
            match life {
                Life::Up if state.waiting[place] => {
                    let acts = [Action::Begin, Action::Leave, Action::Die, Action::Pause];
                    actions.extend(acts.map(|act| act(place)));
                }
                Life::Up => actions.push(Action::JoinWaitQueue(place)),
                Life::Paused => actions.push(Action::Revive(place)),
                Life::Dead => actions.push(Action::Lapse(place)),
                Life::Lapsed => {}
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::JoinWaitQueue(place) => {
                if state.next > self.places {
                    return None;
                }
                state.waiting[place] = true;
                // One that has a place keeps it.
                if !state.line.iter().any(|(_, of)| *of == place) {
                    state.line.push((state.next, place));
                    state.next += 1;
                }
            }
            Action::Begin(place) => {
                // One whose place was passed over lines up again.
                let has_place = state.line.iter().any(|(_, of)| *of == place);
                if !has_place {
                    state.waiting[place] = false;
                } else if !self.begin(&mut state, Some(place)) {
                    return None;
                }
            }
            Action::Newcomer => {
                if !self.begin(&mut state, None) {
                    return None;
                }
            }
            Action::End => {
                if !state.busy {
                    return None;
                }
                state.busy = false;
            }
            Action::Leave(place) => {
                state.waiting[place] = false;
                if self.guards.leaves {
                    state.line.retain(|(_, of)| *of != place);
                }
            }
            Action::Die(place) => {
                state.waiting[place] = false;
                state.processes[place] = Life::Dead;
            }
            Action::Lapse(place) => state.processes[place] = Life::Lapsed,
            Action::Pause(place) => state.processes[place] = Life::Paused,
            Action::Revive(place) => state.processes[place] = Life::Up,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no run begins before one that waits", |_, state: &State| {
                !state.jumped
            }),
            Property::always(
                "runs begin in the order of acceptance",
                |_, state: &State| state.begun.is_sorted(),
            ),
            Property::always("a place begins one run", |_, state: &State| {
                state.begun.windows(2).all(|pair| pair[0] != pair[1])
            }),
            // The first living waiter may begin as soon as the thread is free.
            Property::always(
                "no run waits for one that is gone",
                |model: &Self, state: &State| {
                    let gone = |of: usize| {
                        !state.waiting[of] && state.processes[of] != Life::Dead
                            || state.processes[of] == Life::Lapsed
                    };
                    !model.first(state).is_some_and(|(_, first)| gone(first))
                },
            ),
            Property::sometimes("every place has begun", |model: &Self, state: &State| {
                state.begun.len() == usize::from(model.places)
            }),
            Property::sometimes("one behind a dead one has begun", |_, state: &State| {
                state.begun.starts_with(&[2]) && state.processes.contains(&Life::Lapsed)
            }),
        ]
    }
}

/// More states than the protocol with all its guards has. Without one of them there may be no end.
const STATES: usize = 500_000;

/// Explore everything, or the first states if there is no end: the number of states, and the
/// properties that are broken.
fn explore(guards: Guards) -> (usize, Vec<&'static str>) {
    let model = Lines {
        processes: 3,
        places: 4,
        guards,
    };
    let properties: Vec<_> = model
        .properties()
        .iter()
        .map(|property| (property.name, property.expectation.clone()))
        .collect();
    let checker = model.checker().target_state_count(STATES);
    let checker = checker.spawn_bfs().join();
    let found = checker.discoveries();
    let broken = properties.into_iter().filter(|(name, expectation)| {
        // What must never be was found, or what must be possible was not.
        found.contains_key(name) == (*expectation == Expectation::Always)
    });
    let broken: Vec<&'static str> = broken.map(|(name, _)| name).collect();
    (checker.unique_state_count(), broken)
}

#[test]
fn r5_the_line_holds_for_three_processes() {
    let (states, broken) = explore(ALL);
    println!("table line protocol: states={states} broken=0");
    assert_eq!(broken, [""; 0]);
    assert!(
        (1000..STATES).contains(&states),
        "{states} states are too few to mean anything, or not all"
    );
}

#[test]
fn r5_every_guard_of_the_line_is_needed() {
    let without: [(&str, Guards, &str); 5] = [
        (
            "turn",
            Guards { turn: false, ..ALL },
            "no run begins before one that waits",
        ),
        (
            "lapse",
            Guards {
                lapse: false,
                ..ALL
            },
            "no run waits for one that is gone",
        ),
        (
            "removal of what was passed over",
            Guards {
                passed: false,
                ..ALL
            },
            "runs begin in the order of acceptance",
        ),
        (
            "use of the place",
            Guards { used: false, ..ALL },
            "no run waits for one that is gone",
        ),
        (
            "leaving",
            Guards {
                leaves: false,
                ..ALL
            },
            "no run waits for one that is gone",
        ),
    ];
    for (name, guards, expected) in without {
        let (states, broken) = explore(guards);
        println!("table line protocol without {name}: states={states} breaks {broken:?}");
        assert!(
            broken.contains(&expected),
            "without {name} nothing breaks: {broken:?}"
        );
    }
}
