use std::collections::BTreeMap;

use throughline_model::{
    Arguments, CallId, Content, Family, Message, Outcome, Output, Place, Role, Scope, ToolCall,
    ToolResult,
};
use throughline_model::{Body, stored::StoredError};
use throughline_store::{Flush, RunId, StoredEvent, ThreadId};
use throughline_testkit::{Rng, generate, messages, property};

use super::{BadEvent, decode, encode};
use crate::run::RunEvent;
use crate::thread::StopReason;

fn call() -> ToolCall {
    ToolCall::function(CallId::natural("call_1").unwrap(), "get_tide", "{}")
}

/// One event of each kind.
fn samples() -> Vec<RunEvent> {
    let at = Place::new(0, 1, 0);
    vec![
        RunEvent::Started {
            run: RunId::from_bytes([7; 16]),
            thread: ThreadId::new("ticket-4711").unwrap(),
        },
        RunEvent::Asked { step: 300 },
        RunEvent::Text {
            step: 0,
            at,
            delta: "High water is at 04:12 – höchstens.".to_owned(),
        },
        RunEvent::Reasoning {
            step: 1,
            at,
            delta: "springs".to_owned(),
        },
        RunEvent::Content {
            step: 1,
            at,
            content: Content::from(call()),
        },
        RunEvent::Dispatched {
            step: 1,
            position: 2,
            call: CallId::minted(Scope::Response("resp_1"), 0),
            tool: "get_tide".to_owned(),
        },
        RunEvent::Result {
            step: 1,
            position: 2,
            result: call().answer(Outcome::Ok, Output::Text("04:12".to_owned())),
        },
        RunEvent::Message(Message::new(Role::Assistant, vec![Content::text("04:12")])),
        RunEvent::Ended {
            stop: StopReason::Done,
        },
        RunEvent::Incomplete { step: 1, at },
        RunEvent::Summary {
            step: 1,
            at,
            part: 200,
            delta: "springs and neaps".to_owned(),
        },
        RunEvent::Refusal {
            step: 1,
            at,
            delta: "not today".to_owned(),
        },
    ]
}

/// A number of any size, small ones more often.
fn number(rng: &mut Rng) -> u64 {
    let bits = rng.below(64);
    rng.next_u64() >> bits
}

fn small(rng: &mut Rng) -> u32 {
    (number(rng) >> 32) as u32
}

fn place(rng: &mut Rng) -> Place {
    let mut next = || number(rng) as usize;
    Place::new(next(), next(), next())
}

/// Some content of a message that has any.
fn content(rng: &mut Rng) -> Content {
    let mut message = messages::anything(rng, 6);
    message.contents.pop().unwrap_or_else(|| Content::text(""))
}

fn call_id(rng: &mut Rng) -> CallId {
    let length = rng.range(1..=20);
    let word = generate::text(rng, length);
    match rng.below(3) {
        0 => CallId::natural(&word),
        1 => CallId::item(&word),
        _ => None,
    }
    .unwrap_or_else(|| CallId::minted(Scope::Place(rng.below(9)), rng.below(9)))
}

fn result(rng: &mut Rng) -> ToolResult {
    for _ in 0..40 {
        if let Body::ToolResult(result) = content(rng).body {
            return result;
        }
    }
    let output = Output::Parts(vec![content(rng)]);
    ToolResult::standalone(call_id(rng), Family::FUNCTION, output)
}

fn any_event(rng: &mut Rng, size: usize) -> RunEvent {
    let (step, at, position) = (small(rng), place(rng), small(rng));
    match rng.below(12) {
        0 => RunEvent::Started {
            run: RunId::from_bytes(std::array::from_fn(|_| rng.below(256) as u8)),
            thread: ThreadId::new(&format!("t{}", rng.next_u64())).unwrap(),
        },
        1 => RunEvent::Asked { step },
        2 => RunEvent::Text {
            step,
            at,
            delta: generate::text(rng, size),
        },
        3 => RunEvent::Reasoning {
            step,
            at,
            delta: generate::text(rng, size),
        },
        4 => RunEvent::Content {
            step,
            at,
            content: content(rng),
        },
        10 => RunEvent::Summary {
            step,
            at,
            part: position,
            delta: generate::text(rng, size),
        },
        11 => RunEvent::Refusal {
            step,
            at,
            delta: generate::text(rng, size),
        },
        5 => RunEvent::Dispatched {
            step,
            position,
            call: call_id(rng),
            tool: generate::text(rng, size % 30),
        },
        6 => RunEvent::Result {
            step,
            position,
            result: result(rng),
        },
        7 => RunEvent::Message(messages::anything(rng, size)),
        8 => RunEvent::Incomplete { step, at },
        _ => RunEvent::Ended {
            stop: *rng.pick(&StopReason::ALL),
        },
    }
}

#[test]
fn what_is_read_is_what_was_written() {
    let mut seen: BTreeMap<u16, u32> = BTreeMap::new();
    property("events are stored without loss", 4000, |rng, size| {
        let event = any_event(rng, size);
        let stored = encode(&event);
        *seen.entry(stored.kind).or_default() += 1;
        // Through a flush, as the store keeps them.
        let flush = Flush::new(0, std::slice::from_ref(&stored));
        let back = flush.events().ok_or("the flush is damaged")?;
        match decode(&back[0]) {
            Ok(read) if read == event => Ok(()),
            other => Err(format!("{event:?} became {other:?}")),
        }
    });
    println!("events of each kind: {seen:?}");
}

