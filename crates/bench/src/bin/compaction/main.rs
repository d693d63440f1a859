//! What compaction keeps of a session and what it costs, compared with other strategies.
//!
//! Started by `cargo xtask bench compaction`; `--help` lists the options and shows the form of a
//! session. Sessions are replayed: each message of the model was one model call, and a strategy sees
//! only what came before it. Views are chained as an agent gets them, epoch after epoch. They are
//! checked for what the call used of its past: names, names with the file or command they belong to,
//! the text that an edit replaces, numbers, plain words, errors that are not resolved, and names that
//! the model writes about. Other strategies get the room that our view of the same call takes; a bag
//! of bare names is one of them, as proof that names alone are no measure.
//!
//! Sessions are the recorded ones beside the project, synthetic ones, and generated ones of the kinds
//! that are hard to make smaller. `--sessions=DIR` replays those of a folder instead.
//!
//! Then estimates are compared with bills, and the work is measured: timed relative to one reading of
//! the same history, and counted in instructions by callgrind, under which the program starts itself.
//!
//! `--model=URL` asks a model questions whose answers stand in compacted parts.

mod ask;
mod baseline;
mod calibrated;
mod count;
mod groups;
mod hostile;
mod limits;
mod options;
mod ours;
mod print;
mod probe;
mod replay;
mod same_size;
mod speed;
mod table;
mod today;
mod wire;

use std::process::ExitCode;

use count::Counter;
use options::BenchOptions;
use replay::Case;
use table::{Set, Verdict, compare};
use throughline_testkit::trajectory::{Session, generated, recorded, sessions_in, synthetic};

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
    match run(&arguments) {
        Ok(code) => code,
        Err(problem) => {
            say(&problem);
            ExitCode::FAILURE
        }
    }
}

/// The sessions of a set, before anything is measured.
struct Named {
    name: String,
    sessions: Vec<Session>,
}

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let options = BenchOptions::read(arguments)?;
    if options.help {
        print(options::HELP);
        return Ok(ExitCode::SUCCESS);
    }
    let named = sessions(&options)?;
    if let Some(model) = &options.model {
        let sessions: Vec<Session> = named.into_iter().flat_map(|set| set.sessions).collect();
        return ask::ask(&sessions, model, options.json);
    }
    let mut counter = Counter::default();
    let mut verdict = Verdict::default();
    let sets: Vec<Set> = named
        .into_iter()
        .map(|named| set(named, &mut counter))
        .collect();
    for set in &sets {
        compare(set, &options, &mut counter, &mut verdict);
    }
    let mut also = |name: &str, holds: bool| {
        if !holds {
            verdict.over.push(name.to_owned());
        }
    };
    if !options.json {
        for set in &sets {
            let sessions = set.cases.iter().map(|case| &case.session);
            also(
                "estimates against bills",
                calibrated::compare(sessions, set.prototype),
            );
        }
        if !options.quick && !options.alone && options.sessions.is_none() {
            also("digest and plan", speed::full());
            also("one more turn", speed::turns());
            also("hostile output", hostile::grows());
        }
    }
    if options.json {
        let whole = serde_json::json!({"sets": verdict.json, "over": verdict.over});
        print(&whole.to_string());
    } else if !verdict.over.is_empty() {
        print(&format!("over the limit:\n  {}", verdict.over.join("\n  ")));
    }
    Ok(ExitCode::from(u8::from(!verdict.over.is_empty())))
}

const RECORDED: &str = "recorded";
const OWN: &str = "our own";
const GENERATED: &str = "generated";

fn sessions(options: &BenchOptions) -> Result<Vec<Named>, String> {
    let named = |name: &str, sessions| Named {
        name: name.to_owned(),
        sessions,
    };
    if let Some(folder) = &options.sessions {
        let sessions = sessions_in(folder).map_err(|error| error.to_string())?;
        if sessions.is_empty() {
            return Err(format!("there is no file *.json in {}", folder.display()));
        }
        return Ok(vec![named(&folder.display().to_string(), sessions)]);
    }
    let mut sets = Vec::new();
    match recorded().map_err(|error| error.to_string())? {
        Some(sessions) => sets.push(named(RECORDED, sessions)),
        None => say("the recorded sessions are not beside the project and are left out"),
    }
    sets.push(named(GENERATED, generated()));
    if !options.quick {
        sets.push(named(OWN, synthetic()));
    }
    Ok(sets)
}

fn set(named: Named, counter: &mut Counter) -> Set {
    say(&format!("{}: looking for what calls need", named.name));
    let cases = named.sessions.into_iter();
    let cases = cases.map(|session| Case::new(session, counter)).collect();
    let name = named.name.as_str();
    Set {
        cases,
        prototype: name == RECORDED,
        plain: name == RECORDED || name == OWN,
        today: match name {
            RECORDED => Some(today::RECORDED),
            GENERATED => Some(today::GENERATED),
            _ => None,
        },
        name: named.name,
    }
}

#[expect(clippy::print_stdout, reason = "the output is what the program is for")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "the person at the terminal must know")]
fn say(text: &str) {
    eprintln!("{text}");
}
