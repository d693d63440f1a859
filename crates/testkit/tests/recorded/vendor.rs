//! The upstream: every answer is another one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_model::Wire;
use throughline_testkit::Rng;
use throughline_testkit::recorded::prose;
use throughline_testkit::upstream::{Reply, Script, Upstream};
use tokio::runtime::Runtime;

/// An upstream, and how many requests it had.
pub(super) struct Vendor {
    runtime: Runtime,
    upstream: Upstream,
    count: Arc<AtomicU64>,
    stop_at: Arc<Mutex<Option<Stop>>>,
}

/// Something that is done when the upstream has a request, before it answers.
type Stop = (u64, Box<dyn FnOnce() + Send>);

impl Vendor {
    pub(super) fn start(wire: &Wire, rng: &mut Rng, failing: f64) -> Result<Self, String> {
        let count = Arc::<AtomicU64>::default();
        let stop_at = Arc::<Mutex<Option<Stop>>>::default();
        let (counted, stopping) = (Arc::clone(&count), Arc::clone(&stop_at));
        let seed = rng.next_u64();
        let script = Script::respond_with(move |_| {
            let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let mut stop = stopping.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, stop)) = stop.take_if(|(at, _)| number >= *at) {
                stop();
            }
            drop(stop);
            reply(&mut Rng::new(seed ^ number), number, failing)
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let upstream = runtime.block_on(Upstream::start(wire.clone(), script));
        Ok(Self {
            runtime,
            upstream,
            count,
            stop_at,
        })
    }

    pub(super) fn url(&self) -> String {
        self.upstream.base_url()
    }

    /// How many requests it had.
    pub(super) fn asked(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Do something when the next requests come.
    pub(super) fn after(&self, more: u64, what: impl FnOnce() + Send + 'static) {
        let at = self.asked() + more;
        let mut stop = self.stop_at.lock().unwrap_or_else(PoisonError::into_inner);
        *stop = Some((at, Box::new(what)));
    }

    /// Do nothing more.
    pub(super) fn forget(&self) {
        let mut stop = self.stop_at.lock().unwrap_or_else(PoisonError::into_inner);
        *stop = None;
    }

    pub(super) fn stop(self) {
        drop(self.upstream);
        self.runtime.shutdown_background();
    }
}

fn reply(rng: &mut Rng, number: u64, failing: f64) -> Reply {
    if rng.chance(failing) {
        let body =
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"not today"}}"#;
        return Reply::raw(400, "application/json", body);
    }
    let bytes = *rng.pick(&[60, 300, 1_500, 5_000]);
    let text = prose(rng, &format!("answer {number}"), bytes);
    match rng.chance(0.15) {
        true => {
            let arguments = serde_json::json!({"at": text}).to_string();
            Reply::calls([("look", arguments)])
        }
        false => Reply::text(text),
    }
}
