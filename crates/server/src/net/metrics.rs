//! Metrics of requests and connections, and gauges that are read when `/metrics` is scraped.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::rate::RateMeter;

/// Upper bounds of the buckets, in seconds.
const BOUNDS: [f64; 13] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Metrics of requests and connections. Label values come from the routes, methods, statuses and
/// members that the server knows, never from what a client writes, so that their number is bounded.
#[derive(Debug)]
pub struct HttpMetrics {
    requests: Family<RequestLabels, Histogram>,
    active: Gauge,
    connections: Gauge,
    refused: Counter,
    ignored: Family<[(&'static str, &'static str); 1], Counter>,
    answered: RateMeter,
    failed: RateMeter,
}

/// Requests that were answered in the last minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastMinute {
    pub(crate) requests: u64,
    /// With a status from 500 on.
    pub(crate) server_errors: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    http_request_method: &'static str,
    http_route: String,
    http_response_status_code: u16,
}

/// Decrements its gauge when it is dropped.
#[derive(Debug)]
pub(super) struct GaugeGuard<'g>(&'g Gauge);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl HttpMetrics {
    /// Nothing counted yet. Names follow OpenTelemetry's for HTTP servers.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            active: Gauge::default(),
            connections: Gauge::default(),
            refused: Counter::default(),
            ignored: Family::default(),
            answered: RateMeter::default(),
            failed: RateMeter::default(),
        };
        registry.register(
            "http_server_request_duration_seconds",
            "Time from a request to the end of its answer",
            metrics.requests.clone(),
        );
        registry.register(
            "http_server_active_requests",
            "Requests at work",
            metrics.active.clone(),
        );
        registry.register(
            "throughline_http_connections",
            "Open connections",
            metrics.connections.clone(),
        );
        registry.register(
            "throughline_http_connections_refused",
            "Connections that were one too many",
            metrics.refused.clone(),
        );
        registry.register(
            "throughline_ignored_members",
            "Members of requests that were not carried out",
            metrics.ignored.clone(),
        );
        metrics
    }

    /// Count a connection that was opened, until the guard is dropped.
    pub(super) fn opened(&self) -> GaugeGuard<'_> {
        self.connections.inc();
        GaugeGuard(&self.connections)
    }

    /// Count a connection that was refused.
    pub(super) fn refused(&self) {
        self.refused.inc();
    }

    /// Count a member of a request that is not carried out; `None` if no specification has it.
    pub(crate) fn ignored(&self, member: Option<&'static str>) {
        let labels = [("member", member.unwrap_or("other"))];
        self.ignored.get_or_create(&labels).inc();
    }

    /// Count a request that came in.
    pub(super) fn begun(&self) {
        self.active.inc();
    }

    /// Count a request whose answer has been sent.
    pub(super) fn ended(&self, method: &'static str, route: String, status: u16, time: Duration) {
        self.active.dec();
        self.answered.count();
        if status >= 500 {
            self.failed.count();
        }
        let labels = RequestLabels {
            http_request_method: method,
            http_route: route,
            http_response_status_code: status,
        };
        let requests = self.requests.get_or_create(&labels);
        requests.observe(time.as_secs_f64());
    }

    /// What was answered in the last minute.
    pub(crate) fn last_minute(&self) -> LastMinute {
        LastMinute {
            requests: self.answered.last_minute(),
            server_errors: self.failed.last_minute(),
        }
    }

    /// The number of requests at work.
    pub fn active(&self) -> u64 {
        self.active.get().unsigned_abs()
    }

    /// The number of open connections.
    pub fn connections(&self) -> u64 {
        self.connections.get().unsigned_abs()
    }
}

/// Register a gauge whose value `read` computes at each scrape.
pub(crate) fn register_gauge(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    read: impl Fn() -> usize + Send + Sync + 'static,
) {
    registry.register_collector(Box::new(ComputedGauge { name, help, read }));
}

struct ComputedGauge<F> {
    name: &'static str,
    help: &'static str,
    read: F,
}

impl<F> fmt::Debug for ComputedGauge<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputedGauge")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<F: Fn() -> usize + Send + Sync + 'static> Collector for ComputedGauge<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut encoder =
            encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        encoder.encode_gauge(&((self.read)() as u64))
    }
}
