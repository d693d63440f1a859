//! Histories in message stores of the application.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use throughline::agent::{AgentBuilder, RunError};
use throughline::client::Abilities;
use throughline::model::json::RawJson;
use throughline::model::{Message, Role};
use throughline::thread::{MessageStore, MessageStoreError, Owner, Persistence};
use throughline::{Agent, StopReason, Thread};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, Process, everywhere, short};

use crate::threads::snapshot::snapshot;

/// What a shelf does besides storing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelving {
    /// Nothing more.
    Plain,
    /// After each append, keeps only the messages since the last load.
    Reducing,
    /// Each append moves the messages to a new key, and the old one is empty.
    Moving,
}

/// A message store in memory, as an application has one.
#[derive(Clone)]
pub(crate) struct Shelf {
    shelving: Shelving,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    shelves: BTreeMap<String, Vec<Message>>,
    /// Completed appends, and the key that each returned.
    made: BTreeMap<String, Option<RawJson>>,
    /// All calls, in order.
    log: Vec<String>,
    fails: usize,
    moved: usize,
}

impl Shelf {
    pub(crate) fn new(shelving: Shelving) -> Self {
        Self {
            shelving,
            state: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The messages under a key.
    pub(crate) fn under(&self, key: &str) -> String {
        let state = self.state();
        short(state.shelves.get(key).into_iter().flatten())
    }

    pub(crate) fn put(&self, key: &str, messages: impl IntoIterator<Item = Message>) {
        let messages = messages.into_iter().collect();
        self.state().shelves.insert(key.to_owned(), messages);
    }

    /// Makes the next appends fail.
    fn fail(&self, times: usize) {
        self.state().fails = times;
    }

    /// The messages under a key.
    pub(crate) fn messages(&self, key: &str) -> Vec<Message> {
        self.state().shelves.get(key).cloned().unwrap_or_default()
    }

    /// The calls since the last call of this.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    /// The number of distinct completed appends.
    fn appended(&self) -> usize {
        self.state().made.len()
    }
}

#[async_trait]
impl MessageStore for Shelf {
    async fn load(
        &self,
        key: &RawJson,
        budget: Option<u64>,
    ) -> Result<Vec<Message>, MessageStoreError> {
        let mut state = self.state();
        let budget = budget.map_or_else(|| "all".to_owned(), |most| most.to_string());
        state.log.push(format!("load {} {budget}", key.get()));
        Ok(state.shelves.get(key.get()).cloned().unwrap_or_default())
    }

    async fn append(
        &self,
        key: &RawJson,
        messages: &[Message],
        idempotency: &str,
    ) -> Result<Option<RawJson>, MessageStoreError> {
        let mut state = self.state();
        let line = format!("append {} [{}] {idempotency}", key.get(), short(messages));
        state.log.push(line);
        if state.fails > 0 {
            state.fails -= 1;
            return Err("the shelf is being moved".into());
        }
        if let Some(given) = state.made.get(idempotency) {
            return Ok(given.clone());
        }
        let mut shelf = state.shelves.remove(key.get()).unwrap_or_default();
        shelf.extend_from_slice(messages);
        let mut given = None;
        let mut under = key.get().to_owned();
        match self.shelving {
            Shelving::Plain => {}
            Shelving::Reducing => {
                let asked = shelf.iter().rposition(|one| one.role == Role::User);
                shelf.drain(..asked.unwrap_or(0));
            }
            Shelving::Moving => {
                state.moved += 1;
                under = format!(r#"{{"revision":{}}}"#, state.moved);
                given = Some(RawJson::new(&under)?);
            }
        }
        state.shelves.insert(under, shelf);
        state.made.insert(idempotency.to_owned(), given.clone());
        Ok(given)
    }
}

pub(crate) fn on_shelf(key: &str) -> Owner {
    Owner::External {
        store: "shelf".to_owned(),
        key: RawJson::new(key).unwrap(),
    }
}

fn agent(process: &Process, client: &Arc<ScriptedClient>, shelf: &Shelf) -> AgentBuilder {
    Agent::builder(Arc::clone(client))
        .store(&process.store)
        .message_store("shelf", shelf.clone())
        .tool(Fake::named("tide"))
}

fn scripted(steps: impl IntoIterator<Item = Step>) -> Arc<ScriptedClient> {
    let abilities = Abilities {
        window: Some(8_000),
        ..Abilities::of("scripted")
    };
    Arc::new(ScriptedClient::new(steps).with_abilities(abilities))
}

fn one_round() -> [Step; 2] {
    [Step::calls([("c1", "tide", "{}")]), Step::text("at four")]
}

/// The current key of a thread, if it is not the initial one.
pub(crate) fn carried(thread: &Thread) -> Option<String> {
    let state = thread.state();
    let key = state.provider("throughline.key");
    key.map(|key| key.get().to_owned())
}

async fn external(agent: &Agent, key: &str) -> Thread {
    let thread = agent.new_thread();
    thread.set_owner(on_shelf(key)).await.unwrap();
    thread
}

#[test]
fn b221_an_external_history_is_asked_for_before_each_run_and_never_cached() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Reducing);
        let steps = one_round().into_iter();
        let client = scripted(steps.chain([Step::text("yes"), Step::text("no")]));
        let agent = agent(&process, &client, &shelf).build().unwrap();
        let thread = external(&agent, "7").await;
        let id = thread.id().clone();
        let mut runs = Vec::new();
        for input in ["when?", "sure?"] {
            let outcome = how.finish(agent.run_on(&thread, input)).await;
            runs.push(outcome.unwrap().run);
        }
        // The application adds a message: the next run sees it, with the same handle.
        shelf.put("7", [Message::user("summary")]);
        let outcome = how.finish(agent.run_on(&thread, "so?")).await;
        runs.push(outcome.unwrap().run);
        assert_eq!(
            shelf.log(),
            [
                "load 7 8000".to_owned(),
                format!("append 7 [u a(c1) t(c1) a] {}.0", runs[0]),
                "load 7 8000".to_owned(),
                format!("append 7 [u a] {}.0", runs[1]),
                "load 7 8000".to_owned(),
                format!("append 7 [u a] {}.0", runs[2]),
            ]
        );
        let asked: Vec<String> = client
            .asked()
            .iter()
            .map(|asked| short(&asked.messages))
            .collect();
        assert_eq!(asked, ["u", "u a(c1) t(c1)", "u a(c1) t(c1) a u", "u u"]);
        assert_eq!(shelf.under("7"), "u a");
        // Our record has everything that went through us.
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a u a u a");
    });
    // A store that the agent does not know is refused before the call.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = scripted([]);
        let agent = Agent::builder(Arc::clone(&client))
            .store(&process.store)
            .build()
            .unwrap();
        let thread = external(&agent, "7").await;
        let refused = how.finish(agent.run_on(&thread, "hi")).await;
        assert!(matches!(
            refused.unwrap_err().source,
            RunError::UnknownMessageStore { name, .. } if name == "shelf"
        ));
        assert_eq!(client.calls(), 0);
    });
}

