//! After the last kill: everything is read again, and every chain takes another turn.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use throughline_store::{Authority, RunFilter, Store, Tenant};
use throughline_testkit::Rng;
use throughline_testkit::record::block_on;
use throughline_testkit::serverkill::{Exchange, ModelCall, Request, Turn};

use crate::serverkill::callers::{Caller, same};
use crate::serverkill::readers::{Read, Span, again, stream};
use crate::serverkill::world::World;

/// Reads every response and every stream again.
pub(crate) fn read_again(world: &World, rng: &mut Rng) -> Result<(), String> {
    let address = world.address()?;
    let turns: Vec<Turn> = world.state().ledger.turns().cloned().collect();
    for turn in &turns {
        if !same(world, &address, turn)? {
            return Err(format!("{} cannot be read", turn.code));
        }
    }
    let streams: BTreeSet<String> = world.state().streams.iter().cloned().collect();
    for response in &streams {
        let last = whole(world, &address, response, None)?;
        let after = rng.below(last as usize + 1) as u64;
        whole(world, &address, response, Some(after))?;
    }
    Ok(())
}

/// Reads a stream to its end; returns the number of its last event.
fn whole(world: &World, address: &str, response: &str, after: Option<u64>) -> Result<u64, String> {
    let mut answer = Exchange::open(address, &again(response, after))
        .map_err(|error| format!("{response} cannot be read: {error}"))?;
    let span = Span {
        response: Some(response.to_owned()),
        after,
        enough: None,
    };
    let read = stream(world, &mut answer, span)?;
    let last = world.state().streams_read.last(response);
    match (read, last) {
        (Read::Whole(_), Some(last)) => Ok(last),
        // There is nothing after the last event.
        (Read::Cut(..), Some(last)) if after == Some(last) => Ok(last),
        (read, _) => Err(format!("{response} after {after:?} has no end: {read:?}")),
    }
}

/// Every chain takes another turn.
pub(crate) fn go_on(world: &World, models: &[&str]) -> Result<usize, String> {
    let turns: Vec<Turn> = world.state().ledger.turns().cloned().collect();
    let parents: BTreeSet<&str> = turns
        .iter()
        .filter_map(|turn| turn.parent.as_deref())
        .collect();
    let ends = turns
        .iter()
        .filter(|turn| !parents.contains(turn.code.as_str()));
    let ends: Vec<&Turn> = ends.collect();
    for (place, model) in models.iter().enumerate() {
        let mut caller = Caller::new(world, 1_000 + place, model, Rng::new(0));
        for end in ends.iter().filter(|end| end.demo == (*model == "demo")) {
            match end.demo {
                true => counted(world, end)?,
                false => caller.go_on(&end.code, end.id())?,
            }
        }
    }
    Ok(ends.len())
}

/// Checks how many messages the built-in model was sent.
fn counted(world: &World, end: &Turn) -> Result<(), String> {
    let messages: usize = {
        let state = world.state();
        let chain = state.ledger.chain(&end.code);
        let said = chain
            .iter()
            .map(|turn| 1 + usize::from(turn.text().is_some()));
        said.sum()
    };
    let body = serde_json::json!({
        "model": "demo",
        "input": "How many messages are there?",
        "previous_response_id": end.id(),
    });
    let request = Request::post("/v1/responses", body.to_string());
    let answer = Exchange::open(&world.address()?, &request).and_then(|mut one| one.whole());
    let body = answer.map_err(|error| format!("{} does not go on: {error}", end.code))?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = body.pointer("/output/0/content/0/text");
    let text = text.and_then(Value::as_str).unwrap_or_default();
    match text.starts_with(&format!("There are {} messages", messages + 1)) {
        true => Ok(()),
        false => Err(format!(
            "{}: its chain has {messages} messages, and the model says {text:?} ({body})",
            end.code
        )),
    }
}

/// The requests of the upstream, none of which it refused.
pub(crate) fn asked(lines: &[String]) -> Result<Vec<ModelCall>, String> {
    let read = lines.iter().map(|line| match ModelCall::read(line) {
        Some(asked) => Ok(asked),
        None => Err(format!("the upstream says {line}")),
    });
    read.collect()
}

/// Checks that there is one run per key, and per body that was retried as SDKs do; and that the
/// store is sound.
pub(crate) fn runs(url: &str) -> Result<usize, String> {
    let said = |error: throughline_store::Error| error.to_string();
    let store = block_on(Store::open(url)).map_err(said)?;
    let checked = block_on(store.check(&mut |_| {})).map_err(said)?;
    if let Some(damage) = checked.damage.first() {
        return Err(format!("{damage:?}"));
    }
    let tenant = Tenant::new("local").map_err(|error| error.to_string())?;
    let scope = Authority::assume().scope(tenant);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = block_on(store.runs(&scope, &RunFilter::default(), after, 100)).map_err(said)?;
        for run in page.found {
            let Some(key) = run.key else {
                continue;
            };
            let body = key
                .strip_prefix("body:")
                .and_then(|rest| rest.split(':').next());
            let name = body.map_or_else(|| key.clone(), str::to_owned);
            *found.entry(name).or_default() += 1;
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    match found.iter().find(|(_, count)| **count != 1) {
        None => Ok(found.len()),
        Some((key, count)) => Err(format!("{count} runs were begun for {key}")),
    }
}
