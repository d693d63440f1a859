//! A great many cuts.

use std::sync::Arc;

use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::Message;
use throughline_testkit::{Rng, property};

use crate::invariants::check;
use crate::invariants::conversation::conversation;

/// Cuts for each case; a campaign makes a million in all.
const CUTS: u64 = 100;
const CASES: u64 = 500;

/// What is counted.
#[derive(Default)]
struct Counted {
    cuts: u64,
    epochs: u64,
    unreachable: u64,
}

/// Plan with so much beside the view, and look at what that gives. The history itself stays as it is.
fn cut(history: &mut ToolHistory, overhead: u64, counted: &mut Counted) -> Result<(), String> {
    let budget = history.policy().budget.unwrap_or_default();
    let call = Call {
        overhead,
        ..Call::default()
    };
    let known = history.record().map(|(_, message)| Arc::clone(message));
    let known: Vec<Arc<Message>> = known.collect();
    let planned = history.plan(&call).map_err(|error| error.to_string())?;
    counted.cuts += 1;
    let Planned::Epoch(epoch, report) = planned else {
        return check::pairs(history.view(), &known);
    };
    counted.epochs += 1;
    let mut cut = history.clone();
    if !cut.install(epoch) {
        return Err("an epoch that was planned is not taken".to_owned());
    }
    check::pairs(cut.view(), &known)?;
    check::pinned(cut.view(), &known)?;
    check::covered(&cut)?;
    let after = overhead + cut.units();
    if after != report.tokens_after || after >= report.tokens_before {
        return Err(format!("{after} tokens, {report}"));
    }
    if (after > budget) != report.budget_unreachable.is_some() {
        return Err(format!(
            "{after} tokens with a budget of {budget}: {report}"
        ));
    }
    if report.budget_unreachable.is_some() {
        counted.unreachable += 1;
        // Only the smallest view may be too large, and the smallest has no digests.
        if check::digests(cut.view()).next().is_some() {
            return Err(format!("digests in a view that does not fit: {report}"));
        }
    }
    Ok(())
}

/// What is sent beside the view decides how much of the budget is left, so one history serves all.
fn with_room(told: &[Arc<Message>]) -> (ToolHistory, u64) {
    let budget = 2 * told.len() as u64 * 64;
    (ToolHistory::new(Policy::with_budget(budget)), budget)
}

#[test]
fn b162_no_cut_at_any_budget_splits_a_group_or_loses_system_text_or_the_first_request() {
    const STEPS: u64 = 24;
    let mut counted = Counted::default();
    for seed in 0..6 {
        let told = conversation(&mut Rng::new(seed), 24);
        let (mut history, budget) = with_room(&told);
        for (seq, message) in (1..).zip(&told) {
            history.push(seq, Arc::clone(message));
            for step in 0..=STEPS {
                let looked = cut(&mut history, budget * step / STEPS, &mut counted);
                looked.unwrap_or_else(|problem| unreachable!("seed {seed}, #{seq}: {problem}"));
            }
        }
    }
    assert!(counted.epochs > counted.cuts / 4);
    let Counted { cuts, epochs, .. } = counted;
    println!("table every cut of six histories: cuts={cuts} epochs={epochs} split=0");
}

#[test]
fn r20_no_cut_of_a_view_splits_a_group_or_loses_what_is_pinned() {
    let mut counted = Counted::default();
    property("r20 cuts of views", CASES, |rng, size| {
        let told = conversation(rng, size);
        let (mut history, budget) = with_room(&told);
        let end = counted.cuts + CUTS;
        for (seq, message) in (1..).zip(&told) {
            history.push(seq, Arc::clone(message));
            if counted.cuts < end && rng.bool() {
                let overhead = rng.below(budget as usize + 1) as u64;
                cut(&mut history, overhead, &mut counted)?;
            }
        }
        while counted.cuts < end {
            let overhead = rng.below(budget as usize + 1) as u64;
            cut(&mut history, overhead, &mut counted)?;
        }
        Ok(())
    });
    let Counted {
        cuts,
        epochs,
        unreachable,
    } = counted;
    println!(
        "campaign r20 cuts of views: cuts={cuts} split=0 epochs={epochs} unreachable={unreachable}"
    );
}
