//! Approvals over HTTP: calls of one model response whose ids repeat, are missing or differ; every
//! answer to each of them; and servers that are killed before and during the answers.
//!
//! The tool is that of an MCP server made with the official SDK, which logs each execution. The
//! upstreams are in the test, the server is a process, and the test also reads its store directly.

mod campaign;
mod case;
mod charge_server;
mod check;
mod client;
mod counts;
mod model;
mod server;

use std::sync::mpsc::channel;

use throughline_testkit::{Rng, Scratch, property};

use campaign::Campaign;
use case::{Case, SLOTS};
pub(crate) use charge_server::{ChargeServer, Signal};
use counts::Counts;
pub(crate) use model::{Models, Opening, Outage};
use server::Server;

const NAME: &str = "r25_over_http_each_answer_runs_its_own_call_once_and_no_other";

/// R25: answers over HTTP, with every upstream, in any order, in one create or several, by branches
/// that race or are late, across kills and retries. The approved calls run, each once, and items,
/// approvals and the next model request have each call's outcome at its own position.
#[test]
fn r25_over_http_each_answer_runs_its_own_call_once_and_no_other() {
    let python = std::env::var("THROUGHLINE_PYTHON").unwrap_or_default();
    if python.is_empty() {
        println!("skipped {NAME}: THROUGHLINE_PYTHON names no Python with the MCP SDK");
        return;
    }
    let mut started = None;
    property("r25 http approvals", SLOTS, |rng: &mut Rng, size| {
        let campaign = match &mut started {
            Some(campaign) => campaign,
            empty => empty.insert(set_up(&python)?),
        };
        let case = Case::generate(rng, case::slot(size));
        campaign
            .run(&case)
            .map_err(|error| format!("{case:?}: {error}"))
    });
    let Some(mut campaign) = started else {
        return;
    };
    let refusal = campaign.models.refusal();
    assert_eq!(
        campaign.models.refused(),
        0,
        "the upstream refused: {refusal:?}"
    );
    campaign
        .charge_server
        .charges("")
        .expect("the log can be read");
    campaign.counts.print(campaign.charge_server.count);
    let void = campaign.counts.is_void(campaign.charge_server.count);
    assert!(void.is_none(), "void: {void:?}");
}

fn set_up(python: &str) -> Result<Campaign, String> {
    let scratch = Scratch::in_memory("serverapprovals");
    let (signal, signals) = channel();
    let charge_server = ChargeServer::start(python, &scratch, signal.clone())?;
    let models = Models::start(&signal);
    let server = Server::start(&scratch, &models, &charge_server.url)?;
    Ok(Campaign {
        charge_server,
        models,
        server,
        signal,
        signals,
        counts: Counts::default(),
        foreign: None,
        creates: 0,
        _scratch: scratch,
    })
}
