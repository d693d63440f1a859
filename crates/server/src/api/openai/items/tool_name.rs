//! Names of tools that clients declare.

/// The name of a tool of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolName {
    /// The namespace that it is in.
    pub namespace: Option<String>,
    /// Its name there.
    pub name: String,
    /// Whether it takes free text.
    pub custom: bool,
}

impl ToolName {
    /// The name under which a vendor without namespaces is offered the tool: both names in one, cut
    /// to what every vendor takes.
    pub fn offered(&self) -> String {
        const LONGEST: usize = 64;
        const HASH: usize = 8;
        let Some(namespace) = &self.namespace else {
            return self.name.clone();
        };
        let between = match namespace.ends_with('_') {
            true => "",
            false => "__",
        };
        let whole = format!("{namespace}{between}{}", self.name);
        if whole.len() <= LONGEST {
            return whole;
        }
        // Names are ASCII.
        let hash = blake3::hash(whole.as_bytes()).to_hex();
        let start: String = whole.chars().take(LONGEST - HASH - 1).collect();
        format!("{start}_{}", &hash[..HASH])
    }
}
