//! The matrix of every fault, every client, whole and streamed answers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use throughline::ChatClient;
use throughline::client::{BreakerPolicy, ClientError, ClientEvent, Observer, RetryPolicy, View};
use throughline::model::{Message, Response, Stop, Wire};
use throughline_testkit::scripted::Reading;
use throughline_testkit::upstream::{Expected, Extent, Fault, KEY, Reply, Upstream};
use tokio::sync::Notify;

use crate::upstreams::common::{Ask, READINGS, WIRES, all_words, ask, client_of, impatient, run};
use crate::upstreams::log_capture;

const TEXT: &str = "La pleine mer est à 04:12 à l'Hôtel de Ville, et le prochain bac à 05:30. ⚓";

fn reply() -> Reply {
    Reply::text(TEXT).with_usage(120, 31)
}

/// The difference between the result of a call and the expected one, if any.
fn wrong(fault: Fault, expected: Expected, came: &Result<Response, ClientError>) -> Option<String> {
    match (expected, came) {
        (Expected::Success | Expected::RetriedThenSuccess, Ok(response)) => {
            let text: String = response.messages.iter().map(Message::text).collect();
            if text != TEXT {
                return Some(format!("the text is {text:?}"));
            }
            let stop = match fault {
                Fault::BrokenCall => Stop::Length,
                _ => Stop::Done,
            };
            if response.stop != stop {
                return Some(format!("it stopped because of {:?}", response.stop));
            }
            let figures = response.usage.as_ref().and_then(|usage| usage.output);
            let reported = match fault {
                Fault::NoUsage => None,
                _ => Some(31),
            };
            (figures != reported).then(|| format!("the figures are {figures:?}"))
        }
        (Expected::Error(kinds), Err(error)) => {
            let words = all_words(error);
            if words.contains(KEY) {
                return Some(format!("the key is in {words}"));
            }
            (!kinds.contains(&error.kind())).then(|| format!("{error:?}"))
        }
        (_, Ok(response)) => Some(format!("there is an answer: {:?}", response.messages)),
        (_, Err(error)) => Some(format!("{error:?}")),
    }
}

#[derive(Clone)]
struct Cell {
    wire: Wire,
    reading: Reading,
    fault: Fault,
}

fn cells(wire: &Wire) -> Vec<Cell> {
    let mut cells = Vec::new();
    for reading in READINGS {
        for fault in Fault::ALL {
            let wire = wire.clone();
            cells.push(Cell {
                wire,
                reading,
                fault,
            });
        }
    }
    cells
}

/// One attempt under a permanent fault.
async fn once(cell: &Cell) -> Option<String> {
    let upstream = Upstream::of(cell.wire.clone())
        .script([reply()])
        .fault(cell.fault, Extent::Always)
        .start()
        .await;
    let mut builder = client_of(&upstream);
    if matches!(cell.fault, Fault::Silent | Fault::Stalls) {
        builder = builder.timeouts(impatient());
    }
    let client: Arc<dyn ChatClient> = Arc::new(builder.build_bare().unwrap());
    let view = View::new(vec![Message::user("Quand est la pleine mer ?")]);
    let came = ask(&client, &Ask::plain().about(&view), cell.reading).await;
    let requests = upstream.requests();
    if let Some(odd) = requests.iter().find(|request| !request.is_accepted()) {
        return Some(format!("the request was not accepted: {odd:?}"));
    }
    if requests.len() != usize::from(cell.fault != Fault::Refused) {
        return Some(format!("there were {} requests", requests.len()));
    }
    wrong(
        cell.fault,
        cell.fault.expected(&cell.wire, cell.reading),
        &came,
    )
}

/// Signals that an attempt has failed.
struct Failed(Arc<Notify>);

impl Observer for Failed {
    fn observe(&self, event: &ClientEvent<'_>) {
        if let ClientEvent::Retry { .. } = event {
            self.0.notify_one();
        }
    }
}

