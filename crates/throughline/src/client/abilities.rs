use throughline_model::Wire;

/// Whether a client's service keeps the conversation itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum StoresHistory {
    /// It never does.
    #[default]
    Never,
    /// It can be asked to, and be told not to.
    Optional,
    /// It always does.
    Always,
}

/// What a client can do. Declared by the client, and open to be overridden by the application,
/// for many servers speak a vendor's format without having all its abilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The name of the service, for ids, errors and telemetry.
    pub upstream: String,
    /// The model that answers, if it is known.
    pub model: Option<String>,
    /// The format it speaks, if it is a vendor's.
    pub wire: Option<Wire>,
    /// Whether the service keeps the conversation.
    pub stores_history: StoresHistory,
    /// Whether earlier calls and results can be shown as such, not only as text.
    pub native_tool_history: bool,
    /// Whether reasoning goes back to the model in later calls.
    pub reasoning_round_trip: bool,
    /// Whether one answer may hold several calls.
    pub parallel_calls: bool,
    /// Whether it sets the mark of a call that was answered whole, so that the call is published at
    /// once ([`PersistEachCall`](crate::client::PersistEachCall), or a layer of the application's own).
    pub persists_each_call: bool,
    /// The size of its window in tokens, if it is known.
    pub window: Option<u64>,
}

impl Abilities {
    /// A service that stores nothing and can do the rest.
    pub fn of(upstream: impl Into<String>) -> Self {
        Self {
            upstream: upstream.into(),
            model: None,
            wire: None,
            stores_history: StoresHistory::Never,
            native_tool_history: true,
            reasoning_round_trip: true,
            parallel_calls: true,
            persists_each_call: false,
            window: None,
        }
    }
}
