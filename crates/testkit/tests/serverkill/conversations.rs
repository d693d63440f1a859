//! Eight writers on one conversation, through two servers on one store, with each `on_busy`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_store::{Alias, At, Authority, Store, Tenant};
use throughline_testkit::checkers::append_log::{Append, History, Outcome, Read};
use throughline_testkit::record::block_on;
use throughline_testkit::serverkill::{Exchange, Request};
use throughline_testkit::{Scratch, property};

use crate::serverkill::process::Process;

const WRITERS: u64 = 8;

/// Turns of each writer on a conversation: 1,000 at `THROUGHLINE_SCALE=20`.
const TURNS: u64 = 50;

/// How many whole reads of a conversation are kept for the checker, about.
const READS: usize = 40;

/// How many responses are asked for what they went on from.
const SAMPLED: usize = 20;

/// Statuses and codes that a writer may be answered with.
const DOCUMENTED: [(u16, &str); 2] = [(409, "conversation_locked"), (503, "overloaded")];

/// One conversation, and what its writers and its reader saw.
struct Race<'a> {
    on_busy: &'static str,
    conversation: String,
    servers: [&'a str; 2],
    /// How many turns each writer takes.
    turns: u64,
    started: Instant,
    next: AtomicU64,
    is_over: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    history: History,
    /// The response of each turn that was answered, and whether it moved the head.
    answered: BTreeMap<u64, (Value, bool)>,
}

/// An answer: its status, whether it names a new head, and its body.
struct Answered {
    status: u16,
    moved_head: bool,
    body: Value,
}

fn send(address: &str, request: &Request) -> Result<Answered, String> {
    let mut answer = Exchange::open(address, request).map_err(|error| error.to_string())?;
    let body = answer.whole().map_err(|error| error.to_string())?;
    Ok(Answered {
        status: answer.status,
        moved_head: answer.header("etag").is_some(),
        body: serde_json::from_slice(&body).map_err(|error| error.to_string())?,
    })
}

pub(crate) fn ok(address: &str, request: &Request) -> Result<Value, String> {
    match send(address, request)? {
        Answered {
            status: 200, body, ..
        } => Ok(body),
        Answered { status, body, .. } => Err(format!("{status}: {body}")),
    }
}

fn text(item: &Value) -> &str {
    item["content"][0]["text"].as_str().unwrap_or_default()
}

/// The number of a turn, from what was asked.
fn number(asked: &str) -> Option<u64> {
    asked.strip_prefix("turn ")?.parse().ok()
}

/// Items of a list after one of them, oldest first.
pub(crate) fn listed(
    address: &str,
    path: &str,
    after: Option<&Value>,
) -> Result<Vec<Value>, String> {
    let mut items: Vec<Value> = Vec::new();
    loop {
        let after = items.last().or(after).and_then(|last| last["id"].as_str());
        let after = after.map_or(String::new(), |id| format!("&after={id}"));
        let request = Request::get(format!("{path}?order=asc&limit=100{after}"));
        let page = ok(address, &request)?;
        items.extend(page["data"].as_array().cloned().unwrap_or_default());
        if page["has_more"] != json!(true) {
            return Ok(items);
        }
    }
}

/// Turns of a conversation, in order: their numbers, and whether an answer follows.
fn turns(items: &[Value]) -> Result<Vec<(u64, bool)>, String> {
    let mut turns: Vec<(u64, bool)> = Vec::new();
    for item in items {
        match (item["role"].as_str(), turns.last_mut()) {
            (Some("user"), _) => {
                let asked = number(text(item));
                turns.push((asked.ok_or_else(|| format!("nobody said {item}"))?, false));
            }
            // What had come of an answer that was cancelled.
            (Some("assistant"), Some((_, false))) if item["status"] == "incomplete" => {}
            (Some("assistant"), Some((asked, answered @ false)))
                if text(item).contains(&format!("\"turn {asked}\"")) =>
            {
                *answered = true;
            }
            _ => return Err(format!("{item} does not belong there")),
        }
    }
    Ok(turns)
}

