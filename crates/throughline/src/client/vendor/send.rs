//! Sends a request.

use std::borrow::Cow;

use throughline_model::{Effort, Settings, Wire};
use throughline_wire::compose::{Delivery, Prompt, compose};
use throughline_wire::http::ResponseMeta;
use throughline_wire::render::{Items, Target};
use throughline_wire::{Loss, Losses};

use super::VendorClient;
use super::answer::{Head, VendorAnswer};
use super::answer_memory::AnswerMemory;
use super::dialect::Auth;
use super::failure;
use super::history_form::ItemForm;
use super::stored_by::StoredBy;
use super::stream::EventReader;
use crate::client::http::{
    BodyReader, Credential, Granted, Header, HttpMethod, HttpRequest, HttpResponse, RequestBody,
};
use crate::client::{ChatRequest, ClientError, ErrorKind, TimeoutPhase};

/// A history of at least this many bytes is shared with the body instead of copied.
const MIN_SHARED_BYTES: usize = 32 * 1024;

/// Marks the position of a shared history in a body: JSON contains this character in escaped form
/// only.
const MARK: char = '\0';

/// An array that contains only the mark.
const MARKED_ARRAY: &str = "[\0";

/// How many bytes of an error body are read.
const ERROR_BODY: u64 = 1024 * 1024;

/// A request before it is signed.
pub(super) struct Outgoing {
    pub(super) method: HttpMethod,
    pub(super) url: String,
    pub(super) body: RequestBody,
    /// The value of the header that names features in beta.
    pub(super) betas: Option<String>,
}

/// The header that names features in beta.
const BETAS: &str = "anthropic-beta";

impl VendorClient {
    /// Sends a request and reads the head of its response. Any status that is not a success is an
    /// error.
    pub(super) async fn send_request(
        &self,
        request: &ChatRequest<'_>,
        delivery: Delivery,
        form: ItemForm,
    ) -> Result<VendorAnswer, ClientError> {
        let model = self.model_of(request);
        if model.is_empty() && self.names_model {
            return Err(self.setup("no model is named, by the client or by the request"));
        }
        let stored_by = self.stored_by(request)?;
        let url = self.base.request(self.dialect.route, model, delivery);
        let url = url.map_err(|problem| self.setup(problem))?;
        let (body, losses) = self.body(request, delivery, &stored_by, form);
        request.note_losses(|| losses);
        let outgoing = Outgoing {
            method: HttpMethod::Post,
            url,
            body,
            betas: self.betas(request.settings),
        };
        self.exchange(outgoing, delivery, stored_by).await
    }

