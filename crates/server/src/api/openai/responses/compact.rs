//! `POST /v1/responses/compact`: a compacted conversation that a client can continue.
//!
//! No model is called: messages of users and instructions come back unchanged, everything else as one
//! sealed item. Nothing is stored or changed.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use throughline::agent::{Condensed, condense};
use throughline_model::Message;
use throughline_model::json::{ArrayWriter, RawJson, Value};
use throughline_store::{RunId, TenantScope};

use super::chain::{self, ListingOptions};
use super::resolve_input::resolve_input;
use super::wire::{CompactionRequest, CreateRequest, UsageTotal};
use super::{compaction_options, errors, input_tokens, stored_response};
use crate::api::openai::items::{COMPACTION_PURPOSE, CompactionToken, InputItems, InputPart, Item};
use crate::app::App;
use crate::auth::Caller;
use crate::config::Dialect;
use crate::error::ApiError;
use crate::net::{Payload, json};
use crate::service::begun_at;

/// `POST /v1/responses/compact`.
pub(super) async fn compact(
    State(app): State<App>,
    caller: Caller,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let request = CreateRequest::parse(payload.bytes())?;
    // The same input gives the same names.
    let mut name = [0; 16];
    name.copy_from_slice(&blake3::hash(payload.bytes()).as_bytes()[..16]);
    drop(payload);
    let route = app.upstreams.route(request.model())?;
    let continues = request.previous_response_id().or(request.conversation());
    if continues.is_none() && request.input().is_empty() {
        return Err(
            ApiError::invalid("Send 'input', 'previous_response_id' or both.")
                .code("missing_required_parameter")
                .param("input"),
        );
    }
    let answers = |part: &InputPart| matches!(part, InputPart::Approval { .. });
    if request.input().parts().iter().any(answers) {
        return Err(ApiError::invalid(
            "An approval answers a response. Send it with 'previous_response_id' when you create \
             the next one.",
        )
        .code("invalid_value")
        .param("input"));
    }
    let history = input_tokens::history(&app, &caller, &request).await?;
    let resolved = resolve_input(&app, &caller.scope, request.input(), &history, None).await?;
    let mut messages = history;
    messages.extend(resolved.messages.into_iter().map(Arc::new));
    let asked = CompactionRequest {
        fits_window: true,
        ..*request.compaction()
    };
    let policy = compaction_options::policy(&app.config.compaction, route.upstream.window, &asked);
    let short = condense(&messages, &policy);
    let shown = ListingOptions::sealed_for(request.model().unwrap_or_default());
    let items = unchanged_items(
        &app,
        &shown,
        (&messages, RunId::from_bytes(name)),
        short.covers,
    );
    let item = compaction_item(&app, &caller.scope, (&request, request.input()), &short);
    Ok(json(
        StatusCode::OK,
        &response_body(&app, &items, &item, &short),
    ))
}

/// Items that stay as they are.
struct UnchangedItems {
    /// The words of users and instructions.
    before: Vec<Item>,
    /// Calls that wait, with what stands beside them.
    after: Vec<Item>,
}

/// What stays of the messages. Those that were never stored are named after the request.
fn unchanged_items(
    app: &App,
    shown: &ListingOptions,
    (messages, run): (&[Arc<Message>], RunId),
    covers: usize,
) -> UnchangedItems {
    let of = |message: &Arc<Message>| chain::run_of(message).unwrap_or(run);
    let positioned = |messages: &[Arc<Message>]| {
        let all = messages.iter().map(|message| (of(message), &**message));
        let positioned = chain::positioned(all);
        shown.items(app, &positioned)
    };
    let mut before = positioned(messages);
    let count = match covers == messages.len() {
        true => before.len(),
        false => positioned(&messages[..covers]).len(),
    };
    let after = before.split_off(count.min(before.len()));
    before.retain(is_unchanged);
    UnchangedItems { before, after }
}

/// Whether an item stays as it is: messages of users, instructions, and compacted conversations of other
/// servers, which this server cannot read.
fn is_unchanged(item: &Item) -> bool {
    let value = item.json.value();
    let is = |key: &str, word: &str| value.get(key).is_some_and(|found| found.is_str(word));
    let foreign = || {
        let sealed = value.get("encrypted_content").and_then(Value::as_str);
        sealed.is_some_and(|sealed| !CompactionToken::is_ours(&sealed))
    };
    is("type", "message") && !is("role", "assistant") || is("type", "compaction") && foreign()
}

/// The item with everything else in it.
pub(super) fn compaction_item(
    app: &App,
    scope: &TenantScope,
    (request, input): (&CreateRequest, &InputItems),
    short: &Condensed,
) -> RawJson {
    // A conversation that was compacted before still stands for the same responses.
    let mut earlier = input.parts().iter().rev();
    let earlier = earlier.find_map(|part| match part {
        InputPart::CompactionToken { token, .. } => token.content.of.clone(),
        _ => None,
    });
    let previous = request.previous_response_id().map(str::to_owned);
    let compaction_token = CompactionToken {
        text: short.text.clone(),
        sources: short.sources.clone(),
        of: previous.or(earlier),
    };
    let bytes = compaction_token.bytes();
    let seal = app
        .store
        .seal(scope, COMPACTION_PURPOSE, bytes.get().as_bytes());
    compaction_token.item(&CompactionToken::id(&seal), &seal)
}

fn response_body(app: &App, items: &UnchangedItems, item: &RawJson, short: &Condensed) -> RawJson {
    let run = app.store.ids().run();
    let dialect = stored_response::dialect(app);
    RawJson::object(|object| {
        object
            .str("id", &errors::response_id(run))
            .str("object", "response.compaction")
            .number("created_at", begun_at(run) / 1_000);
        let mut output = ArrayWriter::new(object.key("output"));
        for item in &items.before {
            output.raw(item.json.get());
        }
        output.raw(item.get());
        for item in &items.after {
            output.raw(item.json.get());
        }
        output.end();
        // No model was called, so that no tokens were used.
        UsageTotal::default().write(object.key("usage"));
        if dialect == Dialect::OpenAi {
            let report = short.report.to_json();
            object.raw("throughline", &format!("{{\"compaction\":{report}}}"));
        }
    })
}
