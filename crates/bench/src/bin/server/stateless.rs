//! A chat completion that is not stored, compared with a bare two-hop proxy.
//!
//! The server reads the request, writes it in the words of its upstream, and does the same with the
//! answer; the proxy copies bytes. Both send the same bytes to the mock.

use serde_json::json;
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};

use super::child::Child;
use super::load::{Met, load, post};
use super::{kilobyte, median, runtime};

/// Rounds for the median, and requests of one round.
const ROUNDS: usize = 15;
const REQUESTS: usize = 1_000;

pub(super) fn reports() -> Vec<Report> {
    [1, 16, 64].map(report).into()
}

fn report(connections: usize) -> Report {
    let scratch = Scratch::new("bench-server");
    let mock = Child::mock();
    let proxy = Child::proxy(&mock, &scratch);
    let server = Child::server(&mock, &scratch);
    let runtime = runtime();
    let requests = REQUESTS.min(connections * 400);
    let asked = |address: &str, request: Vec<u8>| {
        let made = load(address, connections, requests, move |_| request.clone());
        runtime.block_on(made)
    };
    let mut rounds: Vec<[Met; 4]> = Vec::new();
    for round in 0..=ROUNDS {
        let met = [
            asked(&proxy.at, post("/bare", "", &body("m", false))),
            asked(&server.at, post(COMPLETIONS, "", &body("up/m", false))),
            asked(&proxy.at, post("/bare", "", &body("m", true))),
            asked(&server.at, post(COMPLETIONS, "", &body("up/m", true))),
        ];
        // The first round warms up.
        if round > 0 {
            rounds.push(met);
        }
    }
    let mut report = Report::new(format!("a chat completion, {connections} connections"));
    for (name, place, against) in [
        ("a bare two-hop proxy", 0, None),
        ("the server, p50 against that", 1, Some(0)),
        ("the proxy, a stream", 2, None),
        ("the server, a stream, p50 against that", 3, Some(2)),
    ] {
        let time = median(rounds.iter().map(|round| p50(round, place)).collect());
        let speeds = rounds.iter().map(|round| round[place].per_second());
        let speed = median(speeds.collect());
        let ratio = against.map(|base| {
            let ratios = rounds.iter().map(|one| p50(one, place) / p50(one, base));
            median(ratios.collect())
        });
        report.push(Row {
            name: name.to_owned(),
            figure: format!("{:.0} µs {speed:.0}/s", time * 1e6),
            ratio,
            limit: against.map(|_| Limit::AtMost(2.0)),
        });
    }
    report
}

const COMPLETIONS: &str = "/v1/chat/completions";

fn p50(round: &[Met; 4], place: usize) -> f64 {
    median(round[place].times.clone())
}

/// A conversation of three messages.
fn body(model: &str, stream: bool) -> String {
    let text = kilobyte();
    let said = |role: &str| json!({"role": role, "content": text});
    let messages = [said("user"), said("assistant"), said("user")];
    let mut body = json!({"model": model, "messages": messages});
    if stream {
        body["stream"] = json!(true);
    }
    body.to_string()
}
