use std::collections::{BTreeMap, BTreeSet};

use throughline_store::{
    At, CallState, ErrorKind, Mode, NodeRef, RunId, RunState, Span, Store, TenantScope,
    ThreadFilter, ThreadId,
};
use throughline_testkit::record::{block_on, shorts, whole_runs};

use crate::record::common::{named, said};

/// What happened to the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// Their process was killed, at most.
    Kill,
    /// The power was cut. Events that were flushed after the last other write of their run may be
    /// missing, the last ones first.
    PowerCut,
}

/// What the store acknowledged, recorded outside of it.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Stored runs.
    begun: BTreeSet<RunId>,
    /// Stored steps.
    steps: Vec<(RunId, u32)>,
    /// Calls of steps that have their results, with the number.
    results: Vec<(RunId, u32, usize)>,
    /// Stored events, with the number.
    events: BTreeMap<RunId, usize>,
    /// Of these, how many were followed by another write of their run.
    synced: BTreeMap<RunId, usize>,
    /// Published runs: thread and messages.
    done: BTreeMap<RunId, (String, Vec<String>)>,
    /// Forks, and the run they start from.
    forks: Vec<(String, RunId)>,
    /// Threads whose deletion was begun.
    deleting: BTreeSet<String>,
    /// Deleted threads.
    deleted: BTreeSet<String>,
}

impl Ledger {
    /// Records a line; an error is one of the test.
    pub(crate) fn note(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.splitn(5, ' ');
        let kind = words.next().unwrap_or_default();
        let mut next = || words.next().unwrap_or_default().to_owned();
        let run = |word: String| -> Result<RunId, String> {
            word.parse().map_err(|error| format!("{error} in {line}"))
        };
        let number = |word: String| -> Result<u32, String> {
            word.parse().map_err(|error| format!("{error} in {line}"))
        };
        match kind {
            "ready" => {}
            "begun" => drop(self.begun.insert(run(next())?)),
            "step" => {
                let (run, step) = (run(next())?, number(next())?);
                self.steps.push((run, step));
                self.sync(run);
            }
            "results" => {
                let (run, step, count) = (run(next())?, number(next())?, number(next())?);
                self.results.push((run, step, count as usize));
                self.sync(run);
            }
            "events" => {
                self.events.insert(run(next())?, number(next())? as usize);
            }
            "done" => {
                let (run, thread, _, texts) = (run(next())?, next(), next(), next());
                let texts = texts.split('|').map(str::to_owned).collect();
                self.done.insert(run, (thread, texts));
                self.sync(run);
            }
            "forked" => self.forks.push((next(), run(next())?)),
            "deleting" => drop(self.deleting.insert(next())),
            "deleted" => drop(self.deleted.insert(next())),
            _ => return Err(line.to_owned()),
        }
        Ok(())
    }

