//! How many connections there may be and how long they may take.

use crate::http::support::{Client, LONG, end, get, start};

#[tokio::test]
async fn a_connection_too_many_is_told_so_and_closed() {
    let server = start("[limits]\nconnections = 2\n").await;
    let mut first = Client::to(server.address).await;
    let mut second = Client::to(server.address).await;
    for client in [&mut first, &mut second] {
        client
            .write(b"GET /waits HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            .await;
    }
    while server.app().http.active() < 2 {
        tokio::task::yield_now().await;
    }
    let mut third = Client::to(server.address).await;
    let refused = third.answer().await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "too_many_connections")
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(third.is_closed().await);
    // A place is free again when its connection has ended.
    drop(first);
    let open = |server: &throughline_server::Server| server.app().http.connections();
    while open(&server) > 1 {
        tokio::task::yield_now().await;
    }
    let metrics = get(server.address, "/metrics").await;
    assert!(
        metrics
            .body
            .contains("\nthroughline_http_connections_refused_total 1\n"),
        "{}",
        metrics.body
    );
    end(server).await;
}

#[tokio::test]
async fn the_longest_idle_connection_makes_room_for_a_new_one() {
    let server = start("[limits]\nconnections = 8\n").await;
    let mut at_work = Client::to(server.address).await;
    at_work
        .write(b"GET /waits HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        .await;
    while server.app().http.active() < 1 {
        tokio::task::yield_now().await;
    }
    // Some have said something, most have not.
    let mut idle = Vec::new();
    for place in 0..200 {
        let mut client = Client::to(server.address).await;
        if place % 10 == 0 {
            assert_eq!(client.send("GET /healthz", &[], b"").await.status, 200);
        }
        idle.push(client);
    }
    assert!(idle[0].is_closed().await);
    assert!(server.app().http.connections() <= 8);
    assert_eq!(server.app().http.active(), 1, "what is at work goes on");
    let metrics = get(server.address, "/metrics").await;
    let refused = "\nthroughline_http_connections_refused_total 0\n";
    assert!(metrics.body.contains(refused), "{}", metrics.body);
    drop((at_work, idle));
    end(server).await;
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let server = start("[limits]\nheader_seconds = 1\n").await;
    let mut silent = Client::to(server.address).await;
    let mut slow = Client::to(server.address).await;
    slow.write(b"GET /healthz HTTP/1.1\r\n").await;
    // Both are waited for by the server, not by a clock of the test.
    assert!(silent.is_closed().await);
    let mut rest = String::new();
    use tokio::io::AsyncReadExt as _;
    let _ = slow.stream.read_to_string(&mut rest).await;
    assert!(!rest.contains("200 OK"), "{rest}");
    end(server).await;
}

#[tokio::test]
async fn a_client_that_leaves_its_answer_unread_is_closed() {
    let server = start("[limits]\nstall_seconds = 1\n").await;
    let open = || server.app().http.connections();
    let mut stalled = Client::to(server.address).await;
    // More than the system takes in its stead.
    stalled
        .write(b"GET /long HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        .await;
    while open() < 1 {
        tokio::task::yield_now().await;
    }
    let mut other = Client::to(server.address).await;
    while open() > 1 {
        assert_eq!(other.send("GET /healthz", &[], b"").await.status, 200);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    drop(stalled);
    end(server).await;
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    for _ in 0..100 {
        assert_eq!(client.send("GET /v1/models", &[], b"").await.status, 200);
    }
    assert_eq!(server.app().http.connections(), 1);
    end(server).await;
}

#[tokio::test]
async fn event_streams_are_counted() {
    let server = start("[limits]\nstreams = 1\n").await;
    let app = server.app().clone();
    let stream = app.stream().unwrap();
    let error = app.stream().unwrap_err();
    assert_eq!(
        (error.status, error.code.as_deref()),
        (503, Some("too_many_streams"))
    );
    let metrics = get(server.address, "/metrics").await;
    assert!(metrics.body.contains("\nthroughline_http_streams 1\n"));
    drop(stream);
    assert!(app.stream().is_ok());
    end(server).await;
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_is_noticed() {
    let server = start("").await;
    let open = || server.app().http.connections();
    // By a word and by a reset.
    for resets in [false, true] {
        let mut client = Client::to(server.address).await;
        client
            .write(b"GET /waits HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            .await;
        while open() < 1 {
            tokio::task::yield_now().await;
        }
        if resets {
            client.stream.get_ref().set_zero_linger().unwrap();
        }
        drop(client);
        while open() > 0 {
            tokio::task::yield_now().await;
        }
    }
    end(server).await;
}

#[tokio::test]
async fn a_client_with_no_more_to_say_is_told_the_rest() {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    client
        .write(b"GET /long HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        .await;
    // The answer has begun, and the client stops reading.
    assert!(!client.stream.fill_buf().await.unwrap().is_empty());
    client.stream.get_mut().shutdown().await.unwrap();
    // The server hears of it while it cannot write.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let mut read = Vec::new();
    client.stream.read_to_end(&mut read).await.unwrap();
    let text = read.iter().filter(|byte| **byte == b'x').count();
    assert!(text >= LONG, "{text}");
    end(server).await;
}

#[tokio::test]
async fn heads_that_are_no_http_are_refused() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    client
        .write(b"\x16\x03\x01\x02\x00\x01\x00 no http\r\n\r\n")
        .await;
    assert_eq!(client.answer().await.status, 400);
    let mut client = Client::to(server.address).await;
    let long = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n", "y".repeat(1 << 20));
    use tokio::io::AsyncWriteExt as _;
    let _ = client.stream.get_mut().write_all(long.as_bytes()).await;
    assert_eq!(client.answer().await.status, 431);
    end(server).await;
}
