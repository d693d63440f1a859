//! Long tool histories are compacted in views, and complete in the record.

use std::sync::Arc;

use throughline::agent::Compaction;
use throughline::client::{ChatRequest, ClientExt, Compacts, HistoryOwner, View};
use throughline::compact::{Epoch, Policy, Report, ToolHistory, UnchangedReason};
use throughline::model::json::{self, RawJson};
use throughline::model::{
    Body, CallId, Content, Message, Outcome as Ended, Output, Role, Settings, Source, ToolCall,
    ToolChoice,
};
use throughline::store::At;
use throughline::thread::{Owner, Persistence};
use throughline::tool::ToolOutput;
use throughline::{Agent, ChatClient, Outcome, RunEvent};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{Asked, Ids, ScriptedClient, Step, StoringService};
use throughline_testkit::stage::{Fake, How, Process, everywhere, result_text};

/// About 1,500 tokens that differ from call to call.
pub(crate) fn long(call: usize) -> String {
    let line =
        |no: usize| format!("line {no} of file_{call}.rs defines fn harbour_{call}_{no}()\n");
    (0..80).map(line).collect()
}

/// A tool with long answers.
pub(crate) fn reader() -> Fake {
    Fake::doing("read_file", |arguments, _| async move {
        let digits = arguments.get().chars().filter(char::is_ascii_digit);
        let file: String = digits.collect();
        Ok(ToolOutput::text(long(file.parse().unwrap_or(0))))
    })
}

pub(crate) fn reads(call: usize) -> Step {
    let arguments = format!(r#"{{"path":"/src/file_{call}.rs"}}"#);
    Step::calls([(format!("c{call}"), "read_file", arguments)])
}

/// A model that reads one file after another, `rounds` of them in each turn.
pub(crate) fn model(rounds: usize) -> ScriptedClient {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    ScriptedClient::answering(move |_| {
        let no = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        match no % (rounds + 1) {
            last if last == rounds => Step::text(format!("read {rounds} files")).without_usage(),
            _ => reads(no).without_usage(),
        }
    })
}

fn agent(
    client: &Arc<ScriptedClient>,
    process: &Process,
    mode: Persistence,
    compaction: impl Into<Compaction>,
) -> Agent {
    Agent::builder(Arc::clone(client))
        .store(&process.store)
        .persistence(mode)
        .compaction(compaction)
        .tool(reader())
        .build()
        .unwrap()
}

/// What each call was sent, as text.
pub(crate) fn given(client: &ScriptedClient) -> Vec<Vec<String>> {
    let asked = client.asked().into_iter();
    asked
        .map(|asked| asked.messages.iter().map(Message::to_json).collect())
        .collect()
}

pub(crate) fn is_prefix(one: &[String], next: &[String]) -> bool {
    next.len() >= one.len() && one.iter().zip(next).all(|(one, next)| one == next)
}

pub(crate) fn digests(asked: &[Message]) -> usize {
    let summary = |one: &&Message| one.source == Some(Source::Summary);
    asked.iter().filter(summary).count()
}

/// The stored record, byte for byte.
async fn record(process: &Process, outcome: &Outcome) -> Vec<String> {
    let at = At::from(outcome.thread.clone());
    let thread = process.threads().open(at).await.unwrap();
    thread.history().iter().map(|one| one.to_json()).collect()
}

#[test]
fn b166_compaction_is_decided_before_each_call_alike_in_both_modes() {
    everywhere(async |stage, how| {
        let mut shown = Vec::new();
        for mode in [Persistence::PerRun, Persistence::PerCall] {
            let process = stage.process().await;
            let client = Arc::new(model(14));
            let agent = agent(&client, &process, mode, Compaction::default());
            let thread = agent.new_thread();
            let outcome = how.finish(agent.run_on(&thread, "read them all"));
            let outcome = outcome.await.unwrap();
            // In one run, between its rounds.
            let asked = client.asked();
            let at = asked.iter().position(|one| digests(&one.messages) > 0);
            assert_eq!(asked.len(), 15);
            assert!(at.is_some_and(|at| (7..14).contains(&at)), "{at:?}");
            let report = outcome.compaction.unwrap();
            assert!(report.epoch >= 1, "{report}");
            // Message ids are those of their run, and are not sent to models.
            let texts = |one: &Message| format!("{:?} {:?}", one.role, one.contents);
            let texts =
                |asked: &Asked| -> Vec<String> { asked.messages.iter().map(texts).collect() };
            shown.push(asked.iter().map(texts).collect::<Vec<_>>());
        }
        assert_eq!(shown[0], shown[1]);
    });
}

#[test]
fn b166_a_service_that_keeps_the_conversation_is_left_alone_and_the_report_says_so() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let steps = (0..20).map(|no| match no {
            19 => Step::text("read"),
            _ => reads(no).without_usage(),
        });
        let service = Arc::new(StoringService::new(Ids::PerCall, steps));
        let agent = Agent::builder(Arc::clone(&service))
            .store(&process.store)
            .compaction(Policy::with_budget(4_000))
            .tool(reader())
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let owner = Owner::service("scripted");
        thread.set_owner(owner).await.unwrap();
        let outcome = how.finish(agent.run_on(&thread, "read them all"));
        let outcome = outcome.await.unwrap();
        let report = outcome.compaction.unwrap();
        assert_eq!(report.stayed, Some(UnchangedReason::Service));
        let asked = service.script().asked();
        assert!(asked.iter().all(|one| digests(&one.messages) == 0));
    });
}

