//! What a long chain costs: the bytes that are sent on, and nothing else.

use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};
use tokio::sync::Mutex;

use super::child::Child;
use super::load::{Connection, post};
use super::turns::create;
use super::{kilobyte, median, runtime};

const LENGTHS: [usize; 4] = [1, 10, 100, 1_000];
/// Rounds of which the median is taken, and turns of each.
const ROUNDS: usize = 9;
const TURNS: usize = 25;

pub(super) fn reports() -> Vec<Report> {
    // What the disk takes is no processor time.
    let scratch = Scratch::in_memory("bench-server");
    let mock = Child::mock();
    let proxy = Child::proxy(&mock, &scratch);
    let server = Child::server(&mock, &scratch);
    let text = kilobyte();
    let runtime = runtime();
    let ends = runtime.block_on(chain(&server, &text));
    let connections = runtime.block_on(async {
        (
            Connection::to(&server.at).await,
            Connection::to(&proxy.at).await,
        )
    });
    let (own, base) = (Mutex::new(connections.0), Mutex::new(connections.1));
    // In nanoseconds for each turn: what the server takes, and what sending as much takes.
    let mut spent: Vec<Vec<(f64, f64)>> = vec![Vec::new(); LENGTHS.len()];
    for round in 0..=ROUNDS {
        for (place, (length, end)) in LENGTHS.iter().zip(&ends).enumerate() {
            let request = create(&text, end.as_deref());
            let turns = measured(&server, || {
                runtime.block_on(async {
                    own.lock().await.whole(&request).await;
                });
            });
            let bytes = (2 * length - 1) * (text.len() + 34) + 40;
            let request = post("/bare", &format!("x-bytes: {bytes}\r\n"), "{}");
            let sent = measured(&proxy, || {
                runtime.block_on(async {
                    base.lock().await.whole(&request).await;
                });
            });
            // The first round warms both up.
            if round > 0 {
                spent[place].push((turns, sent));
            }
        }
    }
    let mut report = Report::new("processor time of a turn, 1 KB messages");
    let rest = |place: usize, round: usize| {
        let (own, sent) = spent[place][round];
        own - (sent - spent[0][round].1)
    };
    for (place, length) in LENGTHS.iter().enumerate() {
        let own = median(spent[place].iter().map(|(own, _)| *own).collect());
        let beyond = median((0..ROUNDS).map(|round| rest(place, round)).collect());
        let ratios = (0..ROUNDS).map(|round| rest(place, round) / rest(1, round));
        report.push(Row {
            name: format!("turn {length}, beyond the bytes sent on, against turn 10"),
            figure: format!("{:.0} µs ({:.0} in all)", beyond / 1e3, own / 1e3),
            ratio: Some(median(ratios.collect())),
            limit: (*length > 10).then_some(Limit::AtMost(1.3)),
        });
    }
    vec![report]
}

/// What one turn takes of a process, in nanoseconds.
fn measured(child: &Child, mut turn: impl FnMut()) -> f64 {
    let before = child.processor();
    (0..TURNS).for_each(|_| turn());
    (child.processor() - before) / TURNS as f64
}

/// A chain; the responses before its first, tenth, hundredth and thousandth turn.
async fn chain(server: &Child, text: &str) -> Vec<Option<String>> {
    let mut connection = Connection::to(&server.at).await;
    let (mut previous, mut ends) = (None, Vec::new());
    for turn in 1..=LENGTHS[3] {
        if LENGTHS.contains(&turn) {
            ends.push(previous.clone());
        }
        let request = create(text, previous.as_deref());
        previous = Some(connection.response(&request).await);
    }
    ends
}
