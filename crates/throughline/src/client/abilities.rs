use throughline_model::Wire;

/// Whether a client's service stores conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum StoresHistory {
    /// It cannot store them.
    #[default]
    Never,
    /// Each request says whether to store.
    Optional,
    /// It always stores them.
    Always,
}

/// What a client can do. Declared by the client, and overridable by the application, because many
/// servers speak a vendor's format without having all of its features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The name of the service, for ids, errors and telemetry.
    pub upstream: String,
    /// The model that answers, if known.
    pub model: Option<String>,
    /// The vendor format that the client speaks, if any.
    pub wire: Option<Wire>,
    /// Whether the service stores conversations.
    pub stores_history: StoresHistory,
    /// Whether earlier calls and results can be sent as native items, and not only as text.
    pub native_tool_history: bool,
    /// Whether reasoning can be sent back to the model in later calls.
    pub reasoning_round_trip: bool,
    /// Whether one answer may contain several calls.
    pub parallel_calls: bool,
    /// Whether it sets the mark of a call with a complete answer, so that the call is published at
    /// once ([`PersistEachCall`](crate::client::PersistEachCall), or a layer of the application).
    pub persists_each_call: bool,
    /// The size of the context window in tokens, if known.
    pub window: Option<u64>,
}

impl Abilities {
    /// The abilities of a service that stores nothing and has all other features.
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