#[test]
fn b170_the_record_is_the_same_and_one_switch_shows_it_again() {
    everywhere(async |stage, how| {
        let mut records = Vec::new();
        for compaction in [Compaction::Off, Compaction::default()] {
            let process = stage.process().await;
            let client = Arc::new(model(12));
            let compacts = compaction != Compaction::Off;
            let agent = agent(&client, &process, Persistence::PerRun, compaction);
            let thread = agent.new_thread();
            let outcome = how.finish(agent.run_on(&thread, "read them all"));
            let outcome = outcome.await.unwrap();
            let texts: Vec<String> = thread
                .history()
                .iter()
                .map(|one| format!("{:?} {:?}", one.role, one.contents))
                .collect();
            records.push(texts);
            let stored = record(&process, &outcome).await;
            assert_eq!(stored.len(), 26);
            assert_eq!(outcome.compaction.is_some(), compacts);
            if !compacts {
                continue;
            }
            let report = outcome.compaction.clone().unwrap();
            assert!(
                report.epoch > 0 && report.tokens_after < 30_000,
                "{report:?}"
            );
            // The full history, for a run that requests it.
            let full = Agent::builder(Arc::clone(&client))
                .compaction(Compaction::Off)
                .tool(reader())
                .build()
                .unwrap();
            client.push(Step::text("I see everything"));
            let opened = process
                .threads()
                .open(At::from(outcome.thread.clone()))
                .await
                .unwrap();
            how.finish(full.run_on(&opened, "and now?")).await.unwrap();
            let last = client.last_asked().unwrap();
            assert_eq!(digests(&last.messages), 0);
            assert_eq!(last.messages.len(), 27);
            // An agent with compaction continues with its epoch.
            client.push(Step::text("I see less"));
            how.finish(agent.run_on(&opened, "and again?"))
                .await
                .unwrap();
            assert!(digests(&client.last_asked().unwrap().messages) > 0);
            // The stored record did not change.
            let after = record(&process, &outcome).await;
            assert_eq!(after[..26], stored[..]);
        }
        assert_eq!(records[0], records[1]);
    });
}

/// The reports of compactions during a run.
async fn told(agent: &Agent, thread: &throughline::Thread) -> Vec<Report> {
    use futures_util::StreamExt as _;
    let mut events = agent.run_on(thread, "read on").stream();
    let mut reports = Vec::new();
    while let Some(event) = events.next().await {
        if let RunEvent::Compacted { report, .. } = event {
            reports.push(report);
        }
    }
    events.outcome().await.unwrap();
    reports
}

#[test]
fn b174_each_request_starts_with_the_one_before_between_epochs_and_across_processes() {
    everywhere(async |stage, how| {
        if how != How::ALL[0] {
            // The reader of events needs a stream in any case.
            return;
        }
        let client = Arc::new(model(3));
        let mut epochs = 0;
        let mut thread_id: Option<throughline::store::ThreadId> = None;
        let mut first_of_turn = Vec::new();
        for turn in 0..10 {
            // Every turn in a process of its own: the view comes from the record and the epoch.
            let process = stage.process().await;
            let agent = agent(
                &client,
                &process,
                Persistence::PerRun,
                Compaction::default(),
            );
            let thread = match &thread_id {
                None => agent.new_thread(),
                Some(id) => process.threads().open(At::from(id.clone())).await.unwrap(),
            };
            first_of_turn.push(client.calls());
            let reports = told(&agent, &thread).await;
            epochs += reports.len();
            thread_id = Some(thread.id().clone());
            assert_eq!(client.calls(), 4 * (turn + 1));
        }
        let given = given(&client);
        let broken: Vec<usize> = (1..given.len())
            .filter(|at| !is_prefix(&given[at - 1], &given[*at]))
            .collect();
        assert!(epochs >= 1, "an epoch was needed");
        assert_eq!(broken.len(), epochs, "{broken:?} of {first_of_turn:?}");
    });
}

