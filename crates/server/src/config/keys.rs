//! Every key that a configuration may hold, once. Reading, the reference in `docs/server.md` and the
//! test that each key does something are made from this table.

mod table;

pub use table::KEYS;

/// All sections, in the order of the reference.
pub const SECTIONS: [&str; 12] = [
    "server",
    "upstream",
    "agent",
    "mcp",
    "webhook",
    "history",
    "limits",
    "compaction",
    "record",
    "retention",
    "cors",
    "recall",
];

/// Variables that are set so often that they have a short name: variable, section, key.
pub const SHORT: &[(&str, &str, &str)] = &[
    ("THROUGHLINE_LISTEN", "server", "listen"),
    ("THROUGHLINE_STORE", "server", "store"),
    ("THROUGHLINE_LOG", "server", "log"),
];

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The section that it belongs to, one of [`SECTIONS`].
    pub section: &'static str,
    /// Its name there; `*` stands for all keys of a section that no version reads yet.
    pub name: &'static str,
    /// What its values are.
    pub value: ValueType,
    /// The default, as it would be written, or a description of it, which has backquotes; empty if
    /// there is none.
    pub default: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The feature that it belongs to, if this version does not have it.
    pub not_built: Option<&'static str>,
}

/// What the values of a key are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A text.
    Text,
    /// A whole number between two.
    Number(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    List,
    /// A program and its arguments.
    Command,
    /// Names, each with a word.
    Map,
    /// Any value; it is not read.
    Unread,
}

impl Key {
    /// The variable of the environment that sets it. In a section whose tables have names, `NAME`
    /// stands for the name.
    pub fn variable(&self) -> String {
        let section = self.section.to_uppercase();
        let name = self.name.replace('.', "_").to_uppercase();
        match is_named(self.section) {
            true => format!("THROUGHLINE_{section}_NAME_{name}"),
            false => format!("THROUGHLINE_{section}_{name}"),
        }
    }

    /// The key with its section.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The keys of a section.
    pub fn of(section: &str) -> impl Iterator<Item = &'static Self> {
        KEYS.iter().filter(move |key| key.section == section)
    }

    pub(super) fn find(section: &str, name: &str) -> Option<&'static Self> {
        Self::of(section).find(|key| key.name == name || key.name == "*")
    }

    /// The feature that a value belongs to, if this version does not have it.
    pub(super) fn not_built_value(&self, value: &str) -> Option<&'static str> {
        let found = table::NOT_BUILT
            .iter()
            .find(|(key, word, _)| *key == self.path() && *word == value);
        found.map(|(.., feature)| *feature)
    }
}

/// Whether a section may have several tables, each with a name.
pub fn is_named(section: &str) -> bool {
    matches!(section, "upstream" | "agent" | "mcp" | "webhook")
}
