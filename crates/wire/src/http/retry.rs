//! Whether and when to try again.

use std::time::Duration;

use super::date;
use super::headers::{NANOS_PER_MILLI, NANOS_PER_SEC, decimal};

/// When a request may be sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryAdvice {
    /// Wait this long: `retry-after-ms`, else `retry-after` in seconds.
    pub after: Option<Duration>,
    /// Wait until this moment: `retry-after` as an HTTP date, as the vendor sent it.
    pub at: Option<String>,
    /// Whether the vendor wants the request again (`x-should-retry`).
    pub should_retry: Option<bool>,
}

impl RetryAdvice {
    /// Says how long the vendor asks to wait, seen from `now_unix_secs`; nothing if its moment has passed. A wait goes
    /// before a moment, which is only as good as both clocks. `None` if the vendor sent nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use throughline_wire::http::ResponseMeta;
    ///
    /// let meta = ResponseMeta::parse([("Retry-After", "Fri, 06 Nov 2026 08:49:37 GMT")]);
    /// assert_eq!(meta.retry.wait(1_793_954_970), Some(Duration::from_secs(7)));
    /// assert_eq!(meta.retry.wait(1_800_000_000), Some(Duration::ZERO));
    /// ```
    #[must_use]
    pub fn wait(&self, now_unix_secs: u64) -> Option<Duration> {
        let until =
            || date::imf_fixdate(self.at.as_deref()?).map(|at| date::wait(at, now_unix_secs));
        self.after.or_else(until)
    }
}

/// What has been read of the headers about trying again; of each, the first readable value counts.
#[derive(Default)]
pub(super) struct RetryHeaders {
    after_millis: Option<Duration>,
    after: Option<Duration>,
    at: Option<String>,
    should_retry: Option<bool>,
}

impl RetryHeaders {
    /// Takes in one header, its name in lower case.
    pub(super) fn read(&mut self, name: &str, value: &str) {
        match name {
            "retry-after-ms" => {
                self.after_millis = self
                    .after_millis
                    .or_else(|| decimal(value, NANOS_PER_MILLI));
            }
            "retry-after" => {
                self.after = self.after.or_else(|| decimal(value, NANOS_PER_SEC));
                if self.at.is_none() && date::imf_fixdate(value).is_some() {
                    self.at = Some(value.to_owned());
                }
            }
            "x-should-retry" => {
                self.should_retry = self
                    .should_retry
                    .or_else(|| value.to_ascii_lowercase().parse().ok());
            }
            _ => {}
        }
    }

    pub(super) fn advice(self) -> RetryAdvice {
        RetryAdvice {
            after: self.after_millis.or(self.after),
            at: self.at,
            should_retry: self.should_retry,
        }
    }
}

/// Says whether a failed request may be sent again as it is: the vendor's word if it gave one, else for statuses
/// 408, 409, 429 and 5xx.
///
/// ```
/// use throughline_wire::http::{RetryAdvice, retryable};
///
/// assert!(retryable(529, &RetryAdvice::default()));
/// assert!(!retryable(400, &RetryAdvice::default()));
/// let refused = RetryAdvice { should_retry: Some(false), ..RetryAdvice::default() };
/// assert!(!retryable(429, &refused));
/// ```
#[must_use]
pub fn retryable(status: u16, advice: &RetryAdvice) -> bool {
    advice
        .should_retry
        .unwrap_or(matches!(status, 408 | 409 | 429 | 500..=599))
}
