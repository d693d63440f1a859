//! Planted mistakes, for tests; without the feature `trials` there are none.
//!
//! This crate does not see the store, which has the list of them all. It asks the same variable,
//! `THROUGHLINE_PLANTED`, for the name of the one mistake that is made.

/// Whether a mistake is the one that is planted.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) const fn planted(_: &str) -> bool {
    false
}

/// Whether a mistake is the one that is planted.
#[cfg(feature = "trials")]
pub(crate) fn planted(name: &str) -> bool {
    static PLANTED: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("THROUGHLINE_PLANTED").ok());
    PLANTED.as_deref() == Some(name)
}
