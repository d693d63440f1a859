//! A bare proxy, and the work that every stateful server has to do.
//!
//! `/bare` forwards the request; `/turn` does one read and two grouped commits in addition. Both
//! send as many bytes as the header `x-bytes` says, and return the upstream's answer. `/stream`
//! forwards events as they arrive, with a commit at either end: the first one is concurrent with
//! the upstream request, but the client receives nothing before it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use futures_util::stream;
use rusqlite::{Connection, OpenFlags};
use throughline_model::Message;
use throughline_testkit::bench::black_box;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::mock::{NoDelay, sent};
use super::{kilobyte, raw};

/// Threads in the database.
const THREADS: i64 = 512;

struct Proxy {
    client: reqwest::Client,
    url: String,
    jobs: mpsc::Sender<(raw::Job, oneshot::Sender<()>)>,
    readers: Mutex<Vec<Connection>>,
    path: String,
    runs: AtomicI64,
    free: Mutex<VecDeque<i64>>,
    /// A kilobyte, in the store's form.
    item: Vec<u8>,
    filler: Bytes,
}

pub(crate) async fn serve(
    url: &str,
    database: &str,
) -> Result<(String, ()), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let connection = raw::connect(Path::new(database), THREADS as usize);
    let (jobs, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        raw::writer(&connection, &waiting, |answer: oneshot::Sender<()>| {
            let _ = answer.send(());
        });
    });
    let proxy = Arc::new(Proxy {
        client: reqwest::Client::builder().no_proxy().build()?,
        url: format!("http://{url}/v1/chat/completions"),
        jobs,
        readers: Mutex::default(),
        path: database.to_owned(),
        runs: AtomicI64::new(1),
        free: Mutex::new((1..=THREADS).collect()),
        item: Message::user(kilobyte()).to_json().into_bytes(),
        filler: Bytes::from(vec![b'x'; 8 << 20]),
    });
    let router = Router::new()
        .route("/bare", post(bare))
        .route("/turn", post(turn))
        .route("/stream", post(streamed))
        .layer(DefaultBodyLimit::disable())
        .with_state(proxy);
    // The task lasts as long as the process.
    tokio::spawn(async move { axum::serve(NoDelay(listener), router).await });
    Ok((address, ()))
}

type Answered = Result<Bytes, StatusCode>;

async fn bare(State(proxy): State<Arc<Proxy>>, headers: HeaderMap, body: Bytes) -> Answered {
    proxy.sent(&headers, &body).await
}

async fn turn(State(proxy): State<Arc<Proxy>>, headers: HeaderMap, body: Bytes) -> Answered {
    let (run, thread) = proxy.next()?;
    proxy.read(thread);
    proxy.begin(run, thread).await?;
    let answer = proxy.sent(&headers, &body).await?;
    proxy.publish(run, thread).await?;
    Ok(answer)
}

async fn streamed(
    State(proxy): State<Arc<Proxy>>,
    body: Bytes,
) -> Result<Response<Body>, StatusCode> {
    let (run, thread) = proxy.next()?;
    let (begun, answer) = tokio::join!(proxy.begin(run, thread), proxy.asked(body));
    begun?;
    let answer = answer?;
    let pieces = stream::unfold((proxy, answer), move |(proxy, mut answer)| async move {
        let Ok(Some(piece)) = answer.chunk().await else {
            // A run that is not published keeps its thread.
            let _ = proxy.publish(run, thread).await;
            return None;
        };
        Some((Ok::<_, Infallible>(piece), (proxy, answer)))
    });
    Ok(sent("text/event-stream", Body::from_stream(pieces)))
}

impl Proxy {
    /// Forwards the request, and reads the whole answer.
    async fn sent(&self, headers: &HeaderMap, body: &Bytes) -> Answered {
        let bytes = headers.get("x-bytes").and_then(|value| value.to_str().ok());
        let bytes = bytes.and_then(|value| value.parse().ok());
        let body = match bytes {
            Some(bytes) => self.filler.slice(..usize::min(bytes, self.filler.len())),
            None => body.clone(),
        };
        let answer = self.asked(body).await?;
        answer.bytes().await.map_err(|_| StatusCode::BAD_GATEWAY)
    }

    async fn asked(&self, body: Bytes) -> Result<reqwest::Response, StatusCode> {
        let request = self.client.post(&self.url);
        let sent = request
            .header("content-type", "application/json")
            .body(body);
        sent.send().await.map_err(|_| StatusCode::BAD_GATEWAY)
    }

    /// A new run, and a thread without a running run.
    fn next(&self) -> Result<(i64, i64), StatusCode> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let thread = self.free().pop_front();
        Ok((run, thread.ok_or(StatusCode::SERVICE_UNAVAILABLE)?))
    }

    /// The threads without a running run, the least recently used first.
    fn free(&self) -> MutexGuard<'_, VecDeque<i64>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self, run: i64, thread: i64) -> Result<(), StatusCode> {
        let text = self.item.clone();
        self.commit(raw::Job::Begin { run, thread, text }).await
    }

    async fn publish(&self, run: i64, thread: i64) -> Result<(), StatusCode> {
        self.commit(raw::Job::Publish {
            run,
            thread,
            first: 2 * run,
            text: self.item.clone(),
        })
        .await?;
        self.free().push_back(thread);
        Ok(())
    }

    async fn commit(&self, job: raw::Job) -> Result<(), StatusCode> {
        let (done, waits) = oneshot::channel();
        let lost = StatusCode::INTERNAL_SERVER_ERROR;
        self.jobs.send((job, done)).map_err(|_| lost)?;
        waits.await.map_err(|_| lost)
    }

    /// The thread, its last node, and the items of its run.
    fn read(&self, thread: i64) {
        let pool = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = pool().pop();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = match reader {
            Some(reader) => reader,
            None => Connection::open_with_flags(&self.path, flags).expect("the database opens"),
        };
        {
            let sql =
                "SELECT t.thread, t.version, n.node, n.last, n.run, n.digest, i.body FROM thread t
                LEFT JOIN node n ON n.tl=t.head_tl AND n.first=t.head_first
                LEFT JOIN item i ON i.run=n.run WHERE t.tenant=1 AND t.id=?1";
            let mut statement = reader.prepare_cached(sql).expect("the tables are known");
            let id = thread.to_be_bytes().repeat(2);
            let mut rows = statement.query([id]).expect("rows are read");
            while let Some(row) = rows.next().expect("a row is read") {
                for column in 0..7 {
                    black_box(row.get_ref(column).expect("a column is read"));
                }
            }
        }
        pool().push(reader);
    }
}
