//! `[compaction]`: what vendors are shown of earlier tool calls.

use throughline::{HistoryForm, Markers};

use super::error::ConfigError;
use super::read::Meaning::Is;
use super::sections::with_defaults;
use super::tree::Table;
use super::types::CompactionConfig;

const STRATEGY: &str = "strategy";
const EXPERIMENTAL: &str = "experimental.native_tool_history";

pub(super) fn read(table: &Table) -> Result<CompactionConfig, ConfigError> {
    Ok(CompactionConfig {
        strategy: strategy(table)?,
        markers: markers(&with_defaults(table))?,
    })
}

/// The strategy, by its key or by the one that it had before.
fn strategy(table: &Table) -> Result<HistoryForm, ConfigError> {
    let forms = HistoryForm::ALL.map(|form| (form.as_str(), Is(form)));
    let before = [
        ("true", Is(HistoryForm::Auto)),
        ("false", Is(HistoryForm::Text)),
    ];
    let written = table.word(STRATEGY, &forms)?;
    let before = table.word(EXPERIMENTAL, &before)?;
    match (written, before) {
        (Some(written), None) => Ok(written),
        (None, Some(before)) => Ok(before),
        (None, None) => Ok(HistoryForm::default()),
        // Both begin with native; the newer key says more.
        (Some(HistoryForm::Native), Some(HistoryForm::Auto)) => Ok(HistoryForm::Native),
        (Some(written), Some(before)) if written == before => Ok(written),
        (Some(written), Some(before)) => Err(table.wrong(
            EXPERIMENTAL,
            format!("means {before}, but {STRATEGY} is {written}; take this key out"),
        )),
    }
}

fn markers(table: &Table) -> Result<Markers, ConfigError> {
    let before = table.text("text_before")?.unwrap_or_default();
    let after = table.text("text_after")?.unwrap_or_default();
    // Which of the two is wrong shows when the other is left out.
    let key = match Markers::new(before.as_str(), "") {
        Ok(_) => "text_after",
        Err(_) => "text_before",
    };
    Markers::new(before, after).map_err(|error| table.wrong(key, error.to_string()))
}
