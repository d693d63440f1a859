//! `GET /api/v1/status`: what an operator looks at first.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::json::{ArrayWriter, ObjectWriter, push_string};
use throughline_store::{RunFilter, RunState};

use super::forms::record;
use super::openapi::{Operation, Verb, named};
use super::request::{Call, LARGEST_PAGE, Route, json_text};
use crate::api::store_error;
use crate::app::App;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/status",
        "getStatus",
        "Upstreams with their breakers, runs in flight, rates, the store and its durability.",
    )
    .about("Runs are those of the caller's tenant, except `here`; counts end at 1,000.")
    .answers(200, "The status.", named("Status"));
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let app = &call.app;
    let mut in_flight = Vec::new();
    for state in [RunState::Running, RunState::Parked, RunState::Interrupted] {
        in_flight.push((state, count(&call, state).await?));
    }
    let body = record::object(|object| {
        object
            .str(
                "status",
                match app.stopping.is_draining() {
                    true => "stopping",
                    false => "ok",
                },
            )
            .str("version", env!("CARGO_PKG_VERSION"))
            .number("started", app.started);
        store(object.key("store"), app);
        upstreams(object.key("upstreams"), app);
        let mut runs = ObjectWriter::new(object.key("runs"));
        runs.number("here", app.runs.at_work() as u64);
        for (state, count) in &in_flight {
            runs.number(state.as_str(), *count);
        }
        runs.end();
        let minute = app.http.last_minute();
        let mut rates = ObjectWriter::new(object.key("rates"));
        rates
            .number("requests", minute.requests)
            .number("server_errors", minute.server_errors)
            .number("runs", app.runs.begun_in_last_minute());
        rates.end();
        object
            .number("requests_at_work", app.http.active())
            .number("connections", app.http.connections());
    });
    Ok(json_text(StatusCode::OK, body))
}

/// How many runs of the tenant are in a state, up to a page of them.
async fn count(call: &Call, state: RunState) -> Result<u64, ApiError> {
    let filter = RunFilter {
        thread: None,
        states: vec![state],
    };
    let most = usize::try_from(LARGEST_PAGE).unwrap_or(usize::MAX);
    let listing = call.app.store.runs(&call.scope, &filter, None, most).await;
    let listing = listing.map_err(|error| store_error::of(&error))?;
    Ok(listing.found.len() as u64)
}

fn store(out: &mut String, app: &App) {
    let profile = &app.profile;
    let mut object = ObjectWriter::new(out);
    object
        .str("engine", profile.engine)
        .str("durability", profile.durability.as_str())
        .number("schema", u64::from(profile.schema));
    let mut settings = ArrayWriter::new(object.key("settings"));
    for setting in &profile.settings {
        let mut one = ObjectWriter::new(settings.slot());
        one.str("name", setting.name)
            .str("value", &setting.value)
            .bool("right", setting.is_right());
        one.end();
    }
    settings.end();
    object.end();
}

fn upstreams(out: &mut String, app: &App) {
    let mut list = ArrayWriter::new(out);
    for upstream in app.upstreams.all() {
        let mut object = ObjectWriter::new(list.slot());
        object
            .str("name", &upstream.name)
            .str("kind", upstream.kind.as_str())
            .str("history", upstream.history.as_str());
        let mut models = ArrayWriter::new(object.key("models"));
        upstream
            .models
            .iter()
            .for_each(|model| push_string(models.slot(), model));
        models.end();
        object.str("breaker", upstream.breaker.state().as_str());
        object.end();
    }
    list.end();
}
