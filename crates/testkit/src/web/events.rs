use std::collections::VecDeque;
use std::io;

use serde_json::Value;
use tokio::io::BufReader;
use tokio::net::TcpStream;

use super::client::chunk;

/// A received event.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The value of the `event` line.
    pub event: String,
    /// The data as text.
    pub text: String,
}

impl Frame {
    /// The data as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// The events of a response. Dropping them closes the connection.
pub struct Events {
    stream: Option<BufReader<TcpStream>>,
    ready: VecDeque<Frame>,
    split: usize,
}

impl Events {
    pub(super) fn of(stream: BufReader<TcpStream>) -> Self {
        Self {
            stream: Some(stream),
            ready: VecDeque::new(),
            split: 0,
        }
    }

    pub(super) fn none() -> Self {
        Self {
            stream: None,
            ready: VecDeque::new(),
            split: 0,
        }
    }

    /// The next event; `None` after the last one. Comments are skipped, `[DONE]` is an event
    /// without a name.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let Some(stream) = &mut self.stream else {
                return Ok(None);
            };
            match chunk(stream).await? {
                None => self.stream = None,
                Some(bytes) => self.take(&bytes)?,
            }
        }
    }

    /// All remaining events.
    pub async fn rest(&mut self) -> io::Result<Vec<Frame>> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await? {
            frames.push(frame);
        }
        Ok(frames)
    }

    /// How many chunks did not contain whole events. Some clients lose split events.
    pub fn split(&self) -> usize {
        self.split
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "an event is not text"))?;
        if !text.ends_with("\n\n") {
            self.split += 1;
        }
        for block in text.split("\n\n").filter(|block| !block.is_empty()) {
            let named = |name: &str| {
                let mut lines = block.lines();
                let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                value.map(str::to_owned)
            };
            if let Some(text) = named("data") {
                self.ready.push_back(Frame {
                    event: named("event").unwrap_or_default(),
                    text,
                });
            }
        }
        Ok(())
    }
}
