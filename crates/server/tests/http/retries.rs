//! Requests that come again after their run failed, or after another server had answered them: what
//! was done is not done again, and what was delivered is not delivered again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_store::{Authority, Run, RunFilter, RunState, Tenant, TenantScope};
use throughline_testkit::Scratch;
use throughline_testkit::upstream::{Entry, Gate, KEY, Recorded, Reply, Script, Upstream, entries};

use crate::http::mcp::Scripted;
use crate::http::support::{Answer, Client, config, end, start_with};

const WIRE: Wire = Wire::OpenAiChat;

/// What becomes of model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Weather {
    Fair,
    /// The call that has the result of the tool is answered with 503.
    LateOutage,
    /// Every call is.
    Outage,
    /// The call that has the result of the tool is refused for good.
    LateRefusal,
    /// The model calls the tool for as long as it may.
    Greedy,
}

/// What the upstream knows and counts.
struct Sky {
    weather: AtomicU8,
    /// Calls that were answered before the tool ran.
    first: AtomicUsize,
    /// Calls that were answered after it.
    second: AtomicUsize,
    /// What the answers wait for.
    gate: Gate,
}

impl Sky {
    fn is(&self, weather: Weather) -> bool {
        self.weather.load(Ordering::SeqCst) == weather as u8
    }

    fn turn(&self, weather: Weather) {
        self.weather.store(weather as u8, Ordering::SeqCst);
    }

    fn answers(&self) -> (usize, usize) {
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        (count(&self.first), count(&self.second))
    }

    fn answer(&self, request: &Recorded) -> Reply {
        let said = entries(&WIRE, &request.body);
        let is_second = matches!(said.last(), Some(Entry::Result { .. }));
        let refusal = |status| {
            let body = r#"{"error":{"message":"no","type":"error","param":null,"code":null}}"#;
            Reply::raw(status, "application/json", body)
        };
        if self.is(Weather::Outage) || (is_second && self.is(Weather::LateOutage)) {
            return refusal(503);
        }
        if is_second && self.is(Weather::LateRefusal) {
            return refusal(400);
        }
        let has_tools = request.body["tools"].is_array();
        let is_greedy = self.is(Weather::Greedy) && has_tools;
        let reply = match is_second && !is_greedy {
            true => Reply::text("It is placed."),
            false => Reply::calls([("place_order", "{}")]),
        };
        let counter = match is_second {
            true => &self.second,
            false => &self.first,
        };
        counter.fetch_add(1, Ordering::SeqCst);
        reply.held(&self.gate)
    }
}

/// A server, its upstream and its tools.
struct World {
    server: Server,
    upstream: Upstream,
    scripted: Scripted,
    sky: Arc<Sky>,
    scratch: Scratch,
}

impl World {
    async fn new(weather: Weather) -> Self {
        let sky = Arc::new(Sky {
            weather: AtomicU8::new(weather as u8),
            first: AtomicUsize::new(0),
            second: AtomicUsize::new(0),
            gate: Gate::default(),
        });
        let above = Arc::clone(&sky);
        let script = Script::respond_with(move |request| above.answer(request));
        let upstream = Upstream::start(WIRE, script).await;
        let scripted = Scripted::start().await;
        let scratch = Scratch::new("retries");
        let server = server(&scratch, &upstream, &scripted).await;
        Self {
            server,
            upstream,
            scripted,
            sky,
            scratch,
        }
    }

    /// With another server on the same store.
    async fn restarted(self) -> Self {
        end(self.server).await;
        let server = server(&self.scratch, &self.upstream, &self.scripted).await;
        Self { server, ..self }
    }

    async fn send(&self, mark: (&str, &str), body: &str) -> Answer {
        let mut client = Client::to(self.server.address).await;
        let headers = [("content-type", "application/json"), mark];
        client
            .send("POST /v1/responses", &headers, body.as_bytes())
            .await
    }

