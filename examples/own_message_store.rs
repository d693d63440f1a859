//! A message store of the application, which shortens its history as it likes. It is read before
//! each run, so that the model is sent what is left.
//!
//! ```sh
//! cargo run -p throughline --example own_message_store
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline::model::Message;
use throughline::model::json::RawJson;
use throughline::thread::{MessageStore, MessageStoreError, Owner};
use throughline::{Agent, Demo, Thread};

/// How many messages are kept.
const KEPT: usize = 4;

/// A store that keeps only the last few messages.
#[derive(Clone, Default)]
struct Papers(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    messages: HashMap<String, Vec<Message>>,
    /// Completed appends: a process that died may repeat one.
    done: HashSet<String>,
}

impl Papers {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl MessageStore for Papers {
    async fn load(
        &self,
        key: &RawJson,
        _budget: Option<u64>,
    ) -> Result<Vec<Message>, MessageStoreError> {
        let kept = self.kept().messages.get(key.get()).cloned();
        Ok(kept.unwrap_or_default())
    }

    async fn append(
        &self,
        key: &RawJson,
        messages: &[Message],
        idempotency: &str,
    ) -> Result<Option<RawJson>, MessageStoreError> {
        let mut kept = self.kept();
        if kept.done.insert(idempotency.to_owned()) {
            let known = kept.messages.entry(key.get().to_owned()).or_default();
            known.extend(messages.iter().cloned());
            let old = known.len().saturating_sub(KEPT);
            known.drain(..old);
        }
        Ok(None)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder(Demo::new())
        .message_store("papers", Papers::default())
        .build()?;
    let thread = Thread::new();
    let owner = Owner::External {
        store: "papers".to_owned(),
        key: RawJson::new(r#"{"ship":"Hilda","year":1908}"#)?,
    };
    thread.set_owner(owner).await?;
    for input in [
        "The pilot boards at four.",
        "The tide turns at ten.",
        "The gate closes at noon.",
        "What did I say first?",
        "How many messages are there?",
    ] {
        let outcome = agent.run_on(&thread, input).await?;
        println!("{}", outcome.text());
    }
    Ok(())
}
