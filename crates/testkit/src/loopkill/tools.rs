//! The tools that the scripted model calls.

use throughline_store::Effect;

/// What a tool of the campaign is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolKind {
    /// Its name.
    pub name: &'static str,
    /// What a lost result means.
    pub effect: Effect,
}

impl ToolKind {
    /// Whether it is called in plain rounds.
    pub fn is_plain(&self) -> bool {
        !matches!(self.name, "sign" | "poison")
    }
}

const fn tool(name: &'static str, effect: Effect) -> ToolKind {
    ToolKind { name, effect }
}

/// One of each class; `call` and `note` are not declared to be anything. `note` leaves a message
/// for the model, `sign` must be approved, `poison` ends its process.
pub const TOOLS: [ToolKind; 9] = [
    tool("look", Effect::ReadOnly),
    tool("put", Effect::Idempotent),
    tool("pay", Effect::Keyed),
    tool("ship", Effect::Probe),
    tool("book", Effect::Transactional),
    tool("call", Effect::Once),
    tool("note", Effect::Once),
    tool("sign", Effect::Once),
    tool("poison", Effect::Keyed),
];

/// What a lost result of a tool means.
pub fn effect(name: &str) -> Effect {
    let found = TOOLS.iter().find(|tool| tool.name == name);
    found.map_or(Effect::Once, |tool| tool.effect)
}
