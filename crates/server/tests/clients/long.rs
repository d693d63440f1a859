//! Sessions that are much longer than a model's window.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_testkit::upstream::Prompts;
use throughline_testkit::web::Client;
use tokio::runtime::Runtime;

use crate::clients::board::Board;
use crate::clients::program::{Places, python, run};
use crate::clients::world::{Vendor, World, create};

/// Turns of a session: a request, a call, its result, an answer.
const TURNS: usize = 300;

/// Tokens that a window holds.
const WINDOW: u64 = 32_000;

/// What a file holds: between a few hundred bytes and a few thousand.
fn file(turn: usize) -> String {
    let lines = 6 + turn * 37 % 90;
    let line = |line| format!("pub fn plank_{turn}_{line}() -> u32 {{ nail({line}) }}\n");
    (0..lines).map(line).collect()
}

async fn said(client: &mut Client, body: &Value) -> Value {
    let answer = create(client, body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

/// A session; how many epochs its responses told of.
async fn session(world: &World, vendor: &Vendor) -> usize {
    let mut client = Client::new(world.address());
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = json!([{"type": "function", "name": "read_file", "parameters": parameters}]);
    let mut previous = Value::Null;
    let mut epochs = 0;
    for turn in 0..TURNS {
        let mut body = json!({"model": vendor.model, "truncation": "auto", "tools": tools,
            "previous_response_id": previous,
            "input": format!("use read_file with path=/src/pier_{turn}.rs")});
        let asked = said(&mut client, &body).await;
        let call = &asked["output"][0];
        assert_eq!(call["type"], "function_call", "{}: {asked}", vendor.name);
        body["previous_response_id"] = asked["id"].clone();
        body["input"] = json!([{"type": "function_call_output", "call_id": call["call_id"],
            "output": file(turn)}]);
        let done = said(&mut client, &body).await;
        let text = done["output"][0]["content"][0]["text"].as_str();
        assert!(text.is_some_and(|text| text.starts_with("read_file says: ")));
        for response in [&asked, &done] {
            let report = response["throughline"].get("compaction");
            epochs += usize::from(report.is_some());
            let unmet = report.and_then(|report| report.get("budget_unreachable"));
            assert_eq!(unmet, None);
        }
        previous = done["id"].clone();
    }
    epochs
}

/// What the vendor saw of a session with so many epochs.
fn seen(vendor: &Vendor, epochs: usize) -> Prompts {
    vendor.refused_nothing();
    let prompts = vendor.upstream.prompts().unwrap();
    assert_eq!(prompts.overflows, 0);
    assert!(prompts.largest <= WINDOW, "{prompts:?}");
    assert!(epochs > 3, "the session is longer than the window");
    // Between epochs each request begins with all of the one before, byte for byte.
    let restarts = (prompts.restarted, prompts.continued);
    assert_eq!(
        restarts,
        (epochs, 2 * TURNS - 1 - epochs),
        "{}",
        vendor.name
    );
    prompts
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_turns_never_overflow_a_window_and_keep_its_cache_between_epochs() {
    let world = World::with_windows(Some(WINDOW)).await;
    for vendor in &world.vendors {
        let epochs = session(&world, vendor).await;
        let prompts = seen(vendor, epochs);
        println!(
            "campaign long {}: turns={TURNS} epochs={epochs} overflow={} broken=0 largest={} \
             window={WINDOW} stable={}",
            vendor.name, prompts.overflows, prompts.largest, prompts.continued
        );
    }
}

#[test]
fn openai_for_python_drives_three_hundred_turns_on_a_strict_vendor() {
    let runtime = Runtime::new().expect("a runtime starts");
    let world = Arc::new(runtime.block_on(World::with_windows(Some(WINDOW))));
    let (orders, server) = Board::listen(&world, runtime.handle()).expect("loopback has a port");
    let places = Places { orders, server };
    for name in ["anthropic", "openai-chat"] {
        let vendor = world.vendor(name);
        let found = run(python("openai_long.py"), places, &vendor.model, Some(name));
        assert_eq!(found.problem, None);
        vendor.refused_nothing();
        let prompts = vendor.upstream.prompts().unwrap();
        println!(
            "campaign long {} on {name}: turns={TURNS} epochs={} overflow={} broken=0 checks={}",
            found.sdk.unwrap_or_default(),
            prompts.restarted,
            prompts.overflows,
            found.passed
        );
    }
}
