//! Ends that a server cannot store: its disk is full from some write of a run on, or it is paused
//! until another server has taken the run over. The end that a client receives must equal the
//! recorded one at any later time, and a tool with the effect `once` must not run twice.
//!
//! The tool is that of an MCP server made with the official SDK, which logs each execution.

mod client;
mod ground;
mod keys;

use serde_json::{Value, json};
use throughline_testkit::serverkill::Request;
use throughline_testkit::upstream::ReplyId;
use throughline_testkit::{Rng, property};

use crate::serverkill::approvals::Opening;
use client::{End, send};
use ground::{Ground, python};

/// When the disk gets space again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heal {
    Live,
    Restart,
}

/// Where a server is paused before a write of a run. It holds no lock of the store at these points.
const HELD: [&str; 5] = [
    "model.pre_send",
    "model.headers",
    "model.last_chunk",
    "tool.mid",
    "tool.returned",
];

/// The shortest and the longest pause, in milliseconds: from less than the other server needs to
/// take the run over to much more than a lease.
const HELD_FOR: (u64, u64) = (1_000, 20_000);

/// The number of writes of a run with one tool call, and some more.
const WRITES: usize = 120;

#[derive(Default)]
struct Counts {
    told: u64,
    unknown: u64,
    refused: u64,
    completed: u64,
    ran: u64,
    cases: u64,
    slowest: u128,
}

impl Counts {
    #[expect(clippy::print_stdout, reason = "it is the figure of the campaign")]
    fn print(&self, name: &str) {
        let Self {
            told,
            unknown,
            refused,
            completed,
            ran,
            cases,
            slowest,
        } = self;
        println!(
            "campaign {name}: cases={cases} told={told} unknown={unknown} refused={refused} completed={completed} tool_ran={ran} slowest_settled_ms={slowest} contradicted=0 doubled=0 stuck=0"
        );
    }
}

fn request(code: &str, streamed: bool) -> Request {
    let body = json!({
        "model": "openairesponses/a-model",
        "input": format!("[[case {code}]] Charge it."),
        "tools": [{"type": "mcp", "server_label": "bank", "require_approval": "never"}],
        "stream": streamed,
    });
    Request::post("/v1/responses", body.to_string()).with("idempotency-key", code)
}

fn opening(code: &str) -> Opening {
    let arguments = json!({"case": code, "amount": 5}).to_string();
    Opening {
        text: false,
        calls: vec![(ReplyId::Given(format!("call_{code}")), arguments)],
    }
}

/// Checks that the recorded end always equals the one that the client received.
fn check(
    ground: &mut Ground,
    counts: &mut Counts,
    code: &str,
    request: &Request,
    end: End,
) -> Result<(), String> {
    counts.cases += 1;
    let known: Option<Value> = match end {
        End::Told(response) => {
            counts.told += 1;
            Some(response)
        }
        End::Unknown(id) => {
            counts.unknown += 1;
            let (settled, waited) = ground.settled(&id)?;
            counts.slowest = counts.slowest.max(waited);
            Some(settled)
        }
        End::Refused(status, error) => {
            counts.refused += 1;
            if !matches!(status, 503 | 507) {
                return Err(format!("refused with {status}: {error}"));
            }
            let charges = ground.charge_server.charges(code)?;
            if !charges.is_empty() {
                return Err(format!("refused, and the tool ran: {charges:?}"));
            }
            None
        }
    };
    // A retry with its key is the same request.
    let again = match send(&ground.address, request)? {
        End::Told(response) => response,
        other => return Err(format!("sent again it ends with {other:?}")),
    };
    if let Some(known) = &known
        && *known != again
    {
        return Err(format!("known is {known}, and sent again it is {again}"));
    }
    let id = again["id"].as_str().unwrap_or_default();
    let read = ground.read(id)?;
    if read != again {
        return Err(format!("told was {again}, and the record says {read}"));
    }
    if read["status"] == "completed" {
        counts.completed += 1;
    }
    // A call that was about to run when its server died may not have run.
    let charges = ground.charge_server.charges(code)?;
    counts.ran += charges.len() as u64;
    match charges.len() {
        0 | 1 => Ok(()),
        count => Err(format!("the tool ran {count} times for {read}")),
    }
}

