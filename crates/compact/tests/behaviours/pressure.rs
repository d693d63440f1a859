//! What remains when there is little room: what waits, what cannot be left out, what went wrong.

use throughline_compact::tokens::text_units;
use throughline_compact::{Call, Planned, Policy};
use throughline_model::Outcome;

use crate::behaviours::told::{Told, call, calls};

/// A text of about so many units, each line of it another one.
fn long(what: &str, units: u32) -> String {
    let mut text = String::new();
    let mut at = 0;
    while text_units(&text) < units {
        for _ in 0..20 {
            text.push_str(&format!("{what} number {at} is as long as the others\n"));
            at += 1;
        }
    }
    text
}

#[test]
fn b163_a_call_without_a_result_pins_its_own_round_and_none_of_the_later_ones() {
    let mut told = Told::new(Policy::with_budget(8_000));
    told.user("look at all of them");
    let mut open = 0;
    let mut epochs = 0;
    for round in 0..120 {
        if round == 10 {
            open = told.push(calls(vec![call("lost", "look", r#"{"part":10}"#)]));
        } else {
            told.round(
                "look",
                &format!(r#"{{"part":{round}}}"#),
                &long("result", 100),
            );
        }
        if let Planned::Epoch(epoch, report) = told.plan() {
            assert_eq!(report.budget_unreachable, None, "{report}");
            told.history.install(epoch);
            epochs += 1;
        }
        assert!(told.history.units() <= 8_000);
    }
    assert!(epochs > 0);
    let shown = told
        .history
        .view()
        .iter()
        .filter(|one| ***one == *told.history.expand(open)[0]);
    assert_eq!(shown.count(), 1);
    assert!(told.digests().contains("part: 100"), "{}", told.digests());
}

#[test]
fn b157_a_round_that_waits_for_a_client_is_shown_wherever_it_stands() {
    let mut told = Told::new(Policy::with_budget(8_000));
    told.user("pay, and look meanwhile");
    let waits = told.push(calls(vec![call("pay", "pay", r#"{"sum":12}"#)]));
    told.user("what else is there?");
    for part in 0..60 {
        told.round(
            "look",
            &format!(r#"{{"part":{part}}}"#),
            &long("result", 150),
        );
    }
    let asked = Call {
        open: vec![waits],
        ..Call::default()
    };
    let Ok(Planned::Epoch(epoch, report)) = told.history.plan(&asked) else {
        unreachable!("it is over the budget");
    };
    assert_eq!(report.budget_unreachable, None);
    assert!(report.groups_digested >= 50, "{report}");
    told.history.install(epoch);
    assert!(told.history.units() <= 8_000);
    let whole = told.history.expand(waits);
    assert!(told.history.view().contains(&whole[0]));
}

#[test]
fn b164_a_huge_request_is_shown_in_part_and_digests_keep_their_share() {
    const BUDGET: u64 = 8_000;
    // The paste may be the first request, or the newest one.
    for first in [true, false] {
        let paste = format!("please mend this:\n{}and tell me why", long("line", 17_000));
        let mut told = Told::new(Policy::with_budget(BUDGET));
        let begin = match first {
            true => told.user(&paste),
            false => told.user("let us begin"),
        };
        for part in 0..90 {
            let read = format!(r#"{{"path":"/src/part_{part}.rs"}}"#);
            told.round(
                "read_file",
                &read,
                &format!("fn part_{part}() {{}}\n{}", long("code", 60)),
            );
        }
        let asked = match first {
            true => begin,
            false => told.user(&paste),
        };
        told.round("look", "{}", "fine");
        let (epoch, report) = told.compact();
        assert_eq!(report.budget_unreachable, None, "{report}");
        assert!(told.history.units() <= BUDGET);
        let mark = format!("left out, all of it is #{asked}]");
        let texts: Vec<String> = told.history.view().iter().map(|one| one.text()).collect();
        let shown = texts.iter().find(|text| text.contains(&mark)).unwrap();
        assert!(
            shown.starts_with("please mend this:\nline number 0 is"),
            "{shown}"
        );
        assert!(shown.ends_with("and tell me why"), "{shown}");
        // No more is left out than must be.
        assert!(told.history.units() * 10 > BUDGET * 6, "{report}");
        // Its whole text is one question away.
        assert_eq!(told.history.expand(asked)[0].text(), paste);
        let digests: u64 = epoch.blocks.iter().map(|block| block.units).sum();
        assert!(digests * 100 >= BUDGET * 14, "{digests} units of digests");
        assert!(told.digests().contains("part_80.rs"));
        // The same view is not planned again.
        assert!(matches!(told.plan(), Planned::Unchanged(_)));
    }
}

#[test]
fn b164_requests_that_fit_stay_as_they_were_said() {
    let mut told = Told::new(Policy::with_budget(8_000));
    let request = long("word", 3_000);
    told.user(&request);
    for part in 0..40 {
        let read = format!(r#"{{"path":"/src/part_{part}.rs"}}"#);
        told.round("read_file", &read, &long("code", 150));
    }
    let (epoch, _) = told.compact();
    assert_eq!(epoch.shortened_requests, []);
    assert_eq!(told.history.view()[0].text(), request);
}

#[test]
fn b168_the_first_error_of_what_still_fails_is_kept_at_every_budget() {
    for budget in [4_000, 8_000, 16_000, 32_000] {
        let mut told = Told::new(Policy::with_budget(budget));
        told.user("mend the build");
        let mut failed = Vec::new();
        let mut lost = 0;
        for round in 0..90 {
            let command = format!(r#"{{"command":"make part_{}"}}"#, round % 30);
            if round % 3 == 0 && round < 60 {
                let error = format!("error[E0{round}]: no field `tide_{round}` in harbour.rs");
                let output = format!("{}{error}\n{}", long("built", 120), long("noise", 120));
                let seq = told.ended("Bash", &command, Outcome::Error, &output);
                failed.push((round, seq, error));
            } else {
                told.round("Bash", &command, &long("built", 240));
                // What succeeds later is no failure any more.
                failed.retain(|(at, ..)| at % 30 != round % 30);
            }
            if let Planned::Epoch(epoch, _) = told.plan() {
                told.history.install(epoch);
            }
            let view = told.history.view().iter();
            let texts: Vec<String> = view.map(|one| one.to_json()).collect();
            let text = texts.join("\n");
            for (_, seq, error) in &failed {
                if !text.contains(error.as_str()) {
                    println!("{budget}: #{seq} {error} is not shown after round {round}");
                    lost += 1;
                }
            }
        }
        assert_eq!(lost, 0, "with {budget}");
    }
}

#[test]
fn what_rendering_adds_to_a_view_counts_towards_the_budget() {
    let mut told = Told::new(Policy::with_budget(4_000));
    told.user("ask all of them");
    let before = told.history.units();
    told.push(calls(vec![
        call("one", "ask", "{}"),
        call("two", "ask", "{}"),
    ]));
    let open = told.history.units() - before;
    let mut closed = Told::new(Policy::with_budget(4_000));
    closed.user("ask all of them");
    closed.push(calls(vec![
        call("one", "ask", "{}"),
        call("two", "ask", "{}"),
    ]));
    for id in ["one", "two"] {
        let answer = crate::behaviours::told::answer(&call(id, "ask", "{}"), Outcome::Ok, "");
        closed.push(crate::behaviours::told::results(vec![answer]));
    }
    // Rendering adds a result that says that there is none.
    let answered = closed.history.units() - before;
    assert!(
        open >= answered + 30,
        "{open} units open, {answered} answered"
    );
}

#[test]
fn b175_files_that_are_worked_on_stay_as_they_were_read_last() {
    let mut told = Told::new(Policy::with_budget(8_000));
    told.user("mend the harbour");
    let read = |told: &mut Told, name: &str, text: &str| {
        told.round(
            "Read",
            &format!(r#"{{"file_path":"/src/{name}.rs"}}"#),
            text,
        )
    };
    let text = |word: &str| format!("fn {word}() {{\n    let depth = \"{word}\";\n}}\n");
    read(&mut told, "tide", &text("the_tide_before"));
    let tide = read(&mut told, "tide", &text("the_tide_now"));
    read(&mut told, "moon", &text("the_moon"));
    let edit = r#"{"file_path":"/src/moon.rs","old_string":"the_moon","new_string":"a_moon"}"#;
    told.round("Edit", edit, "done");
    let mut epochs = 0;
    for part in 0..60 {
        told.round(
            "Bash",
            &format!(r#"{{"command":"run {part}"}}"#),
            &long("line", 300),
        );
        if let Planned::Epoch(epoch, _) = told.plan() {
            assert_eq!(epoch.blocks.iter().filter(|block| block.working).count(), 1);
            told.history.install(epoch);
            epochs += 1;
        }
        assert!(told.history.units() <= 8_000);
    }
    assert!(epochs > 1);
    let view = told.history.view();
    // Results of their calls, and not text of a user.
    for shown in [told.history.expand(tide), told.history.expand(tide + 2)] {
        assert!(shown.iter().all(|message| view.contains(message)));
    }
    let texts: Vec<String> = view.iter().map(|one| one.to_json()).collect();
    let text = texts.join("\n");
    assert!(text.contains(r#"let depth = \"the_tide_now\""#) && text.contains("a_moon"));
    // What was read again since is not needed.
    assert!(!text.contains(r#"let depth = \"the_tide_before\""#));
}

/// A conversation that reads files and runs commands, of this budget, in a round each.
fn reading(told: &mut Told, part: usize) {
    told.round(
        "Read",
        &format!(r#"{{"file_path":"/src/part_{part}.rs"}}"#),
        &long(&format!("read_{part}"), 40),
    );
    told.round(
        "Bash",
        &format!(r#"{{"command":"run {part}"}}"#),
        &long("line", 200),
    );
}

#[test]
fn files_that_are_worked_on_stay_in_their_place_until_the_next_ledger() {
    let mut told = Told::new(Policy::with_budget(8_000));
    told.user("mend the harbour");
    let mut kept = 0;
    for part in 0..60 {
        reading(&mut told, part);
        let before = told.history.epoch().cloned();
        if let Planned::Epoch(epoch, report) = told.plan() {
            if let Some(before) = before.filter(|_| !report.major) {
                assert!(epoch.blocks.starts_with(&before.blocks));
                kept += usize::from(before.blocks.iter().any(|block| block.working));
            }
            told.history.install(epoch);
        }
        assert!(told.history.units() <= 8_000);
    }
    assert!(kept > 1, "{kept}");
}

#[test]
fn a_round_that_is_pinned_is_shown_in_full_though_results_of_it_were_left_out() {
    let mut told = Told::new(Policy::with_budget(8_000));
    told.user("mend the harbour");
    let (large, small) = (
        call("large", "Read", r#"{"file_path":"/src/large.rs"}"#),
        call("small", "Read", r#"{"file_path":"/src/small.rs"}"#),
    );
    let answers = vec![
        crate::behaviours::told::answer(&large, Outcome::Ok, &long("large", 1_500)),
        crate::behaviours::told::answer(&small, Outcome::Ok, &long("small", 20)),
    ];
    let round = told.push(calls(vec![large, small]));
    told.push(crate::behaviours::told::results(answers));
    let next = |told: &mut Told| {
        let no = told.history.epoch().map(|epoch| epoch.no);
        while told.history.epoch().map(|epoch| epoch.no) == no {
            told.round("Bash", r#"{"command":"run"}"#, &long("line", 200));
            if let Planned::Epoch(epoch, _) = told.plan() {
                told.history.install(epoch);
            }
        }
    };
    next(&mut told);
    let blocks = &told.history.epoch().unwrap().blocks;
    assert!(blocks.iter().any(|block| !block.left_out.is_empty()));
    assert!(told.history.pin(round));
    next(&mut told);
    let view = told.history.view();
    for message in told.history.expand(round) {
        let shown = view.iter().filter(|one| **one == message).count();
        assert_eq!(shown, 1);
    }
}

#[test]
fn a_result_that_is_little_too_long_loses_little() {
    let mut told = Told::new(Policy {
        single_result: 1_000,
        ..Policy::default()
    });
    told.user("read it");
    let line = |at: u32| format!("line {at} of the tide table\n");
    let (mut text, mut lines) = (String::new(), 0);
    while text_units(&text) < 1_050 {
        text.push_str(&line(lines));
        lines += 1;
    }
    let units = text_units(&text);
    told.round("Read", r#"{"file_path":"/src/tide.rs"}"#, &text);
    let view: Vec<String> = told
        .history
        .view()
        .iter()
        .map(|one| one.to_json())
        .collect();
    let view = view.join("\n");
    let shown = (0..lines).filter(|at| view.contains(line(*at).trim_end()));
    let lost = lines - shown.count() as u32;
    // What is over, as much again for the words about it, and the mark.
    assert!(
        lost > 0 && lost * units / lines < 2 * (units - 1_000) + 40,
        "{lost} of {lines}"
    );
}
