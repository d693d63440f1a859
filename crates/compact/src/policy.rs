//! What may be sent, and when a view is made smaller.

use throughline_model::json::{ArrayWriter, RawJson, push_string};

use crate::category::Category;
use crate::tokens::Calibration;

/// When a view is compacted and what it is made of.
///
/// Units: everything named *tokens* is in tokens of the model that is asked; shares are in percent;
/// counts are in calls or messages.
///
/// Precedence of the triggers:
///
/// 1. A **budget** ([`Policy::budget`], or else [`Policy::window`] times [`Policy::window_share`])
///    counts everything that is sent: instructions, tool schemas and the view. It starts an epoch
///    above its high mark and aims at its low mark. User and assistant text gives way to it as
///    well, oldest first.
/// 2. The **threshold** counts tool history only. Without a budget it is a trigger; with one it is
///    a floor: between the high mark and the budget no epoch is made for less tool history than
///    that. Over the budget it does not hold, since a request over the budget would be refused.
/// 3. The **count** of messages in the view, if set, is a trigger of its own beside either.
///
/// A trigger that has fired is armed again when what it counts has grown by [`Policy::regrowth`];
/// what is over the budget is always considered. Whatever fired, the target is the same: at least
/// [`Policy::recent_calls`] calls in full, in whole groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Tokens that a request may have, instructions and tool schemas included.
    pub budget: Option<u64>,
    /// Tokens that the model's window holds; gives a budget where none is set.
    pub window: Option<u64>,
    /// Percent of the window that is the budget where none is set.
    pub window_share: u64,
    /// Percent of the budget above which an epoch is made.
    pub high: u64,
    /// Percent of what the budget leaves beside pinned messages that digests and the tail have at most
    /// after an epoch. A ledger leaves room in it for the digests of later epochs. Files that are
    /// being worked on have room of their own.
    pub low: u64,
    /// Tokens of tool history: a trigger without a budget, a floor with one.
    pub threshold: u64,
    /// Messages in the view above which an epoch is made.
    pub count: Option<u32>,
    /// Calls that stay in full: whole groups, until there are at least so many.
    pub recent_calls: u32,
    /// Percent by which an epoch must make the view smaller to be worth a cold cache.
    pub min_gain: u64,
    /// Percent of growth after which a trigger is armed again.
    pub regrowth: u64,
    /// Whether a budget that cannot be met is an error rather than a field of the report.
    pub strict: bool,
    /// Messages that are always shown in full, by number.
    pub pins: Vec<u64>,
    /// Categories of tools by name; `*` stands for any text. The first that fits counts.
    pub categories: Vec<(String, Category)>,
    /// Percent of the low mark that is kept for the newest messages in full.
    pub tail_share: u64,
    /// Percent of the budget above which blocks are made into one ledger.
    pub block_share: u64,
    /// Tokens above which a single result is shortened from the start.
    pub single_result: u64,
    /// Tokens of what a model writes beside digests, each time; `None` asks no model.
    pub narrative: Option<u64>,
    /// The limits of a digest.
    pub caps: Caps,
}

/// The limits of a digest. Counts are of names, lengths of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Names that a read defines, where no budget decides how many fit.
    pub definitions: usize,
    /// Names that are mentioned, where no budget decides how many fit.
    pub names: usize,
    /// Names of one call, whatever the budget.
    pub names_ever: usize,
    /// Characters of a command.
    pub command: usize,
    /// Error lines of one call.
    pub error_lines: usize,
    /// Characters of one error line.
    pub error_line: usize,
    /// Characters of the values of a structured result.
    pub structured: usize,
    /// Characters of any other result.
    pub other: usize,
    /// Characters of a user's message before its middle is left out.
    pub user: usize,
    /// Characters of a text of the model.
    pub prose: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            definitions: 24,
            names: 12,
            names_ever: 1_000,
            command: 240,
            error_lines: 3,
            error_line: 160,
            structured: 400,
            other: 140,
            user: 2_000,
            prose: 280,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            budget: None,
            window: None,
            window_share: 60,
            high: 100,
            low: 50,
            threshold: 10_000,
            count: None,
            recent_calls: 6,
            min_gain: 20,
            regrowth: 20,
            strict: false,
            pins: Vec::new(),
            categories: Vec::new(),
            tail_share: 40,
            block_share: 45,
            single_result: 12_000,
            narrative: None,
            caps: Caps::default(),
        }
    }
}

impl Policy {
    /// The largest budget that follows from a window alone.
    pub const LARGEST_FROM_WINDOW: u64 = 128_000;

