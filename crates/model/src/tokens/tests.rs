//! What holds for units of any text, and figures of a few sentences.

use super::{Class, Mix, text_units};

/// The same sentence in several languages, and other texts; each with the tokens that o200k has
/// for it, and the units.
const SENTENCES: [(&str, u32, u32); 20] = [
    (
        "High water is at ten in the morning, and the berth has to be free by noon.",
        19,
        18,
    ),
    (
        "Das Hochwasser kommt um zehn Uhr, und der Liegeplatz muss bis zum Mittag frei geräumt sein.",
        23,
        21,
    ),
    (
        "Przypływ przychodzi o dziesiątej rano, a miejsce przy nabrzeżu musi być wolne do południa.",
        31,
        27,
    ),
    (
        "Nousuvesi on kymmeneltä aamulla, ja laituripaikan täytyy olla vapaa puoleenpäivään mennessä.",
        31,
        29,
    ),
    (
        "Gelgit sabah saat onda yükselir ve rıhtımdaki yerin öğlene kadar boşaltılması gerekir.",
        25,
        25,
    ),
    (
        "Прилив наступает в десять утра, и причал должен быть свободен к полудню.",
        21,
        20,
    ),
    (
        "Η πλημμυρίδα έρχεται στις δέκα το πρωί και η θέση πρέπει να είναι ελεύθερη ως το μεσημέρι.",
        33,
        34,
    ),
    (
        "يأتي المد في الساعة العاشرة صباحا ويجب أن يكون الرصيف خاليا قبل الظهر.",
        23,
        22,
    ),
    (
        "הגאות מגיעה בעשר בבוקר, והרציף חייב להיות פנוי עד הצהריים.",
        22,
        23,
    ),
    (
        "ज्वार सुबह दस बजे आता है और घाट को दोपहर तक खाली होना चाहिए।",
        19,
        19,
    ),
    ("น้ำขึ้นเวลาสิบโมงเช้า และท่าเรือต้องว่างก่อนเที่ยง", 21, 20),
    (
        "만조는 아침 열 시이고 정박지는 정오까지 비워야 합니다.",
        19,
        18,
    ),
    (
        "満潮は午前十時で、停泊場所は正午までに空けなければなりません。",
        26,
        22,
    ),
    ("涨潮在上午十点，泊位必须在中午之前腾空。", 17, 14),
    (
        "pub fn high_water(level: f64) -> Option<Tide> {\n    self.tides.iter().find(|tide| tide.level > level)\n}\n",
        32,
        32,
    ),
    (
        "{\"berth\":\"4711\",\"tide\":{\"high\":\"10:04\",\"low\":\"16:20\"},\"free\":true,\"draught\":3.25}",
        34,
        34,
    ),
    (
        "2024-05-17,1004,4.81,1620,1.12,2229,4.66\n2024-05-18,1051,4.93,1708,1.01,2317,4.71\n",
        56,
        58,
    ),
    (
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==",
        66,
        53,
    ),
    (
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        43,
        40,
    ),
    ("✅ build → 🚀 release • 🐛 fixed", 11, 10),
];

#[test]
fn sentences_in_every_script_come_to_about_their_tokens() {
    for (text, tokens, units) in SENTENCES {
        assert_eq!(text_units(text), units, "{text}");
        let ratio = f64::from(units) / f64::from(tokens);
        assert!((0.75..=1.25).contains(&ratio), "{ratio}: {text}");
    }
}

/// Texts without an order, the same each time.
fn texts() -> Vec<String> {
    const PIECES: [&str; 24] = [
        "word",
        "camelCase",
        "XML",
        "a",
        "12345",
        "7",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "{\"a\":",
        "----",
        "=>",
        "潮汐",
        "ひらがな",
        "Прилив",
        "żółć",
        "für",
        "de",
        "→",
        "🦀",
        "\0",
        "9f86d0",
    ];
    let mut state: u64 = 42;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut text = || {
        let count = next(60);
        (0..count).map(|_| PIECES[next(PIECES.len())]).collect()
    };
    (0..500).map(|_| text()).collect()
}

#[test]
fn units_of_parts_add_up_but_for_the_seam() {
    let texts = texts();
    for pair in texts.windows(2) {
        let [one, two] = pair else { continue };
        let parts = text_units(one) + text_units(two);
        let both = text_units(&format!("{one}{two}"));
        // Words next to the seam may be of another language in their new block.
        let most = 12;
        assert!(
            both <= parts + most && both + most >= parts,
            "{both} of {parts}: {one:?} {two:?}"
        );
    }
}

#[test]
fn more_text_is_not_less() {
    for text in texts() {
        let whole = text_units(&text);
        for (at, _) in text.char_indices() {
            let start = text_units(&text[..at]);
            assert!(
                start <= whole + 4,
                "{start} of {whole}: {text:?} up to {at}"
            );
        }
        let twice = text_units(&text.repeat(2));
        assert!(twice + 2 >= whole, "{twice} of {whole}: {text:?}");
    }
}

#[test]
fn every_character_has_units() {
    let mut all = String::new();
    for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
        assert!(text_units(c.encode_utf8(&mut [0; 4])) >= 1, "{c:?}");
        all.push(c);
    }
    assert!(text_units(&all) > 500_000);
}

#[test]
fn any_bytes_are_counted() {
    let bytes: Vec<u8> = (0..200_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text_units(&text) > 10_000);
    assert_eq!(text_units(""), 0);
}

#[test]
fn text_of_one_kind_costs_the_same_per_character_whatever_its_length() {
    for piece in [
        "x", "aB1", "7", " ", "\n", "-", "ä ", "до ", "de ", "漢", "🦀", "a1-",
    ] {
        let some = text_units(&piece.repeat(10_000));
        let more = text_units(&piece.repeat(1_000_000));
        let ratio = f64::from(more) / f64::from(some);
        assert!((95.0..=105.0).contains(&ratio), "{piece:?}: {ratio}");
    }
}

#[test]
fn a_mix_has_the_units_of_its_text() {
    for text in texts() {
        let difference = f64::from(text_units(&text)) - Mix::of_text(&text).units();
        assert!((-0.1..=1.1).contains(&difference), "{difference}: {text:?}");
    }
}

#[test]
fn a_mix_names_the_languages_of_a_text() {
    let expected = [
        ("The harbour opens at noon", Class::Latin),
        ("Le port ouvre à midi, et la marée est haute", Class::West),
        (
            "Satama on auki, mutta väylä jäätyi ja työ päättyi yöllä",
            Class::North,
        ),
        ("Przypływ przychodzi o dziesiątej rano", Class::East),
        ("Прилив в десять утра", Class::Cyrillic),
        ("満潮は十時", Class::Han),
        ("만조는 열 시", Class::Hangul),
        ("10415 22090 31415", Class::Digits),
        (
            "iVBORw0KGgoAAAANSUhEUgAAAAUA4Fb9sX2Lq7Tz",
            Class::OpaqueLetters,
        ),
    ];
    for (text, class) in expected {
        let mix = Mix::of_text(text);
        let most = Class::ALL
            .into_iter()
            .max_by(|one, other| mix.share(*one).total_cmp(&mix.share(*other)));
        assert_eq!(most, Some(class), "{text}: {mix:?}");
    }
}
