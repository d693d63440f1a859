//! Times for people.

use throughline_store::Millis;

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
    use super::format_utc;

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
