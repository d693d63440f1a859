//! Streams text and the progress of tools.
//!
//! ```sh
//! cargo run -p throughline --example streaming -- "use add with a=2 b=3"
//! ```

use std::io::Write;

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use throughline::{Agent, Demo, RunEvent, tool};

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let input = std::env::args().nth(1);
    let input = input.unwrap_or_else(|| "use add with a=2 b=3".to_owned());
    let add = tool("add", "Adds two numbers.", |sum: Sum| async move {
        (sum.a + sum.b).to_string()
    });
    let agent = Agent::builder(Demo::new()).tool(add).build()?;
    let mut stream = agent.run(input).stream();
    let mut out = std::io::stdout();
    while let Some(event) = stream.next().await {
        match event {
            RunEvent::Text { delta, .. } => {
                write!(out, "{delta}")?;
                out.flush()?;
            }
            RunEvent::Dispatched { tool, .. } => writeln!(out, "[{tool} runs]")?,
            RunEvent::Ended { stop } => writeln!(out, "\n[{stop}]")?,
            _ => {}
        }
    }
    stream.outcome().await?;
    Ok(())
}