#[test]
fn b222_a_new_key_is_the_threads_from_the_publish_on_and_a_repeated_append_is_the_same() {
    for mode in [Persistence::PerRun, Persistence::PerCall] {
        everywhere(async |stage, how| {
            let first = stage.process().await;
            let shelf = Shelf::new(Shelving::Moving);
            let client = scripted([Step::text("hello")].into_iter().chain(one_round()));
            let agent = agent(&first, &client, &shelf)
                .persistence(mode)
                .build()
                .unwrap();
            let thread = external(&agent, "7").await;
            let id = thread.id().clone();
            assert_eq!(carried(&thread), None);
            how.finish(agent.run_on(&thread, "hi")).await.unwrap();
            assert_eq!(carried(&thread).as_deref(), Some(r#"{"revision":1}"#));
            shelf.log();

            first.die_in("publish", Fault::HangBefore);
            let run = agent.run_on(&thread, "when?");
            tokio::spawn(async move { how.finish(run).await });
            first.died().await;
            let before = shelf.log();
            // With one append per call, the second round has a revision of its own.
            let key = match mode {
                Persistence::PerRun => r#"{"revision":2}"#,
                Persistence::PerCall => r#"{"revision":3}"#,
            };
            let published = match mode {
                Persistence::PerRun => ("", r#"{"revision":1}"#),
                Persistence::PerCall => (" u a(c1)", r#"{"revision":1}"#),
            };
            assert_eq!(shelf.under(key), "u a u a(c1) t(c1) a");

            let second = stage.process().await;
            let client = scripted([Step::text("yes")]);
            let agent = self::agent(&second, &client, &shelf).build().unwrap();
            let thread = agent.open(id.clone()).await.unwrap();
            // The key is that of the last publication.
            assert_eq!(carried(&thread).as_deref(), Some(published.1));
            assert_eq!(second.history(&id).await, format!("u a{}", published.0));
            let outcome = how.finish(agent.resume(&thread)).await.unwrap();
            assert_eq!(outcome.stop, StopReason::Done);
            assert_eq!(client.calls(), 0);
            let appends = |log: &[String]| -> BTreeSet<String> {
                let appends = log.iter().filter(|line| line.starts_with("append"));
                appends.cloned().collect()
            };
            assert_eq!(appends(&before), appends(&shelf.log()));
            assert_eq!(
                shelf.appended(),
                if mode == Persistence::PerRun { 2 } else { 3 }
            );
            assert_eq!(shelf.under(key), "u a u a(c1) t(c1) a");
            assert_eq!(carried(&thread).as_deref(), Some(key));
            assert_eq!(second.history(&id).await, "u a u a(c1) t(c1) a");

            how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
            assert_eq!(short(&client.asked()[0].messages), "u a u a(c1) t(c1) a u");
        });
    }
}

#[test]
fn b223_an_append_that_fails_is_made_again_without_a_second_model_call() {
    for (mode, said, stored, calls, appended) in [
        (
            Persistence::PerRun,
            "u a(c1) t(c1) a",
            "history [] v0 unsent [] run parked calls [c1 done] journal [u a(c1) t(c1) a]",
            2,
            1,
        ),
        // The step is published before its append.
        (
            Persistence::PerCall,
            "u a(c1)",
            "history [u a(c1)] v1 open unsent [] run parked calls [c1 planned] journal [u a(c1)]",
            1,
            2,
        ),
    ] {
        everywhere(async |stage, how| {
            let process = stage.process().await;
            let shelf = Shelf::new(Shelving::Plain);
            let client = scripted(one_round().into_iter().chain([Step::text("yes")]));
            let agent = agent(&process, &client, &shelf)
                .persistence(mode)
                .build()
                .unwrap();
            let thread = external(&agent, "7").await;
            let id = thread.id().clone();
            shelf.fail(2);
            let failed = how.finish(agent.run_on(&thread, "when?")).await;
            let failed = failed.unwrap_err();
            assert!(matches!(failed.source, RunError::MessageStore { .. }));
            assert_eq!(short(&failed.outcome().messages), said);
            assert_eq!(snapshot(&process, &id).await.to_string(), stored);
            assert_eq!(client.calls(), calls);
            assert_eq!(shelf.under("7"), "");
            // It fails again.
            let failed = how.finish(agent.resume(&thread)).await;
            assert!(matches!(
                failed.unwrap_err().source,
                RunError::MessageStore { .. }
            ));
            let outcome = how.finish(agent.resume(&thread)).await.unwrap();
            assert_eq!(outcome.stop, StopReason::Done);
            assert_eq!(client.calls(), 2);
            assert_eq!(shelf.under("7"), "u a(c1) t(c1) a");
            assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
            let appends: BTreeSet<String> = shelf
                .log()
                .into_iter()
                .filter(|line| line.starts_with("append"))
                .collect();
            assert_eq!(
                appends.len(),
                appended,
                "the same value each time: {appends:?}"
            );
        });
    }
    // New input instead of resume: the unfinished run is appended first.
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Plain);
        let client = scripted(one_round().into_iter().chain([Step::text("yes")]));
        let agent = agent(&process, &client, &shelf).build().unwrap();
        let thread = external(&agent, "7").await;
        shelf.fail(1);
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        assert_eq!(failed.unwrap_err().outcome().stop, StopReason::Failed);
        how.finish(agent.run_on(&thread, "sure?")).await.unwrap();
        assert_eq!(client.calls(), 3);
        assert_eq!(short(&client.asked()[2].messages), "u a(c1) t(c1) a u");
        assert_eq!(shelf.under("7"), "u a(c1) t(c1) a u a");
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a u a");
    });
}

/// A key that would change if it were parsed and written as values: by its order, and by a number
/// that no float can hold.
const COMPOUND: &str = r#"{"partition":"eu","id":7,"at":12345678901234567890.10}"#;

#[test]
fn b224_a_compound_key_stays_byte_for_byte() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let shelf = Shelf::new(Shelving::Plain);
        let client = scripted([Step::text("hello"), Step::text("yes"), Step::text("no")]);
        let agent = agent(&first, &client, &shelf).build().unwrap();
        let thread = external(&agent, COMPOUND).await;
        let id = thread.id().clone();
        assert_eq!(thread.owner(), on_shelf(COMPOUND));
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        first.kill();

        // Another process, through the thread's JSON.
        let second = stage.process().await;
        let agent = self::agent(&second, &client, &shelf).build().unwrap();
        let text = thread.to_json().await.unwrap();
        let moved = second.threads().from_json(&text).await.unwrap();
        assert_eq!((moved.id(), moved.owner()), (&id, on_shelf(COMPOUND)));
        how.finish(agent.run_on(&moved, "sure?")).await.unwrap();
        assert_eq!(shelf.under(COMPOUND), "u a u a");

        // A thread with its own store has its key in its JSON.
        let own = Thread::new();
        own.set_owner(on_shelf(COMPOUND)).await.unwrap();
        let text = own.to_json().await.unwrap();
        let own = Thread::from_json(&text).await.unwrap();
        assert_eq!(own.owner(), on_shelf(COMPOUND));
        how.finish(agent.run_on(&own, "so?")).await.unwrap();
        assert_eq!(shelf.under(COMPOUND), "u a u a u a");
        let keys: BTreeSet<String> = shelf
            .log()
            .iter()
            .map(|line| line.split_once(' ').unwrap().1.to_owned())
            .map(|rest| rest[..COMPOUND.len().min(rest.len())].to_owned())
            .collect();
        assert_eq!(keys, BTreeSet::from([COMPOUND.to_owned()]));
    });
}

