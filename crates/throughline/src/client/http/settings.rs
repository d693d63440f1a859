use std::time::Duration;

use crate::client::Secret;

/// How long to wait for what. There is no limit on a whole call: answers may take minutes, and a
/// run has a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Option<Duration>,
    /// From the request to the head of the answer. A model that is asked for a whole answer says
    /// nothing until it is done.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the answer.
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

/// Which proxy requests go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyChoice {
    /// What the system and the usual environment variables say.
    #[default]
    System,
    /// None, whatever the system says.
    Direct,
    /// This one. Its address may hold a password, so it is kept like one.
    Url(Secret),
}

/// How connections are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// How long to wait for a connection; none means as long as the system does.
    pub connect_timeout: Option<Duration>,
    /// The proxy.
    pub proxy: ProxyChoice,
    /// Certificates to trust beside the system's, as PEM; each entry may hold several.
    pub root_certificates: Vec<Vec<u8>>,
}
