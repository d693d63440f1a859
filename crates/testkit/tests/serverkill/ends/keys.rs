//! Idempotency keys: for any key and any fault, a retried request is the same request, or is
//! refused by name.

use serde_json::json;
use throughline_testkit::serverkill::Request;
use throughline_testkit::{Rng, property};

use super::client::{End, send};
use super::ground::{Ground, python};
use super::opening;
use crate::serverkill::approvals::Outage;

/// What happens to a request with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It has `store: false`.
    NotStored,
    /// The upstream fails before the tool runs, or after.
    Outage(Outage),
    /// The server is killed after the answer.
    Restart,
    /// The upstream fails, and the server is killed before it recovers.
    OutageAndRestart(Outage),
    None,
}

const TROUBLES: [Trouble; 7] = [
    Trouble::NotStored,
    Trouble::Outage(Outage::First),
    Trouble::Outage(Outage::AfterCalls),
    Trouble::Restart,
    Trouble::OutageAndRestart(Outage::First),
    Trouble::OutageAndRestart(Outage::AfterCalls),
    Trouble::None,
];

impl Trouble {
    fn outage(self) -> Option<Outage> {
        match self {
            Self::Outage(outage) | Self::OutageAndRestart(outage) => Some(outage),
            Self::NotStored | Self::Restart | Self::None => None,
        }
    }

    fn restarts(self) -> bool {
        matches!(self, Self::Restart | Self::OutageAndRestart(_))
    }
}

#[derive(Default)]
struct Counts {
    cases: usize,
    refused: u64,
    retried: u64,
    adopted: u64,
    completed: u64,
    ran: u64,
}

/// Whether a request was completed, for its client.
fn is_completed(end: &End) -> bool {
    matches!(end, End::Told(response) if response["status"] == "completed")
}

/// Retries a request until it is completed, with faults, and then once more.
fn order(
    ground: &mut Ground,
    counts: &mut Counts,
    (code, key): (&str, String),
    trouble: Trouble,
    streamed: bool,
) -> Result<(), String> {
    counts.cases += 1;
    ground.models.expect(code, opening(code));
    ground.models.fail(code, trouble.outage());
    let body = json!({
        // Each request has a model of its own, so that no breaker affects the others.
        "model": format!("openairesponses/model-{code}"),
        "input": format!("[[case {code}]] Charge it."),
        "tools": [{"type": "mcp", "server_label": "bank", "require_approval": "never"}],
        "stream": streamed,
        "store": trouble != Trouble::NotStored,
    });
    let request = Request::post("/v1/responses", body.to_string()).with("idempotency-key", key);
    let mut end = send(&ground.address, &request)?;
    if trouble == Trouble::NotStored {
        counts.refused += 1;
        let asked = ground.models.asked(code);
        return match end {
            End::Refused(400, error)
                if error["error"]["code"] == "idempotency_requires_store" && asked == 0 =>
            {
                Ok(())
            }
            other => Err(format!("the model is asked {asked} times, and {other:?}")),
        };
    }
    if trouble.outage().is_some() == is_completed(&end) {
        return Err(format!("the first time it ends with {end:?}"));
    }
    let done_before = ground.charge_server.charges(code)?.len();
    if trouble.restarts() {
        ground.restart("")?;
    }
    ground.models.fail(code, None);
    if trouble.outage().is_some() {
        end = send(&ground.address, &request)?;
        counts.retried += 1;
        counts.adopted += u64::from(done_before > 0);
    }
    let End::Told(told) = end else {
        return Err(format!("it ends with {end:?}"));
    };
    if told["status"] != "completed" {
        return Err(format!("it ends with {told}"));
    }
    counts.completed += 1;
    // From now on the answer must not change.
    match send(&ground.address, &request)? {
        End::Told(again) if again == told => {}
        other => return Err(format!("{told} was told, and then {other:?}")),
    }
    let read = ground.read(told["id"].as_str().unwrap_or_default())?;
    if read != told {
        return Err(format!("{told} was told, and the record says {read}"));
    }
    let charges = ground.charge_server.charges(code)?.len();
    counts.ran += charges as u64;
    match charges {
        1 => Ok(()),
        count => Err(format!("the tool ran {count} times for {read}")),
    }
}

/// R8 over HTTP: keys of text and of other bytes, with unstored requests, failing upstreams and
/// killed servers.
#[test]
fn r8_over_http_a_key_is_honoured_or_refused_whatever_fails() {
    let name = "r8_over_http_a_key_is_honoured_or_refused_whatever_fails";
    let Some(python) = python(name) else { return };
    let mut counts = Counts::default();
    let mut started = None;
    property("r8 keys over http", 21, |rng: &mut Rng, _| {
        let ground = match &mut started {
            Some(ground) => ground,
            empty => empty.insert(Ground::start(&python)?),
        };
        let code = format!("k{:012x}", rng.next_u64() >> 16);
        let trouble = TROUBLES[counts.cases % TROUBLES.len()];
        let key = match rng.bool() {
            true => code.clone(),
            false => format!("{code}-Ebbe-und-Flüße-潮"),
        };
        let streamed = rng.bool();
        let case = format!("{key}: {trouble:?}, streamed={streamed}");
        let ordered = order(ground, &mut counts, (&code, key), trouble, streamed);
        ordered.map_err(|error| format!("{case}: {error}"))
    });
    let Counts {
        cases,
        refused,
        retried,
        adopted,
        completed,
        ran,
    } = counts;
    println!(
        "campaign r8 keys over http: cases={cases} refused={refused} retried={retried} adopted={adopted} completed={completed} tool_ran={ran} changed=0 doubled=0"
    );
    assert!(cases < 21 || refused > 0 && adopted > 0 && retried > adopted);
}
