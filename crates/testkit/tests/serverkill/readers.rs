//! Reads streams, from the beginning or after an event, whole or up to a cut.

use serde_json::Value;
use throughline_testkit::Rng;
use throughline_testkit::serverkill::{Event, Exchange, Request};

use crate::serverkill::world::World;

/// The end of reading a stream.
#[derive(Debug)]
pub(crate) enum Read {
    /// The last event, with this response.
    Whole(Value),
    /// A cut; the response and the last event number, if known.
    Cut(Option<String>, Option<u64>),
}

/// Where a reader begins and stops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// The response, if known.
    pub(crate) response: Option<String>,
    /// The number of the event before.
    pub(crate) after: Option<u64>,
    /// After how many events it stops.
    pub(crate) enough: Option<u64>,
}

/// Reads a stream whose head has arrived. Numbers are consecutive, and each event is the one that
/// every other reader received.
pub(crate) fn stream(world: &World, answer: &mut Exchange, span: Span) -> Result<Read, String> {
    let mut id = span.response;
    let mut last = span.after;
    let mut end: Option<Value> = None;
    let mut heard = 0;
    {
        let mut state = world.state();
        state.counts.streams += 1;
        state.counts.resumed += u64::from(last.is_some());
    }
    loop {
        if span.enough.is_some_and(|enough| heard >= enough) {
            // A reader that received the end does not ask again.
            return Ok(match end {
                Some(response) => Read::Whole(response),
                None => Read::Cut(id, last),
            });
        }
        let chunk = match answer.chunk() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(_) => {
                world.state().counts.cut += 1;
                return Ok(Read::Cut(id, last));
            }
        };
        let Some(event) = Event::read(&chunk)? else {
            continue;
        };
        heard += 1;
        let expected = last.map_or(0, |last| last + 1);
        if event.number != expected {
            let number = event.number;
            return Err(format!("{id:?}: event {number} came instead of {expected}"));
        }
        last = Some(event.number);
        let own = event.response().and_then(|one| one.get("id"));
        match (&id, own.and_then(Value::as_str)) {
            (None, Some(own)) => {
                id = Some(own.to_owned());
                world.state().streams.push(own.to_owned());
            }
            (Some(id), Some(own)) if id != own => {
                return Err(format!("a stream of {id} shows {own}"));
            }
            _ => {}
        }
        let Some(id) = &id else {
            return Err("a stream does not begin with its response".to_owned());
        };
        world.hears(id, &event)?;
        if event.is_last() {
            end = event.response().cloned();
        }
    }
    match end {
        Some(response) => Ok(Read::Whole(response)),
        // All events were received before.
        None if id
            .as_ref()
            .is_some_and(|id| world.state().streams_read.last(id) == last) =>
        {
            Ok(Read::Cut(id, last))
        }
        None => Err(format!(
            "{id:?}: a stream ends after {last:?}, without its end"
        )),
    }
}

/// The request that reads a stream again.
pub(crate) fn again(response: &str, after: Option<u64>) -> Request {
    let after = after.map_or_else(String::new, |after| format!("&starting_after={after}"));
    Request::get(format!("/v1/responses/{response}?stream=true{after}"))
}

/// Reads streams of other clients until the test ends.
pub(crate) fn reader(world: &World, mut rng: Rng) -> Result<(), String> {
    while !world.is_over() {
        let address = world.address()?;
        let chosen = {
            let state = world.state();
            let newest = state.streams.len().saturating_sub(12);
            let newest = &state.streams[newest..];
            (!newest.is_empty()).then(|| newest[rng.below(newest.len())].clone())
        };
        let Some(response) = chosen else {
            world.happens(1, || false);
            continue;
        };
        let newest = world.state().streams_read.newest(&response);
        let after = newest.filter(|_| rng.chance(0.7));
        let after = after.map(|newest| rng.below(newest as usize + 1) as u64);
        let enough = rng.chance(0.3).then(|| 1 + rng.below(20) as u64);
        let Ok(mut answer) = Exchange::open(&address, &again(&response, after)) else {
            world.unreachable(&address);
            continue;
        };
        if answer.status != 200 {
            return Err(format!("{response} is read with status {}", answer.status));
        }
        let span = Span {
            response: Some(response),
            after,
            enough,
        };
        stream(world, &mut answer, span)?;
    }
    Ok(())
}
