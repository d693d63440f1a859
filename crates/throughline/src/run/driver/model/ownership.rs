//! Who keeps the history of a conversation, and what that means for a run.

use std::sync::Arc;

use throughline_model::json::{self, RawJson};
use throughline_model::{Message, MessageId, Response, Role, Source};
use throughline_store::{RunId, ServiceId, State, ThreadPatch};

use super::prompt_view::PromptView;
use crate::client::{Abilities, HistoryOwner, StoresHistory};
use crate::prompt::View;
use crate::run::driver::start::{Leftover, Plan};
use crate::run::driver::{Driver, DriverError};
use crate::run::outcome::RunError;
use crate::run::setup::AgentSetup;
use crate::thread::{MessageStore, OnServiceId, Owner, ThreadSettings};

/// Under which name the state keeps the key of a message store of the application.
pub(crate) const KEY: &str = "throughline.key";

/// Under which name the state keeps the id of the last message that a service has.
fn last_message_key(upstream: &str, agent: &str) -> String {
    format!("throughline.has:{upstream}:{agent}")
}

/// Who keeps the history of the thread.
pub(crate) enum Ownership {
    /// The store of this library.
    Local,
    /// The service of the model, under an id if it has given one.
    Service {
        id: Option<String>,
        /// The last message that it has under this id. Messages behind it were never sent, or in a
        /// call that failed.
        last: Option<MessageId>,
    },
    /// A message store of the application.
    External {
        store: Arc<dyn MessageStore>,
        key: RawJson,
        /// How many messages of the run were appended.
        appended: usize,
    },
}

/// What an answer says about the history that its service keeps.
pub(crate) enum ServiceHistory {
    /// The service keeps none, as it should.
    None,
    /// The service keeps the history under this id, as it should.
    Kept(String),
    /// The service should keep the history, and gave no id.
    Missing,
    /// The service keeps the history under this id although another owner does.
    Unasked(String),
}

/// Whether a message came from a model or the service behind it.
pub(crate) fn is_by_model(message: &Message) -> bool {
    match message.source {
        Some(Source::Model) => true,
        // Results of tools that the vendor ran are part of its answer, ours are sent to it.
        _ => message.role == Role::Assistant,
    }
}

impl Ownership {
    /// Read the owner from the settings and the state of a thread. An owner that does not fit the
    /// client is refused before any call, or replaced in the settings if the policy says so.
    pub(crate) fn of(
        agent: &AgentSetup,
        plan: &Plan,
        settings: &mut ThreadSettings,
        state: &State,
        run: RunId,
    ) -> Result<Self, RunError> {
        let abilities = plan.client.abilities();
        let ours = !matches!(settings.owner, Owner::Service { .. });
        if ours && abilities.stores_history == StoresHistory::Always {
            conflict(plan.policy.on_service_id, abilities, run)?;
            if plan.policy.on_service_id.clears() {
                settings.owner = Owner::Service {
                    upstream: abilities.upstream.clone(),
                };
            }
        }
        let owner = match &settings.owner {
            Owner::Local => Self::Local,
            Owner::Service { upstream } => {
                if *upstream != abilities.upstream {
                    return Err(RunError::KeptElsewhere {
                        owner: upstream.clone(),
                        upstream: abilities.upstream.clone(),
                    });
                }
                let id = state.service(upstream, &agent.sub_agent);
                let last = state.provider(&last_message_key(upstream, &agent.sub_agent));
                let last = last.and_then(|last| {
                    let text = json::parse(last.get()).ok()?.as_str()?.into_owned();
                    MessageId::new(&text).ok()
                });
                Self::Service {
                    id: id.map(str::to_owned),
                    last,
                }
            }
            Owner::External { store, key } => {
                let found = agent.message_stores.get(store);
                let store = found.ok_or_else(|| RunError::UnknownMessageStore {
                    name: store.clone(),
                    known: agent.message_stores.keys().cloned().collect(),
                })?;
                Self::External {
                    store: Arc::clone(store),
                    key: state.provider(KEY).unwrap_or(key).clone(),
                    appended: 0,
                }
            }
        };
        let known = owner.service_id();
        match (&plan.service_id, known) {
            (Some(named), known) if known != Some(named) => Err(RunError::OtherServiceId {
                named: named.clone(),
                known: known.map(str::to_owned),
            }),
            _ => Ok(owner),
        }
    }