impl Race<'_> {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn path(&self) -> String {
        format!("/v1/conversations/{}/items", self.conversation)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        let seen = self.seen.lock();
        seen.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The turns of one writer. One that is refused is asked again, under another number.
    fn write(&self, writer: u64) -> Result<(), String> {
        let address = self.servers[writer as usize % self.servers.len()];
        // An empty conversation has no head from which a branch could begin, and a request that
        // interrupts another may be interrupted itself before it begins.
        let may_be_refused = matches!(self.on_busy, "reject" | "branch" | "interrupt");
        let mut done = 0;
        while done < self.turns {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let body = json!({"model": "demo", "conversation": self.conversation,
                "input": format!("turn {id}"), "throughline": {"on_busy": self.on_busy}});
            let request = Request::post("/v1/responses", body.to_string());
            let begun = self.now();
            let answer = send(address, &request)?;
            let ended = Some(self.now());
            let code = answer.body["error"]["code"].as_str().unwrap_or_default();
            let is_documented = may_be_refused && DOCUMENTED.contains(&(answer.status, code));
            if answer.status != 200 && !is_documented {
                let Answered { status, body, .. } = answer;
                return Err(format!("{}: {status}: {body}", self.on_busy));
            }
            let outcome = match answer.moved_head {
                true => Outcome::Acknowledged,
                // Refused, or a branch, which is not in the conversation either.
                false => Outcome::Refused,
            };
            let mut seen = self.seen();
            seen.history.appends.push(Append {
                id,
                run: id,
                process: writer,
                begun,
                ended,
                outcome,
            });
            if answer.status == 200 {
                let moved_head = answer.moved_head;
                seen.answered.insert(id, (answer.body, moved_head));
                done += 1;
            }
            drop(seen);
            if answer.status != 200 {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Reads what is new of the conversation now and then, until all writers are done.
    fn read(&self) -> Result<(), String> {
        let (mut items, mut next): (Vec<Value>, usize) = (Vec::new(), 0);
        let apart = (self.turns * WRITERS) as usize / READS;
        while !self.is_over.load(Ordering::SeqCst) {
            if self.seen().answered.len() < next {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            next += apart;
            let begun = self.now();
            let fresh = listed(self.servers[1], &self.path(), items.last())?;
            let ended = self.now();
            items.extend(fresh);
            let ids = turns(&items)?.into_iter().map(|(id, _)| id).collect();
            self.seen().history.reads.push(Read {
                process: WRITERS,
                begun,
                ended,
                ids,
            });
        }
        Ok(())
    }

    fn run(&self) -> Result<(), String> {
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| self.read());
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || self.write(writer)))
                .collect();
            let written = writers.into_iter().map(std::thread::ScopedJoinHandle::join);
            let panicked = |_| Err("a client panicked".to_owned());
            let written: Vec<_> = written.map(|done| done.unwrap_or_else(panicked)).collect();
            self.is_over.store(true, Ordering::SeqCst);
            let read = reader.join().unwrap_or_else(panicked);
            written.into_iter().chain([read]).collect()
        })
    }

    /// Everything that was acknowledged is there once, in one order that every read and every response
    /// agrees with. `recorded` are the turns of the record.
    fn judge(&self, recorded: &[(u64, bool)]) -> Result<Figures, String> {
        let address = self.servers[1];
        let mut seen = std::mem::take(&mut *self.seen());
        seen.history.order = recorded.iter().map(|(id, _)| *id).collect();
        let anomalies = seen.history.check();
        if let Some(first) = anomalies.first() {
            return Err(format!("{} anomalies, the first: {first}", anomalies.len()));
        }
        let completed: BTreeSet<u64> = recorded
            .iter()
            .filter(|(_, answered)| *answered)
            .map(|(id, _)| *id)
            .collect();
        let mut figures = Figures {
            turns: recorded.len(),
            reads: seen.history.reads.len(),
            ..Figures::default()
        };
        figures.refused = seen.history.appends.len() - seen.answered.len();
        let apart = (seen.answered.len() / SAMPLED).max(1);
        for (place, (id, (response, moved_head))) in seen.answered.iter().enumerate() {
            let is_completed = response["status"] == "completed";
            figures.branches += usize::from(!moved_head);
            figures.cancelled += usize::from(response["status"] == "cancelled");
            if *moved_head && completed.contains(id) != is_completed {
                return Err(format!(
                    "turn {id} is not in the conversation as {response}"
                ));
            }
            if !moved_head && self.on_busy != "branch" {
                return Err(format!("turn {id} did not move the head: {response}"));
            }
            let name = response["id"].as_str().unwrap_or_default();
            let read = ok(address, &Request::get(format!("/v1/responses/{name}")))?;
            if read != *response {
                return Err(format!("{response} was acknowledged, and is {read}"));
            }
            if place % apart == 0 {
                self.judge_input(name, *id, &seen.history.order)?;
            }
        }
        Ok(figures)
    }

    /// What a response went on from is the beginning of the conversation, also of a branch: the newest of
    /// it are compared.
    fn judge_input(&self, response: &str, id: u64, order: &[u64]) -> Result<(), String> {
        let path = format!("/v1/responses/{response}/input_items?limit=100");
        let page = ok(self.servers[1], &Request::get(path))?;
        let mut inputs = page["data"].as_array().cloned().unwrap_or_default();
        inputs.reverse();
        let is_user = |item: &Value| item["role"] == "user";
        let from = inputs.iter().position(is_user).unwrap_or(0);
        let asked: Vec<u64> = turns(&inputs[from..])?
            .into_iter()
            .map(|turn| turn.0)
            .collect();
        let Some((own, before)) = asked.split_last() else {
            return Err(format!("{response} has no input"));
        };
        let fits = match before.first() {
            Some(first) => {
                let start = order.iter().position(|one| one == first);
                start.is_some_and(|start| order[start..].starts_with(before))
            }
            None => true,
        };
        let is_first = page["has_more"] == json!(false) && !order.starts_with(before);
        match fits && !is_first && *own == id {
            true => Ok(()),
            false => Err(format!("{response} went on from something else: {asked:?}")),
        }
    }
}

