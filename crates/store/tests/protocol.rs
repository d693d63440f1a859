//! A model of the protocol by which workers share a run, explored exhaustively.
//!
//! Two or three workers work on one run with one tool call; any of them may crash or be paused at
//! any point, and any other may take the run over while it is paused, because a paused worker
//! cannot be told from a dead one. A second run without a lease publishes on the same thread. The
//! guards are those of `docs/record.md`; taking one away (or two that back each other up) must
//! break a property, or the model does not see what the guard is for.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, Model, Property};

/// The guards that can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Guards {
    /// An intent is committed before a call is dispatched.
    intent: bool,
    /// The key of a call does not depend on who dispatches it.
    stable_key: bool,
    /// A head moves only from the base of what is published.
    head: bool,
    /// A write carries the epoch of its lease.
    fence: bool,
    /// A write carries the state of the step or call that it changes.
    step_state: bool,
}

const ALL: Guards = Guards {
    intent: true,
    stable_key: true,
    head: true,
    fence: true,
    step_state: true,
};

/// What the tool of the run is declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tool {
    /// Never run twice.
    Once,
    /// Run again with the same key.
    Keyed,
}

/// Where the call stands in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    /// The step that makes it is not recorded.
    None,
    Planned,
    Intent,
    Done,
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    /// It has nothing to do with the run.
    Idle,
    /// It has the lease and looks at the journal.
    Decide,
    /// It has the model's answer and records the step.
    Step,
    /// It records that it is about to dispatch.
    Intend,
    /// It dispatches.
    Dispatch,
    /// It has an outcome, or knows that none is known, and records it.
    Result,
    /// It publishes.
    Publish,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Worker {
    next: Next,
    epoch: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    workers: Vec<Worker>,
    /// The run: its epoch, its call, whether it is published.
    epoch: u8,
    call: Call,
    committed: bool,
    /// How often its step was recorded, its result stored, its node published.
    steps: u8,
    results: u8,
    nodes: u8,
    /// Keys under which the tool was run, in order.
    dispatched: Vec<u8>,
    /// The head: 0 the base of both runs, 1 the leased run's node, 2 the free run's.
    head: u8,
    /// A head moved away from something that is not its base.
    torn: bool,
    /// The free run has published.
    free: bool,
    crashes: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    /// A worker takes the run over (or begins to work on it).
    Claim(usize),
    /// A worker does what it does next.
    Go(usize),
    /// A worker dies and starts anew.
    Crash(usize),
    /// The run without a lease publishes.
    Free,
}

struct Protocol {
    workers: usize,
    tool: Tool,
    guards: Guards,
    /// How often a worker may die, and how often the run may be taken over.
    crashes: u8,
    takeovers: u8,
}

impl Protocol {
    /// Whether the store takes a write of this worker on a run in this state.
    fn accepts(&self, state: &State, worker: &Worker, step_fits: bool) -> bool {
        let fenced = self.guards.fence && worker.epoch != state.epoch;
        let refused = self.guards.step_state && !step_fits;
        // A run that is over takes nothing: that is part of its state.
        let over = self.guards.step_state && state.committed;
        !(fenced || refused || over)
    }

