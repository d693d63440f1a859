//! The load: requests on keep-alive connections, one at a time on each.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// One connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    chunked: bool,
    left: usize,
}

/// The bytes of a request.
pub(crate) fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

impl Connection {
    pub(crate) async fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket is told");
        Self {
            stream: BufReader::with_capacity(64 * 1024, stream),
            chunked: false,
            left: 0,
        }
    }

    /// Sends a request, and reads the head of a successful response.
    pub(crate) async fn ask(&mut self, request: &[u8]) {
        let status = self.head(request).await;
        assert_eq!(status, 200);
    }

    /// Sends a request, reads the whole response, and returns its status.
    pub(crate) async fn status(&mut self, request: &[u8]) -> u16 {
        let status = self.head(request).await;
        while self.piece().await.is_some() {}
        status
    }

    async fn head(&mut self, request: &[u8]) -> u16 {
        let written = self.stream.get_mut().write_all(request).await;
        written.expect("a request is taken");
        let first = self.line().await;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.expect("an answer begins with its status");
        (self.chunked, self.left) = (false, 0);
        loop {
            let line = self.line().await.to_ascii_lowercase();
            if line.is_empty() {
                return status;
            }
            if let Some(length) = line.strip_prefix("content-length:") {
                self.left = length.trim().parse().expect("a length is a number");
            }
            self.chunked |= line.starts_with("transfer-encoding:");
        }
    }

    /// The next piece of the body; `None` at its end.
    pub(crate) async fn piece(&mut self) -> Option<Vec<u8>> {
        let size = match self.chunked {
            true => {
                let line = self.line().await;
                usize::from_str_radix(&line, 16).expect("a size of a chunk")
            }
            false => std::mem::take(&mut self.left),
        };
        let mut piece = vec![0; size];
        self.stream.read_exact(&mut piece).await.expect("a body");
        if self.chunked {
            self.line().await;
        }
        (size > 0).then_some(piece)
    }

    /// Sends a request, and reads the whole of a successful response.
    pub(crate) async fn whole(&mut self, request: &[u8]) -> Vec<u8> {
        self.ask(request).await;
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await {
            body.extend(piece);
        }
        body
    }

    /// The id of the response that a request creates.
    pub(crate) async fn response(&mut self, request: &[u8]) -> String {
        let body = self.whole(request).await;
        let body: Value = serde_json::from_slice(&body).expect("a response");
        let status = body.get("status").and_then(Value::as_str);
        assert_eq!(status, Some("completed"), "{body}");
        let id = body.get("id").and_then(Value::as_str);
        id.expect("a response has an id").to_owned()
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.expect("a line");
        line.trim_end().to_owned()
    }
}

/// The timings of a load.
pub(crate) struct Met {
    /// The duration of each request, in seconds.
    pub(crate) times: Vec<f64>,
    /// The duration of all requests.
    pub(crate) elapsed: Duration,
}

impl Met {
    pub(crate) fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Sends requests on several connections concurrently, and reads the responses.
pub(crate) async fn load(
    address: &str,
    connections: usize,
    requests: usize,
    make: impl Fn(usize) -> Vec<u8> + 'static,
) -> Met {
    let times = Rc::new(RefCell::new(Vec::with_capacity(requests)));
    let next = Rc::new(RefCell::new(0));
    let make = Rc::new(make);
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::to(address).await);
    }
    let local = LocalSet::new();
    let mut loads = Vec::new();
    let started = Instant::now();
    for mut connection in open {
        let (times, next, make) = (Rc::clone(&times), Rc::clone(&next), Rc::clone(&make));
        loads.push(local.spawn_local(async move {
            loop {
                let place = next.replace_with(|next| *next + 1);
                if place >= requests {
                    return;
                }
                let request = make(place);
                let asked = Instant::now();
                connection.whole(&request).await;
                times.borrow_mut().push(asked.elapsed().as_secs_f64());
            }
        }));
    }
    local
        .run_until(async {
            for load in loads {
                load.await.expect("every request is answered");
            }
        })
        .await;
    let elapsed = started.elapsed();
    Met {
        times: times.take(),
        elapsed,
    }
}
