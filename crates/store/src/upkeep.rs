//! Looking after a store: what it promises, whether it is whole.

use crate::{DamageSite, ItemRef, Position};

/// How far something long has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is done.
    pub done: u64,
    /// Of how much; 0 if unknown.
    pub total: u64,
    /// What is counted.
    pub unit: &'static str,
}

/// Who is told how far something has come.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Nothing: it is gone with the process.
    Memory,
    /// A crash of the process, perhaps not one of the machine.
    Relaxed,
    /// Loss of power. Events of a run that is going on only survive the process, see
    /// [`Engine::flush`](crate::Engine::flush).
    Durable,
}

impl Durability {
    /// The word in banners and headers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Relaxed => "relaxed",
            Self::Durable => "durable",
        }
    }
}

/// What a store promises, and the settings that make it so, each read back from the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The engine's name.
    pub engine: &'static str,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// The version of the schema.
    pub schema: u32,
    /// Settings as they are in effect.
    pub settings: Vec<Setting>,
}

/// One setting of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its value in effect.
    pub value: String,
    /// The value that is needed, if there is one.
    pub wanted: Option<&'static str>,
}

impl Setting {
    /// Whether it is as it must be.
    pub fn is_right(&self) -> bool {
        self.wanted.is_none_or(|wanted| wanted == self.value)
    }
}

/// Something that is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The tenant, if it is known.
    pub tenant: Option<String>,
    /// The thread, if it is known.
    pub thread: Option<String>,
    /// The position on the branch, if it is known; for a node that of its first item.
    pub position: Option<Position>,
    /// The item, if it is one.
    pub item: Option<ItemRef>,
    /// What is damaged: an item, a node, a row, a page.
    pub place: String,
    /// How.
    pub detail: String,
}

impl Damage {
    /// What is known of damage that was found in a tenant.
    pub(crate) fn new(tenant: Option<String>, site: &DamageSite, detail: String) -> Self {
        Self {
            tenant,
            thread: site.thread.as_ref().map(ToString::to_string),
            position: site.position,
            item: site.item,
            place: site.subject(),
            detail,
        }
    }
}

/// What a check of the whole store found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Checked {
    /// Threads looked at.
    pub threads: u64,
    /// Nodes looked at.
    pub nodes: u64,
    /// Items looked at.
    pub items: u64,
    /// Bodies that were removed on purpose.
    pub redacted: u64,
    /// What is wrong.
    pub damage: Vec<Damage>,
}

/// What was swept away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Purged {
    /// Threads that are gone for good.
    pub threads: u64,
    /// Items that are gone for good.
    pub items: u64,
    /// Whether there is more to sweep.
    pub more: bool,
}
