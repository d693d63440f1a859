use serde_json::{Value, json};
use throughline_testkit::serverkill::{Exchange, Guard, Request, ServerLedger, Turn, said};
use throughline_testkit::{Rng, Scratch, property};

use crate::serverkill::process::Process;
use crate::serverkill::readers::{Read, Span, again, stream};
use crate::serverkill::settle;
use crate::serverkill::world::World;

/// A server, its upstream, and the position of the next cut.
struct Place {
    _scratch: Scratch,
    models: Process,
    _server: Process,
    world: World,
    ledger: ServerLedger,
    lines: Vec<String>,
    store: String,
    /// How many events of the next stream are read before it is cut.
    index: u64,
    synced: u64,
}

impl Place {
    fn new() -> Result<Self, String> {
        let scratch = Scratch::in_memory("servercuts");
        let store = scratch.sqlite("store.db");
        let (models, url) = Process::start(&["models", "openai-chat"], "")?;
        let (server, address) = Process::start(&["serve", &store, "0", "openai-chat", &url], "")?;
        let world = World::default();
        world.starts(&address);
        Ok(Self {
            _scratch: scratch,
            models,
            _server: server,
            world,
            ledger: ServerLedger::default(),
            lines: Vec::new(),
            store,
            index: 0,
            synced: 0,
        })
    }

    /// All requests of the upstream so far.
    fn asked(&mut self) -> Result<&[String], String> {
        self.synced += 1;
        self.lines.extend(self.models.said(self.synced)?);
        Ok(&self.lines)
    }

    /// A request is cut, retried, and cut again several times; then it is answered.
    fn cut(&mut self, case: u64, rng: &mut Rng) -> Result<u64, String> {
        let code = format!("x.{case}");
        let guard = *rng.pick(&[Guard::Key, Guard::Sdk]);
        let streamed = rng.chance(0.8);
        // Without a key, a request that has not begun cannot be told from one that never arrived;
        // only the upstream knows when it has.
        let demo = rng.chance(0.2) && (streamed || guard == Guard::Key);
        let model = if demo { "demo" } else { "up/a-model" };
        let mut body = json!({"model": model, "input": said(&code)});
        if streamed {
            body["stream"] = json!(true);
        }
        let request = Request::post("/v1/responses", body.to_string());
        let cuts = 1 + u64::from(rng.chance(0.3));
        let (mut known, mut whole, mut attempt) = (None, None, 0);
        while attempt < cuts && whole.is_none() {
            let request = guarded(&request, guard, &code, attempt);
            match streamed {
                true => whole = self.cut_stream(&request, &mut known)?,
                // By then the run has begun, and its answer is on the way.
                false => self.cut_whole(&request, &code, demo)?,
            }
            attempt += 1;
        }
        let response = match whole {
            Some(response) => {
                attempt -= 1;
                response
            }
            None => {
                let request = guarded(&request, guard, &code, attempt);
                self.answer(&request, streamed, &mut known)?
            }
        };
        let turn = Turn {
            code: code.clone(),
            parent: None,
            response,
            streamed,
            guard,
            crossed: 0,
            demo,
        };
        if known.as_ref().is_some_and(|known| known != turn.id()) {
            let id = turn.id();
            return Err(format!(
                "{code} ({guard:?}, streamed: {streamed}, {model}, after {attempt}): {known:?} was begun, and {id} answers"
            ));
        }
        self.ledger.acknowledge(turn)?;
        Ok(attempt)
    }

    fn cut_stream(
        &mut self,
        request: &Request,
        known: &mut Option<String>,
    ) -> Result<Option<Value>, String> {
        let mut answer = self.open(request)?;
        let span = Span {
            enough: Some(self.index),
            ..Span::default()
        };
        self.index += 1;
        match stream(&self.world, &mut answer, span)? {
            Read::Cut(response, _) => {
                if known.is_some() && response.is_some() && *known != response {
                    return Err(format!("{known:?} was begun, and {response:?} answers"));
                }
                *known = response.or(known.take());
            }
            // It had no event at which it could be cut: the next request begins anew.
            Read::Whole(response) => {
                self.index = 0;
                return Ok(Some(response));
            }
        }
        // The connection ends here, with unread bytes.
        Ok(None)
    }

    fn cut_whole(&mut self, request: &Request, code: &str, demo: bool) -> Result<(), String> {
        let address = self.world.address()?;
        let sent = Exchange::send(&address, request).map_err(|error| error.to_string())?;
        // A model that answers at once leaves nothing to wait for.
        let mark = format!("turns={code} ");
        while !demo && !self.asked()?.iter().any(|line| line.contains(&mark)) {
            std::thread::yield_now();
        }
        drop(sent);
        Ok(())
    }

    fn open(&self, request: &Request) -> Result<Exchange, String> {
        let address = self.world.address()?;
        let answer = Exchange::open(&address, request);
        answer.map_err(|error| format!("the server does not answer: {error}"))
    }

    fn answer(
        &self,
        request: &Request,
        streamed: bool,
        known: &mut Option<String>,
    ) -> Result<Value, String> {
        loop {
            let mut answer = self.open(request)?;
            let waits = answer.header("x-throughline-response-id");
            match (answer.status, waits.map(str::to_owned)) {
                (200, _) if streamed => match stream(&self.world, &mut answer, Span::default())? {
                    Read::Whole(response) => return Ok(response),
                    Read::Cut(..) => return Err("a stream broke off".to_owned()),
                },
                (409, Some(response)) => {
                    *known = Some(response.clone());
                    let mut answer = self.open(&again(&response, None))?;
                    let span = Span {
                        response: Some(response),
                        ..Span::default()
                    };
                    stream(&self.world, &mut answer, span)?;
                }
                (status, _) => {
                    let body = answer.whole().map_err(|error| error.to_string())?;
                    if status != 200 {
                        return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
                    }
                    return serde_json::from_slice(&body).map_err(|error| error.to_string());
                }
            }
        }
    }
}

fn guarded(request: &Request, guard: Guard, code: &str, attempt: u64) -> Request {
    let request = request.clone();
    match guard {
        Guard::Key => request.with("idempotency-key", code),
        Guard::Sdk => request.with("x-stainless-retry-count", attempt.to_string()),
        Guard::None => request,
    }
}

/// R8 and R10: an answer is cut after each of its events, or before the first, and the request is
/// retried, with a key or as SDKs do. There is one run, one model call, and the same events.
#[test]
fn r8_a_request_that_is_cut_and_sent_again_is_done_once() {
    let mut place = None;
    let (mut case, mut retries) = (0, 0);
    property("r8 server cuts", 250, |rng: &mut Rng, _| {
        let place = match &mut place {
            Some(place) => place,
            empty => empty.insert(Place::new()?),
        };
        case += 1;
        retries += place.cut(case, rng)?;
        Ok(())
    });
    let Some(mut place) = place else {
        return;
    };
    let lines = place.asked().expect("the upstream is there").to_vec();
    let asked = settle::asked(&lines).expect("the upstream refused nothing");
    let judged = place.ledger.judge(&asked, &place.world.state().parents);
    let counts = judged.expect("every request is one model call");
    place._server.kill();
    let runs = settle::runs(&place.store).expect("every request is one run");
    let (streams, most) = {
        let state = place.world.state();
        (state.counts.streams, state.streams_read.count().1)
    };
    println!(
        "campaign r8 server cuts: requests={} retries={retries} runs={runs} model_calls={} streams={streams} events={most} doubled=0 disagreements=0",
        counts.turns, counts.asked
    );
    assert_eq!(runs as u64, counts.turns, "every request is one run");
}
