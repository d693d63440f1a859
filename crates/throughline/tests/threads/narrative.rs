//! Summaries by a model: no run waits for them or depends on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use throughline::agent::Compaction;
use throughline::client::ErrorKind;
use throughline::compact::{NarrativeOutcome, NarrativeRejection, Policy, Report};
use throughline::model::{Message, Source};
use throughline::store::At;
use throughline::thread::Persistence;
use throughline::{Agent, Outcome, RunEvent, StopReason};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{How, Process, everywhere};
use tokio_util::sync::CancellationToken;

use crate::threads::compaction::{given, is_prefix, model, reader, reads};

const TRUE: &str = "The files were read from /src/file_0.rs on, and nothing was changed.";
const LIE: &str = "The trouble is in /src/bollard.rs.";

fn policy() -> Policy {
    Policy::default().narrated(400)
}

fn agent(
    client: &Arc<ScriptedClient>,
    narrator: Option<&Arc<ScriptedClient>>,
    process: &Process,
    compaction: impl Into<Compaction>,
) -> Agent {
    let builder = Agent::builder(Arc::clone(client))
        .store(&process.store)
        .persistence(Persistence::PerCall)
        .compaction(compaction)
        .tool(reader());
    match narrator {
        Some(narrator) => builder.narrator(Arc::clone(narrator)),
        None => builder,
    }
    .build()
    .unwrap()
}

/// What each call was sent, without message ids, which are those of the run.
fn shown(client: &ScriptedClient) -> Vec<Vec<String>> {
    let text = |one: &Message| format!("{:?} {:?}", one.role, one.contents);
    let asked = client.asked().into_iter();
    asked
        .map(|asked| asked.messages.iter().map(text).collect())
        .collect()
}

fn has(messages: &[Message], words: &str) -> usize {
    let told = messages.iter().filter(|one| one.text().contains(words));
    told.count()
}

#[test]
fn b171_a_summary_stands_beside_the_digests_from_the_next_epoch_on() {
    let (epochs, summaries) = (AtomicUsize::new(0), AtomicUsize::new(0));
    everywhere(async |stage, how| {
        // One file in a turn, so that no run makes two epochs: whether the second one found the
        // summary of the first finished would be a race.
        let client = Arc::new(model(1));
        let narrator = Arc::new(ScriptedClient::answering(|_| {
            Step::text(format!("{TRUE} {LIE}")).with_usage(900, 40)
        }));
        let mut id: Option<throughline::store::ThreadId> = None;
        let (mut made, mut told) = (Vec::new(), Vec::<NarrativeOutcome>::new());
        let mut last: Option<Report> = None;
        for _ in 0..24 {
            // Every turn in a process of its own: a summary that waits for the next epoch is
            // stored.
            let process = stage.process().await;
            let agent = agent(&client, Some(&narrator), &process, policy());
            let thread = match &id {
                None => agent.new_thread(),
                Some(id) => process.threads().open(At::from(id.clone())).await.unwrap(),
            };
            let (events, outcome) = how.events(agent.run_on(&thread, "read on")).await;
            let outcome = outcome.unwrap();
            agent.narrated().await;
            // One more turn in the same process collects the summary that was written meanwhile.
            client.push(Step::text("well").without_usage());
            let (more, after) = how.events(agent.run_on(&thread, "and?")).await;
            for event in events.iter().chain(&more) {
                match event {
                    RunEvent::Compacted { report, .. } => made.push(report.epoch),
                    RunEvent::Narrated { narrated } => told.push(*narrated),
                    _ => {}
                }
            }
            id = Some(thread.id().clone());
            last = after.unwrap().compaction;
            drop(outcome);
            let said = thread.history();
            let spoken = said.iter().any(|one| one.text().contains(TRUE));
            assert!(!spoken, "a summary is nobody's speech");
        }
        assert!(made.len() >= 3, "{made:?}");
        assert_eq!(told.len(), made.len(), "one for each epoch");
        for (one, epoch) in told.iter().zip(&made) {
            let want = NarrativeOutcome {
                epoch: *epoch,
                kept: 1,
                dropped: 1,
                ..NarrativeOutcome::default()
            };
            assert_eq!(*one, want.costing(900, 40));
        }
        assert!(last.is_some());
        let asked = client.asked();
        let first = asked.iter().position(|one| has(&one.messages, TRUE) > 0);
        let first = first.unwrap();
        let summary = asked[first].messages.iter();
        let summary = summary.filter(|one| one.text().contains(TRUE));
        assert!(
            summary
                .clone()
                .all(|one| one.source == Some(Source::Summary))
        );
        assert!(asked.iter().all(|one| has(&one.messages, "bollard") == 0));
        assert!(
            asked[first..]
                .iter()
                .all(|one| has(&one.messages, TRUE) > 0)
        );
        // Requests change their beginning at epochs only.
        let given = given(&client);
        let broken = (1..given.len()).filter(|at| !is_prefix(&given[at - 1], &given[*at]));
        assert_eq!(broken.count(), made.len());
        assert_eq!(narrator.calls(), made.len());
        epochs.fetch_add(made.len(), Ordering::SeqCst);
        summaries.fetch_add(told.len(), Ordering::SeqCst);
    });
    println!("table b171 epochs={epochs:?} summaries={summaries:?}");
}

