use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use throughline_testkit::{Rng, property};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::client::Secret;
use crate::client::http::{
    Header, HttpMethod, HttpRequest, HttpResponse, HttpSettings, HttpTransport, IDLE_TIMEOUT,
    ProxyChoice, RequestBody, Transport, TransportError, TransportFault,
};

/// A body in chunked encoding.
fn chunked(rng: &mut Rng, body: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rng.range(1..=rest.len()));
        let extension = *rng.pick(&["", "", ";a=b", "; a=\"b\""]);
        sent.extend(format!("{:x}{extension}\r\n", chunk.len()).bytes());
        sent.extend_from_slice(chunk);
        sent.extend_from_slice(b"\r\n");
        rest = after;
    }
    let trailers = *rng.pick(&["", "", "x-after: 1\r\n", "x-after: 1\r\nx-more: 2\r\n"]);
    sent.extend(format!("0\r\n{trailers}\r\n").bytes());
    sent
}

/// How the end of a response body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    UntilClosed,
}

/// Sends one request to a server that writes these parts, one after the other, and then closes.
async fn exchange(
    transport: &HttpTransport,
    parts: Vec<Vec<u8>>,
) -> Result<(u16, Vec<u8>), TransportError> {
    let (listener, url) = listen().await;
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        request(&mut socket).await.unwrap();
        for part in parts {
            // The client may have closed the connection already.
            let _ = socket.write_all(&part).await;
            tokio::task::yield_now().await;
        }
    };
    let client = async {
        let response = transport.send(asked(&url, "hi".to_owned())).await?;
        let status = response.status;
        Ok((status, whole(response).await?))
    };
    tokio::join!(client, server).0
}

#[test]
fn answers_are_read_in_whatever_parts_they_come() {
    let (runtime, transport) = (runtime(), transport());
    let exchange = |parts| runtime.block_on(exchange(&transport, parts));
    property("HTTP/1.1 responses in parts", 200, |rng, size| {
        let length = rng.below(40 * size);
        let body = rng.bytes(length);
        let framing = *rng.pick(&[Framing::Length, Framing::Chunked, Framing::UntilClosed]);
        let (says, mut sent) = match framing {
            Framing::Chunked => (
                "Transfer-Encoding: Chunked\r\n".to_owned(),
                chunked(rng, &body),
            ),
            Framing::Length => (format!("Content-Length: {length}\r\n"), body.clone()),
            Framing::UntilClosed => (String::new(), body.clone()),
        };
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
        let interim = *rng.pick(&["", interim]);
        let head = format!("{interim}HTTP/1.1 200 OK\r\n{says}X-A: b\r\n\r\n");
        sent.splice(0..0, head.bytes());
        let complete = sent.len();
        let mut parts = Vec::new();
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rng.range(1..=rest.len().min(10 * size)));
            parts.push(part.to_vec());
            rest = after;
        }
        let (status, found) = exchange(parts).map_err(|error| error.to_string())?;
        if (status, &found, transport.unsolicited_count()) != (200, &body, 0) {
            return Err(format!("{status}, {} bytes", found.len()));
        }
        // A response that is cut anywhere is not complete.
        let short = sent[..rng.below(complete)].to_vec();
        match (framing, exchange(vec![short])) {
            (Framing::UntilClosed, Ok(_)) | (_, Err(_)) => Ok(()),
            (_, Ok((_, found))) => Err(format!("{} bytes were enough", found.len())),
        }
    });
}

/// The outcome of a request whose server answers with these bytes and leaves the connection open.
async fn answered_with(text: &str) -> Result<Vec<u8>, TransportError> {
    let (listener, url) = listen().await;
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        request(&mut socket).await.unwrap();
        socket.write_all(text.as_bytes()).await.unwrap();
        socket
    };
    let transport = transport();
    let exchange = async { tokio::join!(post(&transport, &url), server).0 };
    let late = format!("still waiting: {}", &text[..text.len().min(80)]);
    tokio::time::timeout(Duration::from_secs(10), exchange)
        .await
        .expect(&late)
}

