//! What a run holds counts towards the budget of the process, whether its events are read or not.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use throughline::agent::AgentBuilder;
use throughline::client::MemoryBudget;
use throughline::{Agent, tool};
use throughline_testkit::scripted::{ScriptedClient, Step};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

const SAID: usize = 1 << 20;

/// Smaller changes are not followed.
const STEP: usize = 64 << 10;

/// What is held while a tool runs after an answer of a mebibyte, and after its result of one.
async fn held_of(change: impl FnOnce(AgentBuilder) -> AgentBuilder, streams: bool) -> Vec<usize> {
    let budget = MemoryBudget::new(64 << 20);
    let held = Arc::<Mutex<Vec<usize>>>::default();
    let (seen, counted) = (Arc::clone(&held), budget.clone());
    let look = tool("look", "Looks.", move |_: Nothing| {
        seen.lock().unwrap().push(counted.held());
        async { "x".repeat(SAID) }
    });
    let call = |id: &str| [(id.to_owned(), "look", "{}")];
    let client = ScriptedClient::new([
        Step::text_and_calls("x".repeat(SAID), call("c1")),
        Step::calls(call("c2")),
        Step::text("done"),
    ]);
    let agent = change(Agent::builder(client).tool(look).memory(&budget));
    let run = agent.build().unwrap().run("go").in_place();
    let mut events = match streams {
        true => run.stream(),
        false => run.unstored(),
    };
    while events.next().await.is_some() {}
    assert_eq!(events.outcome().await.unwrap().text(), "done");
    assert_eq!(budget.held(), 0, "the run is over");
    held.lock().unwrap().clone()
}

#[tokio::test]
async fn answers_and_results_count_until_the_run_is_over() {
    for streams in [true, false] {
        for whole in [true, false] {
            let change = |agent: AgentBuilder| match whole {
                true => agent.whole_answers(),
                false => agent,
            };
            let held = held_of(change, streams).await;
            let [answer, results] = held[..] else {
                panic!("two calls: {held:?}");
            };
            let which = format!("streams {streams}, whole {whole}: {held:?}");
            assert!((4 * SAID - STEP..6 * SAID).contains(&answer), "{which}");
            assert!((8 * SAID - STEP..12 * SAID).contains(&results), "{which}");
        }
    }
}
