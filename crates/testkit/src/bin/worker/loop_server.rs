//! The servers of models and tools, in processes that outlive the workers.
//!
//! `worker loop-server models` listens as each of the vendors and answers by script; it prints `at
//! WIRE URL` for each, then the requests that it got. `worker loop-server tools` listens as a
//! server of tools; it prints `at tools ADDRESS`, then `ran TOOL KEY MARK` for each execution,
//! before it answers. Both print `refused WIRE STATUS WORDS` for requests that they refuse, and
//! answer the input `sync WORD` with `synced WORD`, after all earlier output. They end with their
//! input.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use throughline_model::Wire;
use throughline_testkit::loopkill::{WIRES, answer_posts, model};
use throughline_testkit::upstream::{Upstream, Verdict};

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

/// Executes commands until the input ends.
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
        // Some executions take time, so that a process can die meanwhile.
        if key.ends_with(['0', '4', '8', 'c']) {
            std::thread::sleep(Duration::from_millis(3));
        }
        text
    });
    let address = address.map_err(|error| error.to_string())?;
    say(&format!("at tools {address}"));
    follow(|| {})
}
