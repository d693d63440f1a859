//! Changes of a conversation's items: made on the head that was read, and made again when other requests
//! moved the head in between.

use throughline::agent::ExpectedHead;
use throughline::thread::Owner;
use throughline_model::Message;
use throughline_store::{
    Append, Error, Idempotency, NewItem, NodeId, Opened, Published, State, TenantScope, ThreadId,
};

use super::{about, opened};
use crate::api::openai::conversation_head::{describe_busy, with_locked_status};
use crate::api::openai::responses::errors;
use crate::app::App;
use crate::error::ApiError;
use crate::service::begun_at;

/// How often a change is made again that other requests came before: more often than there are clients that
/// change one conversation at the same time.
const ATTEMPTS: u32 = 64;

/// A change of one conversation.
pub(super) struct Change<'a> {
    app: &'a App,
    scope: &'a TenantScope,
    /// The id of the conversation.
    id: &'a str,
    wanted: ExpectedHead,
    attempts: u32,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        app: &'a App,
        scope: &'a TenantScope,
        id: &'a str,
        wanted: ExpectedHead,
    ) -> Self {
        Self {
            app,
            scope,
            id,
            wanted,
            attempts: 0,
        }
    }

    /// The conversation as it is now, if its head is the one that the client expects.
    pub(super) async fn read(&self) -> Result<Opened, ApiError> {
        let found = opened(self.app, self.scope, self.id).await?;
        let head = found.tip.map(|tip| tip.node);
        match self.wanted.is_met(head) {
            true => Ok(found),
            false => Err(errors::head_moved(head)),
        }
    }

    /// The head has moved while the change was made: it is made again, or refused.
    pub(super) fn again(&mut self, head: Option<NodeId>) -> Result<(), ApiError> {
        self.attempts += 1;
        match self.wanted {
            ExpectedHead::Any if self.attempts < ATTEMPTS => Ok(()),
            // The client has not said what the head must be.
            ExpectedHead::Any => Err(with_locked_status(self.app, errors::contended())),
            ExpectedHead::Empty | ExpectedHead::Node(_) => Err(errors::head_moved(head)),
        }
    }

    /// Store an append to the conversation that was read. `None`: the head has moved since then, and the
    /// change is to be made again.
    pub(super) async fn store(&mut self, append: &Append) -> Result<Option<Published>, ApiError> {
        match self.app.store.append(self.scope, append).await {
            Ok(published) => Ok(Some(published)),
            Err(Error::HeadMoved { .. }) => {
                let now = opened(self.app, self.scope, self.id).await?;
                self.again(now.tip.map(|tip| tip.node))?;
                Ok(None)
            }
            Err(error) => {
                let error = about(self.app, &error, self.id);
                Err(describe_busy(self.app, self.scope, Some(self.id), error).await)
            }
        }
    }
}

/// Messages at the end of a thread, which were made now.
pub(super) fn append(
    app: &App,
    thread: &ThreadId,
    mut messages: Vec<Message>,
    key: Option<Idempotency>,
) -> Append {
    let run = app.store.ids().run();
    for message in &mut messages {
        message.created = Some(begun_at(run));
    }
    Append {
        run,
        thread: thread.clone(),
        expected: None,
        items: NewItem::of(&messages),
        state: None,
        key,
    }
}

/// A state without digests: they may show what was taken out, and count messages that are not there.
pub(super) fn uncompacted(state: &State) -> Option<State> {
    state.compaction()?;
    let mut state = state.clone();
    state.set_compaction(None);
    Some(state)
}

/// Items are changed here if our store keeps them.
pub(super) fn check_owner(owner: &Owner) -> Result<(), ApiError> {
    let keeper = match owner {
        Owner::Local => return Ok(()),
        Owner::External { store, .. } => format!("the message store '{store}'"),
        _ => "the vendor's service".to_owned(),
    };
    Err(ApiError::new(
        409,
        "invalid_request_error",
        format!(
            "The history of this conversation is kept by {keeper}. Hand it over to the local store \
             before its items are changed: POST /api/v1/threads/{{id}}/hand-over."
        ),
    )
    .code("history_kept_elsewhere")
    .retry(false))
}
