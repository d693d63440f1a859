//! `POST /v1/responses`: a run begins, and whoever asked for it reads it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response};
use futures_util::stream;
use throughline::order::Reply;
use throughline::{
    Awaits, Compaction, Owner, Pending, Reservation, Run, RunEnd, RunOptions, Thread, Threads,
};
use throughline_model::{Message, Source, ToolCall, ToolChoice};
use throughline_store::{ApprovalId, NewThread, RunId, TenantScope};
use tokio::sync::OwnedSemaphorePermit;

use super::asked::call_at;
use super::host::Host;
use super::projection::ResponseProjection;
use super::recipe::{Recipe, recipe};
use super::retry::{self, Key};
use super::said::{Said, said};
use super::tale::{Tale, dialect};
use super::trigger::{Whole, answer_in_short};
use super::unsupported::{header, judged};
use super::wire::{CreateRequest, RequestTool, Scene, member_of};
use super::{fail, get, sse};
use crate::api::openai::items::{InputItems, KnownCall};
use crate::app::App;
use crate::auth::Caller;
use crate::config::Keeping;
use crate::error::ApiError;
use crate::net::{Answered, Payload, Way};
use crate::service::{
    Answer, Attended, ClientConnection, Delivery, Left, Live, Log, Pieces, Reader, RunMemory,
    Stage, begun_at, key, work,
};
use crate::trials::planted;

/// `POST /v1/responses`. In a box: layers move what they are given, and this is large.
pub(super) fn create(
    State(app): State<App>,
    caller: Caller,
    way: Option<Extension<Way>>,
    headers: HeaderMap,
    payload: Payload,
) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send {
    Box::pin(created(app, caller, way, headers, payload))
}

async fn created(
    app: App,
    caller: Caller,
    way: Option<Extension<Way>>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let mut request = CreateRequest::parse(payload.bytes())?;
    let mark = Mark::of(&headers, payload.bytes())?;
    let memory = payload.into_memory();
    if matches!(mark, Mark::Named(..)) && !request.store() && !planted("server-key-unstored") {
        return Err(ApiError::invalid(
            "An Idempotency-Key needs `store: true`: without it nothing is kept that a second \
             request could find. Send one of the two.",
        )
        .code("idempotency_requires_store")
        .param("store")
        .retry(false));
    }
    if headers.contains_key("if-match") {
        // It guards the head of a conversation, and a chain has none that could move.
        return Err(ApiError::not_implemented("If-Match"));
    }
    let mut input = request.take_input();
    let in_short = input.take_trigger()?;
    let mut asked = Asked {
        app: &app,
        scope: &caller.scope,
        connection: way.map(|Extension(way)| Arc::new(way) as Arc<dyn ClientConnection>),
        input,
        in_short,
        request: Arc::new(request),
        memory: Arc::new(memory),
        ignored: None,
    };
    let mut response = match mark {
        Mark::Named(name, digest) => {
            let run = app.store.ids().run();
            asked.begin(run, Some(Key::new(name, digest))).await
        }
        Mark::Again(digest) => asked.again(digest).await,
        Mark::First(digest) => asked.marked(digest).await,
        Mark::None => asked.begin(app.store.ids().run(), None).await,
    }?;
    if let Some(Ok(ignored)) = asked.ignored.map(HeaderValue::try_from) {
        response.headers_mut().insert(IGNORED, ignored);
    }
    Ok(response)
}

/// The header that names what of a request is not carried out.
const IGNORED: HeaderName = HeaderName::from_static("x-throughline-ignored");

/// What a request says of its coming more than once, with the digest of its bytes: the same request
/// has the same.
enum Mark {
    /// It has a key of the client's.
    Named(String, [u8; 16]),
    /// It is sent again, without a key.
    Again([u8; 16]),
    /// It may be sent again, without a key.
    First([u8; 16]),
    /// Nothing.
    None,
}

