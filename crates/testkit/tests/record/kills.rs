use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throughline_store::{At, NodeRef, RunId, RunState, Span, Store, TenantScope, ThreadId};
use throughline_testkit::record::{block_on, shorts, whole_runs};
use throughline_testkit::{Scratch, property};

/// What a child has been told, as its outside ledger.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Runs that are there.
    begun: Vec<RunId>,
    /// Steps that are there.
    steps: Vec<(RunId, u32)>,
    /// What was published: thread, mode and messages.
    done: BTreeMap<RunId, (String, String, Vec<String>)>,
}

impl Ledger {
    /// Note a line; an error is one of the test.
    pub(crate) fn note(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.splitn(5, ' ');
        let kind = words.next().unwrap_or_default();
        let mut run = || -> Result<RunId, String> {
            let word = words.next().unwrap_or_default();
            word.parse().map_err(|error| format!("{error} in {line}"))
        };
        match kind {
            "ready" => {}
            "begun" => self.begun.push(run()?),
            "step" => {
                let run = run()?;
                let step = words.next().and_then(|word| word.parse().ok());
                self.steps.push((run, step.unwrap_or(u32::MAX)));
            }
            "done" => {
                let run = run()?;
                let mut next = || words.next().unwrap_or_default().to_owned();
                let (thread, mode, texts) = (next(), next(), next());
                let texts = texts.split('|').map(str::to_owned).collect();
                self.done.insert(run, (thread, mode, texts));
            }
            _ => return Err(line.to_owned()),
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.begun.len() + self.steps.len() + self.done.len()
    }

    /// Everything acknowledged is there, and nothing partial is visible.
    pub(crate) fn check(&self, store: &Store) -> Result<(), String> {
        let scope = TenantScope::local();
        let said = |error: throughline_store::Error| format!("{error} ({error:?})");
        for run in &self.begun {
            block_on(store.run(&scope, *run)).map_err(said)?;
        }
        for (run, step) in &self.steps {
            let journal = block_on(store.journal(&scope, *run)).map_err(said)?;
            if journal.run.next_step <= *step {
                return Err(format!("step {step} of {run} is lost"));
            }
        }
        for (run, (thread, _, texts)) in &self.done {
            let at = At::Node(NodeRef::Run(*run));
            let opened = block_on(store.open(&scope, &at, texts.len())).map_err(said)?;
            if shorts(&opened.entries) != *texts {
                let found = shorts(&opened.entries);
                return Err(format!("{run} of {thread}: {found:?}, expected {texts:?}"));
            }
        }
        for n in 0..6 {
            let Ok(id) = ThreadId::new(&format!("t{n}")) else {
                continue;
            };
            let at = At::Thread(id);
            let Ok(page) = block_on(store.read(&scope, &at, Span::Tail, 100_000)) else {
                continue;
            };
            for (run, texts) in whole_runs(&page.entries)? {
                let state = block_on(store.run(&scope, run)).map_err(said)?;
                let hex = run.to_hex();
                let last = texts.last().map_or("", String::as_str);
                let whole = last.starts_with(&format!("{hex} answer"))
                    || last.starts_with(&format!("{hex} closed"));
                // In `per_call` a run may show its calls so far; in `per_run` all or nothing.
                let partial = !whole && state.mode == throughline_store::Mode::PerRun;
                let settled = matches!(state.state, RunState::Committed | RunState::Cancelled);
                if partial || (state.mode == throughline_store::Mode::PerRun && !settled) {
                    return Err(format!("{run} ({:?}) is visible as {texts:?}", state.state));
                }
            }
        }
        Ok(())
    }
}

/// A process that writes, and what it says.
pub(crate) struct Writer {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Writer {
    pub(crate) fn start(url: &str, seed: u64) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_store-child"))
            .args(["write", url, &seed.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Hear the next line; `false` when there is none.
    pub(crate) fn hear(&mut self, ledger: &mut Ledger) -> Result<bool, String> {
        let mut line = String::new();
        let read = self
            .out
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        // A line without its end was cut by the kill.
        let Some(whole) = line.strip_suffix('\n').filter(|_| read > 0) else {
            return Ok(false);
        };
        ledger.note(whole)?;
        Ok(true)
    }

    /// Kill it and hear what it said until then.
    pub(crate) fn kill(mut self, ledger: &mut Ledger) -> Result<(), String> {
        self.child.kill().map_err(|error| error.to_string())?;
        self.child.wait().map_err(|error| error.to_string())?;
        while self.hear(ledger)? {}
        Ok(())
    }
}

/// R1 and R2: kill -9 of a writing process at random. What it acknowledged is there, and readers
/// see none or all of a `per_run` run.
#[test]
fn r1_a_killed_writer_loses_nothing_it_acknowledged() {
    let scratch = Scratch::new("kills");
    let url = scratch.sqlite("store.db");
    let mut total = 0;
    let mut published = 0;
    property("r1 kills", 25, |rng, _| {
        let mut ledger = Ledger::default();
        let mut writer = Writer::start(&url, rng.next_u64());
        // Some lines, then a moment that falls anywhere in a transaction.
        for _ in 0..rng.range(1..=60) {
            if !writer.hear(&mut ledger)? {
                return Err("the writer ended by itself".to_owned());
            }
        }
        std::thread::sleep(Duration::from_micros(rng.below(3000) as u64));
        writer.kill(&mut ledger)?;
        total += ledger.len();
        published += ledger.done.len();
        let store = block_on(Store::open(&url)).map_err(|error| error.to_string())?;
        ledger.check(&store)?;
        block_on(store.close()).map_err(|error| error.to_string())
    });
    let store = block_on(Store::open(&url)).unwrap();
    let checked = block_on(store.check(&mut |_| {})).unwrap();
    assert_eq!(checked.damage, []);
    assert!(published > 0, "nothing was published before the kills");
    let items = checked.items;
    println!("table r1 kills: acknowledged={total} published={published} items={items} lost=0");
}
