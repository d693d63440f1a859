//! `POST /v1/responses/input_tokens`: about how many tokens a request would take.
//!
//! No model is called: it is an estimate by the bytes of what a model would be given, history, tools and
//! instructions included. What a vendor bills differs.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use throughline_model::json::RawJson;
use throughline_model::{Arguments, Body as BodyOf, Content, Message, Output};
use throughline_store::Error;

use super::errors;
use super::resolve_input::resolve_input;
use super::wire::{CreateRequest, RequestTool};
use crate::api::openai::conversation_head;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{Payload, json};

/// How many bytes a token stands for, about.
const BYTES_OF_A_TOKEN: usize = 4;

/// What a picture counts as; vendors count its size, which is not known here.
const BYTES_OF_MEDIA: usize = 3_000;

/// What each message takes beside its contents.
const TOKENS_OF_A_MESSAGE: usize = 4;

/// Count them.
pub(super) async fn count(
    State(app): State<App>,
    caller: Caller,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let request = CreateRequest::parse(payload.bytes())?;
    let history = history(&app, &caller, &request).await?;
    let resolved = resolve_input(&app, &caller.scope, request.input(), &history, None).await?;
    let mut tokens = 0;
    for message in history.iter().map(|one| &**one).chain(&resolved.messages) {
        tokens += tokens_of(message);
    }
    let instructions = request.instructions().map_or(0, str::len);
    let tools = request.tools().iter().map(|tool| match tool {
        RequestTool::Function { json, .. }
        | RequestTool::Custom { json, .. }
        | RequestTool::Namespace { json, .. }
        | RequestTool::Hosted { json, .. } => json.get().len(),
        RequestTool::Mcp(tool) => tool.json.get().len(),
    });
    tokens += (instructions + tools.sum::<usize>()).div_ceil(BYTES_OF_A_TOKEN);
    let body = RawJson::object(|object| {
        object
            .str("object", "response.input_tokens")
            .number("input_tokens", tokens as u64);
    });
    Ok(json(StatusCode::OK, &body))
}

fn tokens_of(message: &Message) -> usize {
    let said = message.contents.iter().map(bytes_of).sum::<usize>();
    TOKENS_OF_A_MESSAGE + said.div_ceil(BYTES_OF_A_TOKEN)
}

fn bytes_of(content: &Content) -> usize {
    match &content.body {
        BodyOf::Text(text) | BodyOf::Refusal(text) => text.text.len(),
        BodyOf::Reasoning(reasoning) => reasoning.text.iter().map(String::len).sum(),
        BodyOf::ToolCall(call) => {
            let arguments = match &call.arguments {
                Arguments::Text(text) | Arguments::Free(text) => text.len(),
                Arguments::Json(json) => json.get().len(),
                Arguments::None => 0,
            };
            call.name.len() + arguments
        }
        BodyOf::ToolResult(result) => match &result.output {
            Output::None => 0,
            Output::Text(text) => text.len(),
            Output::Json(json) => json.get().len(),
            Output::Parts(parts) => parts.iter().map(bytes_of).sum(),
        },
        BodyOf::Media(_) => BYTES_OF_MEDIA,
        _ => 0,
    }
}

/// The history that the request continues.
pub(super) async fn history(
    app: &App,
    caller: &Caller,
    request: &CreateRequest,
) -> Result<Vec<Arc<Message>>, ApiError> {
    let threads = throughline::Threads::scoped(&app.store, caller.scope.clone());
    if let Some(id) = request.conversation() {
        let thread = conversation_head::open(&threads, id).await;
        let thread = thread.map_err(|error| errors::conversation(&error, id))?;
        return Ok(thread.history());
    }
    let Some(id) = request.previous_response_id() else {
        return Ok(Vec::new());
    };
    let run = errors::parse_response_id(id).ok_or_else(|| errors::no_previous(id))?;
    match threads.open_after(run).await {
        Ok(thread) => Ok(thread.history()),
        Err(Error::NotFound { .. }) => Err(errors::no_previous(id)),
        Err(error) => Err(errors::store(&error)),
    }
}
