//! Pins and undone compactions: what models are shown of a thread, in spite of its compaction.
//!
//! These are settings of the thread and not state of a node, because they express what a user wants
//! and not what was said.

use throughline_compact::ViewSettings;
use throughline_store::{At, NodeRef, Result, State};

use super::external_epoch;
use super::handle::{Position, Thread};
use super::owner::Owner;
use super::scoped_store::ScopedStore;

impl Thread {
    /// Shows models the full conversation again: the thread's compactions are undone from the next
    /// run on, on this thread and on its forks. Returns false if nothing is compacted.
    ///
    /// The record was never changed, so nothing has to be restored. The thread is compacted again
    /// when it has grown by [`Policy::regrowth`](crate::compact::Policy::regrowth); a budget
    /// applies at once, since the vendor would refuse a request that is too large.
    ///
    /// ```
    /// use throughline::compact::Policy;
    /// use throughline::{Agent, Demo, Thread, tool};
    ///
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Place { place: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tide = tool("tide", "When it is high.", |asked: Place| async move {
    ///     format!("At {} it is high at four.\n", asked.place).repeat(40)
    /// });
    /// let policy = Policy { threshold: 500, recent_calls: 1, ..Policy::default() };
    /// let agent = Agent::builder(Demo::new()).tool(tide).compaction(policy).build()?;
    /// let thread = Thread::new();
    /// let mut folded = 0;
    /// for _ in 0..4 {
    ///     let run = agent.run_on(&thread, r#"Call tide with {"place":"Sines"}"#);
    ///     folded = run.await?.compaction.map_or(0, |report| report.epoch);
    /// }
    /// assert!(folded > 0);
    ///
    /// assert!(thread.uncompact().await?);
    /// let report = agent.run_on(&thread, "How many messages?").await?.compaction.unwrap();
    /// assert_eq!(report.epoch, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn uncompact(&self) -> Result<bool> {
        let state = self.state_now().await?;
        let mut view_settings = self.shared.settings().view_settings;
        let external = external_epoch::stored(&state);
        let undone = view_settings.undo(match self.owner() {
            Owner::External { .. } => external.as_ref(),
            Owner::Local | Owner::Services(_) => state.compaction(),
        });
        self.store_view_settings(undone, view_settings).await
    }

    /// Always shows models a message in full, with its group: a call with its results. The message
    /// is named by its number, as in digests and in `expand`. Returns false if there is no such
    /// message, or if it is pinned already.
    ///
    /// If it is compacted already, it is shown in full from the next compaction on.
    ///
    /// ```
    /// use throughline::{Agent, Demo, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let thread = Thread::new();
    /// agent.run_on(&thread, "The tide is at four.").await?;
    ///
    /// assert!(thread.pin(1).await?);
    /// assert_eq!(thread.pinned(), [1]);
    /// assert!(!thread.pin(99).await?);
    /// assert!(thread.unpin(1).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pin(&self, number: u64) -> Result<bool> {
        let mut view_settings = self.shared.settings().view_settings;
        let pinned = view_settings.pin(self.history().iter().map(|one| &**one), number);
        self.store_view_settings(pinned, view_settings).await
    }

    /// Removes a pin, so that the message may be compacted; see [`Thread::pin`]. Returns false if
    /// it was not pinned.
    pub async fn unpin(&self, number: u64) -> Result<bool> {
        let mut view_settings = self.shared.settings().view_settings;
        let unpinned = view_settings.unpin(self.history().iter().map(|one| &**one), number);
        self.store_view_settings(unpinned, view_settings).await
    }

    /// The numbers of the pinned messages, as this handle last read them.
    pub fn pinned(&self) -> Vec<u64> {
        let view_settings = self.shared.settings().view_settings;
        view_settings.pinned(self.history().iter().map(|one| &**one))
    }

    /// The state where the next run begins.
    async fn state_now(&self) -> Result<State> {
        let at = match self.shared.place() {
            Position::New(seed) => return Ok(seed.state),
            Position::Head => At::Thread(self.id().clone()),
            Position::Node(node) => At::Node(NodeRef::Node(node)),
        };
        let ScopedStore { store, scope, .. } = &self.shared.home;
        Ok(store.open(scope, &at, 0).await?.state)
    }

    /// Stores changed view settings; returns whether there was a change.
    async fn store_view_settings(
        &self,
        changed: bool,
        view_settings: ViewSettings,
    ) -> Result<bool> {
        if !changed {
            return Ok(false);
        }
        let mut settings = self.shared.settings();
        settings.view_settings = view_settings;
        if !self.shared.change_seed(&settings) {
            self.shared.write_settings(settings).await?;
        }
        Ok(true)
    }
}
