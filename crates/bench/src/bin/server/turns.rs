//! A stateful turn, compared with the proxy with one read and two grouped commits.

use serde_json::json;
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};

use super::child::Child;
use super::load::{Connection, Met, load, post};
use super::{kilobyte, median, runtime};

/// Rounds for the median.
const ROUNDS: usize = 15;
/// Requests of one round.
const REQUESTS: usize = 1_000;
/// Responses that branches continue.
const FIRST: usize = 64;

pub(super) fn reports() -> Vec<Report> {
    [1, 16, 64, 256].map(report).into()
}

fn report(connections: usize) -> Report {
    let scratch = Scratch::new("bench-server");
    let mock = Child::mock();
    let proxy = Child::proxy(&mock, &scratch);
    let server = Child::server(&mock, &scratch);
    let runtime = runtime();
    let text = kilobyte();
    let begin = |count: usize| runtime.block_on(threads(&server.at, &text, count));
    let go_on = |ids: Vec<String>| {
        let text = text.clone();
        move |place: usize| create(&text, ids.get(place % ids.len()).map(String::as_str))
    };
    let branch = go_on(begin(FIRST));
    // What the server sends: the thread of one turn, and the new message.
    let body = sent_on();
    let [bare, turn] = ["/bare", "/turn"].map(|path| {
        let request = post(path, "", &body);
        move |_| request.clone()
    });
    let requests = REQUESTS.min(connections * 400);
    let mut rounds: Vec<[Met; 4]> = Vec::new();
    for round in 0..=ROUNDS {
        // Every turn is the second of its thread.
        let second = go_on(begin(requests));
        let met = [
            runtime.block_on(load(&server.at, connections, requests, second)),
            runtime.block_on(load(&proxy.at, connections, requests, turn.clone())),
            runtime.block_on(load(&proxy.at, connections, requests, bare.clone())),
            runtime.block_on(load(&server.at, connections, requests, branch.clone())),
        ];
        // The first round warms up.
        if round > 0 {
            rounds.push(met);
        }
    }
    let mut report = Report::new(format!("a stateful turn, {connections} connections"));
    let limit = Some(Limit::AtMost(2.0));
    for (name, place, against, limit) in [
        ("a bare two-hop proxy", 2, None, None),
        ("the proxy, one read and two commits", 1, None, None),
        ("the server, p50 against that", 0, Some(1), limit),
        ("the server, p50 against the bare proxy", 0, Some(2), None),
        (
            "the server, a branch, against one read and two commits",
            3,
            Some(1),
            None,
        ),
    ] {
        let times = rounds
            .iter()
            .map(|round| median(round[place].times.clone()));
        let speeds = rounds.iter().map(|round| round[place].per_second());
        let (time, speed) = (median(times.collect()), median(speeds.collect()));
        let ratio = against.map(|base: usize| {
            let p50 = |round: &[Met; 4], which: usize| median(round[which].times.clone());
            let ratios = rounds
                .iter()
                .map(|round| p50(round, place) / p50(round, base));
            median(ratios.collect())
        });
        report.push(Row {
            name: name.to_owned(),
            figure: format!("{:.0} µs {speed:.0}/s", time * 1e6),
            ratio,
            limit,
        });
    }
    report
}

/// How many connections make threads: enough to share commits.
const MAKERS: usize = 16;

/// Makes threads of one turn; returns their responses.
async fn threads(address: &str, text: &str, count: usize) -> Vec<String> {
    let mut makers = Vec::new();
    for maker in 0..MAKERS {
        let (address, request) = (address.to_owned(), create(text, None));
        let count = (count + MAKERS - 1 - maker) / MAKERS;
        makers.push(async move {
            let mut connection = Connection::to(&address).await;
            let mut ids = Vec::new();
            for _ in 0..count {
                ids.push(connection.response(&request).await);
            }
            ids
        });
    }
    futures_util::future::join_all(makers).await.concat()
}

/// A create request.
pub(crate) fn create(text: &str, previous: Option<&str>) -> Vec<u8> {
    let mut body = json!({"model": "up/m", "input": text});
    if let Some(previous) = previous {
        body["previous_response_id"] = json!(previous);
    }
    post("/v1/responses", "", &body.to_string())
}

/// The body that the server sends for a thread of one turn, so that the mock has the same work.
fn sent_on() -> String {
    let text = kilobyte();
    let said = |role: &str| json!({"role": role, "content": text});
    json!({
        "model": "m",
        "messages": [said("user"), said("assistant"), said("user")],
        "stream": true,
        "stream_options": {"include_usage": true},
    })
    .to_string()
}
