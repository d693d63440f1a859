//! What was written, as what it means.

use std::net::SocketAddr;
use std::time::Duration;

use super::error::{ConfigError, Origin};
use super::file;
use super::keys::{Key, Takes};
use super::tree::{Located, Raw, Table};
use crate::suggest::{did_you_mean, suggest};

/// What a word means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning<T> {
    /// This.
    Is(T),
    /// Something that this version does not have: the feature.
    NotBuilt(&'static str),
}

impl Table {
    fn located(&self, key: &'static str) -> Option<&Located> {
        self.values.get(key)
    }

    /// Where a key was set, or where its table stands.
    pub(super) fn origin(&self, key: &'static str) -> Origin {
        self.located(key)
            .map_or_else(|| self.origin.clone(), |located| located.origin.clone())
    }

    /// A complaint about a key.
    pub(super) fn wrong(&self, key: &'static str, problem: impl Into<String>) -> ConfigError {
        ConfigError::Wrong {
            origin: self.origin(key),
            key: self.path(key),
            problem: problem.into(),
        }
    }

    fn takes(&self, key: &'static str) -> Takes {
        Key::find(self.section, key).map_or(Takes::Anything, |key| key.takes)
    }

    /// A text; empty counts as one.
    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        let Some(located) = self.located(key) else {
            return Ok(None);
        };
        match &located.value {
            Raw::Text(text) | Raw::Said(text) => Ok(Some(text.clone())),
            other => Err(self.wrong(key, format!("must be a text, not {}", other.what()))),
        }
    }

    /// A text that has something in it.
    pub(super) fn filled(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        let text = self.text(key)?;
        match &text {
            Some(text) if text.trim().is_empty() => Err(self.wrong(key, "is empty")),
            _ => Ok(text),
        }
    }

    /// A whole number within the bounds of its key.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<u64>, ConfigError> {
        let Some(located) = self.located(key) else {
            return Ok(None);
        };
        let (least, most) = match self.takes(key) {
            Takes::Number(least, most) => (least, most),
            _ => (0, u64::MAX),
        };
        let bounds = match most {
            most if most > 1 << 60 => format!("of at least {least}"),
            most => format!("between {least} and {most}"),
        };
        let text = match &located.value {
            Raw::Number(text) | Raw::Said(text) => text.trim().replace('_', ""),
            other => {
                let what = other.what();
                return Err(self.wrong(key, format!("must be a number {bounds}, not {what}")));
            }
        };
        match text.trim_start_matches('+').parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(key, format!("must be a number {bounds}, not {text}"))),
        }
    }

    /// A number of seconds.
    pub(super) fn seconds(&self, key: &'static str) -> Result<Option<Duration>, ConfigError> {
        Ok(self.number(key)?.map(Duration::from_secs))
    }

    /// One of a key's words, and what it means.
    pub(super) fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, Meaning<T>)],
    ) -> Result<Option<T>, ConfigError> {
        let Some(located) = self.located(key) else {
            return Ok(None);
        };
        let text = match &located.value {
            Raw::Text(text) | Raw::Said(text) | Raw::Number(text) => text.as_str(),
            Raw::Bool(value) if words.iter().any(|(word, _)| *word == "true") => match value {
                true => "true",
                false => "false",
            },
            other => {
                let what = other.what();
                return Err(self.wrong(key, format!("must be one of {}, not {what}", list(words))));
            }
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, Meaning::Is(value))) => Ok(Some(*value)),
            Some((_, Meaning::NotBuilt(feature))) => Err(ConfigError::NotBuilt {
                origin: located.origin.clone(),
                key: format!("{} = {text:?}", self.path(key)),
                feature,
            }),
            None => {
                let near = suggest(text, words.iter().map(|(word, _)| *word));
                let all = list(words);
                let meant = did_you_mean(&near);
                Err(self.wrong(key, format!("{text:?} is none of {all}{meant}")))
            }
        }
    }

    /// A list of texts.
    pub(super) fn list(&self, key: &'static str) -> Result<Option<Vec<String>>, ConfigError> {
        let Some(located) = self.located(key) else {
            return Ok(None);
        };
        let value = self.plain(key, &located.value)?;
        let Raw::List(values) = &value else {
            let what = value.what();
            return Err(self.wrong(key, format!("must be a list of texts, not {what}")));
        };
        let texts = values.iter().map(|value| match value {
            Raw::Text(text) => Ok(text.clone()),
            other => Err(self.wrong(
                key,
                format!("must be a list of texts, but {} is in it", other.what()),
            )),
        });
        texts.collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// A program and its arguments.
    pub(super) fn command(&self, key: &'static str) -> Result<Option<Vec<String>>, ConfigError> {
        let command = self.list(key)?;
        match &command {
            Some(words) if words.first().is_none_or(String::is_empty) => {
                Err(self.wrong(key, "names no program"))
            }
            _ => Ok(command),
        }
    }

    /// Names, each with a text.
    pub(super) fn map(&self, key: &'static str) -> Result<Vec<(String, String)>, ConfigError> {
        let Some(located) = self.located(key) else {
            return Ok(Vec::new());
        };
        let value = self.plain(key, &located.value)?;
        let Raw::Map(values) = value else {
            let what = value.what();
            return Err(self.wrong(key, format!("must be a table, not {what}")));
        };
        let pairs = values.into_iter().map(|(name, value)| match value {
            Raw::Text(text) => Ok((name, text)),
            other => Err(self.wrong(
                key,
                format!("{name:?} must be a text, not {}", other.what()),
            )),
        });
        pairs.collect()
    }

    /// A list or table, if it was said as text.
    fn plain(&self, key: &'static str, value: &Raw) -> Result<Raw, ConfigError> {
        let Raw::Said(text) = value else {
            return Ok(value.clone());
        };
        let takes = self.takes(key);
        if let Some(inline) = file::inline(text, takes) {
            return inline.map_err(|problem| self.wrong(key, problem));
        }
        let texts = |split: Vec<&str>| {
            let texts = split.into_iter().filter(|text| !text.is_empty());
            Raw::List(texts.map(|text| Raw::Text(text.to_owned())).collect())
        };
        match takes {
            Takes::Command => Ok(texts(text.split_whitespace().collect())),
            Takes::Map => {
                let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
                let pairs = pairs.map(|pair| match pair.split_once('=') {
                    Some((name, value)) => {
                        Ok((name.trim().to_owned(), Raw::Text(value.trim().to_owned())))
                    }
                    None => Err(self.wrong(key, "must look like name=word,other=word")),
                });
                Ok(Raw::Map(pairs.collect::<Result<_, _>>()?))
            }
            _ => Ok(texts(text.split(',').map(str::trim).collect())),
        }
    }

    /// An address to listen on.
    pub(super) fn address(&self, key: &'static str) -> Result<Option<SocketAddr>, ConfigError> {
        let Some(text) = self.filled(key)? else {
            return Ok(None);
        };
        let named = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.clone(),
        };
        named.parse().map(Some).map_err(|_| {
            self.wrong(
                key,
                format!("{text:?} is no address with a port, such as 127.0.0.1:8377"),
            )
        })
    }
}

fn list<T>(words: &[(&str, Meaning<T>)]) -> String {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    words.join(", ")
}
