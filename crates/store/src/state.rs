//! What a thread knows besides its messages, kept per node so that a fork has exactly what held there.

use std::sync::Arc;

use throughline_model::json::{ObjectWriter, RawJson};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Path, json};

/// Providers with names like this are not the application's: the library keeps state of its own there.
const RESERVED: &str = "throughline.";

/// The id under which a vendor keeps the conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceId {
    /// The upstream that issued it.
    pub upstream: String,
    /// The sub-agent it belongs to; empty for the thread's own.
    pub agent: String,
    /// The id.
    pub id: String,
}

/// State at a node: service ids, what context providers keep, and how the history is shown.
///
/// ```
/// use throughline_store::{ServiceId, State};
///
/// let mut state = State::default();
/// state.set_service(ServiceId { upstream: "openai".into(), agent: String::new(), id: "resp_1".into() });
/// assert_eq!(state.service("openai", ""), Some("resp_1"));
/// assert_eq!(State::from_json(&state.to_json()).unwrap(), state);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct State {
    /// Sorted by upstream and agent, one each.
    services: Vec<ServiceId>,
    /// Sorted by name, one each.
    providers: Vec<(String, RawJson)>,
    /// Shared, because it grows with the history and a run copies the state several times.
    compaction: Option<Arc<RawJson>>,
}

impl State {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.providers.is_empty() && self.compaction.is_none()
    }

    /// All service ids, sorted.
    pub fn services(&self) -> &[ServiceId] {
        &self.services
    }

    /// The id that an upstream issued for a sub-agent, or for the thread itself (`""`).
    pub fn service(&self, upstream: &str, agent: &str) -> Option<&str> {
        let place = self.place(upstream, agent).ok()?;
        Some(&self.services[place].id)
    }

    /// Set a service id.
    pub fn set_service(&mut self, service: ServiceId) {
        match self.place(&service.upstream, &service.agent) {
            Ok(place) => self.services[place] = service,
            Err(place) => self.services.insert(place, service),
        }
    }

    /// Forget a service id.
    pub fn clear_service(&mut self, upstream: &str, agent: &str) {
        if let Ok(place) = self.place(upstream, agent) {
            self.services.remove(place);
        }
    }

    fn place(&self, upstream: &str, agent: &str) -> Result<usize, usize> {
        let key = |service: &ServiceId| {
            (service.upstream.as_str(), service.agent.as_str()).cmp(&(upstream, agent))
        };
        self.services.binary_search_by(key)
    }

    /// What a context provider keeps.
    pub fn provider(&self, name: &str) -> Option<&RawJson> {
        let place = self
            .providers
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
            .ok()?;
        Some(&self.providers[place].1)
    }

    /// All providers with what they keep, sorted.
    pub fn providers(&self) -> &[(String, RawJson)] {
        &self.providers
    }

    /// Set what a context provider keeps; `None` forgets it.
    pub fn set_provider(&mut self, name: &str, state: Option<RawJson>) {
        let place = self
            .providers
            .binary_search_by(|(known, _)| known.as_str().cmp(name));
        match (place, state) {
            (Ok(place), Some(state)) => self.providers[place].1 = state,
            (Ok(place), None) => {
                self.providers.remove(place);
            }
            (Err(place), Some(state)) => self.providers.insert(place, (name.into(), state)),
            (Err(_), None) => {}
        }
    }

    /// How the history up to this node is shown once it is long: what was folded into digests. It is
    /// part of the state so that a branch has what held where it began, and no other.
    pub fn compaction(&self) -> Option<&RawJson> {
        self.compaction.as_deref()
    }

    /// Set how the history is shown; `None` shows all of it.
    pub fn set_compaction(&mut self, compaction: Option<RawJson>) {
        self.compaction = compaction.map(Arc::new);
    }

    /// The same without what was derived from messages to show them: the compaction, and what the library
    /// keeps itself among the providers. What context providers keep is the application's and stays.
    pub(crate) fn without_derived(mut self) -> Self {
        self.compaction = None;
        self.providers
            .retain(|(name, _)| !name.starts_with(RESERVED));
        self
    }

    /// Whether the history is shown as another state shows it. Cheaper than comparing the texts.
    pub fn shows_as(&self, other: &Self) -> bool {
        self.compaction == other.compaction
    }

    /// The stored form.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.number("v", 1);
        if !self.services.is_empty() {
            let slot = object.key("services");
            let mut list = json::ArrayWriter::new(slot);
            for service in &self.services {
                let mut one = ObjectWriter::new(list.slot());
                one.str("upstream", &service.upstream);
                if !service.agent.is_empty() {
                    one.str("agent", &service.agent);
                }
                one.str("id", &service.id);
                one.end();
            }
            list.end();
        }
        if !self.providers.is_empty() {
            let mut providers = ObjectWriter::new(object.key("providers"));
            for (name, state) in &self.providers {
                providers.raw(name, state.get());
            }
            providers.end();
        }
        if let Some(compaction) = &self.compaction {
            object.raw("compaction", compaction.get());
        }
        object.end();
        out
    }

    /// Read the stored form.
    pub fn from_json(text: &str) -> Result<Self, StoredError> {
        let value = json::parse(text)?;
        let root = Path::Root;
        let mut fields = Fields::of(&value, &root)?;
        if let Some(version) = fields.number("v")?.filter(|version| *version > 1) {
            return Err(StoredError::Newer {
                path: "state".into(),
                version,
            });
        }
        let mut state = Self::default();
        let services = fields.list("services", |value, path| {
            let mut fields = Fields::of(value, path)?;
            Ok(ServiceId {
                upstream: fields.required_str("upstream")?,
                agent: fields.str("agent")?.unwrap_or_default(),
                id: fields.required_str("id")?,
            })
        })?;
        for service in services {
            state.set_service(service);
        }
        state.set_compaction(fields.raw("compaction"));
        if let Some(providers) = fields.get("providers") {
            for member in providers.members() {
                state.set_provider(&member.key.to_str(), Some(RawJson::of(&member.value)));
            }
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_how_the_history_is_shown() {
        let mut state = State::default();
        state.set_compaction(RawJson::new("[1]").ok());
        let copy = state.clone();
        let [one, other] = [&state, &copy].map(|state| state.compaction().unwrap());
        assert!(std::ptr::eq(one, other));
        assert!(copy.shows_as(&state));
        state.set_compaction(RawJson::new("[2]").ok());
        assert!(!copy.shows_as(&state));
        assert!(!copy.shows_as(&State::default()));
    }
}
