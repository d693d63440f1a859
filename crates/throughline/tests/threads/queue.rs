//! Runs that wait for a thread, and workers that compete for a run.

use std::future::IntoFuture;

use futures_util::StreamExt;
use throughline::agent::{RunError, RunFailed};
use throughline::client::ErrorKind;
use throughline::store::{Claim, Error, RunId, RunState, Store, TenantScope, ThreadId};
use throughline::thread::OnBusy;
use throughline::tool::Approval;
use throughline::{Agent, Outcome, StopReason};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, How, Process, Stage, everywhere, said};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::threads::actions::{Client, Gate, agent, client, gated, journals, start};

/// A run that was started by a test and is in progress.
type Started = JoinHandle<Result<Outcome, RunFailed>>;

/// A store with one thread, on which a run waits in its tool.
struct Scene {
    id: ThreadId,
    gate: Gate,
    tide: Fake,
    asked: Client,
    at_work: Started,
}

impl Scene {
    /// Later inputs are answered with the number of the answer.
    async fn new(how: How, process: &Process) -> Self {
        let (tide, gate) = gated("tide");
        let asked = client([Step::calls([("c1", "tide", "{}")])]);
        let here = agent(process, &asked, &[&tide]);
        let thread = here.new_thread();
        let id = thread.id().clone();
        let at_work = start(how, here.run_on(&thread, "first"));
        gate.reached().await;
        Self {
            id,
            gate,
            tide,
            asked,
            at_work,
        }
    }

    /// The end of the run in progress.
    async fn ended(&mut self) -> Result<Outcome, RunFailed> {
        (&mut self.at_work).await.unwrap()
    }

    fn agent(&self, process: &Process) -> Agent {
        agent(process, &self.asked, &[&self.tide])
    }

    /// Starts a run that waits, and waits until it has its place.
    async fn waits(&self, how: How, process: &Process, text: &str) -> Started {
        let before = line(process, &self.id).await.len();
        let agent = self.agent(process);
        let same = agent.open(self.id.clone()).await.unwrap();
        let run = agent.run_on(&same, text).on_busy(OnBusy::Queue);
        let task = start(how, run);
        until(async || line(process, &self.id).await.len() > before).await;
        task
    }

    /// Adds answers to the script.
    fn answers(&self, count: usize) {
        for _ in 0..count {
            self.asked.push(Step::text("well"));
        }
    }

    /// The input texts of the history, in order.
    async fn said(&self, process: &Process) -> Vec<String> {
        let opened = process.threads().open(self.id.clone()).await.unwrap();
        let history = opened.history();
        let users = history.iter().filter(|one| one.role.as_str() == "user");
        users.map(|one| one.text()).collect()
    }
}

/// The runs that wait for a thread.
async fn line(process: &Process, thread: &ThreadId) -> Vec<RunId> {
    let line = process
        .store
        .wait_queue(&TenantScope::local(), thread)
        .await;
    line.unwrap().iter().map(|waiter| waiter.run).collect()
}

/// Polls until a condition holds.
async fn until(is_so: impl AsyncFn() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

fn is_busy(failed: &RunFailed) -> bool {
    matches!(failed.source, RunError::Store(Error::Busy { .. }))
}

#[test]
fn b236_waiters_begin_in_the_order_of_acceptance_in_one_process_and_across_two() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        for apart in [false, true] {
            let mut scene = Scene::new(how, &first).await;
            let mut tasks = Vec::new();
            for n in 0..6 {
                let process = if apart && n % 2 == 0 { &second } else { &first };
                tasks.push(scene.waits(how, process, &n.to_string()).await);
            }
            scene.answers(7);
            scene.gate.open();
            assert_eq!(scene.ended().await.unwrap().stop, StopReason::Done);
            for task in tasks {
                assert_eq!(said(&task.await.unwrap().unwrap()), "u a");
            }
            let said = scene.said(&first).await;
            assert_eq!(said, ["first", "0", "1", "2", "3", "4", "5"], "{apart}");
            assert_eq!(line(&first, &scene.id).await, []);
        }
    });
}

