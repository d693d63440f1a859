//! A request and its response, byte by byte, on a connection of its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server that sends nothing for this long counts as dead.
const SILENCE: Duration = Duration::from_secs(60);

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: &'static str,
    /// The path, with its query.
    pub path: String,
    /// Headers besides the usual ones.
    pub headers: Vec<(&'static str, String)>,
    /// The body; none if it is empty.
    pub body: String,
}

impl Request {
    /// A `GET` request.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// A `POST` request.
    pub fn post(path: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            method: "POST",
            path: path.into(),
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A response whose head has arrived.
#[derive(Debug)]
pub struct Exchange {
    stream: BufReader<TcpStream>,
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    is_over: bool,
}

impl Exchange {
    /// Sends a request and reads the head of its response. The connection is closed on any error.
    pub fn open(address: &str, request: &Request) -> io::Result<Self> {
        // Unread bytes stay with the system, so that closing the socket resets the connection.
        let mut stream = BufReader::with_capacity(1, Self::send(address, request)?);
        let first = line(&mut stream)?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("that is no answer"))?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut stream)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Self {
            stream,
            status,
            headers,
            is_over: false,
        })
    }

    /// Sends a request and reads nothing.
    pub fn send(address: &str, request: &Request) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: {address}\r\n",
            request.method, request.path
        );
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !request.body.is_empty() {
            let length = request.body.len();
            head.push_str(&format!(
                "content-type: application/json\r\ncontent-length: {length}\r\n"
            ));
        }
        head.push_str("\r\n");
        head.push_str(&request.body);
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    }

    /// A header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The next chunk of the body; `None` after the last. An end without the last chunk is an
    /// error.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.is_over {
            return Ok(None);
        }
        if let Some(length) = self.header("content-length") {
            let length = length.parse().map_err(io::Error::other)?;
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body)?;
            self.is_over = true;
            return Ok(Some(body));
        }
        let size = line(&mut self.stream)?;
        let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk)?;
        line(&mut self.stream)?;
        if size == 0 {
            self.is_over = true;
            return Ok(None);
        }
        Ok(Some(chunk))
    }

    /// The whole body.
    pub fn whole(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk()? {
            body.extend(chunk);
        }
        Ok(body)
    }
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
