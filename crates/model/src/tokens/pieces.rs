//! The pieces of a text by class, and what they come to.

use super::class::{CLASSES, Class};
use super::mix::Mix;
use super::text;
use super::weights::{PARTS, WEIGHTS};

/// Pieces are counted in shares of this many, because words may be of two languages in part.
pub(super) const ONE: u64 = 64;

/// What a count of a class counts; `weights.rs` has them in this order.
pub(super) mod part {
    pub(crate) const WORDS: usize = 0;
    pub(crate) const LETTERS: usize = 1;

    pub(crate) const OVER_SIX: usize = 1;
    pub(crate) const OVER_TEN: usize = 2;
    pub(crate) const SINGLE: usize = 3;
    pub(crate) const CAPITALS: usize = 4;
    pub(crate) const MORE_CAPITALS: usize = 5;

    pub(crate) const TRIPLES: usize = 0;
    pub(crate) const BEFORE: usize = 1;

    pub(crate) const CHARACTERS: usize = 0;

    pub(crate) const BLANK: usize = 0;
    pub(crate) const SEVERAL: usize = 1;
    pub(crate) const TABS: usize = 2;
    pub(crate) const LINE_AFTER_SIGN: usize = 3;
    pub(crate) const LINE: usize = 4;
    pub(crate) const MORE_LINES: usize = 5;

    pub(crate) const OPENER: usize = 0;
    pub(crate) const SIGN: usize = 1;
    pub(crate) const MIXED: usize = 2;
    pub(crate) const MORE_MIXED: usize = 3;
    pub(crate) const REPEATED: usize = 4;
    pub(crate) const MORE_REPEATED: usize = 5;

    pub(crate) const SYMBOLS: usize = 0;
    pub(crate) const EMOJI: usize = 1;
}

/// How many pieces of each kind a text has.
///
/// Programs that fit the weights read this; everything else takes [`text_units`](super::text_units)
/// or a [`Mix`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    shares: [[u64; PARTS]; CLASSES],
}

impl Default for Pieces {
    fn default() -> Self {
        Self {
            shares: [[0; PARTS]; CLASSES],
        }
    }
}

impl Pieces {
    /// The pieces of a text.
    pub fn of(text: &str) -> Self {
        text::pieces(text)
    }

    /// How many there are of each kind: the class, which kind of the class, how many, and the
    /// weight of each in units. Kinds that weigh nothing are left out.
    pub fn counts(&self) -> impl Iterator<Item = (Class, usize, f64, f64)> + '_ {
        Class::ALL.into_iter().flat_map(move |class| {
            let shares = self.shares[class.index()].into_iter().enumerate();
            shares.filter_map(move |(part, shares)| {
                let weight = WEIGHTS[class.index()][part];
                let count = shares as f64 / ONE as f64;
                (weight > 0).then(|| (class, part, count, f64::from(weight) / 1_000.0))
            })
        })
    }

    pub(super) fn units(&self) -> u32 {
        let all = self.weighed().into_iter().fold(0, u64::saturating_add);
        u32::try_from(all.div_ceil(ONE * 1_000)).unwrap_or(u32::MAX)
    }

    pub(super) fn mix(&self) -> Mix {
        Mix::new(self.weighed().map(|weighed| weighed / ONE))
    }

    pub(super) fn add(&mut self, class: Class, part: usize, count: u64) {
        self.add_shares(class, part, count * ONE);
    }

    pub(super) fn add_shares(&mut self, class: Class, part: usize, shares: u64) {
        self.shares[class.index()][part] += shares;
    }

    /// In thousandths of a unit, times [`ONE`].
    fn weighed(&self) -> [u64; CLASSES] {
        std::array::from_fn(|class| {
            let parts = self.shares[class].iter().zip(&WEIGHTS[class]);
            parts
                .map(|(shares, weight)| shares.saturating_mul(u64::from(*weight)))
                .fold(0, u64::saturating_add)
        })
    }
}
