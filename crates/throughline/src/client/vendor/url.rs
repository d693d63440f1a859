//! Addresses and query parameters. Neither contains a key.

use std::fmt;

use throughline_wire::compose::Delivery;

use super::dialect::Route;

/// The address of a service: `http` or `https`, without user and password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Base {
    path: String,
    query: Option<String>,
}

impl Base {
    /// Parses an address; the error does not repeat the address.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"))
            .ok_or("base_url must start with https:// or http://")?;
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("base_url holds white space");
        }
        if text.contains('#') {
            return Err("base_url must not hold a fragment");
        }
        let (before, query) = match text.split_once('?') {
            Some((before, query)) => (before, Some(query.to_owned())),
            None => (text, None),
        };
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        if host.is_empty() {
            return Err("base_url names no host");
        }
        if host.contains('@') {
            return Err("base_url must not hold a user or password; use api_key");
        }
        Ok(Self {
            path: before.trim_end_matches('/').to_owned(),
            query: query.filter(|query| !query.is_empty()),
        })
    }

    /// Appends to the path.
    pub(super) fn join(mut self, path: &str) -> Self {
        self.path.push_str(path);
        self
    }

    /// Appends a parameter.
    pub(super) fn with(mut self, parameter: &str) -> Self {
        self.query = Some(match self.query {
            Some(query) => format!("{query}&{parameter}"),
            None => parameter.to_owned(),
        });
        self
    }

    /// The address of a request.
    pub(super) fn request(
        &self,
        route: Route,
        model: &str,
        delivery: Delivery,
    ) -> Result<String, &'static str> {
        let full = match route {
            Route::Fixed(path) => self.clone().join(path),
            Route::PerModel => {
                let model = model_path(model)?;
                let base = self.clone().join("/v1beta/").join(&model);
                match delivery {
                    Delivery::Whole => base.join(":generateContent"),
                    Delivery::Streamed => base.join(":streamGenerateContent").with("alt=sse"),
                }
            }
        };
        Ok(full.into_url())
    }

    /// The address as it is requested.
    pub(super) fn into_url(self) -> String {
        match self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path,
        }
    }

    /// Appends an id as one segment of the path. An id cannot change the rest of the path.
    pub(super) fn id(mut self, id: &str) -> Result<Self, &'static str> {
        if matches!(id, "" | "." | "..") {
            return Err("an empty id or one of dots names nothing at the service");
        }
        self.path.push('/');
        push_encoded(&mut self.path, id);
        Ok(self)
    }
}

/// A model's segment in an address. A model name cannot change the path.
fn model_path(model: &str) -> Result<String, &'static str> {
    let mut path = String::with_capacity(model.len() + 8);
    if !model.contains('/') {
        path.push_str("models/");
    }
    for (place, part) in model.split('/').enumerate() {
        if matches!(part, "" | "." | "..") {
            return Err("the name of the model cannot stand in an address");
        }
        if place > 0 {
            path.push('/');
        }
        push_encoded(&mut path, part);
    }
    Ok(path)
}

/// Percent-encodes a segment of a path, or the value of a query parameter.
pub(super) fn push_encoded(out: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

impl fmt::Debug for Base {
    /// Omits parameters, which may contain a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
