//! The Conversations API: conversations and their items, and turns on them.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_store::{Alias, At, Authority, Tenant};
use throughline_testkit::Scratch;
use throughline_testkit::upstream::{Gate, KEY, Recorded, Reply, Script, Upstream};

use crate::http::support::{Answer, Client, config, end, start, start_with};

/// A server, and what it is asked.
struct World {
    server: Server,
    /// What must stay as long as the server.
    kept: Option<(Upstream, Scratch)>,
}

impl World {
    async fn new() -> Self {
        Self {
            server: start("").await,
            kept: None,
        }
    }

    async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut client = Client::to(self.server.address).await;
        client.send(line, headers, body.as_bytes()).await
    }

    async fn json(&self, line: &str, body: &Value) -> Value {
        let answer = self.ask(line, &[], body).await;
        assert_eq!(answer.status, 200, "{line}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// A conversation with items.
    async fn conversation(&self, items: Value) -> String {
        let made = self
            .json("POST /v1/conversations", &json!({"items": items}))
            .await;
        made["id"].as_str().unwrap().to_owned()
    }

    async fn turn(&self, conversation: &str, input: &str) -> Value {
        let body = json!({"model": "demo", "conversation": conversation, "input": input});
        self.json("POST /v1/responses", &body).await
    }

    /// All items, oldest first, page by page.
    async fn items(&self, conversation: &str) -> Vec<Value> {
        let mut items: Vec<Value> = Vec::new();
        loop {
            let after = items.last().map_or(String::new(), |last| {
                format!("&after={}", last["id"].as_str().unwrap())
            });
            let line =
                format!("GET /v1/conversations/{conversation}/items?order=asc&limit=3{after}");
            let page = self.json(&line, &Value::Null).await;
            let data = page["data"].as_array().unwrap();
            assert_eq!(
                page["first_id"],
                data.first().map_or(json!(""), |one| one["id"].clone())
            );
            assert_eq!(
                page["last_id"],
                data.last().map_or(json!(""), |one| one["id"].clone())
            );
            items.extend(data.iter().cloned());
            if page["has_more"] == json!(false) {
                return items;
            }
        }
    }

    /// Until a run waits for its turn on a conversation.
    async fn waits(&self, conversation: &str) {
        let scope = Authority::assume().scope(Tenant::new("local").unwrap());
        let store = &self.server.app().store;
        let at = At::Alias(Alias::new("conversation", conversation));
        let thread = store.open(&scope, &at, 0).await.unwrap().thread.id;
        while store.wait_queue(&scope, &thread).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    async fn texts(&self, conversation: &str) -> Vec<String> {
        self.items(conversation).await.iter().map(text).collect()
    }
}

fn text(item: &Value) -> String {
    let text = item["content"][0]["text"].as_str();
    let text = text
        .or_else(|| item["output"].as_str())
        .or_else(|| item["name"].as_str());
    text.unwrap_or_default().to_owned()
}

fn said(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

#[tokio::test]
async fn a_conversation_is_made_read_changed_and_deleted() {
    let world = World::new().await;
    let made = world
        .json(
            "POST /v1/conversations",
            &json!({"metadata": {"topic": "tides"}}),
        )
        .await;
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("conv_"), "{made}");
    assert_eq!(made["object"], "conversation");
    assert_eq!(made["metadata"], json!({"topic": "tides"}));
    assert!(made["created_at"].as_u64().unwrap() > 1_700_000_000);
    let path = format!("/v1/conversations/{id}");
    assert_eq!(world.json(&format!("GET {path}"), &Value::Null).await, made);
    let changed = world
        .json(
            &format!("POST {path}"),
            &json!({"metadata": {"topic": "buoys"}}),
        )
        .await;
    assert_eq!(changed["metadata"], json!({"topic": "buoys"}));
    let missing = world.ask(&format!("POST {path}"), &[], &json!({})).await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (400, "missing_required_parameter")
    );
    let response = world.turn(id, "The tide is at four.").await;
    assert_eq!(response["conversation"], json!({"id": id}));
    assert_eq!(response["previous_response_id"], Value::Null);
    let read = world
        .json(
            &format!("GET /v1/responses/{}", response["id"].as_str().unwrap()),
            &Value::Null,
        )
        .await;
    assert_eq!(read, response);
    let deleted = world.json(&format!("DELETE {path}"), &Value::Null).await;
    assert_eq!(
        deleted,
        json!({"id": id, "object": "conversation.deleted", "deleted": true})
    );
    for line in ["GET", "DELETE"] {
        let gone = world
            .ask(&format!("{line} {path}"), &[], &Value::Null)
            .await;
        assert_eq!(gone.status, 404, "{}", gone.body);
        assert!(gone.body.contains("Conversation with id"), "{}", gone.body);
    }
    // Its responses are still there.
    let line = format!("GET /v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(world.json(&line, &Value::Null).await, response);
    // A body is not needed.
    let plain = world.json("POST /v1/conversations", &Value::Null).await;
    assert_eq!(plain["metadata"], json!({}));
    end(world.server).await;
}

#[tokio::test]
async fn items_are_added_listed_read_and_taken_out() {
    let world = World::new().await;
    let id = world
        .conversation(json!([message("one"), {"role": "assistant", "content": "two"}]))
        .await;
    let path = format!("/v1/conversations/{id}/items");
    let added = world
        .json(
            &format!("POST {path}"),
            &json!({"items": [
                {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "three"},
                {"type": "message", "role": "user", "id": "msg_mine", "content": [
                    {"type": "input_text", "text": "four"}, {"type": "input_text", "text": "and more"}]},
            ]}),
        )
        .await;
    assert_eq!(added["object"], "list");
    assert_eq!(added["data"].as_array().unwrap().len(), 3);
    let items = world.items(&id).await;
    assert_eq!(items[2..], *added["data"].as_array().unwrap());
    assert_eq!(
        world.texts(&id).await,
        ["one", "two", "look", "three", "four"]
    );
    assert_eq!(items[4]["id"], "msg_mine");
    // The newest come first unless asked otherwise.
    let newest = world
        .json(&format!("GET {path}?limit=2"), &Value::Null)
        .await;
    assert_eq!(newest["data"], json!([items[4], items[3]]));
    assert_eq!(newest["has_more"], true);
    for item in &items {
        let line = format!("GET {path}/{}", item["id"].as_str().unwrap());
        assert_eq!(world.json(&line, &Value::Null).await, *item);
    }
    // Said again, an item is not repeated; another under its id is refused.
    let again = world
        .json(&format!("POST {path}"), &json!({"items": [items[1]]}))
        .await;
    assert_eq!(again["data"], json!([]));
    let gone = format!("{path}/{}", items[1]["id"].as_str().unwrap());
    let left = world.json(&format!("DELETE {gone}"), &Value::Null).await;
    assert_eq!(left["id"], json!(id));
    assert_eq!(left["object"], "conversation");
    assert_eq!(world.texts(&id).await, ["one", "look", "three", "four"]);
    for line in [format!("GET {gone}"), format!("DELETE {gone}")] {
        let missing = world.ask(&line, &[], &Value::Null).await;
        assert_eq!(
            (missing.status, missing.code().as_str()),
            (404, "item_not_found")
        );
    }
    // A model is not shown it either; a client's item of two contents goes as a whole.
    let mine = format!("DELETE {path}/msg_mine");
    world.json(&mine, &Value::Null).await;
    let counted = world.turn(&id, "How many messages?").await;
    assert!(said(&counted).contains('4'), "{counted}");
    let inputs = format!(
        "GET /v1/responses/{}/input_items?order=asc",
        counted["id"].as_str().unwrap()
    );
    let inputs = world.json(&inputs, &Value::Null).await;
    let inputs: Vec<String> = inputs["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    assert_eq!(inputs, ["one", "look", "three", "How many messages?"]);
    end(world.server).await;
}

#[tokio::test]
async fn bad_items_are_refused_by_name_and_store_nothing() {
    let world = World::new().await;
    let id = world.conversation(json!([message("one")])).await;
    let line = format!("POST /v1/conversations/{id}/items");
    let many: Vec<Value> = (0..21).map(|at| message(&at.to_string())).collect();
    for (body, code, param) in [
        (json!({}), "missing_required_parameter", "items"),
        (json!({"items": "no"}), "invalid_type", "items"),
        (json!({"items": many}), "array_above_max_length", "items"),
        (
            json!({"items": [message("a"), {"type": "message"}]}),
            "missing_required_parameter",
            "items[1].role",
        ),
        (
            json!({"items": [{"type": "item_reference", "id": "msg_none"}]}),
            "item_not_found",
            "items",
        ),
        (
            json!({"items": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}),
            "",
            "items",
        ),
    ] {
        let refused = world.ask(&line, &[], &body).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.body);
        assert_eq!(refused.code(), code, "{body}: {}", refused.body);
        assert_eq!(refused.error("param").unwrap_or_default(), param, "{body}");
    }
    let none = world
        .ask(
            "POST /v1/conversations/conv_none/items",
            &[],
            &json!({"items": []}),
        )
        .await;
    assert_eq!(none.status, 404);
    let named = json!({"model": "demo", "conversation": "conv_none", "input": "hi"});
    let refused = world.ask("POST /v1/responses", &[], &named).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (400, "conversation_not_found")
    );
    let unstored = json!({"model": "demo", "conversation": id, "input": "hi", "store": false});
    let refused = world.ask("POST /v1/responses", &[], &unstored).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (400, "conversation_requires_store")
    );
    assert_eq!(world.texts(&id).await, ["one"]);
    end(world.server).await;
}

