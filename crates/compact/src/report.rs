//! The report about a view, in numbers and in one line.

use std::fmt;

use crate::narrative_outcome::NarrativeOutcome;

/// Why an epoch was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The request would have been larger than its budget.
    Budget,
    /// The request would have been larger than its share of the window.
    Window,
    /// There was more tool history than the threshold.
    Threshold,
    /// There were more messages than the count.
    Count,
    /// A caller asked for it.
    Asked,
}

impl Trigger {
    const ALL: [Self; 5] = [
        Self::Budget,
        Self::Window,
        Self::Threshold,
        Self::Count,
        Self::Asked,
    ];

    /// The word in the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Window => "window",
            Self::Threshold => "threshold",
            Self::Count => "count",
            Self::Asked => "asked",
        }
    }

    /// The trigger of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|trigger| trigger.as_str() == word)
    }
}

/// Why a view stayed as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnchangedReason {
    /// No trigger fired.
    Within,
    /// A trigger fired before and what it counts has not grown enough since.
    NotArmed,
    /// There are no more calls than are kept in full.
    FewCalls,
    /// Everything that is old enough is digested already.
    NothingOlder,
    /// Everything that is old enough to be digested waits.
    OpenCall,
    /// The view would not have become smaller by enough.
    SmallGain,
    /// A service keeps the conversation and sends it to the model itself.
    Service,
    /// The application's own store decides what is sent.
    External,
}

impl UnchangedReason {
    const ALL: [Self; 8] = [
        Self::Within,
        Self::NotArmed,
        Self::FewCalls,
        Self::NothingOlder,
        Self::OpenCall,
        Self::SmallGain,
        Self::Service,
        Self::External,
    ];

    /// The word in the stored form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::NotArmed => "not_armed",
            Self::FewCalls => "few_calls",
            Self::NothingOlder => "nothing_older",
            Self::OpenCall => "open_call",
            Self::SmallGain => "small_gain",
            Self::Service => "service",
            Self::External => "external",
        }
    }

    /// The reason with a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stayed| stayed.word() == word)
    }

    /// The reason as text for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Within => "within its limits",
            Self::NotArmed => "has not grown enough since the last epoch",
            Self::FewCalls => "no more calls than are kept in full",
            Self::NothingOlder => "everything older is digested already",
            Self::OpenCall => "a call that waits is never digested",
            Self::SmallGain => "too little would be gained",
            Self::Service => "a service keeps the conversation",
            Self::External => "the application's store says what is sent",
        }
    }
}

/// A budget that no view of the conversation fits into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the smallest view has {need} tokens, the budget is {budget}")]
pub struct BudgetUnreachable {
    /// Tokens of the smallest request.
    pub need: u64,
    /// Tokens of the budget.
    pub budget: u64,
}

/// What the digested part still has, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestCounts {
    /// Messages of users.
    pub requests: u64,
    /// Files that were written.
    pub files_written: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Other calls with a line of their own.
    pub calls: u64,
    /// Names: paths, identifiers, ids.
    pub names: u64,
    /// Statements of the model.
    pub statements: u64,
}

impl DigestCounts {
    /// The sums of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            files_written: self.files_written + other.files_written,
            failures: self.failures + other.failures,
            calls: self.calls + other.calls,
            names: self.names + other.names,
            statements: self.statements + other.statements,
        }
    }
}

/// What was done to a view before a model call, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The trigger that fired.
    pub trigger: Option<Trigger>,
    /// Why nothing was done, if nothing was.
    pub stayed: Option<UnchangedReason>,
    /// The epoch that holds, zero for none.
    pub epoch: u64,
    /// Whether blocks were made into a ledger.
    pub major: bool,
    /// Groups that are digested now and were not before.
    pub groups_digested: u64,
    /// Calls of these groups.
    pub calls_digested: u64,
    /// Results that are shown shortened.
    pub results_shortened: u64,
    /// Tokens of the request before, instructions and tool schemas included.
    pub tokens_before: u64,
    /// Tokens of the request after.
    pub tokens_after: u64,
    /// What all blocks have together.
    pub kept: DigestCounts,
    /// Set when the smallest view does not fit.
    pub budget_unreachable: Option<BudgetUnreachable>,
    /// The result of asking a model for a summary, once that is known.
    pub narrative: Option<NarrativeOutcome>,
}

impl fmt::Display for Report {
    /// One line for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stayed {
            Some(stayed) => write!(
                f,
                "Not compacted: {}. {} tokens.",
                stayed.as_str(),
                Thousands(self.tokens_after)
            )?,
            None => {
                let results = if self.calls_digested == 1 {
                    "result"
                } else {
                    "results"
                };
                write!(
                    f,
                    "Compacted {} tool {results}: {} → {} tokens. Nothing was deleted.",
                    self.calls_digested,
                    Thousands(self.tokens_before),
                    Thousands(self.tokens_after)
                )?;
            }
        }
        if let Some(unreachable) = self.budget_unreachable {
            let (need, budget) = (unreachable.need, unreachable.budget);
            write!(
                f,
                " Over budget: {} of {}.",
                Thousands(need),
                Thousands(budget)
            )?;
        }
        if let Some(narrated) = self.narrative {
            write!(f, " {narrated}")?;
        }
        Ok(())
    }
}

/// A number as people read it: whole thousands once there are ten of them.
struct Thousands(u64);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            small @ 0..10_000 => write!(f, "{small}"),
            large => write!(f, "{}k", (large + 500) / 1_000),
        }
    }
}