#[test]
fn a_branch_has_the_epoch_that_held_where_it_began_and_no_other() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = Arc::new(model(4));
        let agent = agent(
            &client,
            &process,
            Persistence::PerRun,
            Compaction::default(),
        );
        let thread = agent.new_thread();
        let mut runs = Vec::new();
        for _ in 0..4 {
            let outcome = how.finish(agent.run_on(&thread, "read on"));
            runs.push(outcome.await.unwrap());
        }
        let epoch = |outcome: &Outcome| outcome.compaction.as_ref().map_or(0, |one| one.epoch);
        assert!(epoch(&runs[0]) == 0 && epoch(&runs[3]) > 0);
        // Before the epoch was made, and after.
        for (run, folded) in [(0, false), (3, true)] {
            let at = At::from(runs[run].run);
            let branch = process.threads().open(at).await.unwrap();
            client.push(Step::text("here").without_usage());
            how.finish(agent.run_on(&branch, "where am I?"))
                .await
                .unwrap();
            let asked = client.last_asked().unwrap();
            assert_eq!(digests(&asked.messages) > 0, folded, "after run {run}");
        }
    });
}

#[test]
fn b165_what_a_vendor_bills_scales_later_estimates() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let mut estimates = Vec::new();
        for factor in [100, 130] {
            // The same conversation, billed differently.
            let asked = std::sync::atomic::AtomicUsize::new(0);
            let client = ScriptedClient::answering(move |given| {
                let no = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let units = given
                    .messages
                    .iter()
                    .map(throughline::compact::tokens::units);
                let units: u64 = units.map(u64::from).sum();
                let step = match no {
                    8 => Step::text("read"),
                    _ => reads(no),
                };
                step.with_usage(units * factor / 100, 10)
            });
            let client = Arc::new(client);
            let policy = Policy::with_budget(30_000);
            let agent = agent(&client, &process, Persistence::PerRun, policy);
            let thread = agent.new_thread();
            let outcome = how.finish(agent.run_on(&thread, "read"));
            let report = outcome.await.unwrap().compaction.unwrap();
            assert_eq!(report.stayed, Some(UnchangedReason::Within));
            estimates.push(report.tokens_before as f64);
        }
        let ratio = estimates[1] / estimates[0];
        assert!((1.25..1.35).contains(&ratio), "{estimates:?}");
    });
}

/// What a model is sent of a record with an epoch: these two values determine it.
fn shown(record: &[Arc<Message>], kept: Option<&RawJson>) -> Vec<String> {
    let mut history = ToolHistory::new(Policy::default());
    let mut next = 1;
    for message in record {
        history.push(next, Arc::clone(message));
        let results = message.contents.iter();
        let results = results.filter(|one| one.as_tool_result().is_some());
        next += (results.count() as u64).max(1);
    }
    if let Some(kept) = kept {
        let value = json::parse(kept.get()).unwrap();
        let epoch = RawJson::of(value.get("epoch").unwrap());
        assert!(history.install(Epoch::from_json(epoch.get()).unwrap()));
    }
    history.view().iter().map(|one| one.to_json()).collect()
}

