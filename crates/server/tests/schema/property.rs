//! Random runs: the grammar holds, and streamed and replayed responses are equal.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;
use throughline::RunEvent;
use throughline_model::json::RawJson;
use throughline_model::{CallId, Content, Message, Role, ToolCall};
use throughline_server::Dialect;
use throughline_server::api::openai::items::{
    Item, ItemId, ItemPlace, Listing, MessagePosition, PositionedMessage, input_items, same_item,
};
use throughline_server::api::openai::responses::wire::ResponseContext;
use throughline_store::RunId;
use throughline_testkit::{Rng, property};

use crate::schema::grammar::check;
use crate::schema::runs::{Fate, Told, known, run, tool_index, tool_list};
use crate::schema::support::{context, projected};

/// A context with tools of ours, and sometimes calls of the history.
fn staged(rng: &mut Rng, dialect: Dialect) -> ResponseContext {
    let body = *rng.pick(&[
        r#"{"model":"demo"}"#,
        r#"{"model":"demo","store":false}"#,
        r#"{"model":"demo","include":["message.output_text.logprobs","reasoning.encrypted_content"]}"#,
    ]);
    let mut context = context(body, dialect);
    context.tool_index = tool_index();
    if rng.chance(0.2) {
        context.lists = vec![tool_list()];
    }
    if rng.chance(0.2) {
        for number in 0..rng.range(1..=3) {
            let id = CallId::natural(&format!("known_{number}")).unwrap();
            context
                .known_calls
                .push(known(ToolCall::function(id, "place_order", "{}")));
        }
    }
    if rng.bool() {
        context.previous = Some(RunId::from_bytes([3; 16]));
    }
    context
}

fn streams_hold(name: &str, cases: u64, fate: Fate, dialect: Dialect) {
    let kinds: RefCell<BTreeMap<&'static str, usize>> = RefCell::default();
    let items: RefCell<BTreeMap<String, usize>> = RefCell::default();
    property(name, cases, |rng, size| {
        let context = staged(rng, dialect);
        let told = run(rng, size, fate, context);
        let checked = checked(&told, &told.streamed, "streamed")?;
        for (kind, count) in &checked.1 {
            *kinds.borrow_mut().entry(kind).or_default() += count;
        }
        for item in checked.0["output"].as_array().into_iter().flatten() {
            let tag = item["type"].as_str().unwrap_or_default().to_owned();
            *items.borrow_mut().entry(tag).or_default() += 1;
        }
        let replayed = checked_response(&told, &told.replayed, "replayed")?;
        let streamed = match fate {
            Fate::Redone => without_broken(&checked.0),
            Fate::Fails => return Ok(()),
            Fate::Plain | Fate::Cut => checked.0,
        };
        // A call may be shown after words that stand behind it; it is the same item all the same.
        let (streamed, replayed) = match told.in_turn {
            true => (streamed, replayed),
            false => (by_id(streamed), by_id(replayed)),
        };
        match streamed == replayed {
            true => Ok(()),
            false => Err(format!("streamed {streamed}\nreplayed {replayed}")),
        }
    });
    println!("{name}: events {:?}", kinds.borrow());
    println!("{name}: items {:?}", items.borrow());
}

/// A response with its items by their ids.
fn by_id(mut response: Value) -> Value {
    if let Some(output) = response["output"].as_array_mut() {
        output.sort_by_key(|item| item["id"].to_string());
    }
    response
}

fn checked_response(told: &Told, events: &[RunEvent], what: &str) -> Result<Value, String> {
    checked(told, events, what).map(|(response, _)| response)
}

