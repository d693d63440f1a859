//! Units against bills: of recorded sessions where they are there, and of generated ones always.

use std::sync::Arc;

use throughline_compact::tokens::{
    self, Calibration, Calibrations, Family, Mix, recent_mix, text_units,
};
use throughline_model::Message;
use throughline_testkit::trajectory::{Session, billed, recorded, synthetic};
use throughline_testkit::{Rng, property};

/// Calls after which an estimate is held to anything.
const LEARNT: usize = 3;

fn units_of(messages: &[Arc<Message>]) -> u64 {
    messages
        .iter()
        .map(|message| u64::from(tokens::units(message)))
        .sum()
}

/// The errors of estimates, as shares of what was billed, smallest first.
fn errors(calls: impl Iterator<Item = (u64, u64)>) -> Vec<f64> {
    let mut calibration = Calibration::default();
    let mut found = Vec::new();
    for (number, (units, tokens)) in calls.enumerate() {
        let estimate = calibration.estimate(units);
        if number >= LEARNT {
            found.push(estimate.tokens.abs_diff(tokens) as f64 / tokens as f64);
        }
        calibration.observe(units, tokens);
    }
    found.sort_by(f64::total_cmp);
    found
}

fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100) - 1]
}

#[test]
fn estimates_of_recorded_sessions_are_close_to_their_bills() {
    let Some(sessions) = recorded().unwrap() else {
        println!("the recorded sessions are not beside the project: nothing was compared");
        return;
    };
    let mut all = Vec::new();
    for session in &sessions {
        let calls = billed(session);
        let calls = calls.iter().map(|call| (units_of(&call.sent), call.tokens));
        all.extend(errors(calls));
    }
    all.sort_by(f64::total_cmp);
    let (median, p95) = (quantile(&all, 50), quantile(&all, 95));
    println!(
        "{} calls: median {:.2} %, p95 {:.2} %",
        all.len(),
        median * 100.0,
        p95 * 100.0
    );
    assert!(median <= 0.03 && p95 <= 0.1, "median {median}, p95 {p95}");
}

/// The bills of a vendor with a vocabulary of its own: so many tokens for each unit, instructions
/// of its own, and every now and then a reminder that only the vendor sees.
fn invented(session: &Session, rng: &mut Rng) -> Vec<(u64, u64)> {
    let scale = rng.range(60..=200) as f64 / 100.0;
    let instructions = rng.below(60_000) as f64;
    let mut unseen = 0.0;
    let (mut told, mut units) = (0, 0);
    let mut tokens = instructions;
    let mut calls = Vec::new();
    for at in session.model_calls().filter(|at| *at > 0) {
        if rng.chance(0.05) {
            unseen += rng.below(300) as f64;
        }
        // No text has just the tokens that its units stand for.
        let new = units_of(&session.messages[told..at]);
        tokens += new as f64 * scale * rng.range(85..=115) as f64 / 100.0;
        told = at;
        units += new;
        calls.push((units, (tokens + unseen).round() as u64));
    }
    calls
}

#[test]
fn estimates_of_generated_sessions_are_close_to_their_bills() {
    let sessions = synthetic();
    let mut worst = (0.0_f64, 0.0_f64);
    property("estimates are close to bills", 60, |rng, _| {
        let session = rng.pick(&sessions);
        let errors = errors(invented(session, rng).into_iter());
        let (median, p95) = (quantile(&errors, 50), quantile(&errors, 95));
        worst = (worst.0.max(median), worst.1.max(p95));
        match median <= 0.03 && p95 <= 0.1 {
            true => Ok(()),
            false => Err(format!("{}: median {median}, p95 {p95}", session.name)),
        }
    });
    println!(
        "worst median {:.2} %, worst p95 {:.2} %",
        worst.0 * 100.0,
        worst.1 * 100.0
    );
}

#[test]
fn b165_bills_scale_later_estimates_of_that_model_and_leave_stored_counts_alone() {
    let message = Message::user("high water is at ten, low water at four");
    let stored = tokens::units(&message);
    let mut known = Calibrations::default();
    let before = known.of("main", "gpt").estimate(10_000).tokens;
    // What is sent grows, and the vendor reports 1.3 times of what was estimated at first.
    for sent in (1..=20).map(|step| step * 1_000) {
        let expected = Calibration::default().estimate(sent).tokens;
        known.observe("main", "gpt", sent, expected * 13 / 10);
    }
    let after = known.of("main", "gpt").estimate(30_000).tokens as f64;
    let ratio = after / Calibration::default().estimate(30_000).tokens as f64;
    assert!((ratio - 1.3).abs() < 0.02, "{ratio}");
    for other in [known.of("main", "another"), known.of("other", "gpt")] {
        assert_eq!(other.estimate(10_000).tokens, before);
    }
    assert_eq!(tokens::units(&message), stored);
}

#[test]
fn what_was_learnt_survives_being_stored() {
    let mut known = Calibrations::default();
    known.observe("main", "gpt", 1_000, 5_000);
    known.observe("main", "gpt", 3_000, 7_700);
    known.observe("main", "claude-\"x\"", 3_000, 9_001);
    let text = known.to_json();
    assert_eq!(Calibrations::from_json(text.get()), known);
    let one = known.of("main", "gpt");
    assert_eq!(Calibration::from_json(one.to_json().get()), Some(one));
    // What cannot be read is learnt again.
    for broken in [
        "",
        "[]",
        "{}",
        r#"{"v":9,"models":[]}"#,
        r#"{"v":1,"models":[{"upstream":1}]}"#,
    ] {
        assert_eq!(Calibrations::from_json(broken), Calibrations::default());
        assert_eq!(Calibration::from_json(broken), None);
    }
}

