use super::StoredError;
use crate::json::{Member, ObjectWriter, RawJson, Value};
use crate::{Extra, Path};

/// Reads the members of one object by name and remembers which were asked for, so that the rest
/// can be kept as [`Extra`].
pub struct Fields<'v, 'a> {
    members: &'v [Member<'a>],
    used: Vec<bool>,
    path: &'v Path<'v>,
}

impl<'v, 'a> Fields<'v, 'a> {
    /// The members of a value that must be an object.
    pub fn of(value: &'v Value<'a>, path: &'v Path<'v>) -> Result<Self, StoredError> {
        let Some(members) = value.as_object() else {
            return Err(corrupt(path, "an object", value));
        };
        Ok(Self {
            members,
            used: vec![false; members.len()],
            path,
        })
    }

    /// A member that counts as absent when it is `null`.
    pub fn get(&mut self, key: &str) -> Option<&'v Value<'a>> {
        self.get_or_null(key).filter(|value| !value.is_null())
    }

    /// A member, `null` included. Of duplicate keys the last counts.
    pub fn get_or_null(&mut self, key: &str) -> Option<&'v Value<'a>> {
        let mut found = None;
        for (place, member) in self.members.iter().enumerate() {
            if member.key.is(key) {
                self.used[place] = true;
                found = Some(&member.value);
            }
        }
        found
    }

    /// Read a member that is a string; `None` if it is absent.
    pub fn str(&mut self, key: &str) -> Result<Option<String>, StoredError> {
        self.with(key, "a string", |value| {
            value.as_str().map(std::borrow::Cow::into_owned)
        })
    }

    /// A string that must be there.
    pub fn required_str(&mut self, key: &str) -> Result<String, StoredError> {
        self.str(key)?.ok_or_else(|| self.missing(key, "a string"))
    }

    /// A whole number.
    pub fn number(&mut self, key: &str) -> Result<Option<u64>, StoredError> {
        self.with(key, "a whole number", Value::as_u64)
    }

    /// A truth value, false when absent.
    pub fn flag(&mut self, key: &str) -> Result<bool, StoredError> {
        Ok(self
            .with(key, "true or false", Value::as_bool)?
            .unwrap_or(false))
    }

    /// Any JSON value, kept as text.
    pub fn raw(&mut self, key: &str) -> Option<RawJson> {
        self.get(key).map(RawJson::of)
    }

    /// A JSON object, kept as text.
    pub fn raw_object(&mut self, key: &str) -> Result<Option<RawJson>, StoredError> {
        self.with(key, "an object", |value| {
            value.as_object().map(|_| RawJson::of(value))
        })
    }

    /// An array whose elements `read` understands; empty when absent.
    pub fn list<T>(
        &mut self,
        key: &str,
        mut read: impl FnMut(&Value<'a>, &Path<'_>) -> Result<T, StoredError>,
    ) -> Result<Vec<T>, StoredError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let path = self.path.key(key);
        let Some(values) = value.as_array() else {
            return Err(corrupt(&path, "an array", value));
        };
        values
            .iter()
            .enumerate()
            .map(|(index, value)| read(value, &path.index(index)))
            .collect()
    }

    /// A member that `read` understands or that is an error.
    pub fn with<T>(
        &mut self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'v Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, StoredError> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match read(value) {
                Some(found) => Ok(Some(found)),
                None => Err(corrupt(&self.path.key(key), expected, value)),
            },
        }
    }

    /// The error for a member that must be there.
    pub fn missing(&self, key: &str, expected: &'static str) -> StoredError {
        StoredError::Corrupt {
            path: self.path.key(key).to_string(),
            expected,
            found: "nothing".to_owned(),
        }
    }

    /// Members that were not read.
    pub fn rest(self) -> Extra {
        if self.used.iter().all(|used| *used) {
            return Extra::NONE;
        }
        Extra::of(Some(RawJson::object(|object| {
            for (member, used) in self.members.iter().zip(&self.used) {
                if !used {
                    write_member(object, member);
                }
            }
        })))
    }
}

fn write_member(object: &mut ObjectWriter<'_>, member: &Member<'_>) {
    crate::json::push_compact(object.key_token(&member.key), &member.value);
}

pub(super) fn corrupt(path: &Path<'_>, expected: &'static str, value: &Value<'_>) -> StoredError {
    let mut found = value.kind().to_owned();
    if let Some(text) = value.as_str() {
        let start: String = text.chars().take(40).collect();
        found = format!("{start:?}");
    }
    StoredError::Corrupt {
        path: path.to_string(),
        expected,
        found,
    }
}
