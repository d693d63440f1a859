//! Tables for people, and JSON for programs.

use serde_json::{Value, json};
use throughline_testkit::bench::{Limit, Report};
use throughline_testkit::trajectory::{FactKind, Origin};

use crate::options::BenchOptions;
use crate::probe::Metric;
use crate::replay::Measured;
use crate::table::{Block, Line, Set};

/// Prints what was measured at one budget.
#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
pub(crate) fn tables(block: &Block, options: &BenchOptions) {
    if !block.plain.is_empty() {
        println!("== {}, each as large as it is", block.title);
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
        for line in std::iter::once(&block.raw)
            .chain(&block.plain)
            .chain([&block.own])
        {
            whole_row(line.name, &line.sum, &block.raw.sum, block.budget);
        }
    }
    println!("== {}, all cut to the size of our views", block.title);
    print!(
        "{:<16}{:>8}{:>6}{:>7}",
        "% shown", "tokens", "over", "forced"
    );
    for metric in Metric::ALL {
        print!("{:>9}", metric.name());
    }
    println!("{:>7}{:>7}", "hit", "cost");
    for line in std::iter::once(&block.raw)
        .chain(&block.same_size)
        .chain([&block.own])
    {
        row(line.name, &line.sum, &block.raw.sum, block.budget);
    }
    for half in block.halves.iter().filter(|half| !half.each.is_empty()) {
        let raw = raw_of(half, &block.raw);
        row(half.name, &half.sum, &raw, block.budget);
    }
    print!("{:<37}", "  of how many");
    for metric in Metric::ALL {
        print!("{:>9}", block.own.sum.share(metric).of);
    }
    println!();
    if options.each {
        for ((name, own), (_, raw)) in block.own.each.iter().zip(&block.raw.each) {
            row(&format!("  {name}"), own, raw, block.budget);
        }
    }
    if options.missed {
        missed(block);
    }
}

/// The whole histories of the sessions of a line.
fn raw_of(line: &Line, raw: &Line) -> Measured {
    let mut sum = Measured::default();
    let named = raw.each.iter();
    let named = named.filter(|(name, _)| line.each.iter().any(|(other, _)| other == name));
    named.for_each(|(_, measured)| sum.add(measured));
    sum
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn missed(block: &Block) {
    for (session, own) in &block.own.each {
        let sizes = own.sizes.iter().enumerate();
        for (call, size) in sizes.filter(|(_, size)| **size > block.budget) {
            println!("over {session}: model call {call} has {size} tokens");
        }
    }
    for (session, what) in &block.own.sum.missed {
        println!("missed {session}: {what}");
    }
    for (session, fact) in &block.own.sum.forgotten {
        println!("forgotten {session}: {fact:?}");
    }
}

fn percent(value: f64) -> String {
    format!("{:.1}", value * 100.0)
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn row(name: &str, own: &Measured, raw: &Measured, budget: u64) {
    print!(
        "{:<16.16}{:>8}{:>6}{:>7}",
        name,
        percent(own.tokens as f64 / raw.tokens as f64),
        own.over(budget) - own.forced,
        own.forced
    );
    for metric in Metric::ALL {
        let share = own.share(metric);
        let shown = (share.of > 0).then(|| percent(share.ratio()));
        print!("{:>9}", shown.unwrap_or_else(|| "–".to_owned()));
    }
    println!(
        "{:>7}{:>7}",
        percent(own.hits()),
        percent(own.cost / raw.cost)
    );
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn whole_row(name: &str, own: &Measured, raw: &Measured, budget: u64) {
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

/// Everything that was measured at one budget.
pub(crate) fn json(set: &Set, block: &Block, report: &Report) -> Value {
    let line = |line: &Line| measured(line.name, &line.sum, raw_of(line, &block.raw).cost, block);
    let lines = |lines: &[Line]| -> Vec<Value> { lines.iter().map(line).collect() };
    let limits = report.rows.iter().map(|row| {
        let (most, least) = match row.limit {
            Some(Limit::AtMost(most)) => (Some(most), None),
            Some(Limit::AtLeast(least)) => (None, Some(least)),
            None => (None, None),
        };
        json!({"name": row.name, "value": row.ratio, "at_most": most, "at_least": least, "holds": row.holds()})
    });
    let each = block.own.each.iter().zip(&block.raw.each);
    let each = each.map(|((name, own), (_, raw))| measured(name, own, raw.cost, block));
    json!({
        "set": set.name,
        "budget": block.budget,
        "sessions": block.sessions,
        "raw": line(&block.raw),
        "throughline": line(&block.own),
        "halves": lines(&block.halves),
        "same_size": lines(&block.same_size),
        "as_large_as_they_are": lines(&block.plain),
        "each": each.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
    })
}

fn measured(name: &str, own: &Measured, raw_cost: f64, block: &Block) -> Value {
    let shown: serde_json::Map<String, Value> = Metric::ALL
        .iter()
        .map(|metric| {
            let share = own.share(*metric);
            let value = json!({"of": share.of, "shown": share.kept});
            (metric.name().to_owned(), value)
        })
        .collect();
    json!({
        "name": name,
        "calls": own.calls,
        "tokens": own.tokens,
        "over": own.over(block.budget),
        "forced": own.forced,
        "hit": own.hits(),
        "cost": own.cost,
        "cost_against_raw": own.cost / raw_cost,
        "epochs": own.epochs,
        "orphans": own.orphans,
        "shown": shown,
    })
}
