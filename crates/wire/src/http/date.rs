//! The two date forms that headers use, as seconds since 1970.

use std::time::Duration;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The time from `now` to `at`; nothing if `at` has passed.
pub(super) fn wait(at: i64, now_unix_secs: u64) -> Duration {
    Duration::from_secs(u64::try_from(at).unwrap_or(0).saturating_sub(now_unix_secs))
}

/// Reads the HTTP date that servers must send: `Sun, 06 Nov 1994 08:49:37 GMT`. The weekday must be one but is
/// not compared with the date.
pub(super) fn imf_fixdate(text: &str) -> Option<i64> {
    let (weekday, rest) = text.split_once(", ")?;
    let (date, time) = rest.strip_suffix(" GMT")?.split_at_checked(11)?;
    let (day, month_year) = date.split_at_checked(2)?;
    let (month, year) = month_year.strip_prefix(' ')?.split_once(' ')?;
    DAYS.contains(&weekday).then_some(())?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let days = days_since_1970(
        digits::<4>(year)?,
        i64::try_from(month).ok()?,
        digits::<2>(day)?,
    )?;
    Some(days * 86_400 + seconds_of_day(time.strip_prefix(' ')?)?)
}

/// Reads an internet date and time: `2026-11-06T08:49:37Z`, with any fraction and offset. A fraction counts as a
/// whole second, so that a wait never ends too early.
pub(super) fn rfc3339(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (year, month_day) = date.split_once('-')?;
    let (month, day) = month_day.split_once('-')?;
    let days = days_since_1970(digits::<4>(year)?, digits::<2>(month)?, digits::<2>(day)?)?;

    let (time, zone) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let (fraction, zone) = match zone.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
        None => ("0", zone),
    };
    if fraction.is_empty() {
        return None;
    }
    let round_up = i64::from(fraction.bytes().any(|byte| byte != b'0'));
    Some(days * 86_400 + seconds_of_day(time)? + round_up - offset(zone)?)
}

fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let hours = digits::<2>(hours).filter(|hours| *hours < 24)?;
    let minutes = digits::<2>(minutes).filter(|minutes| *minutes < 60)?;
    Some(sign * (hours * 3600 + minutes * 60))
}

fn seconds_of_day(time: &str) -> Option<i64> {
    let (hours, rest) = time.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (hours, minutes, seconds) = (
        digits::<2>(hours)?,
        digits::<2>(minutes)?,
        digits::<2>(seconds)?,
    );
    // 60 is a leap second.
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Reads exactly `N` digits.
fn digits<const N: usize>(text: &str) -> Option<i64> {
    (text.len() == N && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [
        31,
        if leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let month = usize::try_from(month).ok()?.checked_sub(1)?;
    if !(1..=*lengths.get(month)?).contains(&day) {
        return None;
    }
    // Leap days from year zero up to this year's first day. 719 528 is the count of days before 1970.
    let past = (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
    let before_year = year * 365 + past;
    Some(before_year - 719_528 + lengths[..month].iter().sum::<i64>() + day - 1)
}
