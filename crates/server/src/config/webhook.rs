//! `[[webhook]]`: where events of background responses are posted.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::error::{ConfigError, Origin};
use super::table::{Table, none_of};
use super::upstream::value;

/// The events that there are.
const EVENTS: [&str; 4] = [
    "response.completed",
    "response.failed",
    "response.incomplete",
    "response.cancelled",
];

/// How secrets begin that are bytes in base64.
const PREFIX: &str = "whsec_";

/// One `[[webhook]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {
    /// What deliveries to it are kept under.
    pub name: String,
    /// Where events are posted.
    pub url: String,
    /// What they are signed with.
    pub secret: WebhookSecret,
    /// The events.
    pub events: Vec<String>,
    /// Where it was written.
    pub origin: Origin,
}

/// The key of signatures. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// A secret as senders and receivers write it: `whsec_` and base64, or any text.
    ///
    /// ```
    /// use throughline_server::WebhookSecret;
    ///
    /// let secret = WebhookSecret::parse("whsec_c2VjcmV0")?;
    /// assert_eq!(secret.bytes(), b"secret");
    /// assert_eq!(WebhookSecret::parse("a text")?.bytes(), b"a text");
    /// assert!(WebhookSecret::parse("whsec_!").is_err());
    /// # Ok::<(), &'static str>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(encoded) = text.strip_prefix(PREFIX) else {
            return Ok(Self(text.as_bytes().to_vec()));
        };
        let decoded = STANDARD.decode(encoded);
        let decoded = decoded.or_else(|_| STANDARD_NO_PAD.decode(encoded));
        match decoded {
            Ok(bytes) if !bytes.is_empty() => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err("begins with whsec_, but what follows is no base64"),
        }
    }

    /// The bytes that signatures are made with.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// All of them, each with another name.
pub(super) fn all<'a, 't: 'a>(
    tables: impl Iterator<Item = &'a Table<'t>>,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<WebhookConfig>, ConfigError> {
    let mut webhooks: Vec<WebhookConfig> = Vec::new();
    for table in tables {
        let webhook = one(table, variables)?;
        if webhooks.iter().any(|known| known.name == webhook.name) {
            let problem = format!("there are two webhooks {:?}; name them", webhook.name);
            return Err(table.wrong("name", problem));
        }
        webhooks.push(webhook);
    }
    Ok(webhooks)
}

fn one(
    table: &Table<'_>,
    variables: &BTreeMap<String, String>,
) -> Result<WebhookConfig, ConfigError> {
    let url: String = table.get("url")?;
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(table.wrong("url", "must start with http:// or https://"));
    }
    let variable: String = table.get("secret_env")?;
    let secret = value(variables, &variable).ok_or_else(|| {
        let problem = format!("the variable {variable} is not set; set it to the secret");
        table.wrong("secret_env", problem)
    })?;
    let secret = WebhookSecret::parse(secret).map_err(|problem| {
        table.wrong("secret_env", format!("the value of {variable} {problem}"))
    })?;
    let events: Vec<String> = table.get("events")?;
    if let Some(unknown) = events
        .iter()
        .find(|event| !EVENTS.contains(&event.as_str()))
    {
        return Err(table.wrong("events", none_of(unknown, &EVENTS)));
    }
    if events.is_empty() {
        return Err(table.wrong("events", "names no event; take the key out for all of them"));
    }
    let name: Option<String> = table.find("name")?;
    Ok(WebhookConfig {
        name: name
            .or_else(|| table.name.clone())
            .unwrap_or_else(|| url.clone()),
        url,
        secret,
        events,
        origin: table.origin.clone(),
    })
}
