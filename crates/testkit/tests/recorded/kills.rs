use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use throughline_model::Wire;
use throughline_store::{Authority, RunFilter, RunState, Store, Tenant};
use throughline_testkit::property::scaled;
use throughline_testkit::record::block_on;
use throughline_testkit::recorded::{Said, Session};
use throughline_testkit::serverkill::{Exchange, Request};
use throughline_testkit::{Rng, Scratch, property};

use super::client::{Api, Got, ask};
use super::record::Record;
use super::vendor::Vendor;
use crate::serverkill::process::Process;

/// How far each server's clock is ahead of the one before: more than a lease.
const APART: u64 = 10_500;

/// How long the last server may take to close what others left.
const LONGEST: Duration = Duration::from_secs(60);

/// The points of the store at which a server is killed.
const POINTS: [&str; 5] = [
    "begin.pre",
    "begin.post",
    "publish.mid",
    "publish.commit_sent",
    "publish.post",
];

/// A server that records is killed while clients use it: every answer that a client has is in the
/// record, every other request says that its answer is missing, and the model is never asked for more
/// than clients asked for.
#[test]
fn r1_recorded_answers_survive_kills() {
    property("recorded kills", 1, |rng, _| line(scaled(15) as u64, rng));
}

/// Kill a process that was started here, from another thread than the one that waits for it.
fn kill_now(process: u32) {
    let killed = std::process::Command::new("kill")
        .args(["-9", &process.to_string()])
        .status();
    drop(killed);
}

/// Wait until the server has closed what others left. Each look is paced by a request to it.
fn until_settled(url: &str, address: &str) -> Result<(), String> {
    let begun = Instant::now();
    let filter = RunFilter {
        states: vec![RunState::Running, RunState::Interrupted],
        ..RunFilter::default()
    };
    let store = block_on(Store::open(url)).map_err(|error| error.to_string())?;
    let tenant = Tenant::new("local").map_err(|error| error.to_string())?;
    let scope = Authority::assume().scope(tenant);
    while begun.elapsed() < LONGEST {
        let found = block_on(store.runs(&scope, &filter, None, 1));
        if found.map_err(|error| error.to_string())?.found.is_empty() {
            return Ok(());
        }
        let answer =
            Exchange::open(address, &Request::get("/healthz")).and_then(|mut one| one.whole());
        answer.map_err(|error| error.to_string())?;
    }
    Err("runs that were left are not closed".to_owned())
}

#[expect(clippy::print_stdout, reason = "the test command shows these lines")]
fn line(lives: u64, rng: &mut Rng) -> Result<(), String> {
    let scratch = Scratch::in_memory("recordedkills");
    let store = scratch.sqlite("store.db");
    let vendor = Vendor::start(&Wire::OpenAiChat, rng, 0.0)?;
    let url = vendor.url();
    let start = |life: u64, faults: &str| {
        let ahead = (life * APART).to_string();
        let arguments = [
            "serve",
            &store,
            &ahead,
            "openai-chat",
            &url,
            "THROUGHLINE_RECORD_STATELESS=true",
        ];
        Process::start(&arguments, faults)
    };
    let mut sessions: Vec<_> = (0..4)
        .map(|place| Session::new(&format!("k{place}"), rng.fork()))
        .collect();
    let mut acknowledged: Vec<(Vec<Said>, Said)> = Vec::new();
    let (mut sent, mut cut) = (0, 0);
    for life in 1..=lives {
        let point = rng.chance(0.5).then(|| *rng.pick(&POINTS));
        let faults = point.map(|point| format!("{point}=kill@{}", 1 + rng.below(12)));
        let (mut server, address) = start(life, &faults.unwrap_or_default())?;
        let (kill, killed) = channel();
        if point.is_none() && rng.chance(0.6) {
            // Dead when the upstream has the request.
            let pid = server.id();
            let kill = kill.clone();
            vendor.after(1 + rng.below(12) as u64, move || {
                kill_now(pid);
                // The test has ended if it is not received.
                let _ = kill.send(());
            });
        }
        for _ in 0..1 + rng.below(30) {
            let place = rng.below(sessions.len());
            let session = &mut sessions[place];
            let (_, said) = session.request();
            let api = *rng.pick(&[Api::Chat, Api::Messages]);
            let request = api.request(&said, "You know the harbour.", rng.chance(0.6));
            let most = match rng.chance(0.1) {
                true => 1 + rng.below(3),
                false => usize::MAX,
            };
            sent += 1;
            match ask(api, &address, &request, most) {
                Ok(Got::Answer(answer, _)) => {
                    acknowledged.push((said, answer.clone()));
                    session.answered(answer);
                }
                Ok(Got::Refused(status, body)) => return Err(format!("{status} {body}")),
                // The client stopped reading, or the server is dead.
                Err(_) => {
                    cut += 1;
                    if server.is_gone() || killed.try_recv().is_ok() {
                        break;
                    }
                }
            }
        }
        // Its number may become that of another process once it is gone.
        vendor.forget();
        server.kill();
    }
    // The last server closes what others left; then it is stopped in order.
    let (mut server, address) = start(lives + 1, "")?;
    until_settled(&store, &address)?;
    server.kill();
    let asked = vendor.asked();
    vendor.stop();
    if asked > sent {
        return Err(format!(
            "the model was asked {asked} times for {sent} requests"
        ));
    }
    let record = Record::open(&store)?;
    let missing = record.is_settled()?;
    let mut conversations: HashMap<Vec<Said>, usize> = HashMap::new();
    for run in &record.runs {
        if let Some(conversation) = record.conversation(run)? {
            *conversations.entry(conversation).or_default() += 1;
        }
    }
    for (said, answer) in &acknowledged {
        let mut conversation = said.clone();
        conversation.push(answer.clone());
        if !conversations.contains_key(&conversation) {
            return Err(format!("an answer has no record: {answer:?} to {said:?}"));
        }
    }
    let messages = record.stored_once()?;
    println!(
        "campaign recorded kills: kills={lives} requests={sent} cut={cut} acknowledged={} without_record=0 answer_missing={missing} messages={messages} stored_twice=0 model_calls={asked}",
        acknowledged.len()
    );
    match missing > 0 && !acknowledged.is_empty() {
        true => Ok(()),
        false => Err("void: no kill met a request".to_owned()),
    }
}
