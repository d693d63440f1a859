//! Message stores that the embedding application registered.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use throughline::agent::AgentBuilder;
use throughline::thread::{MessageStore, MessageStoreError};
use throughline_model::Message;
use throughline_model::json::RawJson;

use crate::config::{AgentConfig, ConfigError};
use crate::suggest::{did_you_mean, suggest};

/// The message stores of the embedding application, by name.
#[derive(Clone, Default)]
pub(crate) struct MessageStores(BTreeMap<String, Arc<dyn MessageStore>>);

impl MessageStores {
    /// Register a store, in place of another of that name.
    pub(crate) fn register(&mut self, name: String, store: Arc<dyn MessageStore>) {
        self.0.insert(name, store);
    }

    /// Whether the store of every configured agent is registered.
    pub(super) fn check(&self, agents: &[Arc<AgentConfig>]) -> Result<(), ConfigError> {
        let named = |agent: &&Arc<AgentConfig>| agent.message_store.is_some();
        for agent in agents.iter().filter(named) {
            let name = agent.message_store.as_deref().unwrap_or_default();
            if self.0.contains_key(name) {
                continue;
            }
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let problem = match known.as_slice() {
                [] => format!(
                    "no message store {name:?} is registered: a program that embeds the server \
                     registers it with Server::builder(config).message_store({name:?}, …), and \
                     `throughline serve` has none; take the key out"
                ),
                _ => format!(
                    "no message store {name:?} is registered, only {}{}",
                    known.join(", "),
                    did_you_mean(&suggest(name, known.iter().copied()))
                ),
            };
            return Err(ConfigError::Wrong {
                origin: agent.origin.clone(),
                key: format!("agent.{}.message_store", agent.id),
                problem,
            });
        }
        Ok(())
    }

    /// Give an agent all stores: a thread can be continued with every model.
    pub(crate) fn offer_to(&self, agent: AgentBuilder) -> AgentBuilder {
        self.0.iter().fold(agent, |agent, (name, store)| {
            agent.message_store(name.clone(), SharedStore(Arc::clone(store)))
        })
    }
}

/// A store that the agents of all upstreams share.
struct SharedStore(Arc<dyn MessageStore>);

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl MessageStore for SharedStore {
    async fn load(
        &self,
        key: &RawJson,
        budget: Option<u64>,
    ) -> Result<Vec<Message>, MessageStoreError> {
        self.0.load(key, budget).await
    }

    async fn append(
        &self,
        key: &RawJson,
        messages: &[Message],
        idempotency: &str,
    ) -> Result<Option<RawJson>, MessageStoreError> {
        self.0.append(key, messages, idempotency).await
    }
}
