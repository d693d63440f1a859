//! Calls of one model response that share an id, and answers to each of them: by each vendor, in one
//! process and in another one, whole and streamed, in memory and in SQLite.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_store::{Approval, ApprovalFilter, Authority, RunFilter, RunId, RunState, Tenant};
use throughline_testkit::Scratch;
use throughline_testkit::upstream::{
    Entry, KEY, Recorded, Reply, ReplyId, Script, Upstream, entries,
};

use crate::http::mcp::Scripted;
use crate::http::support::{Client, config, end, start_with};

/// What is answered to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
}

/// What a test runs with.
#[derive(Clone, Debug)]
struct Setup {
    wire: Wire,
    /// Whether the store is a file.
    is_kept: bool,
    streamed: bool,
    /// Whether another server on the same store takes the answers.
    restarts: bool,
}

/// A server, its upstream and its tools.
struct World {
    setup: Setup,
    /// The URL of the store.
    store: String,
    scripted: Scripted,
    upstream: Upstream,
    server: Server,
    _scratch: Scratch,
}

/// Runs a test for each vendor, in memory and in SQLite, whole and streamed, with one server and
/// with two.
fn everywhere(test: impl AsyncFn(Setup)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let wires = [
        Wire::OpenAiChat,
        Wire::OpenAiResponses,
        Wire::Anthropic,
        Wire::Gemini,
    ];
    for wire in wires {
        for (is_kept, restarts) in [(false, false), (true, false), (true, true)] {
            for streamed in [false, true] {
                runtime.block_on(test(Setup {
                    wire: wire.clone(),
                    is_kept,
                    streamed,
                    restarts,
                }));
            }
        }
    }
}

/// A model that asks for these amounts under one id, and has an answer to their results.
fn model(wire: Wire, amounts: &'static [u64]) -> Script {
    Script::respond_with(move |request: &Recorded| {
        let is_call = |entry: &Entry| matches!(entry, Entry::Call { .. });
        if entries(&wire, &request.body).iter().any(is_call) {
            return Reply::text("So be it.");
        }
        let calls = amounts.iter().map(|amount| {
            let id = ReplyId::Given("call_0".to_owned());
            (id, "place_order", json!({"amount": amount}).to_string())
        });
        Reply::calls::<&str, &str>([]).and_calls_with_ids(calls)
    })
}

impl World {
    async fn new(setup: Setup, amounts: &'static [u64]) -> Self {
        let scripted = Scripted::start().await;
        let script = model(setup.wire.clone(), amounts);
        let upstream = Upstream::start(setup.wire.clone(), script).await;
        let scratch = Scratch::new("approvals");
        let store = match setup.is_kept {
            true => scratch.sqlite("store.db"),
            false => "memory:".to_owned(),
        };
        let server = server(&store, &upstream, &scripted).await;
        Self {
            setup,
            store,
            scripted,
            upstream,
            server,
            _scratch: scratch,
        }
    }

    /// With another server on the same store, if the setup wants it.
    async fn restarted(self) -> Self {
        if !self.setup.restarts {
            return self;
        }
        end(self.server).await;
        let server = server(&self.store, &self.upstream, &self.scripted).await;
        Self { server, ..self }
    }

    async fn create(&self, more: Value) -> (u16, Value) {
        let mut body = json!({"model": "up/a-model", "stream": self.setup.streamed,
            "tools": [{"type": "mcp", "server_label": "orders"}]});
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let body = body.to_string();
        let mut client = Client::to(self.server.address).await;
        let answer = client
            .send("POST /v1/responses", &[], body.as_bytes())
            .await;
        if answer.status != 200 || !self.setup.streamed {
            return (answer.status, serde_json::from_str(&answer.body).unwrap());
        }
        let frames = answer.body.split("\n\n");
        let last = frames.filter_map(|frame| frame.split_once("\ndata: "));
        let (event, data) = last.last().unwrap();
        assert_eq!(event, "event: response.completed", "{}", answer.body);
        let data: Value = serde_json::from_str(data).unwrap();
        (200, data["response"].clone())
    }