    /// Signs and sends a request, and reads the head of its response.
    pub(super) async fn exchange(
        &self,
        outgoing: Outgoing,
        delivery: Delivery,
        stored_by: StoredBy,
    ) -> Result<VendorAnswer, ClientError> {
        let mut renewed = false;
        loop {
            let granted = self.credential.grant().await.map_err(|error| {
                let text = "there is no token to sign the request with";
                self.error(ErrorKind::Auth, text).with_source(error)
            })?;
            let request = HttpRequest {
                method: outgoing.method,
                url: outgoing.url.clone(),
                headers: self.headers(&granted, &outgoing, delivery),
                body: outgoing.body.clone(),
            };
            let response = self.send(request).await?;
            // A token may have been revoked before it expires: retries once with a new one.
            if response.status == 401 && !renewed && self.credential.refused(&granted) {
                renewed = true;
                continue;
            }
            return self.open(response, granted, delivery, stored_by).await;
        }
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ClientError> {
        let sent = self.transport.send(request);
        let sent = match self.timeouts.first_byte {
            None => sent.await,
            Some(wait) => tokio::time::timeout(wait, sent).await.map_err(|_| {
                let kind = ErrorKind::Timeout(TimeoutPhase::FirstByte);
                self.error(kind, "no answer came in time")
            })?,
        };
        sent.map_err(|error| {
            let text = match error.kind() {
                ErrorKind::Setup => "the request cannot be sent",
                ErrorKind::Cut => "the connection ended before an answer came",
                _ => "the service cannot be reached",
            };
            self.error(error.kind(), text).with_source(error)
        })
    }

    async fn open(
        &self,
        response: HttpResponse,
        granted: Granted,
        delivery: Delivery,
        stored_by: StoredBy,
    ) -> Result<VendorAnswer, ClientError> {
        let headers = response.headers.iter();
        let head = Head {
            upstream: self.abilities.upstream.clone(),
            status: response.status,
            meta: ResponseMeta::parse(headers.map(|(name, value)| (&**name, &**value))),
            content_type: response.header("content-type").map(str::to_owned),
            secret: granted.secret,
            stored_by,
            can_be_asked: self.stored_form().is_some(),
        };
        let is_good = (200..300).contains(&response.status);
        let limit = match delivery {
            _ if !is_good => ERROR_BODY,
            Delivery::Whole => self.bounds.body_bytes,
            Delivery::Streamed => self.bounds.stream_bytes,
        };
        let body = BodyReader::new(response, &head.upstream, self.timeouts.idle, limit);
        if is_good {
            let memory = AnswerMemory::new(self.bounds.answer_bytes, self.memory.as_ref());
            return Ok(VendorAnswer::new(head, body, memory));
        }
        Err(failure::refused(self.codec, &head, body).await)
    }

    /// Reads the events of an answer.
    pub(super) fn reader(&self, answer: VendorAnswer) -> EventReader {
        EventReader::new(self.codec, answer, self.bounds.events, self.end_mark)
    }

    fn headers(&self, granted: &Granted, outgoing: &Outgoing, delivery: Delivery) -> Vec<Header> {
        let accept = match delivery {
            Delivery::Whole => "application/json",
            Delivery::Streamed => "text/event-stream",
        };
        let mut headers = Vec::new();
        if !outgoing.body.is_empty() {
            headers.push(Header::plain("content-type", "application/json"));
        }
        headers.push(Header::plain("accept", accept));
        if let Some(secret) = &granted.secret {
            let auth = match &self.credential {
                Credential::Tokens(_) => Auth::Bearer,
                Credential::None | Credential::Key(_) => self.dialect.auth,
            };
            headers.push(match auth {
                Auth::Bearer => Header::secret("authorization", "Bearer ", secret.clone()),
                Auth::Header(name) => Header::secret(name, "", secret.clone()),
            });
        }
        headers.extend(self.headers.iter().cloned());
        if let Some(betas) = &outgoing.betas {
            headers.push(Header::plain(BETAS, betas));
        }
        headers
    }

    /// The features in beta that a request uses, for a service that has such a header.
    pub(super) fn betas(&self, settings: &Settings) -> Option<String> {
        let has_header = self.dialect.wire == Wire::Anthropic;
        (has_header && !settings.betas.is_empty()).then(|| settings.betas.join(","))
    }

    pub(super) fn body(
        &self,
        request: &ChatRequest<'_>,
        delivery: Delivery,
        stored_by: &StoredBy,
        form: ItemForm,
    ) -> (RequestBody, Vec<Loss>) {
        let thinking = match request.settings.effort {
            None => self.target.thinking,
            Some(Effort::Off) => false,
            Some(_) => true,
        };
        let target = match thinking == self.target.thinking {
            true => Cow::Borrowed(&self.target),
            false => Cow::Owned(Target {
                thinking,
                ..self.target.clone()
            }),
        };
        let settings = self.settings(request);
        let (said, target) = stored_by.targets(target, request.view.messages());
        let rendering = request.view.render(&said, self.history.options(form));
        let lent = rendering.lent(MIN_SHARED_BYTES);
        let mut losses = Losses::default();
        let body = compose(
            &Prompt {
                target: &target,
                model: self.model_of(request),
                instructions: request.instructions,
                system: rendering.system.as_deref(),
                items: match &lent {
                    Some(_) => Items {
                        settled: MARKED_ARRAY,
                        rest: rendering.rest(),
                    },
                    None => rendering.items(),
                },
                tools: request.tools,
                choice: request.choice,
                settings: &settings,
                delivery,
                limit: self.token_limit,
                answered_by: &self.members,
            },
            &mut losses,
        );
        let body = match (lent, body.find(MARK)) {
            (Some(lent), Some(place)) => {
                let mut text = body;
                text.remove(place);
                RequestBody::around(text, place, lent)
            }
            (_, _) => RequestBody::from(body),
        };
        tracing::debug!(
            upstream = self.abilities.upstream,
            bytes = body.len(),
            tool_history = form.as_str(),
            repairs = rendering.repairs,
            losses = rendering.losses + losses.as_slice().len(),
            "request"
        );
        let mut losses = losses.into_vec();
        losses.extend(rendering.lost);
        (body, losses)
    }

    /// The losses of a request, without sending it.
    pub(super) fn losses(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        let Ok(stored_by) = self.stored_by(request) else {
            return Vec::new();
        };
        let (form, _) = self.form(request);
        self.body(request, Delivery::Whole, &stored_by, form).1
    }

    /// The model of the request; empty if neither the request nor the client names one.
    pub(super) fn model_of<'r>(&'r self, request: &ChatRequest<'r>) -> &'r str {
        request.model.or(self.model.as_deref()).unwrap_or_default()
    }

    /// The caller's settings, and serial calls for a service without parallel ones.
    fn settings<'r>(&self, request: &ChatRequest<'r>) -> Cow<'r, Settings> {
        let several = self.abilities.parallel_calls || request.settings.parallel_calls.is_some();
        if several || request.tools.is_empty() {
            return Cow::Borrowed(request.settings);
        }
        Cow::Owned(Settings {
            parallel_calls: Some(false),
            ..request.settings.clone()
        })
    }

    pub(super) fn error(&self, kind: ErrorKind, message: &str) -> ClientError {
        ClientError::new(kind, &self.abilities.upstream, message)
    }

    pub(super) fn setup(&self, message: &str) -> ClientError {
        self.error(ErrorKind::Setup, message)
    }
}
