//! The messages of a run, and how many of them are history.

use std::sync::Arc;

use throughline_model::{Message, Source};
use throughline_store::{NodeId, Published};

/// The messages of a run, oldest first.
///
/// The first `published` of them are history at `node`, and the first `carried` of them belong to an
/// earlier run that recorded and never sent them: they are no part of the outcome.
pub(crate) struct Transcript {
    messages: Vec<Arc<Message>>,
    carried: usize,
    published: usize,
    /// Whether the last message has results that no model call has sent.
    has_unsent_results: bool,
    /// How many messages there are up to the last answer that the journal has.
    recorded: usize,
    /// The node from which the thread continues.
    node: Option<NodeId>,
    /// Whether the end of the run made that node.
    ends_at_node: bool,
}

impl Transcript {
    /// The empty transcript of a run at a node. Of the messages that follow, `carried` are those of an
    /// earlier run, and `published` were published before this process took the run.
    pub(crate) fn new(node: Option<NodeId>, carried: usize, published: usize) -> Self {
        Self {
            messages: Vec::new(),
            carried,
            published,
            has_unsent_results: false,
            recorded: 0,
            node,
            ends_at_node: false,
        }
    }

    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.messages.push(message);
        self.has_unsent_results = false;
    }

    /// The last message has results that no model call has sent.
    pub(crate) fn results_are_unsent(&mut self) {
        self.has_unsent_results = true;
    }

    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The messages that are part of the outcome.
    pub(crate) fn own(&self) -> &[Arc<Message>] {
        &self.messages[self.carried..]
    }

    /// The messages without results that no model call has sent.
    pub(crate) fn sent(&self) -> &[Arc<Message>] {
        &self.messages[..self.messages.len() - usize::from(self.has_unsent_results)]
    }

    /// A step was recorded with everything up to its answer.
    pub(crate) fn step_recorded(&mut self) {
        self.recorded = self.sent().len();
    }

    /// The steps of the journal have so many of the messages.
    pub(crate) fn restore_recorded(&mut self, messages: usize) {
        self.recorded = messages;
    }

    /// How many messages a service has that stores whole calls: those up to the last answer that
    /// the journal has.
    pub(crate) fn recorded(&self) -> usize {
        self.recorded
    }

    pub(crate) fn has_unsent_results(&self) -> bool {
        self.has_unsent_results
    }

    pub(crate) fn has_answer(&self) -> bool {
        let by_model = |one: &Arc<Message>| one.source == Some(Source::Model);
        self.messages.iter().any(by_model)
    }

    /// A step was published: its messages are history, and its results come later.
    pub(crate) fn step_published(&mut self, published: &Published) {
        self.node = published.node;
        self.published = self.sent().len();
    }

    /// The run was published with its first `messages` messages.
    pub(crate) fn run_published(&mut self, published: &Published, messages: usize) {
        // A run without new messages makes no node, and its state is stored nowhere.
        self.ends_at_node = published.node.is_some() && published.node != self.node;
        self.node = published.node.or(self.node);
        self.published = messages;
    }

    /// How many of the messages are history, also while they are being loaded.
    pub(crate) fn published_count(&self) -> usize {
        self.published
    }

    /// The messages that are history.
    pub(crate) fn published(&self) -> &[Arc<Message>] {
        &self.messages[..self.published]
    }

    pub(crate) fn node(&self) -> Option<NodeId> {
        self.node
    }

    /// Whether the run ended with a node of its own that has all its messages.
    pub(crate) fn is_complete(&self) -> bool {
        self.ends_at_node && self.published == self.messages.len()
    }
}
