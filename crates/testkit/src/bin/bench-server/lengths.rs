//! What a long chain costs: the bytes that are sent on, and nothing else.

use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};

use super::child::Child;
use super::load::{Connection, post};
use super::turns::create;
use super::{kilobyte, median, runtime};

const LENGTHS: [usize; 4] = [1, 10, 100, 1_000];
/// Rounds of which the median is taken, branches of one round, and turns on each: so few that a
/// chain stays as long as it was.
const ROUNDS: usize = 9;
const BRANCHES: usize = 4;
const TURNS: usize = 8;

/// What turns of a length took in one round, in nanoseconds for each.
#[derive(Clone, Copy, Default)]
struct Spent {
    /// The turn with which a branch begins: its history is read and rendered.
    branched: f64,
    /// A turn that goes on from the one before.
    went_on: f64,
    /// What it takes the proxy, with one read and two commits, to send as many bytes. Without them it
    /// would have nothing left to do with caches that the bytes have emptied.
    sent: f64,
}

/// A kind of turn: its name, what it took, and whether it is held to a limit.
type Kind = (&'static str, fn(&Spent) -> f64, bool);

pub(super) fn reports() -> Vec<Report> {
    // What the disk takes is no processor time.
    let scratch = Scratch::in_memory("bench-server");
    let mock = Child::mock();
    let proxy = Child::proxy(&mock, &scratch);
    let server = Child::server(&mock, &scratch);
    let text = kilobyte();
    let mut spent: Vec<Vec<Spent>> = vec![Vec::new(); LENGTHS.len()];
    runtime().block_on(async {
        let ends = chain(&server, &text).await;
        let mut own = Connection::to(&server.at).await;
        let mut base = Connection::to(&proxy.at).await;
        for round in 0..=ROUNDS {
            for (place, (length, end)) in LENGTHS.iter().zip(&ends).enumerate() {
                let mut taken = turns(&server, &mut own, &text, end.as_deref()).await;
                // Two messages for each turn before, the newest, and what is around them.
                let bytes = (2 * length - 1) * (text.len() + 34) + 40;
                taken.sent = sent(&proxy, &mut base, bytes).await;
                // The first round warms both up.
                if round > 0 {
                    spent[place].push(taken);
                }
            }
        }
    });
    let kinds: [Kind; 2] = [
        ("goes on", |spent| spent.went_on, true),
        ("begins a branch", |spent| spent.branched, false),
    ];
    let mut report = Report::new("processor time of a turn, 1 KB messages");
    for (name, taken, is_held) in kinds {
        // Beyond the bytes that are sent on.
        let rest = |place: usize, round: usize| {
            let one = &spent[place][round];
            taken(one) - (one.sent - spent[0][round].sent)
        };
        for (place, length) in LENGTHS.iter().enumerate() {
            let all = median(spent[place].iter().map(taken).collect());
            let beyond = median((0..ROUNDS).map(|round| rest(place, round)).collect());
            let ratios = (0..ROUNDS).map(|round| rest(place, round) / rest(1, round));
            let limited = is_held && *length > 10;
            report.push(Row {
                name: format!("turn {length} {name}, beyond the bytes sent on, against turn 10"),
                figure: format!("{:.0} µs ({:.0} in all)", beyond / 1e3, all / 1e3),
                ratio: Some(median(ratios.collect())),
                limit: limited.then_some(Limit::AtMost(1.3)),
            });
        }
    }
    vec![report]
}

/// Some turns of a length, on branches.
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

/// What a turn that sends so many bytes takes the proxy.
async fn sent(proxy: &Child, connection: &mut Connection, bytes: usize) -> f64 {
    let request = post("/turn", &format!("x-bytes: {bytes}\r\n"), "{}");
    let times = BRANCHES * TURNS;
    let before = proxy.processor();
    for _ in 0..times {
        connection.whole(&request).await;
    }
    (proxy.processor() - before) / times as f64
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
