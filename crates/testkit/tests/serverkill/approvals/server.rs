//! The server under test: its processes in sequence, and its store.

use serde_json::Value;
use throughline_model::Wire;
use throughline_store::{
    Answer, Approval, ApprovalFilter, Authority, Decision, RunId, Store, Tenant, TenantScope,
};
use throughline_testkit::Scratch;
use throughline_testkit::record::block_on;
use throughline_testkit::serverkill::{Exchange, Request};

use super::model::Models;
use crate::serverkill::process::Process;

/// How far each server's clock is ahead of the one before: more than a lease.
const APART: u64 = 10_500;

/// How often a server may die while it starts.
const STARTS: usize = 20;

/// How many approvals are listed to find those of one response; the newest come first.
const NEWEST: usize = 100;

/// The name of an upstream in the configuration.
pub(crate) fn upstream(wire: &Wire) -> String {
    wire.as_str().replace('-', "")
}

/// The server and its store.
pub(crate) struct Server {
    url: String,
    /// Kind and address of the upstream that every worker has.
    first: (String, String),
    variables: Vec<String>,
    process: Option<Process>,
    pub(crate) address: String,
    lives: u64,
    store: Store,
    scope: TenantScope,
}

impl Server {
    pub(crate) fn start(scratch: &Scratch, models: &Models, tools: &str) -> Result<Self, String> {
        let url = scratch.sqlite("store.db");
        let mut variables = vec![
            format!("THROUGHLINE_MCP_BANK_URL={tools}"),
            "THROUGHLINE_MCP_BANK_APPROVAL=charge".to_owned(),
        ];
        for (wire, url) in models.urls() {
            let kind = wire.as_str();
            let name = upstream(wire).to_uppercase();
            variables.extend([
                format!("THROUGHLINE_UPSTREAM_{name}_KIND={kind}"),
                format!("THROUGHLINE_UPSTREAM_{name}_BASE_URL={url}"),
                format!("THROUGHLINE_UPSTREAM_{name}_API_KEY_ENV=UP_KEY"),
            ]);
        }
        let mut urls = models.urls();
        let first = urls
            .next()
            .map(|(wire, url)| (wire.as_str().to_owned(), url));
        let first = first.ok_or("there is an upstream")?;
        let text = |error: throughline_store::Error| error.to_string();
        let store = block_on(Store::open(&url)).map_err(text)?;
        let tenant = Tenant::new("local").map_err(|error| error.to_string())?;
        let mut server = Self {
            url,
            first,
            variables,
            process: None,
            address: String::new(),
            lives: 0,
            store,
            scope: Authority::assume().scope(tenant),
        };
        server.restart("")?;
        Ok(server)
    }

    /// Kills the server, if it is running, and starts another one.
    pub(crate) fn restart(&mut self, faults: &str) -> Result<(), String> {
        self.kill();
        let mut faults = faults;
        for _ in 0..STARTS {
            self.lives += 1;
            let ahead = (self.lives * APART).to_string();
            let (kind, url) = &self.first;
            let mut words = vec!["serve", &self.url, &ahead, kind, url];
            words.extend(self.variables.iter().map(String::as_str));
            match Process::start(&words, faults) {
                Ok((process, address)) => {
                    self.process = Some(process);
                    self.address = address;
                    return Ok(());
                }
                // It takes over unfinished runs as soon as it starts, and a fault can kill it
                // there.
                Err(_) if !faults.is_empty() => faults = "",
                Err(error) => return Err(error),
            }
        }
        Err("the server does not start".to_owned())
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Whether the server died by itself.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.process.as_mut().is_none_or(Process::is_gone)
    }

    /// Reads a response.
    pub(crate) fn read(&self, response: &str) -> Result<Value, String> {
        self.get(&format!("/v1/responses/{response}"))
    }

    /// The input items of a response, oldest first.
    pub(crate) fn input_items(&self, response: &str) -> Result<Value, String> {
        self.get(&format!(
            "/v1/responses/{response}/input_items?order=asc&limit=100"
        ))
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        let request = Request::get(path);
        let failed = |error: std::io::Error| format!("{path} cannot be read: {error}");
        let mut answer = Exchange::open(&self.address, &request).map_err(failed)?;
        let body = answer.whole().map_err(failed)?;
        match answer.status {
            200 => serde_json::from_slice(&body).map_err(|error| error.to_string()),
            status => Err(format!(
                "{path} is read with status {status}: {}",
                String::from_utf8_lossy(&body)
            )),
        }
    }

    /// The approvals that a response requested, in the order of its calls.
    pub(crate) fn approvals(&self, response: &str) -> Result<Vec<Approval>, String> {
        let run: RunId = response
            .parse()
            .map_err(|_| format!("{response} is no id"))?;
        let filter = ApprovalFilter::default();
        let listed = self.store.approvals(&self.scope, &filter, None, NEWEST);
        let mut found = block_on(listed).map_err(|error| error.to_string())?.found;
        found.retain(|approval| approval.call.run == run);
        found.sort_by_key(|approval| (approval.call.step, approval.call.position));
        Ok(found)
    }

    /// Answers an approval without continuing its response, as `approvals answer` does.
    pub(crate) fn answer(
        &self,
        approval: &Approval,
        decision: Decision,
        reason: Option<String>,
    ) -> Result<(), String> {
        let answer = Answer {
            approval: approval.id,
            shown: approval.shown,
            decision,
            by: "the clerk".to_owned(),
            reason,
        };
        let answered = block_on(self.store.answer(&self.scope, &answer));
        answered.map(drop).map_err(|error| error.to_string())
    }
}
