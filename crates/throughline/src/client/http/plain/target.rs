use reqwest::Url;

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client::http) struct Target {
    /// The host, as it is looked up.
    pub(super) host: String,
    /// The port.
    pub(super) port: u16,
    /// What the header `host` says.
    pub(super) authority: String,
    /// The path and what follows a question mark.
    pub(super) path: String,
}

impl Target {
    /// The target of an address without TLS; none when there is more to it, such as a password.
    pub(in crate::client::http) fn of(url: &Url) -> Option<Self> {
        if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let host = url.host_str()?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_or_known_default()?,
            authority,
            path,
        })
    }
}
