//! Times for people, and times that people write.

use throughline_store::Millis;

const SECOND: Millis = 1000;
const DAY: Millis = 86_400 * SECOND;

/// A time on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A time in UTC, in milliseconds since 1970.
    At(Millis),
    /// So long before now.
    Ago(Millis),
}

impl Moment {
    /// `2026-11-15`, `2026-11-15T05:47:52Z` with or without seconds and `Z` and with a space for the `T`, or
    /// `90s`, `30m`, `2h`, `7d`, `3w` ago.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some((number, unit)) = text
            .char_indices()
            .next_back()
            .map(|(at, c)| (&text[..at], c))
            && let Some(unit) = unit_of(unit)
        {
            return Some(Self::Ago(whole(number)?.checked_mul(unit)?));
        }
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, time.strip_suffix('Z').unwrap_or(time)),
            None => (text, "00:00"),
        };
        let mut date = date.splitn(3, '-').map(whole);
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let mut time = time.splitn(3, ':').map(whole);
        let (hour, minute) = (time.next()??, time.next()??);
        let second = time.next().unwrap_or(Some(0))?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let day = days_before(year, month)? + day.checked_sub(1)?;
        // A day that its month does not have is one of the next month.
        let (found_year, found_month, _) = civil(day);
        let at = day * DAY + ((hour * 60 + minute) * 60 + second) * SECOND;
        ((found_year, found_month) == (year, month)).then_some(Self::At(at))
    }

    /// The time that it is, if it is `now`.
    pub(crate) fn at(self, now: Millis) -> Millis {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.saturating_sub(ago),
        }
    }
}

fn unit_of(letter: char) -> Option<Millis> {
    match letter {
        's' => Some(SECOND),
        'm' => Some(60 * SECOND),
        'h' => Some(3600 * SECOND),
        'd' => Some(DAY),
        'w' => Some(7 * DAY),
        _ => None,
    }
}

/// A number of digits alone, and of no more than a time has.
fn whole(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let digits = Some(digits).filter(|digits| is_number && (1..=9).contains(&digits.len()))?;
    digits.parse().ok()
}

/// The days from 1970 to the first of a month; the reverse of [`civil`].
fn days_before(year: u64, month: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leaps = year / 4 - year / 100 + year / 400;
    (365 * year + leaps + (153 * month + 2) / 5).checked_sub(719_468)
}

/// A time as `2026-11-15 05:47:52`, in UTC.
pub(crate) fn format_utc(millis: Millis) -> String {
    let seconds = millis / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// The date of a day since 1970, in years that start in March so that leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + carry, month, date)
}

#[cfg(test)]
mod tests {
    use super::{Moment, format_utc};

    #[test]
    fn times_are_read_as_they_are_written_and_nonsense_is_refused() {
        for day in (0..60_000).step_by(13) {
            let at = day * 86_400_000 + 5_025_000;
            let text = format_utc(at);
            assert_eq!(Moment::parse(&text), Some(Moment::At(at)), "{text}");
            let text = format!("{}Z", text.replace(' ', "T"));
            assert_eq!(Moment::parse(&text), Some(Moment::At(at)), "{text}");
        }
        for (text, expected) in [
            ("2026-11-15", Moment::At(1_794_700_800_000)),
            ("2026-11-15T00:01", Moment::At(1_794_700_860_000)),
            ("2024-02-29", Moment::At(1_709_164_800_000)),
            ("90s", Moment::Ago(90_000)),
            ("2h", Moment::Ago(7_200_000)),
            ("7d", Moment::Ago(604_800_000)),
        ] {
            assert_eq!(Moment::parse(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "d",
            "-1d",
            "+1d",
            "1.5h",
            "7 d",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-02-29",
            "2026-11-31",
            "2026-00-10",
            "2026-11-00",
            "1969-12-31",
            "2026-11-15T24:00",
            "2026-11-15T10:60",
            "2026-11-15T10",
            "2026-11-15T10:00:00+01:00",
            "99999999999d",
            "２h",
            "2026-11-15é",
        ] {
            assert_eq!(Moment::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Moment::Ago(5).at(3), 0);
    }

    #[test]
    fn times_are_written_as_dates() {
        for (millis, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400_000, "2000-02-29 00:00:00"),
            (951_868_799_999, "2000-02-29 23:59:59"),
            (951_868_800_000, "2000-03-01 00:00:00"),
            (1_794_700_800_000, "2026-11-15 00:00:00"),
            (4_107_542_399_000, "2100-02-28 23:59:59"),
            (4_107_542_400_000, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(format_utc(millis), expected);
        }
    }
}
