//! Two processes take turns on one thread in one SQLite file. Each waits for the other's turn to
//! end and sees it.
//!
//! ```sh
//! cargo run -p throughline --example two_processes
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use std::path::Path;
use std::process::Command;

use throughline::store::{NewThread, Store, ThreadId};
use throughline::thread::OnBusy;
use throughline::{Agent, Demo, Thread, Threads};

type Failure = Box<dyn std::error::Error>;

/// Turns that each process takes.
const TURNS: usize = 3;

async fn threads(folder: &Path) -> Result<Threads, Failure> {
    let file = folder.join("harbour.db");
    let store = Store::open(&format!("sqlite://{}", file.display())).await?;
    Ok(Threads::of(&store))
}

async fn thread(threads: &Threads) -> Result<Thread, Failure> {
    let new = NewThread::new(ThreadId::new("log")?);
    // The second process opens the thread that the first one made.
    Ok(threads.open_or_create(new).await?)
}

/// One of the processes.
async fn talk(name: &str, folder: &Path) -> Result<(), Failure> {
    let threads = threads(folder).await?;
    let thread = thread(&threads).await?;
    let agent = Agent::builder(Demo::new()).build()?;
    for turn in 1..=TURNS {
        let run = agent.run_on(&thread, format!("{name} {turn}"));
        run.on_busy(OnBusy::Queue).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // This program is both processes, and the one that starts them.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, folder] = arguments.as_slice() {
        return talk(name, Path::new(folder)).await;
    }
    let name = format!("throughline-two-processes-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let mut processes = Vec::new();
    for name in ["Anna", "Bert"] {
        let mut process = Command::new(std::env::current_exe()?);
        processes.push(process.arg(name).arg(&folder).spawn()?);
    }
    for mut process in processes {
        assert!(process.wait()?.success());
    }
    let threads = threads(&folder).await?;
    let history = thread(&threads).await?.history();
    // In any order of turns, each question is followed by its answer.
    let answered = history.chunks(2).filter(|turn| match turn {
        [asked, answer] => answer.text() == format!("You said: \"{}\"", asked.text()),
        _ => false,
    });
    println!(
        "{} messages, {} turns in order",
        history.len(),
        answered.count()
    );
    for name in ["Anna", "Bert"] {
        let said = history.iter().map(|message| message.text());
        let said: Vec<String> = said.filter(|text| text.starts_with(name)).collect();
        println!("{}", said.join(", "));
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