impl Mark {
    fn of(headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiError> {
        let attempts = header_text(headers, "x-stainless-retry-count");
        let attempts = attempts.and_then(|count| count.parse::<u64>().ok());
        Ok(match (key_name(headers)?, attempts) {
            (Some(name), _) => Self::Named(name, digest(body)),
            (None, Some(1..)) => Self::Again(digest(body)),
            (None, Some(0)) => Self::First(digest(body)),
            (None, None) => Self::None,
        })
    }
}

/// The name that a client's key has in the store. Any bytes are a key: those that are no plain text
/// are spelt in hexadecimal digits, under a name that no text has.
fn key_name(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(key) = values.next() else {
        return Ok(None);
    };
    let wrong = |text: &str| Err(ApiError::invalid(text).code("invalid_value").retry(false));
    if values.next().is_some() {
        return wrong("There is more than one Idempotency-Key header. Send one.");
    }
    if key.len() > 256 {
        return wrong("The Idempotency-Key is longer than 256 bytes.");
    }
    Ok(match key.to_str() {
        Ok("") => None,
        Ok(text) => Some(format!("key:{text}")),
        Err(_) => {
            let digits = key.as_bytes().iter().map(|byte| format!("{byte:02x}"));
            Some(format!("bytes:{}", digits.collect::<String>()))
        }
    })
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let text = headers.get(name)?.to_str().ok()?;
    (!text.is_empty()).then_some(text)
}

/// What is asked for: the very bytes.
fn digest(body: &[u8]) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(body).as_bytes()[..16]);
    digest
}

/// A request that was read.
struct Asked<'a> {
    app: &'a App,
    scope: &'a TenantScope,
    request: Arc<CreateRequest>,
    /// What the client says, until a run has begun with it.
    input: InputItems,
    /// Whether the conversation is put in short, and no model is asked.
    in_short: bool,
    connection: Option<Arc<dyn ClientConnection>>,
    /// What the request takes of memory, as long as it or its run is at work.
    memory: Arc<Reservation>,
    /// What of it is not carried out, for the header of its answer.
    ignored: Option<String>,
}

/// What came of the beginning.
enum Began {
    /// Whoever asked works on it, for as long as they wait.
    Here(Arc<Live>, Attended),
    /// The same was asked before.
    Before(RunId),
}

