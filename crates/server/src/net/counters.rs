//! What is counted of requests and connections.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use throughline::client::MemoryBudget;

/// Upper bounds of the buckets, in seconds.
const BOUNDS: [f64; 13] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Counters of requests and connections. There are as many as there are routes, methods and
/// statuses: nothing that a client writes is a label.
#[derive(Debug, Default)]
pub struct HttpCounters {
    requests: RwLock<Vec<(RequestLabels, Arc<Times>)>>,
    active: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
    /// Known members of requests that were not carried out.
    ignored: Mutex<BTreeMap<&'static str, u64>>,
    /// All other members that were not carried out.
    ignored_others: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Default)]
struct Times {
    /// One for each bound, and one above.
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// Something that is going on; it is over when this is dropped.
#[derive(Debug)]
pub(super) struct GaugeGuard<'c>(&'c AtomicU64);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HttpCounters {
    /// A connection was opened.
    pub(super) fn opened(&self) -> GaugeGuard<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(&self.connections)
    }

    /// A connection was refused.
    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A member of a request is not carried out. A member that no specification has is `None`:
    /// nothing that a client writes is a label.
    pub(crate) fn ignored(&self, member: Option<&'static str>) {
        match member {
            Some(member) => {
                let mut ignored = self.ignored.lock().unwrap_or_else(PoisonError::into_inner);
                *ignored.entry(member).or_default() += 1;
            }
            None => drop(self.ignored_others.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// A request came in.
    pub(super) fn begun(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// Its answer has been sent.
    pub(super) fn ended(&self, method: &'static str, route: &str, status: u16, time: Duration) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        self.times(method, route, status).record(time);
    }

    /// How many requests are at work.
    pub fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// How many connections are open.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    fn times(&self, method: &'static str, route: &str, status: u16) -> Arc<Times> {
        let is = |labels: &RequestLabels| {
            labels.status == status && labels.method == method && labels.route == route
        };
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, times)) = known.iter().find(|(labels, _)| is(labels)) {
            return Arc::clone(times);
        }
        drop(known);
        let mut known = self
            .requests
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Another request may have inserted it meanwhile.
        if let Some((_, times)) = known.iter().find(|(labels, _)| is(labels)) {
            return Arc::clone(times);
        }
        let labels = RequestLabels {
            method,
            route: route.to_owned(),
            status,
        };
        let times = Arc::new(Times::default());
        known.push((labels, Arc::clone(&times)));
        times
    }

    /// Append what Prometheus reads. Names follow OpenTelemetry's for HTTP servers.
    pub(crate) fn write(&self, out: &mut String, streams: usize, memory: &MemoryBudget) {
        // Writing to a string cannot fail.
        let _ = self.try_write(out, streams, memory);
    }

    fn try_write(
        &self,
        out: &mut String,
        streams: usize,
        memory: &MemoryBudget,
    ) -> std::fmt::Result {
        let name = "http_server_request_duration_seconds";
        writeln!(
            out,
            "# HELP {name} Time from a request to the end of its answer."
        )?;
        writeln!(out, "# TYPE {name} histogram")?;
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        for (labels, times) in known.iter() {
            let RequestLabels {
                method,
                route,
                status,
            } = labels;
            let labels = format!(
                "http_request_method=\"{method}\",http_route=\"{route}\",\
                 http_response_status_code=\"{status}\""
            );
            let mut below = 0;
            for (at, count) in times.counts.iter().enumerate() {
                below += count.load(Ordering::Relaxed);
                let bound = BOUNDS.get(at).map_or("+Inf".to_owned(), f64::to_string);
                writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}")?;
            }
            let sum = Duration::from_micros(times.micros.load(Ordering::Relaxed)).as_secs_f64();
            writeln!(out, "{name}_sum{{{labels}}} {sum}")?;
            writeln!(out, "{name}_count{{{labels}}} {below}")?;
        }
        drop(known);
        let plain = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, kind, help, value) in [
            (
                "http_server_active_requests",
                "gauge",
                "Requests at work.",
                plain(&self.active),
            ),
            (
                "throughline_http_connections",
                "gauge",
                "Open connections.",
                plain(&self.connections),
            ),
            (
                "throughline_http_connections_refused_total",
                "counter",
                "Connections that were one too many.",
                plain(&self.refused),
            ),
            (
                "throughline_http_streams",
                "gauge",
                "Open event streams.",
                streams as u64,
            ),
            (
                "throughline_memory_held_bytes",
                "gauge",
                "Memory that is counted for requests and answers at work.",
                memory.held() as u64,
            ),
            (
                "throughline_memory_limit_bytes",
                "gauge",
                "Memory that requests and answers at work may take.",
                memory.most() as u64,
            ),
        ] {
            writeln!(
                out,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            )?;
        }
        let name = "throughline_ignored_members_total";
        writeln!(
            out,
            "# HELP {name} Members of requests that were not carried out."
        )?;
        writeln!(out, "# TYPE {name} counter")?;
        let ignored = self.ignored.lock().unwrap_or_else(PoisonError::into_inner);
        let others = [("other", plain(&self.ignored_others))];
        let others = others.into_iter().filter(|(_, value)| *value > 0);
        for (member, value) in ignored
            .iter()
            .map(|(name, value)| (*name, *value))
            .chain(others)
        {
            writeln!(out, "{name}{{member=\"{member}\"}} {value}")?;
        }
        Ok(())
    }
}

impl Times {
    fn record(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let at = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}
