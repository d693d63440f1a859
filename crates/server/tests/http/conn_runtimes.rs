//! Connections stay on their threads.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Mutex;

use axum::Router;
use axum::routing::{get, post};
use throughline_server::{Payload, Server};
use tokio::sync::oneshot;

use crate::http::support::{Client, config, end};

/// The thread that answers.
async fn place() -> String {
    format!("{:?}", std::thread::current().id())
}

async fn start() -> Server {
    let more = Router::new().route("/where", get(place));
    Server::builder(config("", &[]))
        .routes(more)
        .serve()
        .await
        .unwrap()
}

/// Connections, with the thread that each is on.
async fn connect(server: &Server, count: usize) -> Vec<(Client, String)> {
    let mut open = Vec::new();
    for _ in 0..count {
        let mut client = Client::to(server.address).await;
        let place = client.send("GET /where", &[], b"").await.body;
        open.push((client, place));
    }
    open
}

/// How many connections the threads have, the fewest first.
fn spread(open: &[(Client, String)]) -> Vec<usize> {
    let mut threads = BTreeMap::<&str, usize>::new();
    for (_, place) in open {
        *threads.entry(place).or_default() += 1;
    }
    let mut counts: Vec<_> = threads.into_values().collect();
    counts.sort_unstable();
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_connection_stays_on_its_thread_and_each_has_as_many() {
    let server = start().await;
    let mut open = connect(&server, 12).await;
    assert_eq!(spread(&open), [4, 4, 4]);
    for _ in 0..20 {
        for (client, place) in &mut open {
            assert_eq!(&client.send("GET /where", &[], b"").await.body, place);
        }
    }
    // A thread whose connections have ended is the next to get some.
    let free = open[0].1.clone();
    open.retain(|(_, place)| *place != free);
    while server.app().http.connections() > open.len() as u64 {
        tokio::task::yield_now().await;
    }
    open.extend(connect(&server, 5).await);
    assert_eq!(spread(&open), [4, 4, 5]);
    end(server).await;
}

#[tokio::test]
async fn a_runtime_of_one_thread_has_all_connections() {
    let server = start().await;
    let open = connect(&server, 3).await;
    let own = place().await;
    assert!(open.iter().all(|(_, place)| *place == own));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_end_with_the_server_and_whatever_is_left_on_them() {
    static LEFT: Mutex<Option<oneshot::Sender<()>>> = Mutex::new(None);
    let (sender, left) = oneshot::channel::<()>();
    *LEFT.lock().unwrap() = Some(sender);
    let leaves = || async {
        let held = LEFT.lock().unwrap().take();
        tokio::spawn(async move {
            let _held = held;
            pending::<()>().await;
        });
    };
    let more = Router::new().route("/leaves", get(leaves));
    let server = Server::builder(config("", &[]))
        .routes(more)
        .serve()
        .await
        .unwrap();
    let address = server.address;
    let mut client = Client::to(address).await;
    assert_eq!(client.send("GET /leaves", &[], b"").await.status, 200);
    end(server).await;
    assert!(left.await.is_err(), "it is dropped with its thread");
    // There is no listener any more.
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_nobody_stops_goes_on_and_ends_with_its_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let address = runtime
        .spawn(async { start().await.address })
        .await
        .unwrap();
    let mut client = Client::to(address).await;
    assert_eq!(client.send("GET /healthz", &[], b"").await.status, 200);
    runtime.shutdown_background();
    assert!(client.is_closed().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_take_long_is_worked_on_aside() {
    let place =
        |payload: Payload| async move { format!("{} {}", payload.bytes().len(), place().await) };
    let more = Router::new().route("/where", post(place));
    let server = Server::builder(config("", &[]))
        .routes(more)
        .serve()
        .await
        .unwrap();
    let mut client = Client::to(server.address).await;
    let own = client.send("POST /where", &[], b"x").await.body;
    let own = own.strip_prefix("1 ").unwrap();
    for (length, is_long) in [(0, false), (256 * 1024, false), (256 * 1024 + 1, true)] {
        let answer = client.send("POST /where", &[], &vec![b' '; length]).await;
        let (read, place) = answer.body.split_once(' ').unwrap();
        assert_eq!((read, place != own), (length.to_string().as_str(), is_long));
    }
    // One that does not say how long it is.
    client
        .write(b"POST /where HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
        .await;
    let answer = client.answer().await;
    let (read, place) = answer.body.split_once(' ').unwrap();
    assert_eq!((read, place != own), ("1", true));
    // And one that says it of something else.
    let packed = zstd::encode_all(&[b' '; 100][..], 1).unwrap();
    let headers = [("content-encoding", "zstd")];
    let answer = client.send("POST /where", &headers, &packed).await;
    let (read, place) = answer.body.split_once(' ').unwrap();
    assert_eq!((read, place != own), ("100", true));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_ends_what_is_worked_on_aside() {
    static LEFT: Mutex<Option<oneshot::Sender<()>>> = Mutex::new(None);
    let (sender, left) = oneshot::channel::<()>();
    *LEFT.lock().unwrap() = Some(sender);
    let (begun, begins) = oneshot::channel::<()>();
    let begun = std::sync::Arc::new(Mutex::new(Some(begun)));
    let waits = move |_: Payload| {
        let begun = begun.lock().unwrap().take();
        async move {
            let _held = LEFT.lock().unwrap().take();
            drop(begun);
            pending::<()>().await;
        }
    };
    let more = Router::new().route("/waits", post(waits));
    let server = Server::builder(config("", &[]))
        .routes(more)
        .serve()
        .await
        .unwrap();
    let mut client = Client::to(server.address).await;
    client
        .write(b"POST /waits HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
        .await;
    assert!(begins.await.is_err(), "it is being worked on");
    drop(client);
    assert!(left.await.is_err(), "it is dropped with its connection");
    end(server).await;
}
