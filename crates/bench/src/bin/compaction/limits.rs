//! The limits of our compaction.

use throughline_testkit::bench::{Limit, Report, Row};
use throughline_testkit::trajectory::{FactKind, Origin};

use crate::baseline::Kind;
use crate::probe::Metric;
use crate::table::{Block, Line, PLAIN, Set};
use crate::today::Today;

/// Adds all limits of a set at one budget.
pub(crate) fn check(report: &mut Report, set: &Set, block: &Block) {
    if set.prototype && block.budget == PLAIN {
        prototype(report, block);
    }
    beside(report, block);
    always(report, set, block);
    pressure(report, block);
    if let Some(today) = set.today.filter(|_| block.budget == PLAIN) {
        against(report, block, today);
    }
    for half in &block.halves {
        let (sessions, needs) = (
            half.each.len(),
            half.sum.share(Metric::Need(Origin::Result)),
        );
        let name = format!(
            "needs of the {}, {sessions} sessions, {} needs",
            half.name, needs.of
        );
        report.push(shown(&name, needs.ratio()));
    }
}

/// How many different outputs the same sessions gave.
pub(crate) fn outputs(distinct: usize) -> Row {
    at_most(
        "distinct outputs, four runs, two threads",
        distinct as f64,
        1.0,
    )
}

/// What a history under pressure must still show.
fn pressure(report: &mut Report, block: &Block) {
    let own = &block.own.sum;
    let least = if block.budget < 16_000 { 0.9 } else { 0.98 };
    let errors = own.share(Metric::ErrorLine).ratio();
    report.push(at_least(
        "error lines not resolved, at each call",
        errors,
        least,
    ));
    let beyond = own.over(block.budget) - own.forced;
    let name = format!(
        "calls over budget, beside {} that one message forces",
        own.forced
    );
    report.push(count(&name, beyond, 0));
}

/// The figures of an earlier version: half of its missed edits, at no higher price.
fn against(report: &mut Report, block: &Block, today: Today) {
    let own = &block.own.sum;
    let edits = own.share(Metric::Edit);
    let most = today.missed_edits / 2;
    let name = format!(
        "missed edits of {}, half of {}",
        edits.of, today.missed_edits
    );
    report.push(count(&name, edits.of - edits.kept, most));
    report.push(at_least(
        "needs from results, as before",
        own.need(Origin::Result),
        today.needs,
    ));
    report.push(at_least("cache hit, as before", own.hits(), today.hit));
    let tokens = own.tokens as f64 / today.tokens as f64;
    report.push(at_most("tokens against before", tokens, 1.15));
    report.push(at_most("cost against before", own.cost / today.cost, 1.15));
}

/// The values of the prototype for these sessions, and the aims.
fn prototype(report: &mut Report, block: &Block) {
    let (raw, own) = (&block.raw.sum, &block.own.sum);
    let masks = block
        .plain
        .iter()
        .filter(|line| line.name == Kind::Mask.name());
    for mask in masks {
        let ratio = own.tokens as f64 / mask.sum.tokens as f64;
        report.push(at_most("tokens against mask-last-10", ratio, 1.0));
    }
    let tokens = own.tokens as f64 / raw.tokens as f64;
    report.push(at_most("tokens against raw", tokens, 0.309));
    report.push(at_most("cost against raw", own.cost / raw.cost, 0.464));
    report.push(at_least(
        "needs from results",
        own.need(Origin::Result),
        0.84,
    ));
    report.push(at_least(
        "needs from the user",
        own.need(Origin::User),
        0.99,
    ));
    report.push(at_least(
        "cache hit against raw",
        own.hits() / raw.hits(),
        0.95,
    ));
}

/// Needs against strategies that are cut to the budget, or as large as they are.
fn beside(report: &mut Report, block: &Block) {
    let kept = block.own.sum.need(Origin::Result);
    for Line { name, sum, .. } in &block.plain {
        let comparable = block.budget != PLAIN || *name == Kind::Mask.name();
        let least = (sum.need(Origin::Result) + 0.05).min(0.95);
        let name = format!("needs from results, beside {name}");
        report.push(match comparable {
            true => at_least(&name, kept, least),
            false => shown(&name, kept),
        });
    }
}

/// Limits for all sessions.
fn always(report: &mut Report, set: &Set, block: &Block) {
    let (raw, own) = (&block.raw.sum, &block.own.sum);
    // In the generated sessions most failures are resolved in the end, and what is resolved may go.
    if block.budget == PLAIN && set.plain {
        for (name, kind, least) in [
            ("files written", FactKind::Written, 1.0),
            ("failing commands", FactKind::Failed, 1.0),
            ("first error lines", FactKind::ErrorLine, 0.98),
        ] {
            report.push(at_least(name, own.fact(kind), least));
        }
        report.push(shown("user requests", own.fact(FactKind::Request)));
    }
    let hits = own.hits() / raw.hits();
    report.push(shown("cache hit against raw, any budget", hits));
    report.push(at_least(
        "begins with the view before, between epochs",
        own.steady.ratio(),
        1.0,
    ));
    report.push(count("orphans, or refused by a vendor", own.orphans, 0));
}

/// A number of something, with the most that there may be.
fn count(name: &str, found: usize, most: usize) -> Row {
    Row {
        name: name.to_owned(),
        figure: found.to_string(),
        ratio: Some(found as f64),
        limit: Some(Limit::AtMost(most as f64)),
    }
}

fn at_most(name: &str, ratio: f64, limit: f64) -> Row {
    limited(name, ratio, Some(Limit::AtMost(limit)))
}

fn at_least(name: &str, ratio: f64, limit: f64) -> Row {
    // Figures with two digits are compared with four.
    let limit = (limit * 10_000.0).round() / 10_000.0;
    limited(name, ratio, Some(Limit::AtLeast(limit)))
}

fn shown(name: &str, ratio: f64) -> Row {
    limited(name, ratio, None)
}

fn limited(name: &str, ratio: f64, limit: Option<Limit>) -> Row {
    Row {
        name: name.to_owned(),
        figure: format!("{:.1} %", ratio * 100.0),
        ratio: Some(ratio),
        limit,
    }
}