    /// Send until the upstream is asked again, which it is not for some time after it failed.
    async fn send_until_answered(&self, mark: (&str, &str), body: &str) -> Answer {
        loop {
            let answer = self.send(mark, body).await;
            if answer.status != 503 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// All runs, oldest first.
    async fn runs(&self) -> Vec<Run> {
        let store = &self.server.app().store;
        let filter = RunFilter::default();
        let listed = store.runs(&scope(), &filter, None, 100).await.unwrap();
        listed.found.into_iter().rev().collect()
    }

    /// Wait until a run is as it should be.
    async fn until(&self, is_so: impl Fn(&Run) -> bool) -> Run {
        loop {
            if let Some(run) = self.runs().await.into_iter().find(|run| is_so(run)) {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Send a request whose client goes away before it has an answer; how its run ended.
    async fn left(&self, body: &str) -> Run {
        self.sky.gate.close();
        let mut client = Client::to(self.server.address).await;
        let head = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\n{}: {}\r\ncontent-length: {}\r\n\r\n",
            FIRST.0,
            FIRST.1,
            body.len()
        );
        client.write(head.as_bytes()).await;
        client.write(body.as_bytes()).await;
        self.until(|run| run.state == RunState::Running).await;
        self.upstream.received(1).await;
        drop(client);
        self.sky.gate.open();
        self.until(|run| run.state.is_settled()).await
    }
}

fn scope() -> TenantScope {
    Authority::assume().scope(Tenant::new("local").unwrap())
}

async fn server(scratch: &Scratch, upstream: &Upstream, scripted: &Scripted) -> Server {
    let file = format!(
        "[[upstream]]\nname = \"up\"\nkind = \"{WIRE}\"\nbase_url = \"{}\"\n\
         api_key_env = \"UP_KEY\"\n[mcp.orders]\nurl = \"{}\"\n",
        upstream.base_url(),
        scripted.url
    );
    let store = scratch.sqlite("store.db");
    let variables = [("UP_KEY", KEY), ("THROUGHLINE_STORE", &*store)];
    start_with(config(&file, &variables)).await
}

const NAMED: (&str, &str) = ("idempotency-key", "order 7");
const FIRST: (&str, &str) = ("x-stainless-retry-count", "0");
const AGAIN: (&str, &str) = ("x-stainless-retry-count", "1");

fn order(streamed: bool) -> String {
    json!({"model": "up/a-model", "input": "Place it.", "stream": streamed,
        "tools": [{"type": "mcp", "server_label": "orders", "require_approval": "never"}]})
    .to_string()
}

/// The response of an answer, whole or at the end of a stream.
fn response(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    if !answer.body.starts_with("event: ") {
        return serde_json::from_str(&answer.body).unwrap();
    }
    let frames = answer.body.split("\n\n");
    let data = frames.filter_map(|frame| frame.split_once("\ndata: "));
    let data = data.map(|(_, data)| serde_json::from_str::<Value>(data).unwrap());
    let last = data.filter(|data| data["response"].is_object()).last();
    last.unwrap()["response"].clone()
}

fn types(response: &Value) -> Vec<&str> {
    let output = response["output"].as_array().unwrap().iter();
    output.map(|item| item["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn r8_after_a_dispatch_a_retry_goes_on_with_the_journal_of_the_failed_run() {
    for (streamed, restarts) in [(false, false), (true, false), (false, true)] {
        let mut world = World::new(Weather::LateOutage).await;
        let body = order(streamed);
        let failed = response(&world.send(NAMED, &body).await);
        assert_eq!(failed["status"], "failed", "{failed}");
        assert_eq!(types(&failed), ["mcp_list_tools", "mcp_call"]);
        assert_eq!(world.sky.answers(), (1, 0));
        // While the outage lasts, a retry fails too, and what it went on with is not lost.
        world.send(NAMED, &body).await;
        let runs = world.runs().await;
        let states: Vec<_> = runs.iter().map(|run| run.state).collect();
        assert_eq!(states, [RunState::Failed; 2]);
        if restarts {
            world = world.restarted().await;
        }
        world.sky.turn(Weather::Fair);
        let done = loop {
            // While the breaker is still open, a streamed retry ends with `response.failed`.
            let done = response(&world.send_until_answered(NAMED, &body).await);
            if done["status"] != "failed" {
                break done;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!(types(&done), ["message"], "{done}");
        assert_eq!(world.scripted.called(), ["place_order"]);
        assert_eq!(world.sky.answers(), (1, 1), "no model call is made again");
        let before = world.runs().await.len();
        assert_eq!(response(&world.send(NAMED, &body).await), done);
        let path = format!("GET /v1/responses/{}", done["id"].as_str().unwrap());
        let mut client = Client::to(world.server.address).await;
        let read = client.send(&path, &[], b"").await;
        assert_eq!(response(&read), done);
        assert_eq!(world.runs().await.len(), before, "and now the key is used");
        let other = world.send(NAMED, &order(!streamed)).await;
        assert_eq!(other.status, 422, "{}", other.body);
        // A run that continues there has everything in its history.
        let next = json!({"model": "up/a-model", "input": "Thanks.",
            "previous_response_id": done["id"]});
        response(&world.send(FIRST, &next.to_string()).await);
        let said = entries(&WIRE, &world.upstream.requests().last().unwrap().body);
        let kinds: Vec<_> = said.iter().map(kind).collect();
        assert_eq!(kinds[..5], ["user", "call", "result", "assistant", "user"]);
        end(world.server).await;
    }
}

fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Call { .. } => "call",
        Entry::Result { .. } => "result",
        Entry::User(_) => "user",
        Entry::Assistant(_) => "assistant",
    }
}

#[tokio::test]
async fn r8_retries_at_once_are_one_run() {
    let world = World::new(Weather::LateOutage).await;
    for streamed in [false, true] {
        let (first, second) = world.sky.answers();
        world.sky.turn(Weather::LateOutage);
        let body = order(streamed);
        let key = ("idempotency-key", if streamed { "s" } else { "w" });
        // The upstream may still rest after the last round.
        let failed = loop {
            let failed = world.send_until_answered(key, &body).await;
            if world.sky.answers().0 > first {
                break response(&failed);
            }
        };
        assert_eq!(failed["status"], "failed", "{failed}");
        world.sky.turn(Weather::Fair);
        let mut done = Vec::new();
        while done.is_empty() {
            let answers = join_all((0..8).map(|_| world.send(key, &body))).await;
            for answer in answers {
                match answer.status {
                    200 => done.push(response(&answer)),
                    status => assert!([409, 503].contains(&status), "{}", answer.body),
                }
            }
            // A client that got the same failure again would retry for ever.
            assert!(done.iter().all(|one| one["id"] != failed["id"]), "{done:?}");
            done.retain(|done| done["status"] == "completed");
        }
        done.push(response(&world.send(key, &body).await));
        assert!(done.iter().all(|one| *one == done[0]), "{done:?}");
        assert_eq!(world.sky.answers(), (first + 1, second + 1));
    }
    assert_eq!(world.scripted.called(), ["place_order"; 2]);
    end(world.server).await;
}

/// The first model call is not made again with what was wished for it, and no limit is lifted.
#[tokio::test]
async fn r8_a_retry_goes_on_under_the_terms_of_the_request() {
    let world = World::new(Weather::LateOutage).await;
    let mut body: Value = serde_json::from_str(&order(false)).unwrap();
    body["max_tool_calls"] = json!(1);
    body["tool_choice"] = json!("required");
    let body = body.to_string();
    let failed = response(&world.send(NAMED, &body).await);
    assert_eq!(failed["status"], "failed", "{failed}");
    world.sky.turn(Weather::Greedy);
    let done = response(&world.send_until_answered(NAMED, &body).await);
    assert_ne!(done["status"], "failed", "{done}");
    assert_eq!(done["previous_response_id"], failed["id"]);
    assert_eq!(world.scripted.called(), ["place_order"]);
    let choices = world.upstream.requests().into_iter();
    let choices: Vec<Value> = choices.map(|one| one.body["tool_choice"].clone()).collect();
    let required = choices.iter().filter(|choice| **choice == "required");
    assert_eq!((&choices[0], required.count()), (&json!("required"), 1));
    end(world.server).await;
}

/// An answer to a question is used up by the run that failed: its retry does not give it again.
#[tokio::test]
async fn r8_a_retry_goes_on_with_approvals_that_the_failed_run_took() {
    for approve in [true, false] {
        let world = World::new(Weather::LateOutage).await;
        let tools =
            json!([{"type": "mcp", "server_label": "orders", "require_approval": "always"}]);
        let ask = json!({"model": "up/a-model", "input": "Place it.", "tools": tools});
        let asked = response(&world.send(FIRST, &ask.to_string()).await);
        assert_eq!(types(&asked), ["mcp_list_tools", "mcp_approval_request"]);
        let answer = json!({"type": "mcp_approval_response", "approve": approve,
            "approval_request_id": asked["output"][1]["id"]});
        let body = json!({"model": "up/a-model", "input": [answer], "tools": tools,
            "previous_response_id": asked["id"]});
        let body = body.to_string();
        world.send(NAMED, &body).await;
        let last = world.runs().await.pop().unwrap();
        assert_eq!(last.state, RunState::Failed);
        world.sky.turn(Weather::Fair);
        let done = response(&world.send_until_answered(NAMED, &body).await);
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!(types(&done), ["message"], "{done}");
        assert_eq!(world.scripted.called().len(), usize::from(approve));
        end(world.server).await;
    }
}

#[tokio::test]
async fn r8_a_failure_that_would_come_again_keeps_its_key() {
    let world = World::new(Weather::LateRefusal).await;
    let body = order(false);
    let failed = response(&world.send(NAMED, &body).await);
    assert_eq!(failed["status"], "failed", "{failed}");
    world.sky.turn(Weather::Fair);
    assert_eq!(response(&world.send(NAMED, &body).await), failed);
    assert_eq!(world.runs().await.len(), 1);
    assert_eq!(world.scripted.called(), ["place_order"]);
    end(world.server).await;
}

#[tokio::test]
async fn r8_a_retry_without_a_key_is_another_try_after_an_outage() {
    let world = World::new(Weather::Outage).await;
    let body = order(false);
    let failed = world.send(FIRST, &body).await;
    assert_eq!(failed.status, 502, "{}", failed.body);
    world.sky.turn(Weather::Fair);
    let done = response(&world.send_until_answered(AGAIN, &body).await);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(world.scripted.called(), ["place_order"]);
    // That was delivered, and what failed before it is done with: the next one is for itself.
    let next = response(&world.send(AGAIN, &body).await);
    assert_ne!(next["id"], done["id"]);
    assert_eq!(world.scripted.called(), ["place_order"; 2]);
    let world = world.restarted().await;
    let last = response(&world.send(AGAIN, &body).await);
    assert!(![&done["id"], &next["id"]].contains(&&last["id"]), "{last}");
    assert_eq!(world.scripted.called(), ["place_order"; 3]);
    end(world.server).await;
}

#[tokio::test]
async fn r8_a_retry_without_a_key_goes_on_with_a_failed_run_that_nobody_heard_of() {
    let world = World::new(Weather::LateOutage).await;
    let body = order(false);
    let left = world.left(&body).await;
    assert_eq!(left.state, RunState::Failed);
    let world = world.restarted().await;
    world.sky.turn(Weather::Fair);
    let done = response(&world.send_until_answered(AGAIN, &body).await);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(types(&done), ["message"], "{done}");
    assert_eq!(world.scripted.called(), ["place_order"]);
    assert_eq!(world.sky.answers(), (1, 1));
    end(world.server).await;
}

#[tokio::test]
async fn r8_what_was_delivered_before_a_restart_is_not_delivered_again() {
    let world = World::new(Weather::Fair).await;
    let body = order(false);
    let done = response(&world.send(FIRST, &body).await);
    let world = world.restarted().await;
    let next = response(&world.send(AGAIN, &body).await);
    assert_ne!(next["id"], done["id"], "it is another order");
    assert_eq!(world.scripted.called(), ["place_order"; 2]);
    end(world.server).await;
}

#[tokio::test]
async fn r8_what_was_not_delivered_before_a_restart_is_delivered_after_it() {
    let world = World::new(Weather::Fair).await;
    let body = order(false);
    let left = world.left(&body).await;
    assert_eq!((left.state, left.delivered), (RunState::Committed, false));
    let world = world.restarted().await;
    let done = response(&world.send(AGAIN, &body).await);
    assert_eq!(done["id"], format!("resp_{}", left.id.to_hex()));
    assert_eq!(world.scripted.called(), ["place_order"]);
    end(world.server).await;
}

#[tokio::test]
async fn deliveries_are_noted_while_the_server_runs_and_only_where_a_retry_looks_for_them() {
    let world = World::new(Weather::Fair).await;
    let named = response(&world.send(NAMED, &order(false)).await);
    let done = response(&world.send(FIRST, &order(true)).await);
    let noted = world.until(|run| run.delivered).await;
    assert_eq!(done["id"], format!("resp_{}", noted.id.to_hex()));
    let runs = world.runs().await;
    let named = runs
        .iter()
        .find(|run| named["id"] == format!("resp_{}", run.id.to_hex()));
    assert!(!named.unwrap().delivered, "its key finds it");
    end(world.server).await;
}