#[test]
fn b236_a_newcomer_does_not_begin_in_the_gap_between_two_runs() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        let mut scene = Scene::new(how, &first).await;
        // The waiter is slow to begin.
        let slow = Gate::at(&second, "begin");
        let waiter = scene.waits(how, &second, "waited").await;
        scene.answers(3);
        scene.gate.open();
        scene.ended().await.unwrap();
        slow.reached().await;
        let next = line(&first, &scene.id).await;
        assert_eq!(next.len(), 1);
        // The thread is free, and reserved for the waiter.
        let newcomer = scene.agent(&first);
        let same = newcomer.open(scene.id.clone()).await.unwrap();
        for _ in 0..2 {
            let run = newcomer.run_on(&same, "newcomer").on_busy(OnBusy::Reject);
            let failed = how.finish(run).await.unwrap_err();
            let RunError::Store(Error::Busy { run, .. }) = failed.source else {
                panic!("{:?}", failed.source);
            };
            assert_eq!(run, next[0]);
        }
        let queued = scene.waits(how, &first, "behind").await;
        slow.open();
        for task in [waiter, queued] {
            task.await.unwrap().unwrap();
        }
        assert_eq!(scene.said(&first).await, ["first", "waited", "behind"]);
    });
}

#[test]
fn b236_a_waiter_that_goes_away_gives_up_its_place() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        for process in [&first, &second] {
            let scene = Scene::new(how, &first).await;
            let gone = async |count: usize| {
                until(async || line(&first, &scene.id).await.len() == count).await;
            };
            let dropped = scene.waits(how, process, "dropped").await;
            let token = CancellationToken::new();
            let here = scene.agent(process);
            let same = here.open(scene.id.clone()).await.unwrap();
            let run = here.run_on(&same, "cancelled").on_busy(OnBusy::Queue);
            let cancelled = start(how, run.cancelled_by(token.clone()));
            gone(2).await;
            let stays = scene.waits(how, process, "stays").await;
            // A run that is driven in place has no task of its own.
            let run = here.run_on(&same, "in place").on_busy(OnBusy::Queue);
            let mut in_place = run.in_place().stream();
            tokio::select! {
                biased;
                _ = in_place.next() => unreachable!("it waits"),
                () = gone(4) => {}
            }
            drop(in_place);
            gone(3).await;
            token.cancel();
            let failed = cancelled.await.unwrap().unwrap_err();
            assert!(matches!(failed.source, RunError::Cancelled));
            assert_eq!(line(&first, &scene.id).await.len(), 2);
            dropped.abort();
            gone(1).await;

            scene.answers(2);
            scene.gate.open();
            stays.await.unwrap().unwrap();
            here.settled().await;
            assert_eq!(scene.said(&first).await, ["first", "stays"]);
            assert_eq!(line(&first, &scene.id).await, []);
            // Nothing was begun for those that were dropped.
            assert_eq!(journals(&first, &scene.id).await.len(), 2);
        }
    });
}

#[test]
fn b236_a_place_that_cannot_be_given_up_at_once_is_given_up_later() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let scene = Scene::new(how, &process).await;
        let goes = scene.waits(how, &process, "goes").await;
        let stays = scene.waits(how, &process, "stays").await;
        process.faulty.times("leave_wait_queue", 6, Fault::Before);
        goes.abort();
        until(async || process.faulty.left() == 0).await;
        scene.answers(2);
        scene.gate.open();
        stays.await.unwrap().unwrap();
        assert_eq!(scene.said(&process).await, ["first", "stays"]);
    });
}

#[test]
fn b236_the_place_of_a_dead_process_lapses_with_its_lease() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        let scene = Scene::new(how, &first).await;
        let dead = scene.waits(how, &second, "dead").await;
        let lives = scene.waits(how, &first, "lives").await;
        let also = scene.waits(how, &first, "also").await;
        second.die_beside(&first).await;
        until(async || line(&first, &scene.id).await.len() == 2).await;
        scene.answers(3);
        scene.gate.open();
        for task in [lives, also] {
            task.await.unwrap().unwrap();
        }
        assert_eq!(scene.said(&first).await, ["first", "lives", "also"]);
        assert!(!dead.is_finished());
        dead.abort();
    });
}

