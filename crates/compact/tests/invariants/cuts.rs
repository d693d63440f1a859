//! A great many cuts.

use std::sync::Arc;

use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::Message;
use throughline_testkit::{messages, property};

use crate::check;

/// Cuts for each case; at full scale a million in all.
const CUTS: usize = 100;
const CASES: u64 = 500;

#[test]
fn b162_no_cut_at_any_budget_splits_a_group_or_loses_system_text_or_the_first_request() {
    let (mut cuts, mut epochs) = (0u64, 0u64);
    property("no cut splits a group", CASES, |rng, size| {
        let told: Vec<Arc<Message>> = messages::history(rng, size)
            .into_iter()
            .map(Arc::new)
            .collect();
        // What is sent beside the view decides how much of the budget is left, so one history serves all.
        let budget = 2 * told.len() as u64 * 64;
        let mut history = ToolHistory::new(Policy::with_budget(budget));
        let mut made = 0;
        while made < CUTS {
            for at in 0..told.len() {
                if history.record().count() == at {
                    history.push(at as u64 + 1, Arc::clone(&told[at]));
                }
                if made == CUTS || !(rng.chance(0.5) || at + 1 == told.len()) {
                    continue;
                }
                made += 1;
                cuts += 1;
                let call = Call {
                    overhead: rng.below(budget as usize + 1) as u64,
                    ..Call::default()
                };
                let known = history.record().map(|(_, message)| Arc::clone(message));
                let known: Vec<Arc<Message>> = known.collect();
                let planned = history.plan(&call).map_err(|error| error.to_string())?;
                let mut cut = history.clone();
                let Planned::Epoch(epoch, report) = planned else {
                    check::pairs(cut.view(), &known)?;
                    continue;
                };
                epochs += 1;
                if !cut.install(epoch) {
                    return Err("an epoch that was planned is not taken".to_owned());
                }
                check::pairs(cut.view(), &known)?;
                check::pinned(cut.view(), &known)?;
                let after = call.overhead + cut.units();
                if after != report.tokens_after || after >= report.tokens_before {
                    return Err(format!("{after} tokens, {report}"));
                }
                if after > budget && report.budget_unreachable.is_none() {
                    return Err(format!("over the budget of {budget}: {report}"));
                }
            }
        }
        Ok(())
    });
    println!("cuts: {cuts} looked at, {epochs} of them made an epoch, 0 split groups");
}
