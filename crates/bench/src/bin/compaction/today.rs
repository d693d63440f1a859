//! The figures at 32k before compaction was put under pressure, measured by this program with the
//! code of that time.

/// The figures of a set of sessions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Today {
    /// Edits whose old text the view did not show.
    pub(crate) missed_edits: usize,
    /// Needs from results that were kept, as a share.
    pub(crate) needs: f64,
    /// Bytes that a view has in common with the one before, as a share.
    pub(crate) hit: f64,
    /// Tokens of all views.
    pub(crate) tokens: u64,
    /// What they cost, in tokens that were not read from a cache.
    pub(crate) cost: f64,
}

/// The recorded sessions.
pub(crate) const RECORDED: Today = Today {
    missed_edits: 42,
    // 108 of 112, not rounded up.
    needs: 0.9642,
    hit: 0.9633,
    tokens: 18_803_344,
    cost: 2_713_621.0,
};

/// The generated sessions.
pub(crate) const GENERATED: Today = Today {
    missed_edits: 109,
    needs: 0.911,
    hit: 0.9603,
    tokens: 34_978_893,
    cost: 5_156_273.0,
};
