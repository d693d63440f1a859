//! Turns of conversations and turns over WebSockets, compared with the same turns of a chain.

use std::time::Instant;

use futures_util::future::join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use super::child::Child;
use super::load::{Connection, post};
use super::{kilobyte, median, runtime};

/// Rounds for the median.
const ROUNDS: usize = 15;
/// Clients, and the turns of each in one round.
const CLIENTS: usize = 16;
const TURNS: usize = 20;

/// How a turn is asked for.
#[derive(Clone, Copy)]
enum Transport {
    Chain,
    Conversation,
    Stream,
    Socket,
}

pub(super) fn reports() -> Vec<Report> {
    let scratch = Scratch::new("bench-transports");
    let mock = Child::mock();
    let server = Child::server(&mock, &scratch);
    let runtime = runtime();
    let all = [
        Transport::Chain,
        Transport::Conversation,
        Transport::Stream,
        Transport::Socket,
    ];
    let mut rounds: Vec<[f64; 4]> = Vec::new();
    for round in 0..=ROUNDS {
        let met = all.map(|transport| {
            let clients = (0..CLIENTS).map(|_| turns(&server.at, transport));
            let times = runtime.block_on(join_all(clients));
            median(times.concat())
        });
        // The first round warms up.
        if round > 0 {
            rounds.push(met);
        }
    }
    let name = format!("transports, {CLIENTS} clients, {TURNS} turns each");
    let mut report = Report::new(name);
    for (name, place, against, limit) in [
        ("a turn of a chain", 0, None, None),
        (
            "a turn of a conversation, against that",
            1,
            Some(0),
            Some(1.3),
        ),
        ("a streamed turn of a chain", 2, None, None),
        (
            "a turn over a WebSocket, against that",
            3,
            Some(2),
            Some(1.1),
        ),
    ] {
        let ratio = against.map(|base: usize| {
            let ratios = rounds.iter().map(|round| round[place] / round[base]);
            median(ratios.collect())
        });
        let time = median(rounds.iter().map(|round| round[place]).collect());
        report.push(Row {
            name: name.to_owned(),
            figure: format!("{:.0} µs", time * 1e6),
            ratio,
            limit: limit.map(Limit::AtMost),
        });
    }
    vec![report]
}

/// The durations of the turns of one client, in seconds. Each turn continues the one before.
async fn turns(address: &str, transport: Transport) -> Vec<f64> {
    match transport {
        Transport::Socket => over_socket(address).await,
        _ => over_http(address, transport).await,
    }
}

async fn over_http(address: &str, transport: Transport) -> Vec<f64> {
    let mut connection = Connection::to(address).await;
    let text = kilobyte();
    let mut body = json!({"model": "up/m", "input": text});
    match transport {
        Transport::Conversation => {
            let made = connection.whole(&post("/v1/conversations", "", "{}")).await;
            let made: Value = serde_json::from_slice(&made).expect("a conversation");
            body["conversation"] = made["id"].clone();
        }
        Transport::Stream => body["stream"] = json!(true),
        Transport::Chain | Transport::Socket => {}
    }
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let request = post("/v1/responses", "", &body.to_string());
        let asked = Instant::now();
        let answer = connection.whole(&request).await;
        times.push(asked.elapsed().as_secs_f64());
        if !matches!(transport, Transport::Conversation) {
            body["previous_response_id"] = json!(response_id(&answer));
        }
    }
    times
}

async fn over_socket(address: &str) -> Vec<f64> {
    let opened = connect_async(format!("ws://{address}/v1/responses")).await;
    let (mut socket, _) = opened.expect("a WebSocket opens");
    let text = kilobyte();
    let mut message = json!({"type": "response.create", "model": "up/m", "input": text});
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let sent = Message::text(message.to_string());
        let asked = Instant::now();
        socket.send(sent).await.expect("a message is taken");
        let last = loop {
            let event = socket.next().await.expect("the server is there");
            let event = event.expect("an event").into_data();
            if event.starts_with(b"{\"type\":\"response.completed\"") {
                break event;
            }
            assert!(!event.starts_with(b"{\"type\":\"error\""), "{event:?}");
        };
        times.push(asked.elapsed().as_secs_f64());
        message["previous_response_id"] = json!(response_id(&last));
    }
    times
}

/// The id of the first response that an answer names.
fn response_id(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let start = text.find("\"resp_").expect("an answer names its response") + 1;
    text[start..]
        .split('"')
        .next()
        .unwrap_or_default()
        .to_owned()
}
