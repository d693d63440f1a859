//! What was requested and acknowledged, outside of the processes that did it.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::model::mark;

/// How a client avoids that a repeated request is done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// It sends an idempotency key.
    Key,
    /// It marks the request as a retry, as SDKs do.
    Sdk,
    /// Not at all. It continues to read if it knows the response, and gives up if not.
    None,
}

/// An acknowledged turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its name.
    pub code: String,
    /// The turn that it continues.
    pub parent: Option<String>,
    /// The acknowledged response.
    pub response: Value,
    /// Whether it was streamed.
    pub streamed: bool,
    /// How its client avoids repetition.
    pub guard: Guard,
    /// How many kills happened between its request and its acknowledgement.
    pub crossed: u64,
    /// Whether the built-in model answered it.
    pub demo: bool,
}

impl Turn {
    /// The response's id.
    pub fn id(&self) -> &str {
        self.response
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or("")
    }

    /// The text of the answer; `None` if it failed.
    pub fn text(&self) -> Option<String> {
        if self.response.get("status").and_then(Value::as_str) != Some("completed") {
            return None;
        }
        let items = self.response.get("output")?.as_array()?;
        // The partial text of a model call that was repeated is in the output too, and is not part
        // of the chain.
        let whole = |item: &&Value| {
            item.get("status").and_then(Value::as_str) == Some("completed")
                && item.get("type").and_then(Value::as_str) == Some("message")
        };
        let parts = items.iter().filter(whole).filter_map(|item| {
            let part = item.get("content")?.as_array()?.first()?;
            part.get("text")?.as_str()
        });
        Some(parts.collect())
    }
}

/// A model call, as the upstream received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// The turns in the request, the requested one last.
    pub turns: Vec<String>,
    /// The marks of the answers in it.
    pub done: Vec<String>,
}

impl ModelCall {
    /// Parses `asked NUMBER turns=… done=…`.
    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("asked ")?.split(' ');
        words.next()?;
        let list = |word: &str| {
            let names = word.split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        Some(Self {
            turns: list(words.next()?.strip_prefix("turns=")?),
            done: list(words.next()?.strip_prefix("done=")?),
        })
    }
}

/// The counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Turns that were acknowledged.
    pub turns: u64,
    /// Turns with a kill before the acknowledgement.
    pub crossed: u64,
    /// Model calls.
    pub asked: u64,
    /// Model calls that were repeated after a kill.
    pub redone: u64,
    /// Turns that failed because they were killed too often.
    pub given_up: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.crossed += other.crossed;
        self.asked += other.asked;
        self.redone += other.redone;
        self.given_up += other.given_up;
    }
}

/// What was requested and acknowledged.
#[derive(Debug, Default)]
pub struct ServerLedger {
    turns: BTreeMap<String, Turn>,
    ids: HashMap<String, String>,
}

impl ServerLedger {
    /// Records an acknowledged turn. No other turn may have its response.
    pub fn acknowledge(&mut self, turn: Turn) -> Result<(), String> {
        let code = turn.code.clone();
        if let Some(other) = self.ids.insert(turn.id().to_owned(), code.clone()) {
            return Err(format!(
                "{other} and {code} were both answered by {}",
                turn.id()
            ));
        }
        match self.turns.insert(code.clone(), turn) {
            None => Ok(()),
            Some(_) => Err(format!("{code} was acknowledged twice")),
        }
    }

    /// The acknowledged turns.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.values()
    }

    /// The acknowledged turn with a name.
    pub fn turn(&self, code: &str) -> Option<&Turn> {
        self.turns.get(code)
    }

    /// The chain that ends with a turn.
    pub fn chain(&self, code: &str) -> Vec<&Turn> {
        let mut chain = Vec::new();
        let mut next = self.turns.get(code);
        while let Some(turn) = next {
            chain.push(turn);
            next = turn.parent.as_ref().and_then(|code| self.turns.get(code));
        }
        chain.reverse();
        chain
    }

    /// Checks that every model call had the whole chain in order, and that none was repeated
    /// without a reason. `parents` has the turns that were sent and never acknowledged.
    pub fn judge(
        &self,
        asked: &[ModelCall],
        parents: &HashMap<String, Option<String>>,
    ) -> Result<Counts, String> {
        let mut counts = Counts::default();
        let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
        for one in asked {
            counts.asked += 1;
            let Some(code) = one.turns.last() else {
                return Err("the upstream was asked for nothing".to_owned());
            };
            *calls.entry(code).or_default() += 1;
            let parent = match self.turns.get(code) {
                Some(turn) => &turn.parent,
                None => match parents.get(code) {
                    Some(parent) => parent,
                    None => {
                        return Err(format!("nobody sent {code}, which the upstream was asked"));
                    }
                },
            };
            let chain = parent.as_ref().map(|parent| self.chain(parent));
            let chain = chain.unwrap_or_default();
            let mut turns: Vec<&str> = chain.iter().map(|turn| turn.code.as_str()).collect();
            turns.push(code);
            let texts: Vec<String> = chain.iter().filter_map(|turn| turn.text()).collect();
            let done: Vec<&str> = texts.iter().filter_map(|text| mark(text)).collect();
            if one.turns != turns || one.done != done {
                return Err(format!(
                    "{code}: the upstream was sent {one:?}, the chain is {turns:?} with {done:?}"
                ));
            }
        }
        for turn in self.turns.values() {
            counts.turns += 1;
            counts.crossed += u64::from(turn.crossed > 0);
            let Some(text) = turn.text() else {
                counts.given_up += 1;
                continue;
            };
            let calls = calls.get(turn.code.as_str()).copied().unwrap_or(0);
            match turn.demo {
                true => continue,
                false if (1..=1 + turn.crossed).contains(&calls) => counts.redone += calls - 1,
                false => {
                    return Err(format!(
                        "{}: the model was asked {calls} times, with {} kills meanwhile ({:?})",
                        turn.code, turn.crossed, turn.guard
                    ));
                }
            }
            let own = mark(&text).and_then(|mark| mark.split('/').next());
            if own != Some(turn.code.as_str()) {
                return Err(format!("{}: its answer is another's: {text}", turn.code));
            }
        }
        Ok(counts)
    }
}
