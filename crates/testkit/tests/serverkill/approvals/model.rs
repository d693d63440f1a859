//! The scripted upstreams, and the requests that they received.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_model::Wire;
use throughline_testkit::loopkill::brackets;
use throughline_testkit::record::block_on;
use throughline_testkit::upstream::{
    Entry, Fault, Recorded, Reply, ReplyId, Script, Upstream, entries,
};

use super::charge_server::Signal;

/// The formats of the upstreams; each is the upstream of its name.
pub(crate) const WIRES: [Wire; 4] = [
    Wire::OpenAiChat,
    Wire::Anthropic,
    Wire::Gemini,
    Wire::OpenAiResponses,
];

/// The first response of a case's model.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// Whether it writes text before its calls.
    pub(crate) text: bool,
    /// Ids and arguments of the calls.
    pub(crate) calls: Vec<(ReplyId, String)>,
}

/// When the service of a case fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// From the first request on.
    First,
    /// From the request with the results of the calls on.
    AfterCalls,
}

#[derive(Default)]
struct Case {
    outage: Option<Outage>,
    opening: Option<Opening>,
    asked: u32,
    /// The requests after the calls.
    requests: Vec<Vec<Entry>>,
}

type Cases = Arc<Mutex<HashMap<String, Case>>>;

/// The upstreams, one for each format.
pub(crate) struct Models {
    upstreams: Vec<Upstream>,
    cases: Cases,
}

impl Models {
    pub(crate) fn start(signals: &Sender<Signal>) -> Self {
        let cases = Cases::default();
        let upstreams = WIRES.map(|wire| {
            let script = script(wire.clone(), Arc::clone(&cases), signals.clone());
            block_on(Upstream::start(wire, script))
        });
        Self {
            upstreams: upstreams.into(),
            cases,
        }
    }

    /// The address of each upstream.
    pub(crate) fn urls(&self) -> impl Iterator<Item = (&Wire, String)> {
        let upstreams = self.upstreams.iter();
        upstreams.map(|upstream| (upstream.wire(), upstream.base_url()))
    }

    /// Registers a case.
    pub(crate) fn expect(&self, case: &str, opening: Opening) {
        let mut cases = locked(&self.cases);
        cases.entry(case.to_owned()).or_default().opening = Some(opening);
    }

    /// Starts or ends the outage of a case's service.
    pub(crate) fn fail(&self, case: &str, outage: Option<Outage>) {
        let mut cases = locked(&self.cases);
        cases.entry(case.to_owned()).or_default().outage = outage;
    }

    /// The number of model calls of a case.
    pub(crate) fn asked(&self, case: &str) -> u32 {
        locked(&self.cases).get(case).map_or(0, |case| case.asked)
    }

    /// The requests of a case after its calls.
    pub(crate) fn requests(&self, case: &str) -> Vec<Vec<Entry>> {
        let cases = locked(&self.cases);
        let case = cases.get(case);
        case.map(|case| case.requests.clone()).unwrap_or_default()
    }

    /// Removes a case.
    pub(crate) fn forget(&self, case: &str) {
        locked(&self.cases).remove(case);
    }

    /// The number of requests that the vendor would refuse.
    pub(crate) fn refused(&self) -> usize {
        let upstreams = self.upstreams.iter();
        upstreams.map(|upstream| upstream.counts().refused).sum()
    }

    /// The first refusal, in the vendor's words.
    pub(crate) fn refusal(&self) -> Option<String> {
        let requests = self.upstreams.iter().flat_map(Upstream::requests);
        let mut refused = requests.filter(|one| !one.is_accepted());
        refused.next().map(|one| format!("{one:?}"))
    }
}

fn locked(cases: &Cases) -> MutexGuard<'_, HashMap<String, Case>> {
    cases.lock().unwrap_or_else(PoisonError::into_inner)
}

fn script(wire: Wire, cases: Cases, signals: Sender<Signal>) -> Script {
    Script::respond_with(move |request: &Recorded| {
        let text = request.body.to_string();
        let Some(code) = brackets(&text, "case").last() else {
            return Reply::text("[[lost]] no case was named");
        };
        let entries = entries(&wire, &request.body);
        let called = |entry: &Entry| matches!(entry, Entry::Call { .. });
        let mut cases = locked(&cases);
        let case = cases.entry(code.to_owned()).or_default();
        // Some outages are permanent, some end with the next request.
        case.asked += 1;
        if code.starts_with("stalls") || code.starts_with("late") && case.asked == 1 {
            return Reply::text("One moment.").with_fault(Fault::Stalls);
        }
        let is_called = entries.iter().any(called);
        let is_down = match case.outage {
            Some(Outage::First) => true,
            Some(Outage::AfterCalls) => is_called,
            None => false,
        };
        if is_down {
            return Reply::text("").with_fault(Fault::Overloaded);
        }
        if let (Some(opening), false) = (&case.opening, is_called) {
            let calls = opening.calls.iter().cloned();
            let calls = calls.map(|(id, arguments)| (id, "charge", arguments));
            let reply = match opening.text {
                true => Reply::text("I charge these."),
                false => Reply::calls::<&str, &str>([]),
            };
            return reply.and_calls_with_ids(calls);
        }
        case.requests.push(entries);
        let number = case.requests.len();
        drop(cases);
        // The test may have ended.
        let _ = signals.send(Signal::Asked(code.to_owned()));
        Reply::text(format!("[[done {code}/{number}]] That is that."))
    })
}
