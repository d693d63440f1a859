//! What vendors have of a thread.

use std::collections::BTreeSet;

use throughline_store::{At, Error, Result, RunFilter, ServiceId, ThreadId};

use super::journal::service_of;
use super::owner::Owner;
use super::scoped_store::ScopedStore;
use super::threads::Threads;

/// How many runs are read at a time.
const PAGE: usize = 100;

/// A copy of a conversation, or of a part of it, that a vendor has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorCopy {
    /// The upstream that has the copy.
    pub upstream: String,
    /// The sub-agent of the copy; empty for the thread itself, and for copies that the thread does
    /// not continue any more.
    pub agent: String,
    /// The vendor's id of the copy.
    pub id: String,
    /// What was done about it.
    pub outcome: CopyOutcome,
}

/// What was done about a vendor's copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// Nothing: the vendor has it.
    Remains,
    /// Nothing: it was made by another thread, from which this one was forked or imported.
    Inherited,
    /// The vendor deleted it.
    Deleted,
    /// The vendor did not have it any more.
    Absent,
    /// The vendor has no way to delete it, or no client of the upstream is known.
    Unsupported,
    /// The vendor could not be asked, or refused.
    Failed {
        /// Why.
        reason: String,
    },
}

impl CopyOutcome {
    /// The word in receipts.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Remains => "remains",
            Self::Inherited => "inherited",
            Self::Deleted => "deleted",
            Self::Absent => "absent",
            Self::Unsupported => "unsupported",
            Self::Failed { .. } => "failed",
        }
    }
}

/// The result of deleting a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Whether the thread is deleted in our store. It is not if a vendor was to delete its copies
    /// and failed: then the deletion can be repeated.
    pub is_deleted: bool,
    /// The copies that vendors had, and what was done about each.
    pub vendor_copies: Vec<VendorCopy>,
}

impl Threads {
    /// The owner of a thread's history, without reading the history.
    pub async fn owner_of(&self, thread: &ThreadId) -> Result<Owner> {
        let ScopedStore { store, scope, .. } = self.home();
        let opened = store.open(scope, &At::Thread(thread.clone()), 0).await?;
        Ok(super::handle::settings(&opened)?.owner)
    }

    /// Lists what vendors have of a thread: every id that a service issued for one of its runs, on
    /// any branch, and those that the thread brought with it when it was forked or imported. Empty
    /// if the thread does not exist.
    ///
    /// ```
    /// use throughline::store::Store;
    /// use throughline::{Agent, Demo, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let agent = Agent::builder(Demo::new()).threads(&threads).build()?;
    /// let thread = agent.new_thread();
    /// agent.run_on(&thread, "The tide is at four.").await?;
    /// // The model `demo` stores nothing.
    /// assert!(threads.vendor_copies(thread.id()).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn vendor_copies(&self, thread: &ThreadId) -> Result<Vec<VendorCopy>> {
        let ScopedStore { store, scope, .. } = self.home();
        let opened = match store.open(scope, &At::Thread(thread.clone()), 0).await {
            Ok(opened) => opened,
            Err(Error::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let known = opened.state.services();
        let is_services = matches!(super::handle::settings(&opened)?.owner, Owner::Services(_));
        let issued = self
            .issued(thread, is_services || !known.is_empty())
            .await?;
        let agent_of = |upstream: &str, id: &str| {
            let mut known = known.iter();
            let known = known.find(|one| one.upstream == upstream && one.id == id);
            known.map(|one| one.agent.clone()).unwrap_or_default()
        };
        let inherited = known
            .iter()
            .filter(|one| !issued.contains(&(one.upstream.clone(), one.id.clone())));
        let inherited: Vec<ServiceId> = inherited.cloned().collect();
        let own = issued.iter().map(|(upstream, id)| VendorCopy {
            agent: agent_of(upstream, id),
            upstream: upstream.clone(),
            id: id.clone(),
            outcome: CopyOutcome::Remains,
        });
        let inherited = inherited.into_iter().map(|one| VendorCopy {
            upstream: one.upstream,
            agent: one.agent,
            id: one.id,
            outcome: CopyOutcome::Inherited,
        });
        Ok(own.chain(inherited).collect())
    }

    /// The upstreams and ids under which services stored answers of the runs of a thread.
    async fn issued(
        &self,
        thread: &ThreadId,
        reads_steps: bool,
    ) -> Result<BTreeSet<(String, String)>> {
        let ScopedStore { store, scope, .. } = self.home();
        let filter = RunFilter {
            thread: Some(thread.clone()),
            states: Vec::new(),
        };
        let mut issued = BTreeSet::new();
        let mut after = None;
        loop {
            let page = store.runs(scope, &filter, after, PAGE).await?;
            for run in page.found {
                issued.extend(service_of(run.note.as_ref()));
                if reads_steps && run.next_step > 0 {
                    let journal = store.journal(scope, run.id).await?;
                    let notes = journal.steps.iter().map(|step| step.note.as_ref());
                    issued.extend(notes.filter_map(service_of));
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(issued),
            }
        }
    }
}