#[test]
fn estimates_have_an_error_bar_that_shrinks_with_experience() {
    let mut calibration = Calibration::default();
    let unsure = calibration.estimate(10_000);
    assert!(unsure.p95_error > 0.3 && unsure.at_most() > 13_000);
    for sent in (1..=10).map(|step| step * 2_000) {
        calibration.observe(sent, 20_000 + sent);
    }
    let sure = calibration.estimate(22_000);
    assert_eq!(sure.tokens, 42_000);
    assert!(sure.p95_error < 0.01, "{sure:?}");
    assert_eq!((calibration.calls(), calibration.per_mille()), (10, 1_000));
    assert_eq!(calibration.overhead(), 20_000);
}

#[test]
fn no_bill_breaks_a_calibration() {
    property(
        "any bills give estimates within bounds",
        2_000,
        |rng, size| {
            let mut calibration = Calibration::for_model("claude-x");
            let any = |rng: &mut Rng| {
                let few = rng.range(0..=63);
                rng.next_u64() >> few
            };
            for _ in 0..size {
                let (sent, tokens) = (any(rng), any(rng));
                calibration.observe(sent, tokens);
                let estimate = calibration.estimate(any(rng));
                let scale = calibration.per_mille();
                if !(300..=5_000).contains(&scale) || !estimate.p95_error.is_finite() {
                    return Err(format!("{calibration:?} {estimate:?}"));
                }
            }
            let again = Calibration::from_json(calibration.to_json().get());
            match again.as_ref() == Some(&calibration) {
                true => Ok(()),
                false => Err(format!("{calibration:?} became {again:?}")),
            }
        },
    );
}

#[test]
fn units_of_texts_add_up_and_a_long_line_is_a_text_like_any_other() {
    property("units of texts add up", 2_000, |rng, size| {
        const PIECES: [&str; 12] = [
            "word",
            "camelCase",
            "12345",
            " ",
            "\n\n",
            "\t",
            "{\"a\":",
            "潮汐",
            "Прилив",
            "→",
            "🦀",
            "\0",
        ];
        let text =
            |rng: &mut Rng| -> String { (0..size).map(|_| *rng.pick::<&str>(&PIECES)).collect() };
        let (one, two) = (text(rng), text(rng));
        let (a, b) = (text_units(&one), text_units(&two));
        let both = text_units(&format!("{one}{two}"));
        // What meets at the seam may be counted as one or as two, and short pieces without a blank
        // as a key.
        match both <= a + b + 6 && both + 6 >= a + b {
            true => Ok(()),
            false => Err(format!("{a} and {b} give {both}: {one:?} {two:?}")),
        }
    });
    let line = "x".repeat(50_000_000);
    assert!(text_units(&line) > 1_000_000);
}

#[test]
fn models_are_recognised_by_their_names() {
    let expected = [
        ("gpt-5.1", Family::OpenAi),
        ("o4-mini", Family::OpenAi),
        ("anything", Family::OpenAi),
        ("us.anthropic.Claude-Opus", Family::Anthropic),
        ("gemini-3-pro", Family::Gemini),
        ("gemma-3-27b-it", Family::Gemini),
        ("meta-llama/Llama-4-Scout", Family::Llama),
        ("devstral-medium", Family::Mistral),
        ("open-mixtral-8x22b", Family::Mistral),
    ];
    for (model, family) in expected {
        assert_eq!(Family::of_model(model), family, "{model}");
    }
}

#[test]
fn a_guess_follows_what_the_conversation_is_made_of_until_the_first_bill() {
    let russian = [Message::user(
        "Прилив в десять утра, отлив в четыре часа дня",
    )];
    let mix = recent_mix(russian.iter());
    let mut known = Calibrations::default();
    let english = known.of("main", "claude").per_mille();
    known.guess("main", "claude", &mix);
    let guessed = known.of("main", "claude").per_mille();
    assert!(guessed > english * 3 / 2, "{guessed} and {english}");
    // Nothing was learnt, so nothing is stored.
    let stored = Calibrations::from_json(known.to_json().get());
    assert_eq!(stored, Calibrations::default());
    // The first bill starts from the guess, and later guesses change nothing.
    known.observe("main", "claude", 1_000, 4_000);
    let billed = known.of("main", "claude");
    known.guess("main", "claude", &Mix::default());
    assert_eq!(known.of("main", "claude"), billed);
    assert_eq!(billed.per_mille(), guessed);
    // Other models and upstreams are not concerned.
    assert_eq!(known.of("other", "claude").per_mille(), english);
}

#[test]
fn numbers_cost_more_where_a_vocabulary_has_no_groups_of_digits() {
    let table = "1004 4815 1620 1123\n".repeat(40);
    let mix = Mix::of_text(&table);
    let scale = |family: Family| family.scale(&mix);
    assert!((scale(Family::OpenAi) - 1.0).abs() < 1e-9);
    assert!(scale(Family::Gemini) > 1.4 && scale(Family::Mistral) > 1.4);
    assert!(scale(Family::Llama) < 1.1);
}
