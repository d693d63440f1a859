use std::collections::BTreeMap;

use throughline_model::Wire;
use throughline_testkit::property::scaled;
use throughline_testkit::recorded::{Action, Reference, Session};
use throughline_testkit::{Rng, Scratch, property};

use super::client::{Api, Got, ask};
use super::record::Record;
use super::vendor::Vendor;
use crate::serverkill::process::Process;

/// Stored bytes per byte said, at most.
const MOST_STORED: f64 = 1.4;

#[derive(Default)]
struct Sum {
    requests: usize,
    failed: usize,
    sent: usize,
    actions: BTreeMap<Action, usize>,
}

/// Clients that send everything again with each request, edit, retry, open tabs and compact, through a
/// server on SQLite: threads, branches and messages are what whole conversations, compared message by
/// message, say; each message is stored once.
#[test]
fn r7_recorded_sessions_become_threads_and_branches() {
    let sessions = scaled(50);
    let wires = [
        (Wire::OpenAiChat, "openai-chat"),
        (Wire::Anthropic, "anthropic"),
    ];
    property("recorded sessions", 1, |rng, _| {
        for (wire, kind) in &wires {
            store(sessions / 2, wire, kind, rng).map_err(|error| format!("{kind}: {error}"))?;
        }
        Ok(())
    });
}

#[expect(clippy::print_stdout, reason = "the test command shows these lines")]
fn store(sessions: usize, wire: &Wire, kind: &str, rng: &mut Rng) -> Result<(), String> {
    let scratch = Scratch::in_memory("recorded");
    let store = scratch.sqlite("store.db");
    let vendor = Vendor::start(wire, rng, 0.06)?;
    let url = vendor.url();
    let arguments = [
        "serve",
        &store,
        "0",
        kind,
        &url,
        "THROUGHLINE_RECORD_STATELESS=true",
    ];
    let (mut server, address) = Process::start(&arguments, "")?;
    let mut sum = Sum::default();
    let mut reference = Reference::default();
    let mut threads: BTreeMap<usize, String> = BTreeMap::new();
    // Sessions come one after the other and overlap.
    let mut waiting: Vec<_> = (0..sessions)
        .map(|place| {
            let api = *rng.pick(&[Api::Chat, Api::Messages]);
            let requests = 3 + rng.below(25);
            (
                api,
                requests,
                Session::new(&format!("s{place}"), rng.fork()),
            )
        })
        .collect();
    let mut open = Vec::new();
    while !waiting.is_empty() || !open.is_empty() {
        if open.len() < 4
            && let Some(next) = waiting.pop()
        {
            open.push(next);
        }
        let place = rng.below(open.len());
        let (api, left, session) = &mut open[place];
        let (action, said) = session.request();
        let system = format!("You know the harbour. It is {} o'clock.", rng.below(3));
        let request = api.request(&said, &system, rng.chance(0.5));
        sum.requests += 1;
        sum.sent += request.body.len();
        *sum.actions.entry(action).or_default() += 1;
        let placed = reference.begin(&said);
        match ask(*api, &address, &request, usize::MAX).map_err(|error| error.to_string())? {
            Got::Answer(answer, thread) => {
                let thread = thread.ok_or("the answer names no thread")?;
                let known = threads
                    .entry(placed.thread)
                    .or_insert_with(|| thread.clone());
                if *known != thread {
                    return Err(format!(
                        "{action:?}: {thread}, not {known}: {placed:?} {said:?}"
                    ));
                }
                reference.answer(placed.run, answer.clone());
                session.answered(answer);
            }
            Got::Refused(400, body) if body.contains("not today") => sum.failed += 1,
            Got::Refused(status, body) => return Err(format!("{action:?}: {status} {body}")),
        }
        *left -= 1;
        if *left == 0 {
            open.remove(place);
        }
    }
    server.kill();
    vendor.stop();
    compare(&store, &reference)?;
    // What an empty store takes is not the sessions'.
    let empty = scratch.sqlite("empty.db");
    Record::open(&empty)?.close()?;
    let size = size(&store)?.saturating_sub(size(&empty)?);
    let ratio = size as f64 / reference.stored_bytes as f64;
    let missing = Action::ALL
        .iter()
        .filter(|action| !sum.actions.contains_key(action));
    let missing: Vec<_> = missing.collect();
    let branches = reference.runs.iter().filter(|run| {
        let siblings = |other: &&throughline_testkit::recorded::RefRun| other.base == run.base;
        run.base.is_some() && reference.runs.iter().filter(siblings).count() > 1
    });
    println!(
        "campaign recorded sessions {kind}: sessions={sessions} requests={} failed={} threads={} from_others={} siblings={} messages={} sent_bytes={} said_bytes={} stored_bytes={size} stored_per_said={ratio:.2}",
        sum.requests,
        sum.failed,
        reference.threads.len(),
        reference
            .threads
            .iter()
            .filter(|thread| thread.origin.is_some())
            .count(),
        branches.count(),
        reference.stored,
        sum.sent,
        reference.stored_bytes,
    );
    if !missing.is_empty() {
        return Err(format!("void: no session did {missing:?}"));
    }
    match ratio <= MOST_STORED {
        true => Ok(()),
        false => Err(format!("{ratio:.2} bytes are stored for each one said")),
    }
}

/// The size of a store.
fn size(url: &str) -> Result<u64, String> {
    let path = url.strip_prefix("sqlite://").unwrap_or(url);
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    Ok(found.len())
}

/// Compare all that is stored with the reference.
fn compare(url: &str, reference: &Reference) -> Result<(), String> {
    let record = Record::open(url)?;
    record.is_settled()?;
    if record.runs.len() != reference.runs.len() {
        return Err(format!("{} runs", record.runs.len()));
    }
    let threads = record.threads()?;
    if threads.len() != reference.threads.len() {
        return Err(format!("{} threads", threads.len()));
    }
    let name = |run: usize| record.runs[run].thread.as_str();
    for (run, expected) in record.runs.iter().zip(&reference.runs) {
        let first = reference.threads[expected.thread].runs[0];
        if run.thread.as_str() != name(first) {
            return Err(format!("{run:?} is in another thread than {expected:?}"));
        }
        let base = expected.base.map(|base| record.runs[base].id);
        if run.base.map(|base| base.run) != base {
            return Err(format!("{run:?} begins elsewhere than {expected:?}"));
        }
        let conversation = expected.answer.is_some().then(|| expected.conversation());
        let stored = record.conversation(run)?;
        if stored != conversation {
            return Err(format!("{run:?}: {stored:?} is not {conversation:?}"));
        }
    }
    for thread in &reference.threads {
        let stored = &threads[name(thread.runs[0])];
        let head = thread.head.map(|run| record.runs[run].id);
        if stored.head.as_ref().map(|tip| tip.node.run) != head {
            return Err(format!("{stored:?}: its head is not {head:?}"));
        }
        let meta = stored.meta.as_ref().map(|meta| meta.value());
        let origin = meta
            .as_ref()
            .and_then(|meta| meta.get("origin_thread")?.as_str());
        let expected = thread
            .origin
            .map(|origin| name(reference.threads[origin].runs[0]));
        if origin.as_deref() != expected {
            return Err(format!(
                "{stored:?} comes from {origin:?}, not {expected:?}"
            ));
        }
    }
    let messages = record.stored_once()?;
    record.close()?;
    match messages == reference.stored {
        true => Ok(()),
        false => Err(format!("{messages} messages, not {}", reference.stored)),
    }
}
