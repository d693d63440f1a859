//! Which rules the renderer enforces: all of them, but in tests that switch one off to see that the
//! validator would notice.

/// Asked at each place where a rule is upheld.
///
/// Without the feature `switches` there is nothing in it and the answer is always yes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    #[cfg(feature = "switches")]
    off: Option<&'static str>,
}

impl Switches {
    /// All but one.
    #[cfg(feature = "switches")]
    pub(crate) fn without(rule: &'static str) -> Self {
        Self { off: Some(rule) }
    }

    /// Whether a rule, by its name in the sheet, is upheld.
    #[cfg(feature = "switches")]
    pub(crate) fn enforces(self, rule: &str) -> bool {
        self.off != Some(rule)
    }

    /// Whether a rule, by its name in the sheet, is upheld.
    #[cfg(not(feature = "switches"))]
    #[inline(always)]
    pub(crate) fn enforces(self, _rule: &str) -> bool {
        true
    }
}
