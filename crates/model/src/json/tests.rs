use super::{JsonErrorKind, Limits, Node, RawJson, parse, parse_bytes, parse_with, push_string};

#[test]
fn every_value_knows_its_source_text() {
    let text = " {\"a\" : [1.50, -0e+3, \"x\\/y\"], \"b\":null} ";
    let value = parse(text).unwrap();
    let a = value.get("a").unwrap().as_array().unwrap();
    assert_eq!(a[0].raw(), "1.50");
    assert_eq!(a[1].raw(), "-0e+3");
    assert_eq!(a[2].raw(), "\"x\\/y\"");
    assert_eq!(a[2].as_str().unwrap(), "x/y");
    assert_eq!(
        RawJson::of(&value).get(),
        "{\"a\":[1.50,-0e+3,\"x\\/y\"],\"b\":null}"
    );
}

#[test]
fn of_duplicate_keys_the_last_counts_and_all_are_kept() {
    let value = parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
    assert_eq!(value.get("a").unwrap().raw(), "3");
    assert!(value.has_duplicate_keys());
    assert_eq!(RawJson::of(&value).get(), r#"{"a":1,"b":2,"a":3}"#);
}

#[test]
fn an_escaped_key_is_found_by_its_text() {
    let value = parse("{\"na\\u006de\":1}").unwrap();
    assert_eq!(value.get("name").unwrap().raw(), "1");
}

#[test]
fn unpaired_surrogates_are_kept_and_shown_as_replacement() {
    for (token, shown) in [
        ("\"\\ud800\"", "\u{FFFD}"),
        ("\"\\udc00x\"", "\u{FFFD}x"),
        ("\"\\ud800\\ud83d\\ude00\"", "\u{FFFD}😀"),
        ("\"\\ud83d\\ude00\"", "😀"),
        ("\"\\ud800\\n\"", "\u{FFFD}\n"),
    ] {
        let value = parse(token).unwrap();
        assert_eq!(value.as_str().unwrap(), shown, "{token}");
        assert_eq!(RawJson::of(&value).get(), token);
    }
}

#[test]
fn canonical_tokens_are_exactly_those_that_are_written_the_same_way() {
    for code in 0..=0xFFFFu32 {
        for token in [format!("\"\\u{code:04x}\""), format!("\"\\u{code:04X}\"")] {
            let value = parse(&token).unwrap();
            let text = value.as_text().unwrap();
            let mut written = String::new();
            push_string(&mut written, &text.to_str());
            assert_eq!(text.is_canonical(), written == token, "{token}");
        }
    }
    for token in ["\"a\\\"b\\\\c\\n\\r\\t\\b\\f\"", "\"\"", "\"é😀\u{7f}\""] {
        assert!(
            parse(token).unwrap().as_text().unwrap().is_canonical(),
            "{token}"
        );
    }
    assert!(!parse("\"\\/\"").unwrap().as_text().unwrap().is_canonical());
}

#[test]
fn errors_name_line_and_column() {
    let cases: &[(&str, JsonErrorKind, usize, usize)] = &[
        ("", JsonErrorKind::UnexpectedEnd, 1, 1),
        ("{\"é\": x}", JsonErrorKind::UnexpectedCharacter('x'), 1, 7),
        (
            "[1,\n 2,\n  tru]",
            JsonErrorKind::UnexpectedCharacter(']'),
            3,
            6,
        ),
        ("[1 2]", JsonErrorKind::UnexpectedCharacter('2'), 1, 4),
        ("[1,]", JsonErrorKind::UnexpectedCharacter(']'), 1, 4),
        ("{\"a\":1,}", JsonErrorKind::UnexpectedCharacter('}'), 1, 8),
        ("01", JsonErrorKind::InvalidNumber, 1, 2),
        ("1.", JsonErrorKind::UnexpectedEnd, 1, 3),
        ("1.x", JsonErrorKind::InvalidNumber, 1, 3),
        ("\"\\x\"", JsonErrorKind::InvalidEscape, 1, 2),
        ("\"\\u12g4\"", JsonErrorKind::InvalidEscape, 1, 2),
        ("\"a\nb\"", JsonErrorKind::ControlCharacter, 1, 3),
        ("\"abc", JsonErrorKind::UnexpectedEnd, 1, 5),
        ("\"abc\\", JsonErrorKind::UnexpectedEnd, 1, 6),
        ("{} {}", JsonErrorKind::TrailingText, 1, 4),
    ];
    for (text, kind, line, column) in cases {
        let error = parse(text).unwrap_err();
        assert_eq!(
            (error.kind, error.line, error.column),
            (*kind, *line, *column),
            "{text}"
        );
    }
}

#[test]
fn depth_is_bounded_and_the_error_has_a_place() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse(&deep(128)).is_ok());
    let error = parse(&deep(1_000)).unwrap_err();
    assert_eq!(error.kind, JsonErrorKind::TooDeep { limit: 128 });
    assert_eq!(error.column, 129);
    let more = Limits {
        depth: 1_000,
        ..Limits::default()
    };
    assert!(parse_with(&deep(1_000), more).is_ok());
    let absurd = Limits {
        depth: usize::MAX,
        ..Limits::default()
    };
    let limit = Limits::DEEPEST;
    let error = parse_with(&deep(2_000), absurd).unwrap_err();
    assert_eq!(error.kind, JsonErrorKind::TooDeep { limit });
}

