//! What kinds of characters there are, as far as vocabularies cut them differently.

/// How many classes there are.
pub(super) const CLASSES: usize = Class::ALL.len();

/// A part of a text whose pieces cost about the same with one vocabulary, and more or less with
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Words in Latin letters without marks: English, and the names in code.
    Latin,
    /// Words of French, Spanish, German and other western languages.
    West,
    /// Words of Finnish, Swedish and other northern languages.
    North,
    /// Words of Polish, Turkish and others that use the letters of Latin Extended-A.
    East,
    /// Words of Vietnamese.
    Vietnamese,
    /// Words in Cyrillic letters.
    Cyrillic,
    /// Words in Greek letters.
    Greek,
    /// Words in Arabic letters.
    Arabic,
    /// Words in Hebrew letters.
    Hebrew,
    /// Words in Devanagari: Hindi, Marathi, Nepali.
    Devanagari,
    /// Words in the other scripts of India.
    Indic,
    /// Text in Thai or Lao letters, which has no blanks between words.
    Thai,
    /// Korean syllables.
    Hangul,
    /// The syllables of Japanese.
    Kana,
    /// Chinese characters, in Japanese too.
    Han,
    /// Words in any other script.
    OtherScript,
    /// Numbers.
    Digits,
    /// Letters of base64, hashes and keys.
    OpaqueLetters,
    /// Digits of base64, hashes and keys.
    OpaqueDigits,
    /// Blanks, tabs and line ends.
    Blanks,
    /// Punctuation and operators of ASCII.
    Signs,
    /// Anything else: other punctuation, arrows, boxes, pictures.
    Symbols,
}

impl Class {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 22] = [
        Self::Latin,
        Self::West,
        Self::North,
        Self::East,
        Self::Vietnamese,
        Self::Cyrillic,
        Self::Greek,
        Self::Arabic,
        Self::Hebrew,
        Self::Devanagari,
        Self::Indic,
        Self::Thai,
        Self::Hangul,
        Self::Kana,
        Self::Han,
        Self::OtherScript,
        Self::Digits,
        Self::OpaqueLetters,
        Self::OpaqueDigits,
        Self::Blanks,
        Self::Signs,
        Self::Symbols,
    ];

    /// Its place in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What a character is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Before the first character, and after the last one.
    Edge,
    /// A Latin letter that goes on a word.
    Word,
    Upper,
    Digit,
    Blank,
    Tab,
    Line,
    Sign,
    /// A letter of a script of its own.
    Letter(Class),
    Symbol,
    Emoji,
}

pub(super) const ASCII: [Kind; 128] = {
    let mut kinds = [Kind::Sign; 128];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' => Kind::Word,
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

/// The kind of a character beyond ASCII, and for Latin letters which languages have it.
pub(super) fn beyond_ascii(c: char) -> (Kind, Option<Class>) {
    let class = match c {
        'Ä' | 'Å' | 'Æ' | 'Ö' | 'Ø' | 'ä' | 'å' | 'æ' | 'ö' | 'ø' => {
            return (Kind::Word, Some(Class::North));
        }
        '\u{D7}' | '\u{F7}' | '\u{80}'..='\u{BF}' => return (Kind::Symbol, None),
        '\u{C0}'..='\u{FF}' => return (Kind::Word, Some(Class::West)),
        '\u{100}'..='\u{24F}' => return (Kind::Word, Some(Class::East)),
        // A mark that is a character of its own belongs to the letter before it.
        '\u{300}'..='\u{36F}' => return (Kind::Word, Some(Class::East)),
        '\u{1E00}'..='\u{1EFF}' => return (Kind::Word, Some(Class::Vietnamese)),
        '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => Class::Greek,
        '\u{400}'..='\u{52F}' => Class::Cyrillic,
        '\u{590}'..='\u{5FF}' => Class::Hebrew,
        '\u{600}'..='\u{6FF}' | '\u{750}'..='\u{77F}' | '\u{FB50}'..='\u{FEFC}' => Class::Arabic,
        '\u{900}'..='\u{97F}' => Class::Devanagari,
        '\u{980}'..='\u{DFF}' => Class::Indic,
        '\u{E00}'..='\u{EFF}' => Class::Thai,
        '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7FF}' => {
            Class::Hangul
        }
        '\u{3040}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9F}' => Class::Kana,
        '\u{2E80}'..='\u{2FFF}'
        | '\u{3400}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Class::Han,
        '\u{2000}'..='\u{2DFF}' | '\u{3000}'..='\u{33FF}' | '\u{FE00}'..='\u{FFFF}' => {
            return (Kind::Symbol, None);
        }
        '\u{250}'..='\u{1FFF}' | '\u{A000}'..='\u{ABFF}' => Class::OtherScript,
        _ => return (Kind::Emoji, None),
    };
    (Kind::Letter(class), None)
}
