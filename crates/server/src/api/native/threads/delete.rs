//! `DELETE /api/v1/threads/{thread}`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline::thread::{CopyOutcome, Deleted, VendorCopy};
use throughline_model::json::RawJson;
use throughline_store::RunState;

use super::find::{about, check_no_run, find_whole};
use crate::api::native::forms;
use crate::api::native::openapi::{Operation, Verb, answer, flag, list, named, text, word};
use crate::api::native::request::{Call, Route};
use crate::error::ApiError;
use crate::net::json;

/// What becomes of the copies that vendors have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtVendors {
    Keep,
    Delete,
}

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Delete,
        "/api/v1/threads/{thread}",
        "deleteThread",
        "Erase a thread everywhere in our store; the answer names each copy of a vendor.",
    )
    .query(
        "vendors",
        word(["keep", "delete"]).about(
            "`delete`: the vendors' copies first. If a vendor fails, the thread stays, and the \
             request can be sent again.",
        ),
    )
    .answers(
        200,
        "The receipt.",
        answer()
            .with("id", text())
            .with("object", word(["thread"]))
            .with("deleted", flag())
            .with("vendor_copies", list(named("VendorCopy"))),
    )
    .fails(404, "There is no such thread.")
    .fails(409, "A run is at work on it.")
    .fails(
        502,
        "A vendor did not delete its copy, and the thread stays.",
    );
    Route::new(operation, delete)
}

async fn delete(call: Call) -> Result<Response<Body>, ApiError> {
    let at_vendors = match call.text("vendors") {
        Some("delete") => AtVendors::Delete,
        _ => AtVendors::Keep,
    };
    let (app, scope) = (&call.app, &call.scope);
    let thread = find_whole(&call).await?.thread.id;
    // A vendor would get a copy that no receipt names. Runs that wait are erased with the thread.
    check_no_run(&call, &thread, &[RunState::Running]).await?;
    let threads = app.runs.threads(scope);
    let deleted = match at_vendors {
        AtVendors::Keep => threads.delete(&thread).await,
        AtVendors::Delete => {
            let clients = app.upstreams.service_clients();
            clients.delete(&threads, &thread).await
        }
    };
    let deleted = deleted.map_err(|error| about(&call, &error))?;
    if !deleted.is_deleted {
        return Err(not_deleted(&deleted));
    }
    let body = RawJson::object(|object| {
        object
            .str("id", thread.as_str())
            .str("object", "thread")
            .bool("deleted", true);
        forms::vendor_copies(object.key("vendor_copies"), &deleted.vendor_copies);
    });
    Ok(json(StatusCode::OK, &body))
}

/// A vendor did not delete its copy, so that our record stays.
fn not_deleted(deleted: &Deleted) -> ApiError {
    let failed = |copy: &VendorCopy| match &copy.outcome {
        CopyOutcome::Failed { reason } => Some(format!(
            "{} did not delete {}: {reason}",
            copy.upstream, copy.id
        )),
        CopyOutcome::Remains
        | CopyOutcome::Inherited
        | CopyOutcome::Deleted
        | CopyOutcome::Absent
        | CopyOutcome::Unsupported => None,
    };
    let failed: Vec<String> = deleted.vendor_copies.iter().filter_map(failed).collect();
    let text = format!(
        "{}. The thread is still here, so that the request can be sent again; without \
         vendors=delete, it is deleted here alone.",
        failed.join("; ")
    );
    let mut error = ApiError::new(502, "server_error", text)
        .code("vendor_copy_not_deleted")
        .retry(true);
    let mut copies = String::new();
    forms::vendor_copies(&mut copies, &deleted.vendor_copies);
    // The writer gives valid JSON.
    if let Ok(copies) = RawJson::new(&copies) {
        error.more.push(("vendor_copies", copies));
    }
    error
}
