//! The file, as it was written.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Origin};
use super::keys::{Key, Section, Takes};
use super::tree::{Located, Raw, Table, Tree};
use crate::suggest::suggest;

/// A file larger than this holds something else.
const LARGEST: u64 = 4 << 20;

/// Read a file into what was written.
pub(super) fn read(path: &Path, tree: &mut Tree) -> Result<(), ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        file: path.to_owned(),
        source,
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > LARGEST {
        let source = std::io::Error::other(format!("it is larger than {LARGEST} bytes"));
        return Err(unreadable(source));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    File { path, text: &text }.read(tree)
}

struct File<'f> {
    path: &'f Path,
    text: &'f str,
}

impl File<'_> {
    fn read(&self, tree: &mut Tree) -> Result<(), ConfigError> {
        let document = DeTable::parse(self.text).map_err(|error| self.syntax(&error))?;
        for (name, value) in document.get_ref() {
            let origin = self.origin(name.span());
            let written: &str = name.get_ref();
            let Some(section) = Section::ALL
                .into_iter()
                .find(|section| section.name() == written)
            else {
                let names = Section::ALL.map(Section::name);
                return Err(ConfigError::Unknown {
                    origin,
                    key: written.to_owned(),
                    near: suggest(written, names)
                        .into_iter()
                        .map(str::to_owned)
                        .collect(),
                });
            };
            self.section(section, &origin, value, tree)?;
        }
        Ok(())
    }

    fn section(
        &self,
        section: Section,
        origin: &Origin,
        value: &Spanned<DeValue<'_>>,
        tree: &mut Tree,
    ) -> Result<(), ConfigError> {
        let wrong = |problem: String| ConfigError::Wrong {
            origin: origin.clone(),
            key: section.name().to_owned(),
            problem,
        };
        match (section, value.get_ref()) {
            (Section::Upstream | Section::Agent, DeValue::Array(entries)) => {
                for entry in entries {
                    let DeValue::Table(values) = entry.get_ref() else {
                        return Err(wrong(format!("write [[{}]]", section.name())));
                    };
                    let origin = self.origin(entry.span());
                    let mut table = Table::new(section, None, origin);
                    table.name = name_of(section, values);
                    self.fill(&mut table, "", values)?;
                    if let Some(tables) = tree.named(section) {
                        tables.push(table);
                    }
                }
                Ok(())
            }
            (Section::Upstream | Section::Agent, _) => {
                Err(wrong(format!("write [[{}]]", section.name())))
            }
            (Section::Mcp, DeValue::Table(labels)) => {
                for (label, values) in labels {
                    let origin = self.origin(label.span());
                    let DeValue::Table(values) = values.get_ref() else {
                        return Err(wrong(format!(
                            "write [mcp.LABEL], and {:?} below it",
                            label.get_ref()
                        )));
                    };
                    let label = label.get_ref().clone().into_owned();
                    let mut table = Table::new(section, Some(label), origin);
                    self.fill(&mut table, "", values)?;
                    tree.mcp.push(table);
                }
                Ok(())
            }
            (_, DeValue::Table(values)) => {
                let table = tree.single(section);
                table.origin = origin.clone();
                self.fill(table, "", values)
            }
            _ => Err(wrong(format!("write [{}]", section.name()))),
        }
    }

    /// Take in the keys of a table. Tables inside it are names with dots, unless a key takes a table.
    fn fill(
        &self,
        table: &mut Table,
        before: &str,
        values: &DeTable<'_>,
    ) -> Result<(), ConfigError> {
        for (key, value) in values {
            let name = format!("{before}{}", key.get_ref());
            let takes = Key::find(table.section, &name).map(|key| key.takes);
            match (value.get_ref(), takes) {
                (DeValue::Table(inner), None) if !inner.is_empty() => {
                    self.fill(table, &format!("{name}."), inner)?;
                }
                (value, _) => {
                    let located = Located {
                        value: raw(value),
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

    fn syntax(&self, error: &toml::de::Error) -> ConfigError {
        let (line, column) = self.place(error.span().map_or(0, |span| span.start));
        ConfigError::Syntax {
            file: self.path.to_owned(),
            line,
            column,
            message: error.message().lines().collect::<Vec<_>>().join(", "),
        }
    }
}

/// The name that a table gives itself, for complaints about its other keys.
fn name_of(section: Section, values: &DeTable<'_>) -> Option<String> {
    let key = match section {
        Section::Upstream => "name",
        _ => "id",
    };
    let value = values.iter().find(|(name, _)| name.get_ref() == key)?.1;
    Some(value.get_ref().as_str()?.to_owned())
}

/// A value as it was written.
fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.clone().into_owned()),
        DeValue::Integer(number) => match number.radix() {
            10 => Raw::Number(number.as_str().to_owned()),
            radix => match u64::from_str_radix(number.as_str(), radix) {
                Ok(number) => Raw::Number(number.to_string()),
                Err(_) => Raw::Number(number.as_str().to_owned()),
            },
        },
        DeValue::Float(number) => Raw::Number(number.as_str().to_owned()),
        DeValue::Boolean(value) => Raw::Bool(*value),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Array(values) => {
            Raw::List(values.iter().map(|value| raw(value.get_ref())).collect())
        }
        DeValue::Table(values) => Raw::Map(
            values
                .iter()
                .map(|(key, value)| (key.get_ref().clone().into_owned(), raw(value.get_ref())))
                .collect(),
        ),
    }
}

/// A list or a table that was written as TOML in one line of text.
pub(super) fn inline(text: &str, takes: Takes) -> Option<Result<Raw, String>> {
    let text = text.trim();
    let opens = match takes {
        Takes::List | Takes::Command => '[',
        Takes::Map => '{',
        Takes::Text | Takes::Number(..) | Takes::Words(_) | Takes::Anything => return None,
    };
    text.starts_with(opens).then(|| match DeValue::parse(text) {
        Ok(value) => Ok(raw(value.get_ref())),
        Err(error) => Err(error.message().lines().collect::<Vec<_>>().join(", ")),
    })
}
