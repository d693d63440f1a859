//! A server is killed while responses are made in the background and over WebSockets, and while their
//! ends are posted to a webhook.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_testkit::serverkill::{Exchange, Request, said};
use throughline_testkit::{Rng, Scratch, property};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, connect};

use crate::serverkill::process::Process;
use crate::serverkill::settle;
use crate::serverkill::world::World;

/// How often the server dies on one store, and how many clients there are of each kind.
pub(crate) const LIVES: u64 = 12;
const CLIENTS: usize = 3;

/// How far each server's clock is ahead of the one before: more than a lease.
pub(crate) const APART: u64 = 10_500;

/// How long the last events may take to come: a refused one comes again after a pause.
const PATIENCE: Duration = Duration::from_secs(120);

const POINTS: [&str; 6] = [
    "begin.pre",
    "begin.post",
    "model.mid_stream",
    "step.post",
    "publish.commit_sent",
    "publish.post",
];

/// What clients know.
#[derive(Default)]
struct Known {
    /// Background responses that were acknowledged, by their codes.
    background: BTreeMap<String, String>,
    /// Turns of WebSockets whose last event came, with the response and the one before.
    turns: Vec<(String, Value, Option<String>)>,
    /// Turns of which no more than the first events came: code and response.
    begun: Vec<(String, String)>,
    /// Connections that broke in the middle of a turn.
    broken: u64,
    /// Requests that were sent again with their key.
    retries: u64,
}

