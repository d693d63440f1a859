//! A process dies in the middle of a round of tools; another one goes on. What had finished is not
//! done again.
//!
//! ```sh
//! cargo run -p throughline --example crash_and_resume
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use throughline::agent::{RunError, RunFailed};
use throughline::store::{Error, NewThread, Options, Store, ThreadId};
use throughline::tool::Effect;
use throughline::{Agent, Demo, Outcome, tool};

type Failure = Box<dyn std::error::Error>;

/// What becomes of the process in the middle of the round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Dies,
    Lives,
}

async fn agent(folder: &Path, fate: Fate) -> Result<Agent, Failure> {
    let options = Options {
        // A process that says nothing for so long counts as dead. Ten seconds if not set.
        lease: Duration::from_secs(1),
        ..Options::default()
    };
    let file = folder.join("harbour.db");
    let store = Store::open_with(&format!("sqlite://{}", file.display()), options).await?;
    let start_pump = tool("start_pump", "Starts the pump.", || async {
        println!("the pump starts");
        "running"
    });
    let close_gate = tool("close_gate", "Closes the gate.", move || async move {
        println!("the gate is being closed");
        if fate == Fate::Dies {
            std::process::abort();
        }
        "closed"
    });
    let agent = Agent::builder(Demo::new())
        .store(&store)
        // Nobody said that this one may run twice, so it never does.
        .tool(start_pump)
        // To close a closed gate does no harm: it may be tried again if its result was lost.
        .tool(close_gate.effect(Effect::Idempotent))
        .serial_calls()
        .build()?;
    Ok(agent)
}

/// Go on with what the other process left, as soon as it counts as dead.
async fn go_on(agent: &Agent, thread: &ThreadId) -> Result<Outcome, Failure> {
    let thread = agent.open(thread.clone()).await?;
    loop {
        match agent.resume(&thread).await {
            Err(RunFailed {
                source: RunError::Store(Error::Busy { .. }),
                ..
            }) => tokio::time::sleep(Duration::from_millis(100)).await,
            ended => return Ok(ended?),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let id = ThreadId::new("storm")?;
    // This program is both processes; the one that dies is told where the file is.
    if let Some(folder) = std::env::args().nth(1) {
        let agent = agent(&PathBuf::from(folder), Fate::Dies).await?;
        let threads = agent.threads().ok_or("the agent has a store")?;
        let thread = threads.open_or_create(NewThread::new(id)).await?;
        agent
            .run_on(&thread, "use start_pump and close_gate")
            .await?;
        return Ok(());
    }
    let name = format!("throughline-crash-and-resume-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let first = Command::new(std::env::current_exe()?)
        .arg(&folder)
        .status()?;
    assert!(!first.success());
    println!("the first process died");
    let agent = agent(&folder, Fate::Lives).await?;
    println!("{}", go_on(&agent, &id).await?.text());
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
