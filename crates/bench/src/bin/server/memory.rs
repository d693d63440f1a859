//! Memory under misbehaving peers: readers that never read, upstreams that never stop, large
//! bodies. The peak of the server's resident memory is compared with `limits.memory`, and the
//! duration of normal requests meanwhile with their duration on an idle server.

use std::time::{Duration, Instant};

use serde_json::json;
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::child::Child;
use super::load::{Connection, post};
use super::mock::{ENDLESS_ARGUMENTS, ENDLESS_JSON, ENDLESS_STREAM, LONG};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// The default of `limits.memory`.
const LIMIT: f64 = 512.0 * MEBIBYTE;

/// The number of clients that never read.
const READERS: usize = 500;

/// The number of endless answers, of each kind.
const RUNAWAYS: usize = 8;

/// The number of concurrent large bodies, and their size.
const BODIES: usize = 8;
const BODY: usize = 48_000_000;

/// The number of normal requests, their concurrency, and the pause between them.
const REQUESTS: usize = 1_000;
const AT_ONCE: usize = 4;
const APART: Duration = Duration::from_millis(20);

pub(super) fn reports() -> Vec<Report> {
    let runtime = super::runtime();
    let mut report = Report::new("memory and other clients, against peers that misbehave");
    type Misbehave = fn(String) -> Vec<JoinHandle<()>>;
    let cases: [(&str, Misbehave); 6] = [
        ("500 that do not read streams of 2 MB", |at| {
            readers(&at, true)
        }),
        ("500 that do not read answers of 2 MB", |at| {
            readers(&at, false)
        }),
        ("8 upstreams with endless JSON", |at| {
            runaways(&at, ENDLESS_JSON, false)
        }),
        ("8 upstreams with endless streams", |at| {
            runaways(&at, ENDLESS_STREAM, true)
        }),
        ("8 upstreams with endless arguments", |at| {
            runaways(&at, ENDLESS_ARGUMENTS, true)
        }),
        ("8 bodies of 48 MB in chunks", |at| bodies(&at)),
    ];
    for (name, misbehave) in cases {
        measure(&runtime, &mut report, name, misbehave);
    }
    vec![report]
}

fn measure(
    runtime: &Runtime,
    report: &mut Report,
    name: &str,
    misbehave: impl FnOnce(String) -> Vec<JoinHandle<()>>,
) {
    let scratch = Scratch::new("bench-server");
    let mock = Child::mock();
    let server = Child::server(&mock, &scratch);
    runtime.block_on(async {
        let calm = normal(&server.at).await;
        let peers = misbehave(server.at.clone());
        tokio::time::sleep(Duration::from_millis(200)).await;
        let during = normal(&server.at).await;
        let took = quiet(&server).await;
        let after = normal(&server.at).await;
        let peak = server.peak_memory();
        for peer in &peers {
            peer.abort();
        }
        report.push(Row {
            name: format!("{name}: peak memory of {:.0} MiB", LIMIT / MEBIBYTE),
            figure: format!("{:.0} MiB", peak / MEBIBYTE),
            ratio: Some(peak / LIMIT),
            limit: Some(Limit::AtMost(1.0)),
        });
        // While all of them are being answered the processors are busy, as they would be with
        // well-behaved peers.
        for (when, measured, limit) in [
            (
                format!("while they are at work ({:.0} s)", took.as_secs_f64()),
                &during,
                None,
            ),
            (
                "when they hold what they hold".to_owned(),
                &after,
                Some(Limit::AtMost(3.0)),
            ),
        ] {
            report.push(Row {
                name: format!("  p99 of normal requests, against calm ones, {when}"),
                figure: format!(
                    "{:.1} ms {:.1} ms, {} of {REQUESTS} refused",
                    measured.p99 * 1e3,
                    calm.p99 * 1e3,
                    measured.refused
                ),
                ratio: Some(measured.p99 / calm.p99),
                limit,
            });
        }
    });
}

