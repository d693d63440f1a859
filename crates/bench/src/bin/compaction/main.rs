//! What compaction keeps of a session and what it costs, compared with other strategies.
//!
//! Started by `cargo xtask bench compaction`. Sessions are replayed: each message of the model was
//! one model call, and a strategy sees only what came before it. `--sessions` adds a line for each
//! session, `--missed` lists the needs that were not kept. Then estimates are compared with bills,
//! and the work is measured: timed relative to one reading of the same history, and counted in
//! instructions by callgrind, under which the program starts itself.

mod baseline;
mod calibrated;
mod count;
mod hostile;
mod ours;
mod replay;
mod speed;
mod table;
mod wire;

use std::process::ExitCode;

use count::Counter;
use replay::Case;
use table::{Detail, Set, compare};
use throughline_testkit::trajectory::{Session, recorded, synthetic};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, what, count] = arguments.as_slice() {
        let count = count.parse().unwrap_or(0);
        match word.as_str() {
            "--turn" => return speed::turn(what, count),
            "--hostile" => return hostile::digest(what, count),
            _ => {}
        }
    }
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let detail = Detail {
        sessions: has("--sessions"),
        missed: has("--missed"),
    };
    let mut counter = Counter::default();
    let mut set = |name, sessions: Vec<Session>, recorded| Set {
        name,
        cases: sessions
            .into_iter()
            .map(|session| Case::new(session, &mut counter))
            .collect(),
        recorded,
    };
    let sets = match recorded() {
        Ok(Some(sessions)) => {
            vec![
                set("recorded", sessions, true),
                set("our own", synthetic(), false),
            ]
        }
        Ok(None) => {
            say("the recorded sessions are not beside the project: only our own are replayed");
            vec![set("our own", synthetic(), false)]
        }
        Err(error) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let mut holds = true;
    for set in &sets {
        holds &= compare(set, detail, &mut counter);
    }
    for set in sets.iter().filter(|set| set.recorded) {
        holds &= calibrated::compare(set.cases.iter().map(|case| &case.session));
    }
    holds &= speed::full();
    holds &= speed::turns();
    holds &= hostile::grows();
    ExitCode::from(u8::from(!holds))
}

#[expect(clippy::print_stderr, reason = "the person at the terminal must know")]
fn say(text: &str) {
    eprintln!("{text}");
}
