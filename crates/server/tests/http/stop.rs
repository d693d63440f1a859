//! Stopping: what is at work may end, nothing new begins, and it takes no longer than it may.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::http::support::{Client, end, get, start};

/// Work that goes on until it is told to end.
fn work(server: &throughline_server::Server) -> Arc<Notify> {
    let done = Arc::new(Notify::new());
    let wait = Arc::clone(&done);
    server
        .stopping()
        .work()
        .spawn(async move { wait.notified().await });
    done
}

#[tokio::test]
async fn an_idle_server_stops_at_once() {
    let server = start("[limits]\ndrain_seconds = 20\n").await;
    let address = server.address;
    let mut idle = Client::to(address).await;
    assert_eq!(idle.send("GET /healthz", &[], b"").await.status, 200);
    server.stop();
    server.join().await;
    assert!(idle.is_closed().await);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn while_it_drains_it_is_not_ready_and_takes_nothing_new() {
    let server = start("[limits]\ndrain_seconds = 20\n").await;
    let address = server.address;
    let done = work(&server);
    server.stop();
    let ready = get(address, "/readyz").await;
    assert_eq!(
        (ready.status, ready.body.as_str()),
        (503, "{\"status\":\"stopping\"}")
    );
    assert_eq!(get(address, "/healthz").await.status, 200);
    let refused = get(address, "/v1/models").await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "shutting_down")
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("x-should-retry"), Some("true"));
    done.notify_one();
    server.join().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_that_has_begun_is_answered() {
    let server = start("[limits]\ndrain_seconds = 20\n").await;
    let mut client = Client::to(server.address).await;
    // The head is half there when the server is told to stop.
    client
        .write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        .await;
    let mut other = Client::to(server.address).await;
    assert_eq!(other.send("GET /healthz", &[], b"").await.status, 200);
    let done = work(&server);
    server.stop();
    client.write(b"\r\n").await;
    assert_eq!(client.answer().await.status, 200);
    assert!(client.is_closed().await);
    done.notify_one();
    server.join().await;
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    // No time at all: whatever is at work is cut.
    let server = start("[limits]\ndrain_seconds = 0\n").await;
    let _never = work(&server);
    let mut client = Client::to(server.address).await;
    client.write(b"GET /healthz HTTP/1.1\r\n").await;
    server.stop();
    server.join().await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn closing_does_not_wait() {
    let server = start("[limits]\ndrain_seconds = 20\n").await;
    let _never = work(&server);
    server.stop();
    end(server).await;
}
