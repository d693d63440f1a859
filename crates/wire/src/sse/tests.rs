use super::{
    DONE, Decoder, End, Frame, FrameRef, Limits, SseError, encode, write_comment, write_frame,
};

const SMALL: Limits = Limits {
    line_bytes: 16,
    event_bytes: 16,
};

fn decoded(stream: &[u8]) -> Vec<Frame> {
    let (frames, end) = read(stream, Limits::default());
    assert_eq!(end, Ok(End::Complete), "{stream:?}");
    frames
}

fn read(stream: &[u8], limits: Limits) -> (Vec<Frame>, Result<End, SseError>) {
    let mut decoder = Decoder::new(limits);
    decoder.push(stream);
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = decoder.next_frame() {
        frames.push(frame);
    }
    (frames, decoder.finish())
}

fn failure(stream: &[u8], limits: Limits) -> SseError {
    read(stream, limits)
        .1
        .expect_err("the stream should have failed")
}

fn data(text: &str) -> Frame {
    Frame {
        data: text.to_owned(),
        ..Frame::default()
    }
}

fn named(event: &str, text: &str) -> Frame {
    Frame {
        event: Some(event.to_owned()),
        ..data(text)
    }
}

#[test]
fn a_frame_has_all_its_fields() {
    let stream = b"id: 7\nretry: 1500\nevent: step\ndata: {}\n\n";
    let frame = Frame {
        event: Some("step".into()),
        data: "{}".into(),
        id: Some("7".into()),
        retry: Some(1500),
    };
    assert_eq!(decoded(stream), [frame]);
}

