//! `POST /v1/responses`: begin a run and answer the request with it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Response};
use throughline::agent::{ExpectedHead, RunEnd};
use throughline::client::Reservation;
use throughline_store::{Idempotency, RunId, TenantScope};
use tokio::sync::OwnedSemaphorePermit;

use super::retry::{self, FailedRun, Retry};
use super::socket::SocketChain;
use super::start::Started;
use super::stored_response::StoredResponse;
use super::wire::CreateRequest;
use super::{errors, get, sse};
use crate::api::ignored;
use crate::api::openai::conversation_head;
use crate::api::openai::delivered_body::delivered;
use crate::api::openai::items::{InputItems, with_status};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{Answered, DeliveryProbe, Payload};
use crate::service::{
    Answer, ClientConnection, Delivery, Pieces, Reader, Unfinished, begun_at, body_of, key,
};
use crate::trials::planted;

/// `POST /v1/responses`. In a box: layers move what they are given, and this is large.
pub(super) fn create(
    State(app): State<App>,
    caller: Caller,
    probe: Option<Extension<DeliveryProbe>>,
    headers: HeaderMap,
    payload: Payload,
) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send {
    Box::pin(read_and_run(app, caller, probe, headers, payload))
}

async fn read_and_run(
    app: App,
    caller: Caller,
    probe: Option<Extension<DeliveryProbe>>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let request = CreateRequest::parse(payload.bytes())?;
    let retry = Retry::of(&headers, payload.bytes())?;
    let memory = payload.into_memory();
    if matches!(retry, Retry::Keyed(..)) && !request.store() && !planted("server-key-unstored") {
        return Err(ApiError::invalid(
            "An Idempotency-Key needs `store: true`: without it nothing is kept that a second \
             request could find. Send one of the two.",
        )
        .code("idempotency_requires_store")
        .param("store")
        .retry(false));
    }
    check_conversation(&request)?;
    let expected_head = conversation_head::expected_head(&headers)?;
    if expected_head != ExpectedHead::Any && request.conversation().is_none() {
        return Err(ApiError::invalid(
            "If-Match compares the head of a conversation, and this request names none. Send \
             'conversation', or leave the header out.",
        )
        .retry(false));
    }
    let memory = Arc::new(memory);
    let mut call = CreateCall::new(&app, &caller.scope, request, memory)?;
    call.connection = probe.map(|Extension(probe)| Arc::new(probe) as Arc<dyn ClientConnection>);
    call.expected_head = expected_head;
    let answered = match retry {
        Retry::Keyed(key) => {
            let run = app.store.ids().run();
            call.begin(run, Some((key, None))).await
        }
        Retry::WithoutKey(digest) => call.retry_without_key(digest).await,
        Retry::FirstAttempt(digest) => call.begin_first_attempt(digest).await,
        Retry::None => call.begin(app.store.ids().run(), None).await,
    };
    let mut response = match answered {
        Ok(response) => response,
        Err(error) => return Err(call.describe_busy(error).await),
    };
    call.add_entity_tag(&mut response).await;
    ignored::set_header(&mut response, call.ignored);
    Ok(response)
}

/// Answer a message of a WebSocket, with events.
pub(super) async fn answer_message(
    app: &App,
    scope: &TenantScope,
    (request, memory): (CreateRequest, Reservation),
    chain: &Arc<SocketChain>,
) -> Result<Response<Body>, ApiError> {
    check_conversation(&request)?;
    let mut call = CreateCall::new(app, scope, request, Arc::new(memory))?;
    call.chain = Some(Arc::clone(chain));
    let run = app.store.ids().run();
    match Box::pin(call.begin(run, None)).await {
        Ok(response) => Ok(response),
        Err(error) => Err(call.describe_busy(error).await),
    }
}

/// What a conversation needs.
fn check_conversation(request: &CreateRequest) -> Result<(), ApiError> {
    match request.conversation() {
        Some(_) if !request.store() => Err(ApiError::invalid(
            "A response of a conversation is kept: leave 'store' out, or 'conversation'.",
        )
        .code("conversation_requires_store")
        .param("store")
        .retry(false)),
        _ => Ok(()),
    }
}

