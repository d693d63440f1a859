//! Published SDKs, unmodified, on every vendor and on the built-in model.

use std::process::Command;
use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::board::Board;
use crate::program::{Places, node, python, run};
use crate::world::{Vendor, World};

/// Run a program on every model, and say how many checks passed on each.
fn on_every_model(program: impl Fn() -> Command) {
    let runtime = Runtime::new().expect("a runtime starts");
    let world = Arc::new(runtime.block_on(World::start()));
    let (orders, server) = Board::listen(&world, runtime.handle()).expect("loopback has a port");
    let places = Places { orders, server };
    let mut models = vec![("demo", "demo", None)];
    let vendors = world.vendors.iter();
    models.extend(vendors.map(|vendor| (vendor.name, vendor.model.as_str(), Some(vendor.name))));
    let (mut sdk, mut counts, mut wrong) = (String::new(), Vec::new(), Vec::new());
    for (name, model, vendor) in models {
        match run(program(), places, model, vendor) {
            Ok(found) => {
                counts.push(format!("{name}={}", found.passed));
                sdk = found.sdk;
            }
            Err(problem) => wrong.push(problem),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.vendors.iter().for_each(Vendor::refused_nothing);
    println!("campaign client {sdk}: {}", counts.join(" "));
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
