use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use throughline_testkit::{Rng, property};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::answer::{self, AnswerHead, Broken};
use super::frames::{Frames, Framing, Step};
use crate::client::Secret;
use crate::client::http::{
    Header, HttpMethod, HttpRequest, HttpResponse, HttpSettings, HttpTransport, KEEP, ProxyChoice,
    RequestBody, Transport, TransportError, TransportFault,
};

/// An answer that is read in parts: its heads and bodies, and what is left behind the last.
fn read(parts: &[&[u8]]) -> Result<(AnswerHead, Vec<u8>, usize), Broken> {
    let (mut buffer, mut head, mut body) = (BytesMut::new(), None, Vec::new());
    let mut frames = None;
    for part in parts {
        buffer.extend_from_slice(part);
        if head.is_none() {
            head = answer::read(&mut buffer)?;
            frames = head.as_ref().map(|head| Frames::new(head.framing));
        }
        let Some(frames) = &mut frames else { continue };
        while let Step::Piece(piece) = frames.next(&mut buffer)? {
            body.extend_from_slice(&piece);
        }
    }
    let mut frames = frames.ok_or(Broken("no head"))?;
    let head = head.ok_or(Broken("no head"))?;
    match frames.next(&mut buffer)? {
        Step::End => Ok((head, body, buffer.len())),
        Step::More if frames.may_end() => Ok((head, body, 0)),
        Step::More | Step::Piece(_) => Err(Broken("no end")),
    }
}

/// A body as it is sent in chunks.
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

#[test]
fn answers_are_read_in_whatever_parts_they_come() {
    property("plain HTTP answers in parts", 2_000, |rng, size| {
        let length = rng.below(40 * size);
        let body = rng.bytes(length);
        let (framing, mut sent) = match rng.below(3) {
            0 => (Framing::Chunked, chunked(rng, &body)),
            1 => (Framing::Length(length as u64), body.clone()),
            _ => (Framing::UntilClosed, body.clone()),
        };
        let says = match framing {
            Framing::Chunked => "Transfer-Encoding: Chunked\r\n".to_owned(),
            Framing::Length(length) => format!("Content-Length: {length}\r\n"),
            Framing::UntilClosed => String::new(),
        };
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
        let interim = *rng.pick(&["", interim]);
        let head = format!("{interim}HTTP/1.1 200 OK\r\n{says}X-A: b\r\n\r\n");
        sent.splice(0..0, head.bytes());
        let complete = sent.len();
        let behind = match framing {
            Framing::UntilClosed => 0,
            Framing::Length(_) | Framing::Chunked => rng.below(3),
        };
        sent.extend(vec![b'?'; behind]);
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rng.range(1..=rest.len().min(size + 1)));
            parts.push(part);
            rest = after;
        }
        let (head, found, left) = read(&parts).map_err(|broken| broken.to_string())?;
        if (head.status, &found, left) != (200, &body, behind) || head.framing != framing {
            return Err(format!("{head:?} {} {left}", found.len()));
        }
        if head.is_kept == (framing == Framing::UntilClosed) {
            return Err(format!("kept: {head:?}"));
        }
        // Cut anywhere, it is not taken for whole.
        let short = &sent[..rng.below(complete)];
        match (framing, read(&[short])) {
            (Framing::UntilClosed, Ok(_)) | (_, Err(_)) => Ok(()),
            (_, Ok((_, found, _))) => Err(format!("{} bytes were enough", found.len())),
        }
    });
}

#[test]
fn answers_that_are_none_are_refused() {
    let head = |says: &str| format!("HTTP/1.1 200 OK\r\n{says}\r\n");
    let many = "x: y\r\n".repeat(101);
    let long = format!("x: {}\r\n", "y".repeat(70_000));
    let trailers = format!("0\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    let line = format!("1;{}\r\n", "y".repeat(5_000));
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
        format!("{}{}", head(chunks), &line[..4_500]),
        format!("{}{}", head(chunks), &trailers[..19_000]),
    ] {
        let shown = &text[..text.len().min(80)];
        let refused = read(&[text.as_bytes()]).expect_err(shown);
        assert!(!["no head", "no end"].contains(&refused.0), "{shown}");
    }
}

