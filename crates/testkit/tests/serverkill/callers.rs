//! Clients: each makes chains of turns, retries interrupted requests, and records the answers.

use serde_json::{Value, json};
use throughline_testkit::Rng;
use throughline_testkit::serverkill::{Exchange, Guard, Request, Turn, said};

use crate::serverkill::readers::{Read, Span, again, stream};
use crate::serverkill::world::World;

/// How often a request may be interrupted.
const PATIENCE: u32 = 1_000;

/// A run is given up when it was taken over this often.
const GIVEN_UP: u64 = 4;

/// A client and its chain.
pub(crate) struct Caller<'w> {
    world: &'w World,
    rng: Rng,
    name: String,
    model: String,
    next: u32,
    /// The acknowledged turns: code and response.
    turns: Vec<(String, String)>,
}

/// A turn in progress.
struct Sending {
    code: String,
    parent: Option<String>,
    request: Request,
    streamed: bool,
    guard: Guard,
    first: u64,
}

/// The result of one request.
enum Came {
    /// The answer.
    Answer(Value),
    /// It was interrupted; the response and event number, if known.
    Cut(Option<String>, Option<u64>),
    /// The same request is already in progress.
    Wait(String),
    /// Its run was killed so often that it was given up.
    GivenUp,
}

impl<'w> Caller<'w> {
    pub(crate) fn new(world: &'w World, place: usize, model: &str, rng: Rng) -> Self {
        Self {
            world,
            rng,
            name: format!("c{place}"),
            model: model.to_owned(),
            next: 0,
            turns: Vec::new(),
        }
    }

    /// Makes turns until the test ends.
    pub(crate) fn talk(mut self) -> Result<Self, String> {
        while !self.world.is_over() {
            self.turn()?;
            if self.rng.chance(0.2) {
                self.look_back()?;
            }
        }
        Ok(self)
    }

    /// Makes one turn, however often it is interrupted.
    pub(crate) fn turn(&mut self) -> Result<(), String> {
        let place = match self.turns.len() {
            0 => None,
            // Mostly the newest; sometimes a branch, sometimes a new chain.
            count if self.rng.chance(0.85) => Some(count - 1),
            count => Some(self.rng.below(count + 1)).filter(|place| *place < count),
        };
        let parent = place.map(|place| self.turns[place].clone());
        let guard = *self.rng.pick(&[Guard::Key, Guard::Sdk, Guard::None]);
        let streamed = self.rng.bool();
        let sending = self.sending(parent, guard, streamed);
        self.send(&sending)
    }

    /// Continues a chain with a new turn.
    pub(crate) fn go_on(&mut self, code: &str, response: &str) -> Result<(), String> {
        let parent = Some((code.to_owned(), response.to_owned()));
        let sending = self.sending(parent, Guard::Key, false);
        self.send(&sending)
    }

    fn sending(
        &mut self,
        parent: Option<(String, String)>,
        guard: Guard,
        streamed: bool,
    ) -> Sending {
        let code = format!("{}.{}", self.name, self.next);
        self.next += 1;
        let mut body = json!({"model": self.model, "input": said(&code)});
        if let Some((_, response)) = &parent {
            body["previous_response_id"] = json!(response);
        }
        if streamed {
            body["stream"] = json!(true);
        }
        let request = Request::post("/v1/responses", body.to_string());
        let parent = parent.map(|(code, _)| code);
        let mut state = self.world.state();
        state.parents.insert(code.clone(), parent.clone());
        drop(state);
        Sending {
            code,
            parent,
            request,
            streamed,
            guard,
            first: self.world.life(),
        }
    }

    fn send(&mut self, sending: &Sending) -> Result<(), String> {
        let (mut known, mut last): (Option<String>, Option<u64>) = (None, None);
        for attempt in 0..PATIENCE {
            let address = self.world.address()?;
            let reads = attempt > 0
                && known.is_some()
                && (sending.guard == Guard::None || self.rng.chance(0.3));
            let came = match (&known, reads) {
                (Some(response), true) => {
                    let after = last.filter(|_| self.rng.chance(0.6));
                    self.read(&address, response, after)?
                }
                _ => self.post(&address, sending, attempt)?,
            };
            match came {
                Came::Answer(response) => {
                    return self.answered(sending, response, attempt, known.as_deref());
                }
                Came::Cut(response, number) => {
                    known = response.or(known);
                    last = number.or(last);
                    if sending.guard == Guard::None && known.is_none() {
                        self.world.state().counts.left += 1;
                        return Ok(());
                    }
                }
                Came::GivenUp if self.world.life() >= sending.first + GIVEN_UP => {
                    self.world.state().counts.given_up += 1;
                    return Ok(());
                }
                Came::GivenUp => return Err(format!("{} is given up too early", sending.code)),
                Came::Wait(response) => {
                    self.world.state().counts.waited += 1;
                    // A reader of the stream sees its end.
                    self.read(&address, &response, None)?;
                }
            }
        }
        Err(format!("{} is not answered", sending.code))
    }

