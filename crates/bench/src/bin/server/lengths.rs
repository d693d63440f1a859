//! The cost of a long chain must be the cost of its bytes.
//!
//! Turn 100 and turn 1,000 are compared with a turn 10 that sends as many bytes in few long
//! messages: moving two megabytes evicts a processor's caches, which slows down everything after it
//! in any program. The cost of the bytes alone, for the server and for the proxy, is shown beside
//! it.

use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};

use super::child::Child;
use super::load::{Connection, post};
use super::turns::create;
use super::{kilobyte, median, runtime};

const LENGTHS: [usize; 4] = [1, 10, 100, 1_000];
/// The length of the baseline.
const SHORT: usize = 10;
/// Rounds for the median, branches of one round, and turns on each: few enough that a chain hardly
/// grows.
const ROUNDS: usize = 9;
const BRANCHES: usize = 4;
const TURNS: usize = 8;

/// The time of turns of a length in one round, in nanoseconds per turn.
#[derive(Clone, Copy, Default)]
struct Spent {
    /// The turn that begins a branch: its history is read and rendered.
    branched: f64,
    /// A turn that continues the previous one.
    went_on: f64,
    /// The same at turn 10, with as many bytes.
    short: f64,
    /// The proxy with one read and two commits, sending as many bytes.
    sent: f64,
}

pub(super) fn reports() -> Vec<Report> {
    // Waiting for the disk is not CPU time.
    let scratch = Scratch::in_memory("bench-server");
    let mock = Child::mock();
    let proxy = Child::proxy(&mock, &scratch);
    let server = Child::server(&mock, &scratch);
    let text = kilobyte();
    let mut spent: Vec<Vec<Spent>> = vec![Vec::new(); LENGTHS.len()];
    runtime().block_on(async {
        let chains = chains(&server, &text).await;
        let mut own = Connection::to(&server.at).await;
        let mut base = Connection::to(&proxy.at).await;
        for round in 0..=ROUNDS {
            for (place, (length, chain)) in LENGTHS.iter().zip(&chains).enumerate() {
                let mut taken = turns(&server, &mut own, &text, chain.end.as_deref()).await;
                let short = turns(&server, &mut own, &text, chain.short.as_deref()).await;
                taken.short = short.went_on;
                taken.sent = sent(&proxy, &mut base, bytes(*length, &text)).await;
                // The first round warms up.
                if round > 0 {
                    spent[place].push(taken);
                }
            }
        }
    });
    let mut report = Report::new("processor time of a turn, 1 KB messages");
    for (place, length) in LENGTHS.iter().enumerate() {
        let rounds = &spent[place];
        let all = |of: fn(&Spent) -> f64| median(rounds.iter().map(of).collect());
        let (went_on, short) = (all(|one| one.went_on), all(|one| one.short));
        let ratios = rounds.iter().map(|one| one.went_on / one.short);
        report.push(Row {
            name: format!("turn {length} goes on, against a turn {SHORT} of as many bytes"),
            figure: format!("{:.0} µs {:.0} µs", went_on / 1e3, short / 1e3),
            ratio: (*length != SHORT).then(|| median(ratios.collect())),
            limit: (*length > SHORT).then_some(Limit::AtMost(1.3)),
        });
    }
    for (place, length) in LENGTHS
        .iter()
        .enumerate()
        .filter(|(_, length)| **length > SHORT)
    {
        let beyond = |of: fn(&Spent) -> f64| {
            let plain = &spent[1];
            let rounds = spent[place].iter().zip(plain);
            median(rounds.map(|(long, plain)| of(long) - of(plain)).collect())
        };
        let (ours, theirs) = (beyond(|one| one.short), beyond(|one| one.sent));
        report.push(Row {
            name: format!("the bytes of turn {length}, against the proxy"),
            figure: format!("{:.0} µs {:.0} µs", ours / 1e3, theirs / 1e3),
            ratio: Some(ours / theirs),
            limit: None,
        });
    }
    for (place, length) in LENGTHS.iter().enumerate() {
        let branched = median(spent[place].iter().map(|one| one.branched).collect());
        report.push(Row {
            name: format!("turn {length} begins a branch"),
            figure: format!("{:.0} µs", branched / 1e3),
            ratio: None,
            limit: None,
        });
    }
    vec![report]
}

/// The size of a turn's request: two messages for each earlier turn, the newest one, and framing.
fn bytes(length: usize, text: &str) -> usize {
    (2 * length - 1) * (text.len() + 34) + 40
}

/// Turns of a length, on branches.
async fn turns(
    server: &Child,
    connection: &mut Connection,
    text: &str,
    end: Option<&str>,
) -> Spent {
    let mut spent = Spent::default();
    for _ in 0..BRANCHES {
        let begun = server.processor();
        let mut previous = connection.response(&create(text, end)).await;
        let branched = server.processor();
        for _ in 0..TURNS {
            previous = connection.response(&create(text, Some(&previous))).await;
        }
        spent.branched += (branched - begun) / BRANCHES as f64;
        spent.went_on += (server.processor() - branched) / (BRANCHES * TURNS) as f64;
    }
    spent
}

/// The proxy's time for a turn of this size.
async fn sent(proxy: &Child, connection: &mut Connection, bytes: usize) -> f64 {
    let request = post("/turn", &format!("x-bytes: {bytes}\r\n"), "{}");
    let times = BRANCHES * TURNS;
    let before = proxy.processor();
    for _ in 0..times {
        connection.whole(&request).await;
    }
    (proxy.processor() - before) / times as f64
}

/// The response before a turn of a length, and the one before a turn 10 of the same size.
struct Chain {
    end: Option<String>,
    short: Option<String>,
}

async fn chains(server: &Child, text: &str) -> Vec<Chain> {
    let mut connection = Connection::to(&server.at).await;
    let (mut previous, mut ends) = (None, Vec::new());
    for turn in 1..=LENGTHS[3] {
        if LENGTHS.contains(&turn) {
            ends.push(previous.clone());
        }
        let request = create(text, previous.as_deref());
        previous = Some(connection.response(&request).await);
    }
    let mut chains = Vec::new();
    for (length, end) in LENGTHS.iter().zip(ends) {
        // Answers and the newest message have a fixed length.
        let said = bytes(*length, text).saturating_sub(bytes(SHORT, text)) / (SHORT - 1);
        let long = text.repeat(1 + said / text.len());
        let mut short = None;
        for _ in 1..SHORT {
            let request = create(&long, short.as_deref());
            short = Some(connection.response(&request).await);
        }
        chains.push(Chain { end, short });
    }
    chains
}