    async fn completed(&self, more: Value) -> Value {
        let (status, response) = self.create(more).await;
        assert_eq!(
            (status, &response["status"]),
            (200, &json!("completed")),
            "{response}"
        );
        response
    }

    /// The response that asks, and its questions in the order of the calls.
    async fn asked(&self, amounts: &[u64]) -> (Value, Vec<String>) {
        let first = self.completed(json!({"input": "Charge."})).await;
        let questions = items(&first, "mcp_approval_request");
        let shown: Vec<Value> = questions.iter().map(|item| arguments(item)).collect();
        assert_eq!(shown, given(amounts), "{first}");
        let ids = questions.iter().map(|item| item["id"].as_str().unwrap());
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        for (place, id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(id), "{id} is asked twice: {first}");
        }
        assert_eq!(self.scripted.arguments(), Vec::<Value>::new());
        (first, ids)
    }

    /// The approvals in the order of their calls: what they show, and where they stand.
    async fn approvals(&self) -> Vec<(Value, &'static str)> {
        let scope = Authority::assume().scope(Tenant::new("local").unwrap());
        let filter = ApprovalFilter::default();
        let store = &self.server.app().store;
        let listed = store.approvals(&scope, &filter, None, 100).await.unwrap();
        let mut found: Vec<Approval> = listed.found;
        found.sort_by_key(|one| one.call.position);
        let shown = |one: &Approval| {
            let detail = one.detail.as_ref().unwrap().get();
            let detail: Value = serde_json::from_str(detail).unwrap();
            (arguments(&detail), one.state.as_str())
        };
        found.iter().map(shown).collect()
    }

    /// What the last request to the upstream has after the calls: the result of each, in the order of
    /// calls, then what was said.
    fn after_the_calls(&self, amounts: &[u64]) -> Vec<String> {
        let requests = self.upstream.requests();
        let refused = requests.iter().find(|one| !one.is_accepted());
        assert!(refused.is_none(), "{refused:?}");
        let last = requests.last().unwrap();
        let said = entries(&self.setup.wire, &last.body);
        let (mut calls, mut shown, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        let mut results: Vec<(usize, &String)> = Vec::new();
        for entry in &said[1..] {
            match entry {
                Entry::Call { id, arguments } => {
                    assert!(shown.is_empty(), "{said:?}");
                    ids.push(id);
                    calls.push(arguments.clone());
                }
                Entry::Result { id, text } => {
                    // Whatever ids they are sent with, each call has its own, before anything else.
                    assert!(shown.is_empty(), "{said:?}");
                    // Where ids may repeat, results answer the calls of their id in order.
                    let is_free = |call: usize| results.iter().all(|(other, _)| *other != call);
                    let mut calls = (0..ids.len()).filter(|call| is_free(*call));
                    let call = calls.find(|call| ids[*call] == id);
                    results.push((call.unwrap(), text));
                }
                Entry::User(text) => shown.push(format!("user: {text}")),
                Entry::Assistant(text) => shown.push(format!("assistant: {text}")),
            }
        }
        assert_eq!(calls, given(amounts), "{said:?}");
        results.sort();
        let of: Vec<usize> = results.iter().map(|(call, _)| *call).collect();
        assert_eq!(of, (0..calls.len()).collect::<Vec<_>>(), "{said:?}");
        let results = results.iter().map(|(_, text)| format!("tool: {text}"));
        results.chain(shown).collect()
    }

    /// The run that is being worked on, as soon as there is one.
    async fn running(&self) -> RunId {
        let scope = Authority::assume().scope(Tenant::new("local").unwrap());
        let filter = RunFilter {
            thread: None,
            states: vec![RunState::Running],
        };
        let store = &self.server.app().store;
        loop {
            let listed = store.runs(&scope, &filter, None, 1).await.unwrap();
            if let Some(run) = listed.found.first() {
                return run.id;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn read(&self, response: &Value) -> Value {
        let path = format!("GET /v1/responses/{}", response["id"].as_str().unwrap());
        let mut client = Client::to(self.server.address).await;
        let read = client.send(&path, &[], b"").await;
        serde_json::from_str(&read.body).unwrap()
    }

    async fn end(self) {
        end(self.server).await;
    }
}

async fn server(store: &str, upstream: &Upstream, scripted: &Scripted) -> Server {
    let file = format!(
        "[[upstream]]\nname = \"up\"\nkind = \"{}\"\nbase_url = \"{}\"\n\
         api_key_env = \"UP_KEY\"\n[mcp.orders]\nurl = \"{}\"\napproval = [\"place_order\"]\n",
        upstream.wire(),
        upstream.base_url(),
        scripted.url
    );
    let variables = [("UP_KEY", KEY), ("THROUGHLINE_STORE", store)];
    start_with(config(&file, &variables)).await
}

fn items<'r>(response: &'r Value, kind: &str) -> Vec<&'r Value> {
    let output = response["output"].as_array().unwrap().iter();
    output.filter(|item| item["type"] == kind).collect()
}

/// Arguments that stand in an item as a text.
fn arguments(item: &Value) -> Value {
    serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap()
}

fn given(amounts: &[u64]) -> Vec<Value> {
    amounts.iter().map(|one| json!({"amount": one})).collect()
}

/// Answers to questions, in this order.
fn answers(words: &[(&String, Answer)]) -> Vec<Value> {
    let answer = |(id, answer): &(&String, Answer)| match answer {
        Answer::Yes => {
            json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": true})
        }
        Answer::No => json!({"type": "mcp_approval_response", "approval_request_id": id,
            "approve": false, "reason": "too dear"}),
    };
    words.iter().map(answer).collect()
}

/// What an item says became of its call: its output, or the text of its error.
fn ends(response: &Value) -> Vec<(Value, String)> {
    let end = |item: &&Value| {
        let (output, error) = (&item["output"], &item["error"]);
        assert_ne!(output.is_null(), error.is_null(), "{item}");
        let text = output.as_str();
        let text = text.or_else(|| error["content"][0]["text"].as_str());
        (arguments(item), text.unwrap().to_owned())
    };
    items(response, "mcp_call").iter().map(end).collect()
}

#[test]
fn b227_over_http_each_of_two_calls_that_share_an_id_gets_its_own_answer() {
    everywhere(async |setup| {
        // Which of the two is approved, and whose answer stands first.
        for (approved, first) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let amounts = [5, 7];
            let world = World::new(setup.clone(), &[5, 7]).await;
            let (asked, ids) = world.asked(&amounts).await;
            let world = world.restarted().await;
            let waiting: Vec<_> = given(&amounts).into_iter().zip(["waiting"; 2]).collect();
            assert_eq!(world.approvals().await, waiting);
            let answer = |one: usize| match one == approved {
                true => (&ids[one], Answer::Yes),
                false => (&ids[one], Answer::No),
            };
            let input = answers(&[answer(first), answer(1 - first)]);
            let response = world
                .completed(json!({"previous_response_id": asked["id"], "input": input}))
                .await;

            let amount = amounts[approved];
            let output = format!("{amount} at place 1");
            assert_eq!(world.scripted.arguments(), given(&[amount]));
            let mut wanted = vec!["too dear".to_owned(), "too dear".to_owned()];
            wanted[approved] = output.clone();
            let wanted: Vec<_> = given(&amounts).into_iter().zip(wanted).collect();
            assert_eq!(ends(&response), wanted, "{response}");
            let mut states = ["denied"; 2];
            states[approved] = "used";
            let states: Vec<_> = given(&amounts).into_iter().zip(states).collect();
            assert_eq!(world.approvals().await, states);
            let mut shown = ["tool: too dear".to_owned(), "tool: too dear".to_owned()];
            shown[approved] = format!("tool: {output}");
            assert_eq!(world.after_the_calls(&amounts), shown);
            assert_eq!(world.upstream.requests().len(), 2);

            // A late branch gets the id of the winner.
            let input = answers(&[(&ids[0], Answer::Yes), (&ids[1], Answer::Yes)]);
            let late = json!({"previous_response_id": asked["id"], "input": input});
            let (status, late) = world.create(late).await;
            assert_eq!(
                (
                    status,
                    &late["error"]["code"],
                    &late["error"]["response_id"]
                ),
                (409, &json!("approval_already_answered"), &response["id"])
            );
            assert_eq!(world.scripted.arguments(), given(&[amount]));
            for response in [&asked, &response] {
                assert_eq!(world.read(response).await, *response);
            }
            world.end().await;
        }
    });
}

