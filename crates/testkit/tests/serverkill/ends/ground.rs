//! The servers, their peers, and their store.

use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use throughline_store::{Authority, Run, RunFilter, Store, Tenant, TenantScope};
use throughline_testkit::Scratch;
use throughline_testkit::record::block_on;
use throughline_testkit::serverkill::{Exchange, Request};

use crate::serverkill::approvals::{ChargeServer, Models, Signal};
use crate::serverkill::process::Process;

/// How far each server's clock is ahead of the one before: more than a lease.
const APART: u64 = 10_500;

/// How long a run may take to be settled.
const STUCK: Duration = Duration::from_secs(15);

/// An interpreter with the MCP SDK; prints that the test is skipped if there is none.
#[expect(
    clippy::print_stdout,
    reason = "the test command reads what was skipped"
)]
pub(crate) fn python(test: &str) -> Option<String> {
    let python = std::env::var("THROUGHLINE_PYTHON").unwrap_or_default();
    if python.is_empty() {
        println!("skipped {test}: THROUGHLINE_PYTHON names no Python with the MCP SDK");
        return None;
    }
    Some(python)
}

/// A server on a disk that can be full, a second server on the same store, and their peers.
pub(crate) struct Ground {
    pub(crate) charge_server: ChargeServer,
    pub(crate) models: Models,
    pub(crate) address: String,
    process: Option<Process>,
    second: Option<(Process, String)>,
    variables: Vec<String>,
    upstream: String,
    url: String,
    store: Store,
    scope: TenantScope,
    lives: u64,
    _signals: Receiver<Signal>,
    _scratch: Scratch,
}

impl Ground {
    pub(crate) fn start(python: &str) -> Result<Self, String> {
        let scratch = Scratch::in_memory("serverends");
        let (signal, signals) = channel();
        let charge_server = ChargeServer::start(python, &scratch, signal.clone())?;
        let models = Models::start(&signal);
        let mut urls = models.urls();
        let upstream = urls.find(|(wire, _)| wire.as_str() == "openai-responses");
        let upstream = upstream.ok_or("there is an upstream")?.1;
        drop(urls);
        let url = scratch.sqlite("store.db");
        let tenant = Tenant::new("local").map_err(|error| error.to_string())?;
        let mut ground = Self {
            variables: vec![
                "DISK=orders".to_owned(),
                format!("THROUGHLINE_MCP_BANK_URL={}", charge_server.url),
                "THROUGHLINE_UPSTREAM_OPENAIRESPONSES_KIND=openai-responses".to_owned(),
                format!("THROUGHLINE_UPSTREAM_OPENAIRESPONSES_BASE_URL={upstream}"),
                "THROUGHLINE_UPSTREAM_OPENAIRESPONSES_API_KEY_ENV=UP_KEY".to_owned(),
            ],
            charge_server,
            models,
            address: String::new(),
            process: None,
            second: None,
            upstream,
            store: block_on(Store::open(&url)).map_err(|error| error.to_string())?,
            scope: Authority::assume().scope(tenant),
            url,
            lives: 0,
            _signals: signals,
            _scratch: scratch,
        };
        ground.restart("")?;
        Ok(ground)
    }

    fn process(&mut self, faults: &str) -> Result<(Process, String), String> {
        self.lives += 1;
        let ahead = (self.lives * APART).to_string();
        let mut words = vec![
            "serve",
            &self.url,
            &ahead,
            "openai-responses",
            &self.upstream,
        ];
        words.extend(self.variables.iter().map(String::as_str));
        Process::start(&words, faults)
    }

    /// Kills the server, if it is running, and starts another one on a disk with space.
    pub(crate) fn restart(&mut self, faults: &str) -> Result<(), String> {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
        let (process, address) = self.process(faults)?;
        (self.process, self.address) = (Some(process), address);
        Ok(())
    }

    /// Sends a command to the simulated disk of the server.
    pub(crate) fn order(&mut self, line: &str) -> Result<(), String> {
        let process = self.process.as_mut().ok_or("there is no server")?;
        process.order(line)
    }

    /// Reads a response.
    pub(crate) fn read(&self, id: &str) -> Result<Value, String> {
        let request = Request::get(format!("/v1/responses/{id}"));
        let failed = |error: std::io::Error| format!("{id} cannot be read: {error}");
        let mut answer = Exchange::open(&self.address, &request).map_err(failed)?;
        let body = answer.whole().map_err(failed)?;
        match answer.status {
            200 => serde_json::from_slice(&body).map_err(|error| error.to_string()),
            status => Err(format!("{id} is read with status {status}")),
        }
    }

    /// Waits until a response is settled; returns it, and the milliseconds that it took.
    pub(crate) fn settled(&self, id: &str) -> Result<(Value, u128), String> {
        let began = Instant::now();
        loop {
            let response = self.read(id)?;
            if response["status"] != "in_progress" {
                return Ok((response, began.elapsed().as_millis()));
            }
            if began.elapsed() > STUCK {
                return Err(format!("{id} is stuck: {response}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends a create without reading its answer, and waits until its run has begun.
    pub(crate) fn begin(&self, code: &str) -> Result<TcpStream, String> {
        let request = super::request(code, false);
        let sent = Exchange::send(&self.address, &request).map_err(|error| error.to_string())?;
        let began = Instant::now();
        while self.run(code)?.is_none() {
            if began.elapsed() > STUCK {
                return Err(format!("{code} does not begin"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(sent)
    }

    /// Waits until the model was asked about a case.
    pub(crate) fn model_was_asked(&self, code: &str) -> Result<(), String> {
        let began = Instant::now();
        while self.models.asked(code) == 0 {
            if began.elapsed() > STUCK {
                return Err(format!("the model is not asked about {code}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Waits until the run of a key is settled; returns the milliseconds that it took.
    pub(crate) fn finished(&self, key: &str) -> Result<u128, String> {
        let began = Instant::now();
        loop {
            match self.run(key)? {
                Some(run) if run.state.is_settled() => return Ok(began.elapsed().as_millis()),
                found if began.elapsed() > STUCK => {
                    return Err(format!("{key} is stuck: {found:?}"));
                }
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The run of a key, if it is among the newest.
    fn run(&self, key: &str) -> Result<Option<Run>, String> {
        let name = format!("key:{key}");
        let all = RunFilter::default();
        let runs = self.store.runs(&self.scope, &all, None, 200);
        let runs = block_on(runs).map_err(|error| error.to_string())?.found;
        let mut runs = runs.into_iter();
        Ok(runs.find(|run| run.key.as_deref() == Some(&name)))
    }

    /// Starts another server on the same store, and waits until it has finished the run of a key;
    /// returns how often that was taken over.
    pub(crate) fn second_finishes(&mut self, key: &str) -> Result<u32, String> {
        let mut began = Instant::now();
        loop {
            match self.run(key)? {
                Some(run) if run.state.is_settled() => return Ok(run.attempt),
                Some(_) if self.second.is_none() => {
                    // The run has begun, so that its server is paused or about to be.
                    std::thread::sleep(Duration::from_millis(500));
                    self.second = Some(self.process("")?);
                    began = Instant::now();
                }
                _ if began.elapsed() > STUCK => return Err(format!("{key} is stuck")),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Stops the second server.
    pub(crate) fn leave_second(&mut self) {
        if let Some((mut process, _)) = self.second.take() {
            process.kill();
        }
    }
}
