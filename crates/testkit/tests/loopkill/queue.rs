//! Runs of several processes that wait for one thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use throughline_store::{
    Heartbeat, ManualClock, Options, RunFilter, RunId, RunState, Store, TenantScope, ThreadId,
};
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, Scratch, property};

use crate::loopkill::process::{Process, queue_worker};

/// The initial time of all clocks.
const NOW: u64 = 1_790_000_000_000;

/// How far clocks are advanced at once: less than a lease, and twice that is more than one.
const TICK: u64 = 6_000;

/// How long a process may be silent.
const SILENT: Duration = Duration::from_secs(60);

/// The number of waiting runs.
const WAITERS: u8 = 8;

/// The run that the others wait for, and the one that does not wait.
const FIRST: u8 = 100;
const NEWCOMER: u8 = 200;

/// What is known of a waiting run.
struct Waiter {
    no: u8,
    process: usize,
    kind: &'static str,
    /// Whether it was dropped before it began.
    gone: bool,
}

/// The counts of a campaign.
#[derive(Default)]
struct Counts {
    waiters: u64,
    at_once: u64,
    dropped: u64,
    lapsed: u64,
    failed: u64,
    resumes: u64,
    killed: u64,
    taken_over: u64,
    refused: u64,
}

/// One thread, and three processes with runs on it.
struct Round {
    _scratch: Scratch,
    url: String,
    store: Store,
    clock: Arc<ManualClock>,
    thread: ThreadId,
    workers: Vec<Option<Process>>,
    /// Lines of output that were not awaited yet.
    said: Vec<Vec<String>>,
}

fn run_of(no: u8) -> RunId {
    RunId::from_bytes([no; 16])
}

impl Round {
    fn new() -> Result<Self, String> {
        let scratch = Scratch::in_memory("queue");
        let url = scratch.sqlite("store.db");
        let clock = Arc::new(ManualClock::at(NOW));
        let options = Options {
            clock: Arc::<ManualClock>::clone(&clock),
            heartbeat: Heartbeat::Manual,
            ..Options::default()
        };
        let store = block_on(Store::open_with(&url, options)).map_err(|error| error.to_string())?;
        let mut round = Self {
            _scratch: scratch,
            store,
            clock,
            thread: ThreadId::new("t").map_err(|error| error.to_string())?,
            workers: Vec::new(),
            said: vec![Vec::new(); 3],
            url,
        };
        for _ in 0..3 {
            let worker = queue_worker(&round.url, NOW);
            round.workers.push(Some(worker));
        }
        for place in 0..3 {
            round.await_line(place, "ready")?;
        }
        Ok(round)
    }

    fn tell(&mut self, process: usize, line: &str) {
        if let Some(worker) = &mut self.workers[process] {
            worker.tell(line);
        }
    }

    /// Waits until a process prints a line with this beginning.
    fn await_line(&mut self, process: usize, start: &str) -> Result<String, String> {
        let is_it = |line: &String| line == start || line.starts_with(&format!("{start} "));
        if let Some(place) = self.said[process].iter().position(is_it) {
            return Ok(self.said[process].remove(place));
        }
        let Some(worker) = &mut self.workers[process] else {
            return Err(format!("{start} is expected of a dead process"));
        };
        loop {
            match worker.hear_within(SILENT) {
                Some(line) if is_it(&line) => return Ok(line),
                Some(line) if line.starts_with("trouble") => return Err(line),
                Some(line) => self.said[process].push(line),
                None => return Err(format!("process {process} never says {start}")),
            }
        }
    }

    /// The waiting runs in the store.
    fn line(&self) -> Result<Vec<RunId>, String> {
        let scope = TenantScope::local();
        let line = self.store.wait_queue(&scope, &self.thread);
        let line = block_on(line).map_err(|error| error.to_string())?;
        Ok(line.iter().map(|waiter| waiter.run).collect())
    }

