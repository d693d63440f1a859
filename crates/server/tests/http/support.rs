//! A server, and a client that sees every byte.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::{get as get_route, post};
use throughline_server::{Answered, Caller, Config, Payload, Server, Sources};
use throughline_testkit::Scratch;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A configuration on a free port and in memory, unless the file says otherwise.
pub(crate) fn config(file: &str, variables: &[(&str, &str)]) -> Config {
    let folder = Scratch::new("http");
    let path = folder.path().join("throughline.toml");
    std::fs::write(&path, file).unwrap();
    let mut environment: BTreeMap<String, String> = [
        ("THROUGHLINE_LISTEN", "127.0.0.1:0"),
        ("THROUGHLINE_STORE", "memory:"),
    ]
    .iter()
    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
    .collect();
    for (name, value) in variables {
        environment.insert((*name).to_owned(), (*value).to_owned());
    }
    Config::load(&Sources {
        file: Some(path),
        environment,
        ..Sources::default()
    })
    .unwrap()
}

/// A server with a few routes that show what handlers see.
pub(crate) async fn start(file: &str) -> Server {
    start_with(config(file, &[])).await
}

pub(crate) async fn start_with(config: Config) -> Server {
    let more = Router::new()
        .route("/echo", post(echo))
        .route("/panic", get_route(panics))
        .route("/named/{name}", get_route(named))
        .route("/events", get_route(events))
        .route("/long", get_route(long))
        .route("/waits", get_route(std::future::pending::<String>));
    Server::builder(config).routes(more).serve().await.unwrap()
}

/// How many bytes came, and what they add up to.
async fn echo(_caller: Caller, payload: Payload) -> String {
    let sum: u64 = payload.bytes().iter().map(|byte| u64::from(*byte)).sum();
    format!("{} {sum}", payload.bytes().len())
}

async fn named(axum::extract::Path(name): axum::extract::Path<String>) -> String {
    name
}

/// More than what a connection buffers before it is read.
pub(crate) const LONG: usize = 32 << 20;

async fn long() -> String {
    "x".repeat(LONG)
}

async fn panics() -> String {
    panic!("canary-panic")
}

/// A stream of two events.
async fn events() -> axum::response::Response {
    let frames = ["event: a\ndata: 1\n\n", "data: [DONE]\n\n"].map(Ok::<_, std::io::Error>);
    let mut response = axum::response::Response::new(axum::body::Body::from_stream(
        futures_util::stream::iter(frames),
    ));
    let kind = axum::http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert("content-type", kind);
    let run = throughline_store::RunId::from_bytes([7; 16]);
    response.extensions_mut().insert(Answered(run));
    response
}

pub(crate) async fn end(server: Server) {
    server.close();
    server.join().await;
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A text in the error that it must be.
    pub(crate) fn error(&self, key: &str) -> Option<String> {
        let value: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let error = value.get("error").unwrap().as_object().unwrap();
        for key in ["message", "type", "param", "code"] {
            assert!(error.contains_key(key), "{}", self.body);
        }
        error[key].as_str().map(str::to_owned)
    }

    pub(crate) fn code(&self) -> String {
        self.error("code").unwrap_or_default()
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self {
            stream: BufReader::new(TcpStream::connect(address).await.unwrap()),
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    /// Send a request and read its answer. A body goes with its length.
    pub(crate) async fn send(
        &mut self,
        line: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = format!("{line} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str("host: 127.0.0.1\r\n");
        }
        if !body.is_empty() {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.write(head.as_bytes()).await;
        // A server that has refused does not read on.
        let _ = self.stream.get_mut().write_all(body).await;
        self.answer().await
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let first = self.line().await.expect("an answer");
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await.expect("the head of an answer");
            match line.split_once(": ") {
                Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
                None => break,
            }
        }
        let mut answer = Answer {
            status,
            headers,
            body: String::new(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = self.chunks().await;
            return answer;
        }
        let length = answer
            .header("content-length")
            .map(|text| text.parse().unwrap());
        answer.body = self.exactly(length.unwrap_or(0)).await;
        answer
    }

    async fn exactly(&mut self, length: usize) -> String {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    async fn chunks(&mut self) -> String {
        let mut body = String::new();
        loop {
            let length = self.line().await.expect("a chunk");
            let length = usize::from_str_radix(&length, 16).unwrap();
            body.push_str(&self.exactly(length).await);
            self.line().await.expect("the end of a chunk");
            if length == 0 {
                return body;
            }
        }
    }

    /// The next line that begins like this.
    pub(crate) async fn line_of(&mut self, beginning: &str) -> String {
        loop {
            let line = self.line().await.expect("more lines");
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line).await.unwrap() {
            0 => None,
            _ => Some(line.trim_end().to_owned()),
        }
    }

    /// Whether the server has closed the connection; waits until it has or has sent more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.stream.read(&mut byte).await, Ok(0) | Err(_))
    }
}

/// One request on a connection of its own.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    let line = format!("GET {path}");
    Client::to(address).await.send(&line, &[], b"").await
}
