//! Calls, by the ids that a test gave them.

use throughline::Threads;
use throughline::model::{Arguments, CallId};
use throughline::store::{CallRef, RunFilter, ThreadId};
use throughline::thread::{Awaits, Pending};

/// The calls of a thread's runs, newest first, as an application that listed them has them,
/// including those that no longer wait.
pub struct MadeCalls(Vec<Pending>, CallRef);

impl MadeCalls {
    /// Reads the journals of a thread.
    ///
    /// # Panics
    ///
    /// When the thread cannot be read.
    pub async fn on(threads: &Threads, thread: &ThreadId) -> Self {
        let (store, scope) = (threads.store(), threads.scope());
        let filter = RunFilter {
            thread: Some(thread.clone()),
            states: Vec::new(),
        };
        let listed = store.runs(scope, &filter, None, 100).await;
        let listed = listed.expect("the runs of a thread");
        let mut calls = Vec::new();
        for run in listed.found {
            let journal = store.journal(scope, run.id).await;
            let journal = journal.expect("a journal");
            calls.extend(journal.calls.iter().rev().map(|call| Pending {
                call: CallId::natural(&call.call).expect("a call id"),
                tool: call.tool.clone(),
                arguments: Arguments::None,
                awaits: Awaits::Approval,
                at: call.at,
                occurrence: 0,
                approval: call.approval,
            }));
        }
        let nowhere = CallRef {
            run: store.ids().run(),
            step: 0,
            position: 0,
        };
        Self(calls, nowhere)
    }

    /// The newest call with an id, or an invented one if there is none.
    ///
    /// # Panics
    ///
    /// When the id is empty.
    pub fn of(&self, id: &str) -> Pending {
        let found = self.0.iter().find(|one| one.call.value() == id);
        found.cloned().unwrap_or_else(|| Pending {
            call: CallId::natural(id).expect("a call id"),
            tool: "none".to_owned(),
            arguments: Arguments::None,
            awaits: Awaits::Approval,
            at: self.1,
            occurrence: 0,
            approval: None,
        })
    }
}
