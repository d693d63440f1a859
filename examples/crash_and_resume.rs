//! A process dies in the middle of a round of tools, and another one resumes the run. Finished
//! tools are not run again.
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

/// How the process behaves in the middle of the round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Dies,
    Lives,
}

async fn agent(folder: &Path, fate: Fate) -> Result<Agent, Failure> {
    let options = Options {
        // A process without a heartbeat for this long counts as dead. The default is ten seconds.
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
        // This tool is not declared safe to repeat, so it runs at most once.
        .tool(start_pump)
        // Closing a closed gate does no harm: the call may be repeated if its result is lost.
        .tool(close_gate.effect(Effect::Idempotent))
        .serial_calls()
        .build()?;
    Ok(agent)
}

/// Resumes the run of the other process, as soon as that counts as dead.
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
    // This program is both processes; the one that dies gets the folder of the file.
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
