//! Adding items to a conversation: once, also if a client sends its request again.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Response};
use throughline_model::Path as JsonPath;
use throughline_store::{Append, Entry, Idempotency, NodeId, RunId, TenantScope};

use super::about;
use super::change::{Change, append, check_owner};
use super::items::{NewItems, input_of};
use crate::api::openai::conversation_head::{expected_head, open, set_entity_tag};
use crate::api::openai::delivered_body::delivered;
use crate::api::openai::items::{Item, listed};
use crate::api::openai::responses::chain::{ListingOptions, visible_items};
use crate::api::openai::responses::errors;
use crate::api::openai::responses::retry::Retry;
use crate::api::read;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{DeliveryProbe, Payload};
use crate::service::{ClientConnection, Delivery, Pieces, begun_at, body_of, key};

/// `POST /v1/conversations/{id}/items`: the items that were stored.
pub(super) async fn add(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    probe: Option<Extension<DeliveryProbe>>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let body = read::body(payload.bytes())?;
    if body.get("items").is_none() {
        return Err(read::missing(&JsonPath::Root.key("items")));
    }
    let input = input_of(&body)?;
    let wanted = expected_head(&headers)?;
    // A key, or a retry without one, stands for one request to one conversation.
    let request = [id.as_bytes(), b"\n", payload.bytes()].concat();
    let retry = Retry::of(&headers, &request)?;
    let addition = Addition {
        app: &app,
        scope: &caller.scope,
        id: &id,
        run: app.store.ids().run(),
        connection: probe.map(|Extension(probe)| Arc::new(probe) as Arc<dyn ClientConnection>),
    };
    // A repeated request is answered with what it stored, wherever the head is by now.
    let key = match retry {
        Retry::Keyed(key) => {
            let before = app.store.run_by_key(addition.scope, &key).await;
            if let Some(run) = before.map_err(|error| about(&app, &error, &id))? {
                return addition.answer(run.published, Delivery::default()).await;
            }
            Some(key)
        }
        Retry::WithoutKey(digest) => {
            if let Some((node, delivery)) = addition.undelivered(&digest).await? {
                return addition.answer(node, delivery).await;
            }
            Some(addition.key_of(digest))
        }
        Retry::FirstAttempt(digest) => Some(addition.key_of(digest)),
        Retry::None => None,
    };
    let mut change = Change::new(&app, addition.scope, &id, wanted);
    loop {
        let found = change.read().await?;
        let head = found.tip.map(|tip| tip.node);
        let thread = open(&app.runs.threads(addition.scope), &id).await;
        let thread = thread.map_err(|error| about(&app, &error, &id))?;
        check_owner(&thread.owner())?;
        if thread.head() != head {
            change.again(thread.head())?;
            continue;
        }
        let new = NewItems::resolve(&app, addition.scope, &input, &thread.snapshot()).await?;
        if new.is_empty() {
            return Ok(addition.items(&[], head, &Delivery::default()));
        }
        // The items were compared with this history.
        let append = Append {
            run: addition.run,
            expected: Some(found.thread.version),
            ..append(&app, &found.thread.id, new.into_messages(), key.clone())
        };
        if let Some(published) = change.store(&append).await? {
            let body = key.as_ref().and_then(|key| body_of(&key.key));
            let delivery = body.map_or_else(Delivery::default, |body| {
                app.runs.repeats.begun(addition.scope, body, addition.run)
            });
            return addition.answer(published.node, delivery).await;
        }
    }
}

/// Items that are being added.
struct Addition<'a> {
    app: &'a App,
    scope: &'a TenantScope,
    /// The id of the conversation.
    id: &'a str,
    run: RunId,
    connection: Option<Arc<dyn ClientConnection>>,
}

impl Addition<'_> {
    /// The key of a request without one, as [`Retry`] finds it again.
    fn key_of(&self, digest: [u8; 16]) -> Idempotency {
        Idempotency {
            key: key(&digest, self.run),
            request: digest,
        }
    }

    /// What the same request has stored before, if its client may not have the answer.
    async fn undelivered(
        &self,
        digest: &[u8; 16],
    ) -> Result<Option<(Option<NodeId>, Delivery)>, ApiError> {
        let repeats = &self.app.runs.repeats;
        let found = repeats.find(self.scope, digest, begun_at(self.run)).await;
        let Some((run, delivery)) = found.map_err(|error| errors::store(&error))? else {
            return Ok(None);
        };
        let before = self.app.store.run(self.scope, run).await;
        let before = before.map_err(|error| about(self.app, &error, self.id))?;
        Ok(Some((before.published, delivery)))
    }

    /// The items that an append stored, with its node as entity tag.
    async fn answer(
        &self,
        node: Option<NodeId>,
        delivery: Delivery,
    ) -> Result<Response<Body>, ApiError> {
        let mut items = Vec::new();
        if let Some(node) = node {
            let journal = self.app.store.journal(self.scope, node.run).await;
            let journal = journal.map_err(|error| about(self.app, &error, self.id))?;
            let entries: Vec<&Entry> = journal.entries.iter().collect();
            items = visible_items(self.app, &entries, &ListingOptions::plain());
        }
        Ok(self.items(&items, node, &delivery))
    }

    fn items(&self, items: &[Item], head: Option<NodeId>, delivery: &Delivery) -> Response<Body> {
        let list = listed(items, false);
        let body = Pieces::One(list.get().to_owned().into());
        let delivery = delivery.clone().next_attempt(self.connection.clone());
        let mut response = Response::new(delivered(&body, delivery));
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        set_entity_tag(&mut response, head);
        response
    }
}