    /// The events of a run are synced.
    fn sync(&mut self, run: RunId) {
        if let Some(count) = self.events.get(&run) {
            self.synced.insert(run, *count);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.begun.len()
            + self.steps.len()
            + self.results.len()
            + self.events.len()
            + self.done.len()
            + self.forks.len()
            + self.deleted.len()
    }

    pub(crate) fn published(&self) -> usize {
        self.done.len()
    }

    /// Checks that everything acknowledged is stored, and that nothing partial is visible.
    pub(crate) fn check(&self, store: &Store, met: Met) -> Result<(), String> {
        self.check_journals(store)?;
        self.check_events(store, met)?;
        for (run, (thread, texts)) in &self.done {
            self.check_published(store, *run, thread, texts)?;
        }
        for (fork, run) in &self.forks {
            let texts = self.done.get(run).map(|(_, texts)| texts);
            let at = At::Thread(named(fork));
            let page = block_on(store.read(&TenantScope::local(), &at, Span::Tail, 100_000));
            let runs = whole_runs(&page.map_err(said)?.entries)?;
            if !runs
                .iter()
                .any(|(other, found)| other == run && Some(found) == texts)
            {
                return Err(format!("{run} is not in {fork}, which was forked from it"));
            }
        }
        for thread in &self.deleted {
            let at = At::Thread(named(thread));
            match block_on(store.open(&TenantScope::local(), &at, 1)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                other => return Err(format!("{thread} was deleted and is {other:?}")),
            }
        }
        check_visible(store)
    }

    fn check_journals(&self, store: &Store) -> Result<(), String> {
        let scope = TenantScope::local();
        for run in &self.begun {
            block_on(store.run(&scope, *run)).map_err(said)?;
        }
        for (run, step) in &self.steps {
            let journal = block_on(store.journal(&scope, *run)).map_err(said)?;
            if journal.run.next_step <= *step {
                return Err(format!("step {step} of {run} is lost"));
            }
        }
        for (run, step, count) in &self.results {
            let journal = block_on(store.journal(&scope, *run)).map_err(said)?;
            let calls = journal.calls.iter().filter(|call| call.at.step == *step);
            let found = calls.filter(|call| call.state == CallState::Done).count();
            if found < *count {
                return Err(format!(
                    "{found} results of step {step} of {run}, not {count}"
                ));
            }
        }
        Ok(())
    }

    fn check_events(&self, store: &Store, met: Met) -> Result<(), String> {
        let scope = TenantScope::local();
        for (run, count) in &self.events {
            let flushes = block_on(store.events(&scope, *run, 0, usize::MAX)).map_err(said)?;
            let mut found = Vec::new();
            for flush in flushes {
                found.extend(flush.events().ok_or("events that are none")?);
            }
            let expected = crate::record::work::events(*run, 0, *count);
            let sure = match met {
                Met::Kill => *count,
                Met::PowerCut => self.synced.get(run).copied().unwrap_or(0),
            };
            let there = found.len().min(*count);
            if there < sure || found[..there] != expected[..there] {
                return Err(format!(
                    "events of {run}: {found:?}, expected {sure} to {count} of {expected:?}"
                ));
            }
        }
        Ok(())
    }

    fn check_published(
        &self,
        store: &Store,
        run: RunId,
        thread: &str,
        texts: &[String],
    ) -> Result<(), String> {
        let at = At::Node(NodeRef::Run(run));
        if self.deleting.contains(thread) {
            let found = block_on(store.open(&TenantScope::local(), &at, texts.len()));
            let gone = found.is_err_and(|error| error.kind() == ErrorKind::NotFound);
            if gone {
                return Ok(());
            }
            if self.deleted.contains(thread) {
                return Err(format!("{run} of {thread}, which was deleted, is there"));
            }
        }
        check_texts(store, &at, texts).map_err(|why| format!("{run} of {thread}: {why}"))
    }
}

/// Checks the last messages of a branch.
fn check_texts(store: &Store, at: &At, texts: &[String]) -> Result<(), String> {
    let opened = block_on(store.open(&TenantScope::local(), at, texts.len())).map_err(said)?;
    let found = shorts(&opened.entries);
    if found == texts {
        return Ok(());
    }
    Err(format!("{found:?}, expected {texts:?}"))
}

/// All visible threads.
pub(crate) fn threads(store: &Store) -> Result<Vec<ThreadId>, String> {
    let filter = ThreadFilter::default();
    let threads = block_on(store.threads(&TenantScope::local(), &filter, None, 100_000));
    let found = threads.map_err(said)?.found;
    Ok(found.into_iter().map(|thread| thread.id).collect())
}

/// Checks that readers see whole runs, and none or all of a `per_run` run.
fn check_visible(store: &Store) -> Result<(), String> {
    let scope = TenantScope::local();
    for id in threads(store)? {
        let page = block_on(store.read(&scope, &At::Thread(id), Span::Tail, 100_000));
        for (run, texts) in whole_runs(&page.map_err(said)?.entries)? {
            let state = match block_on(store.run(&scope, run)) {
                Ok(run) => run,
                // Shared with a deleted thread, whose name is gone.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(said(error)),
            };
            let hex = run.to_hex();
            let last = texts.last().map_or("", String::as_str);
            let whole = last.starts_with(&format!("{hex} answer"))
                || last.starts_with(&format!("{hex} closed"));
            // In `per_call` a run may show its calls so far; in `per_run` all or nothing.
            let settled = matches!(state.state, RunState::Committed | RunState::Cancelled);
            if state.mode == Mode::PerRun && !(whole && settled) {
                return Err(format!("{run} ({:?}) is visible as {texts:?}", state.state));
            }
        }
    }
    Ok(())
}
