//! Fault points and planted mistakes of the loop, for tests; without the feature `trials` they are
//! nothing. `throughline_store::trials` says how a test steers them.

#[cfg(feature = "trials")]
pub(crate) use throughline_store::trials::{pass, planted};

/// Pass a point.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) const fn pass(_: &str) {}

/// Whether a mistake is the one that is planted.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) const fn planted(_: &str) -> bool {
    false
}
