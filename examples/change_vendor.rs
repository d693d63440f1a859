//! A thread that moves: a service stores the conversation, then another vendor answers a question
//! with the whole of it, and then the service goes on where it was.
//!
//! ```sh
//! cargo run -p throughline --example change_vendor
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline::agent::ServiceClients;
use throughline::client::{
    Abilities, CallStatus, ChatRequest, ClientError, ErrorKind, HistoryOwner, StoredConversations,
    StoresHistory, VendorDeletion,
};
use throughline::model::json::RawJson;
use throughline::model::{Message, Response};
use throughline::store::Store;
use throughline::thread::Owner;
use throughline::{Agent, ChatClient, Demo, Threads};

/// A service that stores conversations, as OpenAI's Responses, Foundry and Gemini's Interactions
/// do; their clients work the same.
#[derive(Clone)]
struct Archive {
    abilities: Abilities,
    conversations: Arc<Mutex<HashMap<String, Vec<Message>>>>,
}

impl Archive {
    fn new() -> Self {
        Self {
            abilities: Abilities {
                stores_history: StoresHistory::Optional,
                ..Abilities::of("archive")
            },
            conversations: Arc::default(),
        }
    }

    fn conversations(&self) -> MutexGuard<'_, HashMap<String, Vec<Message>>> {
        let locked = self.conversations.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatClient for Archive {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut conversations = self.conversations();
        let id = match request.history_owner {
            HistoryOwner::Service { id: Some(id) } => id.to_owned(),
            HistoryOwner::Service { id: None } | HistoryOwner::Caller => {
                format!("conversation_{}", conversations.len() + 1)
            }
        };
        let known = conversations.entry(id.clone()).or_default();
        let had = known.len();
        known.extend(request.messages().cloned());
        let sent = known.len() - had;
        let answer = Message::assistant(format!("archive: I was sent {sent} and had {had}."));
        known.push(answer.clone());
        Ok(Response {
            service: Some(id),
            ..answer.into()
        })
    }

    fn conversations(&self) -> Option<&dyn StoredConversations> {
        Some(self)
    }
}

#[async_trait]
impl StoredConversations for Archive {
    async fn read(&self, id: &str) -> Result<Vec<Message>, ClientError> {
        let found = self.conversations().get(id).cloned();
        found
            .ok_or_else(|| ClientError::new(ErrorKind::NotFound, "archive", "no such conversation"))
    }

    async fn delete(&self, id: &str) -> Result<VendorDeletion, ClientError> {
        Ok(match self.conversations().remove(id) {
            Some(_) => VendorDeletion::Deleted,
            None => VendorDeletion::Absent,
        })
    }

    async fn look_up(&self, _handle: &RawJson) -> Result<CallStatus, ClientError> {
        Ok(CallStatus::Lost {
            reason: "answers are not stored before they are whole".to_owned(),
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let archive = Archive::new();
    let store = Store::open("memory:").await?;
    let stored = Agent::builder(archive.clone()).store(&store).build()?;
    let other = Agent::builder(Demo::new()).store(&store).build()?;
    let clients = ServiceClients::new().with(archive);

    let thread = stored.new_thread();
    thread.set_owner(Owner::service("archive")).await?;
    let outcome = stored.run_on(&thread, "The tide is at four.").await?;
    println!("{}", outcome.text());

    // Without a hand-over the other vendor is refused: it does not have the conversation.
    let refused = other.run_on(&thread, "What did I say first?").await;
    println!("refused: {}", refused.is_err());
    let moved = clients.hand_over(&thread, Owner::Local).await?;
    println!("read back: {}", moved.read_back[0].outcome.as_str());
    let outcome = other.run_on(&thread, "What did I say first?").await?;
    println!("demo: {}", outcome.text());

    // Back: the service is sent what it has not seen, in the conversation that it has.
    clients
        .hand_over(&thread, Owner::service("archive"))
        .await?;
    let outcome = stored.run_on(&thread, "And tomorrow?").await?;
    println!("{}", outcome.text());

    // What the vendor has is named, and deleted with the thread.
    let deleted = clients.delete(&Threads::of(&store), thread.id()).await?;
    for copy in deleted.vendor_copies {
        println!("{} {}: {}", copy.upstream, copy.id, copy.outcome.as_str());
    }
    Ok(())
}