type Response = (Value, BTreeMap<&'static str, usize>);

fn checked(told: &Told, events: &[RunEvent], what: &str) -> Result<Response, String> {
    let (frames, projector) = projected(&told.context, events, &told.ending);
    let checked = check(&frames).map_err(|why| format!("{what}: {why}\n{events:?}"))?;
    let whole: Value = serde_json::from_str(projector.response().get()).unwrap();
    if whole != checked.response {
        return Err(format!(
            "{what}: the response is not that of the last event"
        ));
    }
    Ok((checked.response, checked.kinds))
}

/// A response without what was said in model calls that broke off, as if they had never been made.
fn without_broken(response: &Value) -> Value {
    let mut response = response.clone();
    let output = response["output"].as_array().cloned().unwrap_or_default();
    let last = |step: &str| {
        let of_step = output.iter().filter(|item| step_of(item) == step);
        of_step.map(again_of).max().unwrap_or(0)
    };
    let kept: Vec<Value> = output
        .iter()
        .filter(|item| again_of(item) == last(&step_of(item)))
        .cloned()
        .collect();
    let named = kept.into_iter().map(|mut item| {
        if let Some(id) = item["id"].as_str().map(plain_id) {
            item["id"] = id.into();
        }
        item
    });
    response["output"] = named.collect::<Vec<_>>().into();
    response
}

/// The id without its prefix, number and how often its call was made.
fn step_of(item: &Value) -> String {
    let id = item["id"].as_str().unwrap_or_default();
    let parts: Vec<&str> = id.split('_').collect();
    parts.get(1..3).unwrap_or_default().join("_")
}

/// How often the model call of an item had been made before.
fn again_of(item: &Value) -> u32 {
    let id = item["id"].as_str().and_then(|id| id.parse::<ItemId>().ok());
    match id.map(|id| id.place) {
        Some(ItemPlace::Output { again, .. }) => again,
        _ => 0,
    }
}

fn plain_id(id: &str) -> String {
    match id.rsplit_once('r') {
        Some((plain, again)) if again.parse::<u32>().is_ok() => plain.to_owned(),
        _ => id.to_owned(),
    }
}

#[test]
fn streams_of_plain_runs_hold() {
    streams_hold("plain streams", 1500, Fate::Plain, Dialect::OpenAi);
    streams_hold(
        "plain open streams",
        500,
        Fate::Plain,
        Dialect::OpenResponses,
    );
}

#[test]
fn streams_of_runs_that_are_cut_hold() {
    streams_hold("cut streams", 500, Fate::Cut, Dialect::OpenAi);
    streams_hold("cut open streams", 200, Fate::Cut, Dialect::OpenResponses);
}

#[test]
fn streams_of_redone_calls_hold() {
    streams_hold("redone streams", 800, Fate::Redone, Dialect::OpenAi);
    streams_hold(
        "redone open streams",
        200,
        Fate::Redone,
        Dialect::OpenResponses,
    );
}

#[test]
fn streams_of_failing_runs_hold() {
    streams_hold("failing streams", 500, Fate::Fails, Dialect::OpenAi);
    streams_hold(
        "failing open streams",
        200,
        Fate::Fails,
        Dialect::OpenResponses,
    );
}

#[test]
fn whoever_reads_gets_the_same_frames_whenever() {
    property("frames are a function of events", 300, |rng, size| {
        let context = staged(rng, Dialect::OpenAi);
        let told = run(rng, size, Fate::Redone, context);
        let (one, _) = projected(&told.context, &told.streamed, &told.ending);
        let (two, _) = projected(&told.context, &told.streamed, &told.ending);
        match one == two {
            true => Ok(()),
            false => Err("two readers disagree".to_owned()),
        }
    });
}

/// What the history of a run lists, from the messages that were recorded of it.
fn listed(told: &Told, dialect: Dialect) -> Vec<Item> {
    let earlier = RunId::from_bytes([9; 16]);
    let known = told.context.known_calls.iter();
    let known = known.map(|known| Content::from(known.call.clone()));
    let known = Message::new(Role::Assistant, known.collect());
    let mut spoken = vec![PositionedMessage {
        run: earlier,
        place: MessagePosition::Step(0),
        message: &known,
    }];
    let mut step = 0;
    for event in &told.replayed {
        match event {
            RunEvent::Asked { step: no } => step = *no,
            RunEvent::Message(message) if message.role != Role::User => {
                spoken.push(PositionedMessage {
                    run: told.context.run,
                    place: MessagePosition::Step(step),
                    message,
                });
            }
            _ => {}
        }
    }
    let asked = told.ending.asked.iter().cloned();
    let asked: Vec<_> = asked.map(|asked| (told.context.run, asked)).collect();
    let listing = Listing {
        dialect,
        tool_index: &told.context.tool_index,
        seals: told.context.request.seals_reasoning(),
        summarizes: told.context.request.summarizes(),
        model: "demo",
        asked: &asked,
    };
    input_items(&spoken, &listing)
}

fn lists_what_was_shown(name: &str, dialect: Dialect) {
    let count = RefCell::new(0);
    property(name, 500, |rng, size| {
        let mut context = staged(rng, dialect);
        // Tools are listed by the request that asks for them, not by the history.
        context.lists.clear();
        let told = run(rng, size, Fate::Plain, context);
        let response = checked_response(&told, &told.streamed, "streamed")?;
        let mut shown: BTreeMap<String, Value> = BTreeMap::new();
        for item in response["output"].as_array().into_iter().flatten() {
            let id = item["id"].as_str().unwrap_or_default().to_owned();
            shown.insert(id, item.clone());
        }
        for item in listed(&told, dialect) {
            let Some(known) = shown.remove(&item.id) else {
                return Err(format!("{} is listed and was never shown", item.json));
            };
            let known = RawJson::new(&known.to_string()).unwrap();
            if !same_item(&known, &item.json) {
                return Err(format!("{} was shown as {known}", item.json));
            }
            *count.borrow_mut() += 1;
        }
        match shown.into_values().next() {
            None => Ok(()),
            Some(item) => Err(format!("{item} was shown and is not listed")),
        }
    });
    println!("{name}: {} items", count.borrow());
}

#[test]
fn a_history_lists_the_items_that_were_shown() {
    lists_what_was_shown("listed items", Dialect::OpenAi);
    lists_what_was_shown("listed open items", Dialect::OpenResponses);
}
