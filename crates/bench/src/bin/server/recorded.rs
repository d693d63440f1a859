//! What it adds to a completion that its conversation is recorded.
//!
//! The same requests go to a server that records and to one that does not. What recording adds is
//! compared with a plain turn of the Responses API. A long conversation has many bytes to read, so its
//! turns are compared with those of one that has as many bytes in few long messages.

use serde_json::{Value, json};
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};

use super::child::Child;
use super::load::{Connection, post};
use super::turns::create;
use super::{kilobyte, median, runtime};

const LENGTHS: [usize; 4] = [1, 10, 100, 1_000];
/// The length of the baseline.
const SHORT: usize = 10;
/// Rounds for the median, and turns of each.
const ROUNDS: usize = 9;
const TURNS: usize = 16;

/// The time of one round, in nanoseconds per turn.
#[derive(Clone, Copy, Default)]
struct Spent {
    /// What recording adds.
    added: f64,
    /// What it adds to a turn 10 with as many bytes.
    short: f64,
    /// A plain turn of the Responses API.
    plain: f64,
}

pub(super) fn reports() -> Vec<Report> {
    // Waiting for the disk is not CPU time.
    let (plain, recorded) = (
        Scratch::in_memory("bench-server"),
        Scratch::in_memory("bench-server"),
    );
    let mock = Child::mock();
    let plain = Child::server(&mock, &plain);
    let recording = Child::server_with(&mock, &recorded, &["THROUGHLINE_RECORD_STATELESS=true"]);
    let mut spent: Vec<Vec<Spent>> = vec![Vec::new(); LENGTHS.len()];
    runtime().block_on(async {
        let mut names = 0;
        for round in 0..=ROUNDS {
            for (place, length) in LENGTHS.into_iter().enumerate() {
                let size = kilobyte().len();
                let same = size * (2 * length - 1) / (2 * SHORT - 1);
                names += 2;
                let one = Spent {
                    added: added(&plain, &recording, (names, length, size)).await,
                    short: added(&plain, &recording, (names + 1, SHORT, same)).await,
                    plain: responses(&plain).await,
                };
                // The first round warms up.
                if round > 0 {
                    spent[place].push(one);
                }
            }
        }
    });
    let mut report = Report::new("processor time that recording adds, 1 KB messages");
    for (place, length) in LENGTHS.into_iter().enumerate() {
        let rounds = &spent[place];
        let all = |of: fn(&Spent) -> f64| median(rounds.iter().map(of).collect());
        let (added, short, plain) = (
            all(|one| one.added),
            all(|one| one.short),
            all(|one| one.plain),
        );
        // Beyond this length its bytes cost more than all else.
        let is_short = length <= SHORT;
        report.push(Row {
            name: format!("turn {length}, against a plain turn"),
            figure: format!("{:.0} µs {:.0} µs", added / 1e3, plain / 1e3),
            ratio: Some(added / plain),
            limit: is_short.then_some(Limit::AtMost(1.5)),
        });
        report.push(Row {
            name: format!("turn {length}, against a turn {SHORT} of as many bytes"),
            figure: format!("{:.0} µs {:.0} µs", added / 1e3, short / 1e3),
            ratio: (!is_short).then_some(added / short),
            limit: (!is_short).then_some(Limit::AtMost(1.3)),
        });
    }
    vec![report]
}

/// What recording adds to turns that go on from a conversation of a length, with messages of a size.
async fn added(plain: &Child, recording: &Child, shape: (usize, usize, usize)) -> f64 {
    turns(recording, shape).await - turns(plain, shape).await
}

async fn turns(server: &Child, (name, length, size): (usize, usize, usize)) -> f64 {
    let mut connection = Connection::to(&server.at).await;
    let kilobyte = kilobyte();
    let text = |place: usize| {
        let mut text = format!("{name}.{place} ");
        while text.len() < size {
            text.push_str(&kilobyte[..kilobyte.len().min(size - text.len())]);
        }
        text
    };
    let mut messages = Vec::new();
    for place in 1..length {
        messages.push(json!({"role": "user", "content": text(2 * place)}));
        messages.push(json!({"role": "assistant", "content": text(2 * place + 1)}));
    }
    let mut before = 0.0;
    for turn in 0..=TURNS {
        // The first request stores the conversation.
        if turn == 1 {
            before = server.processor();
        }
        messages.push(json!({"role": "user", "content": text(2 * (length + turn))}));
        let body = json!({"model": "up/m", "messages": messages}).to_string();
        let answer = connection
            .whole(&post("/v1/chat/completions", "", &body))
            .await;
        let answer: Value = serde_json::from_slice(&answer).expect("a completion");
        messages.push(answer["choices"][0]["message"].clone());
    }
    (server.processor() - before) / TURNS as f64
}

/// A plain turn of the Responses API.
async fn responses(server: &Child) -> f64 {
    let mut connection = Connection::to(&server.at).await;
    let text = kilobyte();
    let mut previous = connection.response(&create(&text, None)).await;
    let before = server.processor();
    for _ in 0..TURNS {
        previous = connection.response(&create(&text, Some(&previous))).await;
    }
    (server.processor() - before) / TURNS as f64
}
