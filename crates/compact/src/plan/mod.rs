//! Decides, before a model call, whether a view is made smaller, and how.

mod bounds;
mod draft;
mod requests;
mod segments;
mod shortening;
mod tools_only;
mod trigger;
mod with_narrative;
mod within_budget;
mod working;

use crate::epoch::{DIGEST_VERSION, Epoch};
use crate::history::{ToolHistory, TriggerBaseline};
use crate::policy::Call;
use crate::report::{BudgetUnreachable, Report, Trigger, UnchangedReason};
use crate::trials::planted;
use bounds::Bounds;
use draft::Draft;
use trigger::Limits;

/// What was decided about a view.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each model call, and it is moved twice"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// It stays as it is.
    Unchanged(Report),
    /// It is to be replaced; nothing changes until the epoch is installed.
    Epoch(Epoch, Report),
}

impl Planned {
    /// The report, whatever was decided.
    pub fn report(&self) -> &Report {
        match self {
            Self::Unchanged(report) | Self::Epoch(_, report) => report,
        }
    }
}

impl ToolHistory {
    /// Decide about the view before a model call. Nothing changes until an epoch is installed, so that
    /// it can be stored first.
    ///
    /// # Errors
    ///
    /// Only with [`Policy::strict`](crate::Policy::strict), when the smallest view is larger than the budget.
    pub fn plan(&mut self, call: &Call) -> Result<Planned, BudgetUnreachable> {
        plan(self, call, PlanMode::IfNeeded)
    }

    /// The same on request: no trigger has to fire.
    ///
    /// # Errors
    ///
    /// As for [`ToolHistory::plan`].
    pub fn plan_now(&mut self, call: &Call) -> Result<Planned, BudgetUnreachable> {
        plan(self, call, PlanMode::Forced)
    }
}

/// Whether a plan needs a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanMode {
    IfNeeded,
    Forced,
}

fn plan(
    history: &mut ToolHistory,
    call: &Call,
    wish: PlanMode,
) -> Result<Planned, BudgetUnreachable> {
    let budget = history.policy.effective_budget();
    let beside = match planted("compact-schemas-uncounted") {
        true => 0,
        false => call.overhead,
    };
    let room = budget.map(|budget| call.scale.units(budget.saturating_sub(beside)));
    let limits = Limits {
        room,
        over: room.is_some_and(|room| history.view.size() > room),
    };
    let fired = match wish {
        PlanMode::Forced => Ok(Trigger::Asked),
        PlanMode::IfNeeded => trigger::fired(history, call, &limits),
    };
    let fired = match fired {
        Ok(fired) => fired,
        Err(stayed) => return Ok(unchanged(history, call, None, stayed)),
    };
    history.name_index.extend(&history.record);
    history.learn_facts();
    let bounds = Bounds::of(history, call);
    let draft = match limits.room {
        Some(room) => within_budget::fit(history, &bounds, room, limits.over),
        None => tools_only::tools_only(history, &bounds, call),
    };
    let draft = match draft {
        Ok(draft) => with_narrative::with_narrative(history, draft, limits.room),
        Err(stayed) => {
            if stayed == UnchangedReason::SmallGain {
                // Trying again is in vain until there is more.
                history.armed = TriggerBaseline {
                    tool_units: history.view.tool_units,
                    messages: history.view.messages.len() as u64,
                };
            }
            let planned = unchanged(history, call, Some(fired), stayed);
            return refuse(history, planned);
        }
    };
    let planned = epoch(history, call, fired, draft);
    refuse(history, planned)
}

/// An error instead of a report, if the policy wants one.
fn refuse(history: &ToolHistory, planned: Planned) -> Result<Planned, BudgetUnreachable> {
    match planned.report().budget_unreachable {
        Some(unreachable) if history.policy.strict => Err(unreachable),
        _ => Ok(planned),
    }
}

/// Set when a request does not fit.
fn unreachable(history: &ToolHistory, need: u64) -> Option<BudgetUnreachable> {
    let budget = history.policy.effective_budget()?;
    (need > budget).then_some(BudgetUnreachable { need, budget })
}

fn unchanged(
    history: &ToolHistory,
    call: &Call,
    trigger: Option<Trigger>,
    stayed: UnchangedReason,
) -> Planned {
    let tokens = call.overhead + call.scale.tokens(history.view.size());
    let held = history.epoch();
    Planned::Unchanged(Report {
        trigger,
        stayed: Some(stayed),
        epoch: held.map_or(0, |epoch| epoch.no),
        tokens_before: tokens,
        tokens_after: tokens,
        kept: held.map(|epoch| epoch.kept()).unwrap_or_default(),
        budget_unreachable: unreachable(history, tokens),
        ..Report::default()
    })
}

fn epoch(history: &ToolHistory, call: &Call, trigger: Trigger, draft: Draft) -> Planned {
    let before = call.overhead + call.scale.tokens(history.view.size());
    let after = call.overhead + call.scale.tokens(draft.view.size());
    let record = &history.record;
    let seq = |place: usize| record.entries().get(place).map(|entry| entry.seq);
    let upto = record.entries().last().map_or(0, |entry| entry.seq);
    let epoch = Epoch {
        no: history.last_no + 1,
        cut_seq: seq(draft.cut).unwrap_or(upto + 1),
        upto_seq: upto,
        prefix: draft.prefix(),
        shortened: draft.shortened,
        shortened_requests: draft.shortened_requests,
        pinned: history.pins.iter().copied().collect(),
        policy_hash: history.policy.hash(),
        digest_version: DIGEST_VERSION,
        tokens_before: before,
        tokens_after: after,
        tool_units: draft.view.tool_units,
        messages: draft.view.messages.len() as u64,
        reason: trigger,
        blocks: draft.blocks,
    };
    let report = Report {
        trigger: Some(trigger),
        stayed: None,
        epoch: epoch.no,
        major: draft.major,
        groups_digested: draft.groups,
        calls_digested: draft.calls,
        results_shortened: epoch.shortened.len() as u64,
        tokens_before: before,
        tokens_after: after,
        kept: epoch.kept(),
        budget_unreachable: unreachable(history, after),
        narrative: None,
    };
    Planned::Epoch(epoch, report)
}
