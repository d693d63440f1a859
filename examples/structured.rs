//! A typed answer. The script replaces a model that follows the schema, as vendors' models do on
//! request.
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

/// The time of high water.
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
    // An answer that does not fit is an error with the answer and the transcript.
    match agent.run("And at Goole?").typed::<Tide>().await {
        Err(TypedError::Unfit { text, outcome, .. }) => {
            println!("no value after {} messages: {text}", outcome.messages.len());
        }
        other => println!("{other:?}"),
    }
    Ok(())
}