    /// The service keeps the history under this id, up to the last message.
    pub(crate) fn set_service(
        &mut self,
        service: ServiceId,
        last: Option<&MessageId>,
        state: &mut State,
    ) {
        let key = last_message_key(&service.upstream, &service.agent);
        let text = last.map(|last| {
            let mut text = String::new();
            json::push_string(&mut text, last.as_str());
            text
        });
        state.set_provider(&key, text.and_then(|text| RawJson::new(&text).ok()));
        *self = Self::Service {
            id: Some(service.id.clone()),
            last: last.cloned(),
        };
        state.set_service(service);
    }

    /// Continue the conversation that a failed run had with the service. Returns how many of the
    /// messages that it left the service has.
    pub(crate) fn adopt(
        &mut self,
        agent: &AgentSetup,
        plan: &Plan,
        left: &Leftover,
        state: &mut State,
    ) -> usize {
        // A failed run that sent none of them leaves the id that the thread has.
        let kept = left.sent_to_service.as_ref().filter(|(_, sent)| *sent > 0);
        let (Self::Service { .. }, Some((id, sent))) = (&self, kept) else {
            return 0;
        };
        let service = ServiceId {
            upstream: plan.client.abilities().upstream.clone(),
            agent: agent.sub_agent.clone(),
            id: id.clone(),
        };
        let last = left.messages[..*sent].last();
        self.set_service(service, last.and_then(|last| last.id.as_ref()), state);
        *sent
    }

    /// What a model is given of a history, and behind it the messages of context providers, which are
    /// shown in this run only.
    pub(crate) async fn prompt(
        &self,
        plan: &Plan,
        base: View,
        shown: &[Message],
    ) -> Result<PromptView, RunError> {
        Ok(match self {
            Self::External { store, key, .. } => {
                let budget = plan.client.abilities().window;
                let history = store.load(key, budget).await;
                let history = history.map_err(|source| RunError::MessageStore { source })?;
                PromptView::apart(base, View::new(history), shown)
            }
            Self::Service { id: Some(_), last } => {
                PromptView::increments(base, last.as_ref(), shown)
            }
            Self::Local | Self::Service { id: None, .. } if shown.is_empty() => {
                let length = base.messages().len();
                PromptView::whole(base, length)
            }
            Self::Local | Self::Service { id: None, .. } => PromptView::with(base, shown),
        })
    }

    pub(crate) fn service_id(&self) -> Option<&str> {
        match self {
            Self::Service { id, .. } => id.as_deref(),
            Self::Local | Self::External { .. } => None,
        }
    }

    pub(crate) fn is_external(&self) -> bool {
        matches!(self, Self::External { .. })
    }

    pub(crate) fn history_owner(&self) -> HistoryOwner<'_> {
        match self {
            Self::Service { id, .. } => HistoryOwner::Service { id: id.as_deref() },
            Self::Local | Self::External { .. } => HistoryOwner::Caller,
        }
    }
}

/// A service keeps a history that another owner keeps.
fn conflict(how: OnServiceId, abilities: &Abilities, run: RunId) -> Result<(), RunError> {
    let upstream = &abilities.upstream;
    if how == OnServiceId::Throw {
        return Err(RunError::ServiceKeepsHistory {
            upstream: upstream.clone(),
        });
    }
    if how.warns() {
        tracing::warn!(
            %run,
            upstream,
            handed_over = how.clears(),
            "the service keeps a conversation whose history is local"
        );
    }
    Ok(())
}

