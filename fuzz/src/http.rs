//! Answers over plain HTTP: whatever comes, it is read or refused, and in whatever parts it comes,
//! the same is read.
//!
//! The client's own source files stand here, not its crate: the rest of it would bring TLS into an
//! instrumented build.

use bytes::BytesMut;

#[path = "../../crates/throughline/src/client/http/plain/answer.rs"]
mod answer;
#[path = "../../crates/throughline/src/client/http/plain/frames.rs"]
mod frames;

use answer::{AnswerHead, Broken};
use frames::{Frames, Framing, Step};

/// What was read of an answer.
#[derive(Debug, Default, PartialEq)]
struct Read {
    head: Option<AnswerHead>,
    body: Vec<u8>,
    /// The body may end where what was given ends.
    is_whole: bool,
    broken: Option<Broken>,
}

/// The first byte says how large the parts are in which the rest comes.
pub(crate) fn run(data: &[u8]) {
    let Some((first, data)) = data.split_first() else {
        return;
    };
    let whole = read(data, data.len().max(1));
    let parts = read(data, usize::from(*first) + 1);
    // How much of a broken answer was read before it broke depends on its parts.
    match (&whole.broken, &parts.broken) {
        (None, None) => assert_eq!(whole, parts),
        (Some(_), Some(_)) => {
            let length = whole.body.len().min(parts.body.len());
            assert_eq!(whole.body[..length], parts.body[..length]);
        }
        (None, Some(broken)) => panic!("in parts it is refused: {broken}"),
        // Less of it was looked at: what is too long was not seen to be.
        (Some(_), None) => {}
    }
    if let Some(head) = &whole.head {
        assert!((200..1000).contains(&head.status), "{}", head.status);
        let is_bounded = matches!(head.framing, Framing::Length(_) | Framing::Chunked);
        assert!(!head.is_kept || is_bounded, "{head:?}");
        if let Framing::Length(length) = head.framing {
            assert!(whole.body.len() as u64 <= length);
        }
    }
}

fn read(data: &[u8], part: usize) -> Read {
    let mut read = Read::default();
    let (mut buffer, mut frames) = (BytesMut::new(), None);
    for part in data.chunks(part) {
        buffer.extend_from_slice(part);
        if frames.is_none() {
            match answer::read(&mut buffer) {
                Ok(head) => {
                    frames = head.as_ref().map(|head| Frames::new(head.framing));
                    read.head = head;
                }
                Err(broken) => {
                    read.broken = Some(broken);
                    return read;
                }
            }
        }
        let Some(frames) = &mut frames else { continue };
        loop {
            match frames.next(&mut buffer) {
                Ok(Step::Piece(piece)) => read.body.extend_from_slice(&piece),
                Ok(Step::More) => {
                    read.is_whole = frames.may_end();
                    break;
                }
                Ok(Step::End) => {
                    read.is_whole = true;
                    return read;
                }
                Err(broken) => {
                    read.broken = Some(broken);
                    return read;
                }
            }
        }
    }
    read
}