    fn go(&self, state: &mut State, place: usize) {
        let worker = state.workers[place].clone();
        let to = |state: &mut State, next| state.workers[place].next = next;
        match worker.next {
            Next::Idle => {}
            Next::Decide => {
                let next = match (state.call, self.tool) {
                    (Call::None, _) => Next::Step,
                    (Call::Planned, _) if self.guards.intent => Next::Intend,
                    (Call::Planned, _) => Next::Dispatch,
                    // A worker before may have run it: say so, or run it again under its key.
                    (Call::Intent, Tool::Once) => Next::Result,
                    (Call::Intent, Tool::Keyed) => Next::Dispatch,
                    (Call::Done, _) => Next::Publish,
                };
                to(state, next);
            }
            Next::Step => {
                if self.accepts(state, &worker, state.call == Call::None) {
                    state.call = Call::Planned;
                    state.steps += 1;
                    let next = if self.guards.intent {
                        Next::Intend
                    } else {
                        Next::Dispatch
                    };
                    to(state, next);
                } else {
                    to(state, Next::Idle);
                }
            }
            Next::Intend => {
                if self.accepts(state, &worker, state.call == Call::Planned) {
                    state.call = Call::Intent;
                    to(state, Next::Dispatch);
                } else {
                    to(state, Next::Idle);
                }
            }
            Next::Dispatch => {
                // The outside world has no guard.
                let key = if self.guards.stable_key {
                    0
                } else {
                    worker.epoch
                };
                state.dispatched.push(key);
                to(state, Next::Result);
            }
            Next::Result => {
                let waits = matches!(state.call, Call::Planned | Call::Intent);
                if self.accepts(state, &worker, waits) {
                    state.call = Call::Done;
                    state.results += 1;
                    to(state, Next::Publish);
                } else {
                    to(state, Next::Idle);
                }
            }
            Next::Publish => {
                let moved = state.head != 0;
                let stale = self.guards.head && moved;
                if !stale && self.accepts(state, &worker, state.call == Call::Done) {
                    state.nodes += 1;
                    state.committed = true;
                    state.torn |= moved;
                    state.head = 1;
                }
                to(state, Next::Idle);
            }
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            workers: vec![
                Worker {
                    next: Next::Idle,
                    epoch: 0,
                };
                self.workers
            ],
            epoch: 0,
            call: Call::None,
            committed: false,
            steps: 0,
            results: 0,
            nodes: 0,
            dispatched: Vec::new(),
            head: 0,
            torn: false,
            free: false,
            crashes: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (place, worker) in state.workers.iter().enumerate() {
            if worker.next == Next::Idle {
                if !state.committed && state.epoch < self.takeovers {
                    actions.push(Action::Claim(place));
                }
            } else {
                actions.push(Action::Go(place));
                if state.crashes < self.crashes {
                    actions.push(Action::Crash(place));
                }
            }
        }
        if !state.free {
            actions.push(Action::Free);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Claim(place) => {
                state.epoch += 1;
                state.workers[place] = Worker {
                    next: Next::Decide,
                    epoch: state.epoch,
                };
            }
            Action::Go(place) => self.go(&mut state, place),
            Action::Crash(place) => {
                state.workers[place] = Worker {
                    next: Next::Idle,
                    epoch: 0,
                };
                state.crashes += 1;
            }
            Action::Free => {
                state.free = true;
                // It moves the head only from its base; otherwise it is a branch.
                if !self.guards.head || state.head == 0 {
                    state.torn |= state.head != 0;
                    state.head = 2;
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "an undeclared tool is run at most once",
                |model: &Self, state: &State| {
                    model.tool != Tool::Once || state.dispatched.len() <= 1
                },
            ),
            Property::always("a call has one key", |_, state: &State| {
                state.dispatched.windows(2).all(|pair| pair[0] == pair[1])
            }),
            Property::always("a step is recorded once", |_, state: &State| {
                state.steps <= 1
            }),
            Property::always("a call has one result", |_, state: &State| {
                state.results <= 1
            }),
            Property::always("a run is published once", |_, state: &State| {
                state.nodes <= 1
            }),
            Property::always("a head moves only from its base", |_, state: &State| {
                !state.torn
            }),
            Property::sometimes("a run is published", |_, state: &State| state.committed),
            Property::sometimes(
                "a run is published by its second worker",
                |_, state: &State| state.committed && state.epoch == 2,
            ),
        ]
    }
}

/// Explore everything; the number of states, and the properties that are broken.
fn explore(workers: usize, tool: Tool, guards: Guards) -> (usize, Vec<&'static str>) {
    let model = Protocol {
        workers,
        tool,
        guards,
        crashes: 2,
        takeovers: 4,
    };
    let always: Vec<&'static str> = model
        .properties()
        .iter()
        .filter(|property| property.expectation == stateright::Expectation::Always)
        .map(|property| property.name)
        .collect();
    let sometimes: Vec<&'static str> = model
        .properties()
        .iter()
        .filter(|property| property.expectation == stateright::Expectation::Sometimes)
        .map(|property| property.name)
        .collect();
    let checker = model.checker().spawn_bfs().join();
    let found = checker.discoveries();
    let broken: Vec<&'static str> = always
        .into_iter()
        .filter(|name| found.contains_key(name))
        .collect();
    if broken.is_empty() {
        for name in sometimes {
            assert!(found.contains_key(name), "never: {name}");
        }
    }
    (checker.unique_state_count(), broken)
}

#[test]
fn r3_the_protocol_holds_for_two_and_three_workers() {
    for workers in [2, 3] {
        for tool in [Tool::Once, Tool::Keyed] {
            let (states, broken) = explore(workers, tool, ALL);
            println!("table protocol workers={workers} tool={tool:?}: states={states} broken=0");
            assert_eq!(broken, [""; 0]);
            assert!(
                states > 1000,
                "{states} states are too few to mean anything"
            );
        }
    }
}

#[test]
fn r3_every_guard_is_needed() {
    let without: [(&str, Tool, Guards, &str); 4] = [
        (
            "intent",
            Tool::Once,
            Guards {
                intent: false,
                ..ALL
            },
            "an undeclared tool is run at most once",
        ),
        (
            "stable key",
            Tool::Keyed,
            Guards {
                stable_key: false,
                ..ALL
            },
            "a call has one key",
        ),
        (
            "head check",
            Tool::Once,
            Guards { head: false, ..ALL },
            "a head moves only from its base",
        ),
        (
            "fence and step state",
            Tool::Once,
            Guards {
                fence: false,
                step_state: false,
                ..ALL
            },
            "an undeclared tool is run at most once",
        ),
    ];
    for (name, tool, guards, expected) in without {
        let (states, broken) = explore(2, tool, guards);
        println!("table protocol without {name}: states={states} breaks {broken:?}");
        assert!(
            broken.contains(&expected),
            "without {name} nothing breaks: {broken:?}"
        );
    }
    // Each of the pair backs the other up.
    for (name, guards) in [
        (
            "fence",
            Guards {
                fence: false,
                ..ALL
            },
        ),
        (
            "step state",
            Guards {
                step_state: false,
                ..ALL
            },
        ),
    ] {
        let (states, broken) = explore(2, Tool::Once, guards);
        println!("table protocol without {name} alone: states={states} breaks {broken:?}");
    }
}