#[test]
fn b236_the_first_in_line_settles_what_a_dead_process_left() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        // The process of the run in progress dies; the waiters live on.
        let scene = Scene::new(how, &second).await;
        let one = scene.waits(how, &first, "one").await;
        let two = scene.waits(how, &first, "two").await;
        scene.answers(3);
        second.die_beside(&first).await;
        for task in [one, two] {
            assert_eq!(said(&task.await.unwrap().unwrap()), "u a");
        }
        assert_eq!(scene.said(&first).await, ["first", "one", "two"]);
        let found = journals(&first, &scene.id).await;
        assert_eq!(found[2].run.attempt, 1);
        scene.at_work.abort();

        // A run that settles another one while the line is empty is first, also with `Reject`.
        let third = stage.process().await;
        let scene = Scene::new(how, &third).await;
        third.die_beside(&first).await;
        let slow = Gate::at(&first, "journal");
        let here = scene.agent(&first);
        let same = here.open(scene.id.clone()).await.unwrap();
        let settler = start(how, here.run_on(&same, "settler"));
        slow.reached().await;
        let fourth = stage.process().await;
        let late = scene.waits(how, &fourth, "late").await;
        scene.answers(3);
        slow.open();
        for task in [settler, late] {
            task.await.unwrap().unwrap();
        }
        assert_eq!(scene.said(&first).await, ["first", "settler", "late"]);
        scene.at_work.abort();
    });
}

#[test]
fn b236_a_predecessor_that_fails_leaves_nothing_and_changes_no_order() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        let mut scene = Scene::new(how, &first).await;
        let mut tasks = Vec::new();
        for (n, process) in [&first, &second, &first, &second].into_iter().enumerate() {
            tasks.push(scene.waits(how, process, &n.to_string()).await);
        }
        let fails = || Step::fails(ErrorKind::Unavailable);
        // The run in progress fails, and so does every second waiter.
        for step in [fails(), fails(), Step::text("1"), fails(), Step::text("3")] {
            scene.asked.push(step);
        }
        scene.gate.open();
        let failed = scene.ended().await.unwrap_err();
        assert!(matches!(failed.source, RunError::Client(_)));
        for (n, task) in tasks.into_iter().enumerate() {
            let ended = task.await.unwrap();
            assert_eq!(ended.is_ok(), n % 2 == 1, "{n}");
        }
        assert_eq!(scene.said(&first).await, ["1", "3"]);
        // In the order of acceptance, including the failed ones.
        let mut found = journals(&first, &scene.id).await;
        found.reverse();
        let asked: Vec<String> = found
            .iter()
            .map(|one| one.entries[0].message.text())
            .collect();
        assert_eq!(asked, ["first", "0", "1", "2", "3"]);
        let states: Vec<_> = found.iter().map(|one| one.run.state).collect();
        let (failed, done) = (RunState::Failed, RunState::Committed);
        assert_eq!(states, [failed, failed, done, failed, done]);
    });
}

#[test]
fn b236_a_resume_waits_its_turn() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        // During the run: it ends by itself, and the resume returns its outcome.
        let mut scene = Scene::new(how, &first).await;
        let there = scene.agent(&second);
        let same = there.open(scene.id.clone()).await.unwrap();
        let refused = how.finish(there.resume(&same)).await.unwrap_err();
        assert!(is_busy(&refused), "{:?}", refused.source);
        let waits = start(how, there.resume(&same).on_busy(OnBusy::Queue));
        until(async || line(&first, &scene.id).await.len() == 1).await;
        let behind = scene.waits(how, &first, "behind").await;
        scene.answers(2);
        scene.gate.open();
        let done = scene.ended().await.unwrap();
        let resumed = waits.await.unwrap().unwrap();
        assert_eq!((resumed.run, resumed.stop), (done.run, StopReason::Done));
        assert_eq!(resumed.messages, done.messages);
        behind.await.unwrap().unwrap();
        assert_eq!(scene.said(&first).await, ["first", "behind"]);

        // The run fails meanwhile: the resume continues it, before later runs.
        let mut scene = Scene::new(how, &first).await;
        let there = scene.agent(&second);
        let same = there.open(scene.id.clone()).await.unwrap();
        let waits = start(how, there.resume(&same).on_busy(OnBusy::Queue));
        until(async || line(&first, &scene.id).await.len() == 1).await;
        let behind = scene.waits(how, &first, "behind").await;
        scene.asked.push(Step::fails(ErrorKind::Unavailable));
        scene.answers(2);
        scene.gate.open();
        scene.ended().await.unwrap_err();
        let resumed = waits.await.unwrap().unwrap();
        assert_eq!(said(&resumed), "u a(c1) t(c1) a");
        behind.await.unwrap().unwrap();
        assert_eq!(second.history(&scene.id).await, "u a(c1) t(c1) a u a");
        assert_eq!(scene.tide.runs(), 1);

        // Its process dies: the resume continues the run itself.
        let scene = Scene::new(how, &second).await;
        let here = scene.agent(&first);
        let same = here.open(scene.id.clone()).await.unwrap();
        let waits = start(how, here.resume(&same).on_busy(OnBusy::Queue));
        until(async || line(&first, &scene.id).await.len() == 1).await;
        let behind = scene.waits(how, &first, "behind").await;
        scene.answers(2);
        second.die_beside(&first).await;
        let resumed = waits.await.unwrap().unwrap();
        assert_eq!(said(&resumed), "u a(c1) t(c1:unknown) a");
        behind.await.unwrap().unwrap();
        let all = "u a(c1) t(c1:unknown) a u a";
        assert_eq!(first.history(&scene.id).await, all);
        assert_eq!(line(&first, &scene.id).await, []);
        scene.at_work.abort();
    });
}

