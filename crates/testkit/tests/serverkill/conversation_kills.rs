//! A server is killed while clients write to conversations: turns, items that are added, and items that are
//! taken out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use throughline_testkit::checkers::append_log::{Append, History, Outcome};
use throughline_testkit::loopkill::brackets;
use throughline_testkit::serverkill::{Exchange, ModelCall, Request, mark, said};
use throughline_testkit::{Rng, Scratch, property};

use crate::serverkill::conversations::{listed, ok};
use crate::serverkill::process::Process;
use crate::serverkill::settle;
use crate::serverkill::transports::{APART, LIVES, lives};
use crate::serverkill::world::World;

const WRITERS: usize = 4;
const CONVERSATIONS: usize = 2;

/// How often a request is sent at most.
const PATIENCE: u32 = 2_000;

/// A write to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Turn,
    Items,
    /// Items that are taken out later, perhaps. They are in no log.
    Extra,
    Removal,
}

/// How a client says that it sends a request again.
#[derive(Clone, Copy, Debug)]
enum Guard {
    Key,
    Sdk,
}

/// What clients know of one conversation.
#[derive(Default)]
struct Known {
    id: String,
    /// Turns and items.
    appends: Vec<Append>,
    /// Responses of the turns that were acknowledged.
    responses: BTreeMap<String, Value>,
    /// Extra items that are there, by their codes.
    extra: BTreeMap<String, String>,
    removed: BTreeSet<String>,
}

/// What a request came to.
enum Done {
    Answer(Value),
    /// Its run was killed too often.
    GivenUp,
    /// The item is not there any more.
    Missing,
}

/// The counts.
#[derive(Default)]
struct Sum {
    kills: u64,
    turns: usize,
    items: usize,
    removed: usize,
    retries: u64,
    given_up: usize,
    calls: usize,
    redone: usize,
    keyed: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client of all conversations.
struct Writer<'w> {
    world: &'w World,
    place: usize,
    rng: Rng,
    known: &'w [Mutex<Known>],
    retries: &'w Mutex<u64>,
    started: Instant,
    next: u64,
}

