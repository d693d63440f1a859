use std::time::Duration;

use super::{Bucket, RateLimits, Reset, ResponseMeta, RetryAdvice, date, retryable};

fn after_ms(millis: u64) -> Option<Reset> {
    Some(Reset::After(Duration::from_millis(millis)))
}

fn reset(value: &str) -> Option<Reset> {
    ResponseMeta::parse([("x-ratelimit-reset-requests", value)])
        .rate_limits
        .requests
        .reset
}

fn retry(headers: &[(&str, &str)]) -> RetryAdvice {
    ResponseMeta::parse(headers.iter().copied()).retry
}

#[test]
fn openai_headers_are_read() {
    let meta = ResponseMeta::parse([
        ("content-type", "application/json"),
        ("X-RateLimit-Limit-Requests", "500"),
        ("x-ratelimit-remaining-requests", "499"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", " 29000 "),
        ("x-ratelimit-reset-tokens", "1m30s"),
        ("x-request-id", "req_abc"),
        ("retry-after", "2"),
        ("x-should-retry", "true"),
    ]);
    assert_eq!(
        meta,
        ResponseMeta {
            request_id: Some("req_abc".to_owned()),
            rate_limits: RateLimits {
                requests: Bucket {
                    limit: Some(500),
                    remaining: Some(499),
                    reset: after_ms(120)
                },
                tokens: Bucket {
                    limit: Some(30_000),
                    remaining: Some(29_000),
                    reset: after_ms(90_000)
                },
                ..RateLimits::default()
            },
            retry: RetryAdvice {
                after: Some(Duration::from_secs(2)),
                at: None,
                should_retry: Some(true)
            },
        }
    );
}

#[test]
fn anthropic_headers_are_read() {
    let time = "2026-11-06T08:49:37Z";
    let bucket = |limit, remaining| Bucket {
        limit: Some(limit),
        remaining: Some(remaining),
        reset: Some(Reset::At(time.to_owned())),
    };
    let meta = ResponseMeta::parse([
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", time),
        ("anthropic-ratelimit-tokens-limit", "90000"),
        ("anthropic-ratelimit-tokens-remaining", "80000"),
        ("anthropic-ratelimit-tokens-reset", time),
        ("anthropic-ratelimit-input-tokens-limit", "60000"),
        ("anthropic-ratelimit-input-tokens-remaining", "50000"),
        ("anthropic-ratelimit-input-tokens-reset", time),
        ("Anthropic-RateLimit-Output-Tokens-Limit", "30000"),
        ("anthropic-ratelimit-output-tokens-remaining", "20000"),
        ("anthropic-ratelimit-output-tokens-reset", time),
        ("request-id", "req_011"),
    ]);
    assert_eq!(
        meta,
        ResponseMeta {
            request_id: Some("req_011".to_owned()),
            rate_limits: RateLimits {
                requests: bucket(50, 49),
                tokens: bucket(90_000, 80_000),
                input_tokens: bucket(60_000, 50_000),
                output_tokens: bucket(30_000, 20_000),
            },
            retry: RetryAdvice::default(),
        }
    );
}

#[test]
fn azure_headers_are_read() {
    let meta = ResponseMeta::parse([
        ("apim-request-id", "apim-1"),
        ("x-ratelimit-limit-tokens", "-1"),
        ("x-ratelimit-remaining-requests", "79"),
        ("x-ratelimit-reset-requests", "3"),
        ("x-rate-limit-reset-tokens", "55"),
        ("retry-after", "4"),
        ("retry-after-ms", "3250"),
    ]);
    assert_eq!(
        meta,
        ResponseMeta {
            request_id: Some("apim-1".to_owned()),
            rate_limits: RateLimits {
                requests: Bucket {
                    limit: None,
                    remaining: Some(79),
                    reset: after_ms(3_000)
                },
                tokens: Bucket {
                    limit: None,
                    remaining: None,
                    reset: after_ms(55_000)
                },
                ..RateLimits::default()
            },
            retry: RetryAdvice {
                after: Some(Duration::from_millis(3250)),
                ..RetryAdvice::default()
            },
        }
    );
}

#[test]
fn the_services_own_request_id_wins_over_the_gateways() {
    let ids = [
        ("x-ms-request-id", "d"),
        ("apim-request-id", "c"),
        ("x-request-id", ""),
        ("request-id", "b"),
        ("X-Request-ID", "a"),
    ];
    for (count, best) in [(1, "d"), (2, "c"), (3, "c"), (4, "b"), (5, "a")] {
        let ahead = ResponseMeta::parse(ids[..count].iter().copied());
        let back = ResponseMeta::parse(ids[..count].iter().rev().copied());
        assert_eq!(ahead.request_id.as_deref(), Some(best));
        assert_eq!(back.request_id.as_deref(), Some(best));
    }
}

#[test]
fn resets_are_read_in_every_form_seen() {
    for (value, millis) in [
        ("6s", 6_000),
        ("1m30s", 90_000),
        ("6m0s", 360_000),
        ("120ms", 120),
        ("1h", 3_600_000),
        ("1h0m0.5s", 3_600_500),
        ("7.66s", 7_660),
        ("2m59.56s", 179_560),
        ("1d2h", 93_600_000),
        ("1500us", 1),
        ("0s", 0),
        ("0", 0),
        ("38", 38_000),
        ("0.25", 250),
    ] {
        let Some(Reset::After(wait)) = reset(value) else {
            panic!("{value:?} was not read")
        };
        assert_eq!(wait.as_millis(), millis, "{value:?}");
    }
    let moment = "2026-04-14T17:45:00Z";
    assert_eq!(reset(moment), Some(Reset::At(moment.to_owned())));
}

#[test]
fn resets_that_cannot_be_read_are_absent() {
    let huge = "9".repeat(30);
    let huge_unit = format!("{huge}s");
    for value in [
        "",
        "s",
        "ms",
        ".",
        ".s",
        "-1",
        "-6s",
        "+6s",
        "6x",
        "6 s",
        "1m 30s",
        "1m30",
        "1..5s",
        "1.5.5s",
        "1e3",
        "inf",
        "NaN",
        "é",
        "6é",
        "soon",
        "1733356800",
        &huge,
        &huge_unit,
        "213503982334601d1d",
        "2026-13-01T00:00:00Z",
        "2026-11-06T08:49:37",
    ] {
        assert_eq!(reset(value), None, "{value:?}");
    }
}

#[test]
fn other_limits_are_not_mistaken_for_these() {
    let meta = ResponseMeta::parse([
        ("x-ratelimit-limit-project-tokens", "1"),
        ("x-ratelimit-limit-tokens-minute", "2"),
        ("x-ratelimit-renewalperiod-tokens", "3"),
        ("x-ratelimit-limit", "4"),
        ("x-ratelimit-reset", "5"),
        ("anthropic-ratelimit-unified-limit", "6"),
        ("anthropic-ratelimit-requests", "7"),
        ("anthropic-ratelimit-", "8"),
        ("", "9"),
    ]);
    assert_eq!(meta, ResponseMeta::default());
}

#[test]
fn the_first_readable_value_counts() {
    let meta = ResponseMeta::parse([
        ("x-ratelimit-limit-tokens", "many"),
        ("x-ratelimit-limit-tokens", "1"),
        ("x-ratelimit-limit-tokens", "2"),
    ]);
    assert_eq!(meta.rate_limits.tokens.limit, Some(1));
    let advice = retry(&[
        ("retry-after-ms", "soon"),
        ("retry-after-ms", "1"),
        ("retry-after-ms", "2"),
        ("x-should-retry", "perhaps"),
        ("x-should-retry", "false"),
        ("x-should-retry", "true"),
    ]);
    let first = RetryAdvice {
        after: Some(Duration::from_millis(1)),
        at: None,
        should_retry: Some(false),
    };
    assert_eq!(advice, first);
}

#[test]
fn milliseconds_win_over_seconds_in_any_order_unless_unreadable() {
    let ms = ("retry-after-ms", "1500");
    let secs = ("retry-after", "2");
    let wait = |headers: &[_]| retry(headers).after;
    assert_eq!(wait(&[ms, secs]), Some(Duration::from_millis(1500)));
    assert_eq!(wait(&[secs, ms]), Some(Duration::from_millis(1500)));
    assert_eq!(
        wait(&[("retry-after-ms", "soon"), secs]),
        Some(Duration::from_secs(2))
    );
    assert_eq!(
        wait(&[secs, ("retry-after-ms", "-5")]),
        Some(Duration::from_secs(2))
    );
}

#[test]
fn retry_after_may_be_fractional() {
    assert_eq!(
        retry(&[("Retry-After", "0.75")]).after,
        Some(Duration::from_millis(750))
    );
    assert_eq!(
        retry(&[("retry-after-ms", "0.5")]).after,
        Some(Duration::from_micros(500))
    );
    assert_eq!(
        retry(&[("retry-after", ".5")]).after,
        Some(Duration::from_millis(500))
    );
    assert_eq!(retry(&[("retry-after", "0")]).after, Some(Duration::ZERO));
}

#[test]
fn retry_advice_that_cannot_be_read_is_absent() {
    for value in [
        "",
        "-1",
        "1s",
        "1e9",
        "inf",
        "18446744073709551616",
        "tomorrow",
        "Fri, 06 Nov 2026",
        "é, é GMT",
    ] {
        let headers = [
            ("retry-after", value),
            ("retry-after-ms", value),
            ("x-should-retry", value),
        ];
        assert_eq!(retry(&headers), RetryAdvice::default(), "{value:?}");
    }
}

#[test]
fn a_date_stays_a_date_until_someone_has_a_clock() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let advice = retry(&[("retry-after", date)]);
    assert_eq!(
        advice,
        RetryAdvice {
            at: Some(date.to_owned()),
            ..RetryAdvice::default()
        }
    );
    assert_eq!(advice.wait(784_111_777 - 30), Some(Duration::from_secs(30)));
    assert_eq!(advice.wait(784_111_777), Some(Duration::ZERO));
    assert_eq!(advice.wait(u64::MAX), Some(Duration::ZERO));
    let both = retry(&[("retry-after", date), ("retry-after-ms", "10")]);
    assert_eq!(both.wait(0), Some(Duration::from_millis(10)));
    assert_eq!(RetryAdvice::default().wait(0), None);
}

