//! Eight writers on one conversation, through two servers on one store, with each `on_busy`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use throughline_testkit::serverkill::{Exchange, Request};
use throughline_testkit::{Rng, Scratch, property};

use crate::serverkill::process::Process;

const WRITERS: u64 = 8;

/// Turns of each writer in one race.
const TURNS: u64 = 20;

/// Statuses and codes that a writer may be answered with.
const DOCUMENTED: [(u16, &str); 2] = [(409, "conversation_locked"), (503, "overloaded")];

/// What came of the turns of one race.
#[derive(Default)]
struct Tally {
    /// Responses by the text that was asked.
    answered: BTreeMap<String, Value>,
    refused: u64,
}

fn send(address: &str, request: &Request) -> Result<(u16, Value), String> {
    let mut answer = Exchange::open(address, request).map_err(|error| error.to_string())?;
    let body = answer.whole().map_err(|error| error.to_string())?;
    let body = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    Ok((answer.status, body))
}

fn ok(address: &str, request: &Request) -> Result<Value, String> {
    match send(address, request)? {
        (200, body) => Ok(body),
        (status, body) => Err(format!("{status}: {body}")),
    }
}

/// The turns of one writer. A refused turn is sent again.
fn write(
    address: &str,
    (conversation, on_busy): (&str, &str),
    (writer, turns): (u64, u64),
    turn: &AtomicU64,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for number in 0..turns {
        let text = format!("turn {writer}.{number}");
        let body = json!({"model": "demo", "conversation": conversation, "input": text,
            "throughline": {"on_busy": on_busy}});
        let request = Request::post("/v1/responses", body.to_string());
        loop {
            let (status, answer) = send(address, &request)?;
            if status == 200 {
                tally.answered.insert(text, answer);
                turn.fetch_add(1, Ordering::Relaxed);
                break;
            }
            let code = answer["error"]["code"].as_str().unwrap_or_default();
            // An empty conversation has no head from which a branch could begin, and a request that
            // interrupts another may be interrupted itself before it begins.
            let may_be_refused = matches!(on_busy, "reject" | "branch" | "interrupt");
            if !DOCUMENTED.contains(&(status, code)) || !may_be_refused {
                return Err(format!("{on_busy}: {status}: {answer}"));
            }
            tally.refused += 1;
            std::thread::yield_now();
        }
    }
    Ok(tally)
}

fn text(item: &Value) -> &str {
    item["content"][0]["text"].as_str().unwrap_or_default()
}

/// All items of a list, oldest first.
fn listed(address: &str, path: &str) -> Result<Vec<Value>, String> {
    let mut items: Vec<Value> = Vec::new();
    loop {
        let after = items.last().and_then(|last| last["id"].as_str());
        let after = after.map_or(String::new(), |id| format!("&after={id}"));
        let request = Request::get(format!("{path}?order=asc&limit=100{after}"));
        let page = ok(address, &request)?;
        items.extend(page["data"].as_array().cloned().unwrap_or_default());
        if page["has_more"] != json!(true) {
            return Ok(items);
        }
    }
}

/// Turns of a conversation, in order: what was asked, and whether an answer follows.
fn turns(items: &[Value]) -> Result<Vec<(String, bool)>, String> {
    let mut turns: Vec<(String, bool)> = Vec::new();
    for item in items {
        match (item["role"].as_str(), turns.last_mut()) {
            (Some("user"), _) => turns.push((text(item).to_owned(), false)),
            // What had come of an answer that was cancelled.
            (Some("assistant"), Some((_, false))) if item["status"] == "incomplete" => {}
            (Some("assistant"), Some((asked, answered @ false)))
                if text(item).contains(asked.as_str()) =>
            {
                *answered = true;
            }
            _ => return Err(format!("{item} does not belong there")),
        }
    }
    Ok(turns)
}

