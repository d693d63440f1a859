//! Configuration values as they were written, with their origins, before they are interpreted.

use std::collections::BTreeMap;

use super::error::{ConfigError, Origin};
use super::keys::{Key, Section};
use crate::suggest::suggest;

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Raw {
    Text(String),
    Number(String),
    Bool(bool),
    List(Vec<Raw>),
    Map(Vec<(String, Raw)>),
    /// A date or something else that no key takes.
    Other(&'static str),
    /// From the environment or the command line, where everything is text.
    Said(String),
}

impl Raw {
    /// What it is, for complaints.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Said(_) => "a text",
            Self::Number(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
            Self::Other(what) => what,
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) value: Raw,
    pub(super) origin: Origin,
}

/// One table: its keys, known ones only.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) section: Section,
    /// Its name, if tables of this sort have one and it is known yet.
    pub(super) name: Option<String>,
    pub(super) origin: Origin,
    pub(super) values: BTreeMap<&'static str, Located>,
}

impl Table {
    pub(super) fn new(section: Section, name: Option<String>, origin: Origin) -> Self {
        Self {
            section,
            name,
            origin,
            values: BTreeMap::new(),
        }
    }

    /// The key with its table, for complaints.
    pub(super) fn path(&self, key: &str) -> String {
        let section = self.section.name();
        match &self.name {
            Some(name) => format!("{section}.{name}.{key}"),
            None => format!("{section}.{key}"),
        }
    }

    /// Take a value in, in the place of one that may be there. Unknown keys and those that are not
    /// built are refused.
    pub(super) fn set(&mut self, key: &str, located: Located) -> Result<(), ConfigError> {
        let Some(known) = Key::find(self.section, key) else {
            let names = Key::of(self.section).map(|key| key.name);
            let near = suggest(key, names);
            return Err(ConfigError::Unknown {
                origin: located.origin,
                key: self.path(key),
                near: near.into_iter().map(str::to_owned).collect(),
            });
        };
        if let Some(feature) = known.unbuilt {
            return Err(ConfigError::NotBuilt {
                origin: located.origin,
                key: self.path(key),
                feature,
            });
        }
        self.values.insert(known.name, located);
        Ok(())
    }
}

/// Everything that was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Tables of which there is one.
    pub(super) single: BTreeMap<Section, Table>,
    /// Tables of which there may be several, in order.
    pub(super) upstreams: Vec<Table>,
    pub(super) agents: Vec<Table>,
    pub(super) mcp: Vec<Table>,
}

impl Tree {
    /// The table of which there is one.
    pub(super) fn single(&mut self, section: Section) -> &mut Table {
        self.single
            .entry(section)
            .or_insert_with(|| Table::new(section, None, Origin::Default))
    }

    /// The tables of which there may be several.
    pub(super) fn named(&mut self, section: Section) -> Option<&mut Vec<Table>> {
        match section {
            Section::Upstream => Some(&mut self.upstreams),
            Section::Agent => Some(&mut self.agents),
            Section::Mcp => Some(&mut self.mcp),
            Section::Server
            | Section::History
            | Section::Limits
            | Section::Compaction
            | Section::Retention
            | Section::Cors
            | Section::Recall => None,
        }
    }
}
