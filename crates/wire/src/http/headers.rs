//! Reads header pairs.

use std::time::Duration;

use super::date;
use super::retry::{RetryAdvice, RetryHeaders};

/// Header names for a request id, the best first: gateways add their own beside the service's.
const REQUEST_IDS: [&str; 4] = [
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-ms-request-id",
];

/// A bare number beyond this is no wait but a moment in some unit, which servers do not send.
const LONGEST_BARE_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The headers of one response that this library reads.
///
/// ```
/// use std::time::Duration;
/// use throughline_wire::http::{Reset, ResponseMeta};
///
/// let meta = ResponseMeta::parse([
///     ("X-Request-Id", "req_1"),
///     ("x-ratelimit-remaining-tokens", "149984"),
///     ("x-ratelimit-reset-tokens", "6m0s"),
///     ("retry-after-ms", "1250"),
/// ]);
/// assert_eq!(meta.request_id.as_deref(), Some("req_1"));
/// assert_eq!(meta.rate_limits.tokens.remaining, Some(149_984));
/// assert_eq!(meta.rate_limits.tokens.reset, Some(Reset::After(Duration::from_secs(360))));
/// assert_eq!(meta.retry.after, Some(Duration::from_millis(1250)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseMeta {
    /// The id under which the vendor can find this request.
    pub request_id: Option<String>,
    /// How much is left.
    pub rate_limits: RateLimits,
    /// Whether and when to try again.
    pub retry: RetryAdvice,
}

impl ResponseMeta {
    /// Reads header pairs. Names match in any case, unknown ones are skipped, and of a repeated header the first
    /// readable value counts.
    #[must_use]
    pub fn parse<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut meta = Self::default();
        let mut retry = RetryHeaders::default();
        let mut request_id_rank = REQUEST_IDS.len();
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            let value = value.trim();
            if let Some(rank) = REQUEST_IDS.iter().position(|id| *id == name) {
                if rank < request_id_rank && !value.is_empty() {
                    request_id_rank = rank;
                    meta.request_id = Some(value.to_owned());
                }
            } else if let Some((bucket, field)) = meta.rate_limits.locate(&name) {
                field.read(bucket, value);
            } else {
                retry.read(&name, value);
            }
        }
        meta.retry = retry.advice();
        meta
    }
}

/// The rate limits of an account, as far as a response reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// The limit on the number of requests.
    pub requests: Bucket,
    /// Tokens of both kinds together.
    pub tokens: Bucket,
    /// Input tokens (Anthropic).
    pub input_tokens: Bucket,
    /// Output tokens (Anthropic).
    pub output_tokens: Bucket,
}

/// One limit: how much there is, how much is left, when it is full again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The most that can be used in one period.
    pub limit: Option<u64>,
    /// What can still be used in this period.
    pub remaining: Option<u64>,
    /// When the bucket is full again.
    pub reset: Option<Reset>,
}

/// When a limit is full again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    /// This long after the response.
    After(Duration),
    /// At this moment, an RFC 3339 time as the vendor sent it.
    At(String),
}

impl Reset {
    /// Says how long to wait at `now_unix_secs`, in whole seconds rounded up for a moment; nothing if the moment
    /// has passed. `None` if the moment is not an RFC 3339 time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use throughline_wire::http::Reset;
    ///
    /// let reset = Reset::At("2026-11-06T08:49:37Z".to_owned());
    /// assert_eq!(reset.wait(1_793_954_970), Some(Duration::from_secs(7)));
    /// assert_eq!(reset.wait(1_800_000_000), Some(Duration::ZERO));
    /// ```
    #[must_use]
    pub fn wait(&self, now_unix_secs: u64) -> Option<Duration> {
        match self {
            Self::After(wait) => Some(*wait),
            Self::At(time) => date::rfc3339(time).map(|at| date::wait(at, now_unix_secs)),
        }
    }

