//! `POST /v1/messages`: one model call, answered at once or as a stream.

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Response, StatusCode};
use throughline::client::View;
use throughline_model::ToolChoice;
use throughline_model::json::RawJson;

use super::wire::{
    BlockWriter, MessageBody, MessagesRequest, betas, left_out, member_of, message_id,
    setting_member,
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
use crate::net::{Payload, RequestId, json};
use crate::service::record::RecordedRequest;

/// `POST /v1/messages`. In a box: layers move what they are given, and this is large.
pub(super) fn create(
    State(app): State<App>,
    caller: Caller,
    id: Option<Extension<RequestId>>,
    headers: HeaderMap,
    payload: Payload,
) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send {
    Box::pin(answer(app, caller, id, headers, payload))
}

async fn answer(
    app: App,
    caller: Caller,
    id: Option<Extension<RequestId>>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let mut request = MessagesRequest::parse(payload.bytes())?;
    request.check_limit()?;
    let memory = payload.into_memory();
    let (call, ignored) = prepare(&app, &mut request, &headers)?;
    let paths = stateless::report_ignored(&app, &ignored, member_of);
    let message = MessageBody {
        id: message_id(app.store.ids().run()),
        model: request.model.clone().unwrap_or_default(),
        upstream_model: call.route.model.clone().unwrap_or_default(),
        thinks: request.thinks,
        ignored: match app.config.server.dialect {
            Dialect::OpenAi => ignored,
            Dialect::OpenResponses => Vec::new(),
        },
    };
    let place = match request.stream {
        true => Some(app.stream()?),
        false => None,
    };
    let settings = app.config.record.stateless.then(|| request.as_written());
    let recorded = RecordedRequest {
        api: "messages",
        model: request.model.as_deref().unwrap_or_default(),
        settings: settings.as_ref(),
    };
    let record = CallRecord::begin(&app, &caller.scope, recorded, &call.view).await?;
    let thread = record.thread();
    let mut response = match place {
        Some(place) => {
            let id = id.map(|Extension(RequestId(id))| id.to_string());
            let events = record.stream(&call).await?;
            // The upstream has the request; what comes is counted by itself.
            drop(memory);
            event_body(&app, events, BlockWriter::new(message, id), place)
        }
        None => {
            let answer = record.respond(&call).await?;
            let body = RawJson::new(&message.whole(&answer))
                .map_err(|error| ApiError::server(format!("The answer is no JSON: {error}.")))?;
            json(StatusCode::OK, &body)
        }
    };
    ignored::set_header(&mut response, paths);
    name_thread(&mut response, thread.as_ref());
    Ok(response)
}

/// The call of a request, and what of it is not carried out.
pub(super) fn prepare(
    app: &App,
    request: &mut MessagesRequest,
    headers: &HeaderMap,
) -> Result<(StatelessCall, Vec<Ignored>), ApiError> {
    let route = app.upstreams.route(request.model.as_deref())?;
    let agent = client_agent(&route)?.map(str::to_owned);
    let native = route.upstream.kind == Kind::Anthropic;
    let betas = betas(headers)?;
    let listed = left_out(request, native, &betas)?;
    // An upstream that speaks this API is sent everything as the client wrote it, unless a message
    // holds what another vendor made.
    let sent = match native && !request.is_foreign() {
        true => SentMessages::AsWritten,
        false => SentMessages::Rendered,
    };
    let (tools, choice) = match native {
        true => (Vec::new(), ToolChoice::Auto),
        false => request.tools()?,
    };
    let (places, tools): (Vec<_>, Vec<_>) = tools.into_iter().unzip();
    let (settings, instructions) = match native {
        true => (request.native_settings(agent.as_deref(), sent, betas), None),
        false => (request.settings(), request.instructions(agent.as_deref())?),
    };
    let call = StatelessCall {
        route,
        instructions,
        view: View::new(request.take_messages()),
        sent,
        tools,
        choice,
        settings,
    };
    let places = LossPlaces {
        setting: &|key| setting_member(key, request),
        tools: &places,
    };
    let ignored = stateless::with_losses(&call, &places, listed)?;
    ignored::check_unsupported(&ignored, app.config.server.unsupported)?;
    Ok((call, ignored))
}
