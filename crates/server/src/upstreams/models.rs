//! What `/v1/models` lists.

use throughline_model::json::RawJson;

use super::{Upstreams, glob};

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
