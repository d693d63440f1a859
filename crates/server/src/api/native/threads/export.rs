//! `GET /api/v1/threads/{thread}/export`.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use futures_util::stream;
use throughline_store::transfer::{Export, Extent};

use super::find::{about, find};
use crate::api::native::openapi::{Content, Operation, Verb, word};
use crate::api::native::request::{Call, NDJSON, Route};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/threads/{thread}/export",
        "exportThread",
        "A thread as NDJSON, which an import takes.",
    )
    .about(
        "The last line has a digest of all others: an export without it broke off. The format is \
         described in docs/export.md.",
    )
    .query(
        "extent",
        word(EXTENTS.map(Extent::as_str)).about(
            "`tree`: all branches, as without it. `branch`: the way to the head, or to the run or \
             node that the path names.",
        ),
    )
    .answers_with(200, "The lines.", [Content::Stream(NDJSON)])
    .fails(404, "There is no such thread.")
    .fails(409, "The run has no node yet.");
    Route::new(operation, get)
}

const EXTENTS: [Extent; 2] = [Extent::Tree, Extent::Branch];

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let named = |word: &str| EXTENTS.into_iter().find(|one| one.as_str() == word);
    let extent = call.text("extent").and_then(named).unwrap_or_default();
    let (at, _) = find(&call, 0).await?;
    let export = Export::start(&call.app.store, &call.scope, &at, extent).await;
    let mut export = export.map_err(|error| about(&call, &error))?;
    // What fails at once is an error with a status.
    let first = export.next().await.map_err(|error| about(&call, &error))?;
    let lines = stream::unfold((first, Some(export)), |(ready, export)| async move {
        if let Some(lines) = ready {
            return Some((Ok(Bytes::from(lines)), (None, export)));
        }
        let mut export = export?;
        match export.next().await {
            Ok(lines) => Some((Ok(Bytes::from(lines?)), (None, Some(export)))),
            // The client sees a body that breaks off.
            Err(error) => {
                tracing::warn!(%error, "an export breaks off");
                Some((Err(error), (None, None)))
            }
        }
    });
    let mut response = Response::new(Body::from_stream(lines));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    Ok(response)
}
