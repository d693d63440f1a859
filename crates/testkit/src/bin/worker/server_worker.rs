//! The two processes of the server's kill campaigns.
//!
//! `worker server-worker serve STORE AHEAD KIND URL [VARIABLE=VALUE …]` is the server, on a clock
//! that is AHEAD milliseconds ahead of the machine's, so that the leases of earlier processes have
//! expired. The variables are further configuration. It prints `at ADDRESS`. With `DISK=orders`
//! among the variables it reads commands: after `full N` its disk is full after N more writes,
//! until `heal`; it answers both with `done`.
//!
//! `worker server-worker models WIRE` is a strict mock vendor that answers by script; it prints `at
//! URL`, then the requests that it got, and `refused STATUS WORDS` for requests that it refused; it
//! answers `sync WORD` with `synced WORD`. Both end with their input.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;

use throughline_model::Wire;
use throughline_server::{Config, Flags, Server, Sources};
use throughline_store::{Clock, Millis, Options, Store, SystemClock};
use throughline_testkit::disk::{Disk, DiskFault, Injection};
use throughline_testkit::serverkill::model;
use throughline_testkit::upstream::{KEY, Upstream, Verdict};

/// One write per line, so that a kill cannot tear it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The test that read the output has ended, so this process ends too.
    if out.write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(1);
    }
    let _ = out.flush();
}

/// The machine's clock with an offset.
#[derive(Debug)]
struct Ahead(Millis);

impl Clock for Ahead {
    fn now(&self) -> Millis {
        SystemClock.now().saturating_add(self.0)
    }
}

pub(crate) fn main() -> ExitCode {
    let words: Vec<String> = crate::arguments().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve", store, ahead, kind, url, ref more @ ..] => {
            server(store, ahead, (kind, url), more)
        }
        ["models", wire] => models(wire),
        _ => Err(
            "usage: worker server-worker serve STORE AHEAD KIND URL [VARIABLE=VALUE …] | models WIRE"
                .to_owned(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            say(&format!("trouble {what}"));
            ExitCode::FAILURE
        }
    }
}

fn server(
    store: &str,
    ahead: &str,
    (kind, url): (&str, &str),
    more: &[&str],
) -> Result<(), String> {
    let ahead = ahead.parse().map_err(|_| "AHEAD is no number".to_owned())?;
    let variables = [
        ("THROUGHLINE_UPSTREAM_UP_KIND", kind),
        ("THROUGHLINE_UPSTREAM_UP_BASE_URL", url),
        ("THROUGHLINE_UPSTREAM_UP_API_KEY_ENV", "UP_KEY"),
        ("UP_KEY", KEY),
    ];
    let (orders, more): (Vec<&str>, Vec<&str>) =
        more.iter().partition(|word| **word == "DISK=orders");
    let more = more.iter().filter_map(|word| word.split_once('='));
    let variables = variables.into_iter().chain(more);
    let config = Config::load(&Sources {
        environment: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        flags: Flags {
            listen: Some("127.0.0.1:0".to_owned()),
            store: Some(store.to_owned()),
        },
        ..Sources::default()
    })
    .map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    // The simulated disk covers this folder only.
    let folder = store.strip_prefix("sqlite://").map(std::path::Path::new);
    let folder = folder.and_then(|path| path.parent());
    let disk = folder.filter(|_| !orders.is_empty()).map(Disk::below);
    let server = runtime.block_on(async {
        let options = Options {
            clock: Arc::new(Ahead(ahead)),
            ..Options::default()
        };
        let store = Store::open_with(store, options).await;
        let store = store.map_err(|error| error.to_string())?;
        let server = Server::builder(config).store(store).serve().await;
        server.map_err(|error| error.to_string())
    })?;
    say(&format!("at {}", server.address));
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let Some(disk) = &disk else { continue };
        match line.strip_prefix("full ").map(str::parse) {
            Some(Ok(writes)) => {
                let full = DiskFault::Full { room: 0 };
                disk.inject(Injection::always(full).after(writes));
            }
            _ => disk.heal(),
        }
        say("done");
    }
    server.stop();
    runtime.block_on(server.join());
    Ok(())
}

fn models(wire: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let script = model(|line| say(&line));
    let upstream = runtime.block_on(Upstream::start(Wire::named(wire), script));
    say(&format!("at {}", upstream.base_url()));
    let mut told = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let requests = upstream.requests();
        let refused = requests.iter().filter_map(|one| match &one.verdict {
            Verdict::Refused(status, words) => Some((status, words, &one.body)),
            Verdict::Accepted(_) => None,
        });
        for (status, words, body) in refused.skip(told) {
            told += 1;
            let words = words.replace('\n', " ");
            say(&format!("refused {status} {words} {body}"));
        }
        if let Some(word) = line.strip_prefix("sync ") {
            say(&format!("synced {word}"));
        }
    }
    Ok(())
}
