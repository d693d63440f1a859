//! `GET /api/v1/threads/{thread}/view`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline::compact::Policy;
use throughline_model::Wire;

use super::find::{about, find};
use crate::api::native::openapi::{
    LARGEST, Operation, Verb, answer, flag, free_object, integer_of, list, named, text, text_of,
};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::native::view::{Branch, ModelChoice, ThreadView};
use crate::config::Kind;
use crate::error::ApiError;
use crate::upstreams::Upstream;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/threads/{thread}/view",
        "viewThread",
        "What a model would be given of a thread now, and what compaction did for it.",
    )
    .about(
        "With a `model` as its vendor would be sent it, with what the vendor cannot be told and what \
         was repaired; without one in our own form. Nothing is sent or changed.",
    )
    .query(
        "model",
        text_of(1, 256).about("A model as the configuration routes it."),
    )
    .query(
        "budget",
        integer_of(1, LARGEST).about("Tokens that the request may have; else that of the configuration."),
    )
    .query("full", flag().about("All of the record, without compaction."))
    .answers(
        200,
        "The view.",
        answer()
            .with("thread", named("Thread"))
            .with("model", text().nullable())
            .with("format", text())
            .maybe("messages", list(named("Message")))
            .maybe("request", free_object())
            .with("report", named("Report").nullable())
            .with("losses", list(named("Loss")))
            .with("repairs", list(named("Loss"))),
    )
    .fails(404, "There is no such thread or model.")
    .fails(409, "The run has no node yet.");
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let (model, window) = model(&call)?;
    let is_full = call.flag("full") == Some(true);
    let policy = policy(&call, window, call.number("budget"));
    let (at, opened) = find(&call, 0).await?;
    let _memory = call.reserve(opened.tip.map_or(0, |tip| tip.tokens))?;
    let branch = Branch::read(&call.app.store, &call.scope, at, &opened).await;
    let branch = branch.map_err(|error| about(&call, &error))?;
    let record = branch.record();
    let view = match is_full {
        true => ThreadView::whole(&record),
        false => ThreadView::planned(policy, &model, &opened, &record)
            .map_err(|error| ApiError::invalid(error.to_string()).param("budget"))?,
    };
    Ok(json_text(StatusCode::OK, view.to_json(&model, &opened)))
}

/// The model of a query, and the window of its upstream.
pub(super) fn model(call: &Call) -> Result<(ModelChoice, Option<u64>), ApiError> {
    let Some(name) = call.text("model") else {
        return Ok((ModelChoice::default(), None));
    };
    let route = call.app.upstreams.route(Some(name))?;
    let choice = ModelChoice {
        upstream: route.upstream.service().to_owned(),
        model: route.model.unwrap_or_else(|| name.to_owned()),
        wire: wire(&route.upstream),
    };
    Ok((choice, route.upstream.window))
}

/// The format in which an upstream is sent a history.
fn wire(upstream: &Upstream) -> Option<Wire> {
    match upstream.kind {
        Kind::OpenAiResponses => Some(Wire::OpenAiResponses),
        Kind::OpenAiChat => Some(Wire::OpenAiChat),
        Kind::Anthropic => Some(Wire::Anthropic),
        Kind::Gemini => Some(Wire::Gemini),
        Kind::Foundry => Some(Wire::Foundry),
        Kind::Demo => None,
    }
}

/// The policy of the configuration, with the budget of a request.
pub(super) fn policy(call: &Call, window: Option<u64>, budget: Option<u64>) -> Policy {
    let config = &call.app.config.compaction;
    Policy {
        budget: budget.or(config.budget),
        window,
        threshold: config.threshold,
        recent_calls: config.recent_calls,
        ..Policy::default()
    }
}
