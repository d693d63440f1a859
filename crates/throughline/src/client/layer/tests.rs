use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use throughline_model::{Content, Event, Place, Response, Stop};
use tokio::time::Instant;

use super::{Breaker, BreakerPolicy, BreakerState, PersistEachCall, Retry, RetryPolicy};
use crate::client::fake::{FakeClient, hello, with_request};
use crate::client::{
    ChatClient, ChatRequest, ClientError, ClientEvent, ClientExt, ErrorKind, GiveUpReason,
    HistoryOwner, Observer, PersistMark, TimeoutPhase,
};

fn error(kind: ErrorKind) -> ClientError {
    ClientError::new(kind, "fake", "no")
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn seeded() -> Retry {
    Retry::new(RetryPolicy {
        seed: Some(7),
        ..RetryPolicy::default()
    })
}

async fn ask(client: &dyn ChatClient) -> Result<(), ErrorKind> {
    let outcome = with_request(async |request| client.respond(request).await).await;
    outcome.map(drop).map_err(|error| error.kind())
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_and_nothing_else() {
    let kinds = [
        (ErrorKind::Connect, 3),
        (ErrorKind::Timeout(TimeoutPhase::Idle), 3),
        (ErrorKind::Cut, 3),
        (ErrorKind::RateLimited, 3),
        (ErrorKind::Unavailable, 3),
        (ErrorKind::Open, 1),
        (ErrorKind::Quota, 1),
        (ErrorKind::Auth, 1),
        (ErrorKind::NotFound, 1),
        (ErrorKind::Invalid, 1),
        (ErrorKind::TooLong, 1),
        (ErrorKind::Filtered, 1),
        (ErrorKind::Malformed, 1),
        (ErrorKind::TooLarge, 1),
        (ErrorKind::Setup, 1),
    ];
    for (kind, expected) in kinds {
        let fake = Arc::new(FakeClient::new(move |_| Err(error(kind))));
        let client = Arc::clone(&fake).layer(seeded());
        assert_eq!(ask(&client).await, Err(kind));
        assert_eq!(fake.asked(), expected, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_services_word_on_retrying_wins() {
    let refused = Arc::new(FakeClient::new(|_| {
        Err(error(ErrorKind::Unavailable).with_should_retry(Some(false)))
    }));
    assert!(ask(&Arc::clone(&refused).layer(seeded())).await.is_err());
    assert_eq!(refused.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_service_asks_for_is_kept() {
    let fake = FakeClient::new(|asked| match asked {
        1 => Err(error(ErrorKind::RateLimited).with_retry_after(Some(secs(20)))),
        _ => Ok(hello()),
    });
    let start = Instant::now();
    assert_eq!(ask(&fake.layer(seeded())).await, Ok(()));
    let waited = start.elapsed();
    assert!(waited >= secs(20) && waited <= secs(21), "{waited:?}");

    let fake = Arc::new(FakeClient::new(|_| {
        Err(error(ErrorKind::RateLimited).with_retry_after(Some(secs(3600))))
    }));
    let start = Instant::now();
    let client = Arc::clone(&fake).layer(seeded());
    assert!(ask(&client).await.is_err());
    assert_eq!((fake.asked(), start.elapsed()), (1, secs(0)));
}

#[tokio::test(start_paused = true)]
async fn waits_grow_within_their_cap_and_follow_from_the_seed() {
    let mut all = Vec::new();
    for _ in 0..2 {
        let seen = Arc::new(Seen::default());
        let policy = RetryPolicy {
            attempts: 8,
            base: secs(1),
            cap: secs(4),
            seed: Some(1),
            ..RetryPolicy::default()
        };
        let retry = Retry::new(policy).observed_by(seen.clone());
        let client = FakeClient::new(|_| Err(error(ErrorKind::Cut))).layer(retry);
        assert!(ask(&client).await.is_err());
        all.push(seen.waits());
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0].len(), 7);
    for (place, wait) in all[0].iter().enumerate() {
        assert!(*wait <= secs(1 << place.min(2)), "{place}: {wait:?}");
    }
}

#[derive(Default)]
struct Seen(Mutex<Vec<(Duration, Option<GiveUpReason>)>>);

impl Seen {
    fn waits(&self) -> Vec<Duration> {
        let seen = self.0.lock().unwrap();
        let waits = seen.iter().filter(|(_, why)| why.is_none());
        waits.map(|(wait, _)| *wait).collect()
    }
}

impl Observer for Seen {
    fn observe(&self, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::Retry { wait, .. } => self.0.lock().unwrap().push((*wait, None)),
            ClientEvent::GaveUp { why, .. } => {
                self.0.lock().unwrap().push((secs(0), Some(*why)));
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn under_total_failure_few_more_requests_than_calls_are_sent() {
    const CALLS: u32 = 10_000;
    let fake = Arc::new(FakeClient::new(|_| Err(error(ErrorKind::Unavailable))));
    let client = Arc::clone(&fake).layer(seeded());
    with_request(async |request| {
        for place in 0..CALLS {
            if place % 2 == 0 {
                assert!(client.respond(request).await.is_err());
            } else {
                assert!(client.stream(request).await.is_err());
            }
        }
    })
    .await;
    let ratio = f64::from(fake.asked()) / f64::from(CALLS);
    assert!((1.0..=1.2).contains(&ratio), "{ratio}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_tried_again_until_its_first_content_and_never_after() {
    let at = Place::new(0, 0, 0);
    let started = Event::Started {
        id: Some("r1".into()),
        model: None,
    };
    let opened = Event::Opened {
        at,
        content: Content::text(""),
    };
    for (before, asked) in [
        (vec![started.clone()], 2),
        (vec![started.clone(), opened], 1),
    ] {
        let fake = Arc::new(FakeClient::new(|asked| match asked {
            1 => Err(error(ErrorKind::Cut)),
            _ => Ok(hello()),
        }));
        *fake.before_failing.lock().unwrap() = Some(before);
        let client = Arc::clone(&fake).layer(seeded());
        let events = with_request(async |request| client.stream(request).await).await;
        let events: Vec<_> = events.unwrap().collect().await;
        assert_eq!(fake.asked(), asked);
        let first = events[0].as_ref().unwrap();
        // Events of an abandoned attempt are not returned.
        assert_eq!(*first == started, asked == 1);
        assert_eq!(events.last().unwrap().is_err(), asked == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_and_fails_at_once() {
    let fake = Arc::new(FakeClient::new(|_| Err(error(ErrorKind::Unavailable))));
    let breaker = Breaker::default();
    let client = Arc::clone(&fake).layer(breaker.clone());
    for _ in 0..5 {
        assert_eq!(ask(&client).await, Err(ErrorKind::Unavailable));
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    let refused = with_request(async |request| client.respond(request).await).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Open);
    assert_eq!(refused.retry_after(), Some(secs(1)));
    assert_eq!(fake.asked(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_probes_seldom_and_heals_within_ten_seconds() {
    let down_until = Instant::now() + secs(60);
    let fake = Arc::new(FakeClient::new(move |_| {
        if Instant::now() < down_until {
            Err(error(ErrorKind::Connect))
        } else {
            Ok(hello())
        }
    }));
    let breaker = Breaker::default();
    let client = Arc::clone(&fake).layer(breaker.clone());
    while Instant::now() < down_until {
        assert!(ask(&client).await.is_err());
        tokio::time::advance(Duration::from_millis(20)).await;
    }
    // 3,000 calls in a minute: five to open it, then probes after 1, 2, 4, 5, 5, … seconds.
    assert!(fake.asked() <= 5 + 3 + 12, "{}", fake.asked());
    while ask(&client).await.is_err() {
        tokio::time::advance(Duration::from_millis(20)).await;
    }
    let healed = Instant::now() - down_until;
    assert!(healed <= secs(10), "{healed:?}");
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time_and_one_that_vanishes_does_not_matter() {
    let fake = Arc::new(FakeClient::new(|asked| match asked {
        1..=5 => Err(error(ErrorKind::Cut)),
        _ => Ok(hello()),
    }));
    let breaker = Breaker::default();
    let client = Arc::clone(&fake).layer(breaker.clone());
    for _ in 0..5 {
        assert!(ask(&client).await.is_err());
    }
    tokio::time::advance(secs(1)).await;
    let probe = with_request(async |request| client.stream(request).await).await;
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert_eq!(ask(&client).await, Err(ErrorKind::Open));
    // The answer was dropped unread: it shows nothing, and the next call is a probe.
    drop(probe.unwrap());
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    let probe = with_request(async |request| client.stream(request).await).await;
    let mut probe = probe.unwrap();
    assert!(probe.next().await.unwrap().is_ok());
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn one_bad_model_closes_no_other_and_an_unreachable_service_closes_all() {
    for (kind, other) in [
        (ErrorKind::Unavailable, Ok(())),
        (ErrorKind::Connect, Err(ErrorKind::Open)),
    ] {
        let fake = FakeClient::new(move |asked| match asked {
            1..=5 => Err(error(kind)),
            _ => Ok(hello()),
        });
        let breaker = Breaker::default();
        let client = fake.layer(breaker.clone());
        let ask = async |model: &str| {
            let asked = with_request(async |request| {
                let request = ChatRequest {
                    model: Some(model),
                    ..*request
                };
                client.respond(&request).await
            });
            asked.await.map(drop).map_err(|error| error.kind())
        };
        for _ in 0..5 {
            assert_eq!(ask("bad").await, Err(kind));
        }
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(ask("bad").await, Err(ErrorKind::Open));
        assert_eq!(ask("good").await, other, "{kind:?}");
        tokio::time::advance(secs(1)).await;
        assert_eq!(ask("bad").await, Ok(()));
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_and_rate_limits_do_not_open_a_breaker() {
    for kind in [
        ErrorKind::RateLimited,
        ErrorKind::Auth,
        ErrorKind::Invalid,
        ErrorKind::TooLong,
    ] {
        let breaker = Breaker::default();
        let client = FakeClient::new(move |_| Err(error(kind))).layer(breaker.clone());
        for _ in 0..50 {
            assert_eq!(ask(&client).await, Err(kind));
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn half_of_many_calls_failing_opens_a_breaker() {
    let breaker = Breaker::new(BreakerPolicy::default());
    let fake = FakeClient::new(|asked| match asked % 2 {
        0 => Err(error(ErrorKind::Unavailable)),
        _ => Ok(hello()),
    });
    let client = fake.layer(breaker.clone());
    for _ in 0..20 {
        assert_eq!(breaker.state(), BreakerState::Closed);
        let _ = ask(&client).await;
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn together_they_stop_asking_and_come_back() {
    let fake = Arc::new(FakeClient::new(|asked| match asked {
        1..=5 => Err(error(ErrorKind::Unavailable)),
        _ => Ok(hello()),
    }));
    let client = Arc::clone(&fake).layer(Breaker::default()).layer(seeded());
    assert_eq!(ask(&client).await, Err(ErrorKind::Unavailable));
    assert_eq!(ask(&client).await, Err(ErrorKind::Open));
    assert_eq!(fake.asked(), 5);
    tokio::time::advance(secs(1)).await;
    assert_eq!(ask(&client).await, Ok(()));
}

/// The layers in several orders around a client.
fn stacks(fake: &Arc<FakeClient>) -> Vec<Arc<dyn ChatClient>> {
    let (retry, breaker) = (seeded, Breaker::default);
    let fake = || Arc::clone(fake);
    vec![
        fake().layer(PersistEachCall),
        fake()
            .layer(PersistEachCall)
            .layer(breaker())
            .layer(retry()),
        fake()
            .layer(breaker())
            .layer(retry())
            .layer(PersistEachCall),
        fake()
            .layer(breaker())
            .layer(PersistEachCall)
            .layer(retry()),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_call_is_marked_when_its_answer_is_whole_wherever_the_layer_stands() {
    let fake = Arc::new(FakeClient::new(|_| Ok(hello())));
    for client in stacks(&fake) {
        assert!(client.abilities().persists_each_call);
        with_request(async |request| {
            let mark = PersistMark::default();
            let request = ChatRequest {
                history_owner: HistoryOwner::Service { id: Some("conv_1") },
                persist: Some(&mark),
                ..*request
            };
            client.respond(&request).await.unwrap();
            assert!(mark.is_set());
            assert_eq!(fake.continued.lock().unwrap().take().unwrap(), "conv_1");

            let mark = PersistMark::default();
            let request = ChatRequest {
                persist: Some(&mark),
                ..request
            };
            let mut events = client.stream(&request).await.unwrap();
            while let Some(event) = events.next().await {
                let is_end = matches!(event.unwrap(), Event::Finished { .. });
                // Some layers read ahead, but the end is never returned before the mark is set.
                assert!(mark.is_set() || !is_end);
            }
            assert!(mark.is_set());
            assert_eq!(fake.continued.lock().unwrap().take().unwrap(), "conv_1");
        })
        .await;
    }
    let plain = Arc::clone(&fake).layer(Breaker::default()).layer(seeded());
    assert!(!plain.abilities().persists_each_call);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_not_answered_whole_is_not_marked() {
    let started = Event::Started {
        id: None,
        model: None,
    };
    let broken = Arc::new(FakeClient::new(|_| Err(error(ErrorKind::Cut))));
    *broken.before_failing.lock().unwrap() = Some(vec![started]);
    let failed = Arc::new(FakeClient::new(|_| {
        Ok(Response {
            stop: Stop::Failed,
            ..hello()
        })
    }));
    for fake in [broken, failed] {
        for client in stacks(&fake) {
            with_request(async |request| {
                let mark = PersistMark::default();
                let request = ChatRequest {
                    persist: Some(&mark),
                    ..*request
                };
                let _ = client.respond(&request).await;
                if let Ok(events) = client.stream(&request).await {
                    let _: Vec<_> = events.collect().await;
                }
                assert!(!mark.is_set());
            })
            .await;
        }
    }
}
