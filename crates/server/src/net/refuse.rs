//! Connections above the limit: answered with 503 and closed.

use std::time::Duration;

use throughline_model::json::RawJson;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::error::ApiError;

/// All of it must be over in this time.
const TIMEOUT: Duration = Duration::from_secs(2);

/// More than this of what a client still sends is not waited for.
const MAX_READ: usize = 256 * 1024;

pub(super) async fn answer_503(stream: TcpStream) {
    // Whatever goes wrong, the connection is closed, which says the same less clearly.
    let _ = tokio::time::timeout(TIMEOUT, write_answer(stream)).await;
}

async fn write_answer(mut stream: TcpStream) -> std::io::Result<()> {
    let error = ApiError::overloaded("There are too many connections.", "too_many_connections");
    let body: RawJson = error.body();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nretry-after: 1\r\nx-should-retry: true\r\n\
         cache-control: no-store\r\nvary: authorization\r\nconnection: close\r\n\r\n",
        body.get().len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.get().as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with something unread would take the answer back from a client that still sends.
    let mut left = MAX_READ;
    let mut buffer = [0; 4096];
    while left > 0 {
        match stream.read(&mut buffer).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}
