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
/* Latin */ [819, 83, 152, 557, 903, 281],
    // Words; their letters above two.
    /* West */ [713, 128, 0, 0, 0, 0],
    /* North */ [632, 320, 0, 0, 0, 0],
    /* East */ [791, 246, 0, 0, 0, 0],
    /* Vietnamese */ [464, 348, 0, 0, 0, 0],
    // Words; their letters.
    /* Cyrillic */ [577, 167, 0, 0, 0, 0],
    /* Greek */ [495, 306, 0, 0, 0, 0],
    /* Arabic */ [386, 250, 0, 0, 0, 0],
    /* Hebrew */ [507, 308, 0, 0, 0, 0],
    /* Devanagari */ [385, 273, 0, 0, 0, 0],
    /* Indic */ [408, 334, 0, 0, 0, 0],
    /* Thai */ [310, 354, 0, 0, 0, 0],
    /* Hangul */ [498, 471, 0, 0, 0, 0],
    /* Kana */ [299, 504, 0, 0, 0, 0],
    /* Han */ [288, 548, 0, 0, 0, 0],
    /* OtherScript */ [478, 301, 0, 0, 0, 0],
    // Groups of three; blanks before them.
    /* Digits */ [1_055, 910, 0, 0, 0, 0],
    // Characters.
    /* OpaqueLetters */ [799, 0, 0, 0, 0, 0],
    /* OpaqueDigits */ [477, 0, 0, 0, 0, 0],
    // Single blanks; several; tabs; line ends after a sign; other line ends; further line ends.
    /* Blanks */ [111, 919, 600, 317, 1_520, 50],
    // Before a letter; others; unlike ones in a row; more than two; like ones; more than two.
    /* Signs */ [472, 944, 1_238, 195, 915, 50],
    // Symbols; pictures.
    /* Symbols */ [858, 1_988, 0, 0, 0, 0],
];
