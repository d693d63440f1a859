//! Texts in units: one pass, no vocabulary.
//!
//! Vocabularies differ, but they cut texts alike: at blanks, at changes between letters, digits and
//! signs, at capitals inside a word. Each such piece has a weight that follows from its kind and
//! length. The weights were fitted to the vocabulary o200k on recorded agent sessions.

/// About how many tokens a text has.
///
/// ```
/// use throughline_model::tokens::text_units;
///
/// assert_eq!(text_units(""), 0);
/// assert_eq!(text_units("潮汐在十点转向"), 7);
/// assert_eq!(text_units("fn high_water(level: f64) -> f64 {"), 13);
/// ```
pub fn text_units(text: &str) -> u32 {
    let mut sum: u64 = 0;
    let mut run = Run {
        kind: Kind::Start,
        length: 0,
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (kind, width) = match byte {
            0..=0x7F => (ASCII[usize::from(byte)], 1),
            _ => match text[at..].chars().next() {
                Some(c) => (kind_of_non_ascii(c), c.len_utf8()),
                None => break,
            },
        };
        at += width;
        if run.continues(kind) {
            run.length += 1;
            run.kind = kind;
        } else {
            sum += run.weight();
            run = Run { kind, length: 1 };
        }
    }
    sum += run.weight();
    u32::try_from(sum.div_ceil(100)).unwrap_or(u32::MAX)
}

/// What a character is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Lower,
    Upper,
    Digit,
    Blank,
    Tab,
    Line,
    Sign,
    /// Letters of a script that vocabularies know in pieces: Cyrillic, Greek, Arabic and others.
    Script,
    /// A character that is a word or a syllable.
    Ideograph,
    /// Anything else: arrows, boxes, pictures.
    Symbol,
    /// Rarely seen, and in several pieces.
    Rare,
}

const ASCII: [Kind; 128] = {
    let mut kinds = [Kind::Sign; 128];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' => Kind::Lower,
            b'A'..=b'Z' => Kind::Upper,
            b'0'..=b'9' => Kind::Digit,
            b' ' => Kind::Blank,
            b'\t' => Kind::Tab,
            b'\n' | b'\r' => Kind::Line,
            _ => Kind::Sign,
        };
        byte += 1;
    }
    kinds
};

fn kind_of_non_ascii(c: char) -> Kind {
    match c {
        // Accented Latin letters are part of the words around them.
        '\u{C0}'..='\u{24F}' => Kind::Lower,
        '\u{250}'..='\u{1FFF}' => Kind::Script,
        '\u{2000}'..='\u{2BFF}' => Kind::Symbol,
        '\u{2E80}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}' => {
            Kind::Ideograph
        }
        '\u{80}'..='\u{BF}' => Kind::Symbol,
        _ => Kind::Rare,
    }
}

/// Characters that belong together.
struct Run {
    kind: Kind,
    length: u64,
}

impl Run {
    fn continues(&self, next: Kind) -> bool {
        match (self.kind, next) {
            // One capital may open a word; several are one of their own.
            (Kind::Upper, Kind::Lower) => self.length == 1,
            (Kind::Ideograph | Kind::Symbol | Kind::Rare, _) => false,
            (kind, next) => kind == next,
        }
    }

    /// In hundredths of a unit.
    fn weight(&self) -> u64 {
        let length = self.length;
        let kind_of_non_ascii = |from: u64| length.saturating_sub(from);
        match self.kind {
            Kind::Start => 0,
            Kind::Lower if length == 1 => 45,
            Kind::Lower => 93 + 20 * kind_of_non_ascii(10),
            Kind::Upper => match length {
                1 => 60,
                2 => 76,
                _ => 100 + 27 * kind_of_non_ascii(3),
            },
            Kind::Digit => 135 * length.div_ceil(3),
            Kind::Blank if length == 1 => 11,
            Kind::Blank => 135 + 5 * length,
            Kind::Tab => 62,
            Kind::Line => 65 + 5 * length,
            Kind::Sign => match length {
                1 => 82,
                _ => 100 + 8 * kind_of_non_ascii(3),
            },
            Kind::Script => 50 + 22 * length,
            Kind::Ideograph => 90,
            Kind::Symbol => 75,
            Kind::Rare => 200,
        }
    }
}
