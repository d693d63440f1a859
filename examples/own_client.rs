//! A client of one's own: anything that answers a conversation can stand behind an agent, and
//! layers go around it like around any other.
//!
//! ```sh
//! cargo run -p throughline --example own_client
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use async_trait::async_trait;
use futures_util::stream;
use throughline::model::{Content, Fold, Response, Stop};
use throughline::{
    Abilities, Agent, ChatClient, ChatRequest, ClientError, ClientExt, EventStream, Retry,
    RetryPolicy, Update, Updates,
};

/// Says everything backwards.
struct Backwards(Abilities);

impl Backwards {
    /// The answer as loose pieces, as many a service sends them.
    fn pieces(&self, request: &ChatRequest<'_>) -> Vec<Update> {
        let last = request.view.messages().last();
        let text = last.map(|message| message.text()).unwrap_or_default();
        let words = text.split_whitespace().rev();
        words
            .map(|word| Update {
                contents: vec![Content::text(format!("{word} "))],
                ..Update::default()
            })
            .collect()
    }
}

#[async_trait]
impl ChatClient for Backwards {
    fn abilities(&self) -> &Abilities {
        &self.0
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut updates = Updates::new();
        let mut fold = Fold::new();
        for piece in self.pieces(request) {
            updates
                .push(piece)
                .into_iter()
                .for_each(|event| fold.push(event));
        }
        updates
            .end(Stop::Done)
            .into_iter()
            .for_each(|event| fold.push(event));
        Ok(fold.finish())
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mut updates = Updates::new();
        let mut events = Vec::new();
        for piece in self.pieces(request) {
            events.extend(updates.push(piece));
        }
        events.extend(updates.end(Stop::Done));
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Backwards(Abilities::of("backwards"));
    let client = client.layer(Retry::new(RetryPolicy::default()));
    let agent = Agent::builder(client).build()?;
    let outcome = agent.run("four at water high").await?;
    println!("{}", outcome.text().trim_end());
    Ok(())
}
