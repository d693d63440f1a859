//! A long result in part: its head, its tail, and lines about errors.

use throughline_model::Outcome;

use crate::facts::errors;
use crate::facts::outcome::mark;
use crate::names;
use crate::text;
use crate::tokens;

/// The text in about `cap` units: most of it head, then error lines of the middle, then tail. The mark for
/// what is left out names an outcome that is not `ok`.
pub(crate) fn shorten(whole: &str, cap: u64, seq: u64, outcome: Outcome) -> String {
    let units = u64::from(tokens::text_units(whole)).max(1);
    // The mark takes some of it.
    let cap = cap.saturating_sub(24).max(16);
    if units <= cap {
        return whole.to_owned();
    }
    let bytes = |units_wanted: u64| -> usize {
        let bytes = (whole.len() as u128 * u128::from(units_wanted)) / u128::from(units);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    };
    let head = at_line_end(text::start(whole, bytes(cap * 50 / 100)));
    let tail = at_line_start(text::end(whole, bytes(cap * 25 / 100)));
    let middle = whole
        .get(head.len()..whole.len().saturating_sub(tail.len()))
        .unwrap_or_default();
    let mut found = errors::lines(middle, 3, 160);
    let mut room = bytes(cap * 10 / 100);
    found.retain(|line| {
        let fits = line.len() <= room;
        room = room.saturating_sub(line.len());
        fits
    });
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
    let names = names::salient(middle, cap * 15 / 100);
    if !names.is_empty() {
        out.push_str("[names left out: ");
        out.push_str(&names.join(", "));
        out.push_str("]\n");
    }
    out.push_str(tail);
    out
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
