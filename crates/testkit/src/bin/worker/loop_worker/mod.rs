//! A process with a real agent, which executes commands until it is killed or its input ends.
//!
//! `worker loop-worker URL NAME=VALUE…` opens the store and reads commands, one per line: a number,
//! a verb, a thread and the verb's arguments. Commands for several threads run concurrently. It
//! prints the result of each on standard output, after the call returned:
//!
//! - `ended N STOP`: a reader of the run received its end.
//! - `done N STOP MESSAGES`: the run returned, with its messages as a JSON list.
//! - `parked N`, `failed N WHY`, `ok N`.
//! - `shown N RUN STEP`: a reader of the run received a part of an answer that a storing service
//!   streams.
//!
//! Values: `clock` as milliseconds to add to the machine's clock, `lease` in milliseconds, `tools`
//! as the address of the server of tools, the address of the model by the name of each wire and each
//! storing service, `messages` as the address of the application's store of messages, and `dies` as
//! the place of an append at which the process dies.

mod orders;
mod remote_store;
mod remote_tool;

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use throughline_store::{Clock, Heartbeat, Millis, Options, Store, SystemClock};

/// One write per line, so that a kill cannot tear it.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

/// The machine's clock with an offset.
#[derive(Debug)]
struct Skewed(Millis);

impl Clock for Skewed {
    fn now(&self) -> Millis {
        SystemClock.now().saturating_add(self.0)
    }
}

/// The arguments of the process.
pub(crate) struct WorkerSettings(Vec<(String, String)>);

impl WorkerSettings {
    pub(crate) fn text(&self, name: &str) -> Result<&str, String> {
        let found = self.0.iter().find(|(key, _)| key == name);
        let value = found.map(|(_, value)| value.as_str());
        value.ok_or_else(|| format!("{name} was not given"))
    }

    fn number(&self, name: &str, otherwise: u64) -> Result<u64, String> {
        match self.text(name) {
            Err(_) => Ok(otherwise),
            Ok(value) => value
                .parse()
                .map_err(|error| format!("{name}={value}: {error}")),
        }
    }
}

pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            say(&format!("trouble {what}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = crate::arguments();
    let url = arguments
        .next()
        .ok_or("usage: worker loop-worker URL NAME=VALUE…")?;
    let values = arguments
        .map(|word| {
            let (key, value) = word.split_once('=').ok_or(format!("no value: {word}"))?;
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect::<Result<_, String>>()?;
    let settings = WorkerSettings(values);
    let clock = Arc::new(Skewed(settings.number("clock", 0)?));
    let options = Options {
        clock: clock.clone(),
        heartbeat: Heartbeat::Automatic,
        lease: Duration::from_millis(settings.number("lease", 1000)?),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let store = runtime.block_on(Store::open_with(&url, options));
    let store = store.map_err(|error| error.to_string())?;
    let orders = Arc::new(orders::Orders::new(&store, clock, settings));
    say("ready");
    let mut tasks = tokio::task::JoinSet::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let orders = Arc::clone(&orders);
        tasks.spawn_on(async move { orders.follow(&line).await }, runtime.handle());
    }
    runtime.block_on(async {
        while tasks.join_next().await.is_some() {}
        orders.settled().await;
        store.close().await.map_err(|error| error.to_string())
    })
}
