//! Tools: a function with typed arguments, one that needs approval, and one that the application
//! runs.
//!
//! ```sh
//! cargo run -p throughline --example tools
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use schemars::JsonSchema;
use serde::Deserialize;
use throughline::tool::{CallContext, Effect};
use throughline::{Agent, Demo, StopReason, Thread, tool};

/// The arguments of `get_tide`. The model is shown these lines.
#[derive(Deserialize, JsonSchema)]
struct Harbour {
    /// The name of the port.
    port: String,
}

/// A dependency of tools.
struct Almanac;

impl Almanac {
    fn high_water(&self, port: &str) -> String {
        format!("high water at {port}: 04:12")
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let get_tide = tool(
        "get_tide",
        "When is high water?",
        |harbour: Harbour, call: CallContext| async move {
            let almanac = call.dependency::<Almanac>().ok_or("no almanac")?;
            Ok::<_, tool::ToolError>(almanac.high_water(&harbour.port))
        },
    );
    let book_berth = tool(
        "book_berth",
        "Books a berth.",
        |harbour: Harbour| async move { format!("booked at {}", harbour.port) },
    );
    let agent = Agent::builder(Demo::new())
        .dependency(Almanac)
        .tool(get_tide.effect(Effect::ReadOnly))
        .tool(book_berth.needs_approval())
        .build()?;

    let thread = Thread::new();
    let outcome = agent.run_on(&thread, "use get_tide with port=Hull").await?;
    println!("{}", outcome.text());

    // A call that needs approval parks the run, for as long as it takes.
    let parked = agent
        .run_on(&thread, "use book_berth with port=Hull")
        .await?;
    assert_eq!(parked.stop, StopReason::Parked);
    let waiting = &parked.pending[0];
    println!("may {} run?", waiting.tool);
    let outcome = agent.resume(&thread).approve(waiting).await?;
    println!("{}", outcome.text());
    Ok(())
}
