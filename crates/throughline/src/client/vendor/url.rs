//! Addresses: what stands before the question mark, and what after it. Neither ever holds a key.

use std::fmt;

use throughline_wire::compose::Delivery;

use super::dialect::Route;

/// The address of a service. Only `http` and `https`, without user or password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Base {
    path: String,
    query: Option<String>,
}

impl Base {
    /// An address; an error says what is wrong without repeating it.
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

    /// The same with more of a path behind it.
    pub(super) fn join(mut self, path: &str) -> Self {
        self.path.push_str(path);
        self
    }

    /// The same with one more parameter.
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
        Ok(match full.query {
            Some(query) => format!("{}?{query}", full.path),
            None => full.path,
        })
    }
}

/// A model's place in an address. A name cannot lead anywhere else.
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

/// Percent-encode what is not plain in a segment of a path.
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
    /// Without parameters: someone may have put a key there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
