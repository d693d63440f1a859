//! The servers of models and tools, in processes that outlive the workers.
//!
//! `worker loop-server models` listens as each of the vendors and answers by script; it prints `at
//! WIRE URL` for each, then the requests that it got. `worker loop-server tools` listens as a
//! server of tools; it prints `at tools ADDRESS`, then `ran TOOL KEY MARK` for each execution,
//! before it answers. `worker loop-server services` is the services that store conversations; it
//! prints like `models`, and answers `chain NAME ID` with the stored conversation and `looked-up NAME`
//! with a count of look-ups. `worker loop-server messages` is the application's store of messages, see
//! [`messages`]. All print `refused WIRE STATUS WORDS` for requests that they refuse, and
//! answer the input `sync WORD` with `synced WORD`, after all earlier output. Other answers begin with
//! `reply`. They end with their input.

mod messages;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::loopkill::{SERVICES, WIRES, answer_posts, model, service, service_wire};
use throughline_testkit::upstream::{Script, Upstream, Verdict};

/// One write per line, so that lines of several threads are not mixed.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The test that read the output has ended, so this process ends too.
    if out.write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(1);
    }
    let _ = out.flush();
}

pub(crate) fn main() -> ExitCode {
    let done = match crate::arguments().next().as_deref() {
        Some("models") => models(),
        Some("tools") => tools(),
        Some("services") => services(),
        Some("messages") => messages::serve(),
        _ => Err("usage: worker loop-server models|tools|services|messages".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            say(&format!("trouble {what}"));
            ExitCode::FAILURE
        }
    }
}

/// Executes commands until the input ends: `sync` after `synced`, and others by `answer`.
fn follow(
    mut synced: impl FnMut(),
    mut answer: impl FnMut(&[&str]) -> Option<String>,
) -> Result<(), String> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        if let Some(word) = line.strip_prefix("sync ") {
            synced();
            say(&format!("synced {word}"));
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let answer = answer(&words).ok_or_else(|| format!("not understood: {line}"))?;
        say(&format!("reply {answer}"));
    }
    Ok(())
}

/// A mock vendor, and how many of the requests that it refused were printed.
struct Listening {
    name: String,
    upstream: Upstream,
    told: usize,
}

impl Listening {
    fn start(name: &str, wire: &Wire, script: Script, after: usize) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let upstream = Upstream::of(wire.clone())
            .script(script)
            .numbered_after(after);
        let upstream = runtime.block_on(upstream.start());
        let url = match wire {
            Wire::Foundry => upstream.project(),
            _ => upstream.base_url(),
        };
        say(&format!("at {name} {url}"));
        Ok(Self {
            name: name.to_owned(),
            upstream,
            told: 0,
        })
    }

    /// Prints the new requests that were refused.
    fn tell_refused(&mut self) {
        let counts = self.upstream.counts();
        if counts.refused == self.told {
            return;
        }
        let requests = self.upstream.requests();
        let refused = requests.iter().filter_map(|one| match &one.verdict {
            Verdict::Refused(status, words) => Some((status, words, &one.body)),
            Verdict::Accepted(_) => None,
        });
        for (status, words, body) in refused.skip(self.told) {
            let words = words.replace('\n', " ");
            say(&format!("refused {} {status} {words} {body}", self.name));
        }
        self.told = counts.refused;
    }
}

fn models() -> Result<(), String> {
    let listening = WIRES.iter().map(|wire| {
        let script = model(wire, |line| say(&line));
        Listening::start(wire.as_str(), wire, script, 0)
    });
    let mut listening = listening.collect::<Result<Vec<_>, _>>()?;
    follow(
        || listening.iter_mut().for_each(Listening::tell_refused),
        |_| None,
    )
}

fn services() -> Result<(), String> {
    // They share threads: an id of one is no id of another.
    let listening = SERVICES.iter().zip(0..).map(|(name, place)| {
        let script = service(name, |line| say(&line));
        Listening::start(name, &service_wire(name), script, place * 1_000_000)
    });
    let listening = listening.collect::<Result<Vec<_>, _>>()?;
    let listening = RefCell::new(listening);
    follow(
        || {
            let mut all = listening.borrow_mut();
            all.iter_mut().for_each(Listening::tell_refused);
        },
        |words| {
            let all = listening.borrow();
            let name = words.get(1)?;
            let one = all.iter().find(|one| one.name == *name)?;
            match words {
                ["chain", _, id] => Some(chain(&one.upstream, id)),
                ["looked-up", _] => {
                    let counts = one.upstream.counts();
                    Some((counts.requests - counts.model_calls).to_string())
                }
                _ => None,
            }
        },
    )
}

/// A stored conversation as JSON: the answers with their ids and items; null if it is not whole.
fn chain(upstream: &Upstream, id: &str) -> String {
    let links = upstream.chain(id).map(|links| {
        let links = links.into_iter();
        let links =
            links.map(|one| json!({"id": one.id, "input": one.input, "output": one.output}));
        links.collect::<Value>()
    });
    links.unwrap_or_default().to_string()
}

fn tools() -> Result<(), String> {
    let done: Mutex<HashMap<String, String>> = Mutex::default();
    let address = answer_posts(move |body| {
        let mut words = body.split(' ');
        let mut next = || words.next().unwrap_or_default().to_owned();
        let (verb, tool, key, mark) = (next(), next(), next(), next());
        let known = || done.lock().unwrap_or_else(PoisonError::into_inner);
        if verb == "probe" {
            return known().get(&key).cloned().unwrap_or_default();
        }
        let text = format!("[[ran {mark}]] It is done.");
        known().insert(key.clone(), text.clone());
        say(&format!("ran {tool} {key} {mark}"));
        // Some executions take time, so that a process can die meanwhile.
        if key.ends_with(['0', '4', '8', 'c']) {
            std::thread::sleep(Duration::from_millis(3));
        }
        text
    });
    let address = address.map_err(|error| error.to_string())?;
    say(&format!("at tools {address}"));
    follow(|| {}, |_| None)
}
