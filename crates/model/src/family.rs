use std::borrow::Cow;
use std::fmt;

use crate::HeapSize;

/// What kind of tool a call is for. Vendors add kinds monthly, so the set is open.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Family(Cow<'static, str>);

macro_rules! families {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        impl Family {
            $($(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($text));)*
        }
    };
}

families! {
    /// A function that the application offers.
    FUNCTION = "function";
    /// A tool that takes free text.
    CUSTOM = "custom";
    /// A tool of an MCP server.
    MCP = "mcp";
    /// Leave to run a tool of an MCP server.
    MCP_APPROVAL = "mcp-approval";
    /// Code run in a vendor's sandbox (OpenAI).
    CODE_INTERPRETER = "code-interpreter";
    /// Code run in a vendor's sandbox (Anthropic, Gemini).
    CODE_EXECUTION = "code-execution";
    /// A search of the web.
    WEB_SEARCH = "web-search";
    /// A search in files.
    FILE_SEARCH = "file-search";
    /// Making an image.
    IMAGE_GENERATION = "image-gen";
    /// Mouse, keyboard and screen.
    COMPUTER = "computer-use";
    /// Shell commands, a list at a time.
    SHELL = "function-shell";
    /// One shell command, the older form.
    LOCAL_SHELL = "local-shell";
    /// Changes to files as patches.
    APPLY_PATCH = "apply-patch";
    /// Looking for tools to load.
    TOOL_SEARCH = "tool-search";
    /// Looking into long-term memory.
    MEMORY_SEARCH = "memory-search";
    /// A program that calls tools.
    PROGRAM = "programmatic-tool-calling";
    /// Orders between agents.
    MULTI_AGENT = "multi-agent";
    /// A call to another agent by A2A.
    A2A = "a2a";
    /// A step of a workflow.
    WORKFLOW_ACTION = "workflow-action";
    /// A person's consent to use an account.
    OAUTH_CONSENT = "oauth-consent";
}

impl Family {
    /// A family by its name.
    pub fn named(name: &str) -> Self {
        Self(Cow::Owned(name.to_owned()))
    }

    /// A family by a name known at compile time.
    pub const fn of(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name of the family, as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HeapSize for Family {
    fn heap_size(&self) -> usize {
        match &self.0 {
            Cow::Borrowed(_) => 0,
            Cow::Owned(name) => name.heap_size(),
        }
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