#[test]
fn the_number_of_values_is_bounded() {
    let limits = Limits {
        values: 3,
        ..Limits::default()
    };
    assert!(parse_with("[1,2]", limits).is_ok());
    let error = parse_with("[1,2,3]", limits).unwrap_err();
    assert_eq!(error.kind, JsonErrorKind::TooManyValues { limit: 3 });
}

#[test]
fn bytes_that_are_not_utf8_are_an_error_with_a_place() {
    let error = parse_bytes(b"{\"a\":\"\xff\"}", Limits::default()).unwrap_err();
    assert_eq!((error.kind, error.column), (JsonErrorKind::InvalidUtf8, 7));
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    assert!(matches!(
        parse("\u{FEFF}{}").unwrap().node(),
        Node::Object(_)
    ));
}

#[test]
fn special_bytes_are_found_at_every_offset() {
    for before in 0..20 {
        let plain = "é".repeat(before / 2) + &"x".repeat(before % 2 + 3);
        for (special, ok) in [("\\n", true), ("\u{1}", false), ("\\\"", true), ("!", true)] {
            let text = format!("\"{plain}{special}{plain}\"");
            assert_eq!(parse(&text).is_ok(), ok, "{text:?}");
        }
    }
}

#[test]
fn many_edits_are_made_like_few() {
    for count in [0, 1, 8, 9, 300] {
        let text = format!("[{}]", vec![r#"{"a":1}"#; count].join(","));
        let value = parse(&text).unwrap();
        let holes = value.as_array().unwrap_or_default().iter();
        let mut edits: Vec<_> = holes.filter_map(|it| Some((it.get("a")?, "2"))).collect();
        // In any order, and of two edits of one value the first counts.
        edits.reverse();
        let again: Vec<_> = edits.iter().map(|(at, _)| (*at, "3")).collect();
        edits.extend(again);
        let edited = RawJson::of_with(&value, &edits);
        assert_eq!(edited.get(), text.replace('1', "2"));
    }
}

#[test]
fn the_first_special_byte_is_found_at_any_place_whatever_stands_before_and_after() {
    let mut looked = 0;
    for length in 0..200 {
        for special in [b'"', b'\\', 0, 0x1F, b'\n'] {
            for place in 0..=length {
                // Bytes next to the special ones, and such as end a character of more than one.
                let plain = [b' ', b'!', b'#', b'[', b']', 0x7F, 0x80, 0xFF];
                let mut bytes: Vec<u8> = plain.iter().copied().cycle().take(length).collect();
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = special;
                }
                // A second one must not be found first.
                if let Some(byte) = bytes.get_mut(place + 3) {
                    *byte = b'"';
                }
                for from in [0, place / 2, place] {
                    assert_eq!(parse::plain_until(&bytes, from), place.min(length));
                    looked += 1;
                }
            }
        }
    }
    assert!(looked > 100_000);
}