#[test]
fn b228_over_http_nothing_runs_before_each_of_three_calls_that_share_an_id_is_answered() {
    everywhere(async |setup| {
        for missing in 0..3 {
            let amounts = [5, 7, 9];
            let world = World::new(setup.clone(), &[5, 7, 9]).await;
            let (asked, ids) = world.asked(&amounts).await;
            let world = world.restarted().await;
            // The first of the others is approved, the second is denied.
            let others: Vec<usize> = (0..3).filter(|one| *one != missing).collect();
            let said = [
                (&ids[others[1]], Answer::No),
                (&ids[others[0]], Answer::Yes),
            ];
            let two = json!({"previous_response_id": asked["id"], "input": answers(&said)});
            let (status, refused) = world.create(two.clone()).await;
            assert_eq!(status, 400, "{refused}");
            let message = refused["error"]["message"].as_str().unwrap();
            for (one, id) in ids.iter().enumerate() {
                assert_eq!(message.contains(id), one == missing, "{id}: {message}");
            }
            assert_eq!(world.scripted.arguments(), Vec::<Value>::new());
            assert_eq!(world.upstream.requests().len(), 1);
            let states = world.approvals().await;
            assert_eq!(
                states[missing],
                (json!({"amount": amounts[missing]}), "waiting")
            );

            // The policy withdraws the rest.
            let mut close = two;
            close["throughline"] = json!({"on_open_calls": "close"});
            let response = world.completed(close).await;
            let amount = amounts[others[0]];
            assert_eq!(world.scripted.arguments(), given(&[amount]));
            let ends = ends(&response);
            let shown: Vec<Value> = ends.iter().map(|(shown, _)| shown.clone()).collect();
            assert_eq!(shown, given(&amounts), "{response}");
            assert_eq!(ends[others[0]].1, format!("{amount} at place 1"));
            assert_eq!(ends[others[1]].1, "too dear");
            assert!(ends[missing].1.starts_with("not run"), "{response}");
            let mut states = ["withdrawn"; 3];
            (states[others[0]], states[others[1]]) = ("used", "denied");
            let states: Vec<_> = given(&amounts).into_iter().zip(states).collect();
            assert_eq!(world.approvals().await, states);
            let results = ends.iter().map(|(_, text)| format!("tool: {text}"));
            assert_eq!(world.after_the_calls(&amounts), results.collect::<Vec<_>>());
            world.end().await;
        }
    });
}

