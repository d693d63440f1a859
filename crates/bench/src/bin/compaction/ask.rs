//! Asks a model about compacted parts, and prints how many answers were right.

use std::process::ExitCode;

use serde_json::json;
use throughline_bench::asking::{Condition, Endpoint, Exam, Score};
use throughline_testkit::trajectory::Session;

use crate::options::ModelOptions;
use crate::table::PLAIN;
use crate::{print, say};

/// The environment variable with the key of the endpoint.
const KEY: &str = "THROUGHLINE_BENCH_KEY";

/// Asks about each session under all conditions.
pub(crate) fn ask(
    sessions: &[Session],
    model: &ModelOptions,
    as_json: bool,
) -> Result<ExitCode, String> {
    let key = std::env::var(KEY).ok();
    let endpoint =
        Endpoint::new(&model.url, &model.name, key).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime can be started: {error}"))?;
    let mut found: Vec<(&str, [Score; 3])> = Vec::new();
    for session in sessions {
        let exam = Exam::new(session, PLAIN, model.questions);
        if exam.questions.is_empty() {
            continue;
        }
        say(&format!(
            "{}: {} questions",
            session.name,
            exam.questions.len()
        ));
        let mut scores = [Score::default(); 3];
        for question in &exam.questions {
            for (condition, score) in Condition::ALL.into_iter().zip(&mut scores) {
                let asked = runtime.block_on(exam.ask(&endpoint, question, condition));
                score.add(asked.map_err(|error| error.to_string())?);
            }
        }
        found.push((&session.name, scores));
    }
    let mut all = [Score::default(); 3];
    for (_, scores) in &found {
        for (sum, score) in all.iter_mut().zip(scores) {
            sum.add(*score);
        }
    }
    found.push(("all", all));
    match as_json {
        true => print(&json!(found.iter().map(as_value).collect::<Vec<_>>()).to_string()),
        false => table(&found),
    }
    Ok(ExitCode::SUCCESS)
}

/// Right answers of those that were given, with lookups in brackets.
fn table(found: &[(&str, [Score; 3])]) {
    let names = Condition::ALL.map(|condition| format!("{:>18}", condition.name()));
    print(&format!(
        "{:<28}{}",
        "right / answered (lookups)",
        names.join("")
    ));
    for (session, scores) in found {
        let cells = scores.map(|score| {
            let cell = match score.refused {
                0 => format!("{}/{} ({})", score.right, score.asked, score.lookups),
                refused => format!("{}/{}, {refused} refused", score.right, score.asked),
            };
            format!("{cell:>18}")
        });
        print(&format!("{session:<28}{}", cells.join("")));
    }
}

fn as_value((session, scores): &(&str, [Score; 3])) -> serde_json::Value {
    let scores: serde_json::Map<String, serde_json::Value> = Condition::ALL
        .into_iter()
        .zip(scores)
        .map(|(condition, score)| {
            let value = json!({
                "right": score.right,
                "answered": score.asked,
                "refused": score.refused,
                "lookups": score.lookups,
            });
            (condition.name().to_owned(), value)
        })
        .collect();
    json!({"session": session, "scores": scores})
}