    fn parse(value: &str) -> Option<Self> {
        if let Some(wait) = duration(value) {
            Some(Self::After(wait))
        } else if let Some(wait) = decimal(value, NANOS_PER_SEC) {
            (wait <= LONGEST_BARE_WAIT).then_some(Self::After(wait))
        } else {
            date::rfc3339(value).map(|_| Self::At(value.to_owned()))
        }
    }
}

impl RateLimits {
    /// Finds the place that a header names: `x-ratelimit-FIELD-BUCKET` or `anthropic-ratelimit-BUCKET-FIELD`.
    fn locate(&mut self, name: &str) -> Option<(&mut Bucket, Field)> {
        let (bucket, field) = if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
            rest.rsplit_once('-')?
        } else {
            // Azure has been seen to write `x-rate-limit-reset-tokens` on a refusal.
            let rest = name
                .strip_prefix("x-ratelimit-")
                .or_else(|| name.strip_prefix("x-rate-limit-"))?;
            let (field, bucket) = rest.split_once('-')?;
            (bucket, field)
        };
        let bucket = match bucket {
            "requests" => &mut self.requests,
            "tokens" => &mut self.tokens,
            "input-tokens" => &mut self.input_tokens,
            "output-tokens" => &mut self.output_tokens,
            _ => return None,
        };
        let field = match field {
            "limit" => Field::Limit,
            "remaining" => Field::Remaining,
            "reset" => Field::Reset,
            _ => return None,
        };
        Some((bucket, field))
    }
}

#[derive(Clone, Copy)]
enum Field {
    Limit,
    Remaining,
    Reset,
}

impl Field {
    fn read(self, bucket: &mut Bucket, value: &str) {
        match self {
            Self::Limit => bucket.limit = bucket.limit.or_else(|| whole(value)),
            Self::Remaining => bucket.remaining = bucket.remaining.or_else(|| whole(value)),
            Self::Reset => bucket.reset = bucket.reset.take().or_else(|| Reset::parse(value)),
        }
    }
}

pub(super) const NANOS_PER_MILLI: u64 = 1_000_000;
pub(super) const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Reads a count. Only digits: services send -1 for "no such limit".
fn whole(value: &str) -> Option<u64> {
    value
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| value.parse().ok())?
}

/// Reads `12` or `12.5` as that many units of `unit_nanos`; no sign, no exponent.
pub(super) fn decimal(value: &str, unit_nanos: u64) -> Option<Duration> {
    let (units, fraction) = value.split_once('.').unwrap_or((value, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(units) || !digits(fraction) || units.len() + fraction.len() == 0 {
        return None;
    }
    let units: u64 = if units.is_empty() {
        0
    } else {
        units.parse().ok()?
    };
    // Nine places reach one nanosecond of a second; what follows is less than any timer can tell.
    let part = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |part, byte| part * 10 + u64::from(byte - b'0'));
    let unit = u128::from(unit_nanos);
    let nanos = u128::from(units) * unit + u128::from(part) * unit / u128::from(NANOS_PER_SEC);
    let secs = u64::try_from(nanos / u128::from(NANOS_PER_SEC)).ok()?;
    let rest = u32::try_from(nanos % u128::from(NANOS_PER_SEC)).ok()?;
    Some(Duration::new(secs, rest))
}

/// Reads a duration with units, such as `1m30s`, `6m0s`, `120ms` or `7.66s`.
fn duration(value: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = value;
    while !rest.is_empty() {
        let unit_start = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(unit_start);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_end);
        let unit_nanos = match unit {
            "d" => 24 * 3600 * NANOS_PER_SEC,
            "h" => 3600 * NANOS_PER_SEC,
            "m" => 60 * NANOS_PER_SEC,
            "s" => NANOS_PER_SEC,
            "ms" => NANOS_PER_MILLI,
            "us" | "µs" | "μs" => 1_000,
            "ns" => 1,
            _ => return None,
        };
        total = total.checked_add(decimal(number, unit_nanos)?)?;
        rest = next;
    }
    (!value.is_empty()).then_some(total)
}
