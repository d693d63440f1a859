//! The values of metrics.

use std::sync::Arc;
use std::time::Duration;

use throughline::Agent;
use throughline::client::{Breaker, BreakerPolicy, ClientExt, ErrorKind, Retry, RetryPolicy};
use throughline::telemetry::{Instrument, Metrics, MetricsSnapshot};
use throughline::tool::ToolOutput;
use throughline_testkit::scripted::{ScriptedClient, Step};
use tokio::time::sleep;

use crate::telemetry::support::{Fake, How, alone, both};

/// The counts of an instrument by one of its labels.
fn by(snapshot: &MetricsSnapshot, instrument: Instrument, label: &str) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for point in snapshot.points(instrument, &[]) {
        let value = point.labels.iter().find(|(name, _)| *name == label);
        let value = value.map(|(_, value)| value.clone()).unwrap_or_default();
        let labels = match value.is_empty() {
            true => vec![],
            false => vec![(label, &*value)],
        };
        let count = snapshot.count(instrument, &labels);
        if !counts.iter().any(|(known, _)| *known == value) {
            counts.push((value, count));
        }
    }
    counts
}

fn seconds(snapshot: &MetricsSnapshot, instrument: Instrument) -> String {
    format!("{:.3}", snapshot.sum(instrument, &[]))
}