/// A create request that was read, while it is being answered.
pub(super) struct CreateCall<'a> {
    pub(super) app: &'a App,
    pub(super) scope: &'a TenantScope,
    pub(super) request: Arc<CreateRequest>,
    /// Items of the client, until a run has stored them.
    pub(super) input: InputItems,
    /// Whether the request is answered with the compacted conversation, without a model call.
    pub(super) compacts: bool,
    pub(super) connection: Option<Arc<dyn ClientConnection>>,
    /// Memory reserved for the request, until its run has ended.
    pub(super) memory: Arc<Reservation>,
    /// What the head of the conversation must be.
    pub(super) expected_head: ExpectedHead,
    /// What the WebSocket knows, if the request came over one.
    pub(super) chain: Option<Arc<SocketChain>>,
    /// Members that are not carried out, for a header of the answer.
    pub(super) ignored: Option<String>,
}

impl<'a> CreateCall<'a> {
    fn new(
        app: &'a App,
        scope: &'a TenantScope,
        mut request: CreateRequest,
        memory: Arc<Reservation>,
    ) -> Result<Self, ApiError> {
        let mut input = request.take_input();
        let compacts = input.take_trigger()?;
        Ok(Self {
            app,
            scope,
            input,
            compacts,
            request: Arc::new(request),
            memory,
            connection: None,
            expected_head: ExpectedHead::Any,
            chain: None,
            ignored: None,
        })
    }

    /// An error, with what a client needs if the conversation is busy.
    async fn describe_busy(&self, error: ApiError) -> ApiError {
        let id = self.request.conversation();
        conversation_head::describe_busy(self.app, self.scope, id, error).await
    }

    /// Name the head of the conversation after a response that moved it, in the header of a whole answer.
    async fn add_entity_tag(&self, response: &mut Response<Body>) {
        let run = response
            .extensions()
            .get::<Answered>()
            .map(|answered| answered.0);
        let (Some(run), Some(_), false) = (run, self.request.conversation(), self.request.stream())
        else {
            return;
        };
        // A header that cannot be had is left out: the response is committed.
        if let Ok(run) = self.app.store.run(self.scope, run).await
            && let Some(head) = run.published.filter(|_| run.leased)
        {
            conversation_head::set_entity_tag(response, Some(head));
        }
    }

    /// From a client that may send it again without a key.
    async fn begin_first_attempt(&mut self, digest: [u8; 16]) -> Result<Response<Body>, ApiError> {
        let run = self.app.store.ids().run();
        let key = Idempotency {
            key: key(&digest, run),
            request: digest,
        };
        self.begin(run, Some((key, None))).await
    }

    /// From a client that sends it again without a key.
    async fn retry_without_key(&mut self, digest: [u8; 16]) -> Result<Response<Body>, ApiError> {
        let (app, scope) = (self.app, self.scope);
        let now = begun_at(app.store.ids().run());
        let found = app.runs.repeats.find(scope, &digest, now).await;
        let found = found.map_err(|error| errors::store(&error))?;
        let Some((run, delivery)) = found else {
            return self.begin_first_attempt(digest).await;
        };
        let live = app.runs.find(run).await;
        if live.is_none()
            && let Some((key, failed)) = retry::key_after(app, scope, (run, digest)).await?
        {
            let next = app.store.ids().run();
            return self.begin(next, Some((key, Some(failed)))).await;
        }
        let delivery = delivery.next_attempt(self.connection.clone());
        if self.answers_at_once() {
            return self.in_background(run, delivery).await;
        }
        if let Some(live) = live {
            return match (self.request.stream(), live.streamed) {
                (true, true) => self.streamed(live.reader(0), app.stream()?, delivery),
                _ => self.answered(live.over().await, (run, delivery)).await,
            };
        }
        self.stored(run, delivery).await
    }

    /// The answer of a run that this process does not work on.
    async fn stored(&mut self, run: RunId, delivery: Delivery) -> Result<Response<Body>, ApiError> {
        let id = errors::response_id(run);
        let stored = StoredResponse::read(self.app, self.scope, &id).await?;
        self.ignored = ignored::header(&stored.context.ignored);
        if self.request.stream() {
            return get::streaming(self.app, self.scope, &id, None, delivery).await;
        }
        if !stored.journal.run.state.is_settled() {
            return Err(errors::in_progress(run));
        }
        let unfinished = stored.journal.steps.is_empty();
        let end = RunEnd::of(&stored.journal.run).filter(|_| unfinished);
        if let Some(error) = end.and_then(|end| errors::failed_before(&end, run)) {
            // The same answer as the first time.
            return Err(error);
        }
        let response = stored.response(self.app, self.scope).await?;
        let pieces = Pieces::One(response.get().to_owned().into());
        Ok(answered(&pieces, (run, delivery)))
    }

