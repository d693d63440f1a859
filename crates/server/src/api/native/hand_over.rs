//! `POST /api/v1/threads/{id}/hand-over`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use throughline::agent::ServiceClients;
use throughline::thread::Owner;
use throughline_model::Path as Place;
use throughline_model::json::{RawJson, Value};
use throughline_store::RunState;

use super::forms;
use super::threads::{about, check_no_run, open};
use crate::api::{hand_over_error, read};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{Payload, json};
use crate::upstreams::Upstreams;

/// What a client asks for.
struct HandOverRequest {
    to: Owner,
    /// Whether services are asked for what they have more than our record.
    reads_back: bool,
}

impl HandOverRequest {
    /// `{"to": {"owner": "local"} or {"upstream": NAME}, "read_back"?: true}`
    fn parse(body: &[u8], upstreams: &Upstreams) -> Result<Self, ApiError> {
        let root = Place::Root;
        let body = read::body(body)?;
        read::check_known(&body, &["to", "read_back"], &root)?;
        let path = root.key("to");
        let to = read::object(&body, "to", &root)?.ok_or_else(|| read::missing(&path))?;
        Ok(Self {
            to: target(to, &path, upstreams)?,
            reads_back: read::flag(&body, "read_back", &root)?.unwrap_or(true),
        })
    }
}

fn target(to: &Value<'_>, path: &Place<'_>, upstreams: &Upstreams) -> Result<Owner, ApiError> {
    read::check_known(to, &["owner", "upstream"], path)?;
    let owner = read::one_of(to, "owner", &["local"], path)?;
    let upstream = read::text(to, "upstream", path)?;
    match (owner, upstream) {
        (Some(_), None) => Ok(Owner::Local),
        (None, Some(name)) => {
            let found = upstreams.named(&name);
            let named = found.map_err(|error| error.param(path.key("upstream").to_string()))?;
            Ok(named.owner())
        }
        (Some(_), Some(_)) => Err(ApiError::invalid(format!(
            "'{path}' has 'owner' and 'upstream'. Send one of the two."
        ))
        .code("invalid_value")
        .param(path.to_string())),
        (None, None) => Err(read::missing(&path.key("upstream"))),
    }
}

/// Hand a thread over to our store or to an upstream. Doing it again changes nothing.
pub(super) async fn hand_over(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let request = HandOverRequest::parse(payload.bytes(), &app.upstreams)?;
    drop(payload);
    let scope = &caller.scope;
    let thread = open(&app, scope, &id).await?.thread.id;
    // Runs of responses take no lease, so the thread itself does not know them.
    let at_work = [RunState::Running, RunState::Interrupted, RunState::Parked];
    check_no_run(&app, scope, &thread, &at_work).await?;
    let thread = app.runs.threads(scope).open(thread).await;
    let thread = thread.map_err(|error| about(&error, &id))?;
    let clients = match request.reads_back {
        true => app.upstreams.service_clients(),
        false => ServiceClients::new(),
    };
    let handed = clients.hand_over(&thread, request.to).await;
    let handed = handed.map_err(|error| hand_over_error::of(&error))?;
    let head = open(&app, scope, &id).await?.thread.head;
    let body = RawJson::object(|object| {
        object
            .str("id", thread.id().as_str())
            .str("object", "thread.handed_over");
        forms::handed_over(object, &handed, head.map(|head| head.node.run));
    });
    Ok(json(StatusCode::OK, &body))
}
