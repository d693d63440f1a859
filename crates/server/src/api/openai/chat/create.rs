//! `POST /v1/chat/completions`: one model call, answered at once or as a stream.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use throughline::client::View;
use throughline_model::ToolChoice;
use throughline_model::json::RawJson;

use super::wire::{
    ChunkWriter, Completion, CompletionRequest, completion_id, left_out, member_of, setting_member,
};
use crate::api::ignored::{self, Ignored};
use crate::api::stateless::{
    self, CallRecord, LossPlaces, SentMessages, StatelessCall, client_agent, event_body,
    name_thread,
};
use crate::app::App;
use crate::auth::Caller;
use crate::config::{Dialect, Kind};
use crate::error::ApiError;
use crate::net::{Payload, json};
use crate::service::record::RecordedRequest;

/// `POST /v1/chat/completions`. In a box: layers move what they are given, and this is large.
pub(super) fn create(
    State(app): State<App>,
    caller: Caller,
    payload: Payload,
) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send {
    Box::pin(answer(app, caller, payload))
}

async fn answer(app: App, caller: Caller, payload: Payload) -> Result<Response<Body>, ApiError> {
    let mut request = CompletionRequest::parse(payload.bytes())?;
    let memory = payload.into_memory();
    let (call, ignored) = prepare(&app, &mut request)?;
    let paths = stateless::report_ignored(&app, &ignored, member_of);
    let completion = Completion {
        id: completion_id(app.store.ids().run()),
        created: now(),
        model: request.model.clone().unwrap_or_default(),
        ignored: match app.config.server.dialect {
            Dialect::OpenAi => ignored,
            Dialect::OpenResponses => Vec::new(),
        },
    };
    let place = match request.stream {
        true => Some(app.stream()?),
        false => None,
    };
    let recorded = RecordedRequest {
        api: "chat/completions",
        model: request.model.as_deref().unwrap_or_default(),
        settings: Some(request.as_written()),
    };
    let record = CallRecord::begin(&app, &caller.scope, recorded, &call.view).await?;
    let thread = record.thread();
    let mut response = match place {
        Some(place) => {
            let events = record.stream(&call).await?;
            // The upstream has the request; what comes is counted by itself.
            drop(memory);
            let native = call.route.upstream.kind == Kind::OpenAiChat;
            let writer = ChunkWriter::new(completion, request.include_usage, native);
            event_body(&app, events, writer, place)
        }
        None => {
            let answer = record.respond(&call).await?;
            let body = RawJson::new(&completion.body(&answer))
                .map_err(|error| ApiError::server(format!("The answer is no JSON: {error}.")))?;
            json(StatusCode::OK, &body)
        }
    };
    ignored::set_header(&mut response, paths);
    name_thread(&mut response, thread.as_ref());
    Ok(response)
}

/// The call of a request, and what of it is not carried out.
fn prepare(
    app: &App,
    request: &mut CompletionRequest,
) -> Result<(StatelessCall, Vec<Ignored>), ApiError> {
    let route = app.upstreams.route(request.model.as_deref())?;
    let instructions = client_agent(&route)?.map(str::to_owned);
    let native = route.upstream.kind == Kind::OpenAiChat;
    let listed = left_out(request, native)?;
    // An upstream that speaks this API is sent tools and choice as the client wrote them.
    let (tools, choice) = match native {
        true => (Vec::new(), ToolChoice::Auto),
        false => request.tools()?,
    };
    let (places, tools): (Vec<_>, Vec<_>) = tools.into_iter().unzip();
    let call = StatelessCall {
        route,
        instructions,
        view: View::new(std::mem::take(&mut request.messages)),
        sent: SentMessages::Rendered,
        tools,
        choice,
        settings: match native {
            true => request.native_settings(),
            false => request.settings(),
        },
    };
    let places = LossPlaces {
        setting: &|key| setting_member(key, request),
        tools: &places,
    };
    let ignored = stateless::with_losses(&call, &places, listed)?;
    ignored::check_unsupported(&ignored, app.config.server.unsupported)?;
    Ok((call, ignored))
}

/// Now, in seconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}
