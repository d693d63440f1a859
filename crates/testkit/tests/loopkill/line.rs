//! One store with its servers and threads, and its processes in sequence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use throughline_store::{
    At, Heartbeat, ManualClock, Options, RunState, Store, TenantScope, ThreadId,
};
use throughline_testkit::loopkill::{
    Code, Keeping, Kind, LoopLedger, Mark, ModelCall, Ran, WIRES, brackets, fold,
};
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, Scratch};

use crate::loopkill::keepers::KeeperLog;
use crate::loopkill::process::{Process, Servers, worker};
use crate::loopkill::thread::{Aim, Keeper, Modes, Order, Standing, Thread};

/// How far each process's clock is ahead of the one before: more than its lease.
const APART: u64 = 2_000;

/// A run that was taken over this often is spared: it would be given up at five.
const ENOUGH: u32 = 3;

/// A handle that only reads.
pub(crate) fn open(url: &str) -> Result<Store, String> {
    let options = Options {
        clock: Arc::new(ManualClock::at(0)),
        heartbeat: Heartbeat::Manual,
        ..Options::default()
    };
    block_on(Store::open_with(url, options)).map_err(|error| error.to_string())
}

/// What happens to a process.
pub(crate) struct Fate {
    /// A plan for its fault points.
    pub(crate) faults: String,
    /// Kill it after this many lines of output.
    pub(crate) kill_after: Option<usize>,
    /// How many commands it gets per thread.
    pub(crate) orders: usize,
}

impl Fate {
    pub(crate) fn none(orders: usize) -> Self {
        Self {
            faults: String::new(),
            kill_after: None,
            orders,
        }
    }
}

/// A command without an answer.
struct Sent {
    thread: usize,
    /// The turn of the command.
    code: Option<Code>,
    verb: String,
    /// The message that it queues.
    note: Option<String>,
    answers: bool,
    /// Whether readers received its end.
    told: bool,
}

/// A running process.
pub(crate) struct Life {
    pub(crate) worker: Process,
    sent: BTreeMap<u32, Sent>,
    left: Vec<usize>,
    heard: usize,
    ready: bool,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Killed,
    ByItself,
}

/// One store with its servers, threads and ledger.
pub(crate) struct Line {
    scratch: Scratch,
    pub(crate) url: String,
    pub(crate) servers: Servers,
    pub(crate) ledger: LoopLedger,
    /// What the servers that keep histories printed.
    pub(crate) keepers: KeeperLog,
    pub(crate) threads: Vec<Thread>,
    started: u64,
    next: u32,
    /// Answers of approvals, by their results.
    pub(crate) decided: BTreeMap<String, u64>,
    /// Runs that failed because another process owns them.
    pub(crate) fenced: u64,
    /// Whether two processes work concurrently.
    pub(crate) racing: bool,
    /// The last epoch of the thread with the most epochs.
    pub(crate) epochs: u64,
}