    fn answered(
        &mut self,
        sending: &Sending,
        response: Value,
        attempt: u32,
        known: Option<&str>,
    ) -> Result<(), String> {
        let id = response.get("id").and_then(Value::as_str);
        let id = id.ok_or("a response has no id")?.to_owned();
        if known.is_some_and(|known| known != id) {
            let code = &sending.code;
            return Err(format!("{code}: {known:?} was begun, and {id} answers"));
        }
        if attempt > 0 && sending.guard != Guard::None {
            self.world.state().counts.retries += 1;
        }
        self.turns.push((sending.code.clone(), id));
        self.world.acknowledges(Turn {
            code: sending.code.clone(),
            parent: sending.parent.clone(),
            response,
            streamed: sending.streamed,
            guard: sending.guard,
            crossed: self.world.life() - sending.first,
            demo: self.model == "demo",
        })
    }

    fn post(&self, address: &str, sending: &Sending, attempt: u32) -> Result<Came, String> {
        let request = match sending.guard {
            Guard::Key => {
                let key = format!("key-{}", sending.code);
                sending.request.clone().with("idempotency-key", key)
            }
            Guard::Sdk => {
                let count = attempt.to_string();
                sending
                    .request
                    .clone()
                    .with("x-stainless-retry-count", count)
            }
            Guard::None => sending.request.clone(),
        };
        self.world.saw();
        let Ok(mut answer) = Exchange::open(address, &request) else {
            self.world.unreachable(address);
            return Ok(Came::Cut(None, None));
        };
        if answer.status == 409 {
            let waits = answer.header("x-throughline-response-id");
            let waits = waits.map(str::to_owned);
            let Ok(body) = answer.whole() else {
                return Ok(Came::Cut(None, None));
            };
            let body = String::from_utf8_lossy(&body).into_owned();
            return match waits {
                Some(id) if body.contains("idempotency_in_progress") => Ok(Came::Wait(id)),
                _ => Err(format!("{} is refused: {body}", sending.code)),
            };
        }
        if answer.status != 200 {
            let status = answer.status;
            let body = answer.whole().unwrap_or_default();
            let body = String::from_utf8_lossy(&body);
            if status == 500 && body.contains("given up after") {
                return Ok(Came::GivenUp);
            }
            return Err(format!("{}: status {status}: {body}", sending.code));
        }
        if sending.streamed {
            return Ok(came(stream(self.world, &mut answer, Span::default())?));
        }
        match answer.whole() {
            Err(_) => {
                self.world.state().counts.cut += 1;
                Ok(Came::Cut(None, None))
            }
            Ok(body) => match serde_json::from_slice(&body) {
                Ok(response) => Ok(Came::Answer(response)),
                Err(error) => Err(format!("{}: {error}", sending.code)),
            },
        }
    }

    /// Reads a stream again.
    fn read(&self, address: &str, response: &str, after: Option<u64>) -> Result<Came, String> {
        let Ok(mut answer) = Exchange::open(address, &again(response, after)) else {
            self.world.unreachable(address);
            return Ok(Came::Cut(None, None));
        };
        if answer.status != 200 {
            let body = answer.whole().unwrap_or_default();
            let body = String::from_utf8_lossy(&body);
            return Err(format!("{response} cannot be read again: {body}"));
        }
        let span = Span {
            response: Some(response.to_owned()),
            after,
            enough: None,
        };
        Ok(came(stream(self.world, &mut answer, span)?))
    }

    /// Checks that an acknowledged response is unchanged.
    fn look_back(&mut self) -> Result<(), String> {
        if self.turns.is_empty() {
            return Ok(());
        }
        let place = self.rng.below(self.turns.len());
        let code = self.turns[place].0.clone();
        let turn = self.world.state().ledger.turn(&code).cloned();
        let Some(turn) = turn else {
            return Err(format!("{code} is not in the ledger"));
        };
        let address = self.world.address()?;
        same(self.world, &address, &turn).map(|_| ())
    }
}

fn came(read: Read) -> Came {
    match read {
        Read::Whole(response) => Came::Answer(response),
        Read::Cut(response, last) => Came::Cut(response, last),
    }
}

/// Checks that a response reads as it was acknowledged; returns whether it could be read at all.
pub(crate) fn same(world: &World, address: &str, turn: &Turn) -> Result<bool, String> {
    let request = Request::get(format!("/v1/responses/{}", turn.id()));
    let Ok(mut answer) = Exchange::open(address, &request) else {
        return Ok(false);
    };
    let status = answer.status;
    let Ok(body) = answer.whole() else {
        return Ok(false);
    };
    let found: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status != 200 || found != turn.response {
        let Turn { code, guard, .. } = turn;
        return Err(format!(
            "{code} ({guard:?}, streamed: {}, kills: {}): {} was acknowledged, and is read with status {status} as {found}",
            turn.streamed, turn.crossed, turn.response
        ));
    }
    world.state().counts.reads += 1;
    Ok(true)
}
