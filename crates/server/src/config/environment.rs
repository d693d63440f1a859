//! Variables of the environment that set keys.
//!
//! `THROUGHLINE_SECTION_KEY` sets `[section] key`; `THROUGHLINE_UPSTREAM_NAME_KEY` the key of the
//! upstream with that name, and makes it if there is none; the same for `AGENT` and `MCP`. Names are
//! compared without regard to case, `_` and `-`. An empty variable counts as not set.

use std::collections::BTreeMap;

use super::error::{ConfigError, Origin};
use super::keys::{Key, SHORT, Section};
use super::tree::{Located, Raw, Table, Tree};
use crate::suggest::suggest;

const PREFIX: &str = "THROUGHLINE_";

/// Take in all variables.
pub(super) fn read(
    variables: &BTreeMap<String, String>,
    tree: &mut Tree,
) -> Result<(), ConfigError> {
    // The short names first, so that the long ones win: who writes one of those means it.
    for (variable, section, key) in SHORT {
        if let Some(value) = variables.get(*variable).filter(|value| !value.is_empty()) {
            tree.single(*section).set(key, said(variable, value))?;
        }
    }
    for (variable, value) in variables {
        let Some(rest) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        let is_short = SHORT.iter().any(|(short, ..)| short == variable);
        if value.is_empty() || is_short {
            continue;
        }
        one(variable, rest, value, tree)?;
    }
    Ok(())
}

fn one(variable: &str, rest: &str, value: &str, tree: &mut Tree) -> Result<(), ConfigError> {
    let found = Section::ALL.into_iter().find_map(|section| {
        let rest = rest.strip_prefix(&section.name().to_uppercase())?;
        Some((section, rest.strip_prefix('_')?))
    });
    let Some((section, rest)) = found else {
        return strange(variable, rest);
    };
    if tree.named(section).is_none() {
        let table = tree.single(section);
        return match Key::of(section).find(|key| upper(key.name) == rest) {
            Some(key) => table.set(key.name, said(variable, value)),
            // Refused there, by its name.
            None => table.set(&rest.to_lowercase(), said(variable, value)),
        };
    }
    let named = Key::of(section).find_map(|key| {
        let name = rest.strip_suffix(&upper(key.name))?.strip_suffix('_')?;
        (!name.is_empty()).then_some((key.name, name))
    });
    let Some((key, name)) = named else {
        let last = rest.rsplit('_').next().unwrap_or(rest).to_lowercase();
        let names = Key::of(section).map(|key| key.name);
        return Err(ConfigError::Unknown {
            origin: of(variable),
            key: format!("{}.{}", section.name(), rest.to_lowercase()),
            near: suggest(&last, names)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        });
    };
    if matches!(key, "name" | "id") {
        return Err(ConfigError::Wrong {
            origin: of(variable),
            key: format!("{}.{key}", section.name()),
            problem: "the name is in the variable already; set another key".to_owned(),
        });
    }
    let Some(tables) = tree.named(section) else {
        return Ok(());
    };
    let same = |table: &Table| table.name.as_deref().is_some_and(|own| alike(own, name));
    let at = match tables.iter().position(same) {
        Some(at) => at,
        None => {
            tables.push(made(section, variable, name));
            tables.len() - 1
        }
    };
    match tables.get_mut(at) {
        Some(table) => table.set(key, said(variable, value)),
        None => Ok(()),
    }
}

/// A table that only the environment knows.
fn made(section: Section, variable: &str, name: &str) -> Table {
    let name = name.to_lowercase().replace('_', "-");
    let mut table = Table::new(section, Some(name.clone()), of(variable));
    let own = match section {
        Section::Upstream => Some("name"),
        Section::Agent => Some("id"),
        _ => None,
    };
    if let Some(own) = own {
        table.values.insert(own, said(variable, &name));
    }
    table
}

/// A variable that sets nothing. Other programs of ours have such too, so it is only refused if it
/// looks like a slip.
fn strange(variable: &str, rest: &str) -> Result<(), ConfigError> {
    let known: Vec<String> = super::keys::KEYS
        .iter()
        .filter(|key| !key.section.is_named() && key.name != "*")
        .map(Key::variable)
        .chain(SHORT.iter().map(|(variable, ..)| (*variable).to_owned()))
        .collect();
    let rests = known.iter().filter_map(|name| name.strip_prefix(PREFIX));
    let near = suggest(rest, rests);
    if near.is_empty() {
        return Ok(());
    }
    Err(ConfigError::Unknown {
        origin: of(variable),
        key: rest.to_lowercase(),
        near: near.iter().map(|name| format!("{PREFIX}{name}")).collect(),
    })
}

fn upper(name: &str) -> String {
    name.replace('.', "_").to_uppercase()
}

/// Whether a name is the one in a variable.
fn alike(own: &str, variable: &str) -> bool {
    own.replace('-', "_").eq_ignore_ascii_case(variable)
}

fn of(variable: &str) -> Origin {
    Origin::Environment {
        variable: variable.to_owned(),
    }
}

fn said(variable: &str, value: &str) -> Located {
    Located {
        value: Raw::Said(value.to_owned()),
        origin: of(variable),
    }
}
