//! Planted mistakes of the server, for tests; without the feature `trials` there are none.
//! `throughline_store::trials` says how a test steers them.

#[cfg(feature = "trials")]
pub(crate) use throughline_store::trials::planted;

/// Whether a mistake is the one that is planted.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) const fn planted(_: &str) -> bool {
    false
}
