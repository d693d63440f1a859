//! The table: every strategy at every budget, and our limits.

use std::collections::BTreeSet;
use std::thread;

use serde_json::Value;
use throughline_testkit::bench::Report;
use throughline_wire::Wire;

use crate::baseline::{Baseline, Kind};
use crate::count::Counter;
use crate::limits;
use crate::options::BenchOptions;
use crate::ours::Ours;
use crate::print;
use crate::replay::{Case, Measured, Replay, replay};
use crate::same_size::{Cut, CutKind};
use crate::say;
use crate::today::Today;

const BUDGETS: [u64; 4] = [8_000, 16_000, 32_000, 64_000];

/// The budget at which the other strategies are as large as they are; at others they are cut to the
/// budget. Figures of earlier versions are of this one.
pub(crate) const PLAIN: u64 = 32_000;

/// Sessions that are measured together.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) cases: Vec<Case>,
    /// Whether the prototype was measured with these sessions.
    pub(crate) prototype: bool,
    /// Whether other strategies are replayed as large as they are.
    pub(crate) plain: bool,
    /// The figures of an earlier version.
    pub(crate) today: Option<Today>,
}

/// A line of the table.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) sum: Measured,
    pub(crate) each: Vec<(String, Measured)>,
}

/// All that was measured of a set at one budget.
pub(crate) struct Block {
    pub(crate) title: String,
    pub(crate) budget: u64,
    pub(crate) sessions: usize,
    pub(crate) raw: Line,
    /// Other strategies, as large as they are or cut to the budget.
    pub(crate) plain: Vec<Line>,
    /// Other strategies, cut to the size of our views.
    pub(crate) same_size: Vec<Line>,
    pub(crate) own: Line,
    /// Our compaction of the sessions that its rules may be fitted to, and of the others.
    pub(crate) halves: [Line; 2],
}

/// Whether the strategies that ours is compared with are replayed as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    Replayed,
    LeftOut,
}

/// The outcome of a bench.
#[derive(Default)]
pub(crate) struct Verdict {
    /// What is over its limit.
    pub(crate) over: Vec<String>,
    /// Everything that was measured.
    pub(crate) json: Vec<Value>,
}

/// Replays a set at every budget and adds to the verdict.
pub(crate) fn compare(
    set: &Set,
    options: &BenchOptions,
    counter: &mut Counter,
    verdict: &mut Verdict,
) {
    let others = match options.alone {
        true => Others::LeftOut,
        false => Others::Replayed,
    };
    say(&format!("{}: the whole history", set.name));
    // It does not depend on a budget.
    let raw = measure(
        Kind::Raw.name(),
        &set.cases.iter().collect::<Vec<_>>(),
        |_, case| {
            let mut raw = Baseline::new(Kind::Raw, None);
            replay(case, &mut raw, plain_replay(None), counter)
        },
    );
    let budgets = BUDGETS
        .iter()
        .filter(|budget| !options.quick || **budget == PLAIN);
    for budget in budgets.copied() {
        let cases: Vec<&Case> = set.cases.iter().filter(|case| case.size > budget).collect();
        if cases.is_empty() {
            continue;
        }
        let known = raw.each.iter();
        let known = known.filter(|(name, _)| cases.iter().any(|case| case.session.name == *name));
        let raw = Line::new(Kind::Raw.name(), known.cloned().collect());
        let block = block(set, raw, &cases, budget, others, counter);
        let mut report = Report::new(block.title.clone());
        limits::check(&mut report, set, &block);
        if budget == PLAIN && others == Others::Replayed {
            let outputs = distinct(&cases, &block.own.sum);
            report.push(limits::outputs(outputs));
        }
        let over = report.rows.iter().filter(|row| !row.holds());
        let over = over.map(|row| format!("{}: {}", block.title, row.name));
        verdict.over.extend(over);
        if options.json {
            verdict.json.push(print::json(set, &block, &report));
        } else {
            print::tables(&block, options);
            let _ = report.finish();
        }
    }
}

fn block(
    set: &Set,
    raw: Line,
    cases: &[&Case],
    budget: u64,
    others: Others,
    counter: &mut Counter,
) -> Block {
    let title = format!(
        "{}, {} sessions, {}k",
        set.name,
        cases.len(),
        budget / 1_000
    );
    say(&format!("{title}: throughline"));
    let own = measure("throughline", cases, |_, case| {
        let how = Replay {
            wires: &Wire::KNOWN,
            budget: Some(budget),
        };
        replay(case, &mut Ours::new(budget), how, counter)
    });
    let replayed = others == Others::Replayed;
    let mut plain = Vec::new();
    for kind in Kind::SHORT.into_iter().filter(|_| set.plain && replayed) {
        say(&format!("{title}: {}", kind.name()));
        let cut = match kind {
            Kind::Raw | Kind::DropOldest => Some(budget),
            Kind::KeepLast | Kind::Mask | Kind::HeadSummary => (budget != PLAIN).then_some(budget),
        };
        plain.push(measure(kind.name(), cases, |_, case| {
            replay(
                case,
                &mut Baseline::new(kind, cut),
                plain_replay(cut),
                counter,
            )
        }));
    }
    let mut same_size = Vec::new();
    for kind in CutKind::ALL.into_iter().filter(|_| replayed) {
        say(&format!("{title}: {}, cut to the same size", kind.name()));
        same_size.push(measure(kind.name(), cases, |place, case| {
            let sizes = own.each.get(place).map_or(&[][..], |(_, own)| &own.sizes);
            replay(
                case,
                &mut Cut::new(kind, sizes),
                plain_replay(Some(budget)),
                counter,
            )
        }));
    }
    let half = |name, wanted| {
        let each = own.each.iter().filter(|(name, _)| is_tuned(name) == wanted);
        Line::new(name, each.cloned().collect())
    };
    Block {
        halves: [half("tuned half", true), half("held-out half", false)],
        title,
        budget,
        sessions: cases.len(),
        raw,
        plain,
        same_size,
        own,
    }
}

/// Whether rules may be fitted to a session: half of all, by the hash of its name. Rules that were
/// fitted too closely do worse on the others.
fn is_tuned(name: &str) -> bool {
    // FNV-1a, whose upper bits are better distributed.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 32 & 1 == 0
}

fn plain_replay(budget: Option<u64>) -> Replay<'static> {
    Replay {
        wires: &[Wire::OpenAiChat],
        budget,
    }
}

fn measure(
    name: &'static str,
    cases: &[&Case],
    mut replayed: impl FnMut(usize, &Case) -> Measured,
) -> Line {
    let cases = cases.iter().enumerate();
    let each = cases.map(|(place, case)| (case.session.name.clone(), replayed(place, case)));
    Line::new(name, each.collect())
}

/// How many different outputs the same sessions give: repeated once, and twice concurrently.
fn distinct(cases: &[&Case], first: &Measured) -> usize {
    let again = || {
        let mut counter = Counter::default();
        let mut sum = Measured::default();
        let how = Replay {
            wires: &[],
            budget: Some(PLAIN),
        };
        for case in cases {
            sum.add(&replay(case, &mut Ours::new(PLAIN), how, &mut counter));
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
