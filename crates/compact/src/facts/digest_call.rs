//! A call that is to be digested, and digests that an application supplies.

use throughline_model::{ToolCall, ToolResult};

use crate::category::Category;

/// A call of a group that is to be digested, with what became of it.
#[derive(Clone, Copy, Debug)]
pub struct DigestCall<'a> {
    /// The number of the message that has its result, or else the call.
    pub seq: u64,
    /// The call that is digested.
    pub call: &'a ToolCall,
    /// Its result, if there is one.
    pub result: Option<&'a ToolResult>,
    /// What kind of thing the tool does.
    pub category: Category,
}

/// A digest of the caller's own for some tools.
///
/// It must be a pure function: the same call gives the same line on every machine.
pub trait Digest: Send + Sync {
    /// The line for a call, without brackets and number; with `None` the built-in digests write it.
    fn line(&self, called: &DigestCall<'_>) -> Option<String>;
}
