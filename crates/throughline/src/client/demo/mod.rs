//! A stand-in.
use async_trait::async_trait;
use throughline_model::Response;

use super::{Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream};

/// Answers offline.
#[derive(Clone, Debug)]
pub struct Demo {
    abilities: Abilities,
}

impl Default for Demo {
    fn default() -> Self {
        Self::new()
    }
}

impl Demo {
    /// One.
    pub fn new() -> Self {
        Self {
            abilities: Abilities::of("demo"),
        }
    }
}

#[async_trait]
impl ChatClient for Demo {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, _: &ChatRequest<'_>) -> Result<Response, ClientError> {
        Err(ClientError::new(ErrorKind::Setup, "demo", "not yet"))
    }

    async fn stream(&self, _: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        Err(ClientError::new(ErrorKind::Setup, "demo", "not yet"))
    }
}
