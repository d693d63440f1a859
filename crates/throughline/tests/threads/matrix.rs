//! What each way to end a run leaves, in each mode, as a table.
//!
//! The turn is always the same: the model calls `tide` once, the tool runs, and the model is called
//! again. The rows say how that ends.

use std::sync::Arc;

use throughline::Agent;
use throughline::agent::Limits;
use throughline::client::ErrorKind;
use throughline::model::{Content, Role};
use throughline::thread::{HistoryPolicy, Owner, Parity, Persistence};
use throughline::tool::{Approval, ToolOutput};
use throughline_testkit::scripted::{Ids, ScriptedClient, Step, StoringService};
use throughline_testkit::stage::{Engine, Fake, How, Stage, everywhere, short};
use tokio_util::sync::CancellationToken;

use crate::threads::snapshot::{Snapshot, snapshot};

/// How the turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// The model answers.
    Done,
    /// The tool fails, and the model answers.
    ToolError,
    /// The second model call fails.
    Upstream,
    /// The tool ends the run.
    Terminated,
    /// The caller cancels during the second model call.
    Cancelled,
    /// The caller drops the run during the second model call.
    Abandoned,
    /// The call needs an approval.
    Parked,
    /// The process dies during the second model call.
    Killed,
}

/// A cell: the stored state, and the stored state after one more turn in another process.
struct Cell {
    mode: Persistence,
    exit: Exit,
    history: &'static str,
    version: u64,
    open: bool,
    unsent: &'static str,
    run: &'static str,
    calls: &'static str,
    journal: &'static str,
    /// The history after the next turn.
    then: &'static str,
}

use Exit::{Abandoned, Cancelled, Done, Killed, Parked, Terminated, ToolError, Upstream};
use Persistence::{PerCall, PerRun};