/// R14 over HTTP: the disk is full from any write of a run on, and gets space again while the
/// server lives or before the next one starts.
#[test]
fn r14_over_http_no_client_hears_of_an_end_that_is_not_recorded() {
    let name = "r14_over_http_no_client_hears_of_an_end_that_is_not_recorded";
    let Some(python) = python(name) else { return };
    let mut counts = Counts::default();
    let mut started = None;
    property("r14 full disk over http", 24, |rng: &mut Rng, _| {
        let ground = match &mut started {
            Some(ground) => ground,
            empty => empty.insert(Ground::start(&python)?),
        };
        let code = format!("f{:012x}", rng.next_u64() >> 16);
        let writes = rng.below(WRITES);
        let streamed = rng.bool();
        let heal = *rng.pick(&[Heal::Live, Heal::Live, Heal::Restart]);
        let case = format!("{code}: full after {writes} writes, streamed={streamed}, {heal:?}");
        ground.models.expect(&code, opening(&code));
        ground.order(&format!("full {writes}"))?;
        let request = request(&code, streamed);
        let end = send(&ground.address, &request)?;
        match heal {
            Heal::Live => ground.order("heal")?,
            Heal::Restart => ground.restart("")?,
        }
        let checked = check(ground, &mut counts, &code, &request, end);
        checked.map_err(|error| format!("{case}: {error}"))
    });
    counts.print("r14 full disk over http");
    let Counts {
        unknown,
        told,
        refused,
        cases,
        completed,
        ran,
        ..
    } = counts;
    assert!(ran * 10 >= cases * 9, "void: the tool ran {ran} times");
    assert!(
        cases < 24 || unknown > 0 && told > 0 && refused > 0,
        "void: some ends were not met"
    );
    assert!(
        completed * 100 >= cases * 95,
        "{completed} of {cases} completed"
    );
}

/// How many runs stall on the upstream when their server is killed, and how many others it leaves.
const STALLED: usize = 70;
const LATE: usize = 5;

/// R9 over HTTP: runs that stall again when they are taken over do not delay others.
#[test]
fn r9_over_http_orphans_that_stall_keep_no_other_waiting() {
    let name = "r9_over_http_orphans_that_stall_keep_no_other_waiting";
    let Some(python) = python(name) else { return };
    let (mut slowest, mut settled, mut left) = (0, 0, 0);
    property("r9 stalled orphans over http", 1, |rng: &mut Rng, _| {
        let mut ground = Ground::start(&python)?;
        let code = rng.next_u64() >> 16;
        let stalls = (0..STALLED).map(|no| format!("stalls{code:012x}{no}"));
        let late: Vec<String> = (0..LATE).map(|no| format!("late{code:012x}{no}")).collect();
        // The stalling runs are older, and are listed first.
        let stalling = stalls
            .map(|code| ground.begin(&code))
            .collect::<Result<Vec<_>, _>>()?;
        let waiting = late
            .iter()
            .map(|code| ground.begin(code))
            .collect::<Result<Vec<_>, _>>()?;
        // The first request about each stalls: it must not be the next server's.
        for code in &late {
            ground.model_was_asked(code)?;
        }
        ground.restart("")?;
        drop((stalling, waiting));
        left += STALLED + LATE;
        for code in &late {
            slowest = slowest.max(ground.finished(code)?);
            settled += 1;
        }
        Ok(())
    });
    println!(
        "campaign r9 stalled orphans over http: left={left} others_settled={settled} slowest_ms={slowest}"
    );
}

/// R9 and R14 over HTTP: a server is paused in the middle of a run until another one has finished
/// it. Its client gets the end that the other one recorded.
#[test]
fn r9_over_http_the_client_of_a_fenced_owner_gets_the_end_of_the_new_one() {
    let name = "r9_over_http_the_client_of_a_fenced_owner_gets_the_end_of_the_new_one";
    let Some(python) = python(name) else { return };
    let mut counts = Counts::default();
    let mut started = None;
    let mut taken_over = 0;
    property("r9 fenced owner over http", 2, |rng: &mut Rng, _| {
        let ground = match &mut started {
            Some(ground) => ground,
            empty => empty.insert(Ground::start(&python)?),
        };
        let code = format!("p{:012x}", rng.next_u64() >> 16);
        let (point, streamed) = (*rng.pick(&HELD), rng.bool());
        let held_for = HELD_FOR.0 + rng.below((HELD_FOR.1 - HELD_FOR.0) as usize) as u64;
        let case = format!("{code}: held up at {point} for {held_for} ms, streamed={streamed}");
        ground.models.expect(&code, opening(&code));
        ground.restart(&format!("{point}=delay:{held_for}@1"))?;
        let request = request(&code, streamed);
        let address = ground.address.clone();
        let (end, attempts) = std::thread::scope(|scope| {
            let client = scope.spawn(|| send(&address, &request));
            let finished = ground.second_finishes(&code);
            let end = client
                .join()
                .unwrap_or_else(|_| Err("a client panicked".to_owned()));
            finished.and_then(|attempts| Ok((end?, attempts)))
        })
        .map_err(|error: String| format!("{case}: {error}"))?;
        taken_over += u64::from(attempts > 0);
        let checked = check(ground, &mut counts, &code, &request, end);
        ground.leave_second();
        checked.map_err(|error| format!("{case}: {error}"))
    });
    counts.print("r9 fenced owner over http");
    println!("campaign r9 fenced owner over http: taken_over={taken_over}");
    assert!(taken_over > 0, "void: nothing was taken over");
}
