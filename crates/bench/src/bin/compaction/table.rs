//! The table: every strategy at every budget, and our limits.

use std::collections::BTreeSet;
use std::thread;

use throughline_testkit::bench::{Limit, Report, Row};
use throughline_testkit::trajectory::{FactKind, Origin};
use throughline_wire::Wire;

use crate::baseline::{Baseline, Kind};
use crate::count::Counter;
use crate::ours::Ours;
use crate::replay::{Case, Measured, replay};

const BUDGETS: [u64; 4] = [8_000, 16_000, 32_000, 64_000];

/// The budget at which baselines are not cut; at others they are.
const PLAIN: u64 = 32_000;

/// Optional output.
#[derive(Clone, Copy, Default)]
pub(crate) struct Detail {
    /// A line for each session.
    pub(crate) sessions: bool,
    /// The needs that were not met.
    pub(crate) missed: bool,
}

/// Sessions that are measured together.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case>,
    /// Whether the prototype was measured with these sessions.
    pub(crate) recorded: bool,
}

/// A line of the table.
struct Line {
    name: &'static str,
    sum: Measured,
    each: Vec<(String, Measured)>,
}

/// Replays a set at every budget; returns whether all limits hold.
pub(crate) fn compare(set: &Set, detail: Detail, counter: &mut Counter) -> bool {
    let mut holds = true;
    // The whole history does not depend on a budget.
    let raw: Vec<(String, Measured)> = set
        .cases
        .iter()
        .map(|case| {
            let mut raw = Baseline::new(Kind::Raw, None);
            let measured = replay(case, &mut raw, &[Wire::OpenAiChat], counter);
            (case.session.name.clone(), measured)
        })
        .collect();
    for budget in BUDGETS {
        let cases: Vec<&Case> = set.cases.iter().filter(|case| case.size > budget).collect();
        if cases.is_empty() {
            continue;
        }
        let known = raw
            .iter()
            .filter(|(name, _)| cases.iter().any(|case| case.session.name == *name));
        let mut lines = vec![Line::new(Kind::Raw.name(), known.cloned().collect())];
        for kind in Kind::SHORT {
            let cut = match kind {
                Kind::Raw | Kind::DropOldest => Some(budget),
                Kind::KeepLast | Kind::Mask | Kind::HeadSummary => {
                    (budget != PLAIN).then_some(budget)
                }
            };
            let each = cases.iter().map(|case| {
                let mut baseline = Baseline::new(kind, cut);
                let measured = replay(case, &mut baseline, &[Wire::OpenAiChat], counter);
                (case.session.name.clone(), measured)
            });
            lines.push(Line::new(kind.name(), each.collect()));
        }
        let each = cases
            .iter()
            .map(|case| (case.session.name.clone(), ours(case, budget, counter)));
        lines.push(Line::new("throughline", each.collect()));
        let title = format!(
            "{}, {} sessions, {}k",
            set.name,
            cases.len(),
            budget / 1_000
        );
        print(&title, &lines, budget, detail);
        if let [raw, baselines @ .., own] = lines.as_slice() {
            let mut report = Report::new(title);
            if set.recorded && budget == PLAIN {
                prototype(&mut report, raw, baselines, own);
            }
            bars(&mut report, raw, baselines, own, budget);
            halves(&mut report, own);
            if budget == PLAIN {
                let outputs = distinct(&cases, &own.sum);
                report.push(at_most(
                    "distinct outputs, four runs, two threads",
                    outputs as f64,
                    1.0,
                ));
            }
            holds &= report.holds();
            let _ = report.finish();
        }
    }
    holds
}

fn ours(case: &Case, budget: u64, counter: &mut Counter) -> Measured {
    replay(case, &mut Ours::new(budget), &Wire::KNOWN, counter)
}

