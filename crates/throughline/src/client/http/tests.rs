use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::command;
use super::{
    CachedTokens, CommandTokens, Header, HttpMethod, HttpRequest, HttpSettings, HttpTransport,
    ProxyChoice, Token, TokenError, TokenProvider, Transport, TransportFault,
};
use crate::client::Secret;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Provides the tokens `t-1`, `t-2`, …, each valid for ten minutes, after a second; the first may
/// fail.
#[derive(Default)]
struct Slow {
    count: AtomicU32,
    first_fails: bool,
}

#[async_trait]
impl TokenProvider for Slow {
    async fn token(&self) -> Result<Token, TokenError> {
        tokio::time::sleep(secs(1)).await;
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if self.first_fails && count == 1 {
            return Err(TokenError::new("no"));
        }
        Ok(Token {
            secret: Secret::new(format!("t-{count}")),
            valid_for: Some(secs(600)),
        })
    }
}

async fn token(cache: &CachedTokens) -> String {
    cache.current().await.unwrap().reveal().to_owned()
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_share_one_fetch() {
    let provider = Arc::new(Slow::default());
    let cache = CachedTokens::new(provider.clone());
    // One call is dropped; the others get the token.
    let gone = tokio::time::timeout(Duration::from_millis(1), cache.current()).await;
    assert!(gone.is_err());
    let all = join_all((0..50).map(|_| token(&cache))).await;
    assert!(all.iter().all(|token| token == "t-1"));
    assert_eq!(provider.count.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_ahead_of_its_end() {
    let cache = CachedTokens::new(Arc::new(Slow::default()));
    assert_eq!(token(&cache).await, "t-1");
    tokio::time::advance(secs(299)).await;
    assert_eq!(token(&cache).await, "t-1");
    tokio::time::advance(secs(2)).await;
    assert_eq!(token(&cache).await, "t-2");
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_thrown_away_once_in_a_while() {
    let cache = CachedTokens::new(Arc::new(Slow::default()));
    let first = cache.current().await.unwrap();
    assert!(cache.refuse(&first));
    let second = cache.current().await.unwrap();
    assert_ne!(first, second);
    // A late report about the first token does not discard the second.
    assert!(cache.refuse(&first));
    assert_eq!(cache.current().await.unwrap(), second);
    assert!(!cache.refuse(&second));
    tokio::time::advance(secs(31)).await;
    assert!(cache.refuse(&second));
}

#[tokio::test(start_paused = true)]
async fn a_failed_fetch_is_not_kept() {
    let cache = CachedTokens::new(Arc::new(Slow {
        first_fails: true,
        ..Slow::default()
    }));
    assert!(cache.current().await.is_err());
    assert_eq!(token(&cache).await, "t-2");
}

#[test]
fn what_commands_print_is_read() {
    let read = |text: &str| {
        let token = command::read(text.as_bytes(), 1_000)?;
        Some((token.secret.reveal().to_owned(), token.valid_for))
    };
    assert_eq!(read("abc\n"), Some(("abc".to_owned(), None)));
    assert_eq!(
        read(r#"{"access_token":"a","expires_in":60}"#),
        Some(("a".to_owned(), Some(secs(60))))
    );
    assert_eq!(
        read(r#"{"accessToken":"a","expires_on":"1100"}"#),
        Some(("a".to_owned(), Some(secs(100))))
    );
    for nothing in ["", "two words", "{}", "{\"token\":\"\"}", "{"] {
        assert_eq!(read(nothing), None, "{nothing}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_gives_a_token_or_says_why_not() {
    let token = CommandTokens::new("echo").args(["abc"]).token().await;
    assert_eq!(token.unwrap().secret.reveal(), "abc");
    let error = CommandTokens::new("false").token().await.unwrap_err();
    assert!(error.to_string().contains("token command false failed"));
    let error = CommandTokens::new("no-such-program-here").token().await;
    assert!(error.unwrap_err().to_string().contains("cannot be run"));
    let sleepy = CommandTokens::new("sleep").args(["60"]);
    let error = sleepy.timeout(Duration::from_millis(1)).token().await;
    assert!(error.unwrap_err().to_string().contains("in time"));
}

/// A server that answers each request of each connection with the next response and then closes.
/// Returns its address and, at the end, the number of connections and what it read.
async fn serve(
    answers: Vec<&'static str>,
    connections: usize,
) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut heads = Vec::new();
        let mut answers = answers.into_iter();
        for place in 0..connections {
            let (mut socket, _) = listener.accept().await.unwrap();
            let left = answers.len();
            let here = if place + 1 == connections { left } else { 1 };
            for answer in answers.by_ref().take(here) {
                heads.push(request(&mut socket).await);
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        }
        heads
    });
    (address, task)
}

async fn request(socket: &mut tokio::net::TcpStream) -> String {
    let mut read = Vec::new();
    let mut piece = [0; 1024];
    // The bodies of these tests are `hi`.
    while !read.ends_with(b"\r\n\r\nhi") {
        let count = socket.read(&mut piece).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(read).unwrap()
}

/// A transport that uses hyper for addresses without TLS, and one that uses reqwest for all.
fn direct() -> [HttpTransport; 2] {
    let transport = HttpTransport::new(&HttpSettings {
        connect_timeout: Some(secs(5)),
        proxy: ProxyChoice::Direct,
        root_certificates: Vec::new(),
    })
    .unwrap();
    [transport.clone(), transport.with_reqwest_only()]
}

async fn post(transport: &HttpTransport, url: &str) -> Result<(u16, String), TransportFault> {
    let request = HttpRequest {
        method: HttpMethod::Post,
        url: format!("{url}/x"),
        headers: vec![
            Header::plain("x-plain", "p"),
            Header::secret("authorization", "Bearer ", Secret::new("sk-1")),
        ],
        body: Bytes::from_static(b"hi").into(),
    };
    let response = transport.send(request).await;
    let mut response = response.map_err(|error| error.fault())?;
    let mut body = Vec::new();
    while let Some(piece) = response.body.next().await {
        body.extend_from_slice(&piece.map_err(|error| error.fault())?);
    }
    Ok((response.status, String::from_utf8(body).unwrap()))
}

#[tokio::test]
async fn connections_are_used_again_and_headers_sent() {
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for transport in direct() {
        let (url, server) = serve(vec![ok, ok], 1).await;
        for _ in 0..2 {
            assert_eq!(post(&transport, &url).await, Ok((200, "ok".to_owned())));
        }
        let heads = server.await.unwrap();
        assert_eq!(heads.len(), 2);
        assert!(heads[1].contains("authorization: Bearer sk-1\r\n"));
        assert!(heads[1].contains("x-plain: p\r\n"));
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let moved = "HTTP/1.1 307 Moved\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n";
    for transport in direct() {
        let (url, server) = serve(vec![moved], 1).await;
        assert_eq!(post(&transport, &url).await, Ok((307, String::new())));
        assert_eq!(server.await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_cut() {
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhalf";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    for answer in [short, chunked, "HTTP/1.1 200 OK\r\ncont"] {
        for transport in direct() {
            let (url, server) = serve(vec![answer], 1).await;
            let outcome = post(&transport, &url).await;
            assert_eq!(outcome, Err(TransportFault::Cut), "{answer}");
            server.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_closed_port_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for transport in direct() {
        assert_eq!(post(&transport, &url).await, Err(TransportFault::Connect));
        let outcome = post(&transport, "not an address").await;
        assert_eq!(outcome, Err(TransportFault::Request));
    }
}

#[test]
fn a_certificate_that_is_none_is_refused() {
    let settings = HttpSettings {
        root_certificates: vec![b"nonsense".to_vec()],
        ..HttpSettings::default()
    };
    assert_eq!(
        HttpTransport::new(&settings).unwrap_err().fault(),
        TransportFault::Request
    );
}
