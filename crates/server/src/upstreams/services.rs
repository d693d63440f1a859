//! Upstreams as keepers of conversations.

use throughline::thread::Owner;

use super::Upstream;
use crate::config::HistoryLocation;

impl Upstream {
    /// The name under which threads know its service.
    pub fn service(&self) -> &str {
        &self.client.abilities().upstream
    }

    /// Who owns a thread that is handed over to this upstream: its service if that keeps
    /// conversations, else our store, from which every upstream can be sent the whole of it.
    pub fn owner(&self) -> Owner {
        match self.history {
            HistoryLocation::Service => Owner::service(self.service()),
            HistoryLocation::Local => Owner::Local,
        }
    }
}