#[test]
fn every_kind_has_its_number_for_good() {
    let kinds: Vec<u16> = samples().iter().map(|event| encode(event).kind).collect();
    assert_eq!(kinds, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    for event in samples() {
        assert_eq!(decode(&encode(&event)), Ok(event));
    }
}

/// The bytes themselves, because files have them.
#[test]
fn bytes_stay_what_they_are() {
    let text = RunEvent::Text {
        step: 300,
        at: Place::new(0, 1, 2),
        delta: "Hel".to_owned(),
    };
    assert_eq!(encode(&text).body, b"\xAC\x02\x00\x01\x02Hel");
    let dispatched = RunEvent::Dispatched {
        step: 1,
        position: 0,
        call: CallId::item("c").unwrap(),
        tool: "t".to_owned(),
    };
    let body = r#"{"kind":"tool_call","call":"c","origin":"item","family":"function","name":"t"}"#;
    assert_eq!(
        encode(&dispatched).body,
        format!("\u{1}\0{body}").as_bytes()
    );
    let ended = RunEvent::Ended {
        stop: StopReason::RoundLimit,
    };
    assert_eq!(encode(&ended).body, b"round_limit");
}

#[test]
fn damaged_bytes_are_never_a_panic() {
    let (mut read, mut refused) = (0u32, 0u32);
    let mut look = |kind: u16, body: Vec<u8>| match decode(&StoredEvent { kind, body }) {
        Ok(_) => read += 1,
        Err(_) => refused += 1,
    };
    for event in samples() {
        let StoredEvent { kind, body } = encode(&event);
        for cut in 0..body.len() {
            look(kind, body[..cut].to_vec());
            look(kind, body[cut..].to_vec());
        }
        for place in 0..body.len() {
            for bits in 1..=255u8 {
                let mut body = body.clone();
                body[place] ^= bits;
                look(kind, body);
            }
        }
        // The body of one kind under the number of another.
        for other in 0..=11 {
            look(other, body.clone());
        }
    }
    println!("damaged events: {read} read, {refused} refused");
    assert!(refused > read, "{read} read, {refused} refused");
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let number = |body: &[u8]| {
        let body = body.to_vec();
        decode(&StoredEvent { kind: 2, body })
    };
    let damaged = |expected| Err(BadEvent::Damaged { kind: 2, expected });
    assert_eq!(
        number(b"\xFF\xFF\xFF\xFF\x0F"),
        Ok(RunEvent::Asked { step: u32::MAX })
    );
    assert_eq!(
        number(b"\xFF\xFF\xFF\xFF\x1F"),
        damaged("the number of a step")
    );
    assert_eq!(number(&[0x80; 11]), damaged("the number of a step"));
    assert_eq!(
        number(b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
        damaged("the number of a step")
    );
    assert_eq!(number(b"\x01\x01"), damaged("nothing more"));
}

#[test]
fn what_can_be_skipped_says_so() {
    let unknown = StoredEvent {
        kind: 4711,
        body: b"news".to_vec(),
    };
    let redacted = StoredEvent {
        kind: 3,
        body: Vec::new(),
    };
    let newer = StoredEvent {
        kind: 8,
        body: br#"{"v":9,"role":"user","contents":[]}"#.to_vec(),
    };
    let errors = [unknown, redacted, newer].map(|event| decode(&event).unwrap_err());
    assert_eq!(errors[0], BadEvent::Unknown { kind: 4711 });
    assert_eq!(errors[1], BadEvent::Redacted { kind: 3 });
    assert!(matches!(
        errors[2],
        BadEvent::Unreadable {
            kind: 8,
            source: StoredError::Newer { version: 9, .. }
        }
    ));
    assert_eq!(
        errors.map(|error| error.can_be_skipped()),
        [true, true, false]
    );
}

#[test]
fn a_delta_costs_little_more_than_its_text() {
    let mut most = 0;
    for length in [1, 3, 20, 127, 128, 4000, 1 << 20] {
        let delta = "x".repeat(length);
        let at = Place::new(0, 100, 3);
        for event in [
            RunEvent::Text {
                step: 99,
                at,
                delta: delta.clone(),
            },
            RunEvent::Reasoning {
                step: 99,
                at,
                delta,
            },
        ] {
            let stored = encode(&event);
            // A flush adds the number of the kind and the length, as many bytes as these need.
            let digits =
                |number: usize| (usize::BITS - number.leading_zeros()).div_ceil(7) as usize;
            let flushed = digits(stored.kind.into()) + digits(stored.body.len());
            most = most.max(stored.body.len() + flushed - length);
        }
    }
    println!("a delta costs at most {most} bytes beyond its text");
    assert!(most <= 8, "{most}");
}

#[test]
fn a_call_without_a_name_keeps_its_id() {
    let event = RunEvent::Dispatched {
        step: 0,
        position: 0,
        call: CallId::natural("ü\u{1F600}\"").unwrap(),
        tool: String::new(),
    };
    assert_eq!(decode(&encode(&event)), Ok(event));
    // Arguments are in the content that came before; here they would be stored twice.
    let full = RunEvent::Content {
        step: 0,
        at: Place::new(0, 0, 0),
        content: Content::from(ToolCall {
            arguments: Arguments::Text("{}".into()),
            ..call()
        }),
    };
    assert_eq!(decode(&encode(&full)), Ok(full));
}
