//! `POST /v1/messages`: one model call, answered at once or as a stream.

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Response, StatusCode};
use throughline::client::{Reservation, View};
use throughline_model::ToolChoice;
use throughline_model::json::RawJson;

use super::wire::{
    BlockWriter, MessageBody, MessagesRequest, betas, left_out, member_of, message_id,
    setting_member,
};
use crate::api::ignored::{self, Ignored};
use crate::api::stateless::{
    self, LossPlaces, SentMessages, StatelessCall, client_agent, event_body,
};
use crate::app::App;
use crate::auth::Caller;
use crate::config::{Dialect, Kind};
use crate::error::ApiError;
use crate::net::{Payload, RequestId, json};

/// `POST /v1/messages`. In a box: layers move what they are given, and this is large.
pub(super) fn create(
    State(app): State<App>,
    _caller: Caller,
    id: Option<Extension<RequestId>>,
    headers: HeaderMap,
    payload: Payload,
) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send {
    Box::pin(answer(app, id, headers, payload))
}

async fn answer(
    app: App,
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
    let mut response = match request.stream {
        true => {
            let id = id.map(|Extension(RequestId(id))| id.to_string());
            streamed(&app, &call, BlockWriter::new(message, id), memory).await?
        }
        false => {
            let answer = call.respond().await?;
            let body = RawJson::new(&message.whole(&answer))
                .map_err(|error| ApiError::server(format!("The answer is no JSON: {error}.")))?;
            json(StatusCode::OK, &body)
        }
    };
    ignored::set_header(&mut response, paths);
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

async fn streamed(
    app: &App,
    call: &StatelessCall,
    writer: BlockWriter,
    memory: Reservation,
) -> Result<Response<Body>, ApiError> {
    let place = app.stream()?;
    let events = call.stream().await?;
    // The upstream has the request; what comes is counted by itself.
    drop(memory);
    Ok(event_body(app, events, writer, place))
}