/// Everything that was acknowledged is there once, in one order that every response agrees with.
fn judge(
    address: &str,
    (conversation, on_busy): (&str, &str),
    tally: &Tally,
    rng: &mut Rng,
) -> Result<(usize, usize), String> {
    let items = listed(address, &format!("/v1/conversations/{conversation}/items"))?;
    let turns = turns(&items)?;
    let mut seen = BTreeMap::new();
    for (asked, answered) in &turns {
        if seen.insert(asked.clone(), *answered).is_some() {
            return Err(format!("{asked} is there twice"));
        }
    }
    let mut elsewhere = 0;
    for (asked, response) in &tally.answered {
        let completed = response["status"] == "completed";
        match (seen.get(asked), on_busy) {
            (Some(answered), _) if *answered == completed => {}
            (None, "branch") => elsewhere += 1,
            (found, _) => {
                return Err(format!(
                    "{asked}: {found:?} in the conversation, of {response}"
                ));
            }
        }
        let id = response["id"].as_str().unwrap_or_default();
        let read = ok(address, &Request::get(format!("/v1/responses/{id}")))?;
        if read != *response {
            return Err(format!("{response} was acknowledged, and is {read}"));
        }
        // What a response went on from is the beginning of the conversation.
        if seen.contains_key(asked) && rng.chance(0.05) {
            let inputs = listed(address, &format!("/v1/responses/{id}/input_items"))?;
            let before = inputs.len().saturating_sub(1);
            if inputs[..before] != items[..before] || text(&inputs[before]) != asked {
                return Err(format!("{id} went on from something else"));
            }
        }
    }
    Ok((turns.len(), elsewhere))
}

/// R5 and R8 over HTTP: writers race for one conversation.
#[test]
fn r5_writers_of_one_conversation_agree_on_one_order() {
    // 8 × 20 turns with each choice: 3,200 at `THROUGHLINE_SCALE=20`.
    let mut rounds = 0;
    for on_busy in ["reject", "queue", "branch", "interrupt"] {
        let mut place = None;
        let (mut done, mut refused, mut branches, mut cancelled) = (0, 0, 0, 0);
        property(
            &format!("r5 conversation {on_busy}"),
            1,
            |rng: &mut Rng, _| {
                if place.is_none() {
                    let scratch = Scratch::in_memory("conversations");
                    let store = scratch.sqlite("store.db");
                    let (models, url) = Process::start(&["models", "openai-chat"], "")?;
                    let serve = ["serve", &store, "0", "openai-chat", &url];
                    let one = Process::start(&serve, "")?;
                    let two = Process::start(&serve, "")?;
                    place = Some((scratch, models, one, two));
                }
                let Some((_, _, (_, first), (_, second))) = &place else {
                    return Ok(());
                };
                let made = ok(first, &Request::post("/v1/conversations", "{}"))?;
                let id = made["id"].as_str().unwrap_or_default().to_owned();
                let turn = AtomicU64::new(0);
                let tallies = std::thread::scope(|scope| {
                    let writers: Vec<_> = (0..WRITERS)
                        .map(|writer| {
                            let address = if writer % 2 == 0 { first } else { second };
                            let (id, turn) = (id.as_str(), &turn);
                            scope
                                .spawn(move || write(address, (id, on_busy), (writer, TURNS), turn))
                        })
                        .collect();
                    let joined = writers.into_iter().map(std::thread::ScopedJoinHandle::join);
                    let joined =
                        joined.map(|one| one.unwrap_or_else(|_| Err("it panicked".to_owned())));
                    joined.collect::<Result<Vec<Tally>, String>>()
                })?;
                let mut all = Tally::default();
                for tally in tallies {
                    all.answered.extend(tally.answered);
                    all.refused += tally.refused;
                }
                let (turns, elsewhere) = judge(second, (&id, on_busy), &all, rng)?;
                rounds += 1;
                done += turns;
                branches += elsewhere;
                refused += all.refused;
                let is_cancelled = |one: &&Value| one["status"] == "cancelled";
                cancelled += all.answered.values().filter(is_cancelled).count();
                Ok(())
            },
        );
        println!(
            "campaign r5 conversation {on_busy}: turns={done} branches={branches} refused={refused} cancelled={cancelled} doubled=0 lost=0"
        );
    }
    assert!(rounds > 0, "no race was run");
}
