//! When history moves: at the end of a run, or after each model call. A tool reads the thread
//! during its run.
//!
//! ```sh
//! cargo run -p throughline --example per_call
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use throughline::store::Store;
use throughline::thread::Persistence;
use throughline::tool::{CallContext, ToolError};
use throughline::{Agent, Demo, Threads, tool};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = format!("throughline-per-call-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("harbour.db");
    let store = Store::open(&format!("sqlite://{}", file.display())).await?;

    let look = tool(
        "look",
        "Looks at this thread.",
        |call: CallContext| async move {
            let threads = call.dependency::<Threads>().ok_or("no threads")?;
            // A run that has published nothing yet may have an empty thread.
            let thread = threads.open(call.thread.clone()).await;
            let thread = thread.map_err(|error| error.to_string())?;
            Ok::<_, ToolError>(format!("{} messages", thread.history().len()))
        },
    );
    let agent = Agent::builder(Demo::new())
        .store(&store)
        .dependency(Threads::of(&store))
        .tool(look)
        .build()?;
    for persistence in [Persistence::PerRun, Persistence::PerCall] {
        let thread = agent.new_thread();
        let run = agent.run_on(&thread, "use look");
        let outcome = run.persistence(persistence).await?;
        let end = thread.history().len();
        let word = persistence.as_str();
        println!("{word}: {}; {end} messages at the end", outcome.text());
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
