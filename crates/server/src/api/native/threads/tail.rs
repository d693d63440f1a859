//! `GET /api/v1/threads/{thread}/tail`: messages as they are committed, by whichever process.

use axum::body::Body;
use axum::http::Response;
use futures_util::{Stream, stream};
use throughline_store::{Cursor, Error, Store, TenantScope, ThreadId};

use super::find::{about, find_whole};
use super::messages::unreadable;
use crate::api::native::forms::record;
use crate::api::native::openapi::{Content, Operation, Verb, flag, text, word};
use crate::api::native::request::{Call, Route};
use crate::api::native::sse::{self, SseEvent};
use crate::api::store_error;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/threads/{thread}/tail",
        "tailThread",
        "The messages at the head of a thread as they come, as an event stream.",
    )
    .about(
        "`message` has a message, with the cursor after it as id, so that `Last-Event-ID` goes on \
         there. `moved` says that the head is on another branch now: what came after position \
         `common` is not part of it, and what follows there comes next. `deleted` is the last event \
         of a thread that was deleted.",
    )
    .query(
        "after",
        text().about("Only what follows this cursor; the last event id goes before it."),
    )
    .query(
        "from",
        word(["first", "now"]).about("Without a cursor: all messages, or only those to come."),
    )
    .query("follow", flag().about("`false`: end after what is there."))
    .header("Last-Event-ID", text().about("The cursor of the last event that was seen."))
    .answers_with(200, "The stream.", [Content::Stream(sse::EVENT_STREAM)])
    .fails(404, "There is no such thread.");
    Route::new(operation, tail)
}

async fn tail(call: Call) -> Result<Response<Body>, ApiError> {
    let seen = sse::last_event_id(&call)?;
    let seen: Option<Cursor> = match seen {
        Some(seen) => Some(seen.parse().map_err(|_| sse::wrong_id())?),
        None => call.parsed("after")?,
    };
    let thread = find_whole(&call).await?.thread;
    let last = thread.head.map_or(0, |head| head.last);
    let store = &call.app.store;
    let after = match (seen, call.text("from")) {
        (None, Some("now")) => {
            let cursor = store.cursor(&call.scope, &thread.id, last).await;
            Some(cursor.map_err(|error| about(&call, &error))?)
        }
        (seen, _) => seen,
    };
    let place = call.app.stream()?;
    // A cursor that is none of this thread is refused with a status.
    if let Some(after) = &after
        && let Err(error) = store
            .increment(&call.scope, &thread.id, Some(after), 1)
            .await
        && !matches!(error, Error::CursorMoved { .. })
    {
        return Err(unreadable(&call, &thread.id, &error).await);
    }
    let messages = ThreadTail {
        store: store.clone(),
        scope: call.scope.clone(),
        thread: thread.id,
        after,
        follows: call.flag("follow") != Some(false),
        is_over: false,
    };
    Ok(sse::response(&call.app, place, messages.events()))
}

/// A reader of the head of a thread.
struct ThreadTail {
    store: Store,
    scope: TenantScope,
    thread: ThreadId,
    after: Option<Cursor>,
    follows: bool,
    is_over: bool,
}

impl ThreadTail {
    fn events(self) -> impl Stream<Item = SseEvent> + Send + 'static {
        stream::unfold(self, |mut tail| async move {
            if tail.is_over {
                return None;
            }
            let event = match tail.next().await {
                Ok(event) => event?,
                Err(Error::NotFound { .. }) => {
                    tail.is_over = true;
                    let data = record::object(|object| {
                        object.str("thread", tail.thread.as_str());
                    });
                    SseEvent::new("deleted", data)
                }
                Err(error) => {
                    tail.is_over = true;
                    SseEvent::of_error(&store_error::of(&error))
                }
            };
            Some((event, tail))
        })
    }

    /// The next event; `None` at the end of what is there, if nothing is followed.
    async fn next(&mut self) -> Result<Option<SseEvent>, Error> {
        loop {
            // The version is read before the messages, so that what comes between is not missed.
            let opened = self
                .store
                .open(&self.scope, &self.thread.clone().into(), 0)
                .await?;
            // One by one, so that each message has the cursor behind it.
            let found = self
                .store
                .increment(&self.scope, &self.thread, self.after.as_ref(), 1)
                .await;
            let found = match found {
                Err(Error::CursorMoved { common, .. }) => {
                    return Ok(Some(self.moved(common).await?));
                }
                found => found?,
            };
            self.after = Some(found.next);
            if let Some(entry) = found.entries.first() {
                let mut data = String::new();
                record::entry(&mut data, entry);
                let event = SseEvent::new("message", data).with_id(found.next.to_string());
                return Ok(Some(event));
            }
            if !self.follows {
                return Ok(None);
            }
            let version = opened.thread.version;
            self.store
                .changed(&self.scope, &self.thread, version)
                .await?;
        }
    }

    /// The head is on another branch: go on where both are the same.
    async fn moved(&mut self, common: u64) -> Result<SseEvent, Error> {
        let cursor = self.store.cursor(&self.scope, &self.thread, common).await?;
        self.after = Some(cursor);
        let data = record::object(|object| {
            object.number("common", common);
        });
        Ok(SseEvent::new("moved", data).with_id(cursor.to_string()))
    }
}