#[test]
fn b229_over_http_new_input_with_answers_is_one_run_and_comes_after_the_results() {
    everywhere(async |setup| {
        // The input stands before, between or behind the answers.
        for before in 0..=2 {
            let amounts = [5, 7];
            let world = World::new(setup.clone(), &[5, 7]).await;
            let (asked, ids) = world.asked(&amounts).await;
            let world = world.restarted().await;
            let mut input = answers(&[(&ids[1], Answer::Yes), (&ids[0], Answer::No)]);
            input.insert(before, json!({"role": "user", "content": "And be quick."}));
            let response = world
                .completed(json!({"previous_response_id": asked["id"], "input": input}))
                .await;
            assert_eq!(response["previous_response_id"], asked["id"]);
            assert_eq!(world.scripted.arguments(), given(&[7]));
            assert_eq!(
                world.after_the_calls(&amounts),
                [
                    "tool: too dear",
                    "tool: 7 at place 1",
                    "user: And be quick."
                ]
            );
            assert_eq!(world.upstream.requests().len(), 2, "one request, one run");
            let wanted = ["too dear", "7 at place 1"].map(str::to_owned);
            let wanted: Vec<_> = given(&amounts).into_iter().zip(wanted).collect();
            assert_eq!(ends(&response), wanted);

            // It is in the history, once and in its place.
            let next = world.restarted().await;
            let more = json!({"previous_response_id": response["id"], "input": "Thank you."});
            next.completed(more).await;
            assert_eq!(
                next.after_the_calls(&amounts),
                [
                    "tool: too dear",
                    "tool: 7 at place 1",
                    "user: And be quick.",
                    "assistant: So be it.",
                    "user: Thank you."
                ]
            );
            next.end().await;
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_in_another_process_is_told_of_calls_whose_results_came_after_it_began_to_read() {
    let amounts = [5];
    let setup = Setup {
        wire: Wire::Anthropic,
        is_kept: true,
        streamed: true,
        restarts: false,
    };
    let world = World::new(setup, &[5]).await;
    let (asked, ids) = world.asked(&amounts).await;
    let held = world.scripted.hold().await;
    let input = answers(&[(&ids[0], Answer::Yes)]);
    let answered = world.completed(json!({"previous_response_id": asked["id"], "input": input}));
    let other = server(&world.store, &world.upstream, &world.scripted).await;
    let reads = async {
        let run = world.running().await;
        let line = format!(
            "GET /v1/responses/resp_{}?stream=true HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
            run.to_hex()
        );
        let mut client = Client::to(other.address).await;
        client.write(line.as_bytes()).await;
        client.line_of("event: response.created").await;
        drop(held);
        client.line_of("event: response.completed").await;
        let data = client.line_of("data: ").await;
        let data: Value = serde_json::from_str(&data["data: ".len()..]).unwrap();
        data["response"].clone()
    };
    let (answered, read) = tokio::join!(answered, reads);
    assert_eq!(
        ends(&answered),
        [(json!({"amount": 5}), "5 at place 1".to_owned())]
    );
    assert_eq!(read, answered);
    assert_eq!(world.read(&answered).await, answered);
    end(other).await;
    world.end().await;
}

#[test]
fn approvals_of_a_conversation_are_answered_by_its_next_turn() {
    everywhere(async |setup| {
        let amounts = [5, 7];
        let world = World::new(setup.clone(), &[5, 7]).await;
        let mut client = Client::to(world.server.address).await;
        let made = client.send("POST /v1/conversations", &[], b"{}").await;
        let made: Value = serde_json::from_str(&made.body).unwrap();
        let turn = |input: Value| json!({"conversation": made["id"], "input": input});
        let asked = world.completed(turn(json!("Charge."))).await;
        let questions = items(&asked, "mcp_approval_request");
        let ids: Vec<String> = questions
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), 2, "{asked}");
        let world = world.restarted().await;
        // All calls must be answered before another turn begins.
        let (status, early) = world.create(turn(json!("And?"))).await;
        assert_eq!(status, 400, "{early}");
        let input = answers(&[(&ids[0], Answer::Yes), (&ids[1], Answer::No)]);
        let answered = world.completed(turn(json!(input))).await;
        let ended = ["5 at place 1", "too dear"].map(str::to_owned);
        let ended: Vec<_> = given(&amounts).into_iter().zip(ended).collect();
        assert_eq!(ends(&answered), ended, "{answered}");
        assert_eq!(world.scripted.arguments(), given(&[5]));
        assert_eq!(world.read(&answered).await, answered);
        // The conversation shows what the responses showed.
        let path = format!(
            "GET /v1/conversations/{}/items?order=asc",
            made["id"].as_str().unwrap()
        );
        let mut client = Client::to(world.server.address).await;
        let listed = client.send(&path, &[], b"").await;
        let listed: Value = serde_json::from_str(&listed.body).unwrap();
        let said: Vec<&Value> = listed["data"].as_array().unwrap().iter().collect();
        for item in items(&answered, "mcp_call") {
            assert!(said.contains(&item), "{item} is not in {listed}");
        }
        world.end().await;
    });
}