#[rustfmt::skip]
const CELLS: [Cell; 16] = [
    Cell { mode: PerRun, exit: Done, history: "u a(c1) t(c1) a", version: 1, open: false, unsent: "",
        run: "committed", calls: "c1 done", journal: "u a(c1) t(c1) a", then: "u a(c1) t(c1) a u a" },
    Cell { mode: PerCall, exit: Done, history: "u a(c1) t(c1) a", version: 2, open: false, unsent: "",
        run: "committed", calls: "c1 done", journal: "u a(c1) t(c1) a", then: "u a(c1) t(c1) a u a" },

    Cell { mode: PerRun, exit: ToolError, history: "u a(c1) t(c1:error) a", version: 1, open: false, unsent: "",
        run: "committed", calls: "c1 done", journal: "u a(c1) t(c1:error) a", then: "u a(c1) t(c1:error) a u a" },
    Cell { mode: PerCall, exit: ToolError, history: "u a(c1) t(c1:error) a", version: 2, open: false, unsent: "",
        run: "committed", calls: "c1 done", journal: "u a(c1) t(c1:error) a", then: "u a(c1) t(c1:error) a u a" },

    // A failed run is final and not history: the next input begins at the same node.
    Cell { mode: PerRun, exit: Upstream, history: "", version: 0, open: false, unsent: "",
        run: "failed", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a" },
    // Published nodes stay; the result is in the journal and goes out first with the next input.
    Cell { mode: PerCall, exit: Upstream, history: "u a(c1)", version: 1, open: true, unsent: "",
        run: "failed", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) u a" },

    Cell { mode: PerRun, exit: Terminated, history: "u a(c1) t(c1)", version: 1, open: false, unsent: "",
        run: "committed", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) u a" },
    Cell { mode: PerCall, exit: Terminated, history: "u a(c1)", version: 1, open: true, unsent: "t(c1)",
        run: "committed", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) u a" },

    Cell { mode: PerRun, exit: Cancelled, history: "u a(c1) t(c1)", version: 1, open: false, unsent: "",
        run: "cancelled", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) u a" },
    Cell { mode: PerCall, exit: Cancelled, history: "u a(c1) t(c1)", version: 2, open: false, unsent: "",
        run: "cancelled", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) u a" },

    Cell { mode: PerRun, exit: Abandoned, history: "u a(c1) t(c1)", version: 1, open: false, unsent: "",
        run: "cancelled", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) u a" },
    Cell { mode: PerCall, exit: Abandoned, history: "u a(c1) t(c1)", version: 2, open: false, unsent: "",
        run: "cancelled", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) u a" },

    // The next input withdraws the waiting call.
    Cell { mode: PerRun, exit: Parked, history: "", version: 0, open: false, unsent: "",
        run: "parked", calls: "c1 approval", journal: "u a(c1)", then: "u a(c1) t(c1:withdrawn) u a" },
    Cell { mode: PerCall, exit: Parked, history: "u a(c1)", version: 1, open: true, unsent: "",
        run: "parked", calls: "c1 approval", journal: "u a(c1)", then: "u a(c1) t(c1:withdrawn) u a" },

    // The next input waits until the run is finished.
    Cell { mode: PerRun, exit: Killed, history: "", version: 0, open: false, unsent: "",
        run: "interrupted", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) a u a" },
    Cell { mode: PerCall, exit: Killed, history: "u a(c1)", version: 1, open: true, unsent: "",
        run: "interrupted", calls: "c1 done", journal: "u a(c1) t(c1)", then: "u a(c1) t(c1) a u a" },
];

impl Cell {
    fn stored(&self) -> Snapshot {
        Snapshot {
            history: self.history.to_owned(),
            version: self.version,
            open: self.open,
            unsent: self.unsent.to_owned(),
            run: self.run,
            calls: self.calls.to_owned(),
            journal: self.journal.to_owned(),
        }
    }
}

fn tool(exit: Exit) -> Fake {
    match exit {
        ToolError => Fake::failing("tide"),
        Terminated => ending(),
        Parked => Fake::named("tide").with(|spec| spec.approval = Approval::Always),
        Done | Upstream | Cancelled | Abandoned | Killed => Fake::named("tide"),
    }
}

fn ending() -> Fake {
    Fake::doing("tide", |_, _| async {
        Ok(ToolOutput::text("at four").and_terminate())
    })
}

fn second(exit: Exit) -> Option<Step> {
    match exit {
        Done | ToolError => Some(Step::text("at four")),
        Upstream => Some(Step::fails(ErrorKind::Unavailable)),
        Cancelled | Abandoned | Killed => Some(Step::hang()),
        Terminated | Parked => None,
    }
}

async fn fill(stage: &Stage, how: How, cell: &Cell) {
    let Cell { mode, exit, .. } = *cell;
    let name = format!("{} {exit:?} {:?} {how:?}", mode.as_str(), stage.engine);
    let first = stage.process().await;
    let steps = [Step::calls([("c1", "tide", "{}")])].into_iter();
    let client = Arc::new(ScriptedClient::new(steps.chain(second(exit))));
    let tool = tool(exit);
    let agent = Agent::builder(Arc::clone(&client))
        .store(&first.store)
        .tool(tool.clone())
        .persistence(mode)
        .build()
        .unwrap();
    let thread = agent.new_thread();
    let id = thread.id().clone();
    let token = CancellationToken::new();
    let run = agent.run_on(&thread, "when?").cancelled_by(token.clone());
    let running = tokio::spawn(async move { how.finish(run).await });
    match exit {
        Cancelled => {
            client.begun(2).await;
            token.cancel();
            drop(running.await.unwrap());
        }
        Abandoned => {
            client.begun(2).await;
            // The future or the stream is dropped, and with it the caller's interest in the run.
            running.abort();
            drop(running.await);
            agent.settled().await;
        }
        Killed => {
            client.begun(2).await;
            first.kill();
        }
        Done | ToolError | Upstream | Terminated | Parked => {
            drop(running.await.unwrap());
        }
    }
    let next = stage.process().await;
    let stored = snapshot(&next, &id).await;
    assert_eq!(stored, cell.stored(), "{name}");
    if (stage.engine, how) == (Engine::Memory, How::Whole) {
        println!(
            "table matrix {} {exit:?}: {stored}; then [{}]",
            mode.as_str(),
            cell.then
        );
    }

    let client = Arc::new(ScriptedClient::answering(|_| Step::text("yes")));
    let agent = Agent::builder(Arc::clone(&client))
        .store(&next.store)
        .tool(tool.clone())
        .persistence(mode)
        .build()
        .unwrap();
    let thread = agent.open(id.clone()).await.unwrap();
    how.finish(agent.run_on(&thread, "well?")).await.unwrap();
    let after = snapshot(&next, &id).await;
    let closed = (&*after.history, after.open, &*after.unsent);
    assert_eq!(closed, (cell.then, false, ""), "{name}");
    // The tool ran once.
    let runs = usize::from(exit != Parked);
    assert_eq!(tool.runs(), runs, "{name}");
    // What the model was sent is the history up to its answer.
    let shown = short(&client.last_asked().unwrap().messages);
    assert_eq!(format!("{shown} a"), cell.then, "{name}");
}

#[test]
fn every_way_out_of_a_run_leaves_what_the_table_says() {
    for cell in &CELLS {
        everywhere(async |stage, how| fill(stage, how, cell).await);
    }
}

/// A row for `parity = service`: the steps, the history, the unsent results.
struct Equal {
    name: &'static str,
    history: &'static str,
    unsent: &'static str,
    then: &'static str,
}

const EQUAL: [Equal; 3] = [
    Equal {
        name: "done",
        history: "u a(c1) t(c1) a",
        unsent: "",
        then: "u a(c1) t(c1) a u a",
    },
    Equal {
        name: "terminated",
        history: "u a(c1)",
        unsent: "t(c1)",
        then: "u a(c1) t(c1) u a",
    },
    Equal {
        name: "round limit",
        history: "u a(c1) t(c1) a(c2)",
        unsent: "t(c2:limit)",
        then: "u a(c1) t(c1) a(c2) t(c2:limit) u a",
    },
];

fn script(name: &str) -> Vec<Step> {
    let first = Step::calls([("c1", "tide", "{}")]);
    match name {
        "done" => vec![first, Step::text("at four")],
        "terminated" => vec![first],
        _ => vec![
            first,
            Step::text_and_calls("enough", [("c2", "tide", "{}")]),
        ],
    }
}

fn limits(name: &str) -> Limits {
    let rounds = if name == "round limit" { 1 } else { 40 };
    Limits {
        rounds,
        ..Limits::default()
    }
}

#[test]
fn with_parity_the_history_equals_what_a_storing_service_holds() {
    for row in &EQUAL {
        everywhere(async |stage, how| {
            let process = stage.process().await;
            let tool = match row.name {
                "terminated" => ending(),
                _ => Fake::named("tide"),
            };
            let policy = HistoryPolicy {
                parity: Parity::Service,
                ..HistoryPolicy::default()
            };
            let service = Arc::new(StoringService::new(Ids::PerCall, script(row.name)));
            let there = Agent::builder(Arc::clone(&service))
                .store(&process.store)
                .tool(tool.clone())
                .history(policy)
                .limits(limits(row.name))
                .build()
                .unwrap();
            let client = Arc::new(ScriptedClient::new(script(row.name)));
            let here = Agent::builder(Arc::clone(&client))
                .store(&process.store)
                .tool(tool)
                .history(policy)
                .limits(limits(row.name))
                .build()
                .unwrap();
            let theirs = there.new_thread();
            let upstream = "scripted".to_owned();
            theirs.set_owner(Owner::service(upstream)).await.unwrap();
            let ours = here.new_thread();
            for (turn, history, unsent) in [(1, row.history, row.unsent), (2, row.then, "")] {
                how.finish(there.run_on(&theirs, "when?")).await.unwrap();
                how.finish(here.run_on(&ours, "when?")).await.unwrap();
                let held = service.held(&theirs.service_ids()[0].id);
                assert_eq!(short(&held), history, "{} {turn}", row.name);
                for thread in [&ours, &theirs] {
                    let stored = snapshot(&process, thread.id()).await;
                    assert_eq!((&*stored.history, &*stored.unsent), (history, unsent));
                    let opened = process.threads().open(thread.id().clone()).await.unwrap();
                    let messages = opened.history();
                    let stored: Vec<(&Role, &[Content])> = messages
                        .iter()
                        .map(|one| (&one.role, &*one.contents))
                        .collect();
                    let held: Vec<(&Role, &[Content])> =
                        held.iter().map(|one| (&one.role, &*one.contents)).collect();
                    assert_eq!(stored, held, "{} {turn}", row.name);
                }
                if (stage.engine, how, turn) == (Engine::Memory, How::Whole, 1) {
                    println!(
                        "table matrix parity {}: history [{history}] unsent [{unsent}] as the service",
                        row.name
                    );
                }
                service.script().push(Step::text("yes"));
                client.push(Step::text("yes"));
            }
        });
    }
}
