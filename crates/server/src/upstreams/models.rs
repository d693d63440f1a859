//! What `/v1/models` lists.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use throughline::ChatClient;
use throughline_model::json::RawJson;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Upstream, Upstreams, glob};

/// How long the list of an upstream is kept.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// How long an upstream that could not be asked is not asked again.
const FAILED: Duration = Duration::from_secs(30);

/// How long an upstream may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What an upstream lists itself, and when it was asked. Requests that come meanwhile wait for it.
#[derive(Debug, Default)]
pub struct ModelCache(Mutex<Option<(Instant, ListedModels)>>);

/// What an upstream says of its models.
#[derive(Clone, Debug)]
enum ListedModels {
    /// It has no list.
    Unlisted,
    Listed(Arc<[String]>),
    /// It could not be asked.
    Failed,
}

impl ModelCache {
    async fn get(&self, upstream: &Upstream) -> ListedModels {
        let client: &dyn ChatClient = &*upstream.client;
        let Some(list) = client.models() else {
            return ListedModels::Unlisted;
        };
        let mut kept = self.0.lock().await;
        if let Some((since, listed)) = &*kept {
            let long = match listed {
                ListedModels::Failed => FAILED,
                ListedModels::Listed(_) | ListedModels::Unlisted => KEPT,
            };
            if since.elapsed() < long {
                return listed.clone();
            }
        }
        let listed = match tokio::time::timeout(TIMEOUT, list.list()).await {
            Ok(Ok(models)) => ListedModels::Listed(models.into()),
            Ok(Err(error)) => {
                tracing::info!(upstream = upstream.name, %error, "models cannot be listed now");
                ListedModels::Failed
            }
            Err(_) => {
                tracing::info!(upstream = upstream.name, "models were not listed in time");
                ListedModels::Failed
            }
        };
        *kept = Some((Instant::now(), listed.clone()));
        listed
    }
}

/// All models, and the upstreams that could not be asked for theirs.
pub struct ModelListing {
    /// The models.
    pub models: Vec<ModelInfo>,
    /// The names of upstreams of which only the configured names are listed.
    pub failed: Vec<String>,
}

/// One model, or an agent that stands for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name to ask for.
    pub id: String,
    /// Who answers: the name of an upstream, or `agent`.
    pub owned_by: String,
}

impl ModelInfo {
    /// The form in OpenAI's API. `created` is in seconds since 1970.
    pub fn to_json(&self, created: u64) -> RawJson {
        RawJson::object(|object| {
            object
                .str("id", &self.id)
                .str("object", "model")
                .number("created", created)
                .str("owned_by", &self.owned_by);
        })
    }
}

impl Upstreams {
    /// Every name that is known without calling an upstream: agents, and what `models` names without a
    /// star.
    pub fn models(&self) -> Vec<ModelInfo> {
        let agents = self.agents.keys().map(|id| ModelInfo {
            id: format!("agent/{id}"),
            owned_by: "agent".to_owned(),
        });
        let named = self.all.iter().flat_map(|upstream| {
            let exact = upstream.models.iter().filter(|name| glob::is_exact(name));
            exact.map(|name| ModelInfo {
                id: name.clone(),
                owned_by: upstream.name.clone(),
            })
        });
        let mut models: Vec<ModelInfo> = Vec::new();
        for model in agents.chain(named) {
            // The first upstream that names it is the one that is asked.
            if !models.iter().any(|known| known.id == model.id) {
                models.push(model);
            }
        }
        models
    }

    /// Agents, and what each upstream lists itself as far as its `models` takes it. Of an upstream
    /// without a list it is `models` as written.
    pub async fn list_models(&self) -> ModelListing {
        let listed = self
            .all
            .iter()
            .map(|upstream| upstream.listed.get(upstream));
        let listed = join_all(listed).await;
        let mut listing = ModelListing {
            models: self.models(),
            failed: Vec::new(),
        };
        for (upstream, listed) in self.all.iter().zip(listed) {
            let names: Vec<String> = match listed {
                ListedModels::Listed(names) => {
                    let taken = names.iter().filter_map(|name| self.name_of(upstream, name));
                    taken.collect()
                }
                ListedModels::Unlisted => upstream.models.clone(),
                ListedModels::Failed => {
                    listing.failed.push(upstream.name.clone());
                    upstream.models.clone()
                }
            };
            for id in names {
                if !listing.models.iter().any(|known| known.id == id) {
                    let owned_by = upstream.name.clone();
                    listing.models.push(ModelInfo { id, owned_by });
                }
            }
        }
        listing
    }

    /// The name under which a model of an upstream is asked for here, if it is.
    fn name_of(&self, upstream: &Upstream, name: &str) -> Option<String> {
        if upstream.models.is_empty() {
            return Some(format!("{}/{name}", upstream.name));
        }
        let takes = upstream.models.iter().any(|one| glob::matches(one, name));
        let route = self.find(name).filter(|_| takes)?;
        // Another upstream may have a closer pattern.
        (route.upstream.name == upstream.name).then(|| name.to_owned())
    }

    /// One model by its name, listed or not.
    pub fn model(&self, id: &str) -> Option<ModelInfo> {
        let route = self.find(id)?;
        Some(ModelInfo {
            id: id.to_owned(),
            owned_by: match route.agent {
                Some(_) => "agent".to_owned(),
                None => route.upstream.name.clone(),
            },
        })
    }
}
