//! What each keeper of a conversation holds after each step, as a table.
//!
//! The turn is always the same: the model calls `tide`, the tool runs, and the model is called again.
//! A row says what our record has, and behind it what the service or the application's store has:
//! while the tool runs, after the run, and after one more turn in another process. Results that no
//! model was sent yet stand in brackets.

use std::sync::{Arc, Mutex};

use throughline::Agent;
use throughline::agent::AgentBuilder;
use throughline::client::ErrorKind;
use throughline::store::{At, Store, TenantScope, ThreadId};
use throughline::thread::{HistoryPolicy, Owner, Parity, Persistence};
use throughline::tool::{ToolError, ToolOutput};
use throughline_testkit::scripted::{Ids, ScriptedClient, Step, StoringService};
use throughline_testkit::stage::{Fake, How, Process, Stage, everywhere, short};
use tokio_util::sync::CancellationToken;

use crate::threads::external::{Shelf, Shelving, on_shelf};

/// How the turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// The model answers.
    Done,
    /// The tool fails, and the model answers.
    ToolError,
    /// The second model call fails.
    Upstream,
    /// The caller cancels during the second model call.
    Cancelled,
    /// The process dies during the second model call.
    Killed,
}

/// Who keeps the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    Local,
    Service,
    External,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
struct Cell {
    exit: Exit,
    keeper: Keeper,
    mode: Persistence,
    parity: Parity,
}

const EXITS: [Exit; 5] = [
    Exit::Done,
    Exit::ToolError,
    Exit::Upstream,
    Exit::Cancelled,
    Exit::Killed,
];
const KEEPERS: [Keeper; 3] = [Keeper::Local, Keeper::Service, Keeper::External];
const MODES: [Persistence; 2] = [Persistence::PerRun, Persistence::PerCall];
const PARITIES: [Parity; 2] = [Parity::None, Parity::Service];

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for exit in EXITS {
        for mode in MODES {
            for parity in PARITIES {
                cells.extend(KEEPERS.map(|keeper| Cell {
                    exit,
                    keeper,
                    mode,
                    parity,
                }));
            }
        }
    }
    cells
}

/// What is read in a process: our record, and the copy of the keeper.
#[derive(Clone)]
struct Reader {
    store: Store,
    scope: TenantScope,
    keeper: Keeper,
    service: Arc<StoringService>,
    shelf: Shelf,
}

impl Reader {
    async fn read(&self, thread: &ThreadId) -> String {
        let at = At::Thread(thread.clone());
        let (history, unsent) = match self.store.open(&self.scope, &at, usize::MAX).await {
            Ok(opened) => (
                short(opened.entries.iter().map(|entry| &entry.message)),
                short(opened.unsent.iter().map(|entry| &entry.message)),
            ),
            Err(_) => Default::default(),
        };
        let record = match &*unsent {
            "" => history,
            unsent => format!("{history} [{unsent}]"),
        };
        let copy = match self.keeper {
            Keeper::Local => return or_nothing(&record),
            Keeper::Service => self.service.ids().last().map(|id| self.service.held(id)),
            Keeper::External => Some(self.shelf.messages("7")),
        };
        let copy = copy.map(|copy| short(&copy)).unwrap_or_default();
        format!("{} = {}", or_nothing(&record), or_nothing(&copy))
    }
}

fn or_nothing(text: &str) -> String {
    match text.is_empty() {
        true => "-".to_owned(),
        false => text.to_owned(),
    }
}

/// Everything that outlives a process.
struct World {
    cell: Cell,
    client: Arc<ScriptedClient>,
    service: Arc<StoringService>,
    shelf: Shelf,
    during: Arc<Mutex<String>>,
}

impl World {
    fn new(cell: Cell) -> Self {
        let steps = || {
            let second = match cell.exit {
                Exit::Done | Exit::ToolError => Step::text("at four"),
                Exit::Upstream => Step::fails(ErrorKind::Unavailable),
                Exit::Cancelled | Exit::Killed => Step::hang(),
            };
            [Step::calls([("c1", "tide", "{}")]), second]
        };
        Self {
            cell,
            client: Arc::new(ScriptedClient::new(steps())),
            service: Arc::new(StoringService::new(Ids::PerCall, steps())),
            shelf: Shelf::new(Shelving::Plain),
            during: Arc::default(),
        }
    }

