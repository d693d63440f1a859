//! The items of a chain: what stood before the output of a response, and single items by id.

use std::sync::Arc;

use throughline_model::{Message, Source};
use throughline_store::{
    At, Entry, Error, ItemRef, Journal, Mask, NodeId, NodeRef, RunId, Span, TenantScope, masks_of,
};

use super::approvals::awaiting_approval;
use super::errors;
use super::stored_request::StoredRequest;
use super::stored_response::dialect;
use crate::api::openai::items::{
    AwaitingApproval, Item, ItemId, Listing, MessagePosition, PositionedMessage, ToolIndex,
    input_items,
};
use crate::app::App;
use crate::error::ApiError;

/// Where each message of a chain stands: the input of a run comes before its output, and each answer of
/// a model is a step.
pub(super) fn positioned<'m>(
    messages: impl Iterator<Item = (RunId, &'m Message)>,
) -> Vec<PositionedMessage<'m>> {
    let mut now: Option<(RunId, u32)> = None;
    let mut positioned = Vec::new();
    for (run, message) in messages {
        let mut next = match now {
            Some((known, next)) if known == run => next,
            _ => 0,
        };
        let place = match message.source {
            Some(Source::Model) => {
                next += 1;
                MessagePosition::Step(next - 1)
            }
            Some(Source::Tool) => {
                // Results that come before any answer are those of calls that were taken over.
                next = next.max(1);
                MessagePosition::Step(next - 1)
            }
            _ => MessagePosition::Input,
        };
        now = Some((run, next));
        positioned.push(PositionedMessage {
            run,
            place,
            message,
        });
    }
    positioned
}

/// All messages up to a node, oldest first.
pub(in crate::api::openai) async fn entries(
    app: &App,
    scope: &TenantScope,
    node: Option<NodeId>,
) -> Result<Vec<Entry>, ApiError> {
    let Some(node) = node else {
        return Ok(Vec::new());
    };
    let at = At::Node(NodeRef::Node(node));
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map_or(0, |entry| entry.last);
        let page = app
            .store
            .read(scope, &at, Span::After(after), usize::MAX)
            .await;
        let page = page.map_err(|error| errors::store(&error))?;
        let more = page.more && !page.entries.is_empty();
        entries.extend(page.entries);
        if !more {
            return Ok(entries);
        }
    }
}

/// The items of a branch that were not taken out of it. `entries` go to its end.
pub(in crate::api::openai) fn visible_items(
    app: &App,
    entries: &[&Entry],
    options: &ListingOptions,
) -> Vec<Item> {
    let masks = masks_of(entries.iter().copied());
    let said: Vec<&Entry> = entries
        .iter()
        .copied()
        .filter(|entry| Mask::of(&entry.message).is_none())
        .collect();
    let messages = said.iter().map(|entry| (entry.at.run, &entry.message));
    let mut items = options.items(app, &positioned(messages));
    if !masks.is_empty() {
        let is_masked = |(message, content): &(usize, usize)| {
            let mask = said.get(*message).map(|entry| Mask {
                message: entry.at,
                content: *content,
            });
            mask.is_some_and(|mask| masks.contains(&mask))
        };
        items.retain(|item| !item.contents.iter().any(is_masked));
    }
    items
}

/// How the items of a run's chain are listed.
pub(in crate::api::openai) struct ListingOptions {
    tool_index: ToolIndex,
    model: String,
    seals: bool,
    summarizes: bool,
    asked: Vec<(RunId, AwaitingApproval)>,
}

impl ListingOptions {
    /// With nothing known but the messages.
    pub(in crate::api::openai) fn plain() -> Self {
        Self {
            tool_index: ToolIndex::new(),
            model: String::new(),
            seals: false,
            summarizes: false,
            asked: Vec::new(),
        }
    }

