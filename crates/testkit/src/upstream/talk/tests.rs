use std::sync::Arc;

use futures_util::StreamExt;
use throughline::{Agent, ChatClient, Demo, RunEvent, tool};
use throughline_model::Wire;

use super::talk;
use crate::loopkill::{WIRES, ask};
use crate::upstream::{Gate, Upstream};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Port {
    port: String,
}

fn agent(client: Arc<dyn ChatClient>) -> Agent {
    let tide = tool(
        "get_tide",
        "When the tide turns.",
        |port: Port| async move { format!("04:12 in {}", port.port) },
    );
    Agent::builder(client)
        .instructions("Answer briefly.")
        .tool(tide)
        .build()
        .expect("an agent can be made")
}

async fn upstream(wire: &Wire, gate: &Gate) -> (Upstream, Arc<dyn ChatClient>) {
    let upstream = Upstream::start(wire.clone(), talk(wire, gate)).await;
    let url = match wire {
        Wire::Foundry => upstream.project(),
        _ => upstream.base_url(),
    };
    let client = ask(wire, &url).expect("a client can be made");
    (upstream, client)
}

/// The answers to a few turns of one conversation.
async fn conversation(client: Arc<dyn ChatClient>) -> Vec<String> {
    let agent = agent(client);
    let thread = agent.new_thread();
    let mut answers = Vec::new();
    for said in [
        "The tide turns at ten.",
        "use get_tide with port=Hull",
        "What did I say first?",
        "How many messages?",
    ] {
        let outcome = agent.run_on(&thread, said).await;
        answers.push(outcome.map_or_else(|failed| failed.to_string(), |done| done.text()));
    }
    answers
}

#[tokio::test]
async fn one_conversation_reads_the_same_behind_every_vendor() {
    let built_in = conversation(Arc::new(Demo::new())).await;
    let wanted = [
        r#"You said: "The tide turns at ten.""#,
        "get_tide says: 04:12 in Hull",
        r#"You first said: "The tide turns at ten.""#,
        "There are 9 messages so far, 4 of them yours.",
    ];
    assert_eq!(built_in, wanted);
    for wire in WIRES {
        let (upstream, client) = upstream(&wire, &Gate::default()).await;
        assert_eq!(conversation(client).await, wanted, "{wire:?}");
        assert_eq!(upstream.counts().refused, 0, "{wire:?}");
    }
}

#[tokio::test]
async fn an_answer_waits_in_its_middle_until_the_gate_opens() {
    for wire in WIRES {
        let gate = Gate::default();
        gate.close();
        let (upstream, client) = upstream(&wire, &gate).await;
        let agent = agent(client);
        let thread = agent.new_thread();
        let said = "hold: The tide turns at ten, and the berth is free.";
        let mut stream = agent.run_on(&thread, said).stream();
        let mut told = String::new();
        while let Some(event) = stream.next().await {
            if let RunEvent::Text { delta, .. } = event {
                told.push_str(&delta);
                // Half of the answer arrives before the gate, so this is reached while it is
                // closed.
                gate.open();
            }
        }
        let wanted = r#"You said: "The tide turns at ten, and the berth is free.""#;
        assert_eq!(told, wanted, "{wire:?}");
        assert_eq!(upstream.counts().refused, 0, "{wire:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_made_step_by_step_has_a_round_of_calls_for_each_step() {
    for wire in WIRES {
        let (upstream, client) = upstream(&wire, &Gate::default()).await;
        let agent = agent(client);
        let thread = agent.new_thread();
        let asked = "step by step: use get_tide with port=Hull; use get_tide with port=Goole";
        let outcome = agent.run_on(&thread, asked).await;
        let answer = outcome.map_or_else(|failed| failed.to_string(), |done| done.text());
        assert_eq!(answer, "get_tide says: 04:12 in Goole", "{wire:?}");
        let counts = upstream.counts();
        assert_eq!((counts.requests, counts.refused), (3, 0), "{wire:?}");
    }
}