/// Ten turns with a narrator, of which each waits for the summary of the one before if it `waits`: what
/// the model was sent, and the reported summaries.
async fn turns(
    process: &Process,
    how: How,
    narrator: Option<&Arc<ScriptedClient>>,
    waits: bool,
) -> (Vec<Vec<String>>, Vec<NarrativeOutcome>) {
    let client = Arc::new(model(4));
    let compaction = match narrator {
        Some(_) => policy(),
        None => Policy::default(),
    };
    let agent = agent(&client, narrator, process, compaction);
    let thread = agent.new_thread();
    let mut told = Vec::new();
    for _ in 0..10 {
        let (events, outcome) = how.events(agent.run_on(&thread, "read on")).await;
        let outcome: Outcome = outcome.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        for event in events {
            if let RunEvent::Narrated { narrated } = event {
                told.push(narrated);
            }
        }
        if waits {
            agent.narrated().await;
        }
    }
    (shown(&client), told)
}

#[test]
fn b171_a_summary_that_fails_in_any_way_changes_nothing_and_the_report_says_why() {
    type Bad = (&'static str, fn() -> Step, NarrativeRejection);
    let bad: [Bad; 5] = [
        ("blank", || Step::text("  \n"), NarrativeRejection::Blank),
        (
            "failing",
            || Step::fails(ErrorKind::Unavailable),
            NarrativeRejection::Failed,
        ),
        (
            "larger",
            || Step::text("The files were read. ".repeat(2_000)),
            NarrativeRejection::Larger,
        ),
        (
            "lying",
            || Step::text(format!("{LIE} Order 998877 is in hammer_time().")),
            NarrativeRejection::Unfounded,
        ),
        (
            "calling",
            || reads(0).without_usage(),
            NarrativeRejection::Blank,
        ),
    ];
    let cases = AtomicUsize::new(0);
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (plain, _) = turns(&process, how, None, false).await;
        for (name, step, why) in &bad {
            let step = *step;
            let narrator = Arc::new(ScriptedClient::answering(move |_| step()));
            let (with, told) = turns(&process, how, Some(&narrator), true).await;
            assert_eq!(with, plain, "{name}");
            assert!(!told.is_empty() && told.len() <= narrator.calls());
            for one in told {
                assert_eq!((one.refused, one.kept), (Some(*why), 0), "{name}");
                cases.fetch_add(1, Ordering::SeqCst);
            }
        }
        // A summary that hangs is requested once, and no run waits for it.
        let narrator = Arc::new(ScriptedClient::answering(|_| Step::hang()));
        let (with, told) = turns(&process, how, Some(&narrator), false).await;
        assert_eq!((with, told), (plain, Vec::new()));
        assert_eq!(narrator.calls(), 1);
    });
    println!("table b171 refused={cases:?}");
}

