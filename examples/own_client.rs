//! A custom client: any code that answers a conversation can be the model of an agent, and can be
//! wrapped in layers.
//!
//! ```sh
//! cargo run -p throughline --example own_client
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use async_trait::async_trait;
use throughline::client::{Abilities, ChatRequest, ClientError, ClientExt, Retry, RetryPolicy};
use throughline::model::{Message, Response};
use throughline::{Agent, ChatClient};

/// Reverses the last message.
struct Backwards(Abilities);

#[async_trait]
impl ChatClient for Backwards {
    fn abilities(&self) -> &Abilities {
        &self.0
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let last = request.messages().last();
        let text = last.map(Message::text).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().rev().collect();
        Ok(Message::assistant(words.join(" ")).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Backwards(Abilities::of("backwards"));
    let client = client.layer(Retry::new(RetryPolicy::default()));
    let agent = Agent::builder(client).build()?;
    let outcome = agent.run("four at water high").await?;
    println!("{}", outcome.text());
    Ok(())
}
