//! Published SDKs, unmodified, on every vendor and on the built-in model.
//!
//! A family is one SDK in one language. `cargo xtask clients` knows each by the name that stands here.

use std::process::Command;
use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::clients::board::Board;
use crate::clients::extent::{Extent, Report};
use crate::clients::native_api;
use crate::clients::program::{Places, async_openai, claude_code, codex, node, python, run};
use crate::clients::world::{Vendor, World};

/// Run the program of a family on every model, or on those that the environment asks for, and say
/// how many checks passed on each.
fn on_every_model(family: &'static str, program: impl Fn() -> Command) {
    let runtime = Runtime::new().expect("a runtime starts");
    let world = Arc::new(runtime.block_on(World::start()));
    let (orders, server) = Board::listen(&world, runtime.handle()).expect("loopback has a port");
    let places = Places { orders, server };
    let mut names = vec!["demo"];
    names.extend(world.vendors.iter().map(|vendor| vendor.name));
    let mut report = Report {
        family,
        found: Vec::new(),
    };
    for name in Extent::from_environment().of(family, &names) {
        let vendor = world.vendors.iter().find(|vendor| vendor.name == name);
        let model = vendor.map_or(name, |vendor| vendor.model.as_str());
        let found = run(program(), places, model, vendor.map(|vendor| vendor.name));
        report.found.push((name.to_owned(), found));
    }
    report.write();
    println!("{}", report.line());
    let problems = report.found.iter();
    let problems: Vec<&str> = problems
        .filter_map(|(_, it)| it.problem.as_deref())
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    world.vendors.iter().for_each(Vendor::refused_nothing);
}

#[test]
fn openai_for_python_is_served_on_every_vendor() {
    on_every_model("openai-python", || python("openai_sdk.py"));
}

#[test]
fn openai_for_node_is_served_on_every_vendor() {
    on_every_model("openai-node", || node("openai_sdk.mjs"));
}

#[test]
fn openai_agents_is_served_on_every_vendor() {
    on_every_model("openai-agents-python", || python("agents_sdk.py"));
}

#[test]
fn openai_agents_for_node_is_served_on_every_vendor() {
    on_every_model("openai-agents-js", || node("agents_sdk.mjs"));
}

#[test]
fn langchain_openai_is_served_on_every_vendor() {
    on_every_model("langchain", || python("langchain_sdk.py"));
}

#[test]
fn chat_completions_of_openai_for_python_are_served_on_every_vendor() {
    on_every_model("chat-python", || python("chat_sdk.py"));
}

#[test]
fn chat_completions_of_openai_for_node_are_served_on_every_vendor() {
    on_every_model("chat-node", || node("chat_sdk.mjs"));
}

#[test]
fn anthropic_for_python_is_served_on_every_vendor() {
    on_every_model("anthropic-python", || python("anthropic_sdk.py"));
}

#[test]
fn anthropic_for_node_is_served_on_every_vendor() {
    on_every_model("anthropic-node", || node("anthropic_sdk.mjs"));
}

#[test]
fn langchain_without_state_is_served_on_every_vendor() {
    on_every_model("langchain-stateless", || python("langchain_stateless.py"));
}

#[test]
fn ai_version_6_is_served_on_every_vendor() {
    on_every_model("ai6", || node("ai6.mjs"));
}

#[test]
fn ai_version_7_is_served_on_every_vendor() {
    on_every_model("ai7", || node("ai7.mjs"));
}

#[test]
fn agent_framework_is_served_on_every_vendor() {
    on_every_model("agent-framework", || python("agent_framework_sdk.py"));
}

#[test]
fn pydantic_ai_is_served_on_every_vendor() {
    on_every_model("pydantic-ai", || python("pydantic_ai_sdk.py"));
}

#[test]
fn async_openai_is_served_on_every_vendor() {
    on_every_model("async-openai", async_openai);
}

#[test]
fn claude_code_is_served_on_every_vendor() {
    on_every_model("claude-code", claude_code);
}

#[test]
fn codex_is_served_on_every_vendor() {
    on_every_model("codex", codex);
}

#[test]
fn the_native_api_keeps_to_its_document() {
    native_api::check();
}
