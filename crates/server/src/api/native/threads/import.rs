//! `POST /api/v1/threads/import`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef as _, FromRequest as _, Request};
use axum::http::header::CONTENT_ENCODING;
use axum::http::{Response, StatusCode};
use futures_util::StreamExt as _;
use throughline_model::json::Limits;
use throughline_model::{Message, Role};
use throughline_store::transfer::{self, ImportOptions, Imported, Importer};
use throughline_store::{Clock as _, Error, NewThread, SystemClock, ThreadId};
use throughline_wire::{Format, transcript};

use super::create::thread_id;
use crate::api::native::forms::{self, record};
use crate::api::native::openapi::{Operation, Verb, answer, integer, text, word};
use crate::api::native::request::{Call, NDJSON, Route, json_text};
use crate::api::store_error;
use crate::error::ApiError;
use crate::net::{NetState, Payload};

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads/import",
        "importThread",
        "Make a thread of an export, or of a transcript.",
    )
    .about(
        "Nothing is seen of an export before all of it is there and its digest is right. Its lines \
         are read as they come and may not be compressed; each is at most as large as a body may be.",
    )
    .query(
        "as",
        thread_id().about("Import under this id; runs get new ids and other names are left out."),
    )
    .query(
        "from",
        word(Format::names()).about(
            "The body is a transcript in this format, which becomes one run; without it, the body \
             is an export.",
        ),
    )
    .streams(&[NDJSON, "application/json"])
    .answers(
        201,
        "What was imported.",
        answer()
            .with("thread", text())
            .with("nodes", integer())
            .with("items", integer())
            .with("tokens", integer())
            .with("aliases_left_out", integer()),
    )
    .fails(409, "There is such a thread already; import it `as` another.");
    Route::new(operation, import)
}

async fn import(mut call: Call) -> Result<Response<Body>, ApiError> {
    let id: Option<ThreadId> = call.parsed("as")?;
    let from: Option<Format> = call.parsed("from")?;
    let body = call.take_stream();
    let imported = match from {
        Some(format) => transcript(&call, id, &format, body).await?,
        None => export(&call, id, body).await?,
    };
    let body = record::object(|object| forms::imported(object, &imported));
    Ok(json_text(StatusCode::CREATED, body))
}

/// Import the messages of a transcript.
async fn transcript(
    call: &Call,
    id: Option<ThreadId>,
    format: &Format,
    body: Body,
) -> Result<Imported, ApiError> {
    let mut request = Request::new(body);
    request.headers_mut().clone_from(&call.headers);
    let payload = Payload::from_request(request, &call.app).await?;
    let limits = transcript::Limits {
        json: Limits {
            depth: DEPTH,
            values: VALUES,
        },
        ..transcript::Limits::default()
    };
    let read = transcript::read(payload.bytes(), format, limits);
    let request = read.map_err(|error| {
        ApiError::invalid(format!(
            "The body is no transcript in the format {format}: {error}."
        ))
        .code("invalid_transcript")
    })?;
    let request = request.request;
    let mut messages = request.messages;
    if !request.system.is_empty() {
        messages.insert(0, Message::new(Role::System, request.system));
    }
    let id = id.unwrap_or_else(|| call.app.store.ids().thread());
    let thread = NewThread::new(id);
    let (store, now) = (&call.app.store, SystemClock.now());
    let done = transfer::import_messages(store, &call.scope, thread, &messages, now).await;
    done.map_err(|error| refused(&error))
}

/// How deep a transcript may be nested, and how many values it may hold: as any body.
const DEPTH: usize = 64;
const VALUES: usize = 1_000_000;

/// How many copies of a line exist at once: itself, its parsed form, its item, and the store's.
const LINE_COPIES: usize = 4;

/// Memory is reserved in steps, because bodies come in small pieces.
const MEMORY_STEP: usize = 64 << 10;

/// Import the lines of an export as they come.
async fn export(call: &Call, id: Option<ThreadId>, body: Body) -> Result<Imported, ApiError> {
    let encoding = call.headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        let text = "The lines of an export must not be compressed.";
        let error = ApiError::new(415, "invalid_request_error", text);
        return Err(error.code("unsupported_content_encoding"));
    }
    let net = Arc::<NetState>::from_ref(&call.app);
    let options = ImportOptions {
        rename: id,
        line_bytes: net.limits.body_bytes,
    };
    let mut importer = Importer::new(&call.app.store, &call.scope, options);
    let mut frames = body.into_data_stream();
    // A line is held until its end has come.
    let mut memory = net.memory.reservation();
    let mut line_bytes = 0;
    loop {
        let frame = tokio::time::timeout(net.limits.body_time, frames.next()).await;
        let broken = match frame {
            Ok(Some(Ok(bytes))) => {
                line_bytes = match bytes.iter().rposition(|byte| *byte == b'\n') {
                    Some(end) => bytes.len() - end,
                    None => line_bytes + bytes.len(),
                };
                let needed = (line_bytes * LINE_COPIES).next_multiple_of(MEMORY_STEP);
                match memory.try_resize(needed) {
                    Ok(()) => match importer.push(&bytes).await {
                        Ok(()) => continue,
                        Err(error) => return Err(refused(&error)),
                    },
                    Err(_) => ApiError::overloaded(
                        "The server has no memory left for a line of this size (limits.memory).",
                        "out_of_memory",
                    ),
                }
            }
            Ok(None) => return importer.finish().await.map_err(|error| refused(&error)),
            Ok(Some(Err(_))) => ApiError::invalid("The body broke off.").code("incomplete_body"),
            Err(_) => ApiError::new(
                408,
                "invalid_request_error",
                "The body did not go on in time.",
            )
            .code("request_timeout")
            .retry(true),
        };
        importer.abort().await;
        return Err(broken);
    }
}

/// Why nothing was imported.
fn refused(error: &Error) -> ApiError {
    match error {
        Error::Exists { .. } => ApiError::new(
            409,
            "invalid_request_error",
            format!("{error}. Import it under another id with 'as'."),
        )
        .code("thread_exists")
        .param("as"),
        Error::Malformed { line, .. } => {
            let hint = match line {
                1 => " A transcript is imported with 'from'.",
                _ => "",
            };
            ApiError::invalid(format!("{error}. Nothing was imported.{hint}"))
                .code("invalid_export")
        }
        error => store_error::of(error),
    }
}
