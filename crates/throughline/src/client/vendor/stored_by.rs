//! Service-owned conversations: what a request continues, and the id under which its answer is
//! stored.

use std::borrow::Cow;
use std::collections::BTreeSet;

use throughline_model::json::Value;
use throughline_model::{Form, Message, Pairing, Settings, Vendor, Wire};
use throughline_wire::render::{Chain, ChainAt, Target};
use throughline_wire::validate::Chained;

use super::VendorClient;
use super::dialect::StoredForm;
use crate::client::{ChatRequest, ClientError, HistoryOwner, StoresHistory};

/// Members of a body that name the continued conversation.
const NAMES: [&str; 3] = [
    "previous_response_id",
    "conversation",
    "previous_interaction_id",
];

/// Which side stores the conversation of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoredBy {
    /// Our store.
    Us,
    /// The service, which continues from this.
    Service(Option<ChainAt>),
}

impl VendorClient {
    /// Which side stores the conversation, if the service supports what the request asks for.
    pub(super) fn stored_by(&self, request: &ChatRequest<'_>) -> Result<StoredBy, ClientError> {
        let stored_by = match request.history_owner {
            HistoryOwner::Caller => StoredBy::Us,
            HistoryOwner::Service { id } => StoredBy::Service(self.continued(id)?),
        };
        self.check_agreement(&stored_by, request.settings)?;
        Ok(stored_by)
    }

    /// The service's reference to the conversation.
    fn continued(&self, id: Option<&str>) -> Result<Option<ChainAt>, ClientError> {
        let Some(form) = self.stored_form() else {
            return Err(self.setup(
                "this service keeps no conversations: keep the thread's history here, or ask a \
                 service that stores (OpenAI Responses, Foundry, Gemini Interactions)",
            ));
        };
        match id {
            Some("") => Err(self.setup("an empty id names no conversation at the service")),
            Some(id) => Ok(Some(chain_at(form, id))),
            None => Ok(None),
        }
    }

    /// How the service is asked about what it stores, if it stores anything.
    pub(super) fn stored_form(&self) -> Option<StoredForm> {
        let stores = self.abilities.stores_history != StoresHistory::Never;
        self.dialect.stored.filter(|_| stores)
    }

    /// Checks that the caller's own members agree with the request. They override what we write, so
    /// another id would replace the thread's.
    fn check_agreement(
        &self,
        stored_by: &StoredBy,
        settings: &Settings,
    ) -> Result<(), ClientError> {
        let chained = matches!(
            self.dialect.wire,
            Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions
        );
        let Some(extra) = settings.extra.as_ref().filter(|_| chained) else {
            return Ok(());
        };
        let extra = extra.value();
        let expected = match stored_by {
            StoredBy::Us | StoredBy::Service(None) => None,
            StoredBy::Service(Some(ChainAt::Response(id) | ChainAt::Conversation(id))) => {
                Some(&**id)
            }
        };
        for name in NAMES {
            let Some(value) = extra.get(name) else {
                continue;
            };
            let found = value.get("id").unwrap_or(value).as_str();
            if found.as_deref() != expected {
                return Err(self.setup(&format!(
                    "`{name}` among the extra members is not what the thread is kept under: take \
                     it out, and hand the thread over to the service instead"
                )));
            }
        }
        let stores = extra.get("store").and_then(Value::as_bool);
        if stores == Some(false) && *stored_by != StoredBy::Us {
            return Err(self.setup(
                "`store` is false among the extra members, but the service is to keep the \
                 conversation: take it out, or keep the thread's history here",
            ));
        }
        Ok(())
    }
}

/// What an id names at the service.
pub(super) fn chain_at(form: StoredForm, id: &str) -> ChainAt {
    match form {
        StoredForm::Responses if id.starts_with("conv_") => ChainAt::Conversation(id.to_owned()),
        StoredForm::Responses | StoredForm::Interactions => ChainAt::Response(id.to_owned()),
    }
}

impl StoredBy {
    /// The targets for which the messages are rendered and the body is written.
    ///
    /// They differ in the first request of a conversation: the service is to store it, but has
    /// nothing yet to which messages could refer.
    pub(super) fn targets<'t>(
        &self,
        plain: Cow<'t, Target>,
        messages: &[impl AsRef<Message>],
    ) -> (Cow<'t, Target>, Cow<'t, Target>) {
        let at = match self {
            Self::Us => return (plain.clone(), plain),
            Self::Service(at) => at,
        };
        let chain = at.clone().map(|at| Chain {
            at,
            calls: Chained {
                open: answered_from_outside(messages),
                answered: BTreeSet::new(),
            },
        });
        let body = Target {
            stored: true,
            chain,
            ..plain.into_owned()
        };
        let said = Target {
            stored: at.is_some(),
            ..body.clone()
        };
        (Cow::Owned(said), Cow::Owned(body))
    }

    /// The id under which the service stores the conversation after an answer: `said` by the body,
    /// or else derived from the request.
    pub(super) fn service(
        &self,
        said: Option<String>,
        id: Option<&str>,
        vendor: Option<&Vendor>,
    ) -> Option<String> {
        let at = match self {
            Self::Us => return said,
            Self::Service(at) => at,
        };
        if says_stored(vendor) == Some(false) {
            return None;
        }
        match at {
            // The service stores each response, too, but the conversation's id is the one to
            // continue.
            Some(ChainAt::Conversation(conversation)) => {
                let other = said.filter(|said| Some(&**said) != id);
                Some(other.unwrap_or_else(|| conversation.clone()))
            }
            Some(ChainAt::Response(_)) | None => said.or_else(|| id.map(str::to_owned)),
        }
    }
}

/// Results in these messages whose calls are not in them, because the service has the calls.
fn answered_from_outside(messages: &[impl AsRef<Message>]) -> BTreeSet<String> {
    let mut called = BTreeSet::new();
    let mut open = BTreeSet::new();
    let contents = messages.iter().flat_map(|one| &one.as_ref().contents);
    for content in contents {
        if let Some(call) = content.as_tool_call() {
            called.insert(call.call.value());
        }
        if let Some(result) = content.as_tool_result()
            && result.pairing() == Pairing::Answers
            && !called.contains(result.call().value())
        {
            open.insert(result.call().value().to_owned());
        }
    }
    open
}

/// What a body says about whether it was stored.
pub(super) fn says_stored(vendor: Option<&Vendor>) -> Option<bool> {
    let Some(Form::Item(body)) = vendor.map(|vendor| &vendor.form) else {
        return None;
    };
    body.value().get("store").and_then(Value::as_bool)
}
