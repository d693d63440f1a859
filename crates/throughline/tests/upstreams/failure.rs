//! A service that fails for a long time: few requests, a breaker that opens, and recovery.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use throughline::ChatClient;
use throughline::client::{Breaker, BreakerPolicy, BreakerState, ErrorKind, RetryPolicy, View};
use throughline::model::{Message, Wire};
use throughline_testkit::scripted::Reading;
use throughline_testkit::upstream::{Extent, Fault, Reply, Script, Upstream};

use crate::upstreams::common::{Ask, ask, client_of, impatient, run};

/// The number of callers.
const CALLERS: usize = 8;

/// The faults, in turn.
const FAULTS: [Fault; 7] = [
    Fault::ServerError,
    Fault::Reset,
    Fault::Overloaded,
    Fault::Silent,
    Fault::BadGateway,
    Fault::CutBetweenEvents,
    Fault::Refused,
];

/// The duration of this test relative to the guarantee: a twentieth, or all of it in a campaign.
fn part() -> u32 {
    let scale = std::env::var("THROUGHLINE_SCALE").ok();
    let scale = scale.and_then(|text| text.trim().parse::<f64>().ok());
    if scale.unwrap_or(1.0) >= 20.0 { 1 } else { 20 }
}

async fn server() -> Upstream {
    let script = Script::respond_with(|_| Reply::text("High water at 04:12."));
    Upstream::start(Wire::Anthropic, script).await
}

/// Calls in a loop until the time is over; returns the number of calls.
async fn callers(client: &Arc<dyn ChatClient>, until: Instant) -> usize {
    let calls = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (client, calls) = (Arc::clone(client), Arc::clone(&calls));
        let reading = match caller % 2 {
            0 => Reading::Whole,
            _ => Reading::Streamed,
        };
        tasks.spawn(async move {
            let view = View::new(vec![Message::user("When is high water?")]);
            let with = Ask::plain();
            while Instant::now() < until {
                calls.fetch_add(1, Ordering::Relaxed);
                let came = ask(&client, &with.about(&view), reading).await;
                let error = came.expect_err("nothing half-received is an answer");
                assert!(error.kind().is_transient(), "{error:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no caller panics");
    }
    calls.load(Ordering::Relaxed)
}

/// Changes the fault until the time is over.
async fn trouble(upstream: &Upstream, until: Instant, each: Duration) {
    for fault in FAULTS.into_iter().cycle() {
        if Instant::now() >= until {
            return;
        }
        upstream.inflict(fault, Extent::Always).await;
        tokio::time::sleep(each.min(until.saturating_duration_since(Instant::now()))).await;
    }
}

#[test]
fn r13_total_failure_gets_few_requests_and_heals() {
    run(async {
        let part = part();
        let whole = Duration::from_secs(60) / part;
        let usual = BreakerPolicy::default();
        let breaker = Breaker::new(BreakerPolicy {
            window: usual.window / part,
            rest: usual.rest / part,
            longest_rest: usual.longest_rest / part,
            ..usual
        });
        let upstream = server().await;
        upstream.inflict(FAULTS[0], Extent::Always).await;
        let client = client_of(&upstream)
            .timeouts(impatient())
            .retry(RetryPolicy {
                base: RetryPolicy::default().base / part,
                ..RetryPolicy::default()
            })
            .shared_breaker(breaker.clone())
            .build()
            .unwrap();
        let until = Instant::now() + whole;
        let (calls, ()) = tokio::join!(
            callers(&client, until),
            trouble(&upstream, until, whole / 12)
        );
        let sent = upstream.counts().requests;
        assert_ne!(breaker.state(), BreakerState::Closed, "the breaker opens");
        upstream.heal().await;
        let healed = Instant::now();
        let view = View::new(vec![Message::user("When is high water?")]);
        let with = Ask::plain();
        let request = with.about(&view);
        loop {
            match ask(&client, &request, Reading::Streamed).await {
                Ok(answer) => {
                    assert_eq!(answer.messages[0].text(), "High water at 04:12.");
                    break;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Open, "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let took = healed.elapsed();
        assert_eq!(breaker.state(), BreakerState::Closed, "the breaker heals");
        let ratio = sent as f64 / calls as f64;
        println!(
            "table failure breaker=on seconds={:.1} calls={calls} sent={sent} sent/accepted={ratio:.3} healed_ms={}",
            whole.as_secs_f64(),
            took.as_millis()
        );
        assert!(ratio <= 1.2, "{sent} requests for {calls} calls");
        assert!(took <= Duration::from_secs(10), "healed after {took:?}");
    });
}

#[test]
fn r13_without_a_breaker_the_budget_alone_bounds_retries() {
    run(async {
        let upstream = server().await;
        upstream.inflict(Fault::ServerError, Extent::Always).await;
        let client = client_of(&upstream)
            .retry(RetryPolicy {
                base: Duration::from_millis(1),
                ..RetryPolicy::default()
            })
            .breaker(BreakerPolicy::never())
            .build()
            .unwrap();
        let view = View::new(vec![Message::user("When is high water?")]);
        let with = Ask::plain();
        let calls = 200;
        for call in 0..calls {
            let reading = match call % 2 {
                0 => Reading::Whole,
                _ => Reading::Streamed,
            };
            let came = ask(&client, &with.about(&view), reading).await;
            assert_eq!(came.unwrap_err().kind(), ErrorKind::Unavailable);
        }
        let sent = upstream.counts().requests;
        let ratio = sent as f64 / f64::from(calls);
        println!("table failure breaker=off calls={calls} sent={sent} sent/accepted={ratio:.3}");
        assert!(ratio <= 1.2, "{sent} requests for {calls} calls");
    });
}
