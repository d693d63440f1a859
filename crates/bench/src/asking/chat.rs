//! An endpoint that completes chats in OpenAI's format.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use throughline_compact::ToolHistory;
use throughline_model::{Message, Wire};
use throughline_wire::render::{Options, Target, render};

use super::lookup;

/// Answers with calls of tools before a model has to answer in words.
const ROUNDS: usize = 6;
/// Characters of a refusal that are kept.
const REASON: usize = 300;

/// Where a model is asked.
pub struct Endpoint {
    client: reqwest::Client,
    url: String,
    model: String,
    key: Option<String>,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChatAnswer {
    pub(super) text: String,
    pub(super) lookups: usize,
}

/// Why a question has no answer.
#[derive(Debug)]
pub enum AskError {
    /// The endpoint could not be reached, or the connection broke.
    Unreachable {
        /// What happened.
        source: reqwest::Error,
    },
    /// It answered with a status other than 200.
    Refused {
        /// The status.
        status: u16,
        /// The start of what it said.
        reason: String,
    },
    /// Its answer is no chat completion.
    Malformed {
        /// What is missing.
        missing: &'static str,
    },
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { .. } => {
                f.write_str("the model's endpoint cannot be reached; check --model")
            }
            Self::Refused { status, reason } => {
                write!(
                    f,
                    "the model's endpoint answered with status {status}: {reason}"
                )
            }
            Self::Malformed { missing } => {
                write!(
                    f,
                    "the answer of the model's endpoint has no {missing}; --model takes the base of an endpoint with /chat/completions"
                )
            }
        }
    }
}

impl std::error::Error for AskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable { source } => Some(source),
            Self::Refused { .. } | Self::Malformed { .. } => None,
        }
    }
}

impl From<reqwest::Error> for AskError {
    fn from(source: reqwest::Error) -> Self {
        // The address may contain a password.
        let source = source.without_url();
        Self::Unreachable { source }
    }
}

impl Endpoint {
    /// An endpoint with `/chat/completions` below a base URL.
    ///
    /// # Errors
    ///
    /// If no HTTP client can be made.
    pub fn new(base: &str, model: &str, key: Option<String>) -> Result<Self, AskError> {
        Ok(Self {
            client: reqwest::Client::builder().build()?,
            url: format!("{}/chat/completions", base.trim_end_matches('/')),
            model: model.to_owned(),
            key,
        })
    }

    /// Asks a question after a conversation. With a record, the model may look things up in it.
    pub(super) async fn ask(
        &self,
        shown: &[Arc<Message>],
        question: &str,
        record: Option<&ToolHistory>,
    ) -> Result<ChatAnswer, AskError> {
        let more = match record {
            Some(_) => " Look older messages up with `expand` and `recall` before you answer.",
            None => "",
        };
        let question = format!(
            "A question about this conversation. Answer it in one line and do nothing else.{more}\n\n{question}"
        );
        let mut conversation: Vec<Message> =
            shown.iter().map(|message| (**message).clone()).collect();
        conversation.push(Message::user(question));
        let mut body = self.body(&conversation);
        if record.is_some() {
            body["tools"] = lookup::tools();
        }
        let mut lookups = 0;
        for round in 0..=ROUNDS {
            if round == ROUNDS {
                body["tool_choice"] = json!("none");
            }
            let message = self.send(&body).await?;
            let calls = message["tool_calls"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let (Some(record), false) = (record, calls.is_empty()) else {
                let text = message["content"].as_str().unwrap_or_default().to_owned();
                return Ok(ChatAnswer { text, lookups });
            };
            let mut added = vec![message];
            for call in calls {
                lookups += 1;
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (name, arguments) = (&call["function"]["name"], &call["function"]["arguments"]);
                let found = lookup::answer(record, &text(name), &text(arguments));
                added.push(json!({"role": "tool", "tool_call_id": call["id"], "content": found}));
            }
            if let Some(messages) = body["messages"].as_array_mut() {
                messages.append(&mut added);
            }
        }
        Ok(ChatAnswer {
            text: String::new(),
            lookups,
        })
    }

    /// The body of a request, without tools.
    fn body(&self, conversation: &[Message]) -> Value {
        let (target, options) = (Target::newest(Wire::OpenAiChat), Options::default());
        let body = render(conversation, &target, &options).body(&target, &options);
        let mut body: Value = serde_json::from_str(&body).unwrap_or_default();
        body["model"] = json!(self.model);
        body
    }

    /// Sends a request; returns the message of the model.
    async fn send(&self, body: &Value) -> Result<Value, AskError> {
        let mut request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(body.to_string());
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        if !status.is_success() {
            return Err(AskError::Refused {
                status: status.as_u16(),
                reason: text.chars().take(REASON).collect(),
            });
        }
        let whole: Value = serde_json::from_str(&text).unwrap_or_default();
        match &whole["choices"][0]["message"] {
            message @ Value::Object(_) => Ok(message.clone()),
            _ => Err(AskError::Malformed { missing: "message" }),
        }
    }
}