#[test]
fn lines_end_in_lf_cr_or_crlf() {
    let two = [named("a", "1"), data("2")];
    assert_eq!(decoded(b"event: a\ndata: 1\n\ndata: 2\n\n"), two);
    assert_eq!(decoded(b"event: a\rdata: 1\r\rdata: 2\r\r"), two);
    assert_eq!(decoded(b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n"), two);
    assert_eq!(decoded(b"event: a\rdata: 1\n\r\ndata: 2\r\r\n"), two);
}

#[test]
fn lf_then_cr_is_two_line_ends() {
    assert_eq!(decoded(b"data: 1\n\rdata: 2\n\n"), [data("1"), data("2")]);
}

#[test]
fn a_line_end_split_between_chunks_is_one() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(b"data: 1\r");
    decoder.push(b"\ndata: 2\r");
    decoder.push(b"");
    decoder.push(b"\n\r");
    // The carriage return alone completes the frame: waiting for a line feed could wait for ever.
    assert_eq!(decoder.next_frame(), Ok(Some(data("1\n2"))));
    decoder.push(b"\n");
    assert_eq!(decoder.next_frame(), Ok(None));
    assert_eq!(decoder.finish(), Ok(End::Complete));
}

#[test]
fn a_byte_order_mark_is_skipped_only_at_the_start() {
    assert_eq!(decoded(b"\xEF\xBB\xBFdata: 1\n\n"), [data("1")]);
    assert_eq!(decoded(b"\xEF\xBB\xBF\ndata: 1\n\n"), [data("1")]);
    assert_eq!(decoded(b"\n\xEF\xBB\xBFdata: 1\n\n"), []);
    assert_eq!(decoded("\u{FEFF}\u{FEFF}data: 1\n\n".as_bytes()), []);
    assert_eq!(
        decoded("data: \u{FEFF}1\n\n".as_bytes()),
        [data("\u{FEFF}1")]
    );
}

#[test]
fn comments_and_unknown_fields_are_skipped() {
    assert_eq!(
        decoded(b": hello\n:\ndata: 1\n:data: 2\nother: 3\nDATA: 4\n data: 5\nwhat\n\n"),
        [data("1")]
    );
}

#[test]
fn a_comment_or_unknown_field_need_not_be_utf8() {
    assert_eq!(
        decoded(b":\xFF\nother: \xFF\n\xFF\ndata: 1\n\n"),
        [data("1")]
    );
}

#[test]
fn data_lines_are_joined_with_a_line_feed() {
    assert_eq!(
        decoded(b"data: YHOO\ndata: +2\ndata: 10\n\n"),
        [data("YHOO\n+2\n10")]
    );
    assert_eq!(decoded(b"data:\ndata:\n\n"), [data("\n")]);
}

#[test]
fn one_space_after_the_colon_is_optional() {
    assert_eq!(
        decoded(b"data:1\n\ndata: 1\n\ndata:  1\n\ndata:\t1\n\n"),
        [data("1"), data("1"), data(" 1"), data("\t1")]
    );
}

#[test]
fn only_the_first_colon_separates() {
    assert_eq!(decoded(b"data: {\"a\":1}\n\n"), [data("{\"a\":1}")]);
}

#[test]
fn a_field_without_a_colon_has_an_empty_value() {
    assert_eq!(decoded(b"data\n\ndata\ndata\n\n"), [data(""), data("\n")]);
}

#[test]
fn an_event_without_data_is_not_dispatched_and_leaves_nothing_behind() {
    assert_eq!(
        decoded(b"event: a\nid: 1\nretry: 5\n\n\n\ndata: 1\n\n"),
        [data("1")]
    );
    assert_eq!(decoded(b"event: a"), []);
}

#[test]
fn the_last_name_wins_and_an_empty_one_is_none() {
    assert_eq!(
        decoded(b"event: a\nevent: b\ndata: 1\n\n"),
        [named("b", "1")]
    );
    assert_eq!(decoded(b"event: a\nevent:\ndata: 1\n\n"), [data("1")]);
}

#[test]
fn an_id_with_nul_is_ignored_and_an_empty_id_is_kept() {
    let with_id = |id: &str| Frame {
        id: Some(id.to_owned()),
        ..data("1")
    };
    assert_eq!(decoded(b"id: a\nid: b\0c\ndata: 1\n\n"), [with_id("a")]);
    assert_eq!(decoded(b"id\ndata: 1\n\n"), [with_id("")]);
}

#[test]
fn retry_takes_digits_only() {
    for bad in [
        "",
        "+1",
        "-1",
        "1.5",
        "1 ",
        "1s",
        "0x1",
        "١",
        "18446744073709551616",
    ] {
        assert_eq!(
            decoded(format!("retry: {bad}\ndata: 1\n\n").as_bytes()),
            [data("1")],
            "{bad:?}"
        );
    }
    assert_eq!(
        decoded(b"retry: 007\ndata: 1\n\n"),
        [Frame {
            retry: Some(7),
            ..data("1")
        }]
    );
}

#[test]
fn a_character_may_be_split_between_chunks() {
    let mut decoder = Decoder::new(Limits::default());
    for byte in "data: é€😀\n\n".as_bytes() {
        decoder.push(&[*byte]);
    }
    assert_eq!(decoder.next_frame(), Ok(Some(data("é€😀"))));
}

#[test]
fn text_that_is_not_utf8_is_an_error_naming_the_byte() {
    assert_eq!(
        failure(b"data: 1\n\ndata: a\xFFb\n\n", Limits::default()),
        SseError::InvalidUtf8 { offset: 16 }
    );
    assert_eq!(
        failure(b"event:\xC3\n", Limits::default()),
        SseError::InvalidUtf8 { offset: 6 }
    );
    assert_eq!(
        failure(b"\xEF\xBB\xBFid:a\x80\n", Limits::default()),
        SseError::InvalidUtf8 { offset: 7 }
    );
    // A surrogate half is no character either.
    assert_eq!(
        failure(b"data:\xED\xA0\x80\n", Limits::default()),
        SseError::InvalidUtf8 { offset: 5 }
    );
}

#[test]
fn frames_before_an_error_come_first_and_the_error_stays() {
    let mut decoder = Decoder::new(Limits::default());
    let error = SseError::InvalidUtf8 { offset: 15 };
    decoder.push(b"data: 1\n\ndata: \xFF\n\ndata: 3\n\n");
    decoder.push(b"data: 4\n\n");
    assert_eq!(decoder.next_frame(), Ok(Some(data("1"))));
    assert_eq!(decoder.next_frame(), Err(error.clone()));
    assert_eq!(decoder.finish(), Err(error.clone()));
    assert_eq!(decoder.next_frame(), Err(error));
    assert_eq!(decoder.reserved_bytes(), 0);
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    assert_eq!(read(b"data: 0123456789\n\n", SMALL).0, [data("0123456789")]);
    let too_long = SseError::LineTooLong {
        limit: 16,
        offset: 18,
    };
    assert_eq!(failure(b"\r\ndata: 0123456789a\n\n", SMALL), too_long);
    // Known as soon as the byte is there, with no line end in sight.
    let mut decoder = Decoder::new(SMALL);
    decoder.push(b"\r\ndata: 0123456789");
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.push(b"a");
    assert_eq!(decoder.next_frame(), Err(too_long));
    // Comments count: they too would have to be held.
    assert_eq!(
        failure(&[b':'; 17], SMALL),
        SseError::LineTooLong {
            limit: 16,
            offset: 16
        }
    );
}

#[test]
fn an_event_may_be_as_large_as_the_limit_and_no_larger() {
    let lines = b"data: 01234567\ndata: 89abcde\n";
    assert_eq!(
        read(&[&lines[..], b"\n"].concat(), SMALL).0,
        [data("01234567\n89abcde")]
    );
    let too_large = |offset| SseError::EventTooLarge { limit: 16, offset };
    assert_eq!(
        failure(&[&lines[..], b"data:\n\n"].concat(), SMALL),
        too_large(29)
    );
    assert_eq!(
        failure(&[&lines[..], b"id: 1\n\n"].concat(), SMALL),
        too_large(29)
    );
    assert_eq!(
        failure(&[&lines[..], b"event: 1\n\n"].concat(), SMALL),
        too_large(29)
    );
    // A name or id replaces the one before it, so saying it again costs nothing.
    assert_eq!(
        read(
            b"event: 0123456\nevent: 0123456\nid: 0123456\nid: 89\ndata\n\n",
            SMALL
        )
        .1,
        Ok(End::Complete)
    );
}

#[test]
fn the_limit_is_per_event() {
    let stream = b"data: 0123456789\n\n".repeat(100);
    assert_eq!(
        read(&stream, SMALL),
        (vec![data("0123456789"); 100], Ok(End::Complete))
    );
}

#[test]
fn no_more_than_the_limits_is_ever_reserved() {
    let limits = Limits {
        line_bytes: 1000,
        event_bytes: 1500,
    };
    let mut decoder = Decoder::new(limits);
    for byte in b"data: 0123456789\n".repeat(200) {
        decoder.push(&[byte]);
        assert!(
            decoder.reserved_bytes() <= 2500,
            "{} bytes",
            decoder.reserved_bytes()
        );
    }
    assert_eq!(
        decoder.next_frame(),
        Err(SseError::EventTooLarge {
            limit: 1500,
            offset: 136 * 17
        })
    );

    let mut decoder = Decoder::new(limits);
    for _ in 0..=1000 {
        decoder.push(b"x");
        assert!(
            decoder.reserved_bytes() <= 1000,
            "{} bytes",
            decoder.reserved_bytes()
        );
    }
    assert_eq!(
        decoder.next_frame(),
        Err(SseError::LineTooLong {
            limit: 1000,
            offset: 1000
        })
    );
}

#[test]
fn memory_for_a_huge_line_is_given_back() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(b"data: ");
    decoder.push(&vec![b'x'; 1 << 20]);
    decoder.push(b"\n\n");
    assert_eq!(
        decoder
            .next_frame()
            .map(|frame| frame.map(|frame| frame.data.len())),
        Ok(Some(1 << 20))
    );
    assert_eq!(decoder.reserved_bytes(), 0);
}