impl Driver {
    /// What an answer says about the history that its service keeps.
    pub(crate) fn service_history(&self, response: &Response) -> ServiceHistory {
        match (&self.model.owner, &response.service) {
            (Ownership::Service { .. }, Some(id)) => ServiceHistory::Kept(id.clone()),
            (Ownership::Service { .. }, None) => ServiceHistory::Missing,
            (Ownership::Local | Ownership::External { .. }, Some(id)) => {
                ServiceHistory::Unasked(id.clone())
            }
            (Ownership::Local | Ownership::External { .. }, None) => ServiceHistory::None,
        }
    }

    /// Send only new messages from now on, if the service keeps what it was sent and answered.
    pub(crate) fn stop_resending(&mut self, service: &ServiceHistory) {
        let is_kept = match service {
            ServiceHistory::Kept(_) => true,
            ServiceHistory::Unasked(_) => self.plan.policy.on_service_id.clears(),
            ServiceHistory::None | ServiceHistory::Missing => false,
        };
        if is_kept {
            self.model.view.become_increments();
        }
    }

    /// Take the id under which the service keeps the history, or refuse it.
    pub(crate) async fn take_service_id(
        &mut self,
        service: ServiceHistory,
    ) -> Result<(), DriverError> {
        let abilities = self.plan.client.abilities();
        let upstream = abilities.upstream.clone();
        let id = match service {
            ServiceHistory::None => return Ok(()),
            ServiceHistory::Kept(id) => id,
            ServiceHistory::Missing => return Err(RunError::NoServiceId { upstream }.into()),
            ServiceHistory::Unasked(id) => {
                let how = self.plan.policy.on_service_id;
                // A service that always keeps the history was reported before the first call.
                if abilities.stores_history != StoresHistory::Always && !self.plan.warned {
                    conflict(how, abilities, self.run)?;
                    self.plan.warned = true;
                }
                if !how.clears() {
                    return Ok(());
                }
                self.hand_over(&upstream).await?;
                id
            }
        };
        let service = ServiceId {
            upstream,
            agent: self.context.agent.sub_agent.clone(),
            id,
        };
        // Results of the answer's calls, if there are any yet, were not sent.
        let last = self.transcript.sent().last();
        let last = last.and_then(|last| last.id.as_ref());
        let state = &mut self.state.current;
        self.model.owner.set_service(service, last, state);
        Ok(())
    }

    /// The service owns the history of the thread from now on.
    async fn hand_over(&mut self, upstream: &str) -> Result<(), DriverError> {
        let thread = &self.context.thread;
        let mut settings = thread.settings();
        settings.owner = Owner::Service {
            upstream: upstream.to_owned(),
        };
        Ok(thread.write_settings(settings).await?)
    }

    /// Append the messages that are published next, up to so many, to the message store of the
    /// application, if there is one.
    pub(crate) async fn append_external(&mut self, until: usize) -> Result<(), DriverError> {
        let Ownership::External {
            store,
            key,
            appended,
        } = &mut self.model.owner
        else {
            return Ok(());
        };
        if *appended >= until {
            return Ok(());
        }
        let new = self.transcript.messages()[*appended..until].iter();
        let messages: Vec<Message> = new.map(|message| Message::clone(message)).collect();
        // The same for each attempt: the run, and the position in it.
        let idempotency = format!("{}.{appended}", self.run);
        let given = store.append(key, &messages, &idempotency).await;
        match given {
            Ok(None) => {}
            Ok(Some(new)) => {
                let state = &mut self.state.current;
                state.set_provider(KEY, Some(new.clone()));
                *key = new;
            }
            Err(source) => return Err(DriverError::Wait(RunError::MessageStore { source })),
        }
        *appended = until;
        Ok(())
    }
}

impl crate::thread::Shared {
    /// Write the settings of the thread.
    pub(crate) async fn write_settings(
        &self,
        settings: ThreadSettings,
    ) -> throughline_store::Result<()> {
        let patch = ThreadPatch {
            settings: Some(settings.to_json()),
            ..ThreadPatch::default()
        };
        let home = &self.home;
        home.store.patch(&home.scope, &self.id, &patch).await?;
        self.set_settings(settings);
        Ok(())
    }
}
