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
    /* Latin */ [1_178, 1_004, 1_013, 965],
    /* West */ [1_505, 928, 1_237, 1_031],
    /* North */ [1_528, 1_006, 1_347, 1_095],
    /* East */ [1_606, 895, 1_076, 1_012],
    /* Vietnamese */ [2_779, 899, 984, 969],
    /* Cyrillic */ [2_215, 927, 1_206, 1_101],
    /* Greek */ [3_365, 1_052, 1_060, 1_039],
    /* Arabic */ [3_251, 1_059, 1_238, 912],
    /* Hebrew */ [2_433, 1_075, 2_656, 1_119],
    /* Devanagari */ [3_898, 1_141, 1_713, 1_161],
    /* Indic */ [5_113, 1_316, 3_618, 1_210],
    /* Thai */ [4_595, 912, 1_178, 1_251],
    /* Hangul */ [2_029, 1_108, 1_056, 934],
    /* Kana */ [1_614, 534, 912, 838],
    /* Han */ [1_394, 849, 1_036, 1_204],
    /* OtherScript */ [4_760, 1_822, 5_302, 1_182],
    /* Digits */ [848, 1_654, 1_020, 1_813],
    /* OpaqueLetters */ [1_022, 828, 1_069, 996],
    /* OpaqueDigits */ [1_064, 2_250, 916, 2_097],
    /* Blanks */ [954, 1_351, 989, 1_214],
    /* Signs */ [1_059, 1_255, 958, 1_028],
    /* Symbols */ [925, 734, 950, 988],
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
