//! Who keeps a conversation: what a request continues, and under which id its answer is kept.

use std::borrow::Cow;
use std::collections::BTreeSet;

use throughline_model::json::Value;
use throughline_model::{Form, Message, Pairing, Settings, Vendor, Wire};
use throughline_wire::render::{Chain, ChainAt, Target};
use throughline_wire::validate::Chained;

use super::VendorClient;
use crate::client::{ChatRequest, ClientError, HistoryOwner, StoresHistory};

/// Members of a body that name what it continues.
const NAMES: [&str; 3] = [
    "previous_response_id",
    "conversation",
    "previous_interaction_id",
];

/// Who keeps the conversation of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// We do.
    Here,
    /// The service does, from what it has on.
    There(Option<ChainAt>),
}

impl VendorClient {
    /// Who keeps the conversation, if the service can do what the request wants.
    pub(super) fn keeping(&self, request: &ChatRequest<'_>) -> Result<Keeping, ClientError> {
        let keeping = match request.history_owner {
            HistoryOwner::Caller => Keeping::Here,
            HistoryOwner::Service { id } => Keeping::There(self.continued(id)?),
        };
        self.agreed(&keeping, request.settings)?;
        Ok(keeping)
    }

    /// What the service knows the conversation by.
    fn continued(&self, id: Option<&str>) -> Result<Option<ChainAt>, ClientError> {
        let stores = self.abilities.stores_history != StoresHistory::Never;
        let named = |id: &str| match self.dialect.wire {
            Wire::OpenAiResponses | Wire::Foundry if id.starts_with("conv_") => {
                Some(ChainAt::Conversation(id.to_owned()))
            }
            Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions => {
                Some(ChainAt::Response(id.to_owned()))
            }
            Wire::OpenAiChat | Wire::Anthropic | Wire::Gemini | Wire::Other(_) => None,
        };
        // Whether the format can say it at all does not depend on the id.
        if !stores || named("").is_none() {
            return Err(self.setup(
                "this service keeps no conversations: keep the thread's history here, or ask a \
                 service that stores (OpenAI Responses, Foundry, Gemini Interactions)",
            ));
        }
        match id {
            Some("") => Err(self.setup("an empty id names no conversation at the service")),
            Some(id) => Ok(named(id)),
            None => Ok(None),
        }
    }

    /// Whether the caller's own members say the same as the request. They win over what we write,
    /// so another id would go out in the place of the thread's.
    fn agreed(&self, keeping: &Keeping, settings: &Settings) -> Result<(), ClientError> {
        let chained = matches!(
            self.dialect.wire,
            Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions
        );
        let Some(extra) = settings.extra.as_ref().filter(|_| chained) else {
            return Ok(());
        };
        let extra = extra.value();
        let expected = match keeping {
            Keeping::Here | Keeping::There(None) => None,
            Keeping::There(Some(ChainAt::Response(id) | ChainAt::Conversation(id))) => Some(&**id),
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
        if stores == Some(false) && *keeping != Keeping::Here {
            return Err(self.setup(
                "`store` is false among the extra members, but the service is to keep the \
                 conversation: take it out, or keep the thread's history here",
            ));
        }
        Ok(())
    }
}

impl Keeping {
    /// Whom the messages are rendered for, and whom the body is written for.
    ///
    /// They differ in the first request of a conversation: the service is to keep what it hears,
    /// but has nothing yet that the messages could refer to.
    pub(super) fn targets<'t>(
        &self,
        plain: Cow<'t, Target>,
        messages: &[impl AsRef<Message>],
    ) -> (Cow<'t, Target>, Cow<'t, Target>) {
        let at = match self {
            Self::Here => return (plain.clone(), plain),
            Self::There(at) => at,
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

    /// The id under which the service keeps the conversation after an answer: `said` by the body,
    /// or what follows from the request where the body says nothing.
    pub(super) fn service(
        &self,
        said: Option<String>,
        id: Option<&str>,
        vendor: Option<&Vendor>,
    ) -> Option<String> {
        let at = match self {
            Self::Here => return said,
            Self::There(at) => at,
        };
        if refuses_to_store(vendor) {
            return None;
        }
        match at {
            // A response of a conversation is kept too, but it is the conversation that goes on.
            Some(ChainAt::Conversation(conversation)) => {
                let other = said.filter(|said| Some(&**said) != id);
                Some(other.unwrap_or_else(|| conversation.clone()))
            }
            Some(ChainAt::Response(_)) | None => said.or_else(|| id.map(str::to_owned)),
        }
    }
}

/// Results in these messages whose calls are not in them: the service has the calls.
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

/// Whether a body says that it was not kept.
fn refuses_to_store(vendor: Option<&Vendor>) -> bool {
    let Some(Form::Item(body)) = vendor.map(|vendor| &vendor.form) else {
        return false;
    };
    body.value().get("store").and_then(Value::as_bool) == Some(false)
}
