use throughline_model::Path;
use throughline_model::json::{JsonError, Value};
use throughline_model::stored::StoredError;

/// Why a document is not of its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", place(path))]
pub struct DecodeError {
    /// Where, such as `input[3].call_id`; empty for the document itself.
    pub path: String,
    /// What is wrong with the value.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A member is missing or of the wrong type.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// An element of a message stands alone.
    #[error("{found} is only a part of a message; wrap it as {wrapper}")]
    Fragment {
        /// What stands there.
        found: String,
        /// The smallest message that can hold it.
        wrapper: &'static str,
    },
    /// An error body where messages were expected.
    #[error("this is an error body, not messages: {message}")]
    ErrorBody {
        /// The vendor's words.
        message: String,
    },
    /// The file is larger than the limit.
    #[error("larger than {limit} bytes; raise the limit to read it")]
    TooLarge {
        /// The limit that was exceeded.
        limit: usize,
    },
    /// A format that this version has no codec for.
    #[error("this version has no codec for {name}")]
    NoCodec {
        /// The name of the format.
        name: String,
    },
    /// The text is not JSON.
    #[error("{0}")]
    Json(#[from] JsonError),
    /// A neutral message is not in its stored form.
    #[error("{0}")]
    Stored(#[from] StoredError),
    /// The event stream is broken.
    #[error("{0}")]
    Sse(#[from] crate::sse::SseError),
}

fn place(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("{path}: ")
    }
}

impl DecodeError {
    pub(crate) fn new(path: &Path<'_>, problem: impl Into<Problem>) -> Self {
        Self {
            path: path.to_string(),
            problem: problem.into(),
        }
    }

    /// The same error, in something that is itself part of a larger whole.
    pub(crate) fn inside(self, outer: &Path<'_>) -> Self {
        let path = if self.path.is_empty() {
            outer.to_string()
        } else {
            format!("{outer}.{}", self.path)
        };
        Self { path, ..self }
    }

    pub(crate) fn expected(path: &Path<'_>, expected: &'static str, found: &Value<'_>) -> Self {
        Self::new(
            path,
            Problem::Expected {
                expected,
                found: found.kind().to_owned(),
            },
        )
    }

    pub(crate) fn missing(path: &Path<'_>, expected: &'static str) -> Self {
        Self::new(
            path,
            Problem::Expected {
                expected,
                found: "nothing".to_owned(),
            },
        )
    }
}

impl From<JsonError> for DecodeError {
    fn from(error: JsonError) -> Self {
        Self::new(&Path::Root, error)
    }
}

impl From<StoredError> for DecodeError {
    fn from(error: StoredError) -> Self {
        Self::new(&Path::Root, error)
    }
}

impl From<crate::sse::SseError> for DecodeError {
    fn from(error: crate::sse::SseError) -> Self {
        Self::new(&Path::Root, error)
    }
}
