//! One process parks a run because a call needs an approval; another one approves it later and
//! resumes the run.
//!
//! ```sh
//! cargo run -p throughline --example approval_two_processes
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use std::path::Path;
use std::process::Command;

use schemars::JsonSchema;
use serde::Deserialize;
use throughline::store::{ApprovalFilter, Decision, Store};
use throughline::{Agent, Demo, Threads, tool};

type Failure = Box<dyn std::error::Error>;

#[derive(Deserialize, JsonSchema)]
struct Berth {
    /// The name of the port.
    port: String,
}

async fn store(folder: &Path) -> Result<Store, Failure> {
    let file = folder.join("harbour.db");
    Ok(Store::open(&format!("sqlite://{}", file.display())).await?)
}

fn agent(store: &Store) -> Result<Agent, Failure> {
    let book = tool("book_berth", "Books a berth.", |berth: Berth| async move {
        format!("booked at {}", berth.port)
    });
    let agent = Agent::builder(Demo::new()).store(store);
    Ok(agent.tool(book.needs_approval()).build()?)
}

/// The first process: it starts the run, which parks.
async fn ask(folder: &Path) -> Result<(), Failure> {
    let store = store(folder).await?;
    let outcome = agent(&store)?.run("use book_berth with port=Hull").await?;
    println!("first process: {}", outcome.stop);
    Ok(())
}

/// The second process: an operator lists the waiting approvals and answers.
async fn answer(folder: &Path) -> Result<(), Failure> {
    let store = store(folder).await?;
    let threads = Threads::of(&store);
    let waiting = ApprovalFilter {
        waiting: true,
        ..ApprovalFilter::default()
    };
    for approval in threads.approvals(&waiting, None).await?.found {
        let shown = approval.detail.as_ref().map_or("", |detail| detail.get());
        println!("second process: may this run? {shown}");
        // The answer is bound to the arguments that were shown, and is used once.
        let decided = threads.decide(&approval, Decision::Approved, "the harbour master", None);
        decided.await?;
        let thread = threads.open(approval.thread).await?;
        let outcome = agent(&store)?.resume(&thread).await?;
        println!("second process: {}", outcome.text());
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // This program is both processes, and the one that starts them.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder] = arguments.as_slice() {
        return match word.as_str() {
            "ask" => ask(Path::new(folder)).await,
            _ => answer(Path::new(folder)).await,
        };
    }
    let name = format!("throughline-approval-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    for word in ["ask", "answer"] {
        let mut process = Command::new(std::env::current_exe()?);
        let ended = process.arg(word).arg(&folder).status()?;
        assert!(ended.success());
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
