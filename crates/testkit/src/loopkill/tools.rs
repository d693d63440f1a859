//! The tools that the scripted model calls.

use throughline_store::Effect;

/// A tool of the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolKind {
    /// Its name.
    pub name: &'static str,
    /// Its effect class.
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

/// One tool of each class; `call` and `note` declare none. `note` queues a message for the model,
/// `sign` needs approval, `poison` kills its process.
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

/// The effect class of a tool.
pub fn effect(name: &str) -> Effect {
    let found = TOOLS.iter().find(|tool| tool.name == name);
    found.map_or(Effect::Once, |tool| tool.effect)
}
