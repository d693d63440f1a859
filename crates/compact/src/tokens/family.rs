//! How many tokens the vocabularies of vendors have for a unit, before anything was billed.

use throughline_model::tokens::{Class, Mix};

/// Models that share a vocabulary, or have ones that cut texts alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Models of OpenAI, and all that are not known: units are tokens of o200k.
    OpenAi,
    /// Claude.
    Anthropic,
    /// Gemini and Gemma.
    Gemini,
    /// Llama.
    Llama,
    /// The models of Mistral.
    Mistral,
}

/// Words in the names of models, and their families.
const NAMES: [(&str, Family); 13] = [
    ("claude", Family::Anthropic),
    ("anthropic", Family::Anthropic),
    ("gemini", Family::Gemini),
    ("gemma", Family::Gemini),
    ("llama", Family::Llama),
    ("mistral", Family::Mistral),
    ("mixtral", Family::Mistral),
    ("codestral", Family::Mistral),
    ("devstral", Family::Mistral),
    ("ministral", Family::Mistral),
    ("magistral", Family::Mistral),
    ("pixtral", Family::Mistral),
    ("voxtral", Family::Mistral),
];

/// Thousandths of a token for each unit, by class in the order of their declaration: Anthropic,
/// Gemini, Llama, Mistral. Fitted by `cargo xtask units --fit` to the published vocabularies.
#[rustfmt::skip]
const FACTORS: [[u32; 4]; Class::ALL.len()] = [
    /* Latin */ [990, 1_070, 920, 1_000],
    /* West */ [1_370, 950, 1_160, 1_080],
    /* North */ [1_480, 1_070, 1_350, 1_170],
    /* East */ [1_480, 920, 1_050, 1_040],
    /* Vietnamese */ [2_350, 910, 930, 970],
    /* Cyrillic */ [1_960, 950, 1_140, 1_130],
    /* Greek */ [3_170, 1_070, 1_040, 1_050],
    /* Arabic */ [3_070, 1_050, 1_170, 940],
    /* Hebrew */ [2_300, 1_110, 2_550, 1_150],
    /* Devanagari */ [3_440, 1_110, 1_510, 1_170],
    /* Indic */ [4_770, 1_330, 3_440, 1_230],
    /* Thai */ [4_480, 950, 1_200, 1_300],
    /* Hangul */ [1_970, 1_180, 1_100, 1_070],
    /* Kana */ [1_570, 570, 940, 890],
    /* Han */ [1_190, 840, 1_010, 1_290],
    /* OtherScript */ [1_570, 1_220, 1_510, 1_160],
    /* Digits */ [740, 1_710, 980, 1_850],
    /* OpaqueLetters */ [1_020, 870, 1_060, 1_030],
    /* OpaqueDigits */ [1_090, 2_070, 950, 1_940],
    /* Blanks */ [1_600, 1_340, 1_230, 1_190],
    /* Signs */ [1_110, 1_150, 970, 960],
    /* Symbols */ [1_110, 1_150, 970, 960],
];

/// What conversations with tools are made of where nothing is known: English and code, in percent.
const USUAL: [(Class, f64); 4] = [
    (Class::Latin, 58.0),
    (Class::Digits, 7.0),
    (Class::Blanks, 14.0),
    (Class::Signs, 21.0),
];

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Gemini,
        Self::Llama,
        Self::Mistral,
    ];

    /// The family of a model, by its name; one that is not known counts as OpenAI's do.
    pub fn of_model(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let found = NAMES.iter().find(|(word, _)| name.contains(word));
        found.map_or(Self::OpenAi, |(_, family)| *family)
    }

    /// Tokens for each unit of a class.
    pub fn factor(self, class: Class) -> f64 {
        let column = match self {
            Self::OpenAi => return 1.0,
            Self::Anthropic => 0,
            Self::Gemini => 1,
            Self::Llama => 2,
            Self::Mistral => 3,
        };
        f64::from(FACTORS[class.index()][column]) / 1_000.0
    }

    /// Tokens for each unit of texts of this mix; of English and code for an empty mix.
    pub fn scale(self, mix: &Mix) -> f64 {
        let units = mix.units();
        if units > 0.0 {
            let tokens = Class::ALL.map(|class| mix.units_of(class) * self.factor(class));
            return tokens.iter().sum::<f64>() / units;
        }
        let parts = USUAL.map(|(class, percent)| percent * self.factor(class));
        parts.iter().sum::<f64>() / 100.0
    }
}
