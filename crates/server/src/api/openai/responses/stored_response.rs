//! A response read from the store, at any time and in any process.

use std::sync::Arc;

use futures_util::StreamExt as _;
use throughline::agent::RunEnd;
use throughline::{RunEvent, StopReason};
use throughline_model::json::RawJson;
use throughline_model::{Message, Role, Source};
use throughline_store::{CallState, Error, Journal, Run, RunId, RunKind, TenantScope};

use super::approvals::{awaiting_approval, taken_by};
use super::errors;
use super::projection::ending;
use super::stored_request::StoredRequest;
use super::wire::{CreateRequest, Ending, Projector, ResponseContext};
use crate::api::openai::items::KnownCall;
use crate::app::App;
use crate::config::Dialect;
use crate::error::ApiError;
use crate::service::begun_at;

/// A response as the record has it.
pub(crate) struct StoredResponse {
    pub(crate) context: ResponseContext,
    pub(crate) journal: Journal,
}

/// Which specification the events follow.
pub(crate) fn dialect(app: &App) -> Dialect {
    app.config.server.dialect
}

impl StoredResponse {
    /// Read it.
    pub(crate) async fn read(app: &App, scope: &TenantScope, id: &str) -> Result<Self, ApiError> {
        let run = errors::parse_response_id(id).ok_or_else(|| errors::no_response(id))?;
        let journal = match app.store.journal(scope, run).await {
            Ok(journal) if journal.run.kind == RunKind::Turn => journal,
            Ok(_) | Err(Error::NotFound { .. }) => return Err(errors::no_response(id)),
            Err(error) => return Err(errors::store(&error)),
        };
        let host = match StoredRequest::of(journal.request.as_ref())? {
            Some(host) => host,
            None => StoredRequest::plain(Arc::new(CreateRequest::from_stored(&RawJson::object(
                |_| {},
            ))?)),
        };
        let base = journal.run.base.map(|node| node.run);
        let context = ResponseContext {
            run,
            thread: Some(journal.run.thread.clone()),
            created: begun_at(run),
            previous: host
                .previous
                .or(base)
                .filter(|_| host.conversation.is_none()),
            conversation: host.conversation.clone(),
            tool_index: host.tool_index(),
            lists: host.lists,
            ignored: host.ignored,
            request: host.request,
            dialect: dialect(app),
            known_calls: known_calls(app, scope, &journal).await?,
        };
        Ok(Self { context, journal })
    }

    pub(crate) fn run(&self) -> RunId {
        self.context.run
    }

    /// The response as it stands.
    pub(crate) async fn response(
        &self,
        app: &App,
        scope: &TenantScope,
    ) -> Result<RawJson, ApiError> {
        Ok(self.projected(app, scope).await?.response())
    }

    /// The number of its last frame so far.
    pub(crate) async fn last_frame(&self, app: &App, scope: &TenantScope) -> Result<u64, ApiError> {
        let projector = self.projected(app, scope).await?;
        Ok(projector.next_number().saturating_sub(1))
    }

    /// All events so far, without their frames: those are counted and not written.
    async fn projected(&self, app: &App, scope: &TenantScope) -> Result<Projector, ApiError> {
        let mut projector = Projector::silent(self.context.clone());
        let mut frames = Vec::new();
        projector.begin(&mut frames);
        let threads = app.runs.threads(scope);
        let mut events = threads.so_far(self.run());
        while let Some(event) = events.next().await {
            let (_, event): (_, RunEvent) = event.map_err(|error| {
                ApiError::server(format!(
                    "The events of this response cannot be read: {error}"
                ))
            })?;
            projector.apply(&event, &mut frames);
        }
        if let Some(ending) = self.ending() {
            projector.finish(&ending, &mut frames);
        }
        Ok(projector)
    }

    /// How it ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        ending_of(&self.journal)
    }
}

/// How a run ended, if it has.
pub(crate) fn ending_of(journal: &Journal) -> Option<Ending> {
    let run: &Run = &journal.run;
    let end = RunEnd::of(run)?;
    let asked = match end.stop {
        StopReason::Parked => awaiting_approval(journal, |call| {
            matches!(call.state, CallState::Approval | CallState::Taken)
        }),
        _ => Vec::new(),
    };
    let said = journal.entries.iter().rev();
    let at = said.filter_map(|entry| entry.message.created).next();
    Some(ending(end, asked, at.unwrap_or_else(|| begun_at(run.id))))
}

/// Calls of the run before that this one took over.
async fn known_calls(
    app: &App,
    scope: &TenantScope,
    journal: &Journal,
) -> Result<Vec<KnownCall>, ApiError> {
    // Results that stand before the first answer are those of calls that it took over.
    let is_result = |message: &Message| {
        message.role == Role::Tool && matches!(message.source, Some(Source::Repair | Source::Tool))
    };
    let mut said = journal.entries.iter().map(|entry| &entry.message);
    let first = journal.steps.first();
    let has_results = first.is_some_and(|step| step.items == 0) || said.any(is_result);
    // A run that has not ended may have taken calls over whose results are not recorded yet: a reader
    // that follows it to its end must know them.
    let took = has_results || RunEnd::of(&journal.run).is_none();
    let Some(base) = journal.run.base.filter(|_| took) else {
        return Ok(Vec::new());
    };
    let origin = match app.store.journal(scope, base.run).await {
        Ok(origin) => origin,
        Err(Error::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(errors::store(&error)),
    };
    Ok(taken_by(&origin, journal.run.id))
}