/// A run that can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Parked, with an approval that was given.
    Approved,
    /// Parked; the resume approves.
    Asked,
    /// Its process died.
    Died,
    /// It failed.
    Failed,
}

impl Left {
    const ALL: [Self; 4] = [Self::Approved, Self::Asked, Self::Died, Self::Failed];
}

/// Leaves a run on a new thread.
async fn leave(stage: &Stage, how: How, left: Left, tide: &Fake, asked: &Client) -> ThreadId {
    let process = stage.process().await;
    let here = agent(&process, asked, &[tide]);
    let thread = here.new_thread();
    let id = thread.id().clone();
    asked.push(Step::calls([("c1", "tide", "{}")]));
    match left {
        Left::Approved | Left::Asked => {
            let parked = how.finish(here.run_on(&thread, "when?")).await.unwrap();
            assert_eq!(parked.stop, StopReason::Parked);
            if left == Left::Approved {
                let waiting = throughline::store::ApprovalFilter {
                    thread: Some(id.clone()),
                    waiting: true,
                };
                let threads = process.threads();
                let found = threads.approvals(&waiting, None).await.unwrap().found;
                let yes = throughline::store::Decision::Approved;
                threads.decide(&found[0], yes, "ada", None).await.unwrap();
            }
        }
        Left::Died => {
            process.die_in("intend", Fault::HangBefore);
            start(how, here.run_on(&thread, "when?"));
            process.died().await;
        }
        Left::Failed => {
            asked.push(Step::fails(ErrorKind::Unavailable));
            how.finish(here.run_on(&thread, "when?")).await.unwrap_err();
        }
    }
    id
}

/// The order of one worker.
async fn order(
    agent: &Agent,
    id: &ThreadId,
    left: Left,
) -> throughline::agent::Run<throughline::agent::order::Resume> {
    let read = agent.open(id.clone()).await.unwrap();
    read.refresh().await.unwrap();
    let pending = read.pending();
    let thread = agent.open(id.clone()).await.unwrap();
    let run = agent.resume(&thread);
    match left {
        Left::Asked => run.approve(&pending[0]),
        _ => run,
    }
}

/// The other worker is refused as documented, or has the winner's outcome.
fn lost(case: &str, won: &Outcome, other: Result<Outcome, RunFailed>) {
    match other {
        Ok(attached) => {
            assert_eq!((attached.run, attached.stop), (won.run, won.stop), "{case}");
            assert_eq!(attached.messages, won.messages, "{case}");
        }
        Err(failed) => {
            let expected = matches!(
                failed.source,
                RunError::Store(Error::Busy { .. } | Error::Fenced { .. })
            );
            assert!(expected, "{case}: {:?}", failed.source);
        }
    }
}

