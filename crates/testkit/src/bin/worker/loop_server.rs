//! The other side of the loop, in a process of its own that outlives its callers.
//!
//! `worker loop-server models` listens as each of the vendors and answers by script; it says
//! `at WIRE URL` for each, then what it was asked. `worker loop-server tools` listens as a server of tools;
//! it says `at tools ADDRESS`, then `ran TOOL KEY MARK` for each execution, before it answers.
//! Both say `refused WIRE STATUS WORDS` for what they did not take, and `synced WORD` when they are
//! told `sync WORD`, after everything that they had to say before. They end with their input.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use throughline_model::Wire;
use throughline_testkit::loopkill::{WIRES, answer_posts, model};
use throughline_testkit::upstream::{Upstream, Verdict};

/// One write for each line, so that lines of several threads stay whole.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The test that read the output is gone, and with it the reason to go on.
    if out.write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(1);
    }
    let _ = out.flush();
}

pub(crate) fn main() -> ExitCode {
    let done = match crate::arguments().next().as_deref() {
        Some("models") => models(),
        Some("tools") => tools(),
        _ => Err("usage: worker loop-server models|tools".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            say(&format!("trouble {what}"));
            ExitCode::FAILURE
        }
    }
}

/// Do what is asked until the input ends.
fn follow(mut synced: impl FnMut()) -> Result<(), String> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        if let Some(word) = line.strip_prefix("sync ") {
            synced();
            say(&format!("synced {word}"));
        }
    }
    Ok(())
}

fn models() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut upstreams = Vec::new();
    for wire in WIRES {
        let script = model(&wire, |line| say(&line));
        let upstream = runtime.block_on(Upstream::start(wire.clone(), script));
        let url = match wire {
            Wire::Foundry => upstream.project(),
            _ => upstream.base_url(),
        };
        say(&format!("at {} {url}", wire.as_str()));
        upstreams.push((upstream, 0));
    }
    follow(|| {
        for (upstream, told) in &mut upstreams {
            let counts = upstream.counts();
            if counts.refused == *told {
                continue;
            }
            let requests = upstream.requests();
            let refused = requests.iter().filter_map(|one| match &one.verdict {
                Verdict::Refused(status, words) => Some((status, words, &one.body)),
                Verdict::Accepted(_) => None,
            });
            for (status, words, body) in refused.skip(*told) {
                let wire = upstream.wire().as_str();
                let words = words.replace('\n', " ");
                say(&format!("refused {wire} {status} {words} {body}"));
            }
            *told = counts.refused;
        }
    })
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
        // Some take their time, so that a process can die meanwhile.
        if key.ends_with(['0', '4', '8', 'c']) {
            std::thread::sleep(Duration::from_millis(3));
        }
        text
    });
    let address = address.map_err(|error| error.to_string())?;
    say(&format!("at tools {address}"));
    follow(|| {})
}