#[tokio::test]
async fn answers_that_are_none_are_refused() {
    let head = |says: &str| format!("HTTP/1.1 200 OK\r\n{says}\r\n");
    let many = "x: y\r\n".repeat(101);
    let long = format!("x: {}\r\n", "y".repeat(70_000));
    let trailers = format!("0\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    let line = format!("1;{}\r\n", "y".repeat(20_000));
    let chunks = "transfer-encoding: chunked\r\n";
    for text in [
        "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
        "HTTP/1.1 042 Nothing\r\n\r\n".to_owned(),
        "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
        head("content-length: 1\r\ncontent-length: 2\r\n"),
        head("content-length: 1, 2\r\n"),
        head("content-length: +1\r\n"),
        head("content-length: -1\r\n"),
        head("content-length: 99999999999999999999\r\n"),
        head("content-length:\r\n"),
        head("transfer-encoding: gzip, chunked\r\n"),
        head("transfer-encoding: identity\r\n"),
        head(&many),
        head(&long),
        format!("{}zz\r\n", head(chunks)),
        format!("{}5\r\nhello\r\n\r\n\r\n", head(chunks)),
        format!("{};x\r\n\r\n", head(chunks)),
        format!("{} \r\n\r\n", head(chunks)),
        format!("{}2\r\nabc\r\n", head(chunks)),
        format!("{}ffffffffffffffffff\r\n", head(chunks)),
        format!("{}{trailers}", head(chunks)),
        format!("{}{}", head(chunks), &line[..19_000]),
        format!("{}{}", head(chunks), &trailers[..19_000]),
    ] {
        let shown = &text[..text.len().min(80)];
        let refused = answered_with(&text).await.expect_err(shown);
        assert_eq!(refused.fault(), TransportFault::Cut, "{shown}");
    }
}

/// Sends two requests to a server that answers with `first` and with [`OK`], and gives the number of
/// its connections.
async fn connections_after(first: &'static [u8]) -> usize {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        let (mut answers, mut connections) = ([first, OK].into_iter(), 0);
        while answers.len() > 0 {
            let (mut socket, _) = listener.accept().await.unwrap();
            connections += 1;
            while answers.len() > 0
                && let Some(_) = request(&mut socket).await
            {
                let answer = answers.next().unwrap();
                socket.write_all(answer).await.unwrap();
            }
        }
        connections
    });
    let transport = transport();
    for _ in 0..2 {
        post(&transport, &url).await.unwrap();
    }
    server.await.unwrap()
}

#[tokio::test]
async fn what_an_answer_says_of_its_connection_counts() {
    for kept in [
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0, 0\r\nconnection: keep-alive\r\n\r\n",
    ] {
        assert_eq!(connections_after(kept.as_bytes()).await, 1, "{kept}");
    }
    for closed in [
        "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, Close\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        assert_eq!(connections_after(closed.as_bytes()).await, 2, "{closed}");
    }
}

fn transport() -> HttpTransport {
    HttpTransport::new(&HttpSettings {
        proxy: ProxyChoice::Direct,
        ..HttpSettings::default()
    })
    .unwrap()
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/x?q=1", listener.local_addr().unwrap());
    (listener, url)
}

fn asked(url: &str, body: impl Into<RequestBody>) -> HttpRequest {
    HttpRequest {
        method: HttpMethod::Post,
        url: url.to_owned(),
        headers: Vec::new(),
        body: body.into(),
    }
}

async fn whole(response: HttpResponse) -> Result<Vec<u8>, TransportError> {
    let pieces: Vec<_> = response.body.collect().await;
    let pieces: Result<Vec<_>, _> = pieces.into_iter().collect();
    Ok(pieces?.concat())
}

/// Reads a request whose body is `hi`.
async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\nhi") {
        if socket.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(read).ok()
}

/// The last response of its connection.
const CLOSING: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async fn post(transport: &HttpTransport, url: &str) -> Result<Vec<u8>, TransportError> {
    whole(transport.send(asked(url, "hi".to_owned())).await?).await
}

