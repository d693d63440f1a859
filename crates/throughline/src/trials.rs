//! Fault points and planted mistakes of the agent loop, for tests. Without the feature `trials`
//! they are empty functions. `throughline_store::trials` says how tests control them.

#[cfg(feature = "trials")]
pub(crate) use throughline_store::trials::{pass, planted};

/// Passes a fault point.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) const fn pass(_: &str) {}

/// Whether a mistake is planted.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) const fn planted(_: &str) -> bool {
    false
}
