//! Texts in units: one pass, no vocabulary.
//!
//! Vocabularies differ, but they cut texts alike: at blanks, at changes between letters, digits and
//! signs, at capitals inside a word. Such a run of characters weighs what its class, its length and
//! its neighbours say.
//!
//! Most words of French or Polish have no marked letter, and cost more than English words all the
//! same. Words are therefore weighed in blocks: the more of a block is marked, the more all of it
//! weighs as words of that language do.

use super::class::{ASCII, Class, Kind, beyond_ascii};
use super::languages;
use super::pieces::{ONE, Pieces, part};

/// About how many tokens a text has.
///
/// ```
/// use throughline_model::tokens::text_units;
///
/// assert_eq!(text_units(""), 0);
/// assert_eq!(text_units("潮汐在十点转向"), 5);
/// assert_eq!(text_units("fn high_water(level: f64) -> f64 {"), 12);
/// ```
pub fn text_units(text: &str) -> u32 {
    pieces(text).units()
}

/// The pieces of a text, counted.
pub(super) fn pieces(text: &str) -> Pieces {
    let mut pass = Pass::new(text.as_bytes());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let from = at;
        if byte.is_ascii() {
            let kind = ASCII[usize::from(byte)];
            at += 1;
            while let Some(&next) = bytes.get(at)
                && next.is_ascii()
                && ASCII[usize::from(next)] == kind
            {
                at += 1;
            }
            pass.push(kind, None, from, at - from);
        } else {
            let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else {
                break;
            };
            at += c.len_utf8();
            let (kind, mark) = beyond_ascii(c);
            pass.push(kind, mark, from, 1);
        }
    }
    pass.close(Kind::Edge, at);
    pass.block.flush(&mut pass.pieces);
    pass.pieces
}

/// Characters that belong together.
struct Run {
    kind: Kind,
    /// In characters.
    length: u64,
    /// Where it begins, in bytes.
    start: usize,
    /// Which languages have the marked letters of a word.
    mark: Option<Class>,
}

struct Pass<'t> {
    bytes: &'t [u8],
    run: Run,
    /// What was before the run.
    before: Kind,
    /// How many short runs of letters and digits follow each other without a blank.
    chain: u32,
    block: Block,
    pieces: Pieces,
}

/// Letters and digits that change this often are no words.
const CHAIN: u32 = 4;

/// Runs of so many letters are part of what only looks random; longer ones are words.
const SHORT: u64 = 4;

/// A run of so many letters is in no text that only looks random.
const LONG: u64 = 8;

impl<'t> Pass<'t> {
    fn new(bytes: &'t [u8]) -> Self {
        Self {
            bytes,
            run: Run {
                kind: Kind::Edge,
                length: 0,
                start: 0,
                mark: None,
            },
            before: Kind::Edge,
            chain: 0,
            block: Block::default(),
            pieces: Pieces::default(),
        }
    }

    /// Adds characters of one kind.
    fn push(&mut self, kind: Kind, mark: Option<Class>, start: usize, length: usize) {
        let run = &mut self.run;
        let continues = match (run.kind, kind) {
            // One capital may open a word; several are one of their own.
            (Kind::Upper, Kind::Word) => run.length == 1,
            (Kind::Symbol | Kind::Emoji, _) => false,
            (before, next) => before == next,
        };
        if continues {
            run.kind = kind;
            run.length += length as u64;
            run.mark = run.mark.max(mark);
            return;
        }
        self.close(kind, start);
        self.run = Run {
            kind,
            length: length as u64,
            start,
            mark,
        };
    }

    /// Counts the run, which ends before `end`, where something of another kind begins.
    fn close(&mut self, next: Kind, end: usize) {
        let Run { kind, length, .. } = self.run;
        match kind {
            Kind::Word | Kind::Upper | Kind::Digit => self.count_word(kind, end),
            Kind::Sign => self.count_signs(next, end),
            Kind::Edge => {}
            Kind::Blank | Kind::Tab | Kind::Line => {
                self.chain = 0;
                self.count_blanks(kind, next);
            }
            Kind::Letter(class) => {
                self.chain = 0;
                self.pieces.add(class, part::WORDS, 1);
                self.pieces.add(class, part::LETTERS, length);
            }
            Kind::Symbol => self.pieces.add(Class::Symbols, part::SYMBOLS, 1),
            Kind::Emoji => self.pieces.add(Class::Symbols, part::EMOJI, 1),
        }
        self.before = kind;
    }

    fn count_word(&mut self, kind: Kind, end: usize) {
        let Run {
            length,
            start,
            mark,
            ..
        } = self.run;
        let digits = kind == Kind::Digit;
        let short = mark.is_none() && (digits || length <= SHORT);
        if short {
            self.chain = self.chain.saturating_add(1);
        } else if mark.is_some() || length > LONG {
            self.chain = 0;
        }
        let pieces = &mut self.pieces;
        match kind {
            _ if short && self.chain > CHAIN => {
                let class = match digits {
                    true => Class::OpaqueDigits,
                    false => Class::OpaqueLetters,
                };
                pieces.add(class, part::CHARACTERS, length);
            }
            Kind::Digit => pieces.add(Class::Digits, part::TRIPLES, length.div_ceil(3)),
            Kind::Upper if length > 1 => {
                pieces.add(Class::Latin, part::CAPITALS, 1);
                pieces.add(Class::Latin, part::MORE_CAPITALS, length - 2);
            }
            _ if length == 1 && mark.is_none() => pieces.add(Class::Latin, part::SINGLE, 1),
            _ => {
                let word = self.bytes.get(start..end).unwrap_or_default();
                let mark = match mark {
                    None if word.len() <= 5 => languages::of_word(word),
                    known => known,
                };
                self.block.add(length, mark, pieces);
            }
        }
    }

