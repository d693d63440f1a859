//! Compacting a thread on request, without a model call.

use throughline_compact::{BudgetUnreachable, Planned, Policy, Report};
use throughline_store::{Append, At, Error, Mask, NewItem, NodeRef, Span};

use super::handle::{Position, Thread};
use super::owner::Owner;
use super::record_view::RecordView;
use super::scoped_store::ScopedStore;

/// Why a thread was not compacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactNowError {
    /// Another owner keeps the history, and decides what its models are shown.
    #[error("the history is kept by {} and not by our store", owner.kind())]
    KeptElsewhere {
        /// The owner.
        owner: Owner,
    },
    /// Calls at the head wait for their results, which must follow them.
    #[error("calls at the head wait for their results")]
    CallsWait,
    /// The handle continues from a node, and not from the head of its thread.
    #[error("a branch is compacted by its next run; name the thread to compact its head")]
    NotAtHead,
    /// The smallest view is larger than the budget of a strict policy.
    #[error(transparent)]
    Budget(#[from] BudgetUnreachable),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Thread {
    /// Compacts what models are shown of this thread now, whether or not a trigger of the policy
    /// fires. The record stays as it is; the next run begins with the compacted view.
    ///
    /// The view is part of the state of a node, so a node without a message is added; if there is
    /// nothing to compact, nothing is. `upstream` and `model` say whose tokens are counted; either
    /// may be empty.
    ///
    /// ```
    /// use throughline::compact::{Policy, Trigger};
    /// use throughline::{Agent, Demo, Thread, tool};
    ///
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Place { place: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tide = tool("tide", "When it is high.", |asked: Place| async move {
    ///     format!("At {} it is high at four.\n", asked.place).repeat(40)
    /// });
    /// let agent = Agent::builder(Demo::new()).tool(tide).build()?;
    /// let thread = Thread::new();
    /// for _ in 0..4 {
    ///     agent.run_on(&thread, r#"Call tide with {"place":"Sines"}"#).await?;
    /// }
    /// let said = thread.history().len();
    ///
    /// let policy = Policy { recent_calls: 1, ..Policy::default() };
    /// let report = thread.compact_now(&policy, "", "").await?;
    /// assert_eq!((report.trigger, report.epoch), (Some(Trigger::Asked), 1));
    /// assert!(report.tokens_after < report.tokens_before);
    /// assert_eq!(thread.history().len(), said);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn compact_now(
        &self,
        policy: &Policy,
        upstream: &str,
        model: &str,
    ) -> Result<Report, CompactNowError> {
        self.refresh().await?;
        match self.owner() {
            Owner::Local => {}
            owner @ (Owner::Services(_) | Owner::External { .. }) => {
                return Err(CompactNowError::KeptElsewhere { owner });
            }
        }
        match self.shared.place() {
            Position::Head => {}
            // Nothing was said yet.
            Position::New(_) => return Ok(Report::default()),
            Position::Node(_) => return Err(CompactNowError::NotAtHead),
        }
        let ScopedStore { store, scope, .. } = &self.shared.home;
        let at = At::Thread(self.id().clone());
        let opened = store.open(scope, &at, 0).await?;
        if let Some(run) = &opened.unsettled {
            return Err(CompactNowError::Store(Error::Busy {
                thread: self.id().clone(),
                run: run.id,
                state: run.state,
            }));
        }
        let Some(tip) = opened.tip else {
            return Ok(Report::default());
        };
        if tip.open || tip.unsent {
            return Err(CompactNowError::CallsWait);
        }
        let at = At::Node(NodeRef::Node(tip.node));
        let page = store.read(scope, &at, Span::Tail, usize::MAX).await?;
        let record = super::handle::messages(page.entries);
        let settings = opened.thread.settings.as_ref();
        let mut view = RecordView::of(policy.clone(), &record, &opened.state, settings);
        let call = view.call(upstream, model);
        let (epoch, report) = match view.history.plan_now(&call)? {
            Planned::Unchanged(report) => return Ok(report),
            Planned::Epoch(epoch, report) => (epoch, report),
        };
        view.history.install(epoch);
        let mut state = opened.state;
        state.set_compaction(view.to_stored());
        let append = Append {
            run: store.ids().run(),
            thread: self.id().clone(),
            // What was read is what is compacted.
            expected: Some(opened.thread.version),
            // A mask of nothing, which no reader shows: a state needs a node, and a node an item.
            items: NewItem::of(&[Mask::message(&[])]),
            state: Some(state),
            key: None,
        };
        store.append(scope, &append).await?;
        self.refresh().await?;
        Ok(report)
    }
}
