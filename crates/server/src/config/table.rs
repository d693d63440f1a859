//! Tables of a configuration as they were written, each value with its place, and the values of their
//! keys.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::Value;
use toml::de::DeValue;

use super::error::{ConfigError, Origin};
use super::keys::{Key, ValueType};
use crate::suggest::{did_you_mean, suggest};

/// Texts that may be empty.
const MAY_BE_EMPTY: [&str; 3] = ["instructions", "text_before", "text_after"];

/// A value and where it stands. The environment and the command line have texts alone, whatever the
/// type of the key is.
#[derive(Clone, Debug)]
pub(super) struct Located<'t> {
    pub(super) value: DeValue<'t>,
    pub(super) origin: Origin,
}

impl<'t> Located<'t> {
    /// A text that does not stand in a file.
    pub(super) fn text(text: impl Into<Cow<'t, str>>, origin: &Origin) -> Self {
        Self {
            value: DeValue::String(text.into()),
            origin: origin.clone(),
        }
    }

    fn is_text(&self) -> bool {
        !matches!(self.origin, Origin::File { .. })
    }
}

/// One table.
#[derive(Clone, Debug)]
pub(super) struct Table<'t> {
    pub(super) section: &'static str,
    /// Its name, if its section has names and the table has one.
    pub(super) name: Option<String>,
    pub(super) origin: Origin,
    pub(super) values: BTreeMap<&'static str, Located<'t>>,
}

impl<'t> Table<'t> {
    pub(super) fn new(section: &'static str, name: Option<String>, origin: Origin) -> Self {
        Self {
            section,
            name,
            origin,
            values: BTreeMap::new(),
        }
    }

    fn path(&self, key: &str) -> String {
        let section = self.section;
        match &self.name {
            Some(name) => format!("{section}.{name}.{key}"),
            None => format!("{section}.{key}"),
        }
    }

    /// Set a key, also if it was set before. Unknown keys and those that are not built are errors.
    pub(super) fn set(&mut self, key: &str, located: Located<'t>) -> Result<(), ConfigError> {
        let origin = located.origin.clone();
        let Some(known) = Key::find(self.section, key) else {
            let near = suggest(key, Key::of(self.section).map(|key| key.name));
            return Err(ConfigError::unknown(origin, self.path(key), &near));
        };
        if let Some(feature) = known.not_built {
            return Err(ConfigError::NotBuilt {
                origin,
                key: self.path(key),
                feature,
            });
        }
        self.values.insert(known.name, located);
        Ok(())
    }

    /// An error about a key, at its place or that of the table.
    pub(super) fn wrong(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        let located = self.values.get(key).map(|located| &located.origin);
        ConfigError::Wrong {
            origin: located.unwrap_or(&self.origin).clone(),
            key: self.path(key),
            problem: problem.into(),
        }
    }

    /// The value of a key that must have one.
    pub(super) fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, ConfigError> {
        self.find(key)?.ok_or_else(|| {
            let known = Key::find(self.section, key);
            let what = known.map_or("", |key| key.description).split(['.', ':']);
            let what = what.map(str::to_lowercase).next().unwrap_or_default();
            let words = match known.map(|key| key.value) {
                Some(ValueType::OneOf(words)) => format!(", one of {}", words.join(", ")),
                _ => String::new(),
            };
            self.wrong(key, format!("is missing: {what}{words}"))
        })
    }

    /// The value of a key, or its default.
    pub(super) fn find<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        let Some(known) = Key::find(self.section, key) else {
            return Ok(None);
        };
        let value = match self.values.get(key) {
            Some(located) => self.typed(known, located)?,
            None if known.default.is_empty() || known.default.contains('`') => return Ok(None),
            None => self.typed(known, &Located::text(known.default, &Origin::Default))?,
        };
        let value = T::deserialize(value);
        value
            .map(Some)
            .map_err(|error| self.wrong(key, error.message()))
    }

    /// The value of a key as one of several.
    pub(super) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, ConfigError> {
        let word: Option<String> = self.find(key)?;
        let found = choices
            .iter()
            .find(|(name, _)| Some(*name) == word.as_deref());
        Ok(found.map(|(_, choice)| *choice))
    }

    /// A value in the type of its key.
    fn typed(&self, key: &Key, located: &Located<'_>) -> Result<Value, ConfigError> {
        let (value, is_text) = (&located.value, located.is_text());
        let typed = match key.value {
            ValueType::Text => text(value, MAY_BE_EMPTY.contains(&key.name)),
            ValueType::Number(least, most) => number(value, is_text, (least, most)),
            ValueType::OneOf(words) => one_of(value, words),
            ValueType::List => list(value, is_text, |text| text.split(',').collect()),
            ValueType::Command => {
                list(value, is_text, |text| text.split_whitespace().collect()).and_then(command)
            }
            ValueType::Map => map(value, is_text),
            ValueType::Unread => Err("is not read".to_owned()),
        };
        let typed = typed.map_err(|problem| self.wrong(key.name, problem))?;
        if let Some(word) = typed.as_str()
            && let Some(feature) = key.not_built_value(word)
        {
            return Err(ConfigError::NotBuilt {
                origin: located.origin.clone(),
                key: format!("{} = {word:?}", self.path(key.name)),
                feature,
            });
        }
        Ok(typed)
    }
}

