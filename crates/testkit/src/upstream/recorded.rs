use std::fmt;

use serde_json::Value;
use throughline_model::Wire;

use super::fault::Fault;
use super::http::Incoming;
use super::vendor::{KEY, key_headers};
use crate::scripted::Reading;

/// The verdict on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted, to be answered in this way.
    Accepted(Reading),
    /// Refused, with the status and the message.
    Refused(u16, String),
}

/// A received request. It does not contain the key: where one was, it says whether it was right.
#[derive(Clone)]
pub struct Recorded {
    /// Which request it is, counted from one. The ids of its answer have this number.
    pub number: usize,
    /// The connection, counted from one.
    pub connection: usize,
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Headers with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body; null if it is not JSON.
    pub body: Value,
    /// Whether the vendor accepts it. There may have been a fault nevertheless.
    pub verdict: Verdict,
    /// The fault of its answer.
    pub fault: Option<Fault>,
}

impl Recorded {
    pub(super) fn of(wire: &Wire, request: &Incoming, number: usize, connection: usize) -> Self {
        let keys = key_headers(wire);
        let headers = request.headers.iter().map(|(name, value)| {
            let is_key = keys.iter().any(|(key, _)| key == name);
            let value = match (is_key, value.contains(KEY)) {
                (false, false) => value.clone(),
                (_, true) => "<the key>".to_owned(),
                (true, false) => "<another key>".to_owned(),
            };
            (name.clone(), value)
        });
        Self {
            number,
            connection,
            method: request.method.clone(),
            path: request.target.replace(KEY, "<the key>"),
            headers: headers.collect(),
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
            verdict: Verdict::Accepted(Reading::Whole),
            fault: None,
        }
    }

    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the vendor accepted it.
    pub fn is_accepted(&self) -> bool {
        matches!(self.verdict, Verdict::Accepted(_))
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("connection", &self.connection)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("verdict", &self.verdict)
            .field("fault", &self.fault)
            .field("body", &format_args!("{}", self.body))
            .finish_non_exhaustive()
    }
}