    /// The answer of a run that this process works on, or worked on.
    async fn answered(
        &mut self,
        answer: Answer,
        (run, delivery): (RunId, Delivery),
    ) -> Result<Response<Body>, ApiError> {
        match answer {
            Answer::Response(body) => Ok(answered(&body, (run, delivery))),
            Answer::Error(error) => Err(error),
            Answer::Repeated(run) => Err(errors::in_progress(run)),
            Answer::Unfinished(Unfinished::NotStored) => Err(errors::outcome_unknown(run)),
            Answer::Unfinished(Unfinished::TakenOver) => {
                get::wait_until_settled(self.app, self.scope, run).await?;
                self.stored(run, delivery).await
            }
        }
    }

    /// Begin a run under a key, if there is one, after a run that failed under it, and read it.
    async fn begin(
        &mut self,
        run: RunId,
        key: Option<(Idempotency, Option<FailedRun>)>,
    ) -> Result<Response<Body>, ApiError> {
        let app = self.app;
        let place = match self.request.stream() {
            true => Some(app.stream()?),
            false => None,
        };
        let (key, failed) = match key {
            Some((key, failed)) if self.request.store() => (Some(key), failed),
            _ => (None, None),
        };
        let digest = key.as_ref().map(|key| key.request);
        // The key of a request without one of the client's is made of its body.
        let body = key.as_ref().and_then(|key| body_of(&key.key));
        let started = self.start(run, key, failed).await?;
        if let (Some(body), Some(failed)) = (&body, failed) {
            app.runs.repeats.superseded(self.scope, body, failed.run);
        }
        match started {
            Started::New(live, mut driven) => {
                let delivery = match body {
                    Some(body) => app.runs.repeats.begun(self.scope, body, run),
                    None => Delivery::default(),
                };
                let delivery = delivery.next_attempt(self.connection.clone());
                if self.answers_at_once() {
                    driven.detach();
                    return self.in_background(run, delivery).await;
                }
                match place {
                    Some(place) => {
                        // The run must not go at the speed of its reader.
                        driven.detach();
                        self.streamed(live.requester(), place, delivery)
                    }
                    None => {
                        let answer = driven.drive_until(|| live.answer()).await;
                        let answer = answer.unwrap_or(Answer::Unfinished(Unfinished::NotStored));
                        self.answered(answer, (run, delivery)).await
                    }
                }
            }
            Started::Existing(run) => {
                drop(place);
                if let Some(digest) = digest
                    && let Some((key, failed)) =
                        retry::key_after(app, self.scope, (run, digest)).await?
                {
                    let run = app.store.ids().run();
                    return Box::pin(self.begin(run, Some((key, Some(failed))))).await;
                }
                if self.answers_at_once() {
                    return self.in_background(run, Delivery::default()).await;
                }
                let live = app.runs.find(run).await;
                match (live, self.request.stream()) {
                    (Some(live), true) if live.streamed => {
                        self.streamed(live.reader(0), app.stream()?, Delivery::default())
                    }
                    (Some(_), _) => Err(errors::in_progress(run)),
                    (None, _) => self.stored(run, Delivery::default()).await,
                }
            }
        }
    }

    /// Whether the request is answered before its run has ended.
    fn answers_at_once(&self) -> bool {
        self.request.background() && !self.request.stream()
    }

    /// A response as it stands, while its run goes on without the request.
    async fn in_background(
        &mut self,
        run: RunId,
        delivery: Delivery,
    ) -> Result<Response<Body>, ApiError> {
        let id = errors::response_id(run);
        let stored = StoredResponse::read(self.app, self.scope, &id).await?;
        self.ignored = ignored::header(&stored.context.ignored);
        let mut response = stored.response(self.app, self.scope).await?;
        if !stored.journal.run.state.is_settled() {
            response = with_status(&response, "queued");
        }
        let pieces = Pieces::One(response.get().to_owned().into());
        Ok(answered(&pieces, (run, delivery)))
    }

    fn streamed(
        &self,
        reader: Reader,
        place: OwnedSemaphorePermit,
        delivery: Delivery,
    ) -> Result<Response<Body>, ApiError> {
        let run = reader.run();
        let batches = get::live_events(self.app, self.scope, reader);
        let mut response = sse::events(batches, self.app, (place, delivery));
        response.extensions_mut().insert(Answered(run));
        Ok(response)
    }
}

/// The answer of a run that is over.
fn answered(body: &Pieces, (run, delivery): (RunId, Delivery)) -> Response<Body> {
    let mut response = Response::new(delivered(body, delivery));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.extensions_mut().insert(Answered(run));
    response
}
