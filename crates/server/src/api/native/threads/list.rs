//! `GET /api/v1/threads`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_store::{PageToken, RunState, ThreadFilter};

use crate::api::native::forms::record;
use crate::api::native::openapi::{
    LARGEST, Operation, Verb, answer, integer_of, list, named, pattern, text, text_of, word,
};
use crate::api::native::request::{Call, LARGEST_PAGE, Route, json_text};
use crate::api::store_error;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/threads",
        "listThreads",
        "Threads, last touched first.",
    )
    .about("Their aliases are left out. Filters are joined by and.")
    .query("limit", integer_of(1, LARGEST_PAGE))
    .query(
        "after",
        text().about("The token that the page before ended with."),
    )
    .query(
        "alias_kind",
        text_of(1, 128).about("Only threads with an alias of this kind."),
    )
    .query(
        "meta",
        list(pattern("^[^=]+=")).about(
            "KEY=TEXT: only threads whose `meta` has this member with this text. May be given \
             several times.",
        ),
    )
    .query(
        "title",
        text_of(1, 1_000)
            .about("Only threads whose title contains this, in letters of either case."),
    )
    .query(
        "agent",
        text_of(1, 256).about("Only threads whose newest turn is of this agent."),
    )
    .query(
        "model",
        text_of(1, 256).about(
            "Only threads whose newest turn is of this model, with or without its upstream.",
        ),
    )
    .query(
        "state",
        list(word(RunState::ALL.map(RunState::as_str)))
            .about("Only threads whose newest run is in this state; may be given several times."),
    )
    .query(
        "created_from",
        integer_of(0, LARGEST).about("Milliseconds since 1970; the first that counts."),
    )
    .query(
        "created_before",
        integer_of(0, LARGEST).about("Milliseconds since 1970; the first that does not count."),
    )
    .query(
        "touched_from",
        integer_of(0, LARGEST).about("Milliseconds since 1970; the first that counts."),
    )
    .query(
        "touched_before",
        integer_of(0, LARGEST).about("Milliseconds since 1970; the first that does not count."),
    )
    .answers(
        200,
        "A page of threads.",
        answer().with("threads", list(named("Thread"))).with(
            "next",
            text().nullable().about("The token of the next page."),
        ),
    );
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let after: Option<PageToken> = call.parsed("after")?;
    let mut meta = Vec::new();
    for pair in call.texts("meta") {
        let pair = pair.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, text) = pair.ok_or_else(|| {
            ApiError::invalid("Invalid 'meta': expected KEY=TEXT.")
                .code("invalid_value")
                .param("meta")
        })?;
        meta.push((key.to_owned(), text.to_owned()));
    }
    let text = |key: &str| call.text(key).map(str::to_owned);
    let filter = ThreadFilter {
        alias_kind: text("alias_kind"),
        title: text("title"),
        agent: text("agent"),
        model: text("model"),
        states: call.texts("state").filter_map(RunState::named).collect(),
        created_from: call.number("created_from"),
        created_before: call.number("created_before"),
        meta,
        touched_from: call.number("touched_from"),
        touched_before: call.number("touched_before"),
    };
    let listing = call
        .app
        .store
        .threads(&call.scope, &filter, after, call.limit())
        .await;
    let listing = listing.map_err(|error| store_error::of(&error))?;
    let body = record::listing("threads", &listing, record::thread);
    Ok(json_text(StatusCode::OK, body))
}
