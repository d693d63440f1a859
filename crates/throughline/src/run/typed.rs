//! Answers as values of a type.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use throughline_model::AnswerShape;
use throughline_model::json::RawJson;

use super::handle::Run;
use super::order::{self, Order, Working};
use super::outcome::{Outcome, RunFailed};
use crate::thread::StopReason;
use crate::tool::{schema_of, unwrapped};

/// A run whose final answer is read as a value; see [`Run::typed`].
#[must_use = "a run begins when it is awaited"]
pub struct TypedRun<T, O: Order = order::Start> {
    run: Run<O>,
    value: PhantomData<fn() -> T>,
}

/// The value of a typed run, and its outcome.
#[derive(Debug)]
pub struct Typed<T> {
    /// The value; none if the run ended without an answer (parked, cancelled, refused), or at a
    /// limit with one that does not fit.
    pub value: Option<T>,
    /// The outcome of the run.
    pub outcome: Outcome,
}

/// Why there is no value. Like [`RunFailed`], it prints no message of the run.
#[derive(thiserror::Error)]
pub enum TypedError {
    /// The run failed.
    #[error(transparent)]
    Failed(#[from] RunFailed),
    /// The answer does not fit the type. The run is done and its answer is in the history.
    #[error(
        "the answer of {} does not fit its type: {}; it is in the history, ask again for another",
        outcome.run,
        without_values(reason)
    )]
    Unfit {
        /// The answer.
        text: String,
        /// What is wrong with it. It may quote the answer, and `Display` and `Debug` leave that out.
        reason: String,
        /// The outcome of the run.
        outcome: Box<Outcome>,
    },
}

impl TypedError {
    /// The outcome of the run: its transcript, usage and steps.
    pub fn outcome(&self) -> &Outcome {
        match self {
            Self::Failed(failed) => failed.outcome(),
            Self::Unfit { outcome, .. } => outcome,
        }
    }
}

impl fmt::Debug for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failed) => f.debug_tuple("Failed").field(failed).finish(),
            Self::Unfit {
                reason, outcome, ..
            } => f
                .debug_struct("Unfit")
                .field("run", &format_args!("{}", outcome.run))
                .field("reason", &without_values(reason))
                .field("messages", &outcome.messages.len())
                .finish_non_exhaustive(),
        }
    }
}

/// An error text of serde without the values that it quotes, which stand between the first words and
/// `, expected`.
fn without_values(reason: &str) -> String {
    let (reason, place) = match reason.rfind(" at line ") {
        Some(at) => reason.split_at(at),
        None => (reason, ""),
    };
    let found = ["invalid type", "invalid value", "invalid length"]
        .into_iter()
        .chain(["unknown variant", "unknown field"])
        .find(|words| reason.starts_with(words));
    // Names of missing fields come from the type, and syntax errors from the grammar of JSON. Other
    // texts may quote the answer.
    let plain = ["missing field `", "duplicate field `", "expected ", "EOF "]
        .into_iter()
        .chain([
            "trailing ",
            "key must be ",
            "control character ",
            "recursion ",
        ])
        .chain(["data did not match "])
        .any(|words| reason.starts_with(words));
    match (found, reason.rfind(", expected ")) {
        (Some(words), Some(at)) => format!("{words}{}{place}", &reason[at..]),
        (Some(words), None) => format!("{words}{place}"),
        (None, _) if plain => format!("{reason}{place}"),
        (None, _) => format!("it cannot be read{place}"),
    }
}

impl<T: DeserializeOwned + JsonSchema, O: Working> TypedRun<T, O> {
    pub(super) fn new(mut run: Run<O>) -> Self {
        run.settings_mut().answer = Some(AnswerShape {
            name: T::schema_name().into_owned(),
            schema: Some(schema_of::<T>()),
            ..AnswerShape::default()
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

/// Read an answer: the value itself, or the wrapped value of a type that is no object.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::without_values;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase", deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read")]
    struct Tide {
        height: u32,
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Neap,
        Spring,
    }

    #[test]
    fn a_reason_names_the_type_and_the_place_and_quotes_nothing() {
        let cases = [
            (
                r#"{"height":"CANARY, expected CANARY at line 9","kind":"neap"}"#,
                "invalid type, expected u32 at line 1 column",
            ),
            (
                r#"{"height":1,"kind":"CANARY"}"#,
                "unknown variant, expected `neap` or `spring` at line 1 column",
            ),
            (
                r#"{"CANARY":1}"#,
                "unknown field, expected `height` or `kind` at line 1 column",
            ),
            (r#"{"height":1}"#, "missing field `kind` at line 1 column"),
            ("CANARY", "expected value at line 1 column 1"),
            (r#"{"height":1"#, "EOF while parsing an object at line 1"),
        ];
        for (text, expected) in cases {
            let reason = serde_json::from_str::<Tide>(text).unwrap_err().to_string();
            let shown = without_values(&reason);
            assert!(shown.starts_with(expected), "{text}: {shown}");
            assert!(!shown.contains("CANARY"), "{text}: {shown}");
        }
        // Words of a type's own.
        let own = serde_json::from_str::<BTreeMap<std::net::IpAddr, u8>>(r#"{"CANARY":1}"#);
        let shown = without_values(&own.unwrap_err().to_string());
        assert!(!shown.contains("CANARY"), "{shown}");
    }
}
