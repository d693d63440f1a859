//! The texts, and how many tokens each has with every vocabulary.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value;
use throughline_compact::tokens::Class;
use throughline_model::tokens::Pieces;

/// Shown without a limit, as prose is: languages that the requirement does not name. All other
/// rows have a limit.
const UNLIMITED: [&str; 15] = [
    "Swedish",
    "Dutch",
    "Italian",
    "Portuguese",
    "Czech",
    "Hungarian",
    "Vietnamese",
    "Indonesian",
    "Ukrainian",
    "Persian",
    "Bengali",
    "Tamil",
    "Georgian",
    "Armenian",
    "symbols",
];

/// Which half of the texts a text is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Fit,
    Check,
}

/// A text, counted.
pub(crate) struct Text {
    /// The language or the kind of text.
    pub(crate) row: String,
    pub(crate) half: Half,
    pub(crate) text: String,
    pub(crate) pieces: Pieces,
    /// By family, in the order of [`Family::ALL`].
    pub(crate) tokens: [f64; 5],
}

impl Text {
    pub(crate) fn is_limited(&self) -> bool {
        !UNLIMITED.contains(&self.row.as_str()) && !self.is_prose()
    }

    /// Whether it is from the source of texts that has no limit.
    pub(crate) fn is_prose(&self) -> bool {
        self.row.ends_with(", prose")
    }

    /// How many units of each class it has.
    pub(crate) fn units(&self) -> [f64; Class::ALL.len()] {
        let mut units = [0.0; Class::ALL.len()];
        for (class, _, count, weight) in self.pieces.counts() {
            units[class.index()] += count * weight;
        }
        units
    }
}

/// Reads `texts.ndjson` and what each vocabulary counted, from one folder.
pub(crate) fn read(folder: &Path) -> Result<Vec<Text>, Box<dyn Error>> {
    let counted = |name: &str| -> Result<Vec<f64>, Box<dyn Error>> {
        let text = fs::read_to_string(folder.join(name))?;
        let counts: Result<Vec<f64>, _> = text.lines().map(str::parse).collect();
        Ok(counts?)
    };
    let others = [
        counted("anthropic.txt")?,
        counted("gemini.txt")?,
        counted("llama.txt")?,
        counted("mistral.txt")?,
    ];
    let o200k = bpe_openai::o200k_base();
    let lines = fs::read_to_string(folder.join("texts.ndjson"))?;
    let mut texts = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let value: Value = serde_json::from_str(line)?;
        let member = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let text = member("text");
        let mut tokens = [o200k.count(&text) as f64, 0.0, 0.0, 0.0, 0.0];
        for (place, counts) in tokens.iter_mut().skip(1).zip(&others) {
            let missing = || format!("a vocabulary counted fewer than {} texts", number + 1);
            *place = *counts.get(number).ok_or_else(missing)?;
        }
        texts.push(Text {
            row: member("row"),
            half: match member("half").as_str() {
                "fit" => Half::Fit,
                _ => Half::Check,
            },
            pieces: Pieces::of(&text),
            text,
            tokens,
        });
    }
    Ok(texts)
}
