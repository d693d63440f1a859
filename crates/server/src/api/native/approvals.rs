//! Approvals: listing them, and answering one.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::Path;
use throughline_model::json::Value;
use throughline_store::{
    Answer, Approval, ApprovalFilter, ApprovalId, Decision, Error, PageToken, ThreadId,
};

use super::forms::approval::{ApprovalCall, form, hex};
use super::forms::record;
use super::openapi::{
    Operation, Verb, answer, flag, integer_of, list, named, object, pattern, text, text_of, word,
};
use super::request::{ASKED_BY, Call, LARGEST_PAGE, Route, json_text};
use crate::api::{read, store_error};
use crate::error::ApiError;

pub(super) fn routes() -> [Route; 2] {
    let listed = Operation::new(
        Verb::Get,
        "/api/v1/approvals",
        "listApprovals",
        "Calls that wait for approval, newest first.",
    )
    .query("limit", integer_of(1, LARGEST_PAGE))
    .query(
        "after",
        text().about("The token that the page before ended with."),
    )
    .query(
        "thread",
        text_of(1, 128).about("Only calls of this thread."),
    )
    .query(
        "all",
        flag().about("Those that are decided, used, expired or withdrawn too."),
    )
    .answers(
        200,
        "A page of approvals.",
        answer().with("approvals", list(named("Approval"))).with(
            "next",
            text().nullable().about("The token of the next page."),
        ),
    );
    let answered = Operation::new(
        Verb::Post,
        "/api/v1/approvals/{approval}/answer",
        "answerApproval",
        "Approve or deny a call, once.",
    )
    .about(
        "The decision is stored; the tool runs when its run goes on. The same answer may be sent \
         again.",
    )
    .takes(
        object()
            .with("decision", word(["approve", "deny"]))
            .maybe(
                "reason",
                text_of(0, 10_000)
                    .nullable()
                    .about("The model may be shown it."),
            )
            .maybe(
                "by",
                pattern(r"\S")
                    .nullable()
                    .about("The name of the person who decides."),
            )
            .maybe(
                "digest",
                pattern("^[0-9a-fA-F]{32}$").nullable().about(
                    "The digest of the call that was reviewed; if the arguments differ, nothing is \
                     stored.",
                ),
            ),
    )
    .answers(
        200,
        "The approval, and whether it had this answer before.",
        answer()
            .with("approval", named("Approval"))
            .with("repeated", flag()),
    )
    .fails(404, "There is no such approval.")
    .fails(409, "It has another answer, has expired, or was withdrawn.");
    [
        Route::new(listed, list_approvals),
        Route::new(answered, answer_approval),
    ]
}

async fn list_approvals(call: Call) -> Result<Response<Body>, ApiError> {
    let after: Option<PageToken> = call.parsed("after")?;
    let thread: Option<ThreadId> = call.parsed("thread")?;
    let filter = ApprovalFilter {
        thread,
        waiting: call.flag("all") != Some(true),
    };
    let listing = call
        .app
        .store
        .approvals(&call.scope, &filter, after, call.limit())
        .await;
    let listing = listing.map_err(|error| store_error::of(&error))?;
    let body = record::listing("approvals", &listing, form);
    Ok(json_text(StatusCode::OK, body))
}

async fn answer_approval(call: Call) -> Result<Response<Body>, ApiError> {
    let body = call.body()?;
    let path = Path::Root;
    let decision = match body.get("decision").and_then(Value::as_str).as_deref() {
        Some("approve") => Decision::Approved,
        // The schema lets nothing else through; if that ever fails, nothing is allowed by it.
        _ => Decision::Denied,
    };
    let reason = read::text(&body, "reason", &path)?;
    let by = read::text(&body, "by", &path)?;
    let by = by.as_deref().unwrap_or(ASKED_BY);
    if by.trim().is_empty() {
        return Err(ApiError::invalid("Invalid 'by': say who answers.")
            .code("invalid_value")
            .param("by"));
    }
    let digest = read::text(&body, "digest", &path)?;
    let is_hex = |digest: &str| digest.len() == 32 && digest.bytes().all(|c| c.is_ascii_hexdigit());
    if digest.as_deref().is_some_and(|digest| !is_hex(digest)) {
        return Err(ApiError::invalid("Invalid 'digest': it has 32 hex digits.")
            .code("invalid_value")
            .param("digest"));
    }
    let threads = call.app.runs.threads(&call.scope);
    let name = call.name("approval");
    let id: ApprovalId = name.parse().map_err(|_| not_found(name))?;
    let before = threads.approval(id).await;
    let before = before.map_err(|error| about(&call, &error))?;
    check_reviewed(&before, digest.as_deref(), decision)?;
    let answer = Answer {
        approval: id,
        // The call of this record, so that an answer never counts for other arguments.
        shown: before.shown,
        decision,
        by: by.to_owned(),
        reason: reason
            .filter(|reason| !reason.trim().is_empty())
            .map(std::borrow::Cow::into_owned),
    };
    let after = threads.answer(&answer).await;
    let after = after.map_err(|error| about(&call, &error))?;
    let body = record::object(|object| {
        form(object.key("approval"), &after);
        object.bool("repeated", before.answered.is_some());
    });
    Ok(json_text(StatusCode::OK, body))
}

/// Refuse an answer if the call is not the one that was reviewed.
fn check_reviewed(
    record: &Approval,
    digest: Option<&str>,
    decision: Decision,
) -> Result<(), ApiError> {
    let shown = hex(&record.shown);
    let differs = |message: String| {
        Err(ApiError::new(409, "invalid_request_error", message)
            .code("arguments_differ")
            .param("digest")
            .retry(false))
    };
    match digest {
        Some(digest) if !digest.eq_ignore_ascii_case(&shown) => differs(format!(
            "{} was asked for other arguments: their digest is {shown}. Look at it again.",
            record.id
        )),
        // A caller that gives the digest has reviewed the call in another place.
        Some(_) => Ok(()),
        None if decision == Decision::Approved && ApprovalCall::of(record).contradicts(record) => {
            differs(format!(
                "{} shows other arguments than it was asked for. Deny it, or send its digest if you \
                 know what that stands for.",
                record.id
            ))
        }
        None => Ok(()),
    }
}

fn about(call: &Call, error: &Error) -> ApiError {
    match error {
        Error::NotFound { .. } => not_found(call.name("approval")),
        Error::NotAnswerable { .. } => {
            ApiError::new(409, "invalid_request_error", format!("{error}."))
                .code("approval_not_answerable")
                .retry(false)
        }
        error => store_error::of(error),
    }
}

fn not_found(name: &str) -> ApiError {
    let name: String = name.chars().take(128).collect();
    ApiError::not_found(format!("Approval with id '{name}' not found."))
}
