//! On which models the program of a family runs, and the report of what it found there.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use throughline_testkit::Rng;

use crate::clients::program::Found;

/// How much of a family runs: `THROUGHLINE_CLIENTS`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every model. Also without the variable.
    Full,
    /// One vendor, and one other model; both follow from `THROUGHLINE_SEED`.
    Seeded(u64),
    /// The models that are named, separated by commas.
    Named(Vec<String>),
}

impl Extent {
    pub(crate) fn from_environment() -> Self {
        let given = std::env::var("THROUGHLINE_CLIENTS").unwrap_or_default();
        let seed = std::env::var("THROUGHLINE_SEED").unwrap_or_default();
        Self::parse(&given, &seed)
    }

    fn parse(given: &str, seed: &str) -> Self {
        match given.trim() {
            "" | "full" => Self::Full,
            "seeded" => Self::Seeded(number(seed)),
            names => Self::Named(
                names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect(),
            ),
        }
    }

    /// Those of the models that a family runs on. All but `demo` have a vendor behind them.
    pub(crate) fn of<'m>(&self, family: &str, models: &[&'m str]) -> Vec<&'m str> {
        match self {
            Self::Full => models.to_vec(),
            Self::Named(names) => {
                let is_named = |model: &&str| names.iter().any(|name| name == model);
                models.iter().copied().filter(is_named).collect()
            }
            Self::Seeded(seed) => {
                // The name takes part, so that families meet different vendors in one run.
                let mut rng = Rng::new(seed ^ sum(family));
                let vendors: Vec<&str> =
                    models.iter().copied().filter(|it| *it != "demo").collect();
                let first = vendors[rng.below(vendors.len())];
                let rest: Vec<&str> = models.iter().copied().filter(|it| *it != first).collect();
                vec![first, rest[rng.below(rest.len())]]
            }
        }
    }
}

/// A seed in decimal or as `0x…`. Any other text is a seed as well.
fn number(text: &str) -> u64 {
    let text = text.trim();
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| sum(text))
}

/// A number for a text.
fn sum(text: &str) -> u64 {
    let add = |sum: u64, byte: u8| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
    text.bytes().fold(0, add)
}

/// What the program of a family found, model by model.
pub(crate) struct Report {
    pub(crate) family: &'static str,
    pub(crate) found: Vec<(String, Found)>,
}

impl Report {
    /// The line that the test command shows: `campaign client FAMILY (SDK): MODEL=PASSED …`.
    pub(crate) fn line(&self) -> String {
        let counts = self.found.iter().map(|(model, found)| match found.failed {
            0 => format!(" {model}={}", found.passed),
            failed => format!(" {model}={} ({failed} FAILED)", found.passed),
        });
        let counts: String = counts.collect();
        format!("campaign client {} ({}):{counts}", self.family, self.sdk())
    }

    fn sdk(&self) -> &str {
        let mut named = self
            .found
            .iter()
            .filter_map(|(_, found)| found.sdk.as_deref());
        named.next().unwrap_or("unknown version")
    }

    /// Write it to the file that `THROUGHLINE_CLIENTS_REPORT` names, if it does.
    pub(crate) fn write(&self) {
        let Some(file) = std::env::var_os("THROUGHLINE_CLIENTS_REPORT").map(PathBuf::from) else {
            return;
        };
        let models: Map<String, Value> = self
            .found
            .iter()
            .map(|(model, found)| {
                let counts = json!({"passed": found.passed, "failed": found.failed});
                (model.clone(), counts)
            })
            .collect();
        let sum = |count: fn(&Found) -> u64| -> u64 {
            self.found.iter().map(|(_, found)| count(found)).sum()
        };
        let report = json!({
            "family": self.family,
            "sdk": self.sdk(),
            "passed": sum(|found| found.passed),
            "failed": sum(|found| found.failed),
            "models": models,
        });
        std::fs::write(&file, format!("{report}\n")).expect("the report can be written");
    }
}

#[test]
fn a_seed_chooses_a_vendor_and_another_model_and_each_is_chosen_by_some_seed() {
    const MODELS: [&str; 3] = ["demo", "anthropic", "gemini"];
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let extent = Extent::parse("seeded", &seed.to_string());
        assert_eq!(extent, Extent::Seeded(seed));
        let chosen = extent.of("ai7", &MODELS);
        assert_eq!(chosen, extent.of("ai7", &MODELS));
        assert_eq!(chosen.len(), 2);
        assert!(chosen[0] != "demo" && chosen[0] != chosen[1], "{chosen:?}");
        seen.extend(chosen);
    }
    assert_eq!(seen.len(), MODELS.len());
    assert_eq!(Extent::parse("full", "1").of("ai7", &MODELS), MODELS);
    let named = Extent::parse("gemini, demo", "1").of("ai7", &MODELS);
    assert_eq!(named, ["demo", "gemini"]);
}
