//! Upstreams that send responses which no request asked for: whole ones, late ones, parts of one.
//!
//! A response on a reused connection belongs to the request that was written last, so bytes that wait
//! on a connection before a request is written would be taken for its response. The client checks the
//! socket right before it writes. Bytes that come later cannot be told from the right response; they
//! are counted and printed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use throughline::client::{HttpSettings, HttpTransport, ProxyChoice, View};
use throughline::model::Message;
use throughline::{ChatClient, OpenAi};
use throughline_testkit::{Rng, property};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};

use crate::upstreams::common::{Ask, patient};

/// How many requests each upstream gets, and how many of them at once.
const REQUESTS: usize = 20;
const AT_ONCE: usize = 4;
/// How many upstreams there are in a test run: 20 requests each, 20,000 at the scale of a campaign.
const UPSTREAMS: u64 = 50;
/// The loopback device delivers what was written after the call returns, but soon.
const DELIVERY: Duration = Duration::from_millis(1);

/// What an upstream sends beside a response.
#[derive(Clone, Copy, Debug)]
enum Extra {
    None,
    /// Behind the response, in the same write.
    Behind,
    /// After a while.
    Late(Duration),
    /// When the next request has begun to come.
    AfterNext,
}

/// What was counted, over all upstreams.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    answers: AtomicUsize,
    errors: AtomicUsize,
    connections: AtomicUsize,
    /// Extra bytes that were sent behind a response or after a while.
    extras: AtomicUsize,
    /// Requests that were written to a connection on which extra bytes were waiting. Must be 0.
    before: AtomicUsize,
    /// Requests that were written to a connection on which extra bytes came at the same time or later.
    later: AtomicUsize,
    /// Requests that got the response to another one because of that.
    wrong_later: AtomicUsize,
    /// Upstreams that were caught.
    caught: AtomicUsize,
}

impl Counts {
    fn add(counter: &AtomicUsize) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request, as the client knows it.
#[derive(Clone, Copy)]
struct Begun {
    at: Instant,
    /// The upstream had been caught before.
    must_be_new: bool,
}

/// What the client and the server of one upstream share.
#[derive(Default)]
struct Shared {
    begun: Mutex<HashMap<usize, Begun>>,
    broken: Mutex<Vec<String>>,
}

impl Shared {
    fn breaks(&self, problem: String) {
        self.broken.lock().unwrap().push(problem);
    }
}

fn response(content: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"id":"c1","object":"chat.completion","created":1,"model":"gpt-5","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
    );
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// An extra response, or a part of one.
fn unasked(rng: &mut Rng, number: usize) -> Vec<u8> {
    let mut whole = response(&format!("unasked {number}"));
    if rng.below(2) == 0 {
        whole.truncate(rng.range(1..=whole.len()));
    }
    whole
}

/// Reads a request; gives its number, or none at the end of the connection. Bytes behind it stay in
/// the buffer: a client that took an extra response for its own sends the next request early.
async fn next_request(socket: &mut TcpStream, read: &mut Vec<u8>) -> Option<usize> {
    loop {
        let text = String::from_utf8_lossy(read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1)?;
            let length: usize = length.split("\r\n").next()?.parse().ok()?;
            if body.len() >= length {
                let number = body[..length].split("question ").nth(1)?;
                let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
                let end = head.len() + "\r\n\r\n".len() + length;
                read.drain(..end);
                return digits.parse().ok();
            }
        }
        if socket.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}

/// Serves one connection until the client closes it.
async fn serve(mut socket: TcpStream, mut rng: Rng, shared: Arc<Shared>, counts: Arc<Counts>) {
    // Otherwise the system holds late bytes back until the client acknowledges the response, which it
    // does with its next request.
    socket.set_nodelay(true).unwrap();
    let mut read = Vec::new();
    // When extra bytes were written that no request followed yet.
    let mut extra_at: Option<Instant> = None;
    let mut after_next = false;
    let mut served = 0;
    loop {
        if after_next {
            // Wait for the first bytes of the next request only.
            if read.is_empty() && !matches!(socket.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
            let extra = unasked(&mut rng, served);
            if socket.write_all(&extra).await.is_err() {
                return;
            }
            extra_at = Some(Instant::now());
            after_next = false;
        }
        let Some(number) = next_request(&mut socket, &mut read).await else {
            return;
        };
        let begun = shared.begun.lock().unwrap()[&number];
        if begun.must_be_new && served > 0 {
            shared.breaks(format!("request {number} came on a reused connection"));
        }
        if let Some(at) = extra_at.take() {
            if at + DELIVERY < begun.at {
                Counts::add(&counts.before);
                shared.breaks(format!(
                    "request {number} came behind bytes that were waiting"
                ));
            } else {
                Counts::add(&counts.later);
            }
        }
        served += 1;
        let mut answer = response(&format!("answer {number}"));
        let extra = match rng.below(12) {
            0 => Extra::Behind,
            1 => Extra::Late(Duration::from_micros(rng.below(3_000) as u64)),
            2 => Extra::AfterNext,
            _ => Extra::None,
        };
        if let Extra::Behind = extra {
            answer.extend(unasked(&mut rng, number));
        }
        if socket.write_all(&answer).await.is_err() {
            return;
        }
        match extra {
            Extra::None => {}
            Extra::Behind => {
                Counts::add(&counts.extras);
                extra_at = Some(Instant::now());
            }
            Extra::Late(wait) => {
                Counts::add(&counts.extras);
                tokio::time::sleep(wait).await;
                let extra = unasked(&mut rng, number);
                if socket.write_all(&extra).await.is_err() {
                    return;
                }
                extra_at = Some(Instant::now());
            }
            Extra::AfterNext => after_next = true,
        }
    }
}

/// Starts an upstream on the servers' runtime; gives its address and its task.
fn start(
    servers: &Runtime,
    mut rng: Rng,
    shared: &Arc<Shared>,
    counts: &Arc<Counts>,
) -> (String, JoinHandle<()>) {
    let listener = servers.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (shared, counts) = (Arc::clone(shared), Arc::clone(counts));
    let task = servers.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            Counts::add(&counts.connections);
            let (shared, counts) = (Arc::clone(&shared), Arc::clone(&counts));
            connections.spawn(serve(socket, rng.fork(), shared, counts));
        }
    });
    (url, task)
}

