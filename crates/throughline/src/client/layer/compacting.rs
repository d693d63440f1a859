use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use throughline_compact::Policy;
use throughline_model::{Message, Response};
use throughline_wire::Loss;

use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, HistoryOwner, Layer,
};
use crate::prompt::{Between, Compacted, PromptRequest};

/// A layer that sends a client less of a long tool history, for applications that keep their
/// conversations themselves. An [`Agent`](crate::Agent) does the same by itself, and keeps what it
/// decided with the thread.
///
/// Conversations are known by how they begin: a request whose messages start with those of an
/// earlier one goes on with its epoch, so that what is sent starts with what was sent before. What
/// was not used for longest is forgotten, and made again when it is needed.
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
    /// By a policy.
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
    /// Used last, last.
    known: Mutex<Vec<Compacted>>,
}

impl Compacting {
    /// The conversation of a request, as it is to be sent.
    fn compacted(&self, request: &ChatRequest<'_>) -> Result<Option<Compacted>, ClientError> {
        if let HistoryOwner::Service { .. } = request.history_owner {
            // The service has what is older; this is only what is new.
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
        });
        planned.map_err(|error| {
            let upstream = &abilities.upstream;
            ClientError::new(ErrorKind::TooLong, upstream, error.to_string()).with_source(error)
        })?;
        compacted.show(Between::default());
        Ok(Some(compacted))
    }

    /// The longest known conversation that these messages go on with.
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