#[test]
fn a_message_store_that_reduces_its_own_history_is_shown_as_it_is() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Reducing);
        let client = scripted((0..4).map(|_| Step::text("yes")));
        let agent = agent(&process, &client, &shelf).build().unwrap();
        let thread = external(&agent, r#""shelf 1""#).await;
        for _ in 0..4 {
            how.finish(agent.run_on(&thread, "more")).await.unwrap();
            assert_eq!(shelf.under(r#""shelf 1""#), "u a");
        }
        // However long the conversation is, the model is sent one turn of it.
        let asked = client.asked().into_iter();
        let asked: Vec<String> = asked.map(|asked| short(&asked.messages)).collect();
        assert_eq!(asked, ["u", "u a u", "u a u", "u a u"]);
        assert_eq!(process.history(thread.id()).await, "u a u a u a u a");
    });
}

#[test]
fn a_message_store_with_a_compound_key_keeps_conversations_apart() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Plain);
        let client = scripted((0..4).map(|_| Step::text("yes")));
        let agent = agent(&process, &client, &shelf).build().unwrap();
        let keys = [
            r#"{"partition":"eu","id":7}"#,
            r#"{"partition":"us","id":7}"#,
        ];
        let threads = [
            external(&agent, keys[0]).await,
            external(&agent, keys[1]).await,
        ];
        for turns in 1..=2 {
            for thread in &threads {
                how.finish(agent.run_on(thread, "more")).await.unwrap();
            }
            let expected = vec!["u a"; turns].join(" ");
            assert_eq!(keys.map(|key| shelf.under(key)), [&*expected, &*expected]);
        }
    });
}

