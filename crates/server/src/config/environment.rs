//! Variables of the environment that set keys.
//!
//! `THROUGHLINE_SECTION_KEY` sets `[section] key`; `THROUGHLINE_UPSTREAM_NAME_KEY` the key of the
//! upstream with that name, and makes it if there is none; the same for `AGENT`, `MCP` and `WEBHOOK`. Names are
//! compared without regard to case, `_` and `-`. An empty variable counts as not set.

use std::collections::BTreeMap;

use super::error::{ConfigError, Origin};
use super::file::name_key;
use super::keys::{KEYS, Key, SECTIONS, SHORT, is_named};
use super::table::{Located, Table};
use super::{Tables, single};
use crate::suggest::suggest;

const PREFIX: &str = "THROUGHLINE_";

/// Set the keys of all variables.
pub(super) fn read<'t>(
    variables: &'t BTreeMap<String, String>,
    tables: &mut Tables<'t>,
) -> Result<(), ConfigError> {
    let set = variables.iter().filter(|(_, value)| !value.is_empty());
    let is_short = |variable: &str| SHORT.iter().find(|(short, ..)| *short == variable);
    // The short names first, so that the long ones win: they are more specific.
    for (variable, value) in set.clone() {
        if let Some((_, section, key)) = is_short(variable) {
            single(tables, section).set(key, Located::text(value, &origin(variable)))?;
        }
    }
    for (variable, value) in set.filter(|(variable, _)| is_short(variable).is_none()) {
        if let Some(rest) = variable.strip_prefix(PREFIX) {
            set_one(variable, rest, value, tables)?;
        }
    }
    Ok(())
}

fn set_one<'t>(
    variable: &str,
    rest: &str,
    value: &'t str,
    tables: &mut Tables<'t>,
) -> Result<(), ConfigError> {
    let located = Located::text(value, &origin(variable));
    let found = SECTIONS.into_iter().find_map(|section| {
        let key = rest.strip_prefix(&upper(section))?.strip_prefix('_')?;
        Some((section, key))
    });
    let Some((section, rest)) = found else {
        return unknown(variable, rest);
    };
    if !is_named(section) {
        let known = Key::of(section).find(|key| upper(key.name) == rest);
        // A key that is not known is refused by its name.
        let key = known.map_or_else(|| rest.to_lowercase(), |key| key.name.to_owned());
        return single(tables, section).set(&key, located);
    }
    let found = Key::of(section).find_map(|key| {
        let name = rest.strip_suffix(&upper(key.name))?.strip_suffix('_')?;
        (!name.is_empty()).then_some((key.name, name))
    });
    let Some((key, name)) = found else {
        let last = rest.rsplit('_').next().unwrap_or(rest).to_lowercase();
        let near = suggest(&last, Key::of(section).map(|key| key.name));
        let key = format!("{section}.{}", rest.to_lowercase());
        return Err(ConfigError::unknown(origin(variable), key, &near));
    };
    if key == name_key(section) {
        return Err(ConfigError::Wrong {
            origin: origin(variable),
            key: format!("{section}.{key}"),
            problem: "the name is in the variable already; set another key".to_owned(),
        });
    }
    named(tables, section, name, variable).set(key, located)
}

/// The table of a name, made if the file has none.
fn named<'a, 't>(
    tables: &'a mut Tables<'t>,
    section: &'static str,
    name: &str,
    variable: &str,
) -> &'a mut Table<'t> {
    let is_it = |table: &Table<'_>| {
        let own = table.name.as_deref().unwrap_or_default();
        table.section == section && upper(own) == upper(name)
    };
    let index = tables.iter().position(is_it).unwrap_or(tables.len());
    if index == tables.len() {
        let name = name.to_lowercase().replace('_', "-");
        tables.push(Table::new(section, Some(name), origin(variable)));
    }
    &mut tables[index]
}

/// A variable that sets nothing. Other programs have variables with our prefix too, so it is only
/// refused if it looks like a slip.
fn unknown(variable: &str, rest: &str) -> Result<(), ConfigError> {
    let keys = KEYS.iter();
    let keys = keys.filter(|key| !is_named(key.section) && key.name != "*");
    let known: Vec<String> = keys
        .map(Key::variable)
        .chain(SHORT.iter().map(|(variable, ..)| (*variable).to_owned()))
        .collect();
    let near = suggest(
        rest,
        known.iter().filter_map(|name| name.strip_prefix(PREFIX)),
    );
    if near.is_empty() {
        return Ok(());
    }
    let near: Vec<String> = near.iter().map(|name| format!("{PREFIX}{name}")).collect();
    Err(ConfigError::unknown(
        origin(variable),
        rest.to_lowercase(),
        &near,
    ))
}

fn upper(name: &str) -> String {
    name.replace(['.', '-'], "_").to_uppercase()
}

pub(super) fn origin(variable: &str) -> Origin {
    Origin::Environment {
        variable: variable.to_owned(),
    }
}
