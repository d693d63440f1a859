use super::family::{MOST, OTHER};
use super::{HistogramValue, Instrument, Metric, Metrics, PointValue};
use crate::client::{ClientEvent, ErrorKind, Observer};
use std::time::Duration;

fn retry(metrics: &Metrics, upstream: &str) {
    metrics.observe(&ClientEvent::Retry {
        upstream,
        attempt: 1,
        wait: Duration::ZERO,
        kind: ErrorKind::Cut,
    });
}

#[test]
fn the_places_of_instruments_are_those_of_the_list() {
    for (at, instrument) in Instrument::ALL.iter().enumerate() {
        assert_eq!(instrument.index(), at);
    }
}

#[test]
fn what_comes_after_the_bound_is_counted_as_other() {
    let metrics = Metrics::new();
    for number in 0..MOST + 50 {
        retry(&metrics, &format!("upstream-{number}"));
    }
    retry(&metrics, "upstream-0");
    let snapshot = metrics.snapshot();
    let [Metric { points, .. }] = &snapshot.metrics[..] else {
        panic!("one metric: {snapshot:?}");
    };
    assert_eq!(points.len(), MOST + 1);
    let retries = |upstream| {
        let labels = [("throughline.upstream", upstream), ("error.type", "cut")];
        snapshot.count(Instrument::Retries, &labels)
    };
    assert_eq!((retries("upstream-0"), retries(OTHER)), (2, 50));
}

#[test]
fn a_long_label_value_is_cut_and_stays_one_value() {
    let metrics = Metrics::new();
    let long = "ü".repeat(1000);
    retry(&metrics, &long);
    retry(&metrics, &long);
    let cut = "ü".repeat(64);
    let labels = [("throughline.upstream", &*cut)];
    assert_eq!(metrics.snapshot().count(Instrument::Retries, &labels), 2);
}

#[test]
fn a_bound_belongs_to_the_bucket_below_it() {
    let metrics = Metrics::new();
    for seconds in [0.1, 0.15, 0.4, 1000.0] {
        let time = Duration::from_secs_f64(seconds);
        metrics.run("harbour", "done", None, time);
    }
    let snapshot = metrics.snapshot();
    let point = snapshot.points(Instrument::RunDuration, &[]).next();
    let Some(PointValue::Histogram(HistogramValue { counts, sum, .. })) =
        point.map(|point| &point.value)
    else {
        panic!("a histogram: {snapshot:?}");
    };
    assert_eq!(counts, &[1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert!((sum - 1000.65).abs() < 1e-9);
}

#[test]
fn many_threads_lose_no_count() {
    let metrics = Metrics::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..1000 {
                    retry(&metrics, if number % 2 == 0 { "a" } else { "b" });
                    let time = Duration::from_secs(1);
                    metrics.run("harbour", "done", None, time);
                }
            });
        }
    });
    let snapshot = metrics.snapshot();
    assert_eq!(snapshot.count(Instrument::Retries, &[]), 4000);
    assert_eq!(snapshot.count(Instrument::RunDuration, &[]), 4000);
    assert!((snapshot.sum(Instrument::RunDuration, &[]) - 4000.0).abs() < 1e-9);
}

#[test]
#[cfg(feature = "prometheus")]
fn prometheus_reads_names_labels_and_buckets() {
    let metrics = Metrics::new();
    retry(&metrics, "a\"b\\c\nd");
    metrics.run("harbour", "done", None, Duration::from_millis(300));
    assert_eq!(
        metrics.to_prometheus(),
        r#"# HELP gen_ai_invoke_agent_duration_seconds The duration of a single agent invocation.
# TYPE gen_ai_invoke_agent_duration_seconds histogram
gen_ai_invoke_agent_duration_seconds_sum{gen_ai_agent_name="harbour"} 0.3
gen_ai_invoke_agent_duration_seconds_count{gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="0.1",gen_ai_agent_name="harbour"} 0
gen_ai_invoke_agent_duration_seconds_bucket{le="0.2",gen_ai_agent_name="harbour"} 0
gen_ai_invoke_agent_duration_seconds_bucket{le="0.4",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="0.8",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="1.6",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="3.2",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="6.4",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="12.8",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="25.6",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="51.2",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="102.4",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="204.8",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="409.6",gen_ai_agent_name="harbour"} 1
gen_ai_invoke_agent_duration_seconds_bucket{le="+Inf",gen_ai_agent_name="harbour"} 1
# HELP throughline_runs Runs by stop reason.
# TYPE throughline_runs counter
throughline_runs_total{gen_ai_agent_name="harbour",throughline_stop_reason="done"} 1
# HELP throughline_model_retries Requests that are retried.
# TYPE throughline_model_retries counter
throughline_model_retries_total{throughline_upstream="a\"b\\c\nd",error_type="cut"} 1
# EOF
"#
    );
}
