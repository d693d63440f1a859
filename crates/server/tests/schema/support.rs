//! What the tests share.

use std::sync::Arc;

use serde_json::Value;
use throughline::{RunEvent, StopReason};
use throughline_model::Stop;
use throughline_server::Dialect;
use throughline_server::api::openai::items::ToolIndex;
use throughline_server::api::openai::responses::wire::{
    CreateRequest, Ending, Frame, Projector, ResponseContext,
};
use throughline_store::{RunId, ThreadId};

/// The text of a fixture.
pub(crate) fn fixture(name: &str) -> String {
    let path = format!(
        "{}/tests/fixtures/responses/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A request that is known to be fine.
pub(crate) fn request(body: &str) -> Arc<CreateRequest> {
    let request = CreateRequest::parse(body.as_bytes());
    Arc::new(request.unwrap_or_else(|error| panic!("{body}: {error:?}")))
}

/// A context for a request.
pub(crate) fn context(body: &str, dialect: Dialect) -> ResponseContext {
    ResponseContext {
        run: RunId::from_bytes([0x5a; 16]),
        thread: Some(ThreadId::new("thr_1").unwrap()),
        created: 1_790_000_000_500,
        previous: None,
        request: request(body),
        dialect,
        tool_index: ToolIndex::new(),
        lists: Vec::new(),
        known_calls: Vec::new(),
        conversation: None,
        ignored: Vec::new(),
    }
}

/// An end without anything special.
pub(crate) fn ending(stop: StopReason, finish: Option<Stop>) -> Ending {
    Ending {
        stop,
        finish,
        error: None,
        asked: Vec::new(),
        at: 1_790_000_009_000,
        ignored: Vec::new(),
    }
}

/// All frames of a run, and the projector at its end.
pub(crate) fn projected(
    context: &ResponseContext,
    events: &[RunEvent],
    ending: &Ending,
) -> (Vec<Frame>, Projector) {
    let mut projector = Projector::new(context.clone());
    let mut frames = Vec::new();
    projector.begin(&mut frames);
    for event in events {
        projector.apply(event, &mut frames);
    }
    projector.finish(ending, &mut frames);
    (frames, projector)
}

/// An answer without the one member that OpenAI requires and Open Responses does not name, for checks that
/// there is nothing else of that kind.
pub(crate) fn without_cache_writes(answer: &Value) -> Value {
    let mut answer = answer.clone();
    remove(&mut answer, "cache_write_tokens");
    answer
}

fn remove(value: &mut Value, key: &str) {
    match value {
        Value::Object(members) => {
            members.remove(key);
            members.values_mut().for_each(|member| remove(member, key));
        }
        Value::Array(list) => list.iter_mut().for_each(|one| remove(one, key)),
        _ => {}
    }
}