/// Waits until the server is idle; returns how long it was busy.
async fn quiet(server: &Child) -> Duration {
    let began = Instant::now();
    loop {
        let before = server.processor();
        tokio::time::sleep(PAUSE).await;
        let busy = (server.processor() - before) / PAUSE.as_nanos() as f64;
        if busy < 0.1 || began.elapsed() > Duration::from_secs(120) {
            return began.elapsed();
        }
    }
}

/// How long the server must be idle.
const PAUSE: Duration = Duration::from_millis(500);

struct Normal {
    p99: f64,
    refused: usize,
}

/// Small requests of a few clients that read their answers.
async fn normal(address: &str) -> Normal {
    let body = json!({"model": "up/m", "input": "Hello"}).to_string();
    let mut clients = Vec::new();
    for _ in 0..AT_ONCE {
        let (address, request) = (address.to_owned(), post("/v1/responses", "", &body));
        clients.push(tokio::spawn(async move {
            let mut connection = Connection::to(&address).await;
            let (mut times, mut refused) = (Vec::new(), 0);
            for _ in 0..REQUESTS / AT_ONCE {
                let asked = Instant::now();
                let status = connection.status(&request).await;
                times.push(asked.elapsed().as_secs_f64());
                refused += usize::from(status != 200);
                tokio::time::sleep(APART).await;
            }
            (times, refused)
        }));
    }
    let (mut times, mut refused) = (Vec::new(), 0);
    for client in clients {
        let (its_times, its_refused) = client.await.expect("a client ends");
        times.extend(its_times);
        refused += its_refused;
    }
    times.sort_by(f64::total_cmp);
    let p99 = times[times.len() * 99 / 100];
    Normal { p99, refused }
}

/// Clients that request a long answer and never read it.
fn readers(address: &str, stream: bool) -> Vec<JoinHandle<()>> {
    let body = json!({"model": format!("up/{LONG}"), "stream": stream, "input": "Hello"});
    let request = post("/v1/responses", "", &body.to_string());
    let reader = |_| {
        let (address, request) = (address.to_owned(), request.clone());
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            if stream.write_all(&request).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
        })
    };
    (0..READERS).map(reader).collect()
}

/// Clients that request endless answers, and read them.
fn runaways(address: &str, model: &str, stream: bool) -> Vec<JoinHandle<()>> {
    let body = json!({"model": format!("up/{model}"), "stream": stream, "input": "Hello"});
    let request = post("/v1/responses", "", &body.to_string());
    let runaway = |_| {
        let (address, request) = (address.to_owned(), request.clone());
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            let mut space = vec![0; 64 * 1024];
            if stream.write_all(&request).await.is_ok() {
                while stream.read(&mut space).await.is_ok_and(|read| read > 0) {}
            }
        })
    };
    (0..RUNAWAYS).map(runaway).collect()
}

/// Clients that send large bodies without announcing their length.
fn bodies(address: &str) -> Vec<JoinHandle<()>> {
    let body = |_| {
        let address = address.to_owned();
        tokio::spawn(async move {
            // A server that refuses the body may close the connection.
            let _ = send_large(&address).await;
        })
    };
    (0..BODIES).map(body).collect()
}

async fn send_large(address: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let head = "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\
        content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let text = "x".repeat(8 << 20);
    let part = json!({"role": "user", "content": text}).to_string();
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let mut body = chunk("{\"model\":\"up/m\",\"input\":[");
    let mut sent = 0;
    while sent + part.len() < BODY {
        stream.write_all(body.as_bytes()).await?;
        let comma = if sent > 0 { "," } else { "" };
        body = chunk(&format!("{comma}{part}"));
        sent += part.len() + 1;
    }
    stream.write_all(body.as_bytes()).await?;
    stream.write_all(chunk("]}").as_bytes()).await?;
    stream.write_all(b"0\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(())
}
