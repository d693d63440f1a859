//! A request of the native API, read and checked against its operation before the handler sees it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest as _, Path, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{MethodFilter, on};
use throughline::client::Reservation;
use throughline_model::Path as Place;
use throughline_model::json::Value;
use throughline_store::TenantScope;

use super::openapi::{Operation, RequestBody, Verb, check, check_parameter};
use crate::api::query::Query;
use crate::api::read;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::Payload;

/// An operation with its handler.
pub(super) struct Route {
    pub(super) operation: Arc<Operation>,
    router: Router<App>,
}

/// A request that fits its operation.
pub(super) struct Call {
    pub(super) app: App,
    pub(super) scope: TenantScope,
    pub(super) headers: HeaderMap,
    operation: Arc<Operation>,
    names: Vec<(String, String)>,
    query: Query,
    payload: Option<Payload>,
    /// In a mutex because a body is not `Sync`, and handlers share their call.
    stream: Mutex<Option<Body>>,
}

impl Route {
    /// Serve an operation.
    pub(super) fn new<F, R>(operation: Operation, handler: F) -> Self
    where
        F: Fn(Call) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<Response<Body>, ApiError>> + Send,
    {
        let operation = Arc::new(operation);
        let taken = Arc::clone(&operation);
        let answer = move |State(app): State<App>,
                           caller: Caller,
                           names: Result<Path<Vec<(String, String)>>, PathRejection>,
                           request: Request| async move {
            let Path(names) = names.map_err(|_| {
                ApiError::invalid("The path is not text in UTF-8.").code("invalid_path")
            })?;
            let call = Call::read(app, caller, taken, names, request).await?;
            handler(call).await
        };
        let method = match operation.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Put => MethodFilter::PUT,
            Verb::Patch => MethodFilter::PATCH,
            Verb::Delete => MethodFilter::DELETE,
        };
        let router = Router::new().route(operation.path, on(method, answer));
        Self { operation, router }
    }

    /// The router that serves it.
    pub(super) fn into_router(self) -> Router<App> {
        self.router
    }
}

impl Call {
    async fn read(
        app: App,
        caller: Caller,
        operation: Arc<Operation>,
        names: Vec<(String, String)>,
        request: Request,
    ) -> Result<Self, ApiError> {
        let query = Query::of(request.uri().query());
        check_query(&operation, &query)?;
        let headers = request.headers().clone();
        let (payload, stream) = match &operation.body {
            RequestBody::None => (None, None),
            RequestBody::Json { .. } => (Some(Payload::from_request(request, &app).await?), None),
            RequestBody::Stream(_) => (None, Some(request.into_body())),
        };
        let call = Self {
            app,
            scope: caller.scope,
            headers,
            operation,
            names,
            query,
            payload,
            stream: Mutex::new(stream),
        };
        call.body()?;
        Ok(call)
    }

    /// A parameter of the path.
    pub(super) fn name(&self, key: &str) -> &str {
        let found = self.names.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, value)| value)
    }

    /// A parameter of the query.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.query.get(key)
    }

    /// A parameter of the query that may be given several times.
    pub(super) fn texts<'c>(&'c self, key: &'c str) -> impl Iterator<Item = &'c str> {
        self.query.all(key)
    }

    /// A parameter of the query that is a number.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// A parameter of the query that is on or off.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.text(key).map(|text| text == "true")
    }

    /// How many entries a page has.
    pub(super) fn limit(&self) -> usize {
        let limit = self.number("limit").unwrap_or(PAGE);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }

    /// A parameter of the query that parses as an id.
    pub(super) fn parsed<T>(&self, key: &str) -> Result<Option<T>, ApiError>
    where
        T: std::str::FromStr<Err: std::fmt::Display>,
    {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error| {
            ApiError::invalid(format!("Invalid '{key}': {error}."))
                .code("invalid_value")
                .param(key)
        })
    }

    /// The body, which fits the schema; an empty object if there is none.
    pub(super) fn body(&self) -> Result<Value<'_>, ApiError> {
        let (bytes, schema, is_required) = match (&self.operation.body, &self.payload) {
            (
                RequestBody::Json {
                    schema,
                    is_required,
                },
                Some(payload),
            ) => (&payload.bytes()[..], Some(schema), *is_required),
            _ => (&b""[..], None, false),
        };
        let body = match bytes.is_empty() && !is_required {
            true => read::body(b"{}")?,
            false => read::body(bytes)?,
        };
        if let Some(schema) = schema {
            check(schema, &body, &Place::Root)?;
        }
        Ok(body)
    }

    /// Have room in memory for a record of so many tokens and what is made of it, until this is
    /// dropped.
    pub(super) fn reserve(&self, tokens: u64) -> Result<Reservation, ApiError> {
        let bytes = tokens.saturating_mul(RECORD_BYTES);
        let mut memory = self.app.memory.reservation();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        memory.try_resize(bytes).map_err(|error| {
            tracing::info!(%error, "a view is refused");
            ApiError::overloaded(
                "The server has no memory left for a record of this size (limits.memory).",
                "out_of_memory",
            )
        })?;
        Ok(memory)
    }

    /// The body of an operation that reads it itself.
    pub(super) fn take_stream(&mut self) -> Body {
        let stream = self.stream.get_mut();
        let stream = stream.unwrap_or_else(PoisonError::into_inner);
        stream.take().unwrap_or_default()
    }
}

/// Bytes that a token of a record takes while it is shown: its text as it was read, as a message, as a
/// view, and in the answer.
const RECORD_BYTES: u64 = 24;

/// Lines of JSON.
pub(super) const NDJSON: &str = "application/x-ndjson";

/// An answer that is JSON already.
pub(super) fn json_text(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Who asks or answers, if the request does not say.
pub(super) const ASKED_BY: &str = "api";

/// Entries of a page, if the client does not say.
pub(super) const PAGE: u64 = 50;

/// The most entries of a page.
pub(super) const LARGEST_PAGE: u64 = 1_000;

fn check_query(operation: &Operation, query: &Query) -> Result<(), ApiError> {
    let known: Vec<&'static str> = operation.query_names().collect();
    query.check_known(&known)?;
    for parameter in &operation.parameters {
        let mut values = query.all(parameter.name);
        let mut count = 0;
        values.try_for_each(|value| {
            count += 1;
            check_parameter(parameter.name, &parameter.schema, value)
        })?;
        if count > 1 && !parameter.is_list() {
            return Err(ApiError::invalid(format!(
                "Invalid '{}': it is given {count} times.",
                parameter.name
            ))
            .code("invalid_value")
            .param(parameter.name));
        }
    }
    Ok(())
}
