//! Model calls: what a call is given, how it is made, and where its conversation is kept.

mod call;
mod compact;
mod external;
mod look_up;
mod ownership;
mod prompt_view;
pub(crate) mod providers;
mod summary;

use std::sync::Arc;

use throughline_model::Message;

pub(crate) use call::CallEnd;
pub(crate) use look_up::AcceptedCall;
pub(crate) use ownership::{Ownership, is_by_model};
pub(crate) use prompt_view::PromptView;
pub(crate) use providers::{Provided, UnstartedRun};

/// What a model call is given: the messages to send, who keeps the history, and what context
/// providers added.
pub(crate) struct ModelInput {
    pub(crate) view: PromptView,
    pub(crate) owner: Ownership,
    pub(crate) provided: Provided,
    /// A call that the service has accepted and whose answer is missing: the next model call asks for
    /// that answer.
    pub(crate) accepted: Option<AcceptedCall>,
}

impl ModelInput {
    /// A message of the run follows. A service that keeps the history has what its model answered.
    pub(crate) fn push(&mut self, message: &Arc<Message>) {
        if !self.view.is_incremental() || !is_by_model(message) {
            self.view.push(Arc::clone(message));
        }
    }
}