    fn script(&self) -> &ScriptedClient {
        match self.cell.keeper {
            Keeper::Service => self.service.script(),
            Keeper::Local | Keeper::External => &self.client,
        }
    }

    fn reader(&self, process: &Process) -> Reader {
        Reader {
            store: process.store.clone(),
            scope: process.scope(),
            keeper: self.cell.keeper,
            service: Arc::clone(&self.service),
            shelf: self.shelf.clone(),
        }
    }

    fn agent(&self, process: &Process) -> Agent {
        let (reader, during) = (self.reader(process), Arc::clone(&self.during));
        let fails = self.cell.exit == Exit::ToolError;
        let tide = Fake::doing("tide", move |_, context| {
            let (reader, during) = (reader.clone(), Arc::clone(&during));
            async move {
                let read = reader.read(&context.thread).await;
                *during.lock().unwrap() = read;
                match fails {
                    true => Err(ToolError::new("no tide")),
                    false => Ok(ToolOutput::text("at four")),
                }
            }
        });
        let builder: AgentBuilder = match self.cell.keeper {
            Keeper::Service => Agent::builder(Arc::clone(&self.service)),
            Keeper::Local | Keeper::External => Agent::builder(Arc::clone(&self.client)),
        };
        let policy = HistoryPolicy {
            persistence: self.cell.mode,
            parity: self.cell.parity,
            ..HistoryPolicy::default()
        };
        let builder = builder.store(&process.store).tool(tide).history(policy);
        let builder = builder.message_store("shelf", self.shelf.clone());
        builder.build().unwrap()
    }
}

/// One row: the three moments of a cell.
async fn row(stage: &Stage, how: How, cell: Cell) -> [String; 3] {
    let world = World::new(cell);
    let first = stage.process().await;
    let agent = world.agent(&first);
    let thread = agent.new_thread();
    let owner = match cell.keeper {
        Keeper::Local => Owner::Local,
        Keeper::Service => Owner::service("scripted"),
        Keeper::External => on_shelf("7"),
    };
    thread.set_owner(owner).await.unwrap();
    let id = thread.id().clone();
    let token = CancellationToken::new();
    let run = agent.run_on(&thread, "when?").cancelled_by(token.clone());
    let running = tokio::spawn(async move { how.finish(run).await });
    match cell.exit {
        Exit::Cancelled => {
            world.script().begun(2).await;
            token.cancel();
            drop(running.await.unwrap());
        }
        Exit::Killed => {
            world.script().begun(2).await;
            first.kill();
        }
        Exit::Done | Exit::ToolError | Exit::Upstream => drop(running.await.unwrap()),
    }
    let next = stage.process().await;
    let after = world.reader(&next).read(&id).await;

    for _ in 0..2 {
        world.script().push(Step::text("yes"));
    }
    let agent = world.agent(&next);
    let thread = agent.open(id.clone()).await.unwrap();
    how.finish(agent.run_on(&thread, "well?")).await.unwrap();
    let then = world.reader(&next).read(&id).await;
    let during = world.during.lock().unwrap().clone();
    [during, after, then]
}

/// The rows: `exit mode parity keeper: while the tool runs | after the run | after the next turn`, each as
/// `record = copy`.
const TABLE: &str = include_str!("keepers_matrix.txt");

#[test]
fn each_keeper_holds_what_the_table_says_after_each_step() {
    everywhere(async |stage, how| {
        let mut rows = Vec::new();
        for cell in cells() {
            let [during, after, then] = row(stage, how, cell).await;
            let Cell {
                exit,
                keeper,
                mode,
                parity,
            } = cell;
            let mode = mode.as_str();
            rows.push(format!(
                "{exit:?} {mode} {parity:?} {keeper:?}: {during} | {after} | {then}"
            ));
        }
        for (row, expected) in rows.iter().zip(TABLE.trim().lines()) {
            assert_eq!(row, expected, "{:?} {how:?}", stage.engine);
        }
        assert_eq!(rows.len(), TABLE.trim().lines().count());
        println!(
            "table keepers: {} rows, {:?} {how:?}",
            rows.len(),
            stage.engine
        );
    });
}
