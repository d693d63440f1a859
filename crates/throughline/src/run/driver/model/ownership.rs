//! Who keeps the conversation, and what that means for a run.

use std::sync::Arc;

use throughline_model::json::{self, RawJson};
use throughline_model::{Message, MessageId, Response, Role, Source};
use throughline_store::{ServiceId, State, ThreadPatch};

use super::prompt_view::PromptView;
use crate::client::{Abilities, HistoryOwner, StoresHistory};
use crate::prompt::View;
use crate::run::driver::start::Adopted;
use crate::run::driver::start::Plan;
use crate::run::driver::{Driver, DriverError};
use crate::run::outcome::RunError;
use crate::run::setup::AgentSetup;
use crate::thread::{MessageStore, OnServiceId, Owner, Persistence, ThreadSettings};

/// Under which name the state keeps the key of a message store of the application.
pub(crate) const KEY: &str = "throughline.key";

/// Under which name the state keeps the last message that a service has.
fn has_name(upstream: &str, agent: &str) -> String {
    format!("throughline.has:{upstream}:{agent}")
}

/// Who keeps the conversation of a run.
pub(in crate::run::driver) enum Ownership {
    /// We do.
    Local,
    /// The service does, under an id if it has given one.
    Service {
        id: Option<String>,
        /// The last message that it has under this id. What stands behind it was never sent, or in
        /// a call that came to nothing.
        has: Option<MessageId>,
    },
    /// The application does.
    External {
        store: Arc<dyn MessageStore>,
        key: RawJson,
        /// How much of what the run said was appended.
        appended: usize,
    },
}

/// What an answer says about who keeps the conversation.
pub(in crate::run::driver) enum FromService {
    Nothing,
    /// It is kept under this id, as it should be.
    Kept(String),
    /// It should be kept, and no id came.
    Missing,
    /// It is kept under this id although it is ours.
    Unasked(String),
}

/// Whether a model, or the service behind it, said this.
pub(in crate::run::driver) fn is_models(message: &Message) -> bool {
    match message.source {
        Some(Source::Model) => true,
        // Results of tools that the vendor ran came with the answer; ours go out.
        _ => message.role == Role::Assistant,
    }
}

impl Ownership {
    /// Who keeps the conversation; refused where that does not fit the client, before any call.
    pub(in crate::run::driver) fn of(
        agent: &AgentSetup,
        plan: &Plan,
        settings: &mut ThreadSettings,
        state: &State,
        run: throughline_store::RunId,
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
                let has = state.provider(&has_name(upstream, &agent.sub_agent));
                let has =
                    has.and_then(|has| json::parse(has.get()).ok()?.as_str().map(String::from));
                Self::Service {
                    id: id.map(str::to_owned),
                    has: has.and_then(|has| MessageId::new(&has).ok()),
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

    /// The service keeps the conversation under this id, up to a message.
    pub(in crate::run::driver) fn kept_as(
        &mut self,
        service: ServiceId,
        has: Option<&MessageId>,
        state: &mut State,
    ) {
        let name = has_name(&service.upstream, &service.agent);
        let text = has.map(|has| {
            let mut text = String::new();
            json::push_string(&mut text, has.as_str());
            text
        });
        state.set_provider(&name, text.and_then(|text| RawJson::new(&text).ok()));
        *self = Self::Service {
            id: Some(service.id.clone()),
            has: has.cloned(),
        };
        state.set_service(service);
    }

    /// Go on where a failed run was with the service: how much of what it left the service has.
    pub(in crate::run::driver) fn adopt(
        &mut self,
        agent: &AgentSetup,
        plan: &Plan,
        left: &Adopted,
        state: &mut State,
    ) -> usize {
        // Without anything that it sent, the thread has what it published.
        let kept = left.kept.as_ref().filter(|(_, sent)| *sent > 0);
        let (Self::Service { .. }, Some((id, sent))) = (&self, kept) else {
            return 0;
        };
        let service = ServiceId {
            upstream: plan.client.abilities().upstream.clone(),
            agent: agent.sub_agent.clone(),
            id: id.clone(),
        };
        let has = left.messages[..*sent].last();
        self.kept_as(service, has.and_then(|last| last.id.as_ref()), state);
        *sent
    }

    /// What a model is given of a history, and behind it what is shown in this run only.
    pub(in crate::run::driver) async fn prompt(
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
            Self::Service { id: Some(_), has } => PromptView::increments(base, has.as_ref(), shown),
            Self::Local | Self::Service { id: None, .. } if shown.is_empty() => {
                let length = base.messages().len();
                PromptView::whole(base, length)
            }
            Self::Local | Self::Service { id: None, .. } => PromptView::with(base, shown),
        })
    }

