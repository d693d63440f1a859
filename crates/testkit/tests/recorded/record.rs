//! What a store has recorded.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use throughline_model::{Body, Message, Output};
use throughline_store::{
    At, Authority, NodeRef, Run, RunFilter, RunState, Store, Tenant, TenantScope, Thread,
    ThreadFilter,
};
use throughline_testkit::record::block_on;
use throughline_testkit::recorded::{By, Said};

/// A store after its server has ended.
pub(super) struct Record {
    pub(super) store: Store,
    pub(super) scope: TenantScope,
    /// All runs, in the order in which they began.
    pub(super) runs: Vec<Run>,
    /// Their ids, as they stand in ids of messages.
    names: HashSet<String>,
}

impl Record {
    pub(super) fn open(url: &str) -> Result<Self, String> {
        let store = block_on(Store::open(url)).map_err(|error| error.to_string())?;
        let tenant = Tenant::new("local").map_err(|error| error.to_string())?;
        let scope = Authority::assume().scope(tenant);
        let checked = block_on(store.check(&mut |_| {})).map_err(|error| error.to_string())?;
        if let Some(damage) = checked.damage.first() {
            return Err(format!("{damage:?}"));
        }
        let mut runs = Vec::new();
        let mut after = None;
        loop {
            let page = block_on(store.runs(&scope, &RunFilter::default(), after, 500));
            let page = page.map_err(|error| error.to_string())?;
            runs.extend(page.found);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        runs.sort_by_key(|run| run.id);
        let names = runs.iter().map(|run| run.id.to_hex()).collect();
        Ok(Self {
            store,
            scope,
            runs,
            names,
        })
    }

    /// Closes the store, so that its file has all of it.
    pub(super) fn close(self) -> Result<(), String> {
        block_on(self.store.close()).map_err(|error| error.to_string())
    }

    pub(super) fn threads(&self) -> Result<HashMap<String, Thread>, String> {
        let mut threads = HashMap::new();
        let mut after = None;
        loop {
            let filter = ThreadFilter::default();
            let page = block_on(self.store.threads(&self.scope, &filter, after, 500));
            let page = page.map_err(|error| error.to_string())?;
            let named = page
                .found
                .into_iter()
                .map(|one| (one.id.as_str().to_owned(), one));
            threads.extend(named);
            after = page.next;
            if after.is_none() {
                return Ok(threads);
            }
        }
    }

    /// The conversation that a run is the end of; none if it has no answer.
    pub(super) fn conversation(&self, run: &Run) -> Result<Option<Vec<Said>>, String> {
        let Some(node) = run.published else {
            return Ok(None);
        };
        let at = At::Node(NodeRef::Node(node));
        let opened = block_on(self.store.open(&self.scope, &at, 100_000))
            .map_err(|error| error.to_string())?;
        let messages = opened.entries.iter().map(|entry| said(&entry.message));
        messages.collect::<Result<_, _>>().map(Some)
    }

    /// The messages that a run has stored in full.
    pub(super) fn own(&self, run: &Run) -> Result<Vec<Said>, String> {
        let journal =
            block_on(self.store.journal(&self.scope, run.id)).map_err(|error| error.to_string())?;
        // What is said again has the id of what it repeats: the place of an item of another run.
        let this = run.id.to_hex();
        let repeats = |id: &str| {
            let place = id.strip_prefix("msg_").and_then(|rest| rest.get(..32));
            place.is_some_and(|place| place != this && self.names.contains(place))
        };
        let own = journal.entries.iter().filter(|entry| {
            let id = entry.message.id.as_ref().map(ToString::to_string);
            !id.is_some_and(|id| repeats(&id))
        });
        own.map(|entry| said(&entry.message)).collect()
    }

    /// Checks that no message is stored twice, apart from answers that are equal by chance; how many
    /// there are.
    pub(super) fn stored_once(&self) -> Result<usize, String> {
        let mut stored: BTreeMap<Said, usize> = BTreeMap::new();
        for run in &self.runs {
            for said in self.own(run)? {
                *stored.entry(said).or_default() += 1;
            }
        }
        match stored.iter().find(|(_, count)| **count > 1) {
            Some((said, count)) => Err(format!("stored {count} times: {said:?}")),
            None => Ok(stored.len()),
        }
    }

    /// Checks that every run has an answer or says that it has none.
    pub(super) fn is_settled(&self) -> Result<u64, String> {
        let mut missing = 0;
        for run in &self.runs {
            let kind = run.note.as_ref().and_then(|note| {
                let value = note.value();
                value.get("kind")?.as_str().map(Cow::into_owned)
            });
            match (run.state, kind) {
                (RunState::Committed, _) => {}
                (RunState::Failed, Some(_)) => missing += 1,
                _ => return Err(format!("{run:?} does not say what came of it")),
            }
        }
        Ok(missing)
    }
}

fn said(message: &Message) -> Result<Said, String> {
    let mut text = String::new();
    let mut found = None;
    for content in &message.contents {
        match &content.body {
            Body::Text(one) => text.push_str(&one.text),
            Body::ToolCall(call) => {
                let arguments = match &call.arguments {
                    throughline_model::Arguments::Text(text) => text.clone(),
                    throughline_model::Arguments::Json(json) => json.get().to_owned(),
                    other => return Err(format!("{other:?} are no arguments")),
                };
                let value: serde_json::Value =
                    serde_json::from_str(&arguments).map_err(|error| error.to_string())?;
                let at = value["at"].as_str().unwrap_or_default().to_owned();
                found = Some((By::Model, call.call.value().to_owned(), at));
            }
            Body::ToolResult(result) => {
                let text = match &result.output {
                    Output::Text(text) => text.clone(),
                    other => return Err(format!("{other:?} is no result")),
                };
                found = Some((By::Tool, result.call().value().to_owned(), text));
            }
            other => return Err(format!("{other:?} was not said")),
        }
    }
    Ok(match found {
        Some((by, call, text)) => Said {
            by,
            text,
            call: Some(call),
        },
        None if message.role == throughline_model::Role::Assistant => Said::model(text),
        None => Said::user(text),
    })
}
