//! The tools of one run, which its tools may change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_model::{Message, ToolDef};

use crate::thread::Mailbox;
use crate::tool::{RunHandle, SetError, Tool, ToolSet};

/// What tools can reach of their run: its tools, the mailbox of its thread, the conversation.
pub(crate) struct RunTools {
    tools: Mutex<ToolState>,
    mailbox: Mailbox,
    /// The conversation before the current calls, for tools that search it.
    record: Mutex<Vec<Arc<Message>>>,
}

struct ToolState {
    set: ToolSet,
    /// The set as a model is offered it, made for the first model call that needs it.
    offered: Option<Arc<[ToolDef]>>,
}

impl RunTools {
    pub(crate) fn new(set: ToolSet, mailbox: Mailbox) -> Self {
        Self {
            tools: Mutex::new(ToolState { set, offered: None }),
            mailbox,
            record: Mutex::default(),
        }
    }

    /// Set the conversation that tools can search.
    pub(crate) fn show(&self, record: Vec<Arc<Message>>) {
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = record;
    }

    fn own(&self) -> MutexGuard<'_, ToolState> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools as a model is offered them.
    pub(crate) fn offered(&self) -> Arc<[ToolDef]> {
        let own = &mut *self.own();
        Arc::clone(own.offered.get_or_insert_with(|| own.set.defs().into()))
    }

    pub(crate) fn set(&self) -> ToolSet {
        self.own().set.clone()
    }

    fn change(
        &self,
        change: impl FnOnce(&mut ToolSet) -> Result<(), SetError>,
    ) -> Result<(), SetError> {
        let own = &mut *self.own();
        own.offered = None;
        change(&mut own.set)
    }
}

#[async_trait]
impl RunHandle for RunTools {
    fn add_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Result<(), SetError> {
        self.change(|set| set.add(tools))
    }

    fn replace_tool(&self, tool: Arc<dyn Tool>) -> Result<(), SetError> {
        self.change(|set| set.replace(tool))
    }

    fn remove_tool(&self, name: &str) -> Result<(), SetError> {
        self.change(|set| set.remove(name))
    }

    fn guard_tool(&self, name: &str) -> Result<(), SetError> {
        self.change(|set| set.guard(name))
    }

    async fn inject(&self, message: Message) -> throughline_store::Result<()> {
        self.mailbox.leave(message).await
    }

    fn record(&self) -> Vec<Arc<Message>> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.clone()
    }
}