impl Asked<'_> {
    /// From a client that may send it again without a key.
    async fn marked(&mut self, digest: [u8; 16]) -> Result<Response<Body>, ApiError> {
        let run = self.app.store.ids().run();
        let name = key(&digest, run);
        self.begin(run, Some(Key::new(name, digest))).await
    }

    /// From a client that sends it again without a key.
    async fn again(&mut self, digest: [u8; 16]) -> Result<Response<Body>, ApiError> {
        let (app, scope) = (self.app, self.scope);
        let now = begun_at(app.store.ids().run());
        let found = app.runs.repeats.find(&app.store, scope, &digest, now).await;
        let found = found.map_err(|error| fail::store(&error))?;
        let Some((run, delivery)) = found else {
            return self.marked(digest).await;
        };
        let live = app.runs.find(run);
        if live.is_none()
            && let Some(key) = retry::key_after(app, scope, (run, digest)).await?
        {
            return self.begin(app.store.ids().run(), Some(key)).await;
        }
        let delivery = delivery.by(self.connection.clone());
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
        let id = fail::response_id(run);
        let tale = Tale::read(self.app, self.scope, &id).await?;
        self.ignored = header(&tale.scene.ignored);
        if self.request.stream() {
            return get::streaming(self.app, self.scope, &id, None, delivery).await;
        }
        if !tale.journal.run.state.is_settled() {
            return Err(fail::in_progress(run));
        }
        let unfinished = tale.journal.steps.is_empty();
        let end = RunEnd::of(&tale.journal.run).filter(|_| unfinished);
        if let Some(error) = end.and_then(|end| fail::failed_before(&end, run)) {
            // The same answer as the first time.
            return Err(error);
        }
        let response = tale.response(self.app, self.scope).await?;
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
            Answer::Repeated(run) => Err(fail::in_progress(run)),
            Answer::Left(Left::NotStored) => Err(fail::outcome_unknown(run)),
            Answer::Left(Left::TakenOver) => {
                get::settled(self.app, self.scope, run).await?;
                self.stored(run, delivery).await
            }
        }
    }

    /// Begin a run, and read it.
    async fn begin(&mut self, run: RunId, key: Option<Key>) -> Result<Response<Body>, ApiError> {
        let app = self.app;
        let place = match self.request.stream() {
            true => Some(app.stream()?),
            false => None,
        };
        let key = key.filter(|_| self.request.store());
        let digest = key.as_ref().map(|key| key.digest);
        let body = key.as_ref().and_then(Key::body);
        let failed = key.as_ref().and_then(|key| key.failed);
        let began = self.started(run, key).await?;
        if let (Some(body), Some(failed)) = (&body, failed) {
            app.runs.repeats.followed(self.scope, body, failed);
        }
        match began {
            Began::Here(live, mut attended) => {
                let delivery = match body {
                    Some(body) => app.runs.repeats.begun(self.scope, body, run),
                    None => Delivery::default(),
                };
                let delivery = delivery.by(self.connection.clone());
                match place {
                    Some(place) => {
                        // Readers come and go, and the slow ones hold up nobody.
                        attended.detach();
                        self.streamed(live.asker(), place, delivery)
                    }
                    None => {
                        let answer = attended.until(|| live.answer()).await;
                        let answer = answer.unwrap_or(Answer::Left(Left::NotStored));
                        self.answered(answer, (run, delivery)).await
                    }
                }
            }
            Began::Before(run) => {
                drop(place);
                if let Some(digest) = digest
                    && let Some(key) = retry::key_after(app, self.scope, (run, digest)).await?
                {
                    let run = app.store.ids().run();
                    return Box::pin(self.begin(run, Some(key))).await;
                }
                let live = app.runs.find(run);
                match (live, self.request.stream()) {
                    (Some(live), true) if live.streamed => {
                        self.streamed(live.reader(0), app.stream()?, Delivery::default())
                    }
                    (Some(_), _) => Err(fail::in_progress(run)),
                    (None, _) => self.stored(run, Delivery::default()).await,
                }
            }
        }
    }

    /// Begin a run; it goes on by itself once nobody waits for it here.
    async fn started(&mut self, run: RunId, key: Option<Key>) -> Result<Began, ApiError> {
        let (app, request) = (self.app, Arc::clone(&self.request));
        let threads = app.runs.threads(self.scope);
        let adopts = key.as_ref().and_then(|key| key.adopts);
        let previous = match adopts {
            Some(adopts) => Some(adopts.run),
            None => self.previous()?,
        };
        if previous.is_none() && self.input.is_empty() && !request.has_prompt() {
            return Err(ApiError::invalid(
                "Missing required parameter: 'input'. Say something, or name a response to go on from \
                 in 'previous_response_id'.",
            )
            .code("missing_required_parameter")
            .param("input"));
        }
        let thread = self.thread(&threads, previous).await?;
        let listed = self.listed(previous).await?;
        let mut recipe = recipe(app, Arc::clone(&request), &self.input, &listed).await?;
        if adopts.is_some_and(|adopts| adopts.has_answer) {
            // It holds for the first model call.
            recipe.options.choice = ToolChoice::Auto;
        }
        let history = thread.snapshot();
        let mut said = match adopts {
            // What the request says is in the journal that is gone on with.
            Some(_) => Said::default(),
            None => said(app, self.scope, &self.input, &history).await?,
        };
        if !said.ignored.is_empty() {
            recipe.host.ignored.append(&mut said.ignored);
            judged(&recipe.host.ignored, app.config.server.unsupported)?;
            recipe.options.host = Some(recipe.host.to_json());
        }
        if self.in_short {
            let mut messages = history.to_vec();
            messages.extend(said.messages.iter().cloned().map(Arc::new));
            let whole = Whole {
                request: &request,
                input: &self.input,
                messages: &messages,
            };
            answer_in_short(app, self.scope, &mut recipe, &whole)?;
        }
        let thread = match request.store() {
            true => thread,
            false => unstored(&recipe, &history)?,
        };
        owned(&thread, &recipe).await?;
        if thread.follows_failed().is_some() {
            recipe.host.previous = previous;
            recipe.options.host = Some(recipe.host.to_json());
        }
        let scene = Scene {
            run,
            thread: request.store().then(|| thread.id().clone()),
            created: begun_at(run),
            previous,
            request: Arc::clone(&request),
            dialect: dialect(app),
            labels: recipe.host.labels(),
            lists: recipe.host.lists.clone(),
            known_calls: known_calls(&thread),
            ignored: recipe.host.ignored.clone(),
        };
        self.ignored = header(&recipe.host.ignored);
        for one in &recipe.host.ignored {
            app.http.ignored(member_of(&one.path));
        }
        if let Some(ignored) = &self.ignored {
            let id = fail::response_id(run);
            tracing::info!(
                response_id = id,
                ignored,
                "a request is not carried out in full"
            );
        }
        let compaction = recipe.options.compaction.take().map(|compaction| {
            let record = history.iter().map(|message| &**message);
            compaction.pinning(record.chain(&said.messages), is_summary)
        });
        let log = match compaction {
            Some(Compaction::On(_)) => Log::Always,
            Some(Compaction::Off) | None => Log::IfStreamed,
        };
        let options = RunOptions {
            compaction,
            keeps_spent: adopts.is_some(),
            run: Some(run),
            digest: key.as_ref().map(|key| key.digest),
            key: key.map(|key| key.name),
            ..recipe.options
        };
        let messages = std::mem::take(&mut said.messages);
        let asked = recipe.agent.reply_on(&thread, messages);
        let asked = self
            .replied(asked.options(&options), &said, previous, &thread)
            .await?;
        let begun = app
            .runs
            .begin(self.scope, run, request.stream(), request.store());
        let live = Arc::clone(&begun.live);
        let memory = RunMemory::new(&app.memory, Arc::clone(&self.memory));
        let streamed = request.stream();
        let projection = move || ResponseProjection::new(scene, streamed);
        // The run outlives the request: whoever asked for it may leave.
        let mut attended = Attended::new(
            app.stopping.work(),
            work(begun, asked, projection, log, memory),
        );
        match attended
            .until(|| live.begun())
            .await
            .unwrap_or(Stage::Over(Answer::Left(Left::NotStored)))
        {
            Stage::Over(Answer::Repeated(run)) => Ok(Began::Before(run)),
            Stage::Over(Answer::Error(error)) if live.is_refused() => Err(error),
            Stage::Over(Answer::Left(Left::NotStored)) => Err(fail::outcome_unknown(run)),
            Stage::Starting | Stage::Begun | Stage::Over(_) => {
                // The run has stored the input; this request does not need it again.
                self.input = InputItems::default();
                Ok(Began::Here(live, attended))
            }
        }
    }

    /// The response that this one goes on from.
    fn previous(&self) -> Result<Option<RunId>, ApiError> {
        match self.request.previous_response_id() {
            None => Ok(None),
            Some(id) => match fail::run_of(id) {
                Some(run) => Ok(Some(run)),
                None => Err(fail::no_previous(id)),
            },
        }
    }

    /// Where the run works.
    async fn thread(&self, threads: &Threads, previous: Option<RunId>) -> Result<Thread, ApiError> {
        let Some(previous) = previous else {
            let id = self.app.store.ids().thread();
            return Ok(threads.make_free(NewThread::new(id)));
        };
        let thread = match self.request.store() {
            true => threads.after(previous).await,
            // No run will look whether it is still there.
            false => threads.open_after(previous).await,
        };
        match thread {
            Ok(thread) => Ok(thread),
            Err(error) => Err(fail::after(&error, previous)),
        }
    }

    /// The tool servers that the chain has listed, if that matters.
    async fn listed(&self, previous: Option<RunId>) -> Result<Vec<String>, ApiError> {
        let mcp = |tool: &RequestTool| matches!(tool, RequestTool::Mcp(_));
        let agents = self
            .request
            .model()
            .is_some_and(|model| model.starts_with("agent/"));
        let Some(previous) = previous.filter(|_| agents || self.request.tools().iter().any(mcp))
        else {
            return Ok(Vec::new());
        };
        let journal = self.app.store.journal(self.scope, previous).await;
        let journal = journal.map_err(|error| fail::after(&error, previous))?;
        let host = Host::of(journal.request.as_ref())?;
        Ok(host.map(|host| host.listed).unwrap_or_default())
    }

    /// With what is said about calls that wait for leave.
    async fn replied(
        &self,
        mut asked: Run<Reply>,
        said: &Said,
        previous: Option<RunId>,
        thread: &Thread,
    ) -> Result<Run<Reply>, ApiError> {
        let Some(first) = said.approvals.first() else {
            return Ok(asked);
        };
        let Some(previous) = previous else {
            return Err(super::said::no_question(&first.approval.to_string()));
        };
        let pending = thread.pending();
        for answer in &said.approvals {
            let waits = |one: &&Pending| one.approval == Some(answer.approval);
            let call = match pending.iter().find(waits) {
                Some(call) => call.clone(),
                None => self.settled_call(previous, answer.approval).await?,
            };
            asked = match answer.approve {
                true => asked.approve(&call),
                false => asked.reject(&call, answer.reason.as_deref()),
            };
        }
        Ok(asked)
    }

    /// The call of an approval that does not wait any more: whether this request, sent again, or
    /// another one has answered it is decided where the run begins.
    async fn settled_call(
        &self,
        previous: RunId,
        approval: ApprovalId,
    ) -> Result<Pending, ApiError> {
        let journal = self.app.store.journal(self.scope, previous).await;
        let journal = journal.map_err(|error| fail::after(&error, previous))?;
        let mut calls = journal.calls.iter();
        let call = calls.find(|call| call.approval == Some(approval));
        let found = call.and_then(|call| Some((call, call_at(&journal, call)?)));
        let Some((
            call,
            KnownCall {
                call: made,
                occurrence,
            },
        )) = found
        else {
            return Err(super::said::no_question(&approval.to_string()));
        };
        Ok(Pending {
            call: made.call,
            tool: made.name,
            arguments: made.arguments,
            awaits: Awaits::Approval,
            at: call.at,
            occurrence,
            approval: Some(approval),
        })
    }

    fn streamed(
        &self,
        reader: Reader,
        place: OwnedSemaphorePermit,
        delivery: Delivery,
    ) -> Result<Response<Body>, ApiError> {
        let run = reader.run();
        let batches = get::following(self.app, self.scope, reader);
        let mut response = sse::events(batches, self.app, (place, delivery));
        response.extensions_mut().insert(Answered(run));
        Ok(response)
    }
}