/// Sends requests to one upstream, several at once with pauses between them.
async fn one_upstream(
    url: &str,
    rng: &mut Rng,
    shared: &Arc<Shared>,
    counts: &Counts,
) -> Result<(), String> {
    let settings = HttpSettings {
        proxy: ProxyChoice::Direct,
        ..HttpSettings::default()
    };
    let transport = Arc::new(HttpTransport::new(&settings).unwrap());
    let client = OpenAi::chat("gpt-5")
        .base_url(url)
        .api_key("sk-1")
        .timeouts(patient())
        .transport(transport.clone())
        .build_bare()
        .unwrap();
    let tasks = (0..AT_ONCE).map(|task| {
        let (client, transport) = (&client, &transport);
        let mut rng = rng.fork();
        async move {
            for turn in 0..REQUESTS / AT_ONCE {
                // Some requests follow at once, others when late bytes have come.
                let pause = Duration::from_micros(rng.below(6_000) as u64);
                match rng.below(3) {
                    0 => {}
                    1 => tokio::time::sleep(pause).await,
                    // The client's only thread sleeps, so the runtime does not hear of what comes
                    // meanwhile: only the system knows of it when the next request begins.
                    _ => std::thread::sleep(pause),
                }
                let number = task * REQUESTS + turn;
                let begun = Begun {
                    must_be_new: transport.unsolicited_count() > 0,
                    at: Instant::now(),
                };
                shared.begun.lock().unwrap().insert(number, begun);
                let view = View::new(vec![Message::user(format!("question {number} "))]);
                Counts::add(&counts.requests);
                match client.respond(&Ask::plain().about(&view)).await {
                    Err(_) => Counts::add(&counts.errors),
                    Ok(response) if response.messages[0].text() == format!("answer {number}") => {
                        Counts::add(&counts.answers);
                    }
                    // Whether its bytes came too early is seen by the server.
                    Ok(_) => Counts::add(&counts.wrong_later),
                }
            }
        }
    });
    join_all(tasks).await;
    if transport.unsolicited_count() > 0 {
        Counts::add(&counts.caught);
    }
    let broken = std::mem::take(&mut *shared.broken.lock().unwrap());
    match broken.is_empty() {
        true => Ok(()),
        false => Err(broken.join("\n")),
    }
}

#[test]
fn r13_bytes_that_wait_before_a_request_are_never_its_response() {
    let counts: Arc<Counts> = Arc::default();
    // The upstreams have threads of their own: they write while the client's thread sleeps.
    let servers = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let client = Builder::new_current_thread().enable_all().build().unwrap();
    property("upstreams that answer out of turn", UPSTREAMS, |rng, _| {
        let shared: Arc<Shared> = Arc::default();
        let (url, upstream) = start(&servers, rng.fork(), &shared, &counts);
        let result = client.block_on(one_upstream(&url, rng, &shared, &counts));
        upstream.abort();
        result
    });
    let Counts {
        requests,
        answers,
        errors,
        connections,
        extras,
        before,
        later,
        wrong_later,
        caught,
    } = &*counts;
    println!(
        "table out_of_turn requests={requests:?} answers={answers:?} errors={errors:?} \
         connections={connections:?} extras={extras:?} caught={caught:?} before={before:?} \
         later={later:?} wrong_later={wrong_later:?}"
    );
    let (answers, requests) = (
        answers.load(Ordering::Relaxed),
        requests.load(Ordering::Relaxed),
    );
    assert!(answers > requests / 2, "{counts:?}");
}
