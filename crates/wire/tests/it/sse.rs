//! Properties of the event-stream codec that hold for every stream.

use std::fmt;

use throughline_testkit::{Rng, chunks, generate, property};
use throughline_wire::sse::{Decoder, End, Frame, Limits, SseError, encode, write_comment};

/// Everything that a reader of a stream gets to see.
type Outcome = (Vec<Frame>, Result<End, SseError>);

fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Outcome {
    let mut decoder = Decoder::new(limits);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Ok(Some(frame)) = decoder.next_frame() {
            frames.push(frame);
        }
    }
    let end = decoder.finish();
    assert_eq!(
        decoder.next_frame().err(),
        end.clone().err(),
        "an error is sticky"
    );
    (frames, end)
}

/// A stream put together from what the grammar treats specially.
fn stream(rng: &mut Rng, size: usize) -> Vec<u8> {
    const PIECES: [&str; 26] = [
        "data", "data:", "data: ", "data: ", "data: ", "event: ", "event:", "id: ", "retry: ", ":",
        " ", "x", "12", "\0", "é", "€", "😀", "\u{FEFF}", "\n", "\n", "\n\n", "\n\n", "\r", "\r\n",
        "\r\n", "\r\n\r\n",
    ];
    let mut bytes = if rng.chance(0.3) {
        "\u{FEFF}".as_bytes().to_vec()
    } else {
        Vec::new()
    };
    for _ in 0..rng.range(0..=2 * size) {
        if rng.chance(0.05) {
            let len = rng.below(100);
            bytes.extend_from_slice(generate::text(rng, len).as_bytes());
        } else {
            bytes.extend_from_slice(rng.pick(&PIECES).as_bytes());
        }
    }
    bytes
}

/// The grammar, read the slow and obvious way from a whole stream.
fn by_the_book(text: &str) -> (Vec<Frame>, End) {
    let text = text
        .strip_prefix('\u{FEFF}')
        .unwrap_or(text)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut frames = Vec::new();
    let mut open = Frame::default();
    let mut data = Vec::new();
    // What follows the last line end is a line only if there is something.
    for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "" if line.is_empty() => {
                if !data.is_empty() {
                    frames.push(Frame {
                        data: data.join("\n"),
                        ..open
                    });
                }
                (open, data) = (Frame::default(), Vec::new());
            }
            "data" => data.push(value),
            "event" => open.event = Some(value).filter(|name| !name.is_empty()),
            "id" if !value.contains('\0') => open.id = Some(value),
            "retry" if value.chars().all(|c| c.is_ascii_digit()) => {
                open.retry = value.parse().ok().or(open.retry);
            }
            _ => {}
        }
    }
    (
        frames,
        if data.is_empty() {
            End::Complete
        } else {
            End::Unterminated(Frame {
                data: data.join("\n"),
                ..open
            })
        },
    )
}

fn same<T: PartialEq + fmt::Debug>(
    input: impl fmt::Debug,
    left: &T,
    right: &T,
) -> Result<(), String> {
    if left == right {
        return Ok(());
    }
    Err(format!(
        "{input:?} gave
  {left:?}, not
  {right:?}"
    ))
}

/// Prints chunks as text with escapes.
struct Cut<'a>(&'a [&'a [u8]]);

impl fmt::Debug for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0 {
            write!(f, "[{}]", chunk.escape_ascii())?;
        }
        Ok(())
    }
}

fn chunking_does_not_show(bytes: &[u8], limits: Limits, rng: &mut Rng) -> Result<(), String> {
    let whole = outcome([bytes], limits);
    for cut in chunks::all(bytes, rng, 20) {
        let parts = outcome(cut.iter().copied(), limits);
        same(Cut(&cut), &parts, &whole)?;
    }
    Ok(())
}

#[test]
fn chunk_boundaries_do_not_show() {
    property("sse chunking", 400, |rng, size| {
        let bytes = stream(rng, size);
        chunking_does_not_show(&bytes, Limits::default(), rng)
    });
}

#[test]
fn chunk_boundaries_do_not_show_in_broken_streams_and_under_tight_limits() {
    property("sse chunking of broken streams", 400, |rng, size| {
        let mut bytes = stream(rng, size);
        for _ in 0..rng.below(3) {
            let at = rng.range(0..=bytes.len());
            bytes.insert(at, *rng.pick(&[0xFF, 0x80, 0xC3, 0xED, 0xF0]));
        }
        let bound = |rng: &mut Rng| if rng.bool() { rng.below(40) } else { 1000 };
        let limits = Limits {
            line_bytes: bound(rng),
            event_bytes: bound(rng),
        };
        chunking_does_not_show(&bytes, limits, rng)
    });
}

#[test]
fn decoding_agrees_with_the_grammar_read_plainly() {
    property("sse grammar", 2000, |rng, size| {
        let bytes = stream(rng, size);
        let text = std::str::from_utf8(&bytes).expect("the pieces are text");
        let (frames, end) = by_the_book(text);
        let cut = chunks::random_split(&bytes, rng);
        same(text, &outcome(cut, Limits::default()), &(frames, Ok(end)))
    });
}

#[test]
fn what_is_encoded_decodes_to_itself() {
    let text = |rng: &mut Rng, refused: &[char]| {
        let len = rng.below(30);
        let mut text = generate::text(rng, len);
        for _ in 0..rng.below(4) {
            text.push_str(rng.pick::<&str>(&[
                "\n", "\r", "\r\n", " ", ": ", "\u{FEFF}", "data: ", "\0", "😀",
            ]));
        }
        text.replace(refused, "")
    };
    property("sse round trip", 1000, |rng, size| {
        let mut written = String::new();
        let mut frames = Vec::new();
        for _ in 0..rng.range(0..=size / 10) {
            if rng.chance(0.2) {
                write_comment(&mut written, &text(rng, &[]));
            }
            let mut frame = Frame {
                data: text(rng, &[]),
                ..Frame::default()
            };
            frame.event =
                Some(text(rng, &['\r', '\n'])).filter(|name| rng.bool() && !name.is_empty());
            frame.id = rng.bool().then(|| text(rng, &['\r', '\n', '\0']));
            frame.retry = rng.chance(0.2).then(|| rng.next_u64());
            written.push_str(&encode(&frame).map_err(|error| error.to_string())?);
            // The one thing the format cannot carry: which line end it was.
            frame.data = frame.data.replace("\r\n", "\n").replace('\r', "\n");
            frames.push(frame);
        }
        let cut = chunks::random_split(written.as_bytes(), rng);
        same(
            &written,
            &outcome(cut, Limits::default()),
            &(frames, Ok(End::Complete)),
        )
    });
}

#[test]
fn a_line_of_50_mb_is_refused_in_bounded_memory() {
    let line = vec![b'x'; 50_000_000];
    let limit = Limits::default().line_bytes;
    let too_long = SseError::LineTooLong {
        limit,
        offset: limit as u64,
    };
    for chunk in [1_460, 65_536, line.len()] {
        let mut decoder = Decoder::new(Limits::default());
        for (index, piece) in line.chunks(chunk).enumerate() {
            decoder.push(piece);
            let reserved = decoder.reserved_bytes();
            assert!(reserved <= limit, "{reserved} bytes reserved");
            let expected = if (index + 1) * chunk > limit {
                Err(too_long.clone())
            } else {
                Ok(None)
            };
            assert_eq!(decoder.next_frame(), expected);
        }
        assert_eq!(decoder.finish(), Err(too_long.clone()));
    }
}
