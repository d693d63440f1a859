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
    /* Latin */ [830, 87, 155, 509, 882, 271],
    // Words; their letters above two.
    /* West */ [668, 141, 0, 0, 0, 0],
    /* North */ [631, 325, 0, 0, 0, 0],
    /* East */ [793, 256, 0, 0, 0, 0],
    /* Vietnamese */ [470, 349, 0, 0, 0, 0],
    // Words; their letters.
    /* Cyrillic */ [569, 159, 0, 0, 0, 0],
    /* Greek */ [486, 303, 0, 0, 0, 0],
    /* Arabic */ [387, 251, 0, 0, 0, 0],
    /* Hebrew */ [509, 317, 0, 0, 0, 0],
    /* Devanagari */ [369, 259, 0, 0, 0, 0],
    /* Indic */ [408, 336, 0, 0, 0, 0],
    /* Thai */ [299, 376, 0, 0, 0, 0],
    /* Hangul */ [508, 498, 0, 0, 0, 0],
    /* Kana */ [328, 517, 0, 0, 0, 0],
    /* Han */ [283, 639, 0, 0, 0, 0],
    /* OtherScript */ [475, 294, 0, 0, 0, 0],
    // Groups of three; blanks before them.
    /* Digits */ [1_048, 918, 0, 0, 0, 0],
    // Characters.
    /* OpaqueLetters */ [806, 0, 0, 0, 0, 0],
    /* OpaqueDigits */ [474, 0, 0, 0, 0, 0],
    // Single blanks; several; tabs; line ends after a sign; other line ends; further line ends.
    /* Blanks */ [109, 935, 651, 326, 1_470, 50],
    // Before a letter; others; unlike ones in a row; more than two; like ones; more than two.
    /* Signs */ [438, 948, 1_235, 191, 893, 50],
    // Symbols; pictures.
    /* Symbols */ [832, 1_993, 0, 0, 0, 0],
];