    /// A policy with a budget and everything else as usual.
    pub fn with_budget(tokens: u64) -> Self {
        Self {
            budget: Some(tokens),
            ..Self::default()
        }
    }

    /// The budget that holds: the one that is set, or the share of the window.
    pub fn effective_budget(&self) -> Option<u64> {
        let share = |window: u64| {
            let share = window.saturating_mul(self.window_share.min(100)) / 100;
            share.min(Self::LARGEST_FROM_WINDOW)
        };
        self.budget.or_else(|| self.window.map(share))
    }

    /// The policy as JSON: all that decides about a view, in a fixed order.
    pub fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.number("v", 1);
            for (key, value) in [("budget", self.budget), ("window", self.window)] {
                if let Some(value) = value {
                    object.number(key, value);
                }
            }
            object
                .number("window_share", self.window_share)
                .number("high", self.high)
                .number("low", self.low)
                .number("threshold", self.threshold);
            if let Some(count) = self.count {
                object.number("count", count.into());
            }
            object
                .number("recent_calls", self.recent_calls.into())
                .number("min_gain", self.min_gain)
                .number("regrowth", self.regrowth)
                .bool("strict", self.strict)
                .number("tail_share", self.tail_share)
                .number("block_share", self.block_share)
                .number("single_result", self.single_result);
            if let Some(narrative) = self.narrative {
                object.number("narrative", narrative);
            }
            let mut pins = ArrayWriter::new(object.key("pins"));
            for pin in &self.pins {
                pins.raw(&pin.to_string());
            }
            pins.end();
            let mut categories = ArrayWriter::new(object.key("categories"));
            for (glob, category) in &self.categories {
                let mut pair = ArrayWriter::new(categories.slot());
                push_string(pair.slot(), glob);
                push_string(pair.slot(), category.as_str());
                pair.end();
            }
            categories.end();
            let caps = &self.caps;
            let mut list = ArrayWriter::new(object.key("caps"));
            for cap in [
                caps.definitions,
                caps.names,
                caps.names_ever,
                caps.command,
                caps.error_lines,
                caps.error_line,
                caps.structured,
                caps.other,
                caps.user,
                caps.prose,
            ] {
                list.raw(&cap.to_string());
            }
            list.end();
        })
    }

    /// The hash of the policy that an epoch carries.
    pub fn hash(&self) -> String {
        blake3::hash(self.to_json().get().as_bytes())
            .to_hex()
            .to_string()
    }
}

impl Policy {
    /// The same, with what a model writes beside digests: at most so many tokens each time.
    #[must_use]
    pub fn narrated(self, tokens: u64) -> Self {
        Self {
            narrative: Some(tokens),
            ..self
        }
    }
}

/// What is known about one model call before it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Tokens of what is sent beside the view: instructions and tool schemas.
    pub overhead: u64,
    /// Tokens of this model for each unit.
    pub scale: Scale,
    /// Calls that wait for an approval or for the client, by the number of their message. A round
    /// that waits is never digested.
    pub open: Vec<u64>,
}

impl Call {
    /// The next call, as far as bills and the sizes of what is sent tell: the view has so many units
    /// now, and `beside` are those of instructions and tool schemas, which bills cover once there is
    /// one.
    ///
    /// Sizes are raised by [`Calibration::margin`], so that a view which fits the budget by them
    /// fits it on the bill as well.
    pub fn estimated(calibration: &Calibration, units: u64, beside: u64) -> Self {
        let scale = Scale::per_mille(calibration.per_mille());
        let overhead = match calibration.calls() {
            0 => scale.tokens(beside),
            _ => calibration.overhead(),
        };
        let margin = 1.0 + calibration.margin(units);
        let raised = |tokens: f64| (tokens * margin).ceil();
        Self {
            overhead: raised(overhead as f64) as u64,
            scale: Scale::per_mille(raised(f64::from(calibration.per_mille())) as u32),
            open: Vec::new(),
        }
    }
}

/// Tokens for each unit, learnt from what was billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale(u32);

impl Scale {
    /// Units are tokens.
    pub const ONE: Self = Self(1_000);

    /// Thousandths of a token for each unit, between a fifth and five.
    pub fn per_mille(thousandths: u32) -> Self {
        Self(thousandths.clamp(200, 5_000))
    }

    /// Units as tokens, rounded up.
    pub fn tokens(self, units: u64) -> u64 {
        units.saturating_mul(self.0.into()).div_ceil(1_000)
    }

    /// How many units fit into tokens.
    pub fn units(self, tokens: u64) -> u64 {
        tokens.saturating_mul(1_000) / u64::from(self.0)
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self::ONE
    }
}