/// What a value is, for error messages.
fn what(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn text(value: &DeValue<'_>, may_be_empty: bool) -> Result<Value, String> {
    match value {
        DeValue::String(text) if text.trim().is_empty() && !may_be_empty => {
            Err("is empty".to_owned())
        }
        DeValue::String(text) => Ok(Value::from(&**text)),
        other => Err(format!("must be a text, not {}", what(other))),
    }
}

fn number(value: &DeValue<'_>, is_text: bool, (least, most): (u64, u64)) -> Result<Value, String> {
    let bounds = match most {
        most if most > 1 << 60 => format!("of at least {least}"),
        most => format!("between {least} and {most}"),
    };
    let (found, radix) = match value {
        DeValue::Integer(number) => (number.as_str(), number.radix()),
        DeValue::Float(number) => (number.as_str(), 10),
        DeValue::String(text) if is_text => (text.trim(), 10),
        other => (what(other), 10),
    };
    let number = u64::from_str_radix(&found.replace('_', ""), radix).ok();
    let number = number.filter(|number| (least..=most).contains(number));
    let number = number.and_then(|number| i64::try_from(number).ok());
    let number = number.ok_or_else(|| format!("must be a number {bounds}, not {found}"))?;
    Ok(Value::Integer(number))
}

fn one_of(value: &DeValue<'_>, words: &[&str]) -> Result<Value, String> {
    let word = match value {
        DeValue::String(text) => &**text,
        DeValue::Integer(number) => number.as_str(),
        DeValue::Boolean(true) if words.contains(&"true") => "true",
        DeValue::Boolean(false) if words.contains(&"false") => "false",
        other => {
            let words = words.join(", ");
            return Err(format!("must be one of {words}, not {}", what(other)));
        }
    };
    match words.contains(&word) {
        true => Ok(Value::from(word)),
        false => Err(none_of(word, words)),
    }
}

/// What is wrong with a word that is none of those that are allowed.
pub(super) fn none_of(word: &str, words: &[&str]) -> String {
    let meant = did_you_mean(&suggest(word, words.iter().copied()));
    format!("{word:?} is none of {}{meant}", words.join(", "))
}

fn list(
    value: &DeValue<'_>,
    is_text: bool,
    split: impl Fn(&str) -> Vec<&str>,
) -> Result<Value, String> {
    let texts: Result<Vec<Value>, String> = match value {
        DeValue::String(text) if is_text && text.trim().starts_with('[') => {
            return list(toml_in(text)?.get_ref(), false, split);
        }
        DeValue::String(text) if is_text => {
            let texts = split(text).into_iter().map(str::trim);
            Ok(texts
                .filter(|text| !text.is_empty())
                .map(Value::from)
                .collect())
        }
        DeValue::Array(values) => {
            let texts = values.iter().map(|value| match value.get_ref() {
                DeValue::String(text) => Ok(Value::from(&**text)),
                other => Err(format!(
                    "must be a list of texts, but {} is in it",
                    what(other)
                )),
            });
            texts.collect()
        }
        other => Err(format!("must be a list of texts, not {}", what(other))),
    };
    texts.map(Value::Array)
}

fn command(words: Value) -> Result<Value, String> {
    match words.get(0).and_then(Value::as_str) {
        None | Some("") => Err("names no program".to_owned()),
        Some(_) => Ok(words),
    }
}

fn map(value: &DeValue<'_>, is_text: bool) -> Result<Value, String> {
    match value {
        DeValue::String(text) if is_text && text.trim().starts_with('{') => {
            map(toml_in(text)?.get_ref(), false)
        }
        DeValue::String(text) if is_text => {
            let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
            let pairs = pairs.map(|pair| match pair.split_once('=') {
                Some((name, value)) => Ok((name.trim().to_owned(), Value::from(value.trim()))),
                None => Err("must look like name=word,other=word".to_owned()),
            });
            pairs.collect::<Result<toml::Table, _>>().map(Value::Table)
        }
        DeValue::Table(values) => {
            let pairs = values.iter().map(|(name, value)| match value.get_ref() {
                DeValue::String(text) => Ok((name.get_ref().to_string(), Value::from(&**text))),
                other => Err(format!(
                    "{:?} must be a text, not {}",
                    name.get_ref(),
                    what(other)
                )),
            });
            pairs.collect::<Result<toml::Table, _>>().map(Value::Table)
        }
        other => Err(format!("must be a table, not {}", what(other))),
    }
}

/// A list or a table that was written as TOML in one line of text.
fn toml_in(text: &str) -> Result<toml::Spanned<DeValue<'_>>, String> {
    DeValue::parse(text.trim()).map_err(|error| one_line(error.message()))
}

/// The message of a parser, in one line.
pub(super) fn one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}
