//! The native API under schemathesis, which makes requests from its OpenAPI document and holds every
//! answer against it.

use serde_json::{Value, json};
use throughline::store::{ApprovalFilter, NewThread, RunFilter, Store, TenantScope, ThreadId};
use throughline::{Agent, Demo, Threads, tool};
use throughline_server::{Config, Flags, Server, Sources};
use throughline_testkit::Scratch;
use tokio::runtime::Runtime;

use crate::clients::extent::{Extent, Report};
use crate::clients::program::{python, run_command};

/// Examples for each operation and each phase of the tester: in every test run, and in full.
const FEW: u64 = 10;
const MANY: u64 = 400;

/// In full it goes on for so many seconds.
const SECONDS: u64 = 300;

/// Threads, runs and approvals that requests can name. The tester settles and deletes the spare ones.
async fn seed(store: &Store) -> Value {
    let threads = Threads::of(store);
    let scope = TenantScope::local();
    let open = tool("open_sluice", "Opens the sluice.", || async { "open" });
    let agent = Agent::builder(Demo::new())
        .threads(&threads)
        .tool(open.needs_approval())
        .build()
        .unwrap();
    let mut named = Vec::new();
    let mut spare = Vec::new();
    for number in 0..12 {
        let id = ThreadId::new(&format!("thread-{number}")).unwrap();
        let thread = threads.make(NewThread::new(id.clone()));
        agent.run_on(&thread, "The tide is at four.").await.unwrap();
        if number % 3 == 0 {
            // It waits for approval.
            agent.run_on(&thread, "use open_sluice").await.unwrap();
        }
        match number < 6 {
            true => named.push(id.to_string()),
            false => spare.push(id.to_string()),
        }
    }
    let runs = store.runs(&scope, &RunFilter::default(), None, 100).await;
    let runs = runs.unwrap().found;
    let is_spare = |thread: &str| spare.iter().any(|one| one == thread);
    let (spare_runs, runs): (Vec<_>, Vec<_>) =
        runs.iter().partition(|run| is_spare(run.thread.as_str()));
    let ids = |runs: &[&throughline::store::Run]| -> Vec<String> {
        runs.iter().map(|run| run.id.to_string()).collect()
    };
    let filter = ApprovalFilter::default();
    let approvals = store.approvals(&scope, &filter, None, 100).await.unwrap();
    let approvals = approvals.found.iter().map(|one| one.id.to_string());
    // Names of every kind: a branch is named by its run or by its node.
    let nodes = runs.iter().filter_map(|run| run.published);
    let mut threads = named;
    threads.extend(nodes.map(|node| node.to_string()));
    threads.push(runs[0].id.to_string());
    json!({
        "thread": threads,
        "run": ids(&runs),
        "approval": approvals.collect::<Vec<_>>(),
        "number": ["1", "2"],
        "spare_thread": spare,
        "spare_run": ids(&spare_runs),
    })
}

async fn start(store: &Store, scratch: &Scratch) -> Server {
    let config = Config::load(&Sources {
        flags: Flags {
            listen: Some("127.0.0.1:0".to_owned()),
            store: Some(scratch.sqlite("store.db")),
        },
        ..Sources::default()
    });
    let server = Server::builder(config.unwrap()).store(store.clone());
    server.serve().await.unwrap()
}

/// Run the tester; in a test run with few examples, else for minutes.
pub(crate) fn check() {
    let runtime = Runtime::new().unwrap();
    let scratch = Scratch::in_memory("native-api");
    let (server, ids) = runtime.block_on(async {
        let store = Store::open(&scratch.sqlite("store.db")).await.unwrap();
        let ids = seed(&store).await;
        (start(&store, &scratch).await, ids)
    });
    let mut command = python("native_api.py");
    command
        .arg("--base-url")
        .arg(format!("http://{}", server.address))
        .arg("--ids")
        .arg(ids.to_string());
    let (seed, examples) = match Extent::from_environment() {
        Extent::Seeded(seed) => (seed, FEW),
        Extent::Full | Extent::Named(_) => {
            command.arg("--seconds").arg(SECONDS.to_string());
            (0, MANY)
        }
    };
    command
        .arg("--seed")
        .arg((seed % 1_000_000).to_string())
        .arg("--examples")
        .arg(examples.to_string());
    let found = run_command(command, "native");
    runtime.block_on(async {
        server.close();
        server.join().await;
    });
    let report = Report {
        family: "native-api",
        found: vec![("document".to_owned(), found)],
    };
    report.write();
    println!("{}", report.line());
    let problem = report
        .found
        .iter()
        .find_map(|(_, it)| it.problem.as_deref());
    assert_eq!(problem, None);
}
