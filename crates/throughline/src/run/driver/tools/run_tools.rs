use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_model::{Message, ToolDef};

use crate::thread::Mailbox;
use crate::tool::{RunHandle, SetError, Tool, ToolSet};

/// The tools of one run, which its tools may change; and the mailbox, which they may write to.
pub(in crate::run::driver) struct RunTools {
    tools: Mutex<ToolState>,
    mailbox: Mailbox,
    /// The conversation before the calls that run now, for tools that look into it.
    record: Mutex<Vec<Arc<Message>>>,
}

struct ToolState {
    set: ToolSet,
    /// The set as it is offered, made when it is first asked for.
    offered: Option<Arc<[ToolDef]>>,
}

impl RunTools {
    pub(in crate::run::driver) fn new(set: ToolSet, mailbox: Mailbox) -> Self {
        Self {
            tools: Mutex::new(ToolState { set, offered: None }),
            mailbox,
            record: Mutex::default(),
        }
    }

    /// Let tools look into the conversation.
    pub(in crate::run::driver) fn show(&self, record: Vec<Arc<Message>>) {
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = record;
    }

    fn own(&self) -> MutexGuard<'_, ToolState> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools as they are offered to a model.
    pub(in crate::run::driver) fn offered(&self) -> Arc<[ToolDef]> {
        let own = &mut *self.own();
        Arc::clone(own.offered.get_or_insert_with(|| own.set.defs().into()))
    }

    pub(in crate::run::driver) fn set(&self) -> ToolSet {
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
