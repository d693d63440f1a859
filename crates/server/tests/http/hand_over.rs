//! Threads that a vendor keeps: who else may go on with them, how they are handed over, and what
//! vendors have of them.

use serde_json::{Value, json};
use throughline::client::Abilities;
use throughline::thread::Owner;
use throughline::{Agent, ChatClient as _, Threads};
use throughline_model::Wire;
use throughline_server::{Server, serve};
use throughline_store::{NewThread, Store, ThreadId};
use throughline_testkit::Scratch;
use throughline_testkit::scripted::{Ids, Step, StoringService};
use throughline_testkit::upstream::{Extent, Fault, Gate, KEY, Recorded, Reply, Script, Upstream};

use crate::http::support::{Answer, Client, config, end};
use crate::http::vendors::response;

/// Two vendors that keep conversations, `a` and `c`, and one that keeps none, `b`.
struct World {
    a: Upstream,
    b: Upstream,
    c: Upstream,
    server: Server,
    store: Store,
    _folder: Scratch,
}

/// Answers say how many requests this vendor has answered.
fn counting(name: &'static str) -> Script {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    Script::respond_with(move |_: &Recorded| {
        let count = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        Reply::text(format!("{name}{count}"))
    })
}

const STORES: [&str; 2] = ["memory", "sqlite"];

impl World {
    async fn new(store: &str, more: &str) -> Self {
        let folder = Scratch::new("hand-over");
        let url = match store {
            "sqlite" => folder.sqlite("store.db"),
            _ => "memory:".to_owned(),
        };
        let a = Upstream::start(Wire::OpenAiResponses, counting("a")).await;
        let b = Upstream::start(Wire::Anthropic, counting("b")).await;
        let c = Upstream::start(Wire::Foundry, counting("c")).await;
        let mut file = more.to_owned();
        for (name, kind, vendor, history) in [
            ("a", "openai-responses", &a, "service"),
            ("b", "anthropic", &b, "local"),
            ("c", "foundry", &c, "service"),
        ] {
            file.push_str(&format!(
                "[[upstream]]\nname = \"{name}\"\nkind = \"{kind}\"\nbase_url = \"{}\"\n\
                 api_key_env = \"VENDOR_KEY\"\nhistory = \"{history}\"\n",
                match kind {
                    "foundry" => vendor.project(),
                    _ => vendor.base_url(),
                }
            ));
        }
        let store = Store::open(&url).await.unwrap();
        let server = Server::builder(config(&file, &[("VENDOR_KEY", KEY)])).store(store.clone());
        let server = server.serve().await.unwrap();
        Self {
            a,
            b,
            c,
            server,
            store,
            _folder: folder,
        }
    }

    async fn send(&self, line: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut client = Client::to(self.server.address).await;
        client.send(line, &[], body.as_bytes()).await
    }

