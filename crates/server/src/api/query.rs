//! The query of a URL, read as far as the APIs use it.

use throughline_model::Path;

use super::read;
use crate::error::ApiError;

/// The parameters of a query, in order.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Read a query; what cannot be decoded stays as it is.
    pub(super) fn of(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(value))
        });
        Self(pairs.collect())
    }

    /// Refuse parameters that are not known, by name.
    pub(super) fn check_known(&self, known: &[&'static str]) -> Result<(), ApiError> {
        let mut names = self.0.iter().map(|(name, _)| name);
        match names.find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(read::unknown(name, known, &Path::Root)),
            None => Ok(()),
        }
    }

    /// The last value of a parameter.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let mut values = self.0.iter().rev();
        let found = values.find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }

    /// All values of a parameter, in order.
    pub(super) fn all<'q>(&'q self, key: &'q str) -> impl Iterator<Item = &'q str> {
        let values = self.0.iter().filter(move |(known, _)| known == key);
        values.map(|(_, value)| value.as_str())
    }

    /// A parameter that is on or off.
    pub(super) fn flag(&self, key: &str) -> Result<bool, ApiError> {
        match self.get(key) {
            None | Some("" | "false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(wrong(key, "true or false")),
        }
    }

    /// A parameter that is a number.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, ApiError> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(wrong(key, "a whole number")),
            },
        }
    }
}

/// A parameter that is not what it must be.
pub(super) fn wrong(key: &str, expected: &str) -> ApiError {
    ApiError::invalid(format!("Invalid '{key}': expected {expected}."))
        .code("invalid_value")
        .param(key)
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 3).and_then(|two| {
            let two = std::str::from_utf8(two).ok()?;
            u8::from_str_radix(two, 16).ok()
        });
        match (byte, code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 3;
            }
            (b'+', _) => {
                out.push(b' ');
                at += 1;
            }
            (byte, _) => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn a_query_is_read_as_it_is_meant() {
        let query = Query::of(Some("include%5B%5D=a&limit=20&order=asc&limit=5&x=a+b%2"));
        assert_eq!(query.get("include[]"), Some("a"));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert_eq!(query.get("x"), Some("a b%2"));
        assert!(!query.flag("stream").unwrap());
        assert!(Query::of(Some("stream=maybe")).flag("stream").is_err());
        assert_eq!(Query::of(None).get("x"), None);
    }
}