#[tokio::test]
async fn a_request_is_written_as_it_was_meant() {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let read = request(&mut socket).await.unwrap();
        socket.write_all(OK).await.unwrap();
        read
    });
    let mut asked = asked(&url, "hi".to_owned());
    asked.headers = vec![
        Header::plain("X-A", "first"),
        Header::plain("x-a", "last"),
        Header::plain("content-length", "7"),
        Header::plain("transfer-encoding", "chunked"),
        Header::plain("user-agent", "mine"),
        Header::secret("authorization", "Bearer ", Secret::new("sk-1")),
    ];
    let response = transport().send(asked).await.unwrap();
    assert_eq!(whole(response).await.unwrap(), b"ok");
    let host = url.strip_prefix("http://").unwrap().split('/').next();
    let expected = format!(
        "POST /v1/x?q=1 HTTP/1.1\r\nhost: {}\r\naccept: */*\r\nx-a: last\r\nuser-agent: mine\r\n\
         authorization: Bearer sk-1\r\ncontent-length: 2\r\n\r\nhi",
        host.unwrap()
    );
    assert_eq!(server.await.unwrap(), expected);
}

#[tokio::test]
async fn whatever_has_a_body_says_how_long_it_is() {
    let (listener, url) = listen().await;
    let mut asked = asked(&url, "hi".to_owned());
    asked.method = HttpMethod::Get;
    let transport = transport();
    let (response, read) = tokio::join!(transport.send(asked), async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let read = request(&mut socket).await.unwrap();
        socket.write_all(OK).await.unwrap();
        read
    });
    assert_eq!(response.unwrap().status, 200);
    assert!(read.starts_with("GET /v1/x?q=1 HTTP/1.1\r\n"));
    assert!(read.contains("\r\ncontent-length: 2\r\n"));
}

/// A server of its own thread: it answers on one connection after the other, and closes each after
/// so many answers.
fn serve(answers: Vec<usize>) -> (String, std::thread::JoinHandle<usize>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let connections = answers.len();
        for answers in answers {
            let (mut socket, _) = listener.accept().unwrap();
            for _ in 0..answers {
                let (mut read, mut piece) = (Vec::new(), [0; 512]);
                while !read.ends_with(b"\r\n\r\nhi") {
                    let count = socket.read(&mut piece).unwrap();
                    assert!(count > 0, "the request breaks off");
                    read.extend_from_slice(&piece[..count]);
                }
                socket.write_all(OK).unwrap();
            }
        }
        connections
    });
    (url, thread)
}

