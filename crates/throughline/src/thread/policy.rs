//! Choices about what happens to history.

pub use throughline_store::Mode as Persistence;

/// Whether a stored history equals what a storing vendor would hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Parity {
    /// The history has everything that happened.
    #[default]
    None,
    /// Only whole calls are history, as with a service that stores the conversation: results that no
    /// model was sent are left out until they are sent, and of a call that was cut off neither the
    /// partial answer nor what was sent with it is kept.
    Service,
}

/// What the next run does with an interrupted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnInterrupt {
    /// The interrupted run is finished and published first.
    #[default]
    Resume,
    /// The finished part of the interrupted run is published, and its open calls are closed.
    Close,
    /// The new run is refused.
    Reject,
}

/// What new input does with calls that wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnOpenCalls {
    /// The calls are withdrawn, and the parked run is published, closed.
    #[default]
    Close,
    /// The new run is refused; the error names the calls.
    Reject,
}

/// What a run does when another run works on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnBusy {
    /// The new run is refused at once.
    #[default]
    Reject,
    /// The new run waits in the thread's line and begins after the runs that were accepted before
    /// it, in this and in other processes; it continues from their results. A resume waits too.
    Queue,
    /// The new run continues from the old head as a branch.
    Branch,
    /// The runs before it are cancelled, closed and published; then the new run begins, in its
    /// turn.
    Interrupt,
}

/// What to do when a service returns a conversation id for a thread that our store owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnServiceId {
    /// The run fails.
    #[default]
    Throw,
    /// A warning is logged, and the owner does not change.
    Warn,
    /// The thread is handed over to the service.
    Clear,
    /// A warning is logged, and the thread is handed over to the service.
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

/// What a run does whose client belongs to another upstream than the services that keep the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnOtherUpstream {
    /// The run is refused before the call; the error names the ways to go on.
    #[default]
    Refuse,
    /// The thread is handed over: its history is the record of everything that went through us, kept
    /// by our store, or by the other upstream if that always keeps histories. What the services have
    /// stays there, and [`ServiceClients::hand_over`](crate::agent::ServiceClients::hand_over) can read it back.
    HandOver,
}

/// What to do about a call that was dispatched and whose result is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnLost {
    /// The model is told that the outcome is unknown.
    #[default]
    Tell,
    /// The run parks until an operator reports the outcome.
    Park,
}

/// What happens to a run that has to wait for approvals or for results of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnPark {
    /// The run parks, and is resumed with the answers. Its history moves when it ends.
    #[default]
    Wait,
    /// The run ends. Its answer becomes a node that is marked open, and the answers begin the next
    /// run, see [`Agent::reply_on`](crate::Agent::reply_on).
    Publish,
}

/// Choices about what happens to history. Each run can override them.
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
    /// Whether unsent results are history.
    pub parity: Parity,
    /// What happens to interrupted runs.
    pub on_interrupt: OnInterrupt,
    /// What happens to calls that wait.
    pub on_open_calls: OnOpenCalls,
    /// What to do when the thread is busy.
    pub on_busy: OnBusy,
    /// What to do about an unexpected conversation id.
    pub on_service_id: OnServiceId,
    /// What to do when the history is kept by services of other upstreams.
    pub on_other_upstream: OnOtherUpstream,
    /// What to do about lost results.
    pub on_lost: OnLost,
    /// What happens to a run that has to wait.
    pub on_park: OnPark,
}
