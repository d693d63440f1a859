//! `DELETE /api/v1/threads/{id}`.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use throughline::thread::{CopyOutcome, Deleted, VendorCopy};
use throughline_model::json::RawJson;
use throughline_store::RunState;

use super::forms;
use super::threads::{about, check_no_run, open};
use crate::api::query::{Query, wrong};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::json;

/// What becomes of the copies that vendors have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtVendors {
    Keep,
    Delete,
}

/// Erase a thread everywhere in our store; with `vendors=delete` its copies at vendors first. The
/// answer names each copy.
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response<Body>, ApiError> {
    let query = Query::of(query.as_deref());
    query.check_known(&["vendors"])?;
    let at_vendors = match query.get("vendors") {
        None | Some("keep") => AtVendors::Keep,
        Some("delete") => AtVendors::Delete,
        Some(_) => return Err(wrong("vendors", "keep or delete")),
    };
    let scope = &caller.scope;
    let thread = open(&app, scope, &id).await?.thread.id;
    // A vendor would get a copy that no receipt names. Runs that wait are erased with the thread.
    check_no_run(&app, scope, &thread, &[RunState::Running]).await?;
    let threads = app.runs.threads(scope);
    let deleted = match at_vendors {
        AtVendors::Keep => threads.delete(&thread).await,
        AtVendors::Delete => {
            let clients = app.upstreams.service_clients();
            clients.delete(&threads, &thread).await
        }
    };
    let deleted = deleted.map_err(|error| about(&error, &id))?;
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