#[test]
fn http_dates_are_read_and_others_are_not() {
    assert_eq!(date::imf_fixdate("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    assert_eq!(
        date::imf_fixdate("Tue, 29 Feb 2000 12:00:00 GMT"),
        Some(951_825_600)
    );
    assert_eq!(date::imf_fixdate("Wed, 31 Dec 1969 23:59:59 GMT"), Some(-1));
    assert_eq!(
        date::imf_fixdate("Fri, 31 Dec 9999 23:59:60 GMT"),
        Some(253_402_300_800)
    );
    for text in [
        "Thu, 29 Feb 2001 12:00:00 GMT",
        "Thu, 29 Feb 1900 12:00:00 GMT",
        "Thu, 00 Jan 1970 00:00:00 GMT",
        "Thu, 01 jan 1970 00:00:00 GMT",
        "Thu, 1 Jan 1970 00:00:00 GMT",
        "Thu, 01 Jan 1970 24:00:00 GMT",
        "Thu, 01 Jan 1970 00:60:00 GMT",
        "Thu, 01 Jan 1970 00:00:61 GMT",
        "Thu, 01 Jan 1970 00:00:00 UTC",
        "Thu, 01 Jan 1970  00:00:00 GMT",
        "Thu, 01 Jan +970 00:00:00 GMT",
        "Xxx, 01 Jan 1970 00:00:00 GMT",
        "Thursday, 01-Jan-70 00:00:00 GMT",
        "Thu Jan  1 00:00:00 1970",
    ] {
        assert_eq!(date::imf_fixdate(text), None, "{text:?}");
    }
}

#[test]
fn internet_dates_are_read_and_others_are_not() {
    let moment = 1_793_954_977;
    for text in [
        "2026-11-06T08:49:37Z",
        "2026-11-06t08:49:37z",
        "2026-11-06 08:49:37+00:00",
        "2026-11-06T08:49:36.001Z",
        "2026-11-06T08:49:37.000-00:00",
        "2026-11-06T10:49:37+02:00",
        "2026-11-05T23:19:37-09:30",
    ] {
        assert_eq!(date::rfc3339(text), Some(moment), "{text:?}");
    }
    for text in [
        "",
        "2026-11-06",
        "2026-11-06T08:49:37",
        "2026-11-06T08:49:37.Z",
        "2026-11-06T08:49:37.5",
        "2026-11-06T08:49:37é",
        "2026-11-06T08:49:37+24:00",
        "2026-11-06T08:49:37+0100",
        "2026-11-06T08:49:37Zulu",
        "2026-11-31T08:49:37Z",
        "2026-00-01T08:49:37Z",
        "26-11-2006T08:49:37Z",
        "2026-1-106T08:49:37Z",
        "202é-11-06T08:49:37Z",
    ] {
        assert_eq!(date::rfc3339(text), None, "{text:?}");
    }
}

#[test]
fn days_count_up_one_by_one() {
    let mut expected = date::rfc3339("1899-12-31T00:00:00Z").unwrap();
    for year in 1900..2101 {
        for month in 1..=12 {
            for day in 1..=31 {
                if let Some(midnight) =
                    date::rfc3339(&format!("{year}-{month:02}-{day:02}T00:00:00Z"))
                {
                    expected += 86_400;
                    assert_eq!(midnight, expected, "{year}-{month}-{day}");
                }
            }
        }
    }
    assert_eq!(expected, 4_133_894_400, "31 December 2100");
}

#[test]
fn a_moment_that_is_no_date_gives_no_wait() {
    assert_eq!(Reset::At("soon".to_owned()).wait(0), None);
    let advice = RetryAdvice {
        at: Some("soon".to_owned()),
        ..RetryAdvice::default()
    };
    assert_eq!(advice.wait(0), None);
}

#[test]
fn the_status_decides_unless_the_vendor_does() {
    let plain = RetryAdvice::default();
    let says = |should_retry| RetryAdvice {
        should_retry: Some(should_retry),
        ..RetryAdvice::default()
    };
    let by_status: Vec<u16> = (100..=700)
        .filter(|status| retryable(*status, &plain))
        .collect();
    let expected: Vec<u16> = [408, 409, 429].into_iter().chain(500..=599).collect();
    assert_eq!(by_status, expected);
    assert!(retryable(400, &says(true)));
    assert!(!retryable(503, &says(false)));
    assert_eq!(
        retry(&[("X-Should-Retry", " FALSE ")]).should_retry,
        Some(false)
    );
}