#[test]
fn b235_of_two_workers_that_go_on_with_one_run_one_wins() {
    everywhere(async |stage, how| {
        for left in Left::ALL {
            for apart in [false, true] {
                let case = format!("{left:?}, in two processes: {apart}");
                let asked = client([]);
                let tide = match left {
                    Left::Approved | Left::Asked => {
                        Fake::named("tide").with(|spec| spec.approval = Approval::Always)
                    }
                    Left::Died | Left::Failed => Fake::named("tide"),
                };
                let id = leave(stage, how, left, &tide, &asked).await;
                asked.push(Step::text("at four"));
                let (one, two) = (stage.process().await, stage.process().await);
                let second = if apart { &two } else { &one };
                let agents = [
                    agent(&one, &asked, &[&tide]),
                    agent(second, &asked, &[&tide]),
                ];
                let orders = [
                    order(&agents[0], &id, left).await,
                    order(&agents[1], &id, left).await,
                ];
                let tasks = orders.map(|order| start(how, order));
                let mut ended = Vec::new();
                for task in tasks {
                    ended.push(task.await.unwrap());
                }
                let first = ended.remove(0);
                let (won, other) = match first {
                    Ok(outcome) => (outcome, ended.remove(0)),
                    Err(_) => (ended.remove(0).unwrap(), first),
                };
                assert_eq!(won.stop, StopReason::Done, "{case}");
                lost(&case, &won, other);
                assert_eq!(tide.runs(), 1, "{case}");
                assert_eq!(asked.left(), 0, "{case}");
                assert_eq!(one.history(&id).await, "u a(c1) t(c1) a", "{case}");
            }
        }
    });
}

/// How far the first worker is when the second one resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Far {
    AtWork,
    Done,
}

#[test]
fn b235_wherever_the_second_worker_is_when_the_first_one_has_the_run() {
    everywhere(async |stage, how| {
        for left in Left::ALL {
            let methods: &[&str] = match left {
                Left::Approved | Left::Asked | Left::Died => &["open", "claim"],
                Left::Failed => &["open", "runs", "begin"],
            };
            for method in methods {
                for far in [Far::AtWork, Far::Done] {
                    held_at(stage, how, left, method, far).await;
                }
            }
        }
    });
}

/// The second worker is held in a method while the first one has the run.
async fn held_at(stage: &Stage, how: How, left: Left, method: &str, far: Far) {
    let case = format!("{left:?}, held at {method}, the other is {far:?}");
    let asked = client([]);
    let (tide, gate) = gated("tide");
    let tide = match left {
        Left::Approved | Left::Asked => tide.with(|spec| spec.approval = Approval::Always),
        Left::Died | Left::Failed => tide,
    };
    if left == Left::Failed {
        // The tool ran before.
        gate.open();
    }
    let id = leave(stage, how, left, &tide, &asked).await;
    let (one, two) = (stage.process().await, stage.process().await);
    let agents = [agent(&one, &asked, &[&tide]), agent(&two, &asked, &[&tide])];
    asked.push(Step::text("at four"));
    let first = order(&agents[0], &id, left).await;
    // A worker that has read the thread reads it again.
    let thread = agents[1].open(id.clone()).await.unwrap();
    let second = match method {
        "open" => {
            thread.refresh().await.unwrap();
            let pending = thread.pending();
            let run = agents[1].resume(&thread);
            match left {
                Left::Asked => run.approve(&pending[0]),
                _ => run,
            }
        }
        _ => order(&agents[1], &id, left).await,
    };
    let held = Gate::at(&two, method);
    let publishing = Gate::at(&one, "publish");
    let second = start(how, second);
    held.reached().await;
    let first = start(how, first);
    gate.open();
    publishing.reached().await;
    if far == Far::Done {
        publishing.open();
        until(async || first.is_finished()).await;
    }
    held.open();
    match far {
        Far::AtWork => {
            let failed = second.await.unwrap().unwrap_err();
            let expected = matches!(
                failed.source,
                RunError::Store(Error::Busy { .. } | Error::Fenced { .. })
            );
            assert!(expected, "{case}: {:?}", failed.source);
            publishing.open();
            assert_eq!(first.await.unwrap().unwrap().stop, StopReason::Done);
        }
        Far::Done => {
            let won = first.await.unwrap().unwrap();
            lost(&case, &won, second.await.unwrap());
        }
    }
    assert_eq!(tide.runs(), 1, "{case}");
    assert_eq!(asked.left(), 0, "{case}");
    assert_eq!(one.history(&id).await, "u a(c1) t(c1) a", "{case}");
}

