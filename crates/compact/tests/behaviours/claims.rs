//! Generated histories with every outcome, tool and amount of room: no line of any digest claims more than the
//! record.

use std::collections::BTreeMap;

use throughline_compact::{Block, Category, Planned, Policy};
use throughline_model::{Outcome, ToolCall};
use throughline_testkit::{Rng, property};

use crate::behaviours::told::{Told, answer, call, calls, results};

/// A tool of each category, and what a digest says of a call of it that ended well.
const TOOLS: [(Category, &str, &str); 8] = [
    (Category::Read, "read_file", "Read"),
    (Category::Write, "edit_file", "Edited"),
    (Category::Execute, "bash", "Ran"),
    (Category::Query, "grep", "Searched"),
    (Category::Structured, "fetch_record", "Called"),
    (Category::Plan, "taskupdate", "Called"),
    (Category::Media, "screenshot", "Called"),
    (Category::Other, "frobnicate", "Called"),
];

/// Outputs that look like success or failure; none has the name of an outcome that is not `ok`.
const OUTPUTS: [&str; 7] = [
    "",
    "done ok",
    "exit code 0\nall built",
    "Exit code 3\nfatal: no tide",
    "fn name_of_it() {}\nfn other_name() {}",
    "{\"height\":4,\"at\":\"Hull\"}",
    "FAIL tests/tide",
];

/// One call as the record has it.
struct Made {
    call: ToolCall,
    category: Category,
    /// What it is about; a call of one message shares it with no other of that message.
    subject: String,
    /// The number of the message that has the call.
    called: u64,
    /// The number that a digest has for it.
    seq: u64,
    /// None as long as there is no result.
    outcome: Option<Outcome>,
    output: &'static str,
}