#[test]
fn b171_a_cancel_while_a_summary_is_written_cancels_the_run_and_the_summary() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let narrator = Arc::new(ScriptedClient::answering(|_| Step::hang()));
        let asked = AtomicUsize::new(0);
        let client = Arc::new(ScriptedClient::answering(move |_| {
            match asked.fetch_add(1, Ordering::SeqCst) {
                14.. => Step::hang(),
                no => reads(no).without_usage(),
            }
        }));
        let agent = agent(&client, Some(&narrator), &process, policy());
        let thread = agent.new_thread();
        let token = CancellationToken::new();
        let run = agent.run_on(&thread, "read").cancelled_by(token.clone());
        let work = tokio::spawn(async move { how.finish(run).await });
        narrator.begun(1).await;
        client.begun(15).await;
        token.cancel();
        let outcome = work.await.unwrap().unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        agent.narrated().await;
        assert_eq!((narrator.calls(), narrator.running()), (1, 0));
    });
}

#[test]
fn the_model_itself_is_asked_with_what_it_was_sent_before() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let asked = AtomicUsize::new(0);
        let client = Arc::new(ScriptedClient::answering(move |given| {
            let last = given.messages.last().map(Message::text).unwrap_or_default();
            if last.contains("one line each") {
                return Step::text(TRUE).with_usage(500, 20);
            }
            match asked.fetch_add(1, Ordering::SeqCst) {
                no if no % 5 == 4 => Step::text("read").without_usage(),
                no => reads(no).without_usage(),
            }
        }));
        let agent = agent(&client, None, &process, policy());
        let thread = agent.new_thread();
        for _ in 0..6 {
            let run = agent.run_on(&thread, "read on");
            how.finish(run).await.unwrap();
            agent.narrated().await;
        }
        let asked = client.asked();
        let is_ours = |one: &Message| one.text().contains("one line each");
        let ours = asked.iter().enumerate();
        let ours: Vec<usize> = ours
            .filter(|(_, one)| one.messages.last().is_some_and(is_ours))
            .map(|(at, _)| at)
            .collect();
        assert!(!ours.is_empty());
        for at in ours {
            let (_, sent) = asked[at].messages.split_last().unwrap();
            // An earlier call had the same beginning and tools, so that it is in the vendor's
            // cache.
            let before = asked[..at]
                .iter()
                .any(|one| one.messages.starts_with(sent) && one.tools == asked[at].tools);
            assert!(before, "{} messages", sent.len());
        }
        assert!(asked.iter().any(|one| has(&one.messages, TRUE) > 0));
    });
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_takes_too_long_is_given_up() {
    let stage = throughline_testkit::stage::Stage::new(throughline_testkit::stage::Engine::Memory);
    let process = stage.process().await;
    let client = Arc::new(model(12));
    let narrator = Arc::new(ScriptedClient::answering(|_| Step::hang()));
    let agent = agent(&client, Some(&narrator), &process, policy());
    let thread = agent.new_thread();
    agent.run_on(&thread, "read").await.unwrap();
    assert_eq!((narrator.calls(), narrator.running()), (1, 1));
    tokio::time::sleep(Duration::from_secs(121)).await;
    agent.narrated().await;
    client.push(Step::text("well").without_usage());
    let outcome = agent.run_on(&thread, "and?").await.unwrap();
    let narrated = outcome.compaction.unwrap().narrative.unwrap();
    assert_eq!(narrated.refused, Some(NarrativeRejection::Late));
    assert_eq!(narrator.running(), 0);
    // When the last handle on the conversation is dropped, its summary is cancelled.
    let run = agent.run_on(&thread, "read on");
    run.await.unwrap();
    let waiting = narrator.running();
    drop(thread);
    agent.narrated().await;
    assert_eq!((waiting, narrator.running()), (1, 0));
}