    /// The same, with everything that is needed to send items back.
    pub(super) fn sealed_for(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            seals: true,
            ..Self::plain()
        }
    }

    /// The items of several runs: with the tools and questions of one more.
    pub(in crate::api::openai) fn add(&mut self, journal: &Journal) -> Result<(), ApiError> {
        if let Some(host) = StoredRequest::of(journal.request.as_ref())? {
            host.add_tools_to(&mut self.tool_index);
            self.model = host.request.model().unwrap_or_default().to_owned();
        }
        let asked = awaiting_approval(journal, |_| true).into_iter();
        self.asked
            .extend(asked.map(|asked| (journal.run.id, asked)));
        Ok(())
    }

    /// Whether reasoning comes with what is needed to send it back.
    pub(in crate::api::openai) fn with_seals(mut self, seals: bool) -> Self {
        self.seals = seals;
        self
    }

    pub(super) fn of(journal: &Journal) -> Result<Self, ApiError> {
        let host = StoredRequest::of(journal.request.as_ref())?;
        let asked = awaiting_approval(journal, |_| true).into_iter();
        let asked = asked.map(|asked| (journal.run.id, asked)).collect();
        Ok(match host {
            Some(host) => Self {
                tool_index: host.tool_index(),
                model: host.request.model().unwrap_or_default().to_owned(),
                seals: host.request.seals_reasoning(),
                summarizes: host.request.summarizes(),
                asked,
            },
            None => Self {
                asked,
                ..Self::plain()
            },
        })
    }

    pub(in crate::api::openai) fn items(
        &self,
        app: &App,
        positioned: &[PositionedMessage<'_>],
    ) -> Vec<Item> {
        let listing = Listing {
            dialect: dialect(app),
            tool_index: &self.tool_index,
            seals: self.seals,
            summarizes: self.summarizes,
            model: &self.model,
            asked: &self.asked,
        };
        input_items(positioned, &listing)
    }
}

/// The items of one run, and what they were made from.
pub(super) struct RunItems {
    pub(super) items: Vec<Item>,
    pub(super) messages: Vec<Message>,
}

impl RunItems {
    /// Read a run; `None` if it is not there.
    pub(super) async fn read(
        app: &App,
        scope: &TenantScope,
        run: RunId,
    ) -> Result<Option<Self>, ApiError> {
        match app.store.journal(scope, run).await {
            Ok(journal) => Self::of(app, &journal).map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(errors::store(&error)),
        }
    }

    pub(super) fn of(app: &App, journal: &Journal) -> Result<Self, ApiError> {
        let shown = ListingOptions::of(journal)?;
        let messages = journal.entries.iter();
        let messages: Vec<Message> = messages.map(|entry| entry.message.clone()).collect();
        let run = journal.run.id;
        let items = shown.items(
            app,
            &positioned(messages.iter().map(|message| (run, message))),
        );
        Ok(Self { items, messages })
    }
}

/// The run that a message of a history belongs to.
pub(super) fn run_of(message: &Message) -> Option<RunId> {
    let id = message.id.as_ref()?;
    ItemRef::of_message(id).map(|item| item.run)
}

/// The newest item of a history that a client gave this name.
pub(super) fn client_item(app: &App, history: &[Arc<Message>], id: &str) -> Option<Item> {
    let of = history.iter().filter_map(|message| {
        let said = message.source != Some(Source::Model);
        let run = run_of(message).filter(|_| said)?;
        Some((run, &**message))
    });
    let items = ListingOptions::plain().items(app, &positioned(of));
    items.into_iter().rfind(|item| item.id == id)
}

/// An item of a history that a client sends again, as it was shown.
pub(super) fn history_item(app: &App, history: &[Arc<Message>], id: &ItemId) -> Option<Item> {
    let of = history.iter().filter_map(|message| {
        let run = run_of(message).filter(|run| *run == id.run)?;
        Some((run, &**message))
    });
    let positioned = positioned(of);
    if positioned.is_empty() {
        return None;
    }
    let name = id.to_string();
    ListingOptions::plain()
        .items(app, &positioned)
        .into_iter()
        .find(|item| item.id == name)
}
