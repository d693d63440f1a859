use std::sync::Arc;

use throughline_model::ToolDef;

use super::{Approval, Tool, ToolSpec};

/// Why a set of tools cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// Two tools have the same name.
    #[error("two tools are called {name:?}; rename one or leave it out")]
    Clash {
        /// The name.
        name: String,
    },
    /// Vendors refuse the name.
    #[error("{name:?} cannot be the name of a tool; use 1 to 64 letters, digits, _ and -")]
    BadName {
        /// The name.
        name: String,
    },
    /// There is no tool with this name.
    #[error("there is no tool called {name:?}")]
    Unknown {
        /// The name.
        name: String,
    },
}

/// The tools of an agent or of a run, in the order in which they are offered. Names are unique.
#[derive(Clone, Default)]
pub struct ToolSet(Vec<Entry>);

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    /// Whether approval is required beyond what the tool's spec says.
    guarded: bool,
}

impl ToolSet {
    /// Makes a set; fails if two tools have the same name.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, SetError> {
        let mut set = Self::default();
        for tool in tools {
            let name = &tool.spec().name;
            check_name(name)?;
            if set.find(name).is_some() {
                return Err(SetError::Clash { name: name.clone() });
            }
            set.push(tool);
        }
        Ok(set)
    }

    fn push(&mut self, tool: Arc<dyn Tool>) {
        self.0.push(Entry {
            tool,
            guarded: false,
        });
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|entry| entry.tool.spec().name == name)
    }

    /// The tool with a name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.place(name).map(|place| &self.0[place].tool)
    }

    /// Whether a call of a tool needs approval.
    pub fn needs_approval(&self, spec: &ToolSpec) -> bool {
        spec.approval == Approval::Always
            || self
                .place(&spec.name)
                .is_some_and(|place| self.0[place].guarded)
    }

    /// Merges these tools over others: a tool of this set replaces the one with the same name, and
    /// the remaining tools of this set follow.
    #[must_use]
    pub fn over(mut self, others: &Self) -> Self {
        let mut merged: Vec<Entry> = Vec::with_capacity(self.0.len() + others.0.len());
        for entry in &others.0 {
            match self.place(&entry.tool.spec().name) {
                Some(place) => merged.push(self.0.remove(place)),
                None => merged.push(entry.clone()),
            }
        }
        merged.append(&mut self.0);
        Self(merged)
    }

    /// Adds tools, all or none. Adding the same tool again is allowed.
    pub fn add(&mut self, tools: Vec<Arc<dyn Tool>>) -> Result<(), SetError> {
        let mut grown = self.clone();
        for tool in tools {
            let name = &tool.spec().name;
            check_name(name)?;
            match grown.find(name) {
                Some(known) if Arc::ptr_eq(known, &tool) => {}
                Some(_) => return Err(SetError::Clash { name: name.clone() }),
                None => grown.push(tool),
            }
        }
        *self = grown;
        Ok(())
    }

    /// Replaces the tool with the same name.
    pub fn replace(&mut self, tool: Arc<dyn Tool>) -> Result<(), SetError> {
        let place = self.known(&tool.spec().name)?;
        self.0[place].tool = tool;
        Ok(())
    }

    /// Removes a tool.
    pub fn remove(&mut self, name: &str) -> Result<(), SetError> {
        let place = self.known(name)?;
        self.0.remove(place);
        Ok(())
    }

    /// Requires approval before a tool runs.
    pub fn guard(&mut self, name: &str) -> Result<(), SetError> {
        let place = self.known(name)?;
        self.0[place].guarded = true;
        Ok(())
    }

    fn known(&self, name: &str) -> Result<usize, SetError> {
        self.place(name).ok_or_else(|| SetError::Unknown {
            name: name.to_owned(),
        })
    }

    /// The specs, in order.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.0.iter().map(|entry| entry.tool.spec())
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<String> {
        self.specs().map(|spec| spec.name.clone()).collect()
    }

    /// The tools in the form in which models are offered them.
    pub fn defs(&self) -> Vec<ToolDef> {
        let offered = self.specs().filter(|spec| spec.offered);
        offered.map(ToolSpec::to_def).collect()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn check_name(name: &str) -> Result<(), SetError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    Err(SetError::BadName {
        name: name.to_owned(),
    })
}
