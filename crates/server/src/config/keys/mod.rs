//! Every key that a configuration may hold, once. Reading, the reference in `docs/server.md` and the
//! test that each key does something are made from this table.

mod table;

pub use table::KEYS;

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table it stands in.
    pub section: Section,
    /// Its name there; `*` stands for whatever a table holds that no version reads yet.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What holds without it, as it would be written; empty if there is nothing.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
    /// A value other than the default, as TOML, that changes something.
    pub sample: &'static str,
    /// How one sees that it changed.
    pub seen: &'static str,
    /// The feature that it belongs to, if this version does not have it.
    pub unbuilt: Option<&'static str>,
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// `[server]`
    Server,
    /// `[[upstream]]`
    Upstream,
    /// `[[agent]]`
    Agent,
    /// `[mcp.LABEL]`
    Mcp,
    /// `[history]`
    History,
    /// `[limits]`
    Limits,
    /// `[compaction]`
    Compaction,
    /// `[retention]`
    Retention,
    /// `[cors]`
    Cors,
    /// `[recall]`
    Recall,
}

impl Section {
    /// All tables.
    pub const ALL: [Self; 10] = [
        Self::Server,
        Self::Upstream,
        Self::Agent,
        Self::Mcp,
        Self::History,
        Self::Limits,
        Self::Compaction,
        Self::Retention,
        Self::Cors,
        Self::Recall,
    ];

    /// The name of the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Upstream => "upstream",
            Self::Agent => "agent",
            Self::Mcp => "mcp",
            Self::History => "history",
            Self::Limits => "limits",
            Self::Compaction => "compaction",
            Self::Retention => "retention",
            Self::Cors => "cors",
            Self::Recall => "recall",
        }
    }

    /// Whether there may be several, each with a name.
    pub const fn is_named(self) -> bool {
        matches!(self, Self::Upstream | Self::Agent | Self::Mcp)
    }
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A text.
    Text,
    /// A whole number between two.
    Number(u64, u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list of texts.
    List,
    /// A program and its arguments.
    Command,
    /// Names, each with a word.
    Map,
    /// Any value; it is not read.
    Anything,
}

impl Key {
    /// The variable of the environment that sets it. In a table that has a name, `NAME` stands for it.
    pub fn variable(&self) -> String {
        let section = self.section.name().to_uppercase();
        let name = self.name.replace('.', "_").to_uppercase();
        match self.section.is_named() {
            true => format!("THROUGHLINE_{section}_NAME_{name}"),
            false => format!("THROUGHLINE_{section}_{name}"),
        }
    }

    /// The key with its table.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section.name(), self.name)
    }

    /// The keys of a table.
    pub fn of(section: Section) -> impl Iterator<Item = &'static Self> {
        KEYS.iter().filter(move |key| key.section == section)
    }

    /// The key with a name in a table.
    pub fn find(section: Section, name: &str) -> Option<&'static Self> {
        Self::of(section).find(|key| key.name == name || key.name == "*")
    }
}

/// Variables that are set so often that they have a short name: variable, table, key.
pub const SHORT: &[(&str, Section, &str)] = &[
    ("THROUGHLINE_LISTEN", Section::Server, "listen"),
    ("THROUGHLINE_STORE", Section::Server, "store"),
    ("THROUGHLINE_LOG", Section::Server, "log"),
];