#[test]
fn b235_a_run_that_is_resumed_by_its_id_is_resumed_once() {
    everywhere(async |stage, how| {
        let asked = client([]);
        let (tide, gate) = gated("tide");
        let id = leave(stage, how, Left::Died, &tide, &asked).await;
        asked.push(Step::text("at four"));
        let (one, two) = (stage.process().await, stage.process().await);
        let agents = [agent(&one, &asked, &[&tide]), agent(&two, &asked, &[&tide])];
        let run = journals(&one, &id).await[0].run.id;
        let first = agents[0].resume_run(&one.threads(), run).await.unwrap();
        let first = start(how, first);
        gate.reached().await;
        // The run is in progress when the second worker reads it, and done when that one claims it.
        let second = agents[1].resume_run(&two.threads(), run).await.unwrap();
        let held = Gate::at(&two, "claim");
        let second = start(how, second);
        held.reached().await;
        gate.open();
        let won = first.await.unwrap().unwrap();
        held.open();
        lost("by its id", &won, second.await.unwrap());
        assert_eq!(tide.runs(), 1);
        // An order that arrives after the run has ended is refused.
        let late = agents[1].resume_run(&two.threads(), run).await.unwrap();
        let failed = how.finish(late).await.unwrap_err();
        assert!(
            matches!(failed.source, RunError::Store(Error::WrongState { .. })),
            "{:?}",
            failed.source
        );
    });
}

/// The run ends, with its original lease, between the read of a resume and its claim.
#[test]
fn b235_a_resume_that_the_run_was_faster_than_gets_its_outcome() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        let mut scene = Scene::new(how, &first).await;
        let there = scene.agent(&second);
        let same = there.open(scene.id.clone()).await.unwrap();
        let claim = Gate::at(&second, "claim");
        let resumed = start(how, there.resume(&same));
        claim.reached().await;
        scene.answers(1);
        scene.gate.open();
        let won = scene.ended().await.unwrap();
        claim.open();
        let outcome = resumed.await.unwrap().unwrap();
        assert_eq!((outcome.run, outcome.stop), (won.run, won.stop));
        assert_eq!(outcome.messages, won.messages);
        assert_eq!(scene.tide.runs(), 1);
    });
}

/// Another process takes the run over between the waiter's read and its claim, and gives it up.
#[test]
fn b235_a_run_that_was_taken_over_is_no_error_of_the_waiter() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        let third = stage.process().await;
        let scene = Scene::new(how, &second).await;
        let waiter = scene.waits(how, &first, "waited").await;
        // Each read is followed by a claim of the run.
        let claim = Gate::at(&first, "claim");
        claim.reached().await;
        second.die_beside(&first).await;
        // The parked run is closed, not resumed.
        scene.answers(1);
        take_over_and_park(&third.store, &scene.id).await;
        claim.open();
        let outcome = waiter.await.unwrap().unwrap();
        assert_eq!(said(&outcome), "u a");
        assert_eq!(scene.said(&first).await, ["first", "waited"]);
        assert_eq!(scene.asked.left(), 0);
        scene.at_work.abort();
    });
}

/// Claims the unsettled run and gives it up again, as an upkeep task may.
async fn take_over_and_park(store: &Store, thread: &ThreadId) {
    let scope = TenantScope::local();
    let at = throughline::store::At::Thread(thread.clone());
    let run = store.open(&scope, &at, 0).await.unwrap().unsettled.unwrap();
    let claimed = store.claim(&scope, run.id, run.epoch, Claim::Orphan).await;
    store
        .park(&scope, claimed.unwrap().lease, None)
        .await
        .unwrap();
}

/// A run that is dropped before it waits leaves nothing either.
#[test]
fn a_run_that_is_dropped_while_it_lines_up_leaves_no_place() {
    everywhere(async |stage, how| {
        let (first, second) = (stage.process().await, stage.process().await);
        let mut scene = Scene::new(how, &first).await;
        let here = scene.agent(&second);
        let slow = Gate::at(&second, "join_wait_queue");
        let same = here.open(scene.id.clone()).await.unwrap();
        let run = here.run_on(&same, "gone").on_busy(OnBusy::Queue);
        let mut gone = Box::pin(run.in_place().into_future());
        tokio::select! {
            biased;
            _ = &mut gone => unreachable!("it waits"),
            () = slow.reached() => {}
        }
        drop(gone);
        slow.open();
        here.settled().await;
        assert_eq!(line(&first, &scene.id).await, []);
        scene.answers(1);
        scene.gate.open();
        scene.ended().await.unwrap();
    });
}
