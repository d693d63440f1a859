//! What is to become of history in the cases where one can choose.

pub use throughline_store::Mode as Persistence;

/// Whether a stored history equals what a storing vendor would hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Parity {
    /// Everything that happened is history.
    #[default]
    None,
    /// Results that no model was shown are left out of the history until they are sent.
    Service,
}

/// What the next run does with one that died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnInterrupt {
    /// It is finished and published first.
    #[default]
    Resume,
    /// Its finished part is published, what is open in it is closed.
    Close,
    /// The new run is refused.
    Reject,
}

/// What new input does with calls that wait for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnOpenCalls {
    /// They are withdrawn, and the parked run is published closed.
    #[default]
    Close,
    /// The new run is refused and names them.
    Reject,
}

/// What a run does when another works on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnBusy {
    /// It is refused at once.
    #[default]
    Reject,
    /// It waits in the thread's line and begins in its turn, after the runs that were accepted before
    /// it, in whichever process; it sees their turns. A resume waits too.
    Queue,
    /// It goes on from the old head as a branch of its own.
    Branch,
    /// The run at work is cancelled, closed and published; then this one begins, in its turn.
    Interrupt,
}

/// What to do when a service says that it keeps a conversation which is ours to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnServiceId {
    /// The run fails.
    #[default]
    Throw,
    /// It is logged, and history stays ours.
    Warn,
    /// The thread is handed over to the service.
    Clear,
    /// It is logged, and the thread is handed over to the service.
    WarnAndClear,
}

impl OnServiceId {
    pub(crate) fn warns(self) -> bool {
        matches!(self, Self::Warn | Self::WarnAndClear)
    }

    pub(crate) fn clears(self) -> bool {
        matches!(self, Self::Clear | Self::WarnAndClear)
    }
}

/// What to do about a call that was dispatched once and whose result is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnLost {
    /// The model is told that the outcome is unknown.
    #[default]
    Tell,
    /// The run parks until somebody says what came of it.
    Park,
}

/// What becomes of a run that has to wait for somebody outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnPark {
    /// It waits, and is gone on with once the answers are there. Its history moves when it ends.
    #[default]
    Wait,
    /// It ends there. What it said becomes a node marked open, and the answers begin the next run,
    /// see [`Agent::reply_on`](crate::Agent::reply_on).
    Publish,
}

/// What is to become of history where one can choose. Each run may choose otherwise.
///
/// ```
/// use throughline::thread::{HistoryPolicy, OnBusy, OnInterrupt, Persistence};
/// use throughline::{Agent, Demo};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(Demo::new())
///     .history(HistoryPolicy {
///         persistence: Persistence::PerCall,
///         on_interrupt: OnInterrupt::Close,
///         on_busy: OnBusy::Queue,
///         ..HistoryPolicy::default()
///     })
///     .build()?;
/// # drop(agent);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct HistoryPolicy {
    /// When the history moves.
    pub persistence: Persistence,
    /// Whether results that were never sent are history.
    pub parity: Parity,
    /// What becomes of a run that died.
    pub on_interrupt: OnInterrupt,
    /// What becomes of calls that wait.
    pub on_open_calls: OnOpenCalls,
    /// What to do when the thread is busy.
    pub on_busy: OnBusy,
    /// What to do about a service that keeps history unasked.
    pub on_service_id: OnServiceId,
    /// What to do about lost results.
    pub on_lost: OnLost,
    /// What becomes of a run that has to wait.
    pub on_park: OnPark,
}
