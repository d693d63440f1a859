//! The file.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Origin};
use super::keys::{Key, SECTIONS};
use super::table::{Located, Table, one_line};
use crate::suggest::suggest;

/// A file larger than this holds something else.
const LARGEST: u64 = 4 << 20;

/// Read a file.
pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let text = std::fs::metadata(path).and_then(|found| match found.len() {
        0..=LARGEST => std::fs::read_to_string(path),
        _ => Err(std::io::Error::other(format!(
            "it is larger than {LARGEST} bytes"
        ))),
    });
    text.map_err(|source| ConfigError::Unreadable {
        file: path.to_owned(),
        source,
    })
}

/// The tables of a file.
pub(super) fn tables<'t>(path: &Path, text: &'t str) -> Result<Vec<Table<'t>>, ConfigError> {
    let file = File { path, text };
    let document = DeTable::parse(text).map_err(|error| {
        let (line, column) = file.place(error.span().map_or(0, |span| span.start));
        ConfigError::Syntax {
            file: path.to_owned(),
            line,
            column,
            message: one_line(error.message()),
        }
    })?;
    let mut tables = Vec::new();
    for (name, value) in document.get_ref() {
        let origin = file.origin(name.span());
        let written = name.get_ref();
        let Some(section) = SECTIONS.into_iter().find(|section| section == written) else {
            let near = suggest(written, SECTIONS);
            return Err(ConfigError::unknown(origin, written.to_string(), &near));
        };
        file.section(section, origin, value.get_ref(), &mut tables)?;
    }
    Ok(tables)
}

struct File<'f, 't> {
    path: &'f Path,
    text: &'t str,
}

impl<'t> File<'_, 't> {
    fn section(
        &self,
        section: &'static str,
        origin: Origin,
        value: &DeValue<'t>,
        tables: &mut Vec<Table<'t>>,
    ) -> Result<(), ConfigError> {
        let write = |head: String| ConfigError::Wrong {
            origin: origin.clone(),
            key: section.to_owned(),
            problem: format!("write {head}"),
        };
        let mut add = |name, origin, values| {
            let mut table = Table::new(section, name, origin);
            self.fill(&mut table, "", values)?;
            tables.push(table);
            Ok(())
        };
        match (section, value) {
            ("upstream" | "agent" | "webhook", DeValue::Array(entries)) => {
                for entry in entries {
                    let DeValue::Table(values) = entry.get_ref() else {
                        return Err(write(format!("[[{section}]]")));
                    };
                    let name = values.get(name_key(section)).map(Spanned::get_ref);
                    let name = name.and_then(DeValue::as_str).map(str::to_owned);
                    add(name, self.origin(entry.span()), values)?;
                }
            }
            ("upstream" | "agent" | "webhook", _) => return Err(write(format!("[[{section}]]"))),
            ("mcp", DeValue::Table(labels)) => {
                for (label, values) in labels {
                    let (origin, label) = (self.origin(label.span()), label.get_ref());
                    let DeValue::Table(values) = values.get_ref() else {
                        return Err(write(format!("[mcp.LABEL], and {label:?} below it")));
                    };
                    add(Some(label.to_string()), origin, values)?;
                }
            }
            (_, DeValue::Table(values)) => add(None, origin, values)?,
            _ => return Err(write(format!("[{section}]"))),
        }
        Ok(())
    }

    /// Set the keys of a table. Tables inside it are names with dots, unless a key takes a table.
    fn fill(
        &self,
        table: &mut Table<'t>,
        before: &str,
        values: &DeTable<'t>,
    ) -> Result<(), ConfigError> {
        for (key, value) in values {
            let name = format!("{before}{}", key.get_ref());
            match value.get_ref() {
                DeValue::Table(inner)
                    if !inner.is_empty() && Key::find(table.section, &name).is_none() =>
                {
                    self.fill(table, &format!("{name}."), inner)?;
                }
                value => {
                    let located = Located {
                        value: value.clone(),
                        origin: self.origin(key.span()),
                    };
                    table.set(&name, located)?;
                }
            }
        }
        Ok(())
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        Origin::File {
            file: self.path.to_owned(),
            line: self.place(span.start).0,
        }
    }

    /// Line and column of an offset, counted from 1.
    fn place(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        (line, column)
    }
}

/// The key that names the tables of a section, if they are named by a key.
pub(super) fn name_key(section: &str) -> &'static str {
    match section {
        "agent" => "id",
        _ => "name",
    }
}
