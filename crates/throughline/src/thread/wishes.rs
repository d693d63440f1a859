//! What somebody wants a thread's models to be shown, whatever was folded.
//!
//! It is kept with the thread and not at a node: a node is something that was said, and nobody says
//! anything here.

use throughline_compact::ViewSettings;
use throughline_store::{At, NodeRef, Result, State};

use super::handle::{Position, Thread};
use super::home::ScopedStore;

impl Thread {
    /// Show models the whole conversation again: what was folded into digests is taken back from the
    /// next run on, on this thread and on its forks. False if nothing is folded.
    ///
    /// The record was never changed, so nothing has to be restored. It is folded again when there is
    /// more of it, as much more as [`Policy::regrowth`](crate::compact::Policy::regrowth) says; a
    /// budget holds at once, since a request that is too large helps nobody.
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
        let mut wishes = self.shared.settings().wishes;
        let undone = wishes.undo(state.compaction());
        self.wish(undone, wishes).await
    }

    /// Always show models a message in full, with all that belongs to it: a call with its results.
    /// It is named by its number, as digests and `expand` name it. False if there is no such message,
    /// or if it is pinned.
    ///
    /// What is folded already is shown in full from the next compaction on.
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
        let mut wishes = self.shared.settings().wishes;
        let pinned = wishes.pin(self.history().iter().map(|one| &**one), number);
        self.wish(pinned, wishes).await
    }

    /// No longer show a message in full, once it is old enough to be folded; see [`Thread::pin`].
    /// False if it was not pinned.
    pub async fn unpin(&self, number: u64) -> Result<bool> {
        let mut wishes = self.shared.settings().wishes;
        let unpinned = wishes.unpin(self.history().iter().map(|one| &**one), number);
        self.wish(unpinned, wishes).await
    }

    /// The numbers of the messages that are pinned, as this handle last saw them.
    pub fn pinned(&self) -> Vec<u64> {
        let wishes = self.shared.settings().wishes;
        wishes.pinned(self.history().iter().map(|one| &**one))
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

    /// Keep wishes that have changed; whether they have.
    async fn wish(&self, changed: bool, wishes: ViewSettings) -> Result<bool> {
        if !changed {
            return Ok(false);
        }
        let mut settings = self.shared.settings();
        settings.wishes = wishes;
        if !self.shared.change_seed(&settings) {
            self.shared.write_settings(settings).await?;
        }
        Ok(true)
    }
}