#[test]
fn what_an_answer_says_of_its_connection_counts() {
    let kept = |text: &str| {
        let (head, _, _) = read(&[text.as_bytes()]).expect(text);
        head.is_kept
    };
    assert!(kept("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    assert!(kept("HTTP/1.1 204 No Content\r\n\r\n"));
    assert!(kept(
        "HTTP/1.1 200 OK\r\ncontent-length: 0, 0\r\nconnection: keep-alive\r\n\r\n"
    ));
    for text in [
        "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, Close\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        assert!(!kept(text), "{text}");
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

/// Read a request whose body is `hi`.
async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\nhi") {
        if socket.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(read).ok()
}

/// The last answer of its connection.
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
            // The runtime hears of nothing while its one thread sleeps.
            std::thread::sleep(std::time::Duration::from_millis(50));
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
        // The end of the connection is news that has to arrive.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.await.unwrap();
}

/// A transport that has asked once, on a connection that is closed, so that it knows where to go.
async fn known(listener: &TcpListener, url: &str) -> HttpTransport {
    let transport = transport();
    transport.get_ready(url);
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        request(&mut socket).await.unwrap();
        socket.write_all(CLOSING).await.unwrap();
    };
    let (answer, ()) = tokio::join!(post(&transport, url), server);
    assert_eq!(answer.unwrap(), b"ok");
    transport
}

/// Whether nobody else has come.
async fn is_alone(listener: &TcpListener) -> bool {
    let wait = std::time::Duration::from_millis(20);
    tokio::time::timeout(wait, listener.accept()).await.is_err()
}

#[tokio::test]
async fn a_connection_is_made_before_it_is_needed_and_then_used() {
    let (listener, url) = listen().await;
    let transport = known(&listener, &url).await;
    // Another address of the same host.
    let other = url.replace("/v1/x?q=1", "/v2");
    transport.get_ready(&other);
    let (mut socket, _) = listener.accept().await.unwrap();
    transport.get_ready(&url);
    assert!(is_alone(&listener).await, "one is enough");
    for _ in 0..2 {
        let server = async {
            let read = request(&mut socket).await.unwrap();
            assert!(read.starts_with("POST /v1/x?q=1 HTTP/1.1\r\n"), "{read}");
            socket.write_all(OK).await.unwrap();
        };
        let (answer, ()) = tokio::join!(post(&transport, &url), server);
        assert_eq!(answer.unwrap(), b"ok");
        transport.get_ready(&url);
    }
    assert!(is_alone(&listener).await, "one that waits is enough too");
}

#[tokio::test]
async fn a_connection_that_was_made_early_and_is_gone_harms_nobody() {
    let (listener, url) = listen().await;
    let transport = known(&listener, &url).await;
    transport.get_ready(&url);
    drop(listener.accept().await.unwrap());
    // The end of the connection is news that has to arrive.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        request(&mut socket).await.unwrap();
        socket.write_all(OK).await.unwrap();
        socket
    };
    let (answer, socket) = tokio::join!(post(&transport, &url), server);
    assert_eq!(answer.unwrap(), b"ok");
    drop((socket, listener));
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    transport.get_ready(&url);
    let failed = post(&transport, &url).await.unwrap_err();
    assert_eq!(failed.fault(), TransportFault::Connect);
}

/// A runtime of one thread, which does nothing unless somebody waits in it.
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
fn a_connection_that_was_made_early_may_outlive_its_runtime() {
    let transport = transport();
    let (listener, url) = listen_anywhere();
    let mut sockets = Vec::new();
    for _ in 0..3 {
        runtime().block_on(async {
            let listener = TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
            let server = async {
                // A connection on which nothing comes is the one of the runtime that is gone.
                loop {
                    let (mut socket, _) = listener.accept().await.unwrap();
                    if request(&mut socket).await.is_some() {
                        socket.write_all(CLOSING).await.unwrap();
                        return socket.into_std().unwrap();
                    }
                }
            };
            let (answer, socket) = tokio::join!(post(&transport, &url), server);
            assert_eq!(answer.unwrap(), b"ok");
            sockets.push(socket);
            transport.get_ready(&url);
        });
        // Where nobody could wait for it, none is made.
        transport.get_ready(&url);
    }
    assert_eq!(sockets.len(), 3);
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
    // Both are kept, and each is used again where it was made.
    let mut of_one = again(&one, of_one);
    let _of_other = again(&other, of_other);
    // Those of a runtime that is gone are closed when another comes.
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
            assert_eq!(post(&transport, &url).await.unwrap(), b"ok");
        }
        assert_eq!(server.await.unwrap(), connections);
    }
}

#[tokio::test]
async fn an_answer_that_nobody_reads_on_closes_its_connection() {
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
                // What follows comes as far as somebody reads the answer; the rest never does.
                while let Ok(1..) = socket.read_buf(&mut rest).await {}
            }
            // It stays open: a reset would take the answer back.
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
        // Not every machine has the newer kind.
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
async fn a_connection_that_nobody_uses_is_closed() {
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
    // The watcher wakes once before the time of the connection is over at the latest.
    for _ in 0..2 {
        tokio::time::advance(KEEP).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
}
