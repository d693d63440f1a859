//! The stored state of a thread, in a short form that tests can compare.

use std::fmt;

use throughline::store::{At, CallState, Entry, Journal, RunFilter, ThreadId};
use throughline_testkit::stage::{Process, short};

/// The stored state of a thread and of its newest run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The history that every reader sees.
    pub(crate) history: String,
    /// How often the head has moved.
    pub(crate) version: u64,
    /// Whether the node at the head is open.
    pub(crate) open: bool,
    /// Unsent results, which the next run sends first.
    pub(crate) unsent: String,
    /// The state of the newest run.
    pub(crate) run: &'static str,
    /// Its calls.
    pub(crate) calls: String,
    /// Everything that its journal has.
    pub(crate) journal: String,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "history [{}] v{}{} unsent [{}] run {} calls [{}] journal [{}]",
            self.history,
            self.version,
            if self.open { " open" } else { "" },
            self.unsent,
            self.run,
            self.calls,
            self.journal,
        )
    }
}

fn shortly(entries: &[Entry]) -> String {
    short(entries.iter().map(|entry| &entry.message))
}

fn word(state: CallState) -> &'static str {
    match state {
        CallState::Planned => "planned",
        CallState::Intent => "intent",
        CallState::Done => "done",
        CallState::Approval => "approval",
        CallState::Client => "client",
        CallState::Taken => "taken",
    }
}

/// Reads the state of a thread.
pub(crate) async fn snapshot(process: &Process, thread: &ThreadId) -> Snapshot {
    let (store, scope) = (&process.store, process.scope());
    let at = At::Thread(thread.clone());
    let opened = store.open(&scope, &at, usize::MAX).await.unwrap();
    let journal = newest(process, thread).await;
    let calls: Vec<String> = journal
        .calls
        .iter()
        .map(|call| format!("{} {}", call.call, word(call.state)))
        .collect();
    Snapshot {
        history: shortly(&opened.entries),
        version: opened.thread.version.0,
        open: opened.tip.is_some_and(|tip| tip.open),
        unsent: shortly(&opened.unsent),
        run: journal.run.state.as_str(),
        calls: calls.join(", "),
        journal: shortly(&journal.entries),
    }
}

/// The journal of the newest run on a thread.
pub(crate) async fn newest(process: &Process, thread: &ThreadId) -> Journal {
    let (store, scope) = (&process.store, process.scope());
    let filter = RunFilter {
        thread: Some(thread.clone()),
        states: Vec::new(),
    };
    let mut runs = store.runs(&scope, &filter, None, 1).await.unwrap();
    let run = runs.found.pop().unwrap();
    store.journal(&scope, run.id).await.unwrap()
}
