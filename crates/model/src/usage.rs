use crate::Extra;
use crate::json::RawJson;

/// Tokens that a vendor reports. Absent is not zero: nothing is estimated into reported figures.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: Option<u64>,
    /// Tokens made, reasoning included.
    pub output: Option<u64>,
    /// Their sum, if the vendor states one.
    pub total: Option<u64>,
    /// Of the input: read from the vendor's prompt cache.
    pub cache_read: Option<u64>,
    /// Of the input: written to the vendor's prompt cache.
    pub cache_write: Option<u64>,
    /// Of the output: reasoning.
    pub reasoning: Option<u64>,
    /// The vendor's own object.
    pub vendor: Option<RawJson>,
    /// Unknown members of the stored form.
    pub extra: Extra,
}
