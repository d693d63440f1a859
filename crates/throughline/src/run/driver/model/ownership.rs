//! Who keeps the history of a conversation, and what that means for a run.

use throughline_model::{Message, MessageId, Response, Role, Source};
use throughline_store::{RunId, ServiceId, State, ThreadPatch};

use super::external::ExternalHistory;
use super::prompt_view::PromptView;
use crate::client::{Abilities, HistoryOwner, StoresHistory};
use crate::prompt::View;
use crate::run::driver::start::{Leftover, Plan};
use crate::run::driver::{Driver, DriverError};
use crate::run::outcome::RunError;
use crate::run::setup::AgentSetup;
use crate::thread::{
    OnOtherUpstream, OnServiceId, Owner, Services, ThreadSettings, last_message, note_service,
};
use crate::trials::planted;

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
    External(ExternalHistory),
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
        let ours = !matches!(settings.owner, Owner::Services(_));
        if ours && abilities.stores_history == StoresHistory::Always {
            conflict(plan.policy.on_service_id, abilities, run)?;
            if plan.policy.on_service_id.clears() {
                settings.owner = Owner::service(&abilities.upstream);
            }
        }
        if let Owner::Services(services) = &settings.owner
            && !services.contains(&abilities.upstream)
        {
            settings.owner = other_owner(plan.policy.on_other_upstream, services, abilities)?;
        }
        let owner = match &settings.owner {
            Owner::Local => Self::Local,
            Owner::Services(_) => {
                let upstream = &abilities.upstream;
                let id = state.service(upstream, &agent.sub_agent);
                let last = last_message(state, upstream, &agent.sub_agent);
                Self::Service {
                    id: id.map(str::to_owned),
                    last,
                }
            }
            Owner::External { store, key } => {
                Self::External(ExternalHistory::new(agent, store, key, state)?)
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
        let mut known = state.services().iter();
        let is_second = known.any(|other| other.upstream != service.upstream);
        let last = last.filter(|_| !(is_second && planted("loop-service-place-forgotten")));
        *self = Self::Service {
            id: Some(service.id.clone()),
            last: last.cloned(),
        };
        note_service(service, last, state);
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
        let kept = left.sent_to_service.as_ref().filter(|sent| sent.count > 0);
        let (Self::Service { .. }, Some(sent)) = (&self, kept) else {
            return 0;
        };
        let upstream = &plan.client.abilities().upstream;
        let service = ServiceId {
            upstream: sent.upstream.clone().unwrap_or_else(|| upstream.clone()),
            agent: agent.sub_agent.clone(),
            id: sent.id.clone(),
        };
        let last = left.messages[..sent.count].last();
        let last = last.and_then(|last| last.id.as_ref());
        if service.upstream != *upstream {
            // Another service of the thread has them: this one is sent all.
            note_service(service, last, state);
            return 0;
        }
        self.set_service(service, last, state);
        sent.count
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
            Self::External(external) => {
                let history = external.load(plan.prompt_budget()).await?;
                PromptView::external(base, history, shown)
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
            Self::Local | Self::External(_) => None,
        }
    }

    pub(crate) fn is_external(&self) -> bool {
        matches!(self, Self::External(_))
    }

    /// The message store of the application, if it keeps the history.
    pub(crate) fn external_mut(&mut self) -> Option<&mut ExternalHistory> {
        match self {
            Self::External(external) => Some(external),
            Self::Local | Self::Service { .. } => None,
        }
    }

    pub(crate) fn history_owner(&self) -> HistoryOwner<'_> {
        match self {
            Self::Service { id, .. } => HistoryOwner::Service { id: id.as_deref() },
            Self::Local | Self::External(_) => HistoryOwner::Caller,
        }
    }
}

/// The owner of a history that services of other upstreams keep, if it is handed over.
fn other_owner(
    how: OnOtherUpstream,
    services: &Services,
    abilities: &Abilities,
) -> Result<Owner, RunError> {
    match (how, abilities.stores_history) {
        (OnOtherUpstream::Refuse, _) => Err(RunError::KeptElsewhere {
            owner: services.to_string(),
            upstream: abilities.upstream.clone(),
        }),
        (OnOtherUpstream::HandOver, StoresHistory::Always) => {
            Ok(Owner::service(&abilities.upstream))
        }
        (OnOtherUpstream::HandOver, StoresHistory::Never | StoresHistory::Optional) => {
            Ok(Owner::Local)
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
            (Ownership::Local | Ownership::External(_), Some(id)) => {
                ServiceHistory::Unasked(id.clone())
            }
            (Ownership::Local | Ownership::External(_), None) => ServiceHistory::None,
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
        settings.owner = Owner::service(upstream);
        Ok(thread.write_settings(settings).await?)
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