#[tokio::test]
async fn turns_follow_each_other_and_a_response_of_a_conversation_can_be_branched() {
    let world = World::new().await;
    let id = world.conversation(json!([])).await;
    let first = world.turn(&id, "The tide is at four.").await;
    let second = world.turn(&id, "What did I say first?").await;
    assert!(said(&second).contains("The tide is at four."), "{second}");
    // A chain from the first response does not move the conversation.
    let body = json!({"model": "demo", "previous_response_id": first["id"], "input": "How many messages?"});
    let branch = world.json("POST /v1/responses", &body).await;
    assert!(said(&branch).contains('3'), "{branch}");
    assert_eq!(branch["previous_response_id"], first["id"]);
    assert!(branch.get("conversation").is_none(), "{branch}");
    let texts = world.texts(&id).await;
    assert_eq!(texts.len(), 4);
    assert_eq!(
        [&*texts[0], &*texts[2]],
        ["The tide is at four.", "What did I say first?"]
    );
    let both = json!({"model": "demo", "conversation": id, "previous_response_id": first["id"], "input": "x"});
    let refused = world.ask("POST /v1/responses", &[], &both).await;
    assert_eq!(refused.code(), "mutually_exclusive_parameters");
    end(world.server).await;
}

#[tokio::test]
async fn if_match_compares_the_head() {
    let world = World::new().await;
    let made = world.ask("POST /v1/conversations", &[], &json!({})).await;
    let empty = made.header("etag").unwrap().to_owned();
    let id: Value = serde_json::from_str(&made.body).unwrap();
    let id = id["id"].as_str().unwrap();
    let path = format!("/v1/conversations/{id}");
    let turn = json!({"model": "demo", "conversation": id, "input": "hi"});
    let first = world
        .ask("POST /v1/responses", &[("if-match", &empty)], &turn)
        .await;
    assert_eq!(first.status, 200, "{}", first.body);
    let after = first.header("etag").unwrap().to_owned();
    let read = world.ask(&format!("GET {path}"), &[], &Value::Null).await;
    assert_eq!(read.header("etag"), Some(&*after));
    let items = json!({"items": [message("more")]});
    for (line, body) in [
        ("POST /v1/responses".to_owned(), &turn),
        (format!("POST {path}/items"), &items),
    ] {
        let moved = world.ask(&line, &[("if-match", &empty)], body).await;
        assert_eq!(
            (moved.status, moved.code().as_str()),
            (412, "head_moved"),
            "{line}"
        );
        assert_eq!(moved.header("etag"), Some(&*after));
        assert_eq!(moved.header("x-should-retry"), Some("false"));
        let odd = world.ask(&line, &[("if-match", "node_1")], body).await;
        assert_eq!(odd.status, 400, "{}", odd.body);
    }
    let pairs = json!({"metadata": {"topic": "tides"}});
    for (line, body) in [
        (format!("POST {path}"), &pairs),
        (format!("DELETE {path}"), &Value::Null),
    ] {
        let moved = world.ask(&line, &[("if-match", &empty)], body).await;
        assert_eq!(
            (moved.status, moved.code().as_str()),
            (412, "head_moved"),
            "{line}"
        );
        let head = moved.error("head").unwrap();
        assert_eq!(format!("\"{head}\""), after, "{line}");
    }
    let named = world
        .ask(&format!("POST {path}"), &[("if-match", &after)], &pairs)
        .await;
    assert_eq!(named.status, 200, "{}", named.body);
    assert_eq!(named.header("etag"), Some(&*after));
    let added = world
        .ask(
            &format!("POST {path}/items"),
            &[("if-match", &after)],
            &items,
        )
        .await;
    assert_eq!(added.status, 200, "{}", added.body);
    let newest = added.header("etag").unwrap().to_owned();
    assert_ne!(newest, after);
    // A retry with the same key gets the response that moved the head.
    let keyed = [("if-match", &*newest), ("idempotency-key", "k1")];
    let one = world.ask("POST /v1/responses", &keyed, &turn).await;
    let two = world.ask("POST /v1/responses", &keyed, &turn).await;
    assert_eq!((one.status, two.status), (200, 200), "{}", two.body);
    assert_eq!(one.body, two.body);
    let chain = json!({"model": "demo", "input": "hi"});
    let alone = world
        .ask("POST /v1/responses", &[("if-match", &newest)], &chain)
        .await;
    assert_eq!(alone.status, 400, "{}", alone.body);
    end(world.server).await;
}

