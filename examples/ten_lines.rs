//! An agent in ten lines. The demo model needs no network; replace it by
//! `Anthropic::new("claude-…")` or another client.
//!
//! ```sh
//! cargo run -p throughline --example ten_lines
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use throughline::{Agent, Demo, Thread};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder(Demo::new())
        .instructions("You know the harbour.")
        .build()?;
    let thread = Thread::new();
    agent.run_on(&thread, "The pilot boards at four.").await?;
    let outcome = agent.run_on(&thread, "What did I say first?").await?;
    println!("{}", outcome.text());
    Ok(())
}