/// A receiver of webhooks: what came, by response.
#[derive(Default)]
struct Received {
    events: BTreeMap<String, BTreeSet<(String, String)>>,
    deliveries: u64,
    refused: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers webhooks until it is over, and refuses some of them in each way.
fn receive(listener: &TcpListener, received: &Mutex<Received>, over: &AtomicBool, mut rng: Rng) {
    for stream in listener.incoming() {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let fate = rng.below(10);
        match answer(&stream, fate) {
            Ok(Some((id, event))) => {
                let mut received = lock(received);
                received.deliveries += 1;
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let response = text(&event["data"]["id"]);
                let kinds = received.events.entry(response).or_default();
                kinds.insert((id, text(&event["type"])));
            }
            Ok(None) | Err(_) => lock(received).refused += 1,
        }
    }
}

/// Reads one request, and answers it unless its fate is another.
fn answer(stream: &TcpStream, fate: usize) -> std::io::Result<Option<(String, Value)>> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream);
    let (mut length, mut id) = (0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "webhook-id" => value.clone_into(&mut id),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut out = stream;
    match fate {
        0 => Ok(None),
        1 => {
            out.write_all(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
            Ok(None)
        }
        _ => {
            out.write_all(b"HTTP/1.1 204 Fine\r\nconnection: close\r\n\r\n")?;
            Ok(Some((id, serde_json::from_slice(&body)?)))
        }
    }
}

/// Begins background responses, each under a key, until the end.
fn begin_in_background(world: &World, place: usize, known: &Mutex<Known>) -> Result<(), String> {
    let mut number = 0;
    while !world.is_over() {
        number += 1;
        let code = format!("b{place}.{number}");
        let body = json!({"model": "up/a-model", "input": said(&code), "background": true});
        let request = Request::post("/v1/responses", body.to_string());
        let request = request.with("idempotency-key", &code);
        let response = loop {
            let address = world.address()?;
            match Exchange::open(&address, &request)
                .and_then(|mut one| Ok((one.status, one.whole()?)))
            {
                Ok((200, body)) => {
                    let body: Value = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
                    break body["id"].as_str().unwrap_or_default().to_owned();
                }
                // Its outcome is not known yet, or the server stops.
                Ok((409 | 503, _)) => {}
                Ok((status, body)) => {
                    return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
                }
                Err(_) => world.unreachable(&address),
            }
            lock(known).retries += 1;
        };
        lock(known).background.insert(code, response);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

/// Takes turns over WebSockets, each of which continues the last one that was acknowledged.
fn talk(world: &World, place: usize, known: &Mutex<Known>) -> Result<(), String> {
    let (mut number, mut last) = (0, None::<String>);
    while !world.is_over() {
        let address = world.address()?;
        let Ok((mut socket, _)) = connect(format!("ws://{address}/v1/responses")) else {
            world.unreachable(&address);
            continue;
        };
        while !world.is_over() {
            number += 1;
            let code = format!("s{place}.{number}");
            let mut message = json!({"type": "response.create", "model": "up/a-model",
                "input": said(&code)});
            if let Some(last) = &last {
                message["previous_response_id"] = json!(last);
            }
            match turn(&mut socket, &message)? {
                (_, Some(response)) => {
                    let id = response["id"].as_str().unwrap_or_default().to_owned();
                    let before = last.replace(id);
                    lock(known).turns.push((code, response, before));
                }
                (begun, None) => {
                    let mut known = lock(known);
                    known.broken += 1;
                    known.begun.extend(begun.map(|response| (code, response)));
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The response of a message: its id, once it has begun, and the whole if its last event came.
fn turn(socket: &mut Socket, message: &Value) -> Result<(Option<String>, Option<Value>), String> {
    let mut begun = None;
    if socket.send(Message::text(message.to_string())).is_err() {
        return Ok((None, None));
    }
    loop {
        let text = match socket.read() {
            Ok(Message::Text(text)) => text,
            Ok(Message::Close(_)) | Err(_) => return Ok((begun, None)),
            Ok(_) => continue,
        };
        let event: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match event["type"].as_str() {
            Some("response.created") => {
                begun = event["response"]["id"].as_str().map(str::to_owned);
            }
            Some("response.completed") => return Ok((begun, Some(event["response"].clone()))),
            // The store of a server that dies may not say whether the end was stored.
            Some("error") if event["error"]["code"] == "outcome_unknown" => {
                return Ok((begun, None));
            }
            Some("error" | "response.failed") => return Err(format!("a turn failed: {event}")),
            _ => {}
        }
    }
}

fn read(address: &str, response: &str) -> Result<Value, String> {
    let request = Request::get(format!("/v1/responses/{response}"));
    let mut answer = Exchange::open(address, &request).map_err(|error| error.to_string())?;
    let body = answer.whole().map_err(|error| error.to_string())?;
    match answer.status {
        200 => serde_json::from_slice(&body).map_err(|error| error.to_string()),
        status => Err(format!(
            "{response}: {status}: {}",
            String::from_utf8_lossy(&body)
        )),
    }
}

/// A response once it has ended.
fn ended(address: &str, response: &str) -> Result<Value, String> {
    let begun = Instant::now();
    loop {
        let found = read(address, response)?;
        match found["status"].as_str() {
            Some("queued" | "in_progress") if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Some("queued" | "in_progress") => return Err(format!("{response} does not end")),
            _ => return Ok(found),
        }
    }
}

/// The counts.
#[derive(Default)]
struct Sum {
    kills: u64,
    background: usize,
    turns: usize,
    begun: usize,
    broken: u64,
    retries: u64,
    keyed: usize,
    given_up: usize,
    deliveries: u64,
    refused: u64,
    repeated: u64,
    redone: u64,
}

/// After the last kill: everything that was acknowledged is there, and every end was posted.
fn judge(
    address: &str,
    known: &Known,
    received: &Mutex<Received>,
    asked: &BTreeMap<String, u64>,
    sum: &mut Sum,
) -> Result<(), String> {
    for (code, response, before) in &known.turns {
        let id = response["id"].as_str().unwrap_or_default();
        let found = read(address, id)?;
        if found != *response {
            return Err(format!(
                "{code} was acknowledged as {response} and is {found}"
            ));
        }
        if found["previous_response_id"].as_str() != before.as_deref() {
            return Err(format!("{code} went on from something else: {found}"));
        }
    }
    let begun = known.begun.iter().map(|(code, response)| (code, response));
    let mut ends = BTreeMap::new();
    for (code, response) in known.background.iter().chain(begun) {
        let found = ended(address, response)?;
        let status = found["status"].as_str().unwrap_or_default().to_owned();
        match status.as_str() {
            "completed" => {}
            // Killed so often that it was given up.
            "failed" => sum.given_up += 1,
            _ => return Err(format!("{code}: {found}")),
        }
        ends.insert(response.clone(), format!("response.{status}"));
    }
    for code in known.background.keys() {
        // Once, and once more for each process that died with the call under way.
        let calls = asked.get(code).copied().unwrap_or_default();
        if calls > LIVES + 1 {
            return Err(format!("{code} was asked {calls} times"));
        }
        sum.redone += calls.saturating_sub(1);
    }
    let begun = Instant::now();
    loop {
        let missing = {
            let received = lock(received);
            let all = known.background.values();
            all.filter(|response| !received.events.contains_key(*response))
                .count()
        };
        match missing {
            0 => break,
            _ if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            _ => return Err(format!("{missing} ends were never posted")),
        }
    }
    let received = lock(received);
    for (response, events) in &received.events {
        let [(_, kind)] = events.iter().collect::<Vec<_>>()[..] else {
            return Err(format!("{response} was posted as {events:?}"));
        };
        // A background response whose request was not answered is posted too.
        let found = ended(address, response)?;
        let status = found["status"].as_str().unwrap_or_default();
        if *kind != format!("response.{status}") || found["background"] != json!(true) {
            return Err(format!("{kind} was posted of {found}"));
        }
    }
    sum.deliveries += received.deliveries;
    sum.refused += received.refused;
    sum.repeated += received.deliveries - received.events.len() as u64;
    Ok(())
}

/// The server's life on one store, again and again. Returns how often it died.
pub(crate) fn lives(
    world: &World,
    rng: &mut Rng,
    start: &mut impl FnMut(&str) -> Result<(Process, String), String>,
) -> Result<u64, String> {
    for _ in 0..LIVES {
        let point = rng.chance(0.4).then(|| *rng.pick(&POINTS));
        let faults = point.map(|point| format!("{point}=kill@{}", 1 + rng.below(8)));
        // One that takes over unfinished runs may die before it says where it is.
        if let Ok((mut server, address)) = start(&faults.unwrap_or_default()) {
            world.starts(&address);
            let time = Duration::from_millis(40 + rng.below(300) as u64);
            let begun = Instant::now();
            while begun.elapsed() < time && !server.is_gone() {
                std::thread::sleep(Duration::from_millis(2));
            }
            server.kill();
        }
        world.dies();
        world.verdict()?;
    }
    Ok(LIVES)
}

fn line(rng: &mut Rng, sum: &mut Sum) -> Result<(), String> {
    let scratch = Scratch::in_memory("transports");
    let store = scratch.sqlite("store.db");
    let (mut models, url) = Process::start(&["models", "openai-chat"], "")?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let hook = listener.local_addr().map_err(|error| error.to_string())?;
    let hook_url = format!("THROUGHLINE_WEBHOOK_HOOK_URL=http://{hook}/");
    let mut life = 0;
    let mut start = |faults: &str| {
        life += 1;
        let ahead = (life * APART).to_string();
        let secret = "THROUGHLINE_WEBHOOK_HOOK_SECRET_ENV=HOOK";
        let serve = ["serve", &store, &ahead, "openai-chat", &url];
        let words: Vec<&str> = serve
            .into_iter()
            .chain([&*hook_url, secret, "HOOK=secret"])
            .collect();
        Process::start(&words, faults)
    };
    let (world, known, received) = (World::default(), Mutex::default(), Mutex::default());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (world, known, received) = (&world, &known, &received);
        let (listener, over) = (&listener, &over);
        let receiver = rng.fork();
        scope.spawn(move || receive(listener, received, over, receiver));
        let tell = |done: Result<(), String>| {
            if let Err(error) = done {
                world.wrong(error);
            }
        };
        let mut clients = Vec::new();
        for place in 0..CLIENTS {
            clients.push(scope.spawn(move || tell(begin_in_background(world, place, known))));
            clients.push(scope.spawn(move || tell(talk(world, place, known))));
        }
        let judged = (|| {
            sum.kills += lives(world, rng, &mut start)?;
            let (_server, address) = start("")?;
            world.starts(&address);
            std::thread::sleep(Duration::from_millis(300));
            world.ends();
            for client in clients {
                client.join().map_err(|_| "a client panicked")?;
            }
            world.verdict()?;
            let mut calls: BTreeMap<String, u64> = BTreeMap::new();
            for call in settle::asked(&models.said(1)?)? {
                *calls
                    .entry(call.turns.last().cloned().unwrap_or_default())
                    .or_default() += 1;
            }
            judge(&address, &lock(known), received, &calls, sum)
        })();
        if let Err(error) = &judged {
            world.wrong(error.clone());
        }
        over.store(true, Ordering::SeqCst);
        // It waits for a connection.
        drop(TcpStream::connect(hook));
        judged
    })?;
    sum.keyed += settle::runs(&store)?;
    let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.background += known.background.len();
    sum.turns += known.turns.len();
    sum.begun += known.begun.len();
    sum.broken += known.broken;
    sum.retries += known.retries;
    Ok(())
}

/// R1, R8 and R10 for background responses and WebSockets: what was acknowledged reads as before and
/// continues what it continued, what had begun ends, a key has one run, and the end of every background
/// response is posted, with one id and the status that it has.
#[test]
fn r1_responses_of_all_transports_outlive_their_servers() {
    let mut sum = Sum::default();
    property("r1 transports", 1, |rng: &mut Rng, _| line(rng, &mut sum));
    println!(
        "campaign r1 transports: kills={} background={} socket_turns={} begun={} broken={} lost=0 altered=0 given_up={}",
        sum.kills, sum.background, sum.turns, sum.begun, sum.broken, sum.given_up
    );
    println!(
        "campaign r8 transports: retries={} keyed_runs={} doubled=0 redone_after_a_kill={}",
        sum.retries, sum.keyed, sum.redone
    );
    println!(
        "campaign r10 transports: webhook_deliveries={} refused={} repeated={} lost=0 contradicted=0",
        sum.deliveries, sum.refused, sum.repeated
    );
    assert!(
        sum.broken > 0 && sum.begun > 0,
        "void: the kills met nothing"
    );
}