#[test]
fn the_end_hands_out_an_event_without_its_blank_line() {
    let cut = |stream: &[u8]| read(stream, Limits::default());
    assert_eq!(
        cut(b"data: 1\n\nevent: a\ndata: 2\n"),
        (vec![data("1")], Ok(End::Unterminated(named("a", "2"))))
    );
    assert_eq!(
        cut(b"data: 1\r"),
        (vec![], Ok(End::Unterminated(data("1"))))
    );
    assert_eq!(
        cut(b"data: 1\ndata: 2"),
        (vec![], Ok(End::Unterminated(data("1\n2"))))
    );
    assert_eq!(
        cut(b"data: 1\nda"),
        (vec![], Ok(End::Unterminated(data("1"))))
    );
    assert_eq!(cut(b""), (vec![], Ok(End::Complete)));
    assert_eq!(cut(b"\xEF\xBB\xBF"), (vec![], Ok(End::Complete)));
}

#[test]
fn an_end_inside_a_character_is_an_error() {
    assert_eq!(
        read(b"data: \xF0\x9F\x98", Limits::default()),
        (vec![], Err(SseError::InvalidUtf8 { offset: 6 }))
    );
}

#[test]
fn after_the_end_a_new_stream_can_begin() {
    let mut decoder = Decoder::new(SMALL);
    decoder.push(b"data: 1\n\nevent: lost\ndata: 2\r");
    assert_eq!(decoder.finish(), Ok(End::Unterminated(named("lost", "2"))));
    decoder.push(b"\n\xEF\xBB\xBF");
    assert_eq!(decoder.finish(), Ok(End::Complete));
    decoder.push(b"\xEF\xBB\xBFdata: 3\n\n");
    assert_eq!(decoder.next_frame(), Ok(Some(data("1"))));
    assert_eq!(decoder.next_frame(), Ok(Some(data("3"))));
    decoder.push(&[b'x'; 17]);
    assert_eq!(
        decoder.next_frame(),
        Err(SseError::LineTooLong {
            limit: 16,
            offset: 28
        })
    );
}

