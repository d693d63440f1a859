//! One pass over a text that finds its names.

use crate::text;

/// What a name looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Components with slashes.
    Path,
    /// A file name.
    File,
    /// A word of a program: `camelCase`, `snake_case`, `Mixed2`.
    Identifier,
    /// A name of a part of something: `thing.part`.
    Dotted,
    /// Words with dashes or with slashes between them.
    Dashed,
    /// Digits and letters without sense: a hash or an id.
    Id,
    /// A plain word, which only counts where it is defined.
    Word,
}

/// One name of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    /// What identifies the name in other texts: of a path the last two components.
    pub(crate) key: &'a str,
    /// How it is written.
    pub(crate) shown: &'a str,
    pub(crate) kind: Kind,
    /// Whether the text defines it.
    pub(crate) defined: bool,
}

/// Bytes at the start and at the end of a text that are looked at.
const HEAD: usize = 512 * 1024;
const TAIL: usize = 128 * 1024;
/// Longer runs are data, not names.
const LONGEST: usize = 160;
const LONGEST_IDENTIFIER: usize = 80;

/// Whether a word comes before a name that it defines, in the languages that people write most.
fn defines(word: &str) -> bool {
    match word.len() {
        2 => word == "fn",
        3 => matches!(word, "def" | "var" | "let" | "mod"),
        4 => matches!(word, "func" | "type" | "enum" | "impl"),
        5 => matches!(word, "class" | "trait" | "const" | "table"),
        6 => matches!(word, "struct" | "module" | "record"),
        7 => word == "package",
        8 => matches!(word, "function" | "protocol"),
        9 => matches!(word, "interface" | "namespace"),
        _ => false,
    }
}

/// What a byte is to a name; a run of bytes is all of it together.
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDER: u8 = 8;
const SLASH: u8 = 16;
const DOT: u8 = 32;
const DASH: u8 = 64;
const SIGN: u8 = 128;

/// Most of a text is plain words, so what a byte is must cost next to nothing.
static CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDER,
            b'/' => SLASH,
            b'.' => DOT,
            b'-' => DASH,
            b'~' | b'@' => SIGN,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// Find the names of a text.
pub(crate) fn scan<'a>(text: &'a str, mut found: impl FnMut(Found<'a>)) {
    if text.len() <= HEAD + TAIL {
        return pass(text, &mut found);
    }
    pass(text::start(text, HEAD), &mut found);
    pass(text::end(text, TAIL), &mut found);
}

/// What a definition waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Nothing,
    NameUse,
    /// The name after a receiver in brackets.
    Receiver,
}

fn pass<'a>(text: &'a str, found: &mut impl FnMut(Found<'a>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut waits = Waits::Nothing;
    while at < bytes.len() {
        let gap = at;
        while at < bytes.len() && CLASS[usize::from(bytes[at])] == 0 {
            at += 1;
        }
        let from = at;
        let mut classes = 0;
        while at < bytes.len() {
            let class = CLASS[usize::from(bytes[at])];
            if class == 0 {
                break;
            }
            classes |= class;
            at += 1;
        }
        let length = at - from;
        if waits == Waits::Nothing {
            if classes == LOWER {
                if length <= 9 && defines(&text[from..at]) {
                    waits = Waits::NameUse;
                }
                continue;
            }
            if !(3..=LONGEST).contains(&length) {
                continue;
            }
            classify(&text[from..at], classes, false, found);
            continue;
        }
        waits = still_waits(waits, &bytes[gap..from]);
        let run = &text[from..at];
        // Prose has "let the" and "type of"; what is defined is followed by something of the language.
        let defined = waits == Waits::NameUse && length <= LONGEST && {
            run.starts_with(|first: char| first.is_ascii_uppercase()) || opens(&bytes[at..])
        };
        if waits == Waits::NameUse {
            waits = Waits::Nothing;
        }
        if !defined && classes == LOWER && defines(run) {
            waits = Waits::NameUse;
        } else if length <= LONGEST {
            classify(run, classes, defined, found);
        }
    }
}

/// Whether what lies between a defining word and the next run still lets that one be the name.
fn still_waits(waits: Waits, gap: &[u8]) -> Waits {
    if gap.contains(&b'\n') {
        return Waits::Nothing;
    }
    match waits {
        Waits::NameUse if gap.contains(&b'(') => Waits::Receiver,
        Waits::NameUse
            if gap
                .iter()
                .all(|byte| matches!(byte, b' ' | b'\t' | b'*' | b'<' | b'!')) =>
        {
            Waits::NameUse
        }
        Waits::Receiver if gap.contains(&b')') => Waits::NameUse,
        Waits::Receiver => Waits::Receiver,
        Waits::NameUse | Waits::Nothing => Waits::Nothing,
    }
}

/// Whether what follows a name opens its definition.
fn opens(rest: &[u8]) -> bool {
    let next = rest.iter().find(|byte| **byte != b' ');
    matches!(next, Some(b'(' | b'{' | b'<' | b':' | b'=' | b';' | b'['))
}

/// Without signs that end a sentence or begin an option.
fn trim(run: &str) -> &str {
    run.trim_end_matches(['.', '-', '/', '@', '~'])
        .trim_start_matches(['-', '@'])
}

fn classify<'a>(run: &'a str, classes: u8, defined: bool, found: &mut impl FnMut(Found<'a>)) {
    if classes & (SLASH | DOT | DASH | SIGN) == 0 {
        return word(run, defined, found);
    }
    let run = trim(run);
    if classes & SLASH != 0 && run.contains('/') {
        return path(run, defined, found);
    }
    if classes & DOT == 0 || !run.contains('.') {
        return word(run, defined, found);
    }
    if is_file(run) {
        return emit(run, run, Kind::File, defined, found);
    }
    if is_dotted(run) {
        emit(run, run, Kind::Dotted, false, found);
    }
    for part in run.split('.') {
        word(part, defined, found);
    }
}