#[test]
fn a_connection_that_ends_unheard_is_not_used() {
    let (url, server) = serve(vec![1, 1, 1]);
    let transport = transport();
    runtime().block_on(async {
        for _ in 0..3 {
            assert_eq!(post(&transport, &url).await.unwrap(), b"ok");
            // The runtime is not notified while its only thread sleeps.
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(server.join().unwrap(), 3);
}

#[test]
fn a_transport_outlives_the_runtime_that_it_was_used_in() {
    let (url, server) = serve(vec![1, 2]);
    let transport = transport();
    for posts in [1, 2] {
        runtime().block_on(async {
            for _ in 0..posts {
                assert_eq!(post(&transport, &url).await.unwrap(), b"ok");
            }
        });
    }
    assert_eq!(server.join().unwrap(), 2);
}

#[tokio::test]
async fn a_header_that_would_end_its_line_is_refused() {
    let (_listener, url) = listen().await;
    for header in [
        Header::plain("x-a", "b\r\nx-c: d"),
        Header::plain("x-a\r\nx-c", "b"),
        Header::plain("x a", "b"),
        Header::plain("", "b"),
        Header::secret("authorization", "Bearer ", Secret::new("sk-1\n")),
    ] {
        let mut asked = asked(&url, "hi".to_owned());
        asked.headers = vec![header];
        let error = transport().send(asked).await.unwrap_err();
        assert_eq!(error.fault(), TransportFault::Request);
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("of header") && !source.contains("sk-1"));
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_not_used() {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        for _ in 0..3 {
            let (mut socket, _) = listener.accept().await.unwrap();
            request(&mut socket).await.unwrap();
            socket.write_all(OK).await.unwrap();
        }
    });
    let transport = transport();
    for _ in 0..3 {
        assert_eq!(post(&transport, &url).await.unwrap(), b"ok");
        // The FIN needs a moment to arrive.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.await.unwrap();
}

/// A runtime of one thread, which does nothing outside of `block_on`.
fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

/// A socket that one runtime after the other may listen on.
fn listen_anywhere() -> (std::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn each_runtime_has_connections_of_its_own() {
    use std::io::Read;
    let transport = transport();
    let (listener, url) = listen_anywhere();
    // The end of a new connection that the server has, after an answer.
    let first = |runtime: &tokio::runtime::Runtime| {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
            let (answer, socket) = tokio::join!(post(&transport, &url), async {
                let (mut socket, _) = listener.accept().await.unwrap();
                request(&mut socket).await.unwrap();
                socket.write_all(OK).await.unwrap();
                socket.into_std().unwrap()
            });
            assert_eq!(answer.unwrap(), b"ok");
            socket
        })
    };
    let again = |runtime: &tokio::runtime::Runtime, socket: std::net::TcpStream| {
        runtime.block_on(async {
            let mut socket = TcpStream::from_std(socket).unwrap();
            let (answer, ()) = tokio::join!(post(&transport, &url), async {
                request(&mut socket).await.unwrap();
                socket.write_all(OK).await.unwrap();
            });
            assert_eq!(answer.unwrap(), b"ok");
            socket.into_std().unwrap()
        })
    };
    let (one, other) = (runtime(), runtime());
    let (of_one, of_other) = (first(&one), first(&other));
    // Both are pooled, and each is reused by the runtime that opened it.
    let mut of_one = again(&one, of_one);
    let _of_other = again(&other, of_other);
    // Connections of a runtime that is gone are closed when another one uses the pool.
    drop(one);
    let _of_third = first(&runtime());
    of_one.set_nonblocking(false).unwrap();
    assert_eq!(of_one.read(&mut [0; 8]).unwrap(), 0);
}

#[tokio::test]
async fn a_connection_goes_back_when_all_of_its_answer_was_read() {
    let chunks: &[u8] =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let unasked: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok?";
    for (first, connections) in [(chunks, 1), (OK, 1), (CLOSING, 2), (unasked, 2)] {
        assert_eq!(connections_after(first).await, connections);
    }
}

/// A server that answers each request with [`OK`], with these bytes directly after the first
/// response or when the client asks for them. Returns its address and, at the end, the number of
/// connections.
async fn unsolicited(
    extra: &'static [u8],
    requests: usize,
    mut when: tokio::sync::mpsc::Receiver<tokio::sync::oneshot::Sender<()>>,
) -> (String, tokio::task::JoinHandle<usize>) {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        let (mut sockets, mut served) = (Vec::new(), 0);
        while served < requests {
            let (mut socket, _) = listener.accept().await.unwrap();
            while served < requests
                && let Some(_) = request(&mut socket).await
            {
                socket.write_all(OK).await.unwrap();
                served += 1;
                if let Some(done) = when.recv().await {
                    socket.write_all(extra).await.unwrap();
                    done.send(()).unwrap();
                }
            }
            sockets.push(socket);
        }
        sockets.len()
    });
    (url, server)
}

#[tokio::test]
async fn a_connection_with_bytes_waiting_is_not_used_and_its_upstream_gets_no_other_twice() {
    for extra in [OK, b"H", b"\r\n"] {
        let (tell, when) = tokio::sync::mpsc::channel(1);
        let (url, server) = unsolicited(extra, 4, when).await;
        let transport = transport();
        assert_eq!(post(&transport, &url).await.unwrap(), b"ok");
        let (done, written) = tokio::sync::oneshot::channel();
        tell.send(done).await.unwrap();
        written.await.unwrap();
        drop(tell);
        for _ in 0..3 {
            assert_eq!(post(&transport, &url).await.unwrap(), b"ok");
        }
        assert_eq!(transport.unsolicited_count(), 1);
        assert_eq!(server.await.unwrap(), 4);
    }
}

