//! The head of an answer.

use std::fmt;

use bytes::{Buf, BytesMut};
use httparse::{EMPTY_HEADER, Response, Status};

use super::frames::Framing;

/// An answer that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken(pub(super) &'static str);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Broken {}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    /// Names in lower case and values.
    pub(super) headers: Vec<(String, String)>,
    /// Where its body ends.
    pub(super) framing: Framing,
    /// Whether the connection takes another request after it.
    pub(super) is_kept: bool,
}

/// How many headers an answer may have, and how many bytes its head.
const HEADERS: usize = 100;
const HEAD: usize = 64 * 1024;

/// Take the head of an answer from what was read; none when it is not all there. Answers that only
/// say that another one follows are passed over.
pub(super) fn read(buffer: &mut BytesMut) -> Result<Option<AnswerHead>, Broken> {
    loop {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut response = Response::new(&mut headers);
        let length = match response.parse(buffer) {
            Ok(Status::Complete(length)) if length <= HEAD => length,
            Ok(Status::Partial) if buffer.len() <= HEAD => return Ok(None),
            Ok(_) => return Err(Broken("the head of the answer is too long")),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Broken("the answer has too many headers"));
            }
            Err(_) => return Err(Broken("the answer is not HTTP")),
        };
        let head = match response.code {
            None | Some(..100 | 101) => return Err(Broken("the answer is not one to the request")),
            Some(100..200) => None,
            Some(status) => Some(understood(status, &response)?),
        };
        buffer.advance(length);
        if head.is_some() {
            return Ok(head);
        }
    }
}

fn understood(status: u16, response: &Response<'_, '_>) -> Result<AnswerHead, Broken> {
    let headers: Vec<(String, String)> = response
        .headers
        .iter()
        .map(|header| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (header.name.to_ascii_lowercase(), value)
        })
        .collect();
    // Values of a name, which may stand in one header or in several.
    let values = |name: &'static str| {
        let named = headers.iter().filter(move |(found, _)| found == name);
        named.flat_map(|(_, value)| value.split(',').map(str::trim))
    };
    let coding = values("transfer-encoding").next();
    let mut lengths = values("content-length");
    let length = lengths.next();
    let framing = match (status, coding, length) {
        (204 | 304, _, _) => Framing::Length(0),
        (_, Some(_), _) => {
            let mut codings = values("transfer-encoding");
            match (codings.next(), codings.next()) {
                (Some(only), None) if only.eq_ignore_ascii_case("chunked") => Framing::Chunked,
                _ => return Err(Broken("the answer is sent in a way that nobody asked for")),
            }
        }
        (_, None, Some(length)) => {
            let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            match length.parse() {
                Ok(number) if is_number && lengths.all(|other| other == length) => {
                    Framing::Length(number)
                }
                _ => return Err(Broken("the length of the answer cannot be read")),
            }
        }
        (_, None, None) => Framing::UntilClosed,
    };
    let says_close = values("connection").any(|value| value.eq_ignore_ascii_case("close"));
    // Who sends both a length and a coding may be understood in two ways: that is the last answer.
    let is_clear = coding.is_none() || length.is_none();
    let is_kept =
        response.version == Some(1) && !says_close && is_clear && framing != Framing::UntilClosed;
    Ok(AnswerHead {
        status,
        framing,
        is_kept,
        headers,
    })
}
