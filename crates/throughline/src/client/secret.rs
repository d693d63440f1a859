use std::fmt;
use std::sync::Arc;

/// A key or a token. It is never printed: no log, error or debug output contains it.
///
/// ```
/// use throughline::client::Secret;
///
/// let key = Secret::new("sk-very-secret");
/// assert_eq!(format!("{key} {key:?}"), "[secret] [secret]");
/// assert_eq!(key.reveal(), "sk-very-secret");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref()))
    }

    /// The secret itself, to be sent in a header. Never print it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the secret in a text; `None` if the text does not contain it.
    #[cfg(feature = "http")]
    pub(crate) fn scrub(&self, text: &str) -> Option<String> {
        // A very short secret occurs in ordinary words, and protects nothing.
        let is_long = self.0.len() >= 4;
        (is_long && text.contains(&*self.0)).then(|| text.replace(&*self.0, MASK))
    }
}

const MASK: &str = "[secret]";

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