/// The turns of a conversation in the record.
fn recorded(store: &str, conversation: &str) -> Result<Vec<(u64, bool)>, String> {
    let said = |error: throughline_store::Error| error.to_string();
    let store = block_on(Store::open(store)).map_err(said)?;
    let scope = Authority::assume().scope(Tenant::new("local").map_err(|error| error.to_string())?);
    let at = At::Alias(Alias::new("conversation", conversation));
    let opened = block_on(store.open(&scope, &at, usize::MAX)).map_err(said)?;
    let items = opened.entries.iter().map(|entry| {
        let text = entry.message.text();
        // What had come of an answer that was cancelled has no end.
        let status = match text.ends_with('"') {
            true => "completed",
            false => "incomplete",
        };
        json!({"role": entry.message.role.as_str(), "status": status, "content": [{"text": text}]})
    });
    turns(&items.collect::<Vec<Value>>())
}

/// What came of the turns of one race.
#[derive(Debug, Default)]
struct Figures {
    turns: usize,
    branches: usize,
    refused: usize,
    cancelled: usize,
    reads: usize,
}

fn race(on_busy: &'static str) -> Result<Figures, String> {
    let scratch = Scratch::in_memory("conversations");
    let store = scratch.sqlite("store.db");
    let (_models, url) = Process::start(&["models", "openai-chat"], "")?;
    let serve = ["serve", &store, "0", "openai-chat", &url];
    let (_one, first) = Process::start(&serve, "")?;
    let (_two, second) = Process::start(&serve, "")?;
    let made = ok(&first, &Request::post("/v1/conversations", "{}"))?;
    let race = Race {
        on_busy,
        conversation: made["id"].as_str().unwrap_or_default().to_owned(),
        servers: [&first, &second],
        turns: property::scaled(TURNS) as u64,
        started: Instant::now(),
        next: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        seen: Mutex::default(),
    };
    race.run()?;
    let recorded = recorded(&store, &race.conversation)?;
    race.judge(&recorded)
}

/// A race, and the line about it.
fn told(on_busy: &'static str) -> Result<String, String> {
    let begun = Instant::now();
    let figures = race(on_busy).map_err(|error| format!("{on_busy}: {error}"))?;
    let Figures {
        turns,
        branches,
        refused,
        cancelled,
        reads,
    } = figures;
    Ok(format!(
        "campaign r5 conversation {on_busy}: writers={WRITERS} turns_each={} in_order={turns} branches={branches} refused={refused} cancelled={cancelled} reads={reads} anomalies=0 ms={}",
        property::scaled(TURNS),
        begun.elapsed().as_millis()
    ))
}

/// R5 and R8 over HTTP: writers race for one conversation, and its order is that of one log.
#[test]
fn r5_writers_of_one_conversation_are_refused_while_it_is_busy() -> Result<(), String> {
    println!("{}", told("reject")?);
    Ok(())
}

#[test]
fn r5_writers_of_one_conversation_wait_for_their_turn() -> Result<(), String> {
    println!("{}", told("queue")?);
    Ok(())
}

#[test]
fn r5_writers_of_one_conversation_branch_while_it_is_busy() -> Result<(), String> {
    println!("{}", told("branch")?);
    Ok(())
}

#[test]
fn r5_writers_of_one_conversation_interrupt_each_other() -> Result<(), String> {
    println!("{}", told("interrupt")?);
    Ok(())
}