#[tokio::test]
async fn bytes_that_wait_on_a_new_connection_are_seen() {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(OK).await.unwrap();
        // Only the FIN arrives.
        let mut read = Vec::new();
        let _ = socket.read_to_end(&mut read).await;
        read
    });
    let target = super::Target::of(&url.parse().unwrap()).unwrap();
    let stream = super::connect::connect(&target, None).await.unwrap();
    stream.readable().await.unwrap();
    assert_eq!(
        super::SocketState::of(&stream),
        super::SocketState::Readable
    );
    drop(stream);
    assert!(server.await.unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_dropped_before_its_end_closes_its_connection() {
    let (listener, url) = listen().await;
    let transport = transport();
    let sent = transport.send(asked(&url, "hi".to_owned()));
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        request(&mut socket).await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";
        socket.write_all(head).await.unwrap();
        socket
    };
    let (response, mut socket) = tokio::join!(sent, server);
    let mut response = response.unwrap();
    assert_eq!(response.body.next().await.unwrap().unwrap(), "ok");
    drop(response);
    assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_request_may_be_answered_before_all_of_it_was_sent() {
    let refused = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nno!";
    for reads_on in [false, true] {
        let (listener, url) = listen().await;
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.read_exact(&mut [0; 100]).await.unwrap();
            socket.write_all(refused).await.unwrap();
            let mut rest = Vec::new();
            if reads_on {
                // The rest arrives only while the client reads the response.
                while let Ok(1..) = socket.read_buf(&mut rest).await {}
            }
            // The connection stays open: a reset would discard the response.
            (rest.len(), socket)
        });
        let large = Bytes::from([vec![b'x'; 16 << 20], b"\nend".to_vec()].concat());
        let response = transport().send(asked(&url, large)).await.unwrap();
        assert_eq!(response.status, 413);
        assert_eq!(whole(response).await.unwrap(), b"no!");
        let (rest, _open) = server.await.unwrap();
        assert!(rest < 16 << 20);
    }
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_the_connection() {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        request(&mut socket).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\n\r\nall of it";
        socket.write_all(answer).await.unwrap();
    });
    assert_eq!(post(&transport(), &url).await.unwrap(), b"all of it");
    server.await.unwrap();
}

#[tokio::test]
async fn hosts_are_found_by_name_and_by_either_kind_of_address() {
    let hosts: [(&str, &[&str]); 2] = [
        ("127.0.0.1", &["127.0.0.1", "localhost"]),
        ("::1", &["[::1]"]),
    ];
    for (host, names) in hosts {
        // Not every machine has IPv6.
        let Ok(listener) = TcpListener::bind((host, 0)).await else {
            assert_eq!(host, "::1");
            continue;
        };
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            for _ in names {
                let (mut socket, _) = listener.accept().await.unwrap();
                request(&mut socket).await.unwrap();
                socket.write_all(OK).await.unwrap();
            }
        });
        let transport = transport();
        for name in names {
            let url = format!("http://{name}:{port}/");
            assert_eq!(post(&transport, &url).await.unwrap(), b"ok", "{url}");
        }
        server.await.unwrap();
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (listener, url) = listen().await;
    let transport = transport();
    let (answer, mut socket) = tokio::join!(post(&transport, &url), async {
        let (mut socket, _) = listener.accept().await.unwrap();
        request(&mut socket).await.unwrap();
        socket.write_all(OK).await.unwrap();
        socket
    });
    assert_eq!(answer.unwrap(), b"ok");
    tokio::task::yield_now().await;
    tokio::time::pause();
    // The expiry task wakes at least once before the connection expires.
    for _ in 0..2 {
        tokio::time::advance(IDLE_TIMEOUT).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
}
