//! Upstreams as keepers of conversations.

use std::sync::Arc;

use throughline::agent::ServiceClients;
use throughline::thread::Owner;

use super::{Upstream, Upstreams};
use crate::config::HistoryLocation;
use crate::error::ApiError;
use crate::suggest::{did_you_mean, suggest};

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

impl Upstreams {
    /// The clients of all upstreams, for reading conversations back and deleting them.
    pub fn service_clients(&self) -> ServiceClients {
        let clients = self.all.iter().map(|upstream| Arc::clone(&upstream.client));
        clients.fold(ServiceClients::new(), ServiceClients::with)
    }

    /// The upstream with a name.
    pub fn named(&self, name: &str) -> Result<&Arc<Upstream>, ApiError> {
        let found = self.by_name.get(name).and_then(|at| self.all.get(*at));
        found.ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            let names = self.all.iter().map(|upstream| upstream.name.as_str());
            let meant = did_you_mean(&suggest(name, names));
            ApiError::invalid(format!("The upstream {shown:?} does not exist{meant}"))
                .code("upstream_not_found")
        })
    }
}
