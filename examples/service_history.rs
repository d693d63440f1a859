//! A service that stores the conversation: it is sent only new messages, with the id that it
//! issued. Our record has everything nevertheless.
//!
//! ```sh
//! cargo run -p throughline --example service_history
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use throughline::client::{Abilities, ChatRequest, ClientError, HistoryOwner, StoresHistory};
use throughline::model::{Message, Response};
use throughline::thread::Owner;
use throughline::{Agent, ChatClient, Thread};

/// A service that stores conversations, each answer under a new id.
struct Keeper {
    abilities: Abilities,
    kept: Mutex<HashMap<String, Vec<Message>>>,
}

impl Keeper {
    fn new() -> Self {
        Self {
            abilities: Abilities {
                stores_history: StoresHistory::Always,
                ..Abilities::of("keeper")
            },
            kept: Mutex::default(),
        }
    }

    fn answer(&self, request: &ChatRequest<'_>) -> Response {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match request.history_owner {
            HistoryOwner::Service { id: Some(id) } => kept.get(id).cloned().unwrap_or_default(),
            HistoryOwner::Service { id: None } | HistoryOwner::Caller => Vec::new(),
        };
        let sent = request.messages();
        let said = format!("I was sent {} and had {}.", sent.len(), known.len());
        let answer = Message::assistant(said);
        let mut whole = known;
        whole.extend(sent.cloned());
        whole.push(answer.clone());
        let id = format!("kept_{}", kept.len() + 1);
        kept.insert(id.clone(), whole);
        Response {
            id: Some(id.clone()),
            service: Some(id),
            ..answer.into()
        }
    }
}

#[async_trait]
impl ChatClient for Keeper {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        Ok(self.answer(request))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder(Keeper::new()).build()?;
    let thread = Thread::new();
    // The owner is explicit: without this the run is refused.
    let owner = Owner::service("keeper");
    thread.set_owner(owner).await?;
    for input in ["The tide is at four.", "And tomorrow?"] {
        let outcome = agent.run_on(&thread, input).await?;
        println!("{}", outcome.text());
    }
    let ids = thread.service_ids();
    println!("kept as {}", ids[0].id);
    println!("our record has {}", thread.history().len());
    Ok(())
}
