//! What the builder checks, and what vendors add.

use std::sync::Arc;

use throughline_wire::compose::TokenLimit;

use super::builder::ClientBuilder;
use super::url::Base;
use crate::client::http::{
    CachedTokens, Credential, HttpSettings, HttpTransport, ProxyChoice, Transport,
};
use crate::client::{ClientError, ErrorKind};

impl ClientBuilder {
    /// A service whose address differs for each customer.
    pub(super) fn below(mut self, url: &str, path: &str) -> Self {
        self.base_url = Some(url.to_owned());
        self.below = path.to_owned();
        self
    }

    pub(super) fn parameter(mut self, parameter: &'static str) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Adds a member to every body, which also names what answers.
    pub(super) fn member(mut self, name: &'static str, json: String) -> Self {
        self.members.push((name, json));
        self.without_model()
    }

    pub(super) fn without_model(mut self) -> Self {
        self.needs_model = false;
        self
    }

    pub(super) fn token_limit_elsewhere(mut self, limit: TokenLimit) -> Self {
        self.token_limit_elsewhere = limit;
        self
    }

    pub(super) fn base(&self) -> Result<Base, ClientError> {
        let url = self.base_url.as_deref().or(self.dialect.home);
        let url = url.ok_or_else(|| self.setup("no base_url"))?;
        let base = Base::parse(url).map_err(|problem| self.setup(problem))?;
        let base = base.join(&self.below);
        let parameters = self.parameters.iter();
        Ok(parameters.fold(base, |base, parameter| base.with(parameter)))
    }

    pub(super) fn credential(&self) -> Result<Credential, ClientError> {
        match (&self.key, &self.tokens) {
            (Some(_), Some(_)) => Err(self.setup("api_key and token_provider exclude each other")),
            (None, Some(provider)) => {
                Ok(Credential::Tokens(CachedTokens::new(Arc::clone(provider))))
            }
            (Some(key), None) if key.is_empty() => Err(self.setup("the API key is empty")),
            (Some(key), None) => {
                let sendable = |byte: &u8| byte.is_ascii_graphic();
                if key.reveal().as_bytes().iter().all(sendable) {
                    Ok(Credential::Key(key.clone()))
                } else {
                    Err(self.setup("the API key holds white space or other strange characters"))
                }
            }
            // Only a custom address may have no key.
            (None, None) if self.base_url.is_some() && self.dialect.home.is_some() => {
                Ok(Credential::None)
            }
            (None, None) if self.dialect.home.is_none() => {
                Err(self
                    .setup("no token: call token_provider(…), or api_key(…) with a bearer token"))
            }
            (None, None) => {
                let names = self.dialect.key_env.join(" or ");
                Err(self.setup(format!(
                    "no API key: call api_key(…), or api_key_from_env() with {names} set"
                )))
            }
        }
    }

    pub(super) fn own_transport(&self) -> Result<Arc<dyn Transport>, ClientError> {
        let http = HttpSettings {
            connect_timeout: self.timeouts.connect,
            ..self.http.clone()
        };
        let Some(shared) = &self.transport else {
            let own = HttpTransport::new(&http)
                .map_err(|error| self.setup("no connections can be made").with_source(error))?;
            return Ok(Arc::new(own));
        };
        if http.proxy != ProxyChoice::System || !http.root_certificates.is_empty() {
            let text = "proxy and root_certificates belong to the transport that was given";
            return Err(self.setup(text));
        }
        Ok(Arc::clone(shared))
    }

    pub(super) fn setup(&self, message: impl Into<String>) -> ClientError {
        ClientError::new(ErrorKind::Setup, &self.abilities.upstream, message)
    }
}
