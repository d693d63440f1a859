//! What the pieces of a text weigh.
//!
//! The weights were fitted by `cargo xtask units --fit`: least squares of the tokens that the
//! vocabulary o200k has for the texts in `tests/tokens`, none below zero, and each close to what
//! it was before unless the texts say otherwise.

use super::class::CLASSES;

/// How many kinds of pieces a class has at most.
pub(super) const PARTS: usize = 6;

/// In thousandths of a unit, by class in the order of their declaration.
#[rustfmt::skip]
pub(super) const WEIGHTS: [[u32; PARTS]; CLASSES] = [
    // Words; letters above six; letters above ten; single letters; capitals in a row; more than two of them.
    /* Latin */ [850, 80, 150, 580, 910, 290],
    // Words; their letters above two.
    /* West */ [770, 120, 0, 0, 0, 0],
    /* North */ [620, 300, 0, 0, 0, 0],
    /* East */ [790, 250, 0, 0, 0, 0],
    /* Vietnamese */ [460, 350, 0, 0, 0, 0],
    // Words; their letters.
    /* Cyrillic */ [590, 180, 0, 0, 0, 0],
    /* Greek */ [500, 310, 0, 0, 0, 0],
    /* Arabic */ [390, 260, 0, 0, 0, 0],
    /* Hebrew */ [510, 310, 0, 0, 0, 0],
    /* Devanagari */ [390, 280, 0, 0, 0, 0],
    /* Indic */ [410, 340, 0, 0, 0, 0],
    /* Thai */ [310, 360, 0, 0, 0, 0],
    /* Hangul */ [490, 450, 0, 0, 0, 0],
    /* Kana */ [300, 520, 0, 0, 0, 0],
    /* Han */ [290, 580, 0, 0, 0, 0],
    /* OtherScript */ [500, 390, 0, 0, 0, 0],
    // Groups of three; blanks before them.
    /* Digits */ [1_060, 900, 0, 0, 0, 0],
    // Characters.
    /* OpaqueLetters */ [730, 0, 0, 0, 0, 0],
    /* OpaqueDigits */ [510, 0, 0, 0, 0, 0],
    // Single blanks; several; tabs; line ends after a sign; other line ends; further line ends.
    /* Blanks */ [110, 900, 550, 310, 1_280, 50],
    // Before a letter; others; unlike ones in a row; more than two; like ones; more than two.
    /* Signs */ [500, 960, 1_210, 200, 940, 50],
    // Symbols; pictures.
    /* Symbols */ [910, 2_000, 0, 0, 0, 0],
];
