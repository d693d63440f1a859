use throughline_model::{CallId, Outcome, Output, ToolCall};

use super::input::{CandidateLine, Detail};
use super::write;
use crate::arguments::Args;
use crate::category::Category;
use crate::facts::{DigestCall, call};
use crate::policy::Caps;

const DETAILS: [Detail; 4] = [Detail::Full, Detail::Short, Detail::Terse, Detail::Bare];

/// A call of a tool of some category, with a subject that every level has to cut.
fn choice(category: Category, outcome: Option<Outcome>, times: u32) -> CandidateLine {
    let long = "/srv/harbour/".repeat(40);
    let arguments = format!(
        r#"{{"path":"{long}","command":"{long}","pattern":"{long}","content":"{}"}}"#,
        "x\\n".repeat(400)
    );
    let id = CallId::natural("c").unwrap();
    let made = ToolCall::function(id, "a_tool_with_a_name", arguments);
    let output = "Exit code -1073741819\n".to_owned() + &"all done and ok\n".repeat(50);
    let result = outcome.map(|outcome| made.answer(outcome, Output::Text(output)));
    let called = DigestCall {
        seq: 7,
        call: &made,
        result: result.as_ref(),
        category,
    };
    let line = call::line(&called, &Args::of(&made.arguments), &Caps::default());
    CandidateLine {
        line,
        times,
        reads: 0,
        unresolved: false,
        after_failure: false,
        taken: true,
        names: Vec::new(),
    }
}

#[test]
fn b249_every_outcome_is_named_at_every_level_of_detail() {
    let mut lines = 0;
    for category in Category::ALL {
        for outcome in Outcome::ALL.into_iter().map(Some).chain([None]) {
            let word = outcome.map_or("no result recorded", Outcome::as_str);
            for (detail, times) in DETAILS
                .into_iter()
                .flat_map(|detail| [(detail, 1), (detail, 3)])
            {
                let line =
                    write::plain(&choice(category, outcome, times), detail, &Caps::default());
                let done = ["Read ", "Edited ", "Ran ", "Searched ", "Called "]
                    .iter()
                    .any(|verb| line.starts_with(&format!("[Earlier: {verb}")));
                assert_eq!(done, outcome == Some(Outcome::Ok), "{detail:?}: {line}");
                if outcome != Some(Outcome::Ok) {
                    let named = line.contains(&format!(" → {word}"));
                    assert!(named && !line.contains("lines ok"), "{detail:?}: {line}");
                }
                lines += 1;
            }
        }
    }
    println!("table outcomes: lines={lines} unnamed=0");
}

#[test]
fn an_exit_code_is_never_cut_in_two() {
    for detail in DETAILS {
        for outcome in [Outcome::Ok, Outcome::Error] {
            let choice = choice(Category::Execute, Some(outcome), 1);
            let line = write::plain(&choice, detail, &Caps::default());
            assert!(line.contains("exit -1073741819"), "{detail:?}: {line}");
        }
    }
}