    async fn json(&self, line: &str, body: &Value) -> Value {
        let answer = self.send(line, body).await;
        assert_eq!(answer.status, 200, "{line} {body}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// A response of a model, after another one.
    async fn ask(&self, model: &str, streamed: bool, previous: Option<&Value>) -> Answer {
        let mut body = json!({"model": model, "stream": streamed, "input": format!("to {model}")});
        if let Some(previous) = previous {
            body["previous_response_id"] = previous["id"].clone();
        }
        self.send("POST /v1/responses", &body).await
    }

    async fn answered(&self, model: &str, streamed: bool, previous: Option<&Value>) -> Value {
        let answer = self.ask(model, streamed, previous).await;
        assert_eq!(answer.status, 200, "{model}: {}", answer.body);
        let response = response(&answer);
        assert_eq!(response["status"], "completed", "{response}");
        response
    }

    async fn thread(&self, response: &Value) -> Value {
        let path = format!("GET {}", path(response));
        self.json(&path, &Value::Null).await
    }
}

fn path(response: &Value) -> String {
    let thread = response["throughline"]["thread"].as_str().unwrap();
    format!("/api/v1/threads/{thread}")
}

/// The body of the last model call that a vendor got.
fn asked(vendor: &Upstream) -> Value {
    let requests = vendor.requests();
    let mut calls = requests.iter().filter(|one| one.method == "POST");
    let last = calls.next_back().expect("the vendor was asked");
    assert!(last.is_accepted(), "{last:?}");
    last.body.clone()
}

/// The texts in a request, in order.
fn texts(body: &Value) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            Value::Object(members) => {
                for key in ["content", "text"] {
                    if let Some(value) = members.get(key) {
                        collect(value, found);
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for key in ["input", "messages"] {
        if let Some(value) = body.get(key) {
            collect(value, &mut found);
        }
    }
    found
}

/// The vendor's ids in a list of copies, each with what was done about it.
fn copies(listed: &Value) -> Vec<(String, String, String)> {
    let copies = listed["vendor_copies"].as_array().unwrap().iter();
    let mut copies: Vec<_> = copies
        .map(|copy| {
            let text = |key: &str| copy[key].as_str().unwrap().to_owned();
            (text("upstream"), text("id"), text("outcome"))
        })
        .collect();
    copies.sort();
    copies
}

fn service(upstream: &str) -> Value {
    json!({"kind": "service", "upstreams": [upstream]})
}

#[tokio::test]
async fn b117_another_upstream_is_refused_with_the_ways_to_go_on() {
    for store in STORES {
        let world = World::new(store, "").await;
        for streamed in [false, true] {
            let first = world.answered("a/m", streamed, None).await;
            let refused = world.ask("b/m", streamed, Some(&first)).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (409, "history_kept_elsewhere"),
                "{store}"
            );
            assert_eq!(refused.header("x-should-retry"), Some("false"));
            let thread = first["throughline"]["thread"].as_str().unwrap();
            assert_eq!(
                refused.error("message").unwrap(),
                format!(
                    "The history of this thread is kept by a, and not by b. Hand it over with POST \
                     /api/v1/threads/{thread}/hand-over and {{\"to\": {{\"upstream\": \"b\"}}}}, or \
                     with 'throughline threads hand-over {thread} --to b'; \
                     history.on_other_upstream = \"hand_over\" in the configuration does that \
                     whenever it is needed."
                )
            );
            assert!(world.b.requests().is_empty(), "nothing was sent");
            assert_eq!(world.thread(&first).await["owner"], service("a"));
            // Its own upstream goes on.
            world.answered("a/m", streamed, Some(&first)).await;
        }
        end(world.server).await;
    }
}

#[tokio::test]
async fn b241_a_chain_is_handed_over_to_the_vendor_that_goes_on_with_it() {
    for store in STORES {
        for streamed in [false, true] {
            let place = format!("{store}, streamed {streamed}");
            let world = World::new(store, "[history]\non_other_upstream = \"hand_over\"\n").await;
            let first = world.answered("a/m", streamed, None).await;
            let kept = copies(&world.thread(&first).await);
            let [(_, first_id, _)] = kept.as_slice() else {
                panic!("{place}: {kept:?}");
            };

            // Another vendor that keeps conversations sees the whole of it, and keeps it from now on.
            let second = world.answered("c/m", streamed, Some(&first)).await;
            let request = asked(&world.c);
            assert_eq!(texts(&request), ["to a/m", "a1", "to c/m"], "{place}");
            assert_eq!(request["store"], true, "{place}");
            let shown = world.thread(&second).await;
            assert_eq!(shown["owner"], service("c"), "{place}");
            assert_eq!(copies(&shown).len(), 2, "{place}");
            let third = world.answered("c/m", streamed, Some(&second)).await;
            assert_eq!(texts(&asked(&world.c)), ["to c/m"], "{place}");

            // The first one goes on with its conversation, and is sent what it has not seen.
            let fourth = world.answered("a/m", streamed, Some(&third)).await;
            let request = asked(&world.a);
            assert_eq!(request["previous_response_id"], json!(first_id), "{place}");
            assert_eq!(
                texts(&request),
                ["to c/m", "c1", "to c/m", "c2", "to a/m"],
                "{place}"
            );

            // One that keeps none is sent everything from our store.
            let fifth = world.answered("b/m", streamed, Some(&fourth)).await;
            let whole = [
                "to a/m", "a1", "to c/m", "c1", "to c/m", "c2", "to a/m", "a2",
            ];
            let mut expected: Vec<&str> = whole.to_vec();
            expected.push("to b/m");
            assert_eq!(texts(&asked(&world.b)), expected, "{place}");
            let shown = world.thread(&fifth).await;
            assert_eq!(shown["owner"], json!({"kind": "local"}), "{place}");
            let left = copies(&shown);
            let upstreams: Vec<&str> = left.iter().map(|(upstream, ..)| &**upstream).collect();
            assert_eq!(upstreams, ["a", "a", "c", "c"], "{place}");
            assert!(left.iter().any(|(_, id, _)| id == first_id), "{place}");
            // A branch from before is handed over too: nothing is kept elsewhere any more.
            world.answered("b/m", streamed, Some(&first)).await;
            assert_eq!(
                texts(&asked(&world.b)),
                ["to a/m", "a1", "to b/m"],
                "{place}"
            );
            end(world.server).await;
        }
    }
}

/// A thread whose conversation at `a` went on elsewhere: the vendor has two messages more. Returns the
/// response to go on from.
async fn with_more(world: &World, thread: &str) -> Value {
    let conversation = world.a.conversation();
    for text in ["hi", "elsewhere"] {
        let body = json!({"model": "m", "input": text, "conversation": conversation});
        let body = body.to_string();
        let address = world.a.origin().replace("http://", "").parse().unwrap();
        let key = format!("Bearer {KEY}");
        let headers = [
            ("authorization", &*key),
            ("content-type", "application/json"),
        ];
        let mut client = Client::to(address).await;
        let line = "POST /v1/responses";
        let answer = client.send(line, &headers, body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    // What our record has: the first of the two turns.
    let step = Step::text("a1").kept_as(&conversation);
    let service = StoringService::new(Ids::PerCall, [step]);
    let abilities = Abilities {
        upstream: "a".to_owned(),
        ..service.abilities().clone()
    };
    let agent = Agent::builder(service.with_abilities(abilities));
    let agent = agent.build().unwrap();
    let new = NewThread::new(ThreadId::new(thread).unwrap());
    let thread = Threads::of(&world.store).make_free(new);
    thread.set_owner(Owner::service("a")).await.unwrap();
    let run = agent.run_on(&thread, "hi").await.unwrap().run;
    json!({"id": format!("resp_{}", run.to_hex()), "throughline": {"thread": thread.id().as_str()}})
}

const WHOLE: [&str; 5] = ["hi", "a1", "elsewhere", "a2", "to b/m"];

#[tokio::test]
async fn b241_what_a_vendor_has_more_is_part_of_the_history() {
    for store in STORES {
        for streamed in [false, true] {
            let place = format!("{store}, streamed {streamed}");
            let world = World::new(store, "[history]\non_other_upstream = \"hand_over\"\n").await;
            let first = with_more(&world, "t").await;
            let second = world.answered("b/m", streamed, Some(&first)).await;
            assert_eq!(texts(&asked(&world.b)), WHOLE, "{place}");
            assert_eq!(second["previous_response_id"], first["id"], "{place}");
            let shown = world.thread(&second).await;
            assert_eq!(shown["owner"], json!({"kind": "local"}), "{place}");
            assert_eq!(shown["head"]["last"], 6, "{place}");
            // The chain goes on from there.
            world.answered("b/m", streamed, Some(&second)).await;
            assert_eq!(texts(&asked(&world.b)).len(), 7, "{place}");
            end(world.server).await;

            let world = World::new(store, "").await;
            let first = with_more(&world, "t").await;
            let line = format!("POST {}/hand-over", path(&first));
            let handed = world.json(&line, &json!({"to": {"upstream": "b"}})).await;
            let read_back = &handed["read_back"][0];
            assert_eq!(
                (&read_back["outcome"], &read_back["messages"]),
                (&json!("added"), &json!(2)),
                "{place}: {handed}"
            );
            let behind = json!({"id": handed["previous_response_id"]});
            world.answered("b/m", streamed, Some(&behind)).await;
            assert_eq!(texts(&asked(&world.b)), WHOLE, "{place}");
            end(world.server).await;
        }
    }
}

#[tokio::test]
async fn b241_a_vendor_that_cannot_be_asked_leaves_the_thread_as_it_is() {
    for hands_over in [false, true] {
        let policy = match hands_over {
            true => "[history]\non_other_upstream = \"hand_over\"\n",
            false => "",
        };
        let world = World::new("memory", policy).await;
        let first = world.answered("a/m", false, None).await;
        world.a.inflict(Fault::Unauthorised, Extent::Always).await;
        let line = format!("POST {}/hand-over", path(&first));
        let refused = match hands_over {
            true => world.ask("b/m", false, Some(&first)).await,
            false => {
                let to_b = json!({"to": {"upstream": "b"}});
                world.send(&line, &to_b).await
            }
        };
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (502, "upstream_error"),
            "{}",
            refused.body
        );
        assert!(refused.body.contains("--no-read-back"), "{}", refused.body);
        assert_eq!(world.thread(&first).await["owner"], service("a"));
        assert!(world.b.requests().is_empty());
        // Its copies are not deleted either, and so the thread stays.
        let delete = format!("DELETE {}?vendors=delete", path(&first));
        let kept = world.send(&delete, &Value::Null).await;
        assert_eq!(
            (kept.status, kept.code().as_str()),
            (502, "vendor_copy_not_deleted"),
            "{}",
            kept.body
        );
        let listed: Value = serde_json::from_str(&kept.body).unwrap();
        assert_eq!(copies(&listed["error"])[0].2, "failed");
        assert_eq!(world.thread(&first).await["owner"], service("a"));
        // The record alone can be handed over, and deleted when the vendor is back.
        let alone = json!({"to": {"upstream": "b"}, "read_back": false});
        assert_eq!(world.json(&line, &alone).await["to"]["kind"], "local");
        world.a.heal().await;
        let deleted = world.json(&delete, &Value::Null).await;
        assert_eq!(copies(&deleted)[0].2, "deleted");
        end(world.server).await;
    }
}

#[tokio::test]
async fn b241_a_refused_request_hands_nothing_over() {
    let world = World::new("memory", "[history]\non_other_upstream = \"hand_over\"\n").await;
    let first = world.answered("a/m", false, None).await;
    let body = json!({"model": "b/m", "previous_response_id": first["id"],
        "input": [{"type": "item_reference", "id": "msg_nowhere"}]});
    let answer = world.send("POST /v1/responses", &body).await;
    assert_eq!(answer.status / 100, 4, "{}", answer.body);
    assert_eq!(world.thread(&first).await["owner"], service("a"));
    // What is not stored leaves the thread as it is, and is sent what our record has.
    let body = json!({"model": "b/m", "previous_response_id": first["id"], "input": "aside",
        "store": false});
    assert_eq!(world.send("POST /v1/responses", &body).await.status, 200);
    assert_eq!(texts(&asked(&world.b)), ["to a/m", "a1", "aside"]);
    assert_eq!(world.thread(&first).await["owner"], service("a"));
    end(world.server).await;
}

#[tokio::test]
async fn b241_a_thread_is_handed_over_by_a_request() {
    for store in STORES {
        for streamed in [false, true] {
            let world = World::new(store, "").await;
            let first = world.answered("a/m", streamed, None).await;
            let path = path(&first);
            let line = format!("POST {path}/hand-over");
            let kept = copies(&world.thread(&first).await);
            let id = &kept[0].1;
            // `b` keeps nothing, so that our store does.
            let to_b = json!({"to": {"upstream": "b"}});
            let handed = world.json(&line, &to_b).await;
            assert_eq!(
                handed,
                json!({
                    "id": first["throughline"]["thread"], "object": "thread.handed_over",
                    "from": service("a"), "to": {"kind": "local"},
                    "read_back": [{"upstream": "a", "id": id, "outcome": "same",
                        "messages": 0}],
                    "previous_response_id": null,
                }),
                "{store}"
            );
            // Again, it changes nothing.
            let again = world.json(&line, &to_b).await;
            assert_eq!(again["from"], json!({"kind": "local"}));
            assert_eq!(again["read_back"], json!([]));
            let second = world.answered("b/m", streamed, Some(&first)).await;
            assert_eq!(texts(&asked(&world.b)), ["to a/m", "a1", "to b/m"]);
            // To a vendor that keeps conversations, and back.
            let to_c = json!({"to": {"upstream": "c"}, "read_back": false});
            assert_eq!(world.json(&line, &to_c).await["to"], service("c"));
            let third = world.answered("c/m", streamed, Some(&second)).await;
            assert_eq!(
                texts(&asked(&world.c)),
                ["to a/m", "a1", "to b/m", "b1", "to c/m"]
            );
            let to_local = json!({"to": {"owner": "local"}});
            let handed = world.json(&line, &to_local).await;
            assert_eq!(
                (&handed["from"], &handed["to"]),
                (&service("c"), &json!({"kind": "local"}))
            );
            world.answered("b/m", streamed, Some(&third)).await;
            assert_eq!(texts(&asked(&world.b)).len(), 7);
            end(world.server).await;
        }
    }
}

#[tokio::test]
async fn a_hand_over_that_cannot_be_made_says_why() {
    let world = World::new("memory", "").await;
    let first = world.answered("a/m", false, None).await;
    let line = format!("POST {}/hand-over", path(&first));
    for (body, code, param) in [
        (json!({}), "missing_required_parameter", Some("to")),
        (json!({"to": "b"}), "invalid_type", Some("to")),
        (
            json!({"to": {}}),
            "missing_required_parameter",
            Some("to.upstream"),
        ),
        (
            json!({"to": {"upstream": "B1"}}),
            "upstream_not_found",
            Some("to.upstream"),
        ),
        (
            json!({"to": {"owner": "external"}}),
            "invalid_value",
            Some("to.owner"),
        ),
        (
            json!({"to": {"owner": "local", "upstream": "b"}}),
            "invalid_value",
            Some("to"),
        ),
        (
            json!({"to": {"upstrem": "b"}}),
            "unknown_parameter",
            Some("to.upstrem"),
        ),
        (
            json!({"to": {"upstream": "b"}, "readback": false}),
            "unknown_parameter",
            Some("readback"),
        ),
        (
            json!({"to": {"upstream": "b"}, "read_back": 1}),
            "invalid_type",
            Some("read_back"),
        ),
        (json!([]), "", None),
    ] {
        let answer = world.send(&line, &body).await;
        assert_eq!(
            (
                answer.status,
                answer.code().as_str(),
                answer.error("param").as_deref()
            ),
            (400, code, param),
            "{body}: {}",
            answer.body
        );
    }
    let text = world.send(&line, &json!({"to": {"upstrem": "b"}})).await;
    assert_eq!(
        text.error("message").unwrap(),
        "Unknown parameter: 'to.upstrem'; did you mean \"upstream\"?"
    );
    let to_b = json!({"to": {"upstream": "b"}});
    let nowhere = world
        .send("POST /api/v1/threads/nowhere/hand-over", &to_b)
        .await;
    assert_eq!(nowhere.status, 404, "{}", nowhere.body);
    let wrong = world.send(&line.replace("POST", "GET"), &Value::Null).await;
    assert_eq!(wrong.status, 405, "{}", wrong.body);
    end(world.server).await;
}

#[tokio::test]
async fn a_thread_at_work_is_neither_handed_over_nor_deleted() {
    let gate = Gate::default();
    gate.close();
    let replies = [Reply::text("a1"), Reply::text("late").held(&gate)];
    let vendor = Upstream::start(Wire::OpenAiResponses, replies).await;
    let file = format!(
        "[[upstream]]\nname = \"a\"\nkind = \"openai-responses\"\nbase_url = \"{}\"\n\
         api_key_env = \"VENDOR_KEY\"\nhistory = \"service\"\n",
        vendor.base_url()
    );
    let server = serve(config(&file, &[("VENDOR_KEY", KEY)])).await.unwrap();
    let address = server.address;
    let send = async |line: &str, body: Value| {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut client = Client::to(address).await;
        client.send(line, &[], body.as_bytes()).await
    };
    let first = send("POST /v1/responses", json!({"model": "a/m", "input": "hi"})).await;
    let first = response(&first);
    let next = json!({"model": "a/m", "input": "and?", "previous_response_id": first["id"]});
    let mut client = Client::to(address).await;
    let text = next.to_string();
    let late = client.send("POST /v1/responses", &[], text.as_bytes());
    let refused = async {
        vendor.received(2).await;
        let path = path(&first);
        let handed = json!({"to": {"owner": "local"}});
        for (line, body) in [
            (format!("POST {path}/hand-over"), handed),
            (format!("DELETE {path}"), Value::Null),
        ] {
            let answer = send(&line, body).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (409, "thread_unsettled"),
                "{line}"
            );
            assert_eq!(answer.header("retry-after"), Some("1"));
            let text = answer.error("message").unwrap();
            assert!(
                text.ends_with(" on this thread is running. Try again when it has ended."),
                "{text}"
            );
        }
        gate.open();
    };
    let (late, ()) = futures_util::future::join(late, refused).await;
    assert_eq!(response(&late)["status"], "completed");
    let line = format!("POST {}/hand-over", path(&first));
    let handed = send(&line, json!({"to": {"owner": "local"}})).await;
    assert_eq!(handed.status, 200, "{}", handed.body);
    end(server).await;
}

#[tokio::test]
async fn b242_a_thread_and_its_receipt_name_what_vendors_have() {
    for store in STORES {
        for streamed in [false, true] {
            let world = World::new(store, "").await;
            let first = world.answered("a/m", streamed, None).await;
            let second = world.answered("a/m", streamed, Some(&first)).await;
            let shown = world.thread(&first).await;
            assert_eq!(shown["object"], "thread");
            assert_eq!(shown["id"], first["throughline"]["thread"]);
            assert_eq!(
                (&shown["head"]["last"], &shown["title"]),
                (&json!(4), &Value::Null)
            );
            // Each response is under an id of its own; the thread goes on from the last.
            let ids = copies(&shown);
            assert_eq!(ids.len(), 2, "{store}: {shown}");
            let now = &shown["services"][0];
            assert_eq!((&now["upstream"], &now["agent"]), (&json!("a"), &json!("")));
            assert!(ids.iter().any(|(_, id, _)| now["id"] == json!(id)));
            assert!(ids.iter().all(|(_, _, outcome)| outcome == "remains"));
            let one = &shown["vendor_copies"][0];
            assert_eq!((&one["agent"], &one["reason"]), (&json!(""), &Value::Null));

            let path = path(&first);
            let odd = world
                .send(&format!("DELETE {path}?vendors=erase"), &Value::Null)
                .await;
            assert_eq!((odd.status, odd.code().as_str()), (400, "invalid_value"));
            let odd = world
                .send(&format!("DELETE {path}?vendor=delete"), &Value::Null)
                .await;
            assert_eq!(
                (odd.status, odd.code().as_str()),
                (400, "unknown_parameter")
            );
            // Only on request are vendors asked.
            let (line, outcome) = match streamed {
                false => (format!("DELETE {path}"), "remains"),
                true => (format!("DELETE {path}?vendors=delete"), "deleted"),
            };
            let deleted = world.json(&line, &Value::Null).await;
            assert_eq!(
                (&deleted["id"], &deleted["deleted"]),
                (&shown["id"], &json!(true))
            );
            let mut expected = ids.clone();
            expected
                .iter_mut()
                .for_each(|copy| copy.2 = outcome.to_owned());
            assert_eq!(copies(&deleted), expected, "{store}");
            assert_eq!(world.a.stored().is_empty(), streamed, "{store}");

            for line in [format!("GET {path}"), format!("DELETE {path}")] {
                let gone = world.send(&line, &Value::Null).await;
                assert_eq!(gone.status, 404, "{line}: {}", gone.body);
            }
            let gone = world.ask("a/m", streamed, Some(&second)).await;
            assert_eq!(
                (gone.status, gone.code().as_str()),
                (400, "previous_response_not_found"),
                "{store}"
            );
            end(world.server).await;
        }
    }
}