/// Whether it is words of a program with dots between them.
fn is_dotted(run: &str) -> bool {
    let named = |part: &str| {
        part.len() > 1
            && part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    run.len() <= 60 && run.split('.').all(named)
}

fn path<'a>(run: &'a str, defined: bool, found: &mut impl FnMut(Found<'a>)) {
    let mut slashes = run.rmatch_indices('/').map(|(place, _)| place);
    let last = slashes.next().unwrap_or_default();
    let key = match slashes.next() {
        Some(place) => &run[place + 1..],
        None => run,
    };
    let file = &run[last + 1..];
    let parent = key.split('/').next().unwrap_or_default();
    let letters = |text: &str| text.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters(file) == 0 || (parent.is_empty() && !is_file(file) && file.len() < 4) {
        // Fractions, dates and options.
        for part in run.split('/') {
            word(part, defined, found);
        }
        return;
    }
    // People write `either/or`; paths begin at a root, go deeper, or end in a name that looks like one.
    let rooted = run.starts_with(['/', '.', '~']) || key.len() < run.len();
    let telling = file
        .bytes()
        .any(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-'))
        || hump(file);
    let kind = if rooted || telling {
        Kind::Path
    } else {
        Kind::Dashed
    };
    emit(key.trim_start_matches('/'), run, kind, defined, found);
}

/// Whether upper case begins inside of a word.
fn hump(word: &str) -> bool {
    word.as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// Whether it is a name with an ending of letters, as files have.
fn is_file(run: &str) -> bool {
    let Some((stem, ending)) = run.rsplit_once('.') else {
        return false;
    };
    let bytes = ending.as_bytes();
    (1..=5).contains(&bytes.len())
        && bytes[0].is_ascii_lowercase()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && stem.bytes().any(|byte| byte.is_ascii_alphabetic())
        && stem.len() > 1
}

fn word<'a>(run: &'a str, defined: bool, found: &mut impl FnMut(Found<'a>)) {
    let run = run.trim_matches(['-', '@', '~']);
    if run.len() < 3 || run.len() > LONGEST_IDENTIFIER {
        return;
    }
    let mut upper = 0;
    let mut lower = 0;
    let mut digits = 0;
    let mut hump = false;
    let mut dash = 0;
    let mut classes = 0;
    let mut before = 0u8;
    for byte in run.bytes() {
        let class = CLASS[usize::from(byte)];
        classes |= class;
        upper += usize::from(class == UPPER);
        lower += usize::from(class == LOWER);
        digits += usize::from(class == DIGIT);
        dash += usize::from(class == DASH);
        hump |= class == UPPER && before == LOWER;
        before = class;
    }
    // A leading underscore alone joins nothing.
    let under = classes & UNDER != 0 && run.trim_start_matches('_').contains('_');
    let letters = upper + lower;
    // Durations and sizes: a number and its unit.
    let first = run.bytes().next().unwrap_or_default();
    if first.is_ascii_digit() && letters <= 2 && digits + letters == run.len() && digits <= 5 {
        return;
    }
    let kind = if dash > 0 {
        if letters == 0 && run.len() < 8 {
            return;
        }
        if digits > 0 && run.len() >= 16 && is_hex(run) {
            Kind::Id
        } else {
            Kind::Dashed
        }
    } else if letters == 0 {
        // Line numbers and sizes are no names; long numbers are.
        if digits < 6 {
            return;
        }
        Kind::Id
    } else if digits > 0 && run.len() >= 7 && is_hex(run) {
        Kind::Id
    } else if hump
        || under
        || (digits > 0 && run.len() >= 4)
        || (upper > 1 && lower > 1 && run.len() >= 5)
    {
        Kind::Identifier
    } else if defined {
        Kind::Word
    } else {
        return;
    };
    emit(run, run, kind, defined, found);
}

fn is_hex(run: &str) -> bool {
    run.bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f' | b'-'))
}

fn emit<'a>(
    key: &'a str,
    shown: &'a str,
    kind: Kind,
    defined: bool,
    found: &mut impl FnMut(Found<'a>),
) {
    found(Found {
        key,
        shown,
        kind,
        defined,
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, scan};

    fn names(text: &str) -> Vec<(&str, Kind)> {
        let mut all = Vec::new();
        scan(text, |name| all.push((name.key, name.kind)));
        all
    }

    #[test]
    fn paths_are_known_by_their_last_two_components() {
        assert_eq!(
            names("see /srv/app/src/main.rs, and src/main.rs."),
            [("src/main.rs", Kind::Path), ("src/main.rs", Kind::Path)]
        );
        assert_eq!(names("1/2 and/or 3/4"), [("and/or", Kind::Dashed)]);
    }

    #[test]
    fn names_of_programs_are_told_from_words() {
        assert_eq!(
            names("the parseHeader of max_size in main.rs fails at d41d8cd98f00, see T100 now"),
            [
                ("parseHeader", Kind::Identifier),
                ("max_size", Kind::Identifier),
                ("main.rs", Kind::File),
                ("d41d8cd98f00", Kind::Id),
                ("T100", Kind::Identifier),
            ]
        );
    }

    #[test]
    fn what_is_defined_is_a_name_even_if_it_is_a_word() {
        let mut defined = Vec::new();
        let text = "fn walk() {}\nfunc (s *Store) Open() error {\nclass Tide:\n  x = type(y)";
        scan(text, |name| {
            if name.defined {
                defined.push(name.key);
            }
        });
        assert_eq!(defined, ["walk", "Open", "Tide"]);
    }
}
