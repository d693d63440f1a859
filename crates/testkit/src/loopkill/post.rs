//! The part of HTTP that a tool server needs: one POST per connection.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Answers POST requests on loopback, each connection in a thread of its own, for the lifetime of
/// the process.
pub fn answer_posts(
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    answer_some_posts(move |body| Some(answer(body)))
}

/// Like [`answer_posts`], but a request without an answer has its connection closed.
pub fn answer_some_posts(
    answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let answer = Arc::new(answer);
    std::thread::Builder::new().spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // A connection that cannot be served is closed, which the client sees.
            let _ = std::thread::Builder::new().spawn(move || serve(&stream, &*answer));
        }
    })?;
    Ok(address)
}

fn serve(stream: &TcpStream, answer: &dyn Fn(&str) -> Option<String>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(body) = read_post(&mut reader)? else {
        return Ok(());
    };
    let Some(text) = answer(&String::from_utf8_lossy(&body)) else {
        return Ok(());
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let mut stream = stream;
    stream.write_all(format!("{head}{text}").as_bytes())
}

/// The body of the next request on a connection; `None` when the connection ends.
pub fn read_post(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

/// Posts a text with an idempotency key, and returns the answer.
pub async fn post(address: &str, key: &str, body: &str) -> io::Result<String> {
    let mut stream = send_post(address, key, body).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    match answer.split_once("\r\n\r\n") {
        Some((head, text)) if head.starts_with("HTTP/1.1 200") => Ok(text.to_owned()),
        _ => Err(io::Error::other("the server did not answer")),
    }
}

/// Sends a post, and does not wait for its answer.
pub async fn send_post(address: &str, key: &str, body: &str) -> io::Result<tokio::net::TcpStream> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\nidempotency-key: {key}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}
