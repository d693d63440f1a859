use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::events::Events;

/// A request that a test makes.
#[derive(Clone, Debug)]
pub struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

impl Request {
    fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// A `GET`.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    /// A `DELETE`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new("DELETE", path)
    }

    /// A `POST` of JSON.
    pub fn post(path: impl Into<String>, body: &impl ToString) -> Self {
        let mut request = Self::new("POST", path).with("content-type", "application/json");
        request.body = Some(body.to_string());
        request
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn written(&self, host: SocketAddr) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nhost: {host}\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(self.body.as_deref().unwrap_or_default());
        text.into_bytes()
    }
}

/// A response of the server.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body; empty for an event stream.
    pub body: String,
}

impl Answer {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// A connection to a server, opened on demand and reused.
pub struct Client {
    address: SocketAddr,
    open: Option<BufReader<TcpStream>>,
    sent: u64,
}

impl Client {
    /// A client of the server at an address.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            open: None,
            sent: 0,
        }
    }

    /// The number of sent bytes.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends a request and reads its whole response.
    pub async fn send(&mut self, request: Request) -> io::Result<Answer> {
        let (mut answer, mut stream) = self.ask(&request).await?;
        let body = body(&answer, &mut stream).await?;
        answer.body = String::from_utf8(body).map_err(|_| invalid("the body is not text"))?;
        if answer.header("connection") != Some("close") {
            self.open = Some(stream);
        }
        Ok(answer)
    }

    /// Sends a request whose response is an event stream, which owns the connection from then on.
    /// Another response is read whole, and there are no events.
    pub async fn stream(&mut self, request: Request) -> io::Result<(Answer, Events)> {
        let (mut answer, mut stream) = self.ask(&request).await?;
        let is_stream = answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        if is_stream {
            return Ok((answer, Events::of(stream)));
        }
        let body = body(&answer, &mut stream).await?;
        answer.body = String::from_utf8(body).map_err(|_| invalid("the body is not text"))?;
        Ok((answer, Events::none()))
    }

    async fn ask(&mut self, request: &Request) -> io::Result<(Answer, BufReader<TcpStream>)> {
        let bytes = request.written(self.address);
        self.sent += bytes.len() as u64;
        let mut stream = match self.open.take() {
            Some(open) => open,
            None => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        stream.write_all(&bytes).await?;
        let answer = head(&mut stream).await?;
        Ok((answer, stream))
    }
}

async fn head(stream: &mut BufReader<TcpStream>) -> io::Result<Answer> {
    let first = line(stream).await?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let mut answer = Answer {
        status: status.ok_or_else(|| invalid("the status line"))?,
        ..Answer::default()
    };
    loop {
        let line = line(stream).await?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok(answer);
        };
        let name = name.to_ascii_lowercase();
        answer.headers.push((name, value.trim().to_owned()));
    }
}

async fn body(answer: &Answer, stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if answer.header("transfer-encoding") == Some("chunked") {
        while let Some(piece) = chunk(stream).await? {
            body.extend(piece);
        }
    } else if let Some(length) = answer.header("content-length") {
        let length = length.parse().map_err(|_| invalid("content-length"))?;
        body.resize(length, 0);
        stream.read_exact(&mut body).await?;
    }
    Ok(body)
}

/// The next chunk of a body; `None` at its end.
pub(super) async fn chunk(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let size = line(stream).await?;
    let size = usize::from_str_radix(&size, 16).map_err(|_| invalid("the size of a chunk"))?;
    let mut piece = vec![0; size];
    stream.read_exact(&mut piece).await?;
    line(stream).await?;
    Ok((size > 0).then_some(piece))
}

async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        let kind = io::ErrorKind::UnexpectedEof;
        return Err(io::Error::new(kind, "the server closed the connection"));
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
