//! A minimal HTTP/1.1 server with control over every byte.

use std::fmt::Write as _;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::gate::Gate;

/// The longest head of a request.
const HEAD: usize = 64 * 1024;
/// The longest body of a request.
const BODY: usize = 64 * 1024 * 1024;
/// How much of an endless answer is sent to a client that reads all of it.
const FLOOD: usize = 512 * 1024 * 1024;

/// A received request.
#[derive(Clone, Default)]
pub(super) struct Incoming {
    pub(super) method: String,
    pub(super) target: String,
    /// Headers with lower-case names.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Incoming {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

/// An action on the connection.
#[derive(Debug)]
pub(super) enum Act {
    /// Sends these bytes at once.
    Send(Vec<u8>),
    /// Sends these bytes one by one.
    Drip(Vec<u8>),
    /// Sends these bytes repeatedly until the client disconnects.
    Flood(Vec<u8>),
    /// Waits until a gate is open.
    Wait(Gate),
    /// Sends nothing more until the client disconnects.
    Stall,
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
}

/// Whether a connection can take another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    Gone,
}

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Every byte is sent when it is written.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// The next request; `None` when the client has closed the connection.
    pub(super) async fn request(&mut self) -> io::Result<Option<Incoming>> {
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break self.take(end + 4);
            }
            if self.buffer.len() > HEAD {
                return Err(invalid("the head of the request is too long"));
            }
            if !self.more().await? {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(invalid("the request ends in its head")),
                };
            }
        };
        let mut request = parse_head(&head)?;
        let chunked = request
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        request.body = if chunked {
            self.chunks().await?
        } else {
            let length = match request.header("content-length") {
                Some(text) => text.parse().map_err(|_| invalid("content-length"))?,
                None => 0,
            };
            self.exactly(length).await?
        };
        Ok(Some(request))
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(size)
                .ok()
                .and_then(|text| usize::from_str_radix(text.trim(), 16).ok())
                .ok_or_else(|| invalid("the size of a chunk"))?;
            if size == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.exactly(size).await?);
            self.line().await?;
            if body.len() > BODY {
                return Err(invalid("the body of the request is too long"));
            }
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let mut line = self.take(end + 2);
                line.truncate(end);
                return Ok(line);
            }
            if self.buffer.len() > HEAD || !self.more().await? {
                return Err(invalid("a line of the request does not end"));
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY {
            return Err(invalid("the body of the request is too long"));
        }
        while self.buffer.len() < length {
            if !self.more().await? {
                return Err(invalid("the request ends in its body"));
            }
        }
        Ok(self.take(length))
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }

    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }

    /// Performs actions. An error means that the client has disconnected.
    pub(super) async fn perform(&mut self, acts: Vec<Act>) -> io::Result<After> {
        for act in acts {
            match act {
                Act::Send(bytes) => {
                    self.stream.write_all(&bytes).await?;
                    self.stream.flush().await?;
                }
                Act::Drip(bytes) => {
                    for byte in bytes {
                        self.stream.write_all(&[byte]).await?;
                        tokio::task::yield_now().await;
                    }
                }
                Act::Flood(bytes) => {
                    let mut sent = 0;
                    while sent < FLOOD {
                        self.stream.write_all(&bytes).await?;
                        sent += bytes.len();
                    }
                    return Ok(After::Gone);
                }
                Act::Wait(gate) => gate.passed().await,
                Act::Stall => {
                    while self.stream.read_buf(&mut self.buffer).await? > 0 {
                        self.buffer.clear();
                    }
                    return Ok(After::Gone);
                }
                Act::Close => {
                    self.stream.shutdown().await?;
                    return Ok(After::Gone);
                }
                Act::Reset => {
                    self.stream.set_zero_linger()?;
                    return Ok(After::Gone);
                }
            }
        }
        Ok(After::Keep)
    }
}

/// The head of a response, without the headers about the length of the body.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
}

impl Head {
    pub(super) fn new(status: u16, content_type: &str) -> Self {
        Self {
            status,
            headers: Vec::new(),
        }
        .with("content-type", content_type)
    }

    #[must_use]
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(found, _)| found != name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The head of a body of a known length.
    pub(super) fn sized(&self, length: usize) -> Vec<u8> {
        self.written(&format!("content-length: {length}"))
    }

    /// The head of a body in chunks.
    pub(super) fn chunked(&self) -> Vec<u8> {
        self.written("transfer-encoding: chunked")
    }

    fn written(&self, framing: &str) -> Vec<u8> {
        let mut text = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            // Writing to a string cannot fail.
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str(framing);
        text.push_str("\r\n\r\n");
        text.into_bytes()
    }
}

/// One chunk of a body.
pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// What ends a body in chunks.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

fn parse_head(head: &[u8]) -> io::Result<Incoming> {
    let text = std::str::from_utf8(head).map_err(|_| invalid("the head is not text"))?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1")) = (first.next(), first.next(), first.next())
    else {
        return Err(invalid("the request line"));
    };
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Incoming {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: Vec::new(),
    })
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
