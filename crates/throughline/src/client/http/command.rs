//! Access tokens from an external command.

use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use throughline_model::json::{self, Value};
use tokio::process::Command;

use super::credential::{Token, TokenError, TokenProvider};
use crate::client::Secret;

/// Runs a command that prints a token, or JSON that contains one.
///
/// JSON is searched for `access_token`, `accessToken` or `token`, and for the lifetime:
/// `expires_in` in seconds from now, or `expires_on` in seconds since 1970. The command runs
/// without a shell and without input, is killed when no call waits for it any more, and its output
/// is never printed.
///
/// ```
/// use throughline::client::CommandTokens;
/// use throughline::Foundry;
///
/// let tokens = CommandTokens::new("az")
///     .args(["account", "get-access-token", "--resource", "https://ai.azure.com"]);
/// let client = Foundry::new("https://x.services.ai.azure.com/api/projects/p", "gpt-5")
///     .token_provider(std::sync::Arc::new(tokens))
///     .build()?;
/// # Ok::<(), throughline::client::ClientError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CommandTokens {
    program: String,
    args: Vec<String>,
    timeout: Duration,
}

/// The longest accepted token, in bytes.
const LONGEST: usize = 64 * 1024;

impl CommandTokens {
    /// A provider that runs a program.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            timeout: Duration::from_secs(30),
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets how long the command may take; thirty seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn error(&self, what: &str) -> TokenError {
        TokenError::new(format!("token command {} {what}", self.program))
    }
}

#[async_trait]
impl TokenProvider for CommandTokens {
    async fn token(&self) -> Result<Token, TokenError> {
        let run = Command::new(&self.program)
            .args(&self.args)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = match tokio::time::timeout(self.timeout, run).await {
            Err(_) => return Err(self.error("did not end in time")),
            Ok(Err(error)) => {
                return Err(self.error(&format!("cannot be run: {}", error.kind())));
            }
            Ok(Ok(output)) => output,
        };
        if !output.status.success() {
            let text = format!("failed ({}); run it by hand to see why", output.status);
            return Err(self.error(&text));
        }
        if output.stdout.len() > LONGEST {
            return Err(self.error("printed more than a token"));
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        read(&output.stdout, now.as_secs()).ok_or_else(|| self.error("printed no token"))
    }
}

/// The token in the output of a command.
pub(super) fn read(printed: &[u8], now: u64) -> Option<Token> {
    let text = std::str::from_utf8(printed).ok()?.trim();
    if !text.starts_with('{') {
        let is_one = !text.is_empty() && !text.contains(char::is_whitespace);
        return is_one.then(|| Token {
            secret: Secret::new(text),
            valid_for: None,
        });
    }
    let value = json::parse(text).ok()?;
    let secret = ["access_token", "accessToken", "token"]
        .iter()
        .find_map(|key| value.get(key)?.as_str())
        .filter(|token| !token.is_empty())?;
    let until = seconds(&value, "expires_on").map(|at| at.saturating_sub(now));
    let valid_for = seconds(&value, "expires_in").or(until);
    Some(Token {
        secret: Secret::new(secret),
        valid_for: valid_for.map(Duration::from_secs),
    })
}

/// A number of seconds, as a number or a string.
fn seconds(value: &Value<'_>, key: &str) -> Option<u64> {
    let found = value.get(key)?;
    found.as_u64().or_else(|| found.as_str()?.parse().ok())
}