#[test]
fn line_ends_are_found_at_every_place() {
    for length in 0..100 {
        let text = "x".repeat(length);
        for end in ["\n", "\r", "\r\n"] {
            let stream = format!("data: {text}{end}data: y{end}{end}");
            assert_eq!(decoded(stream.as_bytes()), [data(&format!("{text}\ny"))]);
        }
    }
}

#[test]
fn a_frame_is_written_whole() {
    let full = Frame {
        event: Some("step".into()),
        data: "{}".into(),
        id: Some("7".into()),
        retry: Some(1500),
    };
    assert_eq!(
        encode(&full).unwrap(),
        "event: step\nid: 7\nretry: 1500\ndata: {}\n\n"
    );
    assert_eq!(
        encode(FrameRef::new("{}").with_event("step").with_id("")).unwrap(),
        "event: step\nid: \ndata: {}\n\n"
    );
    assert_eq!(encode(FrameRef::new("")).unwrap(), "data: \n\n");
    assert_eq!(encode(FrameRef::new("[DONE]")).unwrap(), DONE);
    assert!(decoded(DONE.as_bytes())[0].is_done());
}

#[test]
fn an_empty_name_is_left_out() {
    assert_eq!(
        encode(FrameRef::new("1").with_event("")).unwrap(),
        "data: 1\n\n"
    );
}

#[test]
fn every_line_end_in_data_starts_a_data_line() {
    let text = encode(FrameRef::new("a\nb\rc\r\nd\n\re\r\r\nf\n")).unwrap();
    assert_eq!(
        text,
        "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\ndata: \ndata: f\ndata: \n\n"
    );
    assert_eq!(decoded(text.as_bytes()), [data("a\nb\nc\nd\n\ne\n\nf\n")]);
}

#[test]
fn leading_spaces_survive() {
    let frame = Frame {
        event: Some(" a ".into()),
        id: Some("  b".into()),
        ..data(" c\n  d")
    };
    assert_eq!(decoded(encode(&frame).unwrap().as_bytes()), [frame]);
}

#[test]
fn names_and_ids_that_would_break_the_line_are_refused_and_nothing_is_written() {
    let mut out = String::from("before");
    for bad in ["a\nb", "\r", "a\r\ndata: injected"] {
        let refused = |field| {
            Err(SseError::Unwritable {
                field,
                value: bad.to_owned(),
            })
        };
        assert_eq!(
            write_frame(&mut out, FrameRef::new("1").with_event(bad)),
            refused("event")
        );
        assert_eq!(
            write_frame(&mut out, FrameRef::new("1").with_event("ok").with_id(bad)),
            refused("id")
        );
    }
    let nul = SseError::Unwritable {
        field: "id",
        value: "a\0".to_owned(),
    };
    assert_eq!(
        write_frame(&mut out, FrameRef::new("1").with_id("a\0")),
        Err(nul)
    );
    assert_eq!(out, "before");
}

#[test]
fn a_comment_cannot_become_an_event() {
    let mut out = String::new();
    write_comment(&mut out, "still here\n\ndata: 1\r\rdata: 2");
    assert_eq!(out, ": still here\n: \n: data: 1\n: \n: data: 2\n\n");
    assert_eq!(decoded(out.as_bytes()), []);
}

#[test]
fn errors_say_where_and_what_to_do() {
    let texts = [
        SseError::LineTooLong {
            limit: 10,
            offset: 99,
        },
        SseError::EventTooLarge {
            limit: 10,
            offset: 99,
        },
        SseError::InvalidUtf8 { offset: 99 },
        SseError::Unwritable {
            field: "event",
            value: "a\nb".to_owned(),
        },
    ]
    .map(|error| error.to_string());
    assert_eq!(
        texts,
        [
            "event-stream line passes 10 bytes at byte 99; raise the line limit or send smaller events",
            "event passes 10 bytes in the line at byte 99; raise the event limit or send smaller events",
            "event stream is not utf-8 at byte 99; send text as utf-8 and binary data as base64",
            "event \"a\\nb\" cannot be written to an event stream; remove line breaks and nul characters",
        ]
    );
}
