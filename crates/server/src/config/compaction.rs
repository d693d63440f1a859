//! `[compaction]`: what a model is shown of a long history, and in which form.

use throughline::client::{HistoryForm, Markers};

use super::error::ConfigError;
use super::read::Meaning::Is;
use super::sections::{missing, with_defaults};
use super::tree::Table;
use super::types::{CompactionConfig, When};

const STRATEGY: &str = "strategy";
const EXPERIMENTAL: &str = "experimental.native_tool_history";

pub(super) fn read(written: &Table) -> Result<CompactionConfig, ConfigError> {
    let table = &with_defaults(written);
    let when = [("asked", Is(When::Asked)), ("always", Is(When::Always))];
    let number = |key| table.number(key)?.ok_or_else(|| missing(table, key));
    let recent_calls = u32::try_from(number("recent_calls_to_keep")?);
    Ok(CompactionConfig {
        when: table.word("when", &when)?.unwrap_or_default(),
        recent_calls: recent_calls
            .map_err(|_| table.wrong("recent_calls_to_keep", "is too large"))?,
        threshold: number("truncation_threshold")?,
        budget: table.number("budget")?,
        window: number("window")?,
        narrative: table.number("narrative_tokens")?,
        strategy: strategy(written)?,
        markers: markers(table)?,
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

/// What to write in the place of a key that goes.
pub(super) fn deprecated(table: &Table) -> Option<String> {
    let located = table.values.get(EXPERIMENTAL)?;
    let path = table.path(EXPERIMENTAL);
    Some(format!(
        "{}: {path} is deprecated; write {STRATEGY} instead: \"text\" for false, \"auto\" for true",
        located.origin
    ))
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
