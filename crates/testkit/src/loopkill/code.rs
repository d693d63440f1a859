//! Names of turns and calls, as they occur in texts.

use std::fmt;
use std::str::FromStr;

use super::tools::TOOLS;
use crate::Rng;

/// The kind of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Rounds of calls that follow from its seed.
    Plain,
    /// One more round, with a call that needs approval.
    Sign,
    /// An answer and no calls.
    Brief,
    /// A call that kills its process.
    Poison,
    /// Calls as long as tools are offered, in a run with a budget of [`BUDGET`] rounds.
    Budget,
}

/// The rounds that a turn of [`Kind::Budget`] may take before its last answer.
pub const BUDGET: u32 = 2;

impl Kind {
    const ALL: [Self; 5] = [
        Self::Plain,
        Self::Sign,
        Self::Brief,
        Self::Poison,
        Self::Budget,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sign => "sign",
            Self::Brief => "brief",
            Self::Poison => "poison",
            Self::Budget => "budget",
        }
    }
}

/// The name of a turn, from which its contents follow: `t3.2.917.plain`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code {
    /// The thread.
    pub thread: String,
    /// Which turn of the thread.
    pub turn: u32,
    /// The seed of its contents.
    pub seed: u32,
    /// The kind of the turn.
    pub kind: Kind,
}

impl Code {
    /// The input of the turn.
    pub fn text(&self) -> String {
        format!("[[turn {self}]] What is new in the harbour?")
    }

    /// The tools that the model calls in a round; none in the last answer.
    pub fn calls(&self, round: u32) -> Vec<&'static str> {
        let mut rng = Rng::new(u64::from(self.seed));
        let rounds = match self.kind {
            Kind::Brief => 0,
            Kind::Poison => 1,
            Kind::Plain => 1 + rng.below(2),
            Kind::Sign => 1 + rng.below(2),
            Kind::Budget => usize::MAX,
        };
        let mut found = Vec::new();
        for place in 0..=round as usize {
            found.clear();
            if place >= rounds {
                continue;
            }
            let plain = TOOLS.iter().filter(|tool| tool.is_plain());
            let names: Vec<&str> = plain.map(|tool| tool.name).collect();
            for _ in 0..=rng.below(3) {
                found.push(*rng.pick(&names));
            }
            match self.kind {
                Kind::Sign if place == 0 => found.push("sign"),
                Kind::Poison => found = vec!["poison"],
                Kind::Budget => found.truncate(1),
                Kind::Plain | Kind::Sign | Kind::Brief => {}
            }
        }
        found
    }

    /// Whether the model reasons in this turn.
    pub fn thinks(&self) -> bool {
        self.seed.is_multiple_of(3)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_str();
        write!(f, "{}.{}.{}.{kind}", self.thread, self.turn, self.seed)
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("no code of a turn: {text}");
        let mut parts = text.split('.');
        let mut next = || parts.next().ok_or_else(bad);
        Ok(Self {
            thread: next()?.to_owned(),
            turn: next()?.parse().map_err(|_| bad())?,
            seed: next()?.parse().map_err(|_| bad())?,
            kind: {
                let word = next()?;
                let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == word);
                kind.ok_or_else(bad)?
            },
        })
    }
}

/// The name of a call: `t3.2.917.plain/0/1/anthropic-57`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark {
    /// Its turn.
    pub code: Code,
    /// Its round.
    pub round: u32,
    /// Its position in the round.
    pub position: u32,
    /// The request that it answers.
    pub request: String,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            round,
            position,
            request,
        } = self;
        write!(f, "{code}/{round}/{position}/{request}")
    }
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("no mark of a call: {text}");
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or_else(bad);
        Ok(Self {
            code: next()?.parse()?,
            round: next()?.parse().map_err(|_| bad())?,
            position: next()?.parse().map_err(|_| bad())?,
            request: next()?.to_owned(),
        })
    }
}

/// The texts in double brackets after a word, in order.
pub fn brackets<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = &'t str> {
    text.split("[[").skip(1).filter_map(move |part| {
        let (inner, _) = part.split_once("]]")?;
        inner.strip_prefix(word)?.strip_prefix(' ')
    })
}

#[cfg(test)]
mod tests {
    use super::{Code, Kind, Mark, brackets};

    #[test]
    fn names_are_read_as_they_are_written() {
        let code = Code {
            thread: "t3".to_owned(),
            turn: 2,
            seed: 917,
            kind: Kind::Sign,
        };
        let mark = Mark {
            code: code.clone(),
            round: 0,
            position: 1,
            request: "anthropic-57".to_owned(),
        };
        assert_eq!(code.to_string().parse(), Ok(code.clone()));
        assert_eq!(mark.to_string().parse(), Ok(mark.clone()));
        let text = format!("{} [[ran {mark}]] [[ran", code.text());
        assert_eq!(
            brackets(&text, "turn").collect::<Vec<_>>(),
            [code.to_string()]
        );
        assert_eq!(
            brackets(&text, "ran").collect::<Vec<_>>(),
            [mark.to_string()]
        );
        assert!("t3.2".parse::<Code>().is_err());
    }

    #[test]
    fn every_turn_comes_to_an_end() {
        for seed in 0..200 {
            let code = |kind| Code {
                thread: "t".to_owned(),
                turn: 0,
                seed,
                kind,
            };
            assert_eq!(code(Kind::Brief).calls(0), [] as [&str; 0]);
            assert_eq!(code(Kind::Poison).calls(0), ["poison"]);
            assert!(code(Kind::Sign).calls(0).contains(&"sign"));
            assert_eq!(code(Kind::Budget).calls(7).len(), 1);
            assert_eq!(code(Kind::Plain).calls(2), [] as [&str; 0]);
        }
    }
}
