//! How likely it is that a name is needed again.

use super::entry::{NameEntry, NameUse};
use super::scan::Kind;

/// What a name is worth to a digest, in points; only the order among names matters.
///
/// A name is used again the more likely the rarer it looks (a path more than a word), the more the
/// model has used or spoken of it, if the text defines it, and the shorter ago it was seen.
pub(crate) fn worth(entry: &NameEntry, name: NameUse, calls: u32) -> u64 {
    let base = base(entry.kind);
    let mut points = base * 100;
    let mut add = |percent: u64| points += base * percent;
    if entry.in_arguments > 0 {
        add(100 + 20 * u64::from(entry.in_arguments.min(5)));
    }
    if entry.in_prose > 0 {
        add(80 + 20 * u64::from(entry.in_prose.min(5)));
    }
    if name.defined {
        add(70);
    } else if entry.defined {
        add(30);
    }
    add(15 * u64::from(name.times.min(6) - 1).min(5));
    add(25 * u64::from(entry.messages.min(5).saturating_sub(1)));
    // What was seen long ago is needed less often.
    let age = u64::from(calls.saturating_sub(entry.last_call));
    points * 60 / (60 + age)
}

/// What a name is worth by its looks alone.
pub(crate) fn base(kind: Kind) -> u64 {
    match kind {
        Kind::Path => 60,
        Kind::File => 50,
        Kind::Identifier => 26,
        Kind::Id => 20,
        Kind::Dotted => 16,
        Kind::Dashed => 14,
        Kind::Word => 12,
    }
}