    pub(in crate::run::driver) fn service_id(&self) -> Option<&str> {
        match self {
            Self::Service { id, .. } => id.as_deref(),
            Self::Local | Self::External { .. } => None,
        }
    }

    pub(in crate::run::driver) fn is_external(&self) -> bool {
        matches!(self, Self::External { .. })
    }

    pub(in crate::run::driver) fn kept(&self) -> HistoryOwner<'_> {
        match self {
            Self::Service { id, .. } => HistoryOwner::Service { id: id.as_deref() },
            Self::Local | Self::External { .. } => HistoryOwner::Caller,
        }
    }
}

/// A service keeps what is ours to keep.
fn conflict(
    how: OnServiceId,
    abilities: &Abilities,
    run: throughline_store::RunId,
) -> Result<(), RunError> {
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
    /// What an answer says about who keeps the conversation.
    pub(in crate::run::driver) fn service_of(&self, response: &Response) -> FromService {
        match (&self.owner, &response.service) {
            (Ownership::Service { .. }, Some(id)) => FromService::Kept(id.clone()),
            (Ownership::Service { .. }, None) => FromService::Missing,
            (Ownership::Local | Ownership::External { .. }, Some(id)) => {
                FromService::Unasked(id.clone())
            }
            (Ownership::Local | Ownership::External { .. }, None) => FromService::Nothing,
        }
    }

    /// A service that keeps the conversation has what it was sent, and what it says now.
    pub(in crate::run::driver) fn heard_by(&mut self, service: &FromService) {
        let kept = match service {
            FromService::Kept(_) => true,
            FromService::Unasked(_) => self.plan.policy.on_service_id.clears(),
            FromService::Nothing | FromService::Missing => false,
        };
        if kept {
            self.prompt.become_increments();
        }
    }

    pub(in crate::run::driver) async fn adopt_service(
        &mut self,
        service: FromService,
    ) -> Result<(), DriverError> {
        let abilities = self.plan.client.abilities();
        let upstream = abilities.upstream.clone();
        let id = match service {
            FromService::Nothing => return Ok(()),
            FromService::Kept(id) => id,
            FromService::Missing => {
                return Err(DriverError::Run(RunError::NoServiceId { upstream }));
            }
            FromService::Unasked(id) => {
                let how = self.plan.policy.on_service_id;
                // One that always keeps it was spoken of before the first call.
                if abilities.stores_history != StoresHistory::Always && !self.plan.warned {
                    conflict(how, abilities, self.run).map_err(DriverError::Run)?;
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
            agent: self.agent.sub_agent.clone(),
            id,
        };
        // Results that came at once were not sent.
        let sent = self.said.len() - usize::from(self.trailing);
        let has = self.said[..sent].last().and_then(|last| last.id.as_ref());
        self.owner.kept_as(service, has, &mut self.state);
        Ok(())
    }

    /// The thread is the service's from now on; what it said is with it.
    async fn hand_over(&mut self, upstream: &str) -> Result<(), DriverError> {
        let mut settings = self.job.thread.settings();
        settings.owner = Owner::Service {
            upstream: upstream.to_owned(),
        };
        self.job.thread.write_settings(settings).await?;
        Ok(())
    }

    /// Give a store of the application what is published next: what was said up to there.
    pub(in crate::run::driver) async fn append_external(
        &mut self,
        until: usize,
    ) -> Result<(), DriverError> {
        let Ownership::External {
            store,
            key,
            appended,
        } = &mut self.owner
        else {
            return Ok(());
        };
        if *appended >= until {
            return Ok(());
        }
        let said = self.said[*appended..until].iter();
        let messages: Vec<Message> = said.map(|message| Message::clone(message)).collect();
        // The same however often it is tried: the run, and where in it.
        let idempotency = format!("{}.{appended}", self.run);
        let given = store.append(key, &messages, &idempotency).await;
        match given {
            Ok(None) => {}
            Ok(Some(new)) => {
                self.state.set_provider(KEY, Some(new.clone()));
                *key = new;
            }
            Err(source) => return Err(DriverError::Wait(RunError::MessageStore { source })),
        }
        *appended = until;
        Ok(())
    }

    /// Whether the model call that just ended is to be published at once. What a store of the
    /// application has must be in the journal first, and a step is written with its node in one: so
    /// there the history moves with the end of the run.
    pub(in crate::run::driver) fn publishes_call(&self) -> bool {
        self.recorder.mode == Persistence::PerCall && self.marked && !self.owner.is_external()
    }
}

impl crate::thread::Shared {
    /// Write what the library keeps with the thread.
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
