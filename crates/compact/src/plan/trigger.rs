//! Whether a view has grown out of its limits.

use crate::history::ToolHistory;
use crate::policy::Call;
use crate::report::{Trigger, UnchangedReason};

/// The limits of one call, in units of the view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// What the view may have; none without a budget.
    pub(crate) room: Option<u64>,
    /// Whether it has more.
    pub(crate) over: bool,
}

/// The trigger that fired, or why none did.
pub(super) fn fired(
    history: &ToolHistory,
    call: &Call,
    limits: &Limits,
) -> Result<Trigger, UnchangedReason> {
    let policy = &history.policy;
    let tools = call.scale.tokens(history.view.tool_units);
    let grown = |now: u64, then: u64| now * 100 > then * (100 + policy.regrowth);
    let mut stayed = UnchangedReason::Within;
    if let Some(budget) = policy.effective_budget() {
        let tokens = call.overhead + call.scale.tokens(history.view.size());
        let by = if policy.budget.is_some() {
            Trigger::Budget
        } else {
            Trigger::Window
        };
        // Over the budget nothing else counts: a request over the budget would be refused.
        if limits.over || tokens > budget {
            return Ok(by);
        }
        let high = budget.saturating_mul(policy.high.min(100)) / 100;
        if tokens > high && tools > policy.threshold {
            if history.armed.tool_units == 0
                || grown(history.view.tool_units, history.armed.tool_units)
            {
                return Ok(by);
            }
            stayed = UnchangedReason::NotArmed;
        }
    } else if tools > policy.threshold {
        if history.armed.tool_units == 0 || grown(history.view.tool_units, history.armed.tool_units)
        {
            return Ok(Trigger::Threshold);
        }
        stayed = UnchangedReason::NotArmed;
    }
    let messages = history.view.messages.len() as u64;
    if policy.count.is_some_and(|count| messages > count.into()) {
        if history.armed.messages == 0 || grown(messages, history.armed.messages) {
            return Ok(Trigger::Count);
        }
        stayed = UnchangedReason::NotArmed;
    }
    Err(stayed)
}
