//! Histories that a client sends back in every way that clients have: the vendor gets its own calls
//! and signatures again, and the loop ends.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::upstream::{Entry, Reply, Script, entries};

use crate::http::support::end;
use crate::http::vendors::{Vendor, World, function, ignored, response};

/// How a client goes on after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    PreviousId,
    References,
    Echoed,
    EchoedWithoutIds,
    ReasoningDropped,
    NextUserTurn,
}

const WAYS: [Way; 6] = [
    Way::PreviousId,
    Way::References,
    Way::Echoed,
    Way::EchoedWithoutIds,
    Way::ReasoningDropped,
    Way::NextUserTurn,
];

#[derive(Clone, Copy, Debug)]
struct Case {
    way: Way,
    stored: bool,
    reasons: bool,
    streamed: bool,
}

/// A model that thinks and calls a tool, and answers once it has the result.
fn script(wire: &Wire) -> Script {
    let wire = wire.clone();
    Script::respond_with(move |request| {
        let entries = entries(&wire, &request.body);
        match entries.last() {
            Some(Entry::Result { text, .. }) => Reply::text(format!("The tide: {text}")),
            Some(Entry::User(text)) if text.contains("thank") => Reply::text("You are welcome."),
            _ => Reply::calls([("get_tide", r#"{"port":"Hull"}"#)])
                .reasoning_first("The tide first, then the berth."),
        }
    })
}

fn request(vendor: &Vendor, case: Case, input: &Value) -> Value {
    let mut body = json!({"model": vendor.model, "input": input, "tools": [function("get_tide")],
        "stream": case.streamed});
    if case.reasons {
        body["reasoning"] = json!({"effort": "low", "summary": "auto"});
    }
    if !case.stored {
        body["store"] = json!(false);
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    body
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn output_of(response: &Value) -> Vec<Value> {
    response["output"]
        .as_array()
        .expect("a response has items")
        .clone()
}

/// Items as a client sends them back.
fn replayed(items: &[Value], way: Way) -> Vec<Value> {
    let items = items.iter();
    match way {
        Way::PreviousId => Vec::new(),
        Way::References => items
            .map(|item| json!({"type": "item_reference", "id": item["id"]}))
            .collect(),
        Way::Echoed | Way::NextUserTurn => items.cloned().collect(),
        Way::EchoedWithoutIds => items
            .map(|item| {
                let mut item = item.clone();
                item.as_object_mut()
                    .expect("an item is an object")
                    .remove("id");
                item
            })
            .collect(),
        Way::ReasoningDropped => items
            .filter(|item| item["type"] != "reasoning")
            .cloned()
            .collect(),
    }
}

/// All values of members with these names, at any depth.
fn members<'v>(value: &'v Value, names: &[&str], found: &mut Vec<&'v str>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str() {
                    Some(text) if names.contains(&key.as_str()) => found.push(text),
                    _ => members(value, names, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| members(value, names, found)),
        _ => {}
    }
}

/// Whether the vendor gets back what it signed or sealed. It refuses what it has not made.
fn is_signed(wire: &Wire, body: &Value) -> bool {
    let names: &[&str] = match wire {
        Wire::Anthropic => &["signature"],
        Wire::Gemini => &["thoughtSignature"],
        _ => &["encrypted_content"],
    };
    let mut found = Vec::new();
    members(body, names, &mut found);
    let made_up = |text: &&str| text.contains("skip_thought_signature_validator");
    found.iter().any(|text| !text.is_empty() && !made_up(text))
}

/// Whether a way of going on has to bring back what the vendor signed.
fn must_be_signed(wire: &Wire, case: Case) -> bool {
    let signs = match wire {
        // It takes back no more than what is stored there, and chat completions have none.
        Wire::Foundry | Wire::OpenAiChat => false,
        _ => true,
    };
    let carried = match case.way {
        // The client holds what was sealed for it, or the record has it.
        Way::PreviousId | Way::References | Way::Echoed | Way::NextUserTurn => true,
        Way::ReasoningDropped => case.stored,
        Way::EchoedWithoutIds => !case.stored,
    };
    signs && carried && case.reasons
}

async fn go_on(world: &World, vendor: &Vendor, case: Case) {
    let asked = [user("use get_tide with port=Hull")];
    let first = world.create(&request(vendor, case, &json!(asked))).await;
    let items = output_of(&first);
    let call = items.iter().find(|item| item["type"] == "function_call");
    let call = call.unwrap_or_else(|| panic!("{first}"));
    let result = json!({"type": "function_call_output", "call_id": call["call_id"],
        "output": "04:12"});
    let mut input: Vec<Value> = Vec::new();
    if case.way != Way::PreviousId {
        input.extend(asked);
        input.extend(replayed(&items, case.way));
    }
    input.push(result);
    let mut body = request(vendor, case, &json!(input));
    if case.way == Way::PreviousId {
        body["previous_response_id"] = first["id"].clone();
    }
    let needs_record = matches!(case.way, Way::PreviousId | Way::References);
    if needs_record && !case.stored {
        let refused = world.send(&body).await;
        assert_eq!(refused.status, 400, "{case:?}: {}", refused.body);
        return;
    }
    let answer = world.send(&body).await;
    assert_eq!(
        answer.status, 200,
        "{} {case:?}: {}",
        vendor.kind, answer.body
    );
    let mut last = response(&answer);
    let text = last["output"].to_string();
    assert!(
        text.contains("The tide: 04:12"),
        "{} {case:?}: {last}",
        vendor.kind
    );
    if case.way == Way::NextUserTurn {
        input.extend(output_of(&last));
        input.push(user("thank you"));
        last = world.create(&request(vendor, case, &json!(input))).await;
        assert!(
            last["output"].to_string().contains("You are welcome."),
            "{last}"
        );
    }
    let sent = vendor.asked();
    let said = entries(&vendor.wire, &sent);
    let place = |is: fn(&Entry) -> bool| said.iter().position(is);
    let call = place(|entry| matches!(entry, Entry::Call { .. }));
    let result = place(|entry| matches!(entry, Entry::Result { .. }));
    let native = call.is_some() && call < result;
    assert!(native, "{} {case:?}: {said:?}\n{sent}", vendor.kind);
    // Nothing became text of the user.
    let told = |entry: &Entry| matches!(entry, Entry::User(text) if text.contains("Result of"));
    assert!(!said.iter().any(told), "{} {case:?}: {said:?}", vendor.kind);
    if must_be_signed(&vendor.wire, case) {
        assert!(
            is_signed(&vendor.wire, &sent),
            "{} {case:?}: {sent}",
            vendor.kind
        );
    }
    // Efforts that a vendor lacks, and reasoning that came without its id and without a seal.
    let expected = |(path, reason): &(String, String)| {
        let unsealed = case.way == Way::EchoedWithoutIds && case.stored;
        path.starts_with("reasoning") || unsealed && reason.contains("reasoning goes back")
    };
    let named: Vec<_> = ignored(&last)
        .into_iter()
        .filter(|one| !expected(one))
        .collect();
    assert!(named.is_empty(), "{} {case:?}: {named:?}", vendor.kind);
}

#[tokio::test]
async fn a_history_that_is_sent_back_keeps_its_calls_and_signatures_on_every_vendor() {
    let world = World::start(script, "").await;
    let mut cases = 0;
    for vendor in &world.vendors {
        for way in WAYS {
            for (stored, reasons, streamed) in
                (0..8).map(|bits| (bits & 1 == 0, bits & 2 == 0, bits & 4 == 0))
            {
                let case = Case {
                    way,
                    stored,
                    reasons,
                    streamed,
                };
                go_on(&world, vendor, case).await;
                cases += 1;
            }
        }
    }
    println!(
        "campaign replay: cases={cases} vendors={}",
        world.vendors.len()
    );
    assert_eq!(cases, 240);
    end(world.server).await;
}

#[tokio::test]
async fn an_item_that_was_edited_is_used_as_sent_and_named() {
    let world = World::start(script, "").await;
    let case = Case {
        way: Way::Echoed,
        stored: true,
        reasons: true,
        streamed: false,
    };
    for vendor in &world.vendors {
        let asked = user("use get_tide with port=Hull");
        let first = world.create(&request(vendor, case, &json!([asked]))).await;
        let mut items = output_of(&first);
        let call = items
            .iter_mut()
            .find(|item| item["type"] == "function_call")
            .expect("a call");
        call["arguments"] = json!(r#"{"port":"Brest"}"#);
        let result = json!({"type": "function_call_output", "call_id": call["call_id"],
            "output": "05:00"});
        let mut input = vec![asked];
        input.extend(items);
        input.push(result);
        let at = input
            .iter()
            .position(|item| item["type"] == "function_call");
        let last = world.create(&request(vendor, case, &json!(input))).await;
        assert!(last["output"].to_string().contains("05:00"), "{last}");
        let path = format!("input[{}]", at.expect("the call"));
        let named = ignored(&last);
        assert!(
            named.iter().any(|(found, _)| *found == path),
            "{}: {named:?}",
            vendor.kind
        );
        assert!(
            vendor.asked().to_string().contains("Brest"),
            "{}",
            vendor.kind
        );
    }
    end(world.server).await;
}

#[tokio::test]
async fn a_chain_takes_its_own_items_again_in_the_form_that_it_showed() {
    let world = World::start(script, "").await;
    let case = Case {
        way: Way::PreviousId,
        stored: true,
        reasons: true,
        streamed: false,
    };
    for vendor in &world.vendors {
        let asked = user("use get_tide with port=Hull");
        let first = world.create(&request(vendor, case, &json!([asked]))).await;
        let mut input = output_of(&first);
        let call = input.iter().find(|item| item["type"] == "function_call");
        let call = call.expect("a call")["call_id"].clone();
        input.push(json!({"type": "function_call_output", "call_id": call, "output": "04:12"}));
        let mut body = request(vendor, case, &json!(input));
        body["previous_response_id"] = first["id"].clone();
        let last = world.create(&body).await;
        assert!(
            last["output"].to_string().contains("The tide: 04:12"),
            "{last}"
        );
        // Nothing stands there twice.
        let said = entries(&vendor.wire, &vendor.asked());
        let calls = said
            .iter()
            .filter(|entry| matches!(entry, Entry::Call { .. }));
        assert_eq!(calls.count(), 1, "{}: {said:?}", vendor.kind);
    }
    end(world.server).await;
}