fn counted(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[test]
fn a_scripted_run_is_counted_to_the_last_token() {
    both(async |how, _| {
        let metrics = Metrics::new();
        let slow = Fake::doing("slow", |_, _| async {
            sleep(Duration::from_millis(250)).await;
            Ok(ToolOutput::text("done"))
        });
        let steps = [
            Step::calls([("c1", "slow", "{}"), ("c2", "pier", "{}")])
                .with_usage(100, 20)
                .after(Duration::from_millis(500)),
            Step::text("At four.")
                .with_usage(200, 30)
                .after(Duration::from_millis(750)),
            Step::fails(ErrorKind::Quota),
        ];
        let agent = how
            .builder(ScriptedClient::new(steps))
            .name("harbour")
            .tool(slow)
            .tool(Fake::failing("pier", "closed"))
            .metrics(metrics.clone())
            .build()
            .unwrap();
        how.finish(agent.run("when?")).await.unwrap();
        how.finish(agent.run("and then?")).await.unwrap_err();

        let snapshot = metrics.snapshot();
        let tokens = |kind| {
            let labels = [
                ("gen_ai.request.model", "scripted-1"),
                ("gen_ai.response.model", "scripted-1"),
                ("gen_ai.provider.name", "scripted"),
                ("gen_ai.operation.name", "chat"),
                ("gen_ai.token.type", kind),
            ];
            (
                snapshot.count(Instrument::TokenUsage, &labels),
                snapshot.sum(Instrument::TokenUsage, &labels) as u64,
            )
        };
        assert_eq!((tokens("input"), tokens("output")), ((2, 300), (2, 50)));
        assert_eq!(snapshot.count(Instrument::TokenDetails, &[]), 0);

        let calls = by(&snapshot, Instrument::OperationDuration, "error.type");
        let whole = snapshot.points(Instrument::OperationDuration, &[]);
        assert_eq!(whole.count(), 2, "answered, and failed: {calls:?}");
        assert_eq!(snapshot.count(Instrument::OperationDuration, &[]), 3);
        assert_eq!(seconds(&snapshot, Instrument::OperationDuration), "1.250");
        let first = match how {
            How::Whole => (0, "0.000"),
            How::Streamed => (2, "1.250"),
        };
        assert_eq!(snapshot.count(Instrument::TimeToFirstChunk, &[]), first.0);
        assert_eq!(seconds(&snapshot, Instrument::TimeToFirstChunk), first.1);

        assert_eq!(
            by(&snapshot, Instrument::Runs, "throughline.stop_reason"),
            counted(&[("done", 1), ("failed", 1)])
        );
        assert_eq!(seconds(&snapshot, Instrument::RunDuration), "1.500");
        let quota = [("error.type", "quota"), ("gen_ai.agent.name", "harbour")];
        assert_eq!(snapshot.count(Instrument::RunDuration, &quota), 1);
        assert_eq!(
            by(&snapshot, Instrument::ModelErrors, "error.type"),
            counted(&[("quota", 1)])
        );
        assert_eq!(
            by(&snapshot, Instrument::ToolCalls, "throughline.outcome"),
            counted(&[("error", 1), ("ok", 1)])
        );
        assert_eq!(
            by(&snapshot, Instrument::ToolCalls, "gen_ai.tool.name"),
            counted(&[("pier", 1), ("slow", 1)])
        );
        assert_eq!(seconds(&snapshot, Instrument::ToolDuration), "0.250");
    });
}

#[test]
fn a_call_that_is_cut_off_is_no_model_error() {
    both(async |how, _| {
        let metrics = Metrics::new();
        let agent = Agent::builder(ScriptedClient::new([Step::hang_after("Hal")]))
            .limits(throughline::agent::Limits {
                time: Some(Duration::from_secs(2)),
                ..throughline::agent::Limits::default()
            })
            .metrics(metrics.clone())
            .build()
            .unwrap();
        how.finish(agent.run("hello")).await.unwrap();
        let snapshot = metrics.snapshot();
        let cut = [("error.type", "budget")];
        assert_eq!(snapshot.count(Instrument::OperationDuration, &cut), 1);
        assert_eq!(snapshot.count(Instrument::ModelErrors, &[]), 0);
    });
}

/// An agent whose client has retries and a breaker that report to the same metrics.
fn layered(client: ScriptedClient, metrics: &Metrics) -> Agent {
    let watch = Arc::new(metrics.clone());
    let breaker = BreakerPolicy {
        in_a_row: 2,
        ..BreakerPolicy::default()
    };
    let retry = RetryPolicy {
        attempts: 2,
        seed: Some(7),
        ..RetryPolicy::default()
    };
    let client = client
        .layer(Breaker::observed_by(breaker, watch.clone()))
        .layer(Retry::new(retry).observed_by(watch));
    Agent::builder(client)
        .metrics(metrics.clone())
        .build()
        .expect("an agent")
}

#[test]
fn retries_and_breakers_are_counted_through_the_layers() {
    alone(async || {
        let metrics = Metrics::new();
        let upstream = [("throughline.upstream", "scripted")];
        let state = || {
            metrics
                .snapshot()
                .count(Instrument::BreakerState, &upstream)
        };
        let down = || Step::fails(ErrorKind::Unavailable);
        let client = ScriptedClient::new([down(), down(), Step::text("back")]);
        let agent = layered(client, &metrics);

        // Two attempts fail, which opens the breaker; the next call fails at once.
        agent.run("one").await.unwrap_err();
        assert_eq!(state(), 2);
        agent.run("two").await.unwrap_err();
        // After a pause a probe succeeds and closes the breaker.
        sleep(Duration::from_secs(2)).await;
        agent.run("three").await.unwrap();
        assert_eq!(state(), 0);

        let snapshot = metrics.snapshot();
        let count = |instrument| snapshot.count(instrument, &upstream);
        assert_eq!(count(Instrument::Attempts), 4);
        assert_eq!(
            by(&snapshot, Instrument::Retries, "error.type"),
            counted(&[("unavailable", 1)])
        );
        let used_up = [
            ("error.type", "unavailable"),
            ("throughline.why", "attempts"),
        ];
        let open = [("error.type", "open"), ("throughline.why", "final")];
        assert_eq!(count(Instrument::GaveUp), 2);
        assert_eq!(snapshot.count(Instrument::GaveUp, &used_up), 1);
        assert_eq!(snapshot.count(Instrument::GaveUp, &open), 1);
        assert_eq!(
            by(&snapshot, Instrument::ModelErrors, "error.type"),
            counted(&[("open", 1), ("unavailable", 1)])
        );
    });
}

#[test]
fn without_metrics_and_subscriber_runs_are_as_ever() {
    alone(async || {
        let agent = Agent::builder(ScriptedClient::new([
            Step::calls([("c1", "tide", "{}")]),
            Step::text("at four"),
        ]));
        let agent = agent.tool(Fake::saying("tide", "4")).build().unwrap();
        assert_eq!(agent.run("when?").await.unwrap().text(), "at four");
    });
}
