//! A long result in part: its head, its tail, and lines about errors.

use throughline_model::Outcome;

use crate::facts::errors;
use crate::facts::outcome::mark;
use crate::names;
use crate::text;
use crate::tokens;
use crate::trials::planted;

/// Characters of a line about an error.
const ERROR_LINE: usize = 160;

/// The text in `cap` units: most of it head, then error lines of the middle, then tail. The mark for
/// what is left out names an outcome that is not `ok`. Of an output that says that something failed,
/// the first line that says why is always there.
pub(crate) fn shorten(whole: &str, cap: u64, seq: u64, outcome: Outcome) -> String {
    let units = u64::from(tokens::text_units(whole)).max(1);
    if units <= cap {
        return whole.to_owned();
    }
    let error = first_error(whole, outcome);
    // The mark takes some of it.
    let mut room = cap.saturating_sub(24).max(16);
    loop {
        let mut parts = Parts {
            whole,
            units,
            room,
            more: 0,
            error: error.as_deref(),
        };
        let short = parts.text(seq, outcome);
        let size = u64::from(tokens::text_units(&short));
        if size <= cap {
            // Where there are few names and errors there is more of the head and the tail.
            parts.more = cap - size;
            let more = parts.text(seq, outcome);
            let fits = u64::from(tokens::text_units(&more)) <= cap;
            return if fits { more } else { short };
        }
        if room <= 16 {
            return short;
        }
        // Pieces of a text do not have the same size everywhere.
        room = (room * cap / size).min(room - 1).max(16);
    }
}

/// The first line of a failure that says why.
fn first_error(whole: &str, outcome: Outcome) -> Option<String> {
    let failed = match outcome {
        Outcome::Error | Outcome::Unknown => true,
        Outcome::Ok => {
            errors::exit_code(whole).is_some_and(|code| code != 0) || errors::looks_failed(whole)
        }
        Outcome::Rejected
        | Outcome::Expired
        | Outcome::Withdrawn
        | Outcome::Limit
        | Outcome::Terminated
        | Outcome::Cancelled => false,
    };
    let found = failed && !planted("compact-short-without-error");
    found.then(|| errors::lines(whole, 1, ERROR_LINE).pop())?
}

/// A text that is shown in part.
struct Parts<'a> {
    whole: &'a str,
    units: u64,
    /// Units of what is shown of it.
    room: u64,
    /// Units of the head and the tail beside that.
    more: u64,
    /// A line that must be among it.
    error: Option<&'a str>,
}

impl Parts<'_> {
    /// About how many bytes have so many units.
    fn bytes(&self, units: u64) -> usize {
        let bytes = (self.whole.len() as u128 * u128::from(units)) / u128::from(self.units);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn text(&self, seq: u64, outcome: Outcome) -> String {
        let whole = self.whole;
        let error = self.error.map_or(0, |line| tokens::text_units(line).into());
        let room = self.room.saturating_sub(error).max(8);
        let head = at_line_end(text::start(
            whole,
            self.bytes(room * 50 / 100 + self.more * 2 / 3),
        ));
        let tail = at_line_start(text::end(
            whole,
            self.bytes(room * 25 / 100 + self.more / 4),
        ));
        let middle = whole
            .get(head.len()..whole.len().saturating_sub(tail.len()))
            .unwrap_or_default();
        let mut found = errors::lines(middle, 3, ERROR_LINE);
        let mut left = self.bytes(room * 10 / 100);
        found.retain(|line| {
            let fits = line.len() <= left || self.error == Some(line);
            left = left.saturating_sub(line.len());
            fits
        });
        let is_shown = |line: &str| {
            let has = |part: &str| {
                part.lines()
                    .any(|one| text::one_line(one, ERROR_LINE) == line)
            };
            has(head) || has(tail) || found.iter().any(|one| one == line)
        };
        if let Some(error) = self.error.filter(|error| !is_shown(error)) {
            // It began in the head, or stands behind others of the middle.
            found.insert(0, error.to_owned());
        }
        let left_out = text::lines(middle);
        let mut out = String::with_capacity(head.len() + tail.len() + 256);
        out.push_str(head);
        if !head.ends_with('\n') {
            out.push('\n');
        }
        let lines = if left_out == 1 { "line" } else { "lines" };
        let ended = mark(outcome);
        out.push_str(&format!(
            "[… {left_out} {lines} left out, all of it is #{seq}{ended}]\n"
        ));
        for line in found {
            out.push_str(&line);
            out.push('\n');
        }
        let names = names::salient(middle, room * 15 / 100);
        if !names.is_empty() {
            out.push_str("[names left out: ");
            out.push_str(&names.join(", "));
            out.push_str("]\n");
        }
        out.push_str(tail);
        out
    }
}

/// Up to the last line break, if there is one near the end.
fn at_line_end(text: &str) -> &str {
    match text.rfind('\n') {
        Some(place) if place * 4 >= text.len() * 3 => &text[..=place],
        _ => text,
    }
}

/// From the first line break, if there is one near the start.
fn at_line_start(text: &str) -> &str {
    match text.find('\n') {
        Some(place) if place * 4 <= text.len() => &text[place + 1..],
        _ => text,
    }
}
