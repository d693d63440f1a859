//! `POST /api/v1/threads/{thread}/hand-over`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline::agent::ServiceClients;
use throughline::thread::Owner;
use throughline_model::Path as Place;
use throughline_model::json::{RawJson, Value};
use throughline_store::RunState;

use super::find::{about, check_no_run, find_whole};
use crate::api::native::forms;
use crate::api::native::openapi::{
    Operation, Verb, answer, flag, integer, list, named, object, text, text_of, word,
};
use crate::api::native::request::{Call, Route};
use crate::api::{hand_over_error, read};
use crate::error::ApiError;
use crate::net::json;
use crate::upstreams::Upstreams;

/// What a client asks for.
struct HandOverRequest {
    to: Owner,
    /// Whether services are asked for what they have more than our record.
    reads_back: bool,
}

impl HandOverRequest {
    /// `{"to": {"owner": "local"} or {"upstream": NAME}, "read_back"?: true}`
    fn parse(body: &Value<'_>, upstreams: &Upstreams) -> Result<Self, ApiError> {
        let root = Place::Root;
        let path = root.key("to");
        let to = read::object(body, "to", &root)?.ok_or_else(|| read::missing(&path))?;
        Ok(Self {
            to: target(to, &path, upstreams)?,
            reads_back: read::flag(body, "read_back", &root)?.unwrap_or(true),
        })
    }
}

fn target(to: &Value<'_>, path: &Place<'_>, upstreams: &Upstreams) -> Result<Owner, ApiError> {
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

pub(super) fn route() -> Route {
    let to = object()
        .maybe("owner", word(["local"]).nullable())
        .maybe("upstream", text_of(1, 128).nullable());
    let read_back = answer()
        .with("upstream", text())
        .with("id", text())
        .with(
            "outcome",
            word(["same", "added", "differs", "not_asked", "absent"]),
        )
        .with("messages", integer());
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads/{thread}/hand-over",
        "handOverThread",
        "Hand a thread over to our store or to an upstream.",
    )
    .about(
        "`to` has either `owner` or `upstream`. Services are asked for what they have more than our \
         record, unless `read_back` is false. Doing it again changes nothing.",
    )
    .takes(
        object()
            .with("to", to)
            .maybe("read_back", flag().nullable()),
    )
    .answers(
        200,
        "Who owned it, who owns it, and what was read back.",
        answer()
            .with("id", text())
            .with("object", word(["thread.handed_over"]))
            .with("from", named("Owner"))
            .with("to", named("Owner"))
            .with("read_back", list(read_back))
            .with("previous_response_id", text().nullable()),
    )
    .fails(404, "There is no such thread.")
    .fails(409, "A run on it is not settled.")
    .fails(502, "A vendor could not be asked for what it has.");
    Route::new(operation, hand_over)
}

async fn hand_over(call: Call) -> Result<Response<Body>, ApiError> {
    let (app, scope) = (&call.app, &call.scope);
    let request = HandOverRequest::parse(&call.body()?, &app.upstreams)?;
    let thread = find_whole(&call).await?.thread.id;
    // Runs of responses take no lease, so the thread itself does not know them.
    let at_work = [RunState::Running, RunState::Interrupted, RunState::Parked];
    check_no_run(&call, &thread, &at_work).await?;
    let thread = app.runs.threads(scope).open(thread).await;
    let thread = thread.map_err(|error| about(&call, &error))?;
    let clients = match request.reads_back {
        true => app.upstreams.service_clients(),
        false => ServiceClients::new(),
    };
    let handed = clients.hand_over(&thread, request.to).await;
    let handed = handed.map_err(|error| hand_over_error::of(&error))?;
    let head = find_whole(&call).await?.thread.head;
    let body = RawJson::object(|object| {
        object
            .str("id", thread.id().as_str())
            .str("object", "thread.handed_over");
        forms::handed_over(object, &handed, head.map(|head| head.node.run));
    });
    Ok(json(StatusCode::OK, &body))
}