    fn count_signs(&mut self, next: Kind, end: usize) {
        let Run { length, start, .. } = self.run;
        let is_letter = |kind| matches!(kind, Kind::Word | Kind::Upper);
        let is_word = |kind| is_letter(kind) || kind == Kind::Digit;
        let signs = self.bytes.get(start..end).unwrap_or_default();
        // Part of a key or of base64.
        if self.chain > CHAIN
            && matches!(signs, b"+" | b"/" | b"=" | b"-" | b"_")
            && is_word(self.before)
            && is_word(next)
        {
            return self.pieces.add(Class::OpaqueLetters, part::CHARACTERS, 1);
        }
        self.chain = 0;
        let mut add = |part, count| self.pieces.add(Class::Signs, part, count);
        match signs {
            [_] if is_letter(next) => add(part::OPENER, 1),
            [_] => add(part::SIGN, 1),
            [first, rest @ ..] if rest.iter().all(|sign| sign == first) => {
                add(part::REPEATED, 1);
                add(part::MORE_REPEATED, length - 2);
            }
            _ => {
                add(part::MIXED, 1);
                add(part::MORE_MIXED, length.saturating_sub(2));
            }
        }
    }

    fn count_blanks(&mut self, kind: Kind, next: Kind) {
        let length = self.run.length;
        let mut add = |part, count| self.pieces.add(Class::Blanks, part, count);
        match kind {
            Kind::Tab => add(part::TABS, length),
            Kind::Line => {
                let after_sign = self.before == Kind::Sign;
                let part = if after_sign {
                    part::LINE_AFTER_SIGN
                } else {
                    part::LINE
                };
                add(part, 1);
                add(part::MORE_LINES, length - 1);
            }
            _ => {
                if length > 1 {
                    // Vocabularies have blanks in rows of this length about.
                    add(part::SEVERAL, 1 + length / 64);
                }
                // The last blank is part of the word after it, but of no number.
                if next == Kind::Digit {
                    self.pieces.add(Class::Digits, part::BEFORE, 1);
                } else if length == 1 {
                    add(part::BLANK, 1);
                }
            }
        }
    }
}

/// So many words are weighed together.
const BLOCK: u64 = 32;

/// Words in Latin letters that follow each other.
#[derive(Default)]
struct Block {
    words: u64,
    /// Letters of words without a mark: above six, above ten, and above two.
    over_six: u64,
    over_ten: u64,
    letters: u64,
    /// Words with a mark of each group of languages, and the letters above two of all of them.
    marked: [u64; 4],
    marked_letters: u64,
}

impl Block {
    fn add(&mut self, length: u64, mark: Option<Class>, pieces: &mut Pieces) {
        let letters = length.saturating_sub(2);
        self.words += 1;
        match mark.and_then(group) {
            Some(group) => {
                self.marked[group] += 1;
                self.marked_letters += letters;
            }
            None => {
                self.letters += letters;
                self.over_six += length.clamp(6, 10) - 6;
                self.over_ten += length.saturating_sub(10);
            }
        }
        if self.words == BLOCK {
            self.flush(pieces);
        }
    }

    /// Counts the words, and begins again.
    fn flush(&mut self, pieces: &mut Pieces) {
        let block = std::mem::take(self);
        let marked: u64 = block.marked.iter().sum();
        let plain = block.words - marked;
        let (class, share) = block.language(marked);
        let rest = ONE - share;
        pieces.add_shares(Class::Latin, part::WORDS, plain * rest);
        pieces.add_shares(Class::Latin, part::OVER_SIX, block.over_six * rest);
        pieces.add_shares(Class::Latin, part::OVER_TEN, block.over_ten * rest);
        pieces.add_shares(class, part::WORDS, marked * ONE + plain * share);
        let letters = block.marked_letters * ONE + block.letters * share;
        pieces.add_shares(class, part::LETTERS, letters);
    }

    /// The group of languages, and how far the words without a mark are of it.
    fn language(&self, marked: u64) -> (Class, u64) {
        let [west, north, east, vietnamese] = self.marked;
        // In percent: so many of the words of such languages have a mark at least.
        let (class, usual) = if marked == 0 {
            return (Class::West, 0);
        } else if vietnamese * 4 >= marked {
            (Class::Vietnamese, 15)
        } else if east * 3 >= marked {
            (Class::East, 15)
        } else if north >= west * 4 {
            (Class::North, 20)
        } else {
            (Class::West, 15)
        };
        (class, (marked * 100 * ONE / (self.words * usual)).min(ONE))
    }
}

fn group(class: Class) -> Option<usize> {
    let groups = [Class::West, Class::North, Class::East, Class::Vietnamese];
    groups.iter().position(|group| *group == class)
}
