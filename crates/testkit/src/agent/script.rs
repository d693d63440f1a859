//! The actions of a run, which follow from its id.

use throughline_model::json::RawJson;
use throughline_store::{CallState, Effect, Mode, RemoteCall, RunId};

use crate::Rng;

/// How a call is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchMode {
    /// Its intent is recorded with its step.
    WithStep,
    /// Its intent is recorded separately.
    Separate,
    /// It waits for an approval first.
    Approved,
}

/// A call of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptCall {
    /// Its id.
    pub id: String,
    /// The effect class of its tool.
    pub effect: Effect,
    /// How it is dispatched.
    pub dispatch: DispatchMode,
}

impl ScriptCall {
    /// The state in which its step records it.
    pub fn state(&self) -> CallState {
        match self.dispatch {
            DispatchMode::WithStep => CallState::Intent,
            DispatchMode::Separate => CallState::Planned,
            DispatchMode::Approved => CallState::Approval,
        }
    }
}

/// The script of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The input.
    pub ask: String,
    /// Rounds of calls.
    pub rounds: Vec<Vec<ScriptCall>>,
    /// The answer.
    pub answer: String,
    /// When it is published.
    pub mode: Mode,
    /// Whether it fails at its end instead.
    pub fails: bool,
    /// Whether a remote service makes its model calls.
    pub remote: bool,
}

impl Script {
    /// The script of a run.
    pub fn of(run: RunId, mode: Mode) -> Self {
        let bytes = run.as_bytes();
        let mut seed = [0; 8];
        seed.copy_from_slice(&bytes[8..]);
        let mut rng = Rng::new(u64::from_le_bytes(seed));
        let hex = run.to_hex();
        let size = |rng: &mut Rng| "x".repeat(rng.below(600));
        let rounds = (0..rng.below(4))
            .map(|round| {
                (0..rng.range(1..=3))
                    .map(|call| ScriptCall {
                        id: format!("{}_{round}_{call}", &hex[16..]),
                        effect: *rng.pick(&[
                            Effect::Once,
                            Effect::Once,
                            Effect::Keyed,
                            Effect::ReadOnly,
                        ]),
                        dispatch: *rng.pick(&[
                            DispatchMode::WithStep,
                            DispatchMode::Separate,
                            DispatchMode::Separate,
                            DispatchMode::Separate,
                            DispatchMode::Approved,
                        ]),
                    })
                    .collect()
            })
            .collect();
        Self {
            ask: format!("{hex} ask {}", size(&mut rng)),
            rounds,
            answer: format!("{hex} answer {}", size(&mut rng)),
            mode,
            fails: rng.chance(0.05),
            remote: rng.chance(0.3),
        }
    }

    /// The remote call of a step, with the handle that the service gives it.
    pub fn remote_call(run: RunId, step: u32) -> RemoteCall {
        let handle = format!(r#"{{"response":"resp_{}_{step}"}}"#, run.to_hex());
        let handle = RawJson::new(&handle).expect("it is an object");
        RemoteCall { step, handle }
    }

    /// The texts that a reader sees when the whole run is published.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = vec![self.ask.clone()];
        for round in &self.rounds {
            for word in ["call", "result"] {
                let words = round.iter().map(|call| format!("{word} {}", call.id));
                texts.push(words.collect::<Vec<_>>().join("+"));
            }
        }
        texts.push(self.answer.clone());
        texts
    }
}
