//! Metrics as OpenTelemetry's SDK exports them.

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use throughline::Agent;
use throughline::client::{ClientEvent, ErrorKind, Observer};
use throughline::telemetry::{Metrics, OtelMetrics};
use throughline_testkit::scripted::{ScriptedClient, Step};

use crate::telemetry::support::{Fake, alone};

/// The exported metrics: name and unit, and for each point its attributes and its value.
fn exported(exporter: &InMemoryMetricExporter) -> BTreeMap<String, Vec<String>> {
    let mut seen = BTreeMap::new();
    for resource in exporter.get_finished_metrics().expect("metrics") {
        for scope in resource.scope_metrics() {
            for metric in scope.metrics() {
                let mut points = match metric.data() {
                    AggregatedMetrics::F64(MetricData::Histogram(histogram)) => histogram
                        .data_points()
                        .map(|point| {
                            let labels = labels(point.attributes());
                            format!("{labels} {}x {:.2}", point.count(), point.sum())
                        })
                        .collect(),
                    AggregatedMetrics::U64(MetricData::Sum(sum)) => sum
                        .data_points()
                        .map(|point| format!("{} {}", labels(point.attributes()), point.value()))
                        .collect(),
                    AggregatedMetrics::U64(MetricData::Gauge(gauge)) => gauge
                        .data_points()
                        .map(|point| format!("{} {}", labels(point.attributes()), point.value()))
                        .collect(),
                    other => vec![format!("{other:?}")],
                };
                points.sort();
                let name = format!("{} [{}]", metric.name(), metric.unit());
                seen.insert(name, points);
            }
        }
    }
    seen
}

fn labels<'a>(attributes: impl Iterator<Item = &'a opentelemetry::KeyValue>) -> String {
    let mut labels: Vec<String> = attributes
        .map(|one| format!("{}={}", one.key, one.value))
        .collect();
    labels.sort();
    labels.join(" ")
}

#[test]
fn the_sdk_sees_every_measurement_under_the_names_of_the_conventions() {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let metrics = Metrics::new().and(OtelMetrics::new(&provider.meter("throughline")));
    let kept = metrics.clone();
    alone(async || {
        let steps = [
            Step::calls([("c1", "tide", "{}")])
                .with_usage(100, 20)
                .after(Duration::from_millis(500)),
            Step::text("At four.").with_usage(200, 30),
        ];
        let agent = Agent::builder(ScriptedClient::new(steps))
            .whole_answers()
            .name("harbour")
            .tool(Fake::saying("tide", "at four"))
            .metrics(metrics.clone())
            .build()
            .unwrap();
        agent.run("when?").await.unwrap();
        metrics.observe(&ClientEvent::Retry {
            upstream: "scripted",
            attempt: 1,
            wait: Duration::ZERO,
            kind: ErrorKind::Cut,
        });
        metrics.observe(&ClientEvent::Breaker {
            upstream: "scripted",
            state: throughline::client::BreakerState::Open,
        });
    });
    provider.force_flush().unwrap();
    let chat = "gen_ai.operation.name=chat gen_ai.provider.name=scripted \
                gen_ai.request.model=scripted-1 gen_ai.response.model=scripted-1";
    let expected = [
        (
            "gen_ai.client.operation.duration [s]",
            vec![format!("{chat} 2x 0.50")],
        ),
        (
            "gen_ai.client.token.usage [{token}]",
            vec![
                format!("{chat} gen_ai.token.type=input 2x 300.00"),
                format!("{chat} gen_ai.token.type=output 2x 50.00"),
            ],
        ),
        (
            "gen_ai.execute_tool.duration [s]",
            vec![
                "gen_ai.agent.name=harbour gen_ai.tool.name=tide gen_ai.tool.type=function 1x 0.00"
                    .to_owned(),
            ],
        ),
        (
            "gen_ai.invoke_agent.duration [s]",
            vec!["gen_ai.agent.name=harbour 1x 0.50".to_owned()],
        ),
        (
            "throughline.breaker.state [1]",
            vec!["throughline.upstream=scripted 2".to_owned()],
        ),
        (
            "throughline.model.retries [{request}]",
            vec!["error.type=cut throughline.upstream=scripted 1".to_owned()],
        ),
        (
            "throughline.runs [{run}]",
            vec!["gen_ai.agent.name=harbour throughline.stop_reason=done 1".to_owned()],
        ),
        (
            "throughline.tool.calls [{call}]",
            vec![
                "gen_ai.agent.name=harbour gen_ai.tool.name=tide throughline.outcome=ok 1"
                    .to_owned(),
            ],
        ),
    ];
    let expected: BTreeMap<String, Vec<String>> = expected
        .into_iter()
        .map(|(name, points)| (name.to_owned(), points))
        .collect();
    assert_eq!(exported(&exporter), expected);
    assert!(
        kept.to_prometheus()
            .contains("gen_ai_client_token_usage_sum")
    );
}