impl Writer<'_> {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn write_on(mut self) -> Result<(), String> {
        while !self.world.is_over() {
            let conversation = self.rng.below(self.known.len());
            let write = *self.rng.pick(&[
                Write::Turn,
                Write::Turn,
                Write::Items,
                Write::Extra,
                Write::Removal,
            ]);
            self.write(conversation, write)?;
        }
        Ok(())
    }

    fn write(&mut self, conversation: usize, write: Write) -> Result<(), String> {
        self.next += 1;
        let (id, code) = (name(self.place, self.next), code(self.place, self.next));
        let path = format!(
            "/v1/conversations/{}/items",
            lock(&self.known[conversation]).id
        );
        let request = match write {
            Write::Turn => {
                let body = json!({"model": "up/a-model", "input": said(&code),
                    "conversation": lock(&self.known[conversation]).id,
                    "throughline": {"on_busy": "queue"}});
                Request::post("/v1/responses", body.to_string())
            }
            Write::Items | Write::Extra => {
                let text = match write {
                    Write::Extra => format!("[[extra {code}]]"),
                    _ => said(&code),
                };
                let items = json!({"items": [{"role": "user", "content": text}]});
                Request::post(&path, items.to_string())
            }
            Write::Removal => {
                let mut known = lock(&self.known[conversation]);
                let Some((code, item)) = known.extra.pop_first() else {
                    return Ok(());
                };
                known.removed.insert(code);
                Request {
                    method: "DELETE",
                    ..Request::get(format!("{path}/{item}"))
                }
            }
        };
        let guard = *self.rng.pick(&[Guard::Key, Guard::Sdk]);
        let begun = self.now();
        let done = self.send(&request, &code, guard)?;
        let ended = self.now();
        let mut known = lock(&self.known[conversation]);
        let outcome = match &done {
            Done::GivenUp => Outcome::Unknown,
            Done::Answer(_) | Done::Missing => Outcome::Acknowledged,
        };
        if matches!(write, Write::Turn | Write::Items) {
            known.appends.push(Append {
                id,
                run: id,
                process: self.place as u64,
                begun,
                ended: Some(ended),
                outcome,
            });
        }
        match (write, done) {
            (Write::Turn, Done::Answer(response)) => {
                known.responses.insert(code, response);
            }
            (Write::Extra, Done::Answer(list)) => {
                let item = list["data"][0]["id"].as_str();
                let item = item.ok_or_else(|| format!("{code} was added as {list}"))?;
                known.extra.insert(code, item.to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// Send a request until it is answered.
    fn send(&self, request: &Request, code: &str, guard: Guard) -> Result<Done, String> {
        for attempt in 0..PATIENCE {
            let request = match guard {
                Guard::Key => request.clone().with("idempotency-key", code),
                Guard::Sdk => {
                    let count = attempt.to_string();
                    request.clone().with("x-stainless-retry-count", count)
                }
            };
            let address = self.world.address()?;
            let answer = Exchange::open(&address, &request)
                .and_then(|mut one| Ok((one.status, one.whole()?)));
            *lock(self.retries) += u64::from(attempt > 0);
            let (status, body) = match answer {
                Ok((status, body)) => (status, String::from_utf8_lossy(&body).into_owned()),
                Err(_) => {
                    self.world.unreachable(&address);
                    continue;
                }
            };
            match status {
                200 => {
                    let body = serde_json::from_str(&body).map_err(|error| error.to_string())?;
                    return Ok(Done::Answer(body));
                }
                // The answer to the first attempt was lost.
                404 if request.method == "DELETE" && attempt > 0 => return Ok(Done::Missing),
                500 if body.contains("given up after") => return Ok(Done::GivenUp),
                // Busy, still being answered, or the server stops.
                409 | 503 => std::thread::yield_now(),
                _ => return Err(format!("{code}: {status}: {body}")),
            }
        }
        Err(format!("{code} is not answered"))
    }
}

/// The number of a write, for the checker.
fn name(place: usize, number: u64) -> u64 {
    place as u64 * 1_000_000 + number
}

fn code(place: usize, number: u64) -> String {
    format!("w{place}.{number}")
}

fn number(code: &str) -> Option<u64> {
    let (place, number) = code.strip_prefix('w')?.split_once('.')?;
    Some(name(place.parse().ok()?, number.parse().ok()?))
}

fn text(item: &Value) -> &str {
    item["content"][0]["text"].as_str().unwrap_or_default()
}

/// A conversation after the last kill: its log is one order of what was acknowledged, every answer follows
/// its turn, and what was taken out is gone.
fn judge(address: &str, known: &Known, sum: &mut Sum) -> Result<Vec<String>, String> {
    let items = listed(
        address,
        &format!("/v1/conversations/{}/items", known.id),
        None,
    )?;
    let (mut order, mut extra): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut answered = BTreeSet::new();
    for item in &items {
        let text = text(item);
        match item["role"].as_str() {
            Some("user") => {
                order.extend(brackets(text, "turn").map(str::to_owned));
                extra.extend(brackets(text, "extra").map(str::to_owned));
            }
            Some("assistant") => {
                let of = mark(text).and_then(|mark| mark.split('/').next());
                let (Some(of), true) = (of, of == order.last().map(String::as_str)) else {
                    return Err(format!("{item} does not follow its turn"));
                };
                answered.insert(of.to_owned());
            }
            _ => return Err(format!("{item} does not belong there")),
        }
    }
    let numbers = order.iter().map(|code| number(code));
    let history = History {
        appends: known.appends.clone(),
        reads: Vec::new(),
        order: numbers.collect::<Option<_>>().ok_or("a code is not ours")?,
    };
    if let Some(anomaly) = history.check().first() {
        return Err(format!("{}: {anomaly} in {order:?}", known.id));
    }
    let found: BTreeSet<&String> = extra.iter().collect();
    let wanted: BTreeSet<&String> = known.extra.keys().collect();
    if found != wanted || found.len() != extra.len() {
        return Err(format!(
            "{}: extra items {extra:?}, expected {wanted:?}",
            known.id
        ));
    }
    for (code, response) in &known.responses {
        let id = response["id"].as_str().unwrap_or_default();
        let read = ok(address, &Request::get(format!("/v1/responses/{id}")))?;
        if read != *response {
            return Err(format!(
                "{code} was acknowledged as {response} and is {read}"
            ));
        }
        if (response["status"] == "completed") != answered.contains(code) {
            return Err(format!("{code} is not in the conversation as {response}"));
        }
    }
    sum.turns += known.responses.len();
    sum.items += known.appends.len() - known.responses.len() + known.extra.len();
    sum.removed += known.removed.len();
    let unknown = |append: &&Append| append.outcome == Outcome::Unknown;
    sum.given_up += known.appends.iter().filter(unknown).count();
    Ok(order)
}

/// Every model call had what stood in the conversation before its turn, in order.
fn judge_calls(calls: &[ModelCall], orders: &[Vec<String>], sum: &mut Sum) -> Result<(), String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls {
        let Some((own, before)) = call.turns.split_last() else {
            return Err("the upstream was asked for nothing".to_owned());
        };
        let is_prefix = orders.iter().any(|order| {
            let place = order.iter().position(|code| code == own);
            order.starts_with(before) && place.is_none_or(|place| place == before.len())
        });
        if !is_prefix {
            return Err(format!("{own} was asked for after {before:?}"));
        }
        *counts.entry(own).or_default() += 1;
    }
    for (code, count) in counts {
        // Once, and once more for each process that died with the call under way.
        if count as u64 > LIVES + 1 {
            return Err(format!("{code} was asked for {count} times"));
        }
        sum.redone += count - 1;
    }
    sum.calls += calls.len();
    Ok(())
}

fn line(rng: &mut Rng, sum: &mut Sum) -> Result<(), String> {
    let scratch = Scratch::in_memory("conversation-kills");
    let store = scratch.sqlite("store.db");
    let (mut models, url) = Process::start(&["models", "openai-chat"], "")?;
    let mut life = 0;
    let mut start = |faults: &str| {
        life += 1;
        let ahead = (life * APART).to_string();
        Process::start(&["serve", &store, &ahead, "openai-chat", &url], faults)
    };
    let mut known: Vec<Mutex<Known>> = Vec::new();
    {
        let (_first, address) = start("")?;
        for _ in 0..CONVERSATIONS {
            let made = ok(&address, &Request::post("/v1/conversations", "{}"))?;
            let id = made["id"].as_str().unwrap_or_default().to_owned();
            known.push(Mutex::new(Known {
                id,
                ..Known::default()
            }));
        }
    }
    let (world, retries, started) = (World::default(), Mutex::new(0), Instant::now());
    let killed = std::thread::scope(|scope| {
        let mut writers = Vec::new();
        for place in 0..WRITERS {
            let writer = Writer {
                world: &world,
                place,
                rng: rng.fork(),
                known: &known,
                retries: &retries,
                started,
                next: 0,
            };
            let world = &world;
            writers.push(scope.spawn(move || {
                if let Err(error) = writer.write_on() {
                    world.wrong(error);
                }
            }));
        }
        let killed = lives(&world, rng, &mut start).and_then(|kills| {
            sum.kills += kills;
            let last = start("")?;
            world.starts(&last.1);
            Ok(last)
        });
        match &killed {
            Ok(_) => world.ends(),
            Err(error) => world.wrong(error.clone()),
        }
        for writer in writers {
            writer.join().map_err(|_| "a client panicked")?;
        }
        killed
    });
    world.verdict()?;
    let (_server, address) = killed?;
    let known: Vec<Known> = known
        .into_iter()
        .map(|known| known.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();
    let mut orders = Vec::new();
    for known in &known {
        orders.push(judge(&address, known, sum)?);
        // It can still be used.
        let body =
            json!({"model": "demo", "conversation": known.id, "input": "How many messages?"});
        ok(&address, &Request::post("/v1/responses", body.to_string()))?;
    }
    judge_calls(&settle::asked(&models.said(1)?)?, &orders, sum)?;
    sum.keyed += settle::runs(&store)?;
    sum.retries += retries.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(())
}

/// R1, R5 and R8 for conversations: what was acknowledged is there once, in one order that agrees with the
/// order of time and with what the model was sent; what was taken out is gone.
#[test]
fn r1_writes_to_conversations_outlive_their_servers() {
    let mut sum = Sum::default();
    property("r1 conversations", 1, |rng: &mut Rng, _| {
        line(rng, &mut sum)
    });
    println!(
        "campaign r1 conversations: kills={} turns={} items={} removed={} lost=0 doubled=0 anomalies=0 given_up={}",
        sum.kills, sum.turns, sum.items, sum.removed, sum.given_up
    );
    println!(
        "campaign r8 conversations: retries={} keyed_runs={} doubled=0 model_calls={} redone_after_a_kill={}",
        sum.retries, sum.keyed, sum.calls, sum.redone
    );
    assert!(
        sum.retries > 0 && sum.turns > 0 && sum.items > 0,
        "void: the kills met nothing"
    );
}