#[test]
fn b178_a_crash_while_an_epoch_is_written_leaves_the_old_one_or_the_new_one() {
    let methods = ["begin", "step", "intend", "results", "publish"];
    let faults = [Fault::HangBefore, Fault::HangAfter];
    let died = std::sync::atomic::AtomicUsize::new(0);
    let (old, new) = (
        std::sync::atomic::AtomicUsize::new(0),
        std::sync::atomic::AtomicUsize::new(0),
    );
    everywhere(async |stage, how| {
        for mode in [Persistence::PerRun, Persistence::PerCall] {
            for (method, fault) in methods
                .iter()
                .flat_map(|one| faults.map(|fault| (*one, fault)))
            {
                let first = stage.process().await;
                let client = Arc::new(model(5));
                let writer = agent(&client, &first, mode, Compaction::default());
                let thread = writer.new_thread();
                let id = thread.id().clone();
                let before = how.finish(writer.run_on(&thread, "read")).await.unwrap();
                assert_eq!(before.compaction.map_or(0, |report| report.epoch), 0);
                // The second turn makes an epoch, and dies.
                first.die_in(method, fault);
                let run = writer.run_on(&thread, "read on");
                let work = tokio::spawn(async move { how.finish(run).await.map(drop) });
                first.died().await;
                died.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                work.abort();
                let second = stage.process().await;
                let reader = agent(&client, &second, mode, Compaction::default());
                let thread = second.threads().open(At::from(id)).await.unwrap();
                match thread.state().compaction() {
                    None => &old,
                    Some(_) => &new,
                }
                .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                how.finish(reader.run_on(&thread, "go on")).await.unwrap();
                let record = thread.history();
                let state = thread.state();
                assert!(state.compaction().is_some());
                let expected = shown(&record[..record.len() - 1], state.compaction());
                let last = given(&client).pop().unwrap();
                assert_eq!(last, expected, "{method} {fault:?} {mode:?}");
            }
        }
    });
    println!("table b178 died={died:?} old={old:?} new={new:?} mixed=0");
    assert!(old.into_inner() > 0 && new.into_inner() > 0);
}

#[test]
fn what_was_digested_is_one_call_away() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = Arc::new(model(12));
        let agent = Agent::builder(Arc::clone(&client))
            .store(&process.store)
            .tool(reader())
            .recall_tools()
            .build()
            .unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "read them all"))
            .await
            .unwrap();
        // The number in the digest of the first read.
        let line = |asked: &Asked| {
            let digest = asked
                .messages
                .iter()
                .find(|one| one.source == Some(Source::Summary));
            let text = digest.unwrap().text();
            let line = text.lines().find(|line| line.contains("/src/file_0.rs"));
            let number = line.unwrap().rsplit_once('#').unwrap().1;
            number.trim_end_matches(']').to_owned()
        };
        client.push(Step::with(move |asked| {
            let arguments = format!(r#"{{"seq":{}}}"#, line(asked));
            Step::calls([("e1", "expand", arguments)])
        }));
        client.push(Step::calls([(
            "r1",
            "recall",
            r#"{"query":"harbour_3_79"}"#,
        )]));
        client.push(Step::calls([("e2", "expand", r#"{"seq":999}"#)]));
        client.push(Step::text("found"));
        let outcome = how.finish(agent.run_on(&thread, "look again"));
        let outcome = outcome.await.unwrap();
        let whole = result_text(&outcome.messages, "e1");
        assert!(whole.contains(long(0).trim_end()), "{whole}");
        let found = result_text(&outcome.messages, "r1");
        assert!(
            found.starts_with('#') && found.contains("harbour_3_79"),
            "{found}"
        );
        let missing = result_text(&outcome.messages, "e2");
        assert!(
            missing.contains("999") || missing.contains("failed"),
            "{missing}"
        );
    });
}

#[tokio::test]
async fn a_layer_compacts_for_applications_that_store_conversations_themselves() {
    let inner = Arc::new(ScriptedClient::answering(|_| {
        Step::text("ok").without_usage()
    }));
    let client = Arc::clone(&inner).layer(Compacts::new(Policy::default()));
    let mut view = View::new([Message::user("read them all")]);
    let settings = Settings::default();
    let choice = ToolChoice::Auto;
    let mut epochs = 0;
    for call in 0..30 {
        let id = CallId::natural(&format!("c{call}")).unwrap();
        let asked = format!(r#"{{"path":"/src/file_{call}.rs"}}"#);
        let asked = ToolCall::function(id, "read_file", asked);
        let answer = asked.answer(Ended::Ok, Output::Text(long(call)));
        let asked = Content::new(Body::ToolCall(asked));
        let answer = Content::new(Body::ToolResult(answer));
        view.push(Message::new(Role::Assistant, vec![asked]));
        view.push(Message::new(Role::Tool, vec![answer]));
        let request = ChatRequest {
            model: None,
            instructions: None,
            view: &view,
            tools: &[],
            choice: &choice,
            settings: &settings,
            history_owner: HistoryOwner::Caller,
            persist: None,
            losses: None,
        };
        client.respond(&request).await.unwrap();
    }
    let given = given(&inner);
    for pair in given.windows(2) {
        epochs += usize::from(!is_prefix(&pair[0], &pair[1]));
    }
    let last = given.last().unwrap();
    println!(
        "table layer calls=30 epochs={epochs} messages={}",
        last.len()
    );
    assert!((1..12).contains(&epochs), "{epochs}");
    assert!(last.len() < 40, "{}", last.len());
}
