use std::time::Duration;

use crate::client::Secret;

/// The timeouts of a call. There is no limit on a whole call: answers may take minutes, and a run
/// has its own time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time to connect.
    pub connect: Option<Duration>,
    /// Time from the request to the head of the response. A model that is asked for a whole answer
    /// sends nothing until it has finished.
    pub first_byte: Option<Duration>,
    /// Time between two pieces of the response.
    pub idle: Option<Duration>,
}

impl Default for Timeouts {
    /// Ten seconds, ten minutes, five minutes.
    fn default() -> Self {
        Self {
            connect: Some(Duration::from_secs(10)),
            first_byte: Some(Duration::from_secs(600)),
            idle: Some(Duration::from_secs(300)),
        }
    }
}

/// The proxy of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The proxy of the system's settings and of the usual environment variables.
    #[default]
    System,
    /// No proxy.
    Direct,
    /// This proxy. The address may contain a password, so it is kept as a secret.
    Url(Secret),
}

/// Settings of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// Time to connect; `None` leaves it to the system.
    pub connect_timeout: Option<Duration>,
    /// The proxy.
    pub proxy: ProxyChoice,
    /// Additional trusted certificates, as PEM; each entry may contain several.
    pub root_certificates: Vec<Vec<u8>>,
}