    /// Waits until the line satisfies a condition.
    fn until_line(&self, is_so: impl Fn(&[RunId]) -> bool) -> Result<Vec<RunId>, String> {
        let began = std::time::Instant::now();
        loop {
            let line = self.line()?;
            if is_so(&line) {
                return Ok(line);
            }
            if began.elapsed() > SILENT {
                return Err(format!("the line stays {line:?}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets the leases of dead processes expire.
    fn lapse(&mut self) -> Result<(), String> {
        for _ in 0..2 {
            for place in 0..self.workers.len() {
                if self.workers[place].is_some() {
                    self.tell(place, &format!("tick {TICK}"));
                    self.await_line(place, "ticked")?;
                }
            }
            self.clock.advance(Duration::from_millis(TICK));
        }
        Ok(())
    }

    fn kill(&mut self, process: usize) {
        if let Some(mut worker) = self.workers[process].take() {
            worker.kill();
            worker.ended();
        }
    }
}

/// The order in which runs began, with the state of each, oldest first.
fn begun(round: &Round) -> Result<Vec<(u8, RunState, u32)>, String> {
    let filter = RunFilter {
        thread: Some(round.thread.clone()),
        states: Vec::new(),
    };
    let scope = TenantScope::local();
    let runs = round.store.runs(&scope, &filter, None, 1000);
    let runs = block_on(runs).map_err(|error| error.to_string())?.found;
    let of = |run: &throughline_store::Run| (run.id.as_bytes()[0], run.state, run.attempt);
    Ok(runs.iter().rev().map(of).collect())
}

/// One thread is busy, eight runs of three processes wait for it, and some of them are dropped;
/// then it becomes free.
fn round(rng: &mut Rng, counts: &mut Counts) -> Result<(), String> {
    let mut round = Round::new()?;
    let at = rng.below(3);
    round.tell(at, &format!("say {FIRST} t hold"));
    round.await_line(at, &format!("asked {FIRST}"))?;

    // They arrive one after the other, or all at once.
    let at_once = rng.chance(0.3);
    let mut waiters: Vec<Waiter> = Vec::new();
    for no in 1..=WAITERS {
        let process = rng.below(3);
        let kind = match rng.below(10) {
            0 | 1 => "fail",
            2 if !at_once => "resume",
            3 => "hold",
            _ => "plain",
        };
        let order = match kind {
            "resume" => format!("resume {no} t"),
            kind => format!("say {no} t {kind}"),
        };
        round.tell(process, &order);
        if !at_once {
            let count = usize::from(no);
            let line = round.until_line(|line| line.len() == count)?;
            if kind != "resume" && line.last() != Some(&run_of(no)) {
                return Err(format!("{no} came last, and the line is {line:?}"));
            }
        }
        waiters.push(Waiter {
            no,
            process,
            kind,
            gone: false,
        });
        counts.waiters += 1;
    }
    let accepted = round.until_line(|line| line.len() == usize::from(WAITERS))?;
    if at_once {
        let place = |waiter: &Waiter| accepted.iter().position(|run| *run == run_of(waiter.no));
        waiters.sort_by_key(place);
        counts.at_once += 1;
    }

    // Some are dropped before it is their turn.
    for _ in 0..rng.below(3) {
        let place = rng.below(waiters.len());
        let waiter = &mut waiters[place];
        if waiter.gone {
            continue;
        }
        waiter.gone = true;
        let (no, process) = (waiter.no, waiter.process);
        let before = round.line()?.len();
        round.tell(process, &format!("drop {no}"));
        round.await_line(process, &format!("dropped {no}"))?;
        round.until_line(|line| line.len() == before - 1)?;
        counts.dropped += 1;
    }
    if rng.chance(0.35) {
        let dead = rng.below(3);
        round.kill(dead);
        round.lapse()?;
        counts.killed += 1;
        for waiter in waiters.iter_mut().filter(|one| one.process == dead) {
            counts.lapsed += u64::from(!waiter.gone);
            waiter.gone = true;
        }
    }
    drain(&mut round, at, &mut waiters, rng, counts)
}

/// The thread becomes free: every run has its turn.
fn drain(
    round: &mut Round,
    first: usize,
    waiters: &mut [Waiter],
    rng: &mut Rng,
    counts: &mut Counts,
) -> Result<(), String> {
    // A process that does not wait tries to begin in between.
    let mut living: Vec<usize> = (0..3).filter(|at| round.workers[*at].is_some()).collect();
    let newcomer = living.remove(rng.below(living.len()));
    round.tell(newcomer, &format!("try {NEWCOMER} t"));
    round.tell(first, &format!("go {FIRST}"));
    let mut taken_over = BTreeSet::new();
    for place in 0..waiters.len() {
        let Waiter {
            no,
            process,
            kind,
            gone,
        } = waiters[place];
        if gone || kind != "hold" {
            continue;
        }
        round.await_line(process, &format!("asked {no}"))?;
        // Earlier runs have begun by now, and later ones have not.
        if process != newcomer && rng.chance(0.3) {
            round.kill(process);
            round.lapse()?;
            counts.killed += 1;
            taken_over.insert(no);
            for waiter in waiters[place + 1..].iter_mut() {
                if waiter.process == process && !waiter.gone {
                    waiter.gone = true;
                    counts.lapsed += 1;
                }
            }
        } else {
            round.tell(process, &format!("go {no}"));
        }
    }
    for waiter in waiters.iter().filter(|one| !one.gone) {
        let Waiter {
            no, process, kind, ..
        } = *waiter;
        if round.workers[process].is_none() {
            continue;
        }
        let word = match kind {
            "fail" => format!("failed {no}"),
            _ => format!("done {no}"),
        };
        round.await_line(process, &word)?;
        counts.failed += u64::from(kind == "fail");
        counts.resumes += u64::from(kind == "resume");
    }
    let tried = round.await_line(newcomer, &format!("tried {NEWCOMER}"))?;
    let tries = tried.rsplit(' ').next().and_then(|word| word.parse().ok());
    counts.refused += tries.unwrap_or(0u64);

    let found = begun(round)?;
    let began: Vec<u8> = found.iter().map(|(no, _, _)| *no).collect();
    let in_turn = waiters
        .iter()
        .filter(|one| !one.gone && one.kind != "resume");
    let mut expected = vec![FIRST];
    expected.extend(in_turn.map(|one| one.no));
    expected.push(NEWCOMER);
    if began != expected {
        return Err(format!("accepted as {expected:?}, begun as {began:?}"));
    }
    for (no, state, attempt) in &found {
        let fails = waiters
            .iter()
            .any(|one| one.no == *no && one.kind == "fail");
        let wanted = match fails {
            true => RunState::Failed,
            false => RunState::Committed,
        };
        if *state != wanted {
            return Err(format!(
                "{no} is {}, not {}",
                state.as_str(),
                wanted.as_str()
            ));
        }
        counts.taken_over += u64::from(*attempt > 0);
        if taken_over.contains(no) && *attempt == 0 {
            return Err(format!(
                "{no} ended without its process, and nobody took it over"
            ));
        }
    }
    match round.line()?.is_empty() {
        true => Ok(()),
        false => Err("somebody is left in the line".to_owned()),
    }
}

/// R5: of the runs that wait for a thread, in three processes, the first accepted one begins first,
/// whichever runs are dropped, fail or die.
#[test]
fn r5_runs_that_wait_begin_in_the_order_of_acceptance() {
    let mut counts = Counts::default();
    let mut rounds = 0;
    property("r5 queue order", 25, |rng: &mut Rng, _| {
        rounds += 1;
        round(rng, &mut counts)
    });
    let Counts {
        waiters,
        at_once,
        dropped,
        lapsed,
        failed,
        resumes,
        killed,
        taken_over,
        refused,
    } = counts;
    println!(
        "campaign r5 queue order: rounds={rounds} processes=3 waiters={waiters} at_once={at_once} dropped={dropped} \
         failed={failed} resumes={resumes} killed={killed} lapsed={lapsed} taken_over={taken_over} \
         newcomers_refused={refused} out_of_order=0"
    );
    assert!(
        dropped > 0 && failed > 0 && killed > 0 && lapsed > 0 && refused > 0,
        "void: too little happened"
    );
}