#[test]
fn a_message_store_whose_key_changes_is_followed_from_key_to_key() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let shelf = Shelf::new(Shelving::Moving);
        let client = scripted((0..3).map(|_| Step::text("yes")));
        let agent = agent(&process, &client, &shelf).build().unwrap();
        let mut thread = external(&agent, "7").await;
        let id = thread.id().clone();
        for (revision, history) in [(1, "u a"), (2, "u a u a"), (3, "u a u a u a")] {
            how.finish(agent.run_on(&thread, "more")).await.unwrap();
            let key = format!(r#"{{"revision":{revision}}}"#);
            assert_eq!(carried(&thread), Some(key.clone()));
            assert_eq!(shelf.under(&key), history);
            // Only the new key leads there, and every handle that opens the thread has it.
            thread = agent.open(id.clone()).await.unwrap();
            assert_eq!(carried(&thread), Some(key));
            assert_eq!(thread.owner(), on_shelf("7"));
        }
        assert_eq!(shelf.under("7"), "");
        // A fork continues with the key that was valid where it begins.
        let forked = throughline::store::NewThread::new(process.store.ids().thread());
        let fork = process.threads().fork(id, forked).await.unwrap();
        assert_eq!(carried(&fork).as_deref(), Some(r#"{"revision":3}"#));
    });
}