#[tokio::test]
async fn items_with_a_key_are_added_once() {
    let world = World::new().await;
    let id = world.conversation(json!([])).await;
    let line = format!("POST /v1/conversations/{id}/items");
    let body = json!({"items": [message("once")]});
    let keyed = [("idempotency-key", "items-1")];
    let one = world.ask(&line, &keyed, &body).await;
    let two = world.ask(&line, &keyed, &body).await;
    assert_eq!((one.status, two.status), (200, 200), "{}", two.body);
    assert_eq!(one.body, two.body);
    assert_eq!(world.texts(&id).await, ["once"]);
    let other = world
        .ask(&line, &keyed, &json!({"items": [message("twice")]}))
        .await;
    assert_eq!(
        (other.status, other.code().as_str()),
        (422, "idempotency_key_reused")
    );
    end(world.server).await;
}

#[tokio::test]
async fn items_that_an_sdk_sends_again_are_added_once() {
    let world = World::new().await;
    let id = world.conversation(json!([])).await;
    let line = format!("POST /v1/conversations/{id}/items");
    let body = json!({"items": [message("once")]});
    let count = |attempt: &'static str| [("x-stainless-retry-count", attempt)];
    // The answer is not read: the client breaks off.
    let text = body.to_string();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\nx-stainless-retry-count: 0\r\n\r\n{text}",
        text.len()
    );
    let mut client = Client::to(world.server.address).await;
    client.write(head.as_bytes()).await;
    while world.items(&id).await.is_empty() {
        tokio::task::yield_now().await;
    }
    // Closing resets the connection.
    client.stream.get_ref().set_zero_linger().unwrap();
    drop(client);
    let again = world.ask(&line, &count("1"), &body).await;
    assert_eq!(again.status, 200, "{}", again.body);
    let listed: Value = serde_json::from_str(&again.body).unwrap();
    assert_eq!(world.items(&id).await, *listed["data"].as_array().unwrap());
    // What its client has got is said anew if it is sent anew.
    let anew = world.ask(&line, &count("0"), &body).await;
    assert_eq!(anew.status, 200, "{}", anew.body);
    assert_eq!(world.texts(&id).await, ["once", "once"]);
    // The same items for another conversation are others.
    let other = world.conversation(json!([])).await;
    let path = format!("POST /v1/conversations/{other}/items");
    let elsewhere = world.ask(&path, &count("1"), &body).await;
    assert_eq!(elsewhere.status, 200, "{}", elsewhere.body);
    assert_eq!(world.texts(&other).await, ["once"]);
    end(world.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_of_many_clients_are_all_added() {
    const CLIENTS: usize = 12;
    let world = World::new().await;
    let id = world.conversation(json!([])).await;
    let line = format!("POST /v1/conversations/{id}/items");
    let writes = (0..CLIENTS).map(async |client| {
        for turn in 0..4 {
            let body = json!({"items": [message(&format!("{client}.{turn}"))]});
            let added = world.ask(&line, &[], &body).await;
            assert_eq!(added.status, 200, "{}", added.body);
        }
    });
    futures_util::future::join_all(writes).await;
    let mut texts = world.texts(&id).await;
    texts.sort();
    let mut wanted: Vec<String> = (0..CLIENTS)
        .flat_map(|client| (0..4).map(move |turn| format!("{client}.{turn}")))
        .collect();
    wanted.sort();
    assert_eq!(texts, wanted);
    end(world.server).await;
}

/// A server whose model answers `first` only when the gate is open, and everything else at once.
async fn slow(more: &str) -> (World, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let script = Script::respond_with(move |request: &Recorded| {
        let asked = request.body.to_string();
        let is_first = asked.contains("first") && !asked.contains("second");
        let reply = Reply::text(if is_first { "answer one" } else { "answer two" });
        match is_first {
            true => reply.held(&held),
            false => reply,
        }
    });
    let upstream = Upstream::start(Wire::OpenAiChat, script).await;
    let scratch = Scratch::new("conversations");
    let file = format!(
        "{more}\n[[upstream]]\nname = \"up\"\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\
         api_key_env = \"UP_KEY\"\n",
        upstream.base_url()
    );
    let variables = [
        ("UP_KEY", KEY),
        ("THROUGHLINE_STORE", &scratch.sqlite("store.db")),
    ];
    let server = start_with(config(&file, &variables)).await;
    let kept = Some((upstream, scratch));
    (World { server, kept }, gate)
}

/// Two turns on one conversation at the same time; the second with a choice.
async fn race(more: &str, on_busy: Option<&str>) -> (World, String, Answer, Answer) {
    let (world, gate) = slow(more).await;
    gate.close();
    let id = world.conversation(json!([message("before")])).await;
    let body = |input: &str| json!({"model": "up/m", "conversation": id, "input": input});
    let (one, mut two) = (body("first"), body("second"));
    if let Some(word) = on_busy {
        two["throughline"] = json!({"on_busy": word});
    }
    let first = world.ask("POST /v1/responses", &[], &one);
    let second = async {
        world.kept.as_ref().unwrap().0.received(1).await;
        if matches!(on_busy, Some("queue")) {
            let second = world.ask("POST /v1/responses", &[], &two);
            let opens = async {
                world.waits(&id).await;
                gate.open();
            };
            return tokio::join!(second, opens).0;
        }
        let second = world.ask("POST /v1/responses", &[], &two).await;
        gate.open();
        second
    };
    let (first, second) = tokio::join!(first, second);
    (world, id, first, second)
}

#[tokio::test]
async fn a_busy_conversation_refuses_a_second_turn_and_its_items() {
    for (more, status) in [("", 409), ("[server]\nlocked_status = 400", 400)] {
        let (world, id, first, second) = race(more, None).await;
        assert_eq!(first.status, 200, "{}", first.body);
        assert_eq!(
            (second.status, second.code().as_str()),
            (status, "conversation_locked")
        );
        assert_eq!(second.error("param").as_deref(), Some("conversation"));
        assert_eq!(second.header("x-should-retry"), Some("true"));
        assert_eq!(second.header("retry-after"), Some("1"));
        let holder: Value = serde_json::from_str(&first.body).unwrap();
        let body: Value = serde_json::from_str(&second.body).unwrap();
        let error = &body["error"];
        assert_eq!(error["response_id"], holder["id"], "{error}");
        let path = format!("GET /v1/conversations/{id}/items");
        let before = world.ask(&path, &[], &Value::Null).await;
        // The first turn has moved the head since.
        let now = before.header("etag").unwrap().trim_matches('"');
        assert!(error["head"].as_str().is_some_and(|head| head != now));
        assert!(error["version"].is_u64(), "{error}");
        assert_eq!(error["strategies"], json!(["queue", "branch", "interrupt"]));
        assert_eq!(world.texts(&id).await, ["before", "first", "answer one"]);
        end(world.server).await;
    }
}

#[tokio::test]
async fn a_turn_can_wait_for_the_one_before() {
    let (world, id, first, second) = race("", Some("queue")).await;
    assert_eq!((first.status, second.status), (200, 200), "{}", second.body);
    assert_eq!(
        world.texts(&id).await,
        ["before", "first", "answer one", "second", "answer two"]
    );
    end(world.server).await;
}

#[tokio::test]
async fn a_turn_can_go_on_from_the_old_head_as_a_branch() {
    let (world, id, first, second) = race("", Some("branch")).await;
    assert_eq!((first.status, second.status), (200, 200), "{}", second.body);
    assert_eq!(world.texts(&id).await, ["before", "first", "answer one"]);
    let branch: Value = serde_json::from_str(&second.body).unwrap();
    let line = format!("GET /v1/responses/{}", branch["id"].as_str().unwrap());
    let read = world.json(&line, &Value::Null).await;
    assert_eq!(read["output"], branch["output"]);
    let inputs = format!("{line}/input_items?order=asc");
    let inputs = world.json(&inputs, &Value::Null).await;
    let inputs: Vec<String> = inputs["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    assert_eq!(inputs, ["before", "second"]);
    // The head is that of the first turn.
    assert!(second.header("etag").is_none());
    end(world.server).await;
}

#[tokio::test]
async fn a_turn_can_interrupt_the_one_before() {
    let (world, id, first, second) = race("", Some("interrupt")).await;
    assert_eq!(second.status, 200, "{}", second.body);
    let first: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!(first["status"], "cancelled", "{first}");
    // What had come of the answer stays, marked.
    assert_eq!(
        world.texts(&id).await,
        ["before", "first", "answer one", "second", "answer two"]
    );
    assert_eq!(world.items(&id).await[2]["status"], "incomplete");
    end(world.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_was_left_is_finished_by_its_own_model_before_the_next() {
    let gate = Gate::default();
    gate.close();
    let replies = vec![
        Reply::text("lost").held(&gate),
        Reply::text("by its own model"),
    ];
    let upstream = Upstream::start(Wire::OpenAiChat, replies).await;
    let scratch = Scratch::new("conversations");
    let file = format!(
        "[limits]\ndrain_seconds = 0\n[[upstream]]\nname = \"up\"\nkind = \"openai-chat\"\n\
         base_url = \"{}\"\napi_key_env = \"UP_KEY\"\n",
        upstream.base_url()
    );
    let store = scratch.sqlite("store.db");
    let variables = [("UP_KEY", KEY), ("THROUGHLINE_STORE", store.as_str())];
    let begin = async || World {
        server: start_with(config(&file, &variables)).await,
        kept: None,
    };
    let world = begin().await;
    let id = world.conversation(json!([])).await;
    let first = json!({"model": "up/m", "conversation": id, "input": "first", "background": true});
    let first = world.json("POST /v1/responses", &first).await;
    upstream.received(1).await;
    end(world.server).await;
    gate.open();
    let world = begin().await;
    // It has another model, and comes while the first turn is not finished, or just when it is.
    let second = json!({"model": "demo", "conversation": id, "input": "How many messages?",
        "throughline": {"on_busy": "queue"}});
    let second = world.json("POST /v1/responses", &second).await;
    assert!(
        said(&second).starts_with("There are 3 messages"),
        "{second}"
    );
    let line = format!("GET /v1/responses/{}", first["id"].as_str().unwrap());
    let first = world.json(&line, &Value::Null).await;
    assert_eq!(
        (first["status"].as_str(), said(&first)),
        (Some("completed"), "by its own model")
    );
    assert_eq!(
        world.texts(&id).await[..3],
        ["first", "by its own model", "How many messages?"]
    );
    end(world.server).await;
}

#[tokio::test]
async fn a_conversation_outlives_its_server() {
    let scratch = Scratch::new("conversations");
    let variables = [("THROUGHLINE_STORE", scratch.sqlite("store.db"))];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let world = World {
        server: start_with(config("", &variables)).await,
        kept: None,
    };
    let id = world
        .conversation(json!([message("one"), message("two")]))
        .await;
    world.turn(&id, "three").await;
    let items = world.items(&id).await;
    let gone = items[0]["id"].as_str().unwrap();
    world
        .json(
            &format!("DELETE /v1/conversations/{id}/items/{gone}"),
            &Value::Null,
        )
        .await;
    end(world.server).await;
    let world = World {
        server: start_with(config("", &variables)).await,
        kept: None,
    };
    assert_eq!(world.items(&id).await, items[1..]);
    let counted = world.turn(&id, "How many messages?").await;
    assert!(said(&counted).contains('4'), "{counted}");
    end(world.server).await;
}

#[tokio::test]
async fn tokens_and_compaction_of_a_conversation_count_its_items() {
    let world = World::new().await;
    let id = world
        .conversation(json!([message(
            "The tide is at four, and the buoys are red."
        )]))
        .await;
    let count = async |conversation: Value| {
        let body = json!({"model": "demo", "conversation": conversation, "input": "and?"});
        let counted = world.json("POST /v1/responses/input_tokens", &body).await;
        counted["input_tokens"].as_u64().unwrap()
    };
    assert!(count(json!(id)).await > count(Value::Null).await + 5);
    let body = json!({"model": "demo", "conversation": id});
    let short = world.json("POST /v1/responses/compact", &body).await;
    assert!(short.to_string().contains("The tide is at four"), "{short}");
    for line in [
        "POST /v1/responses/input_tokens",
        "POST /v1/responses/compact",
    ] {
        let body = json!({"model": "demo", "conversation": "conv_none", "input": "hi"});
        let missing = world.ask(line, &[], &body).await;
        assert_eq!(missing.code(), "conversation_not_found", "{line}");
    }
    end(world.server).await;
}