/// The values of the prototype for these sessions, and the aims.
fn prototype(report: &mut Report, raw: &Line, baselines: &[Line], own: &Line) {
    let (raw, own) = (&raw.sum, &own.sum);
    for mask in baselines
        .iter()
        .filter(|line| line.name == Kind::Mask.name())
    {
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

/// Limits for all sessions.
fn bars(report: &mut Report, raw: &Line, baselines: &[Line], own: &Line, budget: u64) {
    let kept = own.sum.need(Origin::Result);
    for line in baselines {
        let comparable = budget != PLAIN || line.name == Kind::Mask.name();
        let least = (line.sum.need(Origin::Result) + 0.05).min(0.95);
        let name = format!("needs from results, beside {}", line.name);
        report.push(match comparable {
            true => at_least(&name, kept, least),
            false => shown(&name, kept),
        });
    }
    if budget == PLAIN {
        for (name, kind, least) in [
            ("files written", FactKind::Written, 1.0),
            ("failing commands", FactKind::Failed, 1.0),
            ("first error lines", FactKind::ErrorLine, 0.98),
        ] {
            report.push(at_least(name, own.sum.fact(kind), least));
        }
        report.push(shown("user requests", own.sum.fact(FactKind::Request)));
    }
    let hits = own.sum.hits() / raw.sum.hits();
    report.push(shown("cache hit against raw, any budget", hits));
    report.push(at_least(
        "begins with the view before, between epochs",
        own.sum.steady.ratio(),
        1.0,
    ));
    report.push(at_most(
        "calls over budget",
        own.sum.over(budget) as f64,
        0.0,
    ));
    report.push(at_most(
        "orphans, or refused by a vendor",
        own.sum.orphans as f64,
        0.0,
    ));
}

/// The needs of two halves of the sessions, split by their names: rules that were fitted to some
/// sessions would do worse on the others.
fn halves(report: &mut Report, own: &Line) {
    let mut halves = [(0, Measured::default()), (0, Measured::default())];
    for (name, measured) in &own.each {
        // FNV-1a, whose upper bits are better distributed.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let (count, sum) = &mut halves[usize::from(hash >> 32 & 1 == 1)];
        *count += 1;
        sum.add(measured);
    }
    for (half, (count, sum)) in ["one", "other"].into_iter().zip(&halves) {
        let needs = sum.needs.get(&Origin::Result).copied().unwrap_or_default();
        let name = format!(
            "needs of the {half} half, {count} sessions, {} needs",
            needs.of
        );
        report.push(shown(&name, needs.ratio()));
    }
}

/// How many different outputs the same sessions give: repeated once, and twice concurrently.
fn distinct(cases: &[&Case], first: &Measured) -> usize {
    let again = || {
        let mut counter = Counter::default();
        let mut sum = Measured::default();
        for case in cases {
            sum.add(&replay(case, &mut Ours::new(PLAIN), &[], &mut counter));
        }
        sum.digest
    };
    let mut seen = BTreeSet::from([first.digest, again()]);
    thread::scope(|scope| {
        let threads = [scope.spawn(again), scope.spawn(again)];
        for found in threads {
            // A thread that panicked has no output, which counts as one more.
            seen.insert(found.join().unwrap_or_default());
        }
    });
    seen.len()
}

impl Line {
    fn new(name: &'static str, each: Vec<(String, Measured)>) -> Self {
        let mut sum = Measured::default();
        each.iter().for_each(|(_, measured)| sum.add(measured));
        Self { name, sum, each }
    }
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print(title: &str, lines: &[Line], budget: u64, detail: Detail) {
    println!("== {title}");
    println!(
        "{:<16}{:>8}{:>7}{:>9}{:>7}{:>7}{:>8}{:>7}{:>10}{:>7}{:>8}{:>8}{:>9}",
        "% of raw, kept",
        "tokens",
        "over",
        "results",
        "user",
        "files",
        "failed",
        "errors",
        "requests",
        "hit",
        "cost",
        "epochs",
        "orphans"
    );
    let Some(raw) = lines.first() else {
        return;
    };
    for line in lines {
        row(line.name, &line.sum, &raw.sum, budget);
        if detail.sessions {
            for ((name, measured), (_, raw)) in line.each.iter().zip(&raw.each) {
                row(&format!("  {name}"), measured, raw, budget);
            }
        }
    }
    if let Some(own) = lines.last().filter(|_| detail.missed) {
        for (session, measured) in &own.each {
            let sizes = measured.sizes.iter().enumerate();
            for (call, size) in sizes.filter(|(_, size)| **size > budget) {
                println!("over {session}: model call {call} has {size} tokens");
            }
        }
        for (session, need) in &own.sum.missed {
            println!("missed {session}: {need:?}");
        }
        for (session, fact) in &own.sum.forgotten {
            println!("forgotten {session}: {fact:?}");
        }
    }
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn row(name: &str, own: &Measured, raw: &Measured, budget: u64) {
    let percent = |value: f64| format!("{:.1}", value * 100.0);
    println!(
        "{:<16.16}{:>8}{:>7}{:>9}{:>7}{:>7}{:>8}{:>7}{:>10}{:>7}{:>8}{:>8}{:>9}",
        name,
        percent(own.tokens as f64 / raw.tokens as f64),
        percent(own.over(budget) as f64 / own.calls as f64),
        percent(own.need(Origin::Result)),
        percent(own.need(Origin::User)),
        percent(own.fact(FactKind::Written)),
        percent(own.fact(FactKind::Failed)),
        percent(own.fact(FactKind::ErrorLine)),
        percent(own.fact(FactKind::Request)),
        percent(own.hits()),
        percent(own.cost / raw.cost),
        own.epochs,
        own.orphans
    );
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
