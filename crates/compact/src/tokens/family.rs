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
/* Latin */ [1_162, 1_045, 934, 1_004],
    /* West */ [1_477, 941, 1_166, 1_073],
    /* North */ [1_498, 1_002, 1_306, 1_122],
    /* East */ [1_571, 900, 1_046, 1_029],
    /* Vietnamese */ [2_718, 901, 941, 979],
    /* Cyrillic */ [2_113, 939, 1_168, 1_142],
    /* Greek */ [3_302, 1_061, 1_035, 1_050],
    /* Arabic */ [3_266, 1_057, 1_201, 937],
    /* Hebrew */ [2_436, 1_090, 2_628, 1_143],
    /* Devanagari */ [3_699, 1_099, 1_550, 1_175],
    /* Indic */ [5_084, 1_315, 3_584, 1_222],
    /* Thai */ [4_723, 921, 1_198, 1_302],
    /* Hangul */ [1_997, 1_109, 1_046, 1_012],
    /* Kana */ [1_675, 543, 937, 876],
    /* Han */ [1_326, 851, 1_017, 1_315],
    /* OtherScript */ [4_441, 1_729, 4_921, 1_165],
    /* Digits */ [824, 1_682, 976, 1_852],
    /* OpaqueLetters */ [1_026, 835, 1_077, 1_004],
    /* OpaqueDigits */ [1_046, 2_206, 910, 2_060],
    /* Blanks */ [1_133, 1_346, 1_158, 1_149],
    /* Signs */ [1_041, 1_206, 995, 980],
    /* Symbols */ [969, 790, 964, 975],
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
