//! An answer as a value. The script stands in for a model that keeps to the schema, as those of
//! the vendors do when they are asked to.
//!
//! ```sh
//! cargo run -p throughline --example structured
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use schemars::JsonSchema;
use serde::Deserialize;
use throughline::Agent;
use throughline::agent::TypedError;
use throughline_testkit::scripted::{ScriptedClient, Step};

/// When the water is high.
#[derive(Debug, Deserialize, JsonSchema)]
struct Tide {
    port: String,
    high: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedClient::new([
        Step::text(r#"{"port":"Hull","high":"04:12"}"#),
        Step::text("I would rather not say."),
    ]);
    let agent = Agent::builder(model).build()?;
    let typed = agent
        .run("When is high water at Hull?")
        .typed::<Tide>()
        .await?;
    if let Some(tide) = typed.value {
        println!("{}: {}", tide.port, tide.high);
    }
    // What does not fit is an error that still has the answer and the transcript.
    match agent.run("And at Goole?").typed::<Tide>().await {
        Err(TypedError::Unfit { text, outcome, .. }) => {
            println!("no value after {} messages: {text}", outcome.messages.len());
        }
        other => println!("{other:?}"),
    }
    Ok(())
}
