//! Answers as values.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use throughline_model::AnswerShape;
use throughline_model::json::RawJson;

use super::order::{self, Order, Working};
use super::outcome::{Outcome, RunFailed};
use super::run::Run;
use super::stop::StopReason;
use crate::tool::{schema_of, unwrapped};

/// A run whose final answer is read as a value; see [`Run::typed`].
#[must_use = "a run begins when it is awaited"]
pub struct TypedRun<T, O: Order = order::Start> {
    run: Run<O>,
    value: PhantomData<fn() -> T>,
}

/// What a typed run leaves.
#[derive(Debug)]
pub struct Typed<T> {
    /// The value; none if the run ended without an answer (parked, cancelled, refused), or at a
    /// limit with one that does not fit.
    pub value: Option<T>,
    /// What every run leaves.
    pub outcome: Outcome,
}

/// Why there is no value.
#[derive(Debug, thiserror::Error)]
pub enum TypedError {
    /// The run failed.
    #[error(transparent)]
    Failed(#[from] RunFailed),
    /// The answer does not fit the type. The run is done and its answer is in the history.
    #[error("the answer does not fit: {reason}")]
    Unfit {
        /// The answer.
        text: String,
        /// What is wrong with it.
        reason: String,
        /// What the run left.
        outcome: Box<Outcome>,
    },
}

impl<T: DeserializeOwned + JsonSchema, O: Working> TypedRun<T, O> {
    pub(super) fn new(mut run: Run<O>) -> Self {
        run.settings_mut().answer = Some(AnswerShape {
            name: T::schema_name().into_owned(),
            schema: schema_of::<T>(),
        });
        Self {
            run,
            value: PhantomData,
        }
    }
}

impl<T, O> IntoFuture for TypedRun<T, O>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
    O: Order,
{
    type Output = Result<Typed<T>, TypedError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { read(self.run.await?) })
    }
}

fn read<T: DeserializeOwned>(outcome: Outcome) -> Result<Typed<T>, TypedError> {
    let none = |outcome| {
        Ok(Typed {
            value: None,
            outcome,
        })
    };
    match outcome.stop {
        StopReason::Parked
        | StopReason::Cancelled
        | StopReason::Terminated
        | StopReason::Failed => {
            return none(outcome);
        }
        StopReason::Done | StopReason::RoundLimit | StopReason::ErrorLimit | StopReason::Budget => {
        }
    }
    if outcome.refusal().is_some() {
        return none(outcome);
    }
    let text = outcome.text();
    match parse(bare(&text)) {
        Ok(value) => Ok(Typed {
            value: Some(value),
            outcome,
        }),
        Err(_) if outcome.stop != StopReason::Done => none(outcome),
        Err(error) => Err(TypedError::Unfit {
            text,
            reason: error.to_string(),
            outcome: Box::new(outcome),
        }),
    }
}

/// Read an answer: the value itself, or what stands in the field of one that is no object.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        let wrapped = RawJson::new(text).ok();
        let inner = wrapped.and_then(|json| serde_json::from_str(unwrapped(&json)).ok());
        inner.ok_or(error)
    })
}

/// The answer without the fence that some models put around JSON.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    else {
        return text;
    };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}