fn made(rng: &mut Rng, id: usize, subject: String) -> Made {
    let (category, tool, _) = *rng.pick(&TOOLS);
    // Long enough to be cut at the shortest level.
    let pad = "and_more ".repeat(if rng.chance(0.3) { 20 } else { 0 });
    let arguments = match category {
        Category::Read => format!(r#"{{"path":"/src/{subject}.rs"}}"#),
        Category::Write => {
            format!(r#"{{"path":"/src/{subject}.rs","content":"fn a_{subject}() {{}}\nb\n{pad}"}}"#)
        }
        Category::Execute => format!(r#"{{"command":"make {subject} {pad}"}}"#),
        Category::Query => format!(r#"{{"pattern":"{subject} {pad}"}}"#),
        Category::Structured | Category::Plan | Category::Media | Category::Other => {
            format!(r#"{{"about":"{subject}","pad":"{pad}"}}"#)
        }
    };
    Made {
        call: call(&format!("call_{id}"), tool, &arguments),
        category,
        subject,
        called: 0,
        seq: 0,
        outcome: None,
        output: rng.pick::<&'static str>(&OUTPUTS),
    }
}

fn policy(rng: &mut Rng) -> Policy {
    let base = Policy {
        recent_calls: rng.range(0..=3) as u32,
        min_gain: 0,
        regrowth: 5,
        block_share: rng.range(5..=60) as u64,
        categories: vec![("fetch_*".into(), Category::Structured)],
        ..Policy::default()
    };
    match rng.below(3) {
        0 => Policy {
            threshold: rng.range(50..=800) as u64,
            ..base
        },
        _ => Policy {
            budget: Some(rng.range(300..=4_000) as u64),
            ..base
        },
    }
}

/// What was looked at.
#[derive(Default)]
struct Counts {
    histories: u64,
    epochs: u64,
    ledgers: u64,
    lines: u64,
    merged: u64,
    /// Lines with an outcome in one word, as they are written where there is little room.
    brief: u64,
    /// Lines whose first words are cut.
    cut: u64,
    by_end: BTreeMap<(&'static str, &'static str), u64>,
}

fn word(outcome: Option<Outcome>) -> &'static str {
    outcome.map_or("no result recorded", Outcome::as_str)
}

/// A number behind a sign, if the sign is there.
fn number(line: &str, sign: &str) -> Option<usize> {
    let (_, rest) = line.split_once(sign)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Whether a line claims no more than the calls that it stands for.
fn check(line: &str, all: &[Made], cut: u64, counts: &mut Counts) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{why}: {line}"));
    let inside = line.strip_prefix("[Earlier: ").unwrap_or_default();
    if ["User: ", "Said: ", "Also seen"]
        .iter()
        .any(|start| inside.starts_with(start))
    {
        return Ok(());
    }
    let seq = line.rsplit_once(" #").and_then(|(_, seq)| {
        let seq = seq.strip_suffix(']')?;
        seq.parse::<u64>().ok()
    });
    let Some(last) = all
        .iter()
        .find(|made| Some(made.seq) == seq && inside.contains(&made.subject))
    else {
        return wrong("no call");
    };
    let outcome = last.outcome;
    let ok = outcome == Some(Outcome::Ok);
    let named = |word: &str| inside.contains(&format!("→ {word}"));
    let done = TOOLS
        .iter()
        .find(|(_, _, verb)| inside.starts_with(&format!("{verb} ")));
    match (ok, done) {
        (true, None) => return wrong("done, but told as asked for"),
        (false, Some(_)) => return wrong("told as done"),
        (true, Some(_)) | (false, None) => {}
    }
    if !ok {
        if !named(word(outcome)) {
            return wrong("the outcome is not named");
        }
        for claim in ["→ ok", "lines ok", "/-", "defines", "touching", ", read ×"] {
            if inside.contains(claim) {
                return wrong(claim);
            }
        }
    }
    for other in Outcome::ALL.into_iter().map(Some).chain([None]) {
        if other != outcome && other != Some(Outcome::Ok) && named(word(other)) {
            return wrong("another outcome is named");
        }
    }
    // As many calls as it counts were about that, ended that way and are digested.
    let about = |category: Category| {
        let calls = all.iter().filter(move |made| {
            made.category == category
                && made.subject == last.subject
                && made.outcome == outcome
                && made.called < cut
        });
        calls.count()
    };
    let category = match inside.starts_with("Edited ") {
        true => Category::Write,
        false => last.category,
    };
    let times = number(inside, " ×")
        .filter(|_| !inside.contains(", read ×") || inside.matches('×').count() > 1);
    if times.unwrap_or(1) > about(category) {
        return wrong("more often than it happened");
    }
    if number(inside, ", read ×").unwrap_or(0) > about(Category::Read) {
        return wrong("read more often than it was");
    }
    if inside.contains(", changed since") {
        let written = all.iter().any(|made| {
            made.category == Category::Write
                && made.subject == last.subject
                && made.outcome == Some(Outcome::Ok)
                && Some(made.seq) > seq
        });
        if !written {
            return wrong("nothing changed it");
        }
    }
    counts.lines += 1;
    counts.merged += u64::from(times.is_some());
    counts.cut += u64::from(inside.contains("and_mor") && inside.contains('…'));
    let brief = [" did not run", "before it had", "was lost"]
        .iter()
        .all(|more| !inside.contains(more));
    let has_words = !matches!(outcome, None | Some(Outcome::Ok | Outcome::Error));
    counts.brief += u64::from(brief && has_words);
    *counts
        .by_end
        .entry((last.category.as_str(), word(outcome)))
        .or_default() += 1;
    Ok(())
}

fn block(block: &Block, all: &[Made], cut: u64, counts: &mut Counts) -> Result<(), String> {
    let mut written = 0;
    for line in block.text.lines().skip(1) {
        check(line, all, cut, counts)?;
        written += u64::from(line.starts_with("[Earlier: Edited "));
    }
    match written == block.facts.files_written {
        true => Ok(()),
        false => Err(format!(
            "{written} files written in the text, {} in the report",
            block.facts.files_written
        )),
    }
}

/// Let an epoch hold, if one is due, and look at what it says.
fn look(told: &mut Told, all: &[Made], counts: &mut Counts) -> Result<(), String> {
    let Planned::Epoch(epoch, _) = told.plan() else {
        return Ok(());
    };
    counts.epochs += 1;
    for one in epoch.blocks.iter().filter(|one| one.epoch == epoch.no) {
        counts.ledgers += u64::from(one.ledger);
        block(one, all, epoch.cut_seq, counts)?;
    }
    match told.history.install(epoch) {
        true => Ok(()),
        false => Err("an epoch was not installed".to_owned()),
    }
}

fn history(rng: &mut Rng, size: usize, counts: &mut Counts) -> Result<(), String> {
    counts.histories += 1;
    let mut told = Told::new(policy(rng));
    let mut all: Vec<Made> = Vec::new();
    let subjects = rng.range(1..=6);
    told.user("begin");
    for round in 0..10 + size / 2 {
        let count = rng.range(1..=3.min(subjects));
        let first = rng.below(subjects);
        let from = all.len();
        for at in 0..count {
            let subject = format!("subject_{:02}", (first + at) % subjects);
            all.push(made(rng, from + at, subject));
        }
        let seq = told.push(calls(
            all[from..].iter().map(|made| made.call.clone()).collect(),
        ));
        let mut answers = Vec::new();
        let next = seq + 1;
        for made in &mut all[from..] {
            made.called = seq;
            made.seq = seq;
            if rng.chance(0.8) {
                let outcome = *rng.pick(&Outcome::ALL);
                made.outcome = Some(outcome);
                made.seq = next;
                answers.push(answer(&made.call, outcome, made.output));
            }
        }
        if !answers.is_empty() {
            told.push(results(answers));
        }
        // A result that comes when something else was said.
        let open: Vec<usize> = (0..all.len())
            .filter(|at| all[*at].outcome.is_none())
            .collect();
        if !open.is_empty() && rng.chance(0.3) {
            let made = &mut all[*rng.pick(&open)];
            let outcome = *rng.pick(&Outcome::ALL);
            made.outcome = Some(outcome);
            made.seq = told.push(results(vec![answer(&made.call, outcome, made.output)]));
        }
        if rng.chance(0.3) {
            told.user(&format!("turn {round}"));
        }
        look(&mut told, &all, counts)?;
    }
    Ok(())
}

#[test]
fn b249_generated_digests_never_claim_more_than_the_outcome() {
    let mut counts = Counts::default();
    property("b249 claims", 150, |rng, size| {
        history(rng, size, &mut counts)
    });
    let Counts {
        histories,
        epochs,
        ledgers,
        lines,
        merged,
        brief,
        cut,
        by_end,
    } = counts;
    println!(
        "campaign b249 claims: histories={histories} epochs={epochs} ledgers={ledgers} lines={lines} merged={merged} brief={brief} cut={cut} ends={} fewest={} claimed=0",
        by_end.len(),
        by_end.values().min().copied().unwrap_or_default()
    );
    // Every category with every outcome and without a result, at every level of detail.
    assert_eq!(by_end.len(), TOOLS.len() * (Outcome::ALL.len() + 1));
    for (what, count) in [
        ("ledgers", ledgers),
        ("merged", merged),
        ("brief", brief),
        ("cut", cut),
    ] {
        assert!(count > 0, "no {what}");
    }
}