impl Line {
    pub(crate) fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|place| {
            let keeper = match place % 4 {
                3 => Keeper::ServiceNext,
                _ => Keeper::Us,
            };
            Thread::new(format!("t{place}"), keeper)
        });
        Self::of(threads.collect(), Servers::start())
    }

    /// One with these threads and servers.
    pub(crate) fn of(threads: Vec<Thread>, servers: Servers) -> Self {
        let scratch = Scratch::in_memory("loopkill");
        Self {
            url: scratch.sqlite("store.db"),
            scratch,
            servers,
            ledger: LoopLedger::default(),
            keepers: KeeperLog::default(),
            threads,
            started: 0,
            next: 0,
            decided: BTreeMap::new(),
            fenced: 0,
            racing: false,
            epochs: 0,
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.threads.iter().map(|thread| thread.name.clone());
        names.collect()
    }

    /// The fault points that its processes reached.
    pub(crate) fn reached(&self) -> BTreeSet<String> {
        let log = self.scratch.path().join("points.log");
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Starts a process. Its clock is past the leases of earlier ones.
    pub(crate) fn start(&mut self, faults: &str, orders: usize) -> Life {
        self.started += 1;
        let mut settings = self.servers.at.clone();
        // The points around an append are not in the library, but in the process.
        let faults = match faults.strip_prefix("append.") {
            Some(_) => {
                settings.push(format!("dies={}", faults.replace("=kill", "")));
                ""
            }
            None => faults,
        };
        settings.push(format!("clock={}", self.started * APART));
        settings.push("lease=1000".to_owned());
        let log = self.scratch.path().join("points.log");
        let mut worker = worker(&self.url, &settings, faults, &log);
        let ready = worker.hear().is_some_and(|line| line == "ready");
        Life {
            worker,
            sent: BTreeMap::new(),
            left: vec![orders; self.threads.len()],
            heard: 0,
            ready,
        }
    }

    /// Excludes threads with service-owned histories from a process's commands: others may use them
    /// before it does.
    pub(crate) fn spare(&self, life: &mut Life) {
        for (left, thread) in life.left.iter_mut().zip(&self.threads) {
            if thread.is_kept_by_service() {
                *left = 0;
            }
        }
    }

    /// Sends a command for a thread.
    pub(crate) fn send(&mut self, life: &mut Life, place: usize, order: Order) {
        self.next += 1;
        let thread = &mut self.threads[place];
        if let Some(code) = &order.sends {
            self.ledger.sent(code);
        }
        let mut words = order.line.split(' ');
        let verb = words.next().unwrap_or_default().to_owned();
        let note = words.next_back().filter(|_| verb == "leave");
        let note = note.map(str::to_owned);
        self.keepers.ordered(&order.line, thread);
        let code = order.sends.clone().or_else(|| thread.current.clone());
        if order.sends.is_some() {
            thread.current = order.sends;
        }
        life.sent.insert(
            self.next,
            Sent {
                thread: place,
                code,
                verb,
                note,
                answers: order.answers,
                told: false,
            },
        );
        life.worker.tell(&format!("{} {}", self.next, order.line));
    }

    /// Sends the next command for a thread, if there is one.
    fn proceed(&mut self, life: &mut Life, place: usize, aim: Aim, rng: &mut Rng) {
        if life.left[place] == 0 {
            return;
        }
        life.left[place] -= 1;
        let Some(order) = self.threads[place].next(aim, rng) else {
            return;
        };
        // Now and then a run that has just begun is cancelled.
        let may = aim != Aim::Settle;
        let begins = order.sends.is_some() && may;
        let cancel = begins && rng.chance(0.04);
        let leave = begins && rng.chance(0.2);
        self.send(life, place, order);
        if leave {
            let order = self.threads[place].leave(rng);
            self.send(life, place, order);
        }
        if cancel {
            let order = self.threads[place].cancel();
            self.send(life, place, order);
        }
    }

    /// Processes a line of output; returns the thread whose command was answered, if one was.
    pub(crate) fn take_in(&mut self, life: &mut Life, line: &str) -> Result<Option<usize>, String> {
        life.heard += 1;
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (verb, no, third, rest) = (next(), next(), next(), next());
        if verb == "trouble" {
            return Err(format!("a process is in trouble: {line}"));
        }
        let no: u32 = no.parse().map_err(|_| format!("not understood: {line}"))?;
        if verb == "ended" {
            // Which run is resumed is known from its messages.
            let sent = life.sent.get_mut(&no).filter(|sent| sent.verb == "turn");
            if let (Some(sent), "done") = (sent, third)
                && let Some(code) = &sent.code
            {
                sent.told = true;
                self.ledger.heard(code);
            }
            return Ok(None);
        }
        if verb == "shown" {
            self.shown(life, no, &format!("{third} {rest}"));
            return Ok(None);
        }
        let Some(sent) = life.sent.remove(&no) else {
            return Err(format!("nobody asked for this: {line}"));
        };
        let thread = &mut self.threads[sent.thread];
        let others = life.sent.values().any(|other| other.thread == sent.thread);
        match verb {
            "done" => {
                thread.standing = Standing::Free;
                let code = brackets(rest, "turn").last().map(str::parse::<Code>);
                if let (Some(code), true) = (code, sent.answers) {
                    let code = code?;
                    if third == "done" {
                        self.ledger.heard(&code);
                    }
                    self.ledger.acknowledged(&code, third, &messages(rest)?)?;
                }
            }
            "parked" => thread.standing = Standing::Parked,
            "ok" if sent.verb == "decide" => {
                let words = format!("{third} {rest}");
                let words: Vec<&str> = words.split_whitespace().collect();
                for word in &words {
                    *self.decided.entry((*word).to_owned()).or_default() += 1;
                }
                let answered = words
                    .iter()
                    .any(|word| matches!(*word, "approved" | "denied"));
                if answered {
                    thread.standing = Standing::Answered;
                }
            }
            "ok" => {
                if let Some(note) = &sent.note {
                    self.ledger.left(&thread.name, note);
                }
            }
            "failed" => {
                let why = format!("{third} {rest}");
                self.failed(&sent, &why)?;
            }
            _ => return Err(format!("not understood: {line}")),
        }
        Ok((!others).then_some(sent.thread))
    }

    /// A reader received a part of an answer: now and then its run is cancelled.
    fn shown(&mut self, life: &mut Life, no: u32, at: &str) {
        let Some(sent) = life.sent.get(&no) else {
            return;
        };
        let place = sent.thread;
        let may = life.left[place] > 0 || self.keepers.cancels_all;
        let may = may && sent.verb != "cancel";
        if self.keepers.shown(&self.threads[place].name, at) && may {
            let order = self.threads[place].cancel();
            self.send(life, place, order);
        }
    }

    /// Checks whether a run failed in one of the expected ways.
    fn failed(&mut self, sent: &Sent, why: &str) -> Result<(), String> {
        let raced = [
            "was taken over",
            "fenced",
            "epoch",
            "busy",
            "is running",
            "cancelled before",
            // A stopped process may hold the file lock.
            "locked by another process",
            // The application's store did not make an append, or did not answer.
            "the message store failed",
        ];
        let nothing = why.contains("no run on thread") || why.contains("no thread");
        if sent.note.is_some() && why.contains("no thread") {
            // The turn that makes the thread has not begun yet.
            return Ok(());
        }
        if nothing {
            self.threads[sent.thread].standing = Standing::Free;
            return Ok(());
        }
        if why.contains("cannot be answered") || why.contains("has another answer") {
            // Another answer was first, and the run waits to be resumed.
            *self.decided.entry("late".to_owned()).or_default() += 1;
            self.threads[sent.thread].standing = Standing::Answered;
            return Ok(());
        }
        let late = self.racing && why.contains("does not wait for this");
        if late || raced.iter().any(|word| why.contains(word)) {
            self.fenced += 1;
            if let (Some(code), true) = (&sent.code, sent.told) {
                return Err(format!(
                    "readers of {code:?} heard its end, and it was refused: {why}"
                ));
            }
            self.threads[sent.thread].standing = Standing::Left;
            return Ok(());
        }
        let (verb, code) = (&sent.verb, &sent.code);
        Err(format!("{verb} of {code:?} failed: {why}"))
    }

    /// Lets a process work until it is done, or dead, or has printed this many lines.
    pub(crate) fn work(
        &mut self,
        life: &mut Life,
        aim: Aim,
        until: Option<usize>,
        rng: &mut Rng,
        mut seen: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        if !life.ready {
            return Ok(());
        }
        if life.heard == 0 {
            for place in 0..self.threads.len() {
                self.proceed(life, place, aim, rng);
            }
        }
        while !life.sent.is_empty() {
            if until.is_some_and(|until| life.heard >= until) {
                return Ok(());
            }
            let Some(line) = life.worker.hear() else {
                return Ok(());
            };
            let free = self.take_in(life, &line)?;
            seen()?;
            if let Some(place) = free {
                self.proceed(life, place, aim, rng);
            }
        }
        Ok(())
    }

    /// Reads a process's output to its end.
    pub(crate) fn end(&mut self, mut life: Life) -> Result<End, String> {
        life.worker.finish();
        while let Some(line) = life.worker.hear() {
            self.take_in(&mut life, &line)?;
        }
        let end = match life.worker.ended() && life.ready {
            true => End::ByItself,
            false => End::Killed,
        };
        self.look()?;
        Ok(end)
    }

    /// Runs a process as planned.
    pub(crate) fn live(
        &mut self,
        fate: &Fate,
        aim: Aim,
        rng: &mut Rng,
        seen: impl FnMut() -> Result<(), String>,
    ) -> Result<End, String> {
        let mut life = self.start(&fate.faults, fate.orders);
        self.work(&mut life, aim, fate.kill_after, rng, seen)?;
        if fate.kill_after.is_some() {
            // At any moment of its work.
            std::thread::sleep(Duration::from_micros(rng.below(8_000) as u64));
            life.worker.kill();
        }
        self.end(life)
    }

    /// Processes the output of the servers.
    fn absorb(&mut self) -> Result<(), String> {
        for line in self.servers.said()? {
            let words: Vec<&str> = line.split(' ').collect();
            if self.keepers.take_in(&words)? {
                continue;
            }
            match words.as_slice() {
                ["asked", _, code, round, _, shown @ ..] => {
                    let shown = shown.iter().filter(|mark| !mark.is_empty());
                    let shown = shown.map(|mark| mark.parse::<Mark>());
                    self.ledger.asked(ModelCall {
                        code: code.parse()?,
                        round: round.parse().map_err(|_| line.clone())?,
                        shown: shown.collect::<Result<_, _>>()?,
                    })?;
                }
                ["ran", tool, key, mark] => self.ledger.ran(Ran {
                    tool: (*tool).to_owned(),
                    key: (*key).to_owned(),
                    mark: mark.parse()?,
                })?,
                _ => return Err(format!("a server says: {line}")),
            }
        }
        Ok(())
    }

    /// Compares the ledger with the servers and the store, and updates the state of threads.
    pub(crate) fn look(&mut self) -> Result<(), String> {
        self.absorb()?;
        let store = open(&self.url)?;
        self.ledger.died(&store, &self.names())?;
        for thread in &mut self.threads {
            self.ledger.check(&store, &thread.name)?;
            self.epochs = self.epochs.max(fold::check(&store, &thread.name)?);
            (thread.standing, thread.current) = standing(&store, &thread.name)?;
        }
        block_on(store.close()).map_err(|error| error.to_string())
    }

    /// Whether a process holds the file lock.
    pub(crate) fn is_locked(&self) -> Result<bool, String> {
        let path = self.url.strip_prefix("sqlite://").unwrap_or(&self.url);
        let file = rusqlite::Connection::open(path).map_err(|error| error.to_string())?;
        file.busy_timeout(Duration::ZERO)
            .map_err(|error| error.to_string())?;
        Ok(file.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err())
    }

    /// The largest number of takeovers of a run.
    pub(crate) fn attempts(&self) -> Result<u32, String> {
        let store = open(&self.url)?;
        let mut most = 0;
        for thread in &self.threads {
            if let Some(opened) = opened(&store, &thread.name)? {
                most = most.max(opened.unsettled.map_or(0, |run| run.attempt));
            }
        }
        Ok(most)
    }

    /// Settles unfinished runs before one has been taken over too often.
    pub(crate) fn rest(&mut self, rng: &mut Rng) -> Result<(), String> {
        if self.attempts()? < ENOUGH {
            return Ok(());
        }
        self.settle(rng)
    }

    /// Lets an undisturbed process settle unfinished runs.
    pub(crate) fn settle(&mut self, rng: &mut Rng) -> Result<(), String> {
        // A run may wait once more for each of its rounds, and for the application's store.
        let end = self.live(&Fate::none(12), Aim::Settle, rng, || Ok(()))?;
        if end != End::ByItself {
            return Err("a process died that nothing was done to".to_owned());
        }
        match self
            .threads
            .iter()
            .find(|thread| thread.standing != Standing::Free)
        {
            Some(thread) => Err(format!("{} is {:?}", thread.name, thread.standing)),
            None => Ok(()),
        }
    }

    /// Settles everything, lets each thread take one more turn with every vendor, and compares
    /// everything. Returns the number of turns.
    pub(crate) fn survive(&mut self, rng: &mut Rng) -> Result<u64, String> {
        self.settle(rng)?;
        let mut life = self.start("", 0);
        let mut turns = 0;
        for place in 0..self.threads.len() {
            let thread = &mut self.threads[place];
            if thread.keeper == Keeper::Service {
                thread.keeper = Keeper::Us;
                let line = format!("own {} local", thread.name);
                self.send(
                    &mut life,
                    place,
                    Order {
                        line,
                        sends: None,
                        answers: false,
                    },
                );
                self.answered(&mut life)?;
            }
            for wire in WIRES {
                let kind = if rng.bool() { Kind::Brief } else { Kind::Plain };
                let thread = &mut self.threads[place];
                let order = thread.turn(kind, wire.as_str(), Modes::Both, rng);
                self.send(&mut life, place, order);
                self.answered(&mut life)?;
                if self.threads[place].standing != Standing::Free {
                    return Err(format!(
                        "a survivor did not take its turn by {}",
                        wire.as_str()
                    ));
                }
                turns += 1;
            }
        }
        self.end(life)?;
        self.check_settled()?;
        Ok(turns)
    }

    /// Compares everything, when no thread has an unfinished run.
    pub(crate) fn check_settled(&self) -> Result<(), String> {
        let store = open(&self.url)?;
        for name in self.names() {
            self.ledger.check_settled(&store, &name)?;
            // A known defect: with parity, a queued message that begins a run is gone if the run's
            // first model call is cut.
            if !Keeping::of(&name).parity {
                self.ledger.check_notes(&store, &name)?;
            }
        }
        let checked = block_on(store.check(&mut |_| {})).map_err(|error| error.to_string())?;
        match checked.damage.first() {
            Some(damage) => Err(format!("{damage:?}")),
            None => Ok(()),
        }
    }

    /// Waits for the answers to all commands.
    pub(crate) fn answered(&mut self, life: &mut Life) -> Result<(), String> {
        while !life.sent.is_empty() {
            let line = life.worker.hear().ok_or("a process died")?;
            self.take_in(life, &line)?;
        }
        Ok(())
    }
}

fn opened(store: &Store, thread: &str) -> Result<Option<throughline_store::Opened>, String> {
    let id = ThreadId::new(thread).map_err(|error| error.to_string())?;
    match block_on(store.open(&TenantScope::local(), &At::Thread(id), 0)) {
        Ok(opened) => Ok(Some(opened)),
        Err(throughline_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The state of a thread in the store, and its turn.
fn standing(store: &Store, thread: &str) -> Result<(Standing, Option<Code>), String> {
    let Some(run) = opened(store, thread)?.and_then(|opened| opened.unsettled) else {
        return Ok((Standing::Free, None));
    };
    let standing = match run.state {
        RunState::Parked => Standing::Parked,
        _ => Standing::Left,
    };
    let journal = block_on(store.journal(&TenantScope::local(), run.id));
    let journal = journal.map_err(|error| error.to_string())?;
    let texts = journal.entries.iter().map(|entry| entry.message.to_json());
    let texts: Vec<String> = texts.collect();
    let texts = texts.join("\n");
    let code = brackets(&texts, "turn").last().map(str::parse);
    Ok((standing, code.transpose()?))
}

/// The elements of a JSON list, as written.
fn messages(text: &str) -> Result<Vec<String>, String> {
    let list: Vec<Box<serde_json::value::RawValue>> =
        serde_json::from_str(text).map_err(|error| format!("{error} in {text}"))?;
    Ok(list.iter().map(|one| one.get().to_owned()).collect())
}
