//! A process with agents on a store, until it is killed or has finished.
//!
//! `worker store-agent URL [NAME=VALUE …]` prints, line by line, what it is about to do and what
//! the store acknowledged (see `throughline_testkit::agent::AgentEvent`). Values: `seed`, `visits`
//! of each agent, `agents`, `threads`, `mode` (`per_run`, `per_call` or `both`), `lease` in
//! milliseconds, `clock` as milliseconds to add to the machine's clock, `step` as milliseconds by
//! which that clock jumps now and then, and `deletes` as a share of visits.
//!
//! With `work=drain` the agents begin nothing and settle runs of other processes. With `work=turns`
//! they are plain writers instead, `agents` on each thread, which take turns of few items and read
//! the thread from time to time (`throughline_testkit::agent::turns::WriterEvent`).

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use throughline_store::{Clock, Heartbeat, Millis, Mode, Options, Store, SystemClock};
use throughline_testkit::Rng;
use throughline_testkit::agent::{AgentEvent, Driver, EventSink, Halt, turns};
use throughline_testkit::record::block_on;

/// Standard output, with one write per line, so that a kill cannot tear it.
struct StandardOutput;

impl EventSink for StandardOutput {
    fn event(&self, event: AgentEvent) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(format!("{event}\n").as_bytes());
        let _ = out.flush();
    }
}

/// The machine's clock with an offset.
#[derive(Debug)]
struct Skewed(AtomicI64);

impl Clock for Skewed {
    fn now(&self) -> Millis {
        SystemClock
            .now()
            .saturating_add_signed(self.0.load(Ordering::Relaxed))
    }
}

struct AgentSettings {
    url: String,
    values: Vec<(String, String)>,
}

impl AgentSettings {
    fn number(&self, name: &str, otherwise: i64) -> Result<i64, String> {
        match self.text(name) {
            None => Ok(otherwise),
            Some(value) => value
                .parse()
                .map_err(|error| format!("{name}={value}: {error}")),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            StandardOutput.event(AgentEvent::Trouble { what });
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = crate::arguments();
    let url = arguments
        .next()
        .ok_or("usage: worker store-agent URL [NAME=VALUE …]")?;
    let values = arguments
        .map(|word| {
            let (key, value) = word.split_once('=').ok_or(format!("no value: {word}"))?;
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect::<Result<_, String>>()?;
    let settings = AgentSettings { url, values };
    let clock = Arc::new(Skewed(AtomicI64::new(settings.number("clock", 0)?)));
    let options = Options {
        clock: clock.clone(),
        heartbeat: Heartbeat::Automatic,
        lease: Duration::from_millis(settings.number("lease", 300)?.unsigned_abs()),
    };
    let mode = match settings.text("mode").unwrap_or("both") {
        "per_run" => Some(Mode::PerRun),
        "per_call" => Some(Mode::PerCall),
        "both" => None,
        other => return Err(format!("no mode: {other}")),
    };
    let (seed, step) = (settings.number("seed", 1)?, settings.number("step", 0)?);
    let visits = settings.number("visits", 1_000_000)?;
    let threads = usize::try_from(settings.number("threads", 4)?.max(1)).unwrap_or(1);
    let deletes: f64 = match settings.text("deletes") {
        Some(text) => text.parse().map_err(|error| format!("deletes: {error}"))?,
        None => 0.0,
    };
    let store = open(&settings.url, &options)?;
    if settings.text("work") == Some("turns") {
        return turns(&settings, &store, &clock, step);
    }
    let driver = Driver::new(store, mode, StandardOutput);
    StandardOutput.event(AgentEvent::Ready);
    if settings.text("work") == Some("drain") {
        // A run may park once more for each of its rounds.
        for _ in 0..8 {
            if let Ok(0) = block_on(driver.drain()) {
                break;
            }
        }
        StandardOutput.event(driver.count());
        return block_on(driver.store().close()).map_err(|error| error.to_string());
    }
    std::thread::scope(|scope| {
        for agent in 0..settings.number("agents", 2).unwrap_or(2) {
            let (driver, clock) = (&driver, &clock);
            scope.spawn(move || {
                let mut rng = Rng::new((seed * 31 + agent).unsigned_abs());
                for _ in 0..visits {
                    jump(clock, step, &mut rng);
                    if rng.chance(deletes) {
                        let gone = block_on(driver.delete(&format!("d{}", rng.below(2))));
                        halted(&gone);
                        continue;
                    }
                    let letter = if deletes > 0.0 && rng.chance(0.3) {
                        format!("d{}", rng.below(2))
                    } else {
                        format!("t{}", rng.below(threads))
                    };
                    halted(&block_on(driver.visit(&letter, &mut rng)));
                }
            });
        }
    });
    StandardOutput.event(driver.count());
    block_on(driver.store().close()).map_err(|error| error.to_string())
}

/// Lets the clock jump now and then.
fn jump(clock: &Skewed, step: i64, rng: &mut Rng) {
    if step != 0 && rng.chance(0.02) {
        let sign = if rng.bool() { 1 } else { -1 };
        clock.0.store(sign * step, Ordering::Relaxed);
    }
}

fn turns(settings: &AgentSettings, store: &Store, clock: &Skewed, step: i64) -> Result<(), String> {
    let (seed, visits) = (settings.number("seed", 1)?, settings.number("visits", 10)?);
    let (threads, agents) = (
        settings.number("threads", 2)?,
        settings.number("agents", 8)?,
    );
    let say = |said: turns::WriterEvent| {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(format!("{said}\n").as_bytes());
    };
    std::thread::scope(|scope| {
        for writer in 0..threads * agents {
            scope.spawn(move || {
                let process = (seed * 1000 + writer).unsigned_abs();
                let mut rng = Rng::new(process);
                for visit in 0..visits {
                    jump(clock, step, &mut rng);
                    let writer = turns::Writer {
                        store,
                        // Writers move to new threads after a while, so that reading them stays
                        // cheap.
                        thread: format!("t{}_{}", writer % threads, visit / 10),
                        process,
                    };
                    let id = process * 1_000_000 + visit.unsigned_abs() * 10;
                    block_on(writer.turn(id, &mut rng, say));
                    if rng.chance(0.3) {
                        block_on(writer.look(say));
                    }
                }
            });
        }
    });
    block_on(store.close()).map_err(|error| error.to_string())
}

/// Retries opening a store that another process locks, or that a fault makes fail.
fn open(url: &str, options: &Options) -> Result<Store, String> {
    let mut tries = 0;
    loop {
        match block_on(Store::open_with(url, options.clone())) {
            Ok(store) => return Ok(store),
            Err(error) if tries == 5 => return Err(error.to_string()),
            Err(_) => tries += 1,
        }
    }
}

fn halted(done: &Result<(), Halt>) {
    // Both are counted, and the next visit continues.
    match done {
        Ok(()) | Err(Halt::Refused(_) | Halt::Failed(_)) => {}
    }
}
