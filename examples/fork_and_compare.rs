//! A fork: two runs from one node, side by side. What they share is stored once.
//!
//! ```sh
//! cargo run -p throughline --example fork_and_compare
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use throughline::store::{NewThread, Store, ThreadId};
use throughline::{Agent, Demo, Threads};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("memory:").await?;
    let threads = Threads::of(&store);
    let agent = Agent::builder(Demo::new()).threads(&threads).build()?;

    let by_sea = agent.new_thread();
    let first = agent.run_on(&by_sea, "We leave on Monday.").await?;
    agent.run_on(&by_sea, "We go by sea.").await?;

    // The id of a run names the node where it ended: the fork does not see later messages.
    let new = NewThread::new(ThreadId::new("by-land")?);
    let by_land = threads.fork(first.run, new).await?;
    agent.run_on(&by_land, "We go by land.").await?;

    let (left, right) = (by_sea.history(), by_land.history());
    let pairs = left.iter().zip(&right);
    let shared = pairs.take_while(|(left, right)| left.id == right.id);
    let shared = shared.count();
    for message in &left[..shared] {
        println!("both: {}", message.text());
    }
    for (name, history) in [("sea", &left), ("land", &right)] {
        for message in &history[shared..] {
            println!("{name}: {}", message.text());
        }
    }
    Ok(())
}
