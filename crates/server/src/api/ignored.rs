//! What of a request is not carried out, as answers name it.

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{HeaderName, HeaderValue};
use throughline::client::LossKind;
use throughline_model::json::{ArrayWriter, ObjectWriter, Value};

use crate::config::Unsupported;
use crate::error::ApiError;

/// The header that names what of a request is not carried out.
const IGNORED: HeaderName = HeaderName::from_static("x-throughline-ignored");

/// Something of a request that is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Where it stands in the request; what is inherited stands in `history`.
    pub path: String,
    /// Why.
    pub reason: String,
    /// What was sent in its place, as JSON, if something was.
    pub sent: Option<String>,
}

impl Ignored {
    pub(crate) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
            sent: None,
        }
    }

    /// Append as JSON.
    pub(crate) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.str("path", &self.path).str("reason", &self.reason);
        object.end();
    }

    /// All of them as JSON.
    pub(crate) fn write_all<'i>(all: impl IntoIterator<Item = &'i Self>, out: &mut String) {
        let mut list = ArrayWriter::new(out);
        for one in all {
            one.write(list.slot());
        }
        list.end();
    }

    /// Read what [`Ignored::write_stored`] wrote.
    pub(crate) fn read_stored(value: &Value<'_>) -> Option<Self> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.into_owned());
        Some(Self {
            path: text("path")?,
            reason: text("reason")?,
            sent: value.get("sent").map(|sent| sent.raw().to_owned()),
        })
    }

    /// Append as it is kept with a run.
    pub(crate) fn write_stored(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.str("path", &self.path).str("reason", &self.reason);
        if let Some(sent) = &self.sent {
            object.raw("sent", sent);
        }
        object.end();
    }
}

/// Whether a loss is of something that a model is to be shown and cannot be.
pub(crate) fn is_content(kind: LossKind) -> bool {
    matches!(kind, LossKind::Media | LossKind::VendorItem)
}

/// Refuse a request that cannot be carried out as it stands, if that is how the server is set up.
pub(crate) fn check_unsupported(ignored: &[Ignored], policy: Unsupported) -> Result<(), ApiError> {
    let Some(first) = ignored.first().filter(|_| policy == Unsupported::Refuse) else {
        return Ok(());
    };
    let all: Vec<String> = ignored
        .iter()
        .map(|one| format!("'{}' ({})", one.path, one.reason))
        .collect();
    Err(ApiError::invalid(format!(
        "The request cannot be carried out as it stands: {}.",
        all.join(", ")
    ))
    .code("unsupported_parameter")
    .param(first.path.clone()))
}

/// The value of the header that names what is not carried out.
pub(crate) fn header(ignored: &[Ignored]) -> Option<String> {
    let plain = |path: &&str| {
        path.bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b',')
    };
    let paths: Vec<&str> = ignored
        .iter()
        .map(|one| one.path.as_str())
        .filter(plain)
        .collect();
    (!paths.is_empty()).then(|| paths.join(", "))
}

/// The member that a path begins with, if it is one of an API's.
pub(crate) fn member_of(
    path: &str,
    mut known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let name = path.split(['.', '[']).next().unwrap_or_default();
    known.find(|known| *known == name)
}

/// Name what is not carried out in the header of an answer.
pub(crate) fn set_header(response: &mut Response<Body>, paths: Option<String>) {
    if let Some(Ok(paths)) = paths.map(HeaderValue::try_from) {
        response.headers_mut().insert(IGNORED, paths);
    }
}