/// A call by a client with retries, under a fault that ends after one request.
async fn retried(cell: &Cell) -> Option<String> {
    let upstream = Upstream::of(cell.wire.clone())
        .script([reply()])
        .fault(cell.fault, Extent::Times(1))
        .start()
        .await;
    let failed = Arc::new(Notify::new());
    let policy = RetryPolicy {
        attempts: 1000,
        base: Duration::from_millis(2),
        cap: Duration::from_millis(20),
        reserve: 1000,
        ..RetryPolicy::default()
    };
    let mut builder = client_of(&upstream)
        .retry(policy)
        .breaker(BreakerPolicy::never())
        .observer(Arc::new(Failed(Arc::clone(&failed))));
    if matches!(cell.fault, Fault::Silent | Fault::Stalls) {
        builder = builder.timeouts(impatient());
    }
    let client = builder.build().unwrap();
    let view = View::new(vec![Message::user("Quand est la pleine mer ?")]);
    let with = Ask::plain();
    let request = with.about(&view);
    let call = ask(&client, &request, cell.reading);
    let came = if cell.fault == Fault::Refused {
        let healing = async {
            failed.notified().await;
            upstream.heal().await;
        };
        let (came, ()) = tokio::join!(call, healing);
        came
    } else {
        call.await
    };
    let expected = cell.fault.expected_with_retries(&cell.wire, cell.reading);
    let asked = upstream.counts().requests;
    let most = match (expected, cell.fault) {
        (_, Fault::Refused) | (Expected::Success | Expected::Error(_), _) => 1,
        (Expected::RetriedThenSuccess, _) => 2,
    };
    if asked != most {
        return Some(format!("there were {asked} requests: {came:?}"));
    }
    wrong(cell.fault, expected, &came)
}

/// Every cell of a client; prints a line and returns the differences.
async fn matrix(wire: &Wire, retrying: bool) -> Vec<String> {
    let ran = stream::iter(cells(wire))
        .map(|cell| async move {
            // A panic is a failed cell, not the end of the matrix.
            let its = cell.clone();
            let task = tokio::spawn(async move {
                match retrying {
                    false => once(&its).await,
                    true => retried(&its).await,
                }
            });
            let problem = match task.await {
                Ok(problem) => problem,
                Err(panic) => Some(format!("panicked: {panic}")),
            };
            (cell, problem)
        })
        .buffer_unordered(8)
        .collect::<Vec<_>>()
        .await;
    let count = |reading: Reading, wanted: fn(Expected) -> bool| {
        let faults = Fault::ALL.into_iter();
        let outcomes = faults.map(|fault| match retrying {
            false => fault.expected(wire, reading),
            true => fault.expected_with_retries(wire, reading),
        });
        outcomes.filter(|outcome| wanted(*outcome)).count()
    };
    for reading in READINGS {
        println!(
            "table faults client={wire} reading={reading:?} retries={} faults={} answers={} errors={} retried={} wrong={}",
            if retrying { "on" } else { "off" },
            Fault::ALL.len(),
            count(reading, |outcome| outcome == Expected::Success),
            count(reading, |outcome| matches!(outcome, Expected::Error(_))),
            count(reading, |outcome| outcome == Expected::RetriedThenSuccess),
            ran.iter()
                .filter(|(cell, problem)| cell.reading == reading && problem.is_some())
                .count(),
        );
    }
    assert_eq!(ran.len(), 2 * Fault::ALL.len());
    let mut wrong: Vec<String> = ran
        .into_iter()
        .filter_map(|(cell, problem)| {
            let Cell {
                wire,
                reading,
                fault,
            } = cell;
            Some(format!("{wire} {reading:?} {fault}: {}", problem?))
        })
        .collect();
    wrong.sort();
    wrong
}

fn all(retrying: bool) {
    log_capture::begin();
    let wrong: Vec<String> = run(async {
        let mut wrong = Vec::new();
        for wire in WIRES {
            wrong.extend(matrix(&wire, retrying).await);
        }
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!log_capture::logged().contains(KEY));
}

#[test]
fn r13_every_fault_has_its_outcome_with_every_client() {
    all(false);
}

#[test]
fn r13_what_is_worth_trying_again_is_tried_again_once_and_the_rest_is_not() {
    all(true);
}
