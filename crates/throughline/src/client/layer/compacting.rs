use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use throughline_compact::Policy;
use throughline_model::{Message, Response};
use throughline_wire::Loss;

use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, HistoryOwner, Layer,
    ModelList, StoredConversations, TokenCounter,
};
use crate::prompt::{Compacted, PromptRequest, RunOnly};

/// A layer that compacts long tool histories, for applications that store their conversations
/// themselves. An [`Agent`](crate::Agent) does the same, and stores its epochs with the thread.
///
/// Conversations are recognised by their beginning: a request whose messages start with those of an
/// earlier request continues with its epoch, so that the vendor's prompt cache keeps hitting. The
/// least recently used conversations are forgotten, and planned again when needed.
///
/// ```
/// use throughline::compact::Policy;
/// use throughline::client::{ClientExt, Compacts};
/// use throughline::Demo;
///
/// let client = Demo::new().layer(Compacts::new(Policy::with_budget(32_000)));
/// # let _ = client;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Compacts {
    policy: Policy,
}

impl Compacts {
    /// A layer with a policy.
    pub fn new(policy: Policy) -> Self {
        Self { policy }
    }
}

/// How many conversations are remembered.
const REMEMBERED: usize = 64;

impl Layer for Compacts {
    fn around(self, inner: Arc<dyn ChatClient>) -> Arc<dyn ChatClient> {
        Arc::new(Compacting {
            inner,
            policy: self.policy,
            known: Mutex::default(),
        })
    }
}

struct Compacting {
    inner: Arc<dyn ChatClient>,
    policy: Policy,
    /// The most recently used last.
    known: Mutex<Vec<Compacted>>,
}

impl Compacting {
    /// The conversation of a request, as it is sent.
    fn compacted(&self, request: &ChatRequest<'_>) -> Result<Option<Compacted>, ClientError> {
        if let HistoryOwner::Service { .. } = request.history_owner {
            // The service has the older messages; these are only the new ones.
            return Ok(None);
        }
        let messages = request.view.messages();
        let mut compacted = match self.take(messages) {
            Some(known) => known,
            None => Compacted::new(&self.policy, Vec::new(), None, [].iter()),
        };
        compacted.feed(messages.iter());
        let abilities = self.inner.abilities();
        let model = request.model.or(abilities.model.as_deref());
        let planned = compacted.plan(PromptRequest {
            upstream: &abilities.upstream,
            model: model.unwrap_or_default(),
            overhead: request.overhead(),
            run_only: RunOnly::default(),
        });
        planned.map_err(|error| {
            let upstream = &abilities.upstream;
            ClientError::new(ErrorKind::TooLong, upstream, error.to_string()).with_source(error)
        })?;
        compacted.show(RunOnly::default());
        Ok(Some(compacted))
    }

    /// The longest remembered conversation that these messages continue.
    fn take(&self, messages: &[Arc<Message>]) -> Option<Compacted> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = known.iter().enumerate();
        let fitting = fitting.filter(|(_, one)| one.begins(messages));
        let (place, _) = fitting.max_by_key(|(_, one)| one.fed())?;
        Some(known.remove(place))
    }

    fn keep(&self, compacted: Option<Compacted>) {
        let Some(compacted) = compacted else {
            return;
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(compacted);
        if known.len() > REMEMBERED {
            known.remove(0);
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatClient for Compacting {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    fn unsupported(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        self.inner.unsupported(request)
    }

    fn conversations(&self) -> Option<&dyn StoredConversations> {
        self.inner.conversations()
    }

    fn models(&self) -> Option<&dyn ModelList> {
        self.inner.models()
    }

    fn token_counter(&self) -> Option<&dyn TokenCounter> {
        self.inner.token_counter()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut compacted = self.compacted(request)?;
        let answer = match &compacted {
            Some(compacted) => {
                let less = ChatRequest {
                    view: compacted.view(),
                    ..*request
                };
                self.inner.respond(&less).await
            }
            None => self.inner.respond(request).await,
        };
        let billed = answer
            .as_ref()
            .ok()
            .and_then(|one| one.usage.as_ref()?.input);
        if let (Some(compacted), Some(tokens)) = (&mut compacted, billed) {
            let abilities = self.inner.abilities();
            let model = request.model.or(abilities.model.as_deref());
            compacted.billed(&abilities.upstream, model.unwrap_or_default(), tokens);
        }
        self.keep(compacted);
        answer
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let compacted = self.compacted(request)?;
        let events = match &compacted {
            Some(compacted) => {
                let less = ChatRequest {
                    view: compacted.view(),
                    ..*request
                };
                self.inner.stream(&less).await
            }
            None => self.inner.stream(request).await,
        };
        self.keep(compacted);
        events
    }
}
