//! Published SDKs, unmodified, on every vendor and on the built-in model.

use std::process::Command;
use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::board::Board;
use crate::program::{Places, node, python, run};
use crate::world::World;

/// Run a program on every model, and say how many checks passed on each.
fn on_every_model(program: impl Fn() -> Command) {
    let runtime = Runtime::new().expect("a runtime starts");
    let world = Arc::new(runtime.block_on(World::start()));
    let (orders, server) = Board::listen(&world, runtime.handle()).expect("loopback has a port");
    let places = Places { orders, server };
    let mut counts = Vec::new();
    let built_in = run(program(), places, "demo", None);
    counts.push(format!("demo={}", built_in.passed));
    for vendor in &world.vendors {
        let found = run(program(), places, &vendor.model, Some(vendor.name));
        counts.push(format!("{}={}", vendor.name, found.passed));
        vendor.refused_nothing();
    }
    println!("campaign client {}: {}", built_in.sdk, counts.join(" "));
}

#[test]
fn openai_for_python_is_served_on_every_vendor() {
    on_every_model(|| python("openai_sdk.py"));
}

#[test]
fn openai_agents_is_served_on_every_vendor() {
    on_every_model(|| python("agents_sdk.py"));
}

#[test]
fn langchain_openai_is_served_on_every_vendor() {
    on_every_model(|| python("langchain_sdk.py"));
}

#[test]
fn openai_for_node_is_served_on_every_vendor() {
    on_every_model(|| node("openai_sdk.mjs"));
}
