//! Runs and what is journaled of them.

use throughline_model::json::RawJson;

use crate::{
    ApprovalId, CallRef, Entry, ItemNo, Millis, NodeId, RunId, RunState, ThreadId, Version,
};

/// When a run moves the history pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Once, at its end.
    #[default]
    PerRun,
    /// After each model call.
    PerCall,
}

impl Mode {
    /// The word in configurations and exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PerRun => "per_run",
            Self::PerCall => "per_call",
        }
    }
}

/// What a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// A turn of an agent.
    Turn,
    /// Items added by hand, or imported: no lease, no model call.
    Append,
}

/// The right to write to a run. Every write carries it; a higher epoch in the store means that
/// another process took the run over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// Counts its owners.
    pub epoch: u32,
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The thread it works on.
    pub thread: ThreadId,
    /// What it is.
    pub kind: RunKind,
    /// When it moves the head.
    pub mode: Mode,
    /// Where it stands.
    pub state: RunState,
    /// Whether it holds the thread's lease, and so moves the head.
    pub leased: bool,
    /// Counts its owners.
    pub epoch: u32,
    /// How often it was taken over from a worker that was lost. Going on with a parked run is no
    /// take-over.
    pub attempt: u32,
    /// The node that it started from.
    pub base: Option<NodeId>,
    /// The version of the thread that it expects.
    pub version: Version,
    /// The step that comes next.
    pub next_step: u32,
    /// The item that comes next.
    pub next_item: ItemNo,
    /// The event that comes next.
    pub next_event: u64,
    /// Its last published node.
    pub published: Option<NodeId>,
    /// Whether its end was asked for.
    pub cancelling: bool,
    /// Whether its answer was delivered, see [`Engine::note_delivered`](crate::Engine::note_delivered).
    pub delivered: bool,
    /// When it began.
    pub created: Millis,
    /// When it last wrote something.
    pub progress: Millis,
    /// For how long it was worked on: from each begin or claim to its last write, or to the last
    /// heartbeat of an owner that was lost. Time in which it is parked, or no process has it, does
    /// not count.
    pub worked: Millis,
    /// Its idempotency key.
    pub key: Option<String>,
    /// Why it ended as it did, an object; see [`crate::Publish::note`].
    pub note: Option<RawJson>,
}

/// What a lost result of a tool means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Effect {
    /// It changes nothing: it needs no intent and may be repeated.
    ReadOnly,
    /// It may be repeated with the same arguments.
    Idempotent,
    /// It may be repeated with the same key.
    Keyed,
    /// It can be asked whether it happened.
    Probe,
    /// It commits together with its result.
    Transactional,
    /// It is never run again. Tools that declare nothing have this effect.
    #[default]
    Once,
}

impl Effect {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 6] = [
        Self::ReadOnly,
        Self::Idempotent,
        Self::Keyed,
        Self::Probe,
        Self::Transactional,
        Self::Once,
    ];

    /// The word in configurations and exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Idempotent => "idempotent",
            Self::Keyed => "keyed",
            Self::Probe => "probe",
            Self::Transactional => "transactional",
            Self::Once => "once",
        }
    }

    /// The class with a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.as_str() == word)
    }

    /// The number under which it is stored.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The class with a number; what is not known is never repeated.
    pub fn of(code: u8) -> Self {
        Self::ALL
            .get(usize::from(code))
            .copied()
            .unwrap_or_default()
    }
}

/// Where a tool call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallState {
    /// It will be run.
    Planned,
    /// It was or will be dispatched: from here on it may have had its effect.
    Intent,
    /// Its result is stored.
    Done,
    /// It waits for an approval.
    Approval,
    /// It waits for the application, which runs it.
    Client,
    /// Another run took it over.
    Taken,
}

impl CallState {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 6] = [
        Self::Planned,
        Self::Intent,
        Self::Done,
        Self::Approval,
        Self::Client,
        Self::Taken,
    ];

    /// The word in listings and exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Intent => "intent",
            Self::Done => "done",
            Self::Approval => "approval",
            Self::Client => "client",
            Self::Taken => "taken",
        }
    }

    /// The number under which it is stored.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The state with a number.
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// One tool call in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Its place.
    pub at: CallRef,
    /// The value of its call id.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What a lost result means.
    pub effect: Effect,
    /// Where it stands.
    pub state: CallState,
    /// The key that the tool gets, the same however often the call is dispatched.
    pub key: String,
    /// The item that is kept for its result.
    pub result: ItemNo,
    /// The approval that it waits or waited for.
    pub approval: Option<ApprovalId>,
    /// The run that took it over.
    pub taken_by: Option<RunId>,
    /// Whether the tool asked for the end of the run with its result.
    pub ends: bool,
}

/// One step in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRecord {
    /// Its number, from 0.
    pub no: u32,
    /// Its first item; the one after its last one if it has none.
    pub first: ItemNo,
    /// How many items it has, places for results not counted.
    pub items: u32,
    /// The node that it published, in `per_call`.
    pub node: Option<NodeId>,
    /// What the layer above keeps with it (usage, service ids), an object.
    pub note: Option<RawJson>,
}

/// A model call that a remote service has accepted and has not answered yet.
///
/// It is journaled before the answer is awaited ([`Engine::remote_call`](crate::Engine::remote_call)),
/// so that another process can ask the service for the answer instead of making the call again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCall {
    /// The number of the step that the answer will become.
    pub step: u32,
    /// By what the service knows the call. The store does not look into it.
    pub handle: RawJson,
}

/// Everything that is journaled of a run, enough to go on with it in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The run.
    pub run: Run,
    /// What it was asked, as the layer above stored it.
    pub request: Option<RawJson>,
    /// How many of its items are input.
    pub inputs: u32,
    /// What was said in it, input first. Messages of the journal, whether published or not.
    pub entries: Vec<Entry>,
    /// Its steps.
    pub steps: Vec<StepRecord>,
    /// Its tool calls, by step and position.
    pub calls: Vec<Execution>,
    /// The model call that a remote service is working on. `None` once the step of the call is
    /// stored.
    pub remote: Option<RemoteCall>,
}

/// Which runs to list, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Only runs of this thread.
    pub thread: Option<ThreadId>,
    /// Only runs in these states; all if empty.
    pub states: Vec<RunState>,
}