/// The answer of a run that is over.
fn answered(body: &Pieces, (run, delivery): (RunId, Delivery)) -> Response<Body> {
    let mut response = Response::new(whole(body, delivery));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.extensions_mut().insert(Answered(run));
    response
}

/// A body that tells when it was taken.
fn whole(body: &Pieces, delivery: Delivery) -> Body {
    let pieces = body.as_slice().to_vec().into_iter();
    let chunks = stream::unfold(pieces, move |mut left| {
        let delivery = delivery.clone();
        async move {
            let Some(piece) = left.next() else {
                delivery.done();
                return None;
            };
            Some((Ok::<Bytes, std::convert::Infallible>(piece), left))
        }
    });
    Body::from_stream(chunks)
}

/// A thread in memory, which goes when its run has ended.
fn unstored(recipe: &Recipe, history: &[Arc<Message>]) -> Result<Thread, ApiError> {
    if let Some((name, _)) = recipe.host.tools.iter().find(|(_, tool)| tool.asks) {
        return Err(ApiError::invalid(format!(
            "The tool '{name}' needs approval, which needs `store: true`."
        ))
        .code("approval_requires_store")
        .param("store"));
    }
    let history = history.iter().map(|message| Message::clone(message));
    Ok(Thread::of(Thread::new().id().clone(), history.collect()))
}

/// A new thread whose history the upstream keeps, if it is to.
async fn owned(thread: &Thread, recipe: &Recipe) -> Result<(), ApiError> {
    let keeps = recipe.upstream.history == Keeping::Service;
    if !keeps || !thread.snapshot().is_empty() {
        return Ok(());
    }
    let owner = Owner::Service {
        upstream: recipe.upstream.client.abilities().upstream.clone(),
    };
    let set = thread.set_owner(owner).await;
    set.map_err(|error| ApiError::server(error.to_string()))
}

/// Whether a message is a conversation in short that a client brought. It is the only word of what it
/// stands for, so that it is never put in short again.
fn is_summary(message: &Message) -> bool {
    message.source == Some(Source::Summary)
}

/// The calls that a run takes over if it begins here: it answers or closes all that wait for an
/// approval.
fn known_calls(thread: &Thread) -> Vec<KnownCall> {
    let pending = thread.pending().into_iter();
    let asked = pending.filter(|call| call.awaits == Awaits::Approval);
    asked
        .map(|one| KnownCall {
            call: ToolCall {
                arguments: one.arguments,
                ..ToolCall::function(one.call, one.tool, "{}")
            },
            occurrence: one.occurrence,
        })
        .collect()
}
