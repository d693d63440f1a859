//! Discarded runs: what remains of them, and what cannot be discarded.

use throughline::agent::RunError;
use throughline::model::Message;
use throughline::store::{
    ApprovalFilter, ApprovalState, Decision, Error, RunId, RunState, ThreadId, Unanswerable,
};
use throughline::thread::{OnBusy, Persistence};
use throughline::tool::Approval;
use throughline::{StopReason, Threads};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, Process, everywhere, said, short};

use crate::threads::actions::{agent, built, client, gated, journals, start};

/// A tool that needs an approval.
fn guarded(name: &str) -> Fake {
    Fake::named(name).with(|spec| spec.approval = Approval::Always)
}

async fn state(process: &Process, run: RunId) -> RunState {
    let run = process.store.run(&process.scope(), run).await;
    run.unwrap().state
}

async fn approvals(process: &Process, thread: &ThreadId) -> Vec<throughline::store::Approval> {
    let filter = ApprovalFilter {
        thread: Some(thread.clone()),
        waiting: false,
    };
    process
        .threads()
        .approvals(&filter, None)
        .await
        .unwrap()
        .found
}

/// Discarding the run is refused because it is settled, and changes nothing.
#[expect(clippy::panic, reason = "helpers of tests are tests")]
async fn is_settled(process: &Process, run: RunId) {
    let before = process.store.run(&process.scope(), run).await.unwrap();
    match process.threads().discard(run).await {
        Err(Error::WrongState {
            run: named, state, ..
        }) => {
            assert_eq!((named, state), (run, before.state));
        }
        other => panic!("{other:?}"),
    }
    let after = process.store.run(&process.scope(), run).await.unwrap();
    assert_eq!(before, after);
}

#[test]
fn a_discarded_run_leaves_nothing_visible_and_its_thread_goes_on() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (pay, tide) = (guarded("pay"), Fake::named("tide"));
        let model = client([
            Step::text("hello"),
            Step::calls([("c1", "pay", "{}"), ("c2", "tide", "{}")]),
            Step::text("at four"),
        ]);
        let agent = agent(&process, &model, &[&pay, &tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        how.finish(agent.run_on(&thread, "hi")).await.unwrap();
        let before = thread.history();
        let parked = how.finish(agent.run_on(&thread, "pay")).await.unwrap();
        assert_eq!(parked.stop, StopReason::Parked);
        let left = Message::user("and hurry");
        thread.mailbox().leave(left).await.unwrap();
        let record = approvals(&process, &id).await.remove(0);
        assert_eq!(record.state, ApprovalState::Waiting);
        // A handle that saw the run wait.
        let other = agent.open(id.clone()).await.unwrap();
        other.refresh().await.unwrap();
        assert_eq!(other.pending().len(), 1);
        // A handle that has read nothing since it was opened.
        let unread = agent.open(id.clone()).await.unwrap();

        let discarded = thread.discard().await.unwrap().unwrap();
        assert_eq!(
            (discarded.run, &discarded.thread, discarded.published),
            (parked.run, &id, None)
        );
        assert_eq!(state(&process, parked.run).await, RunState::Discarded);
        assert_eq!((thread.pending(), thread.history()), (vec![], before));
        for handle in [&other, &unread] {
            handle.refresh().await.unwrap();
            assert_eq!((handle.pending().len(), handle.history().len()), (0, 2));
        }
        assert_eq!(process.history(&id).await, "u a");

        // Its approval is withdrawn and can no longer be answered.
        let withdrawn = approvals(&process, &id).await;
        assert_eq!(withdrawn[0].state, ApprovalState::Withdrawn);
        for decision in [Decision::Approved, Decision::Denied] {
            let late = process
                .threads()
                .decide(&record, decision, "ada", None)
                .await;
            assert!(
                matches!(
                    late,
                    Err(Error::NotAnswerable {
                        why: Unanswerable::Withdrawn,
                        ..
                    })
                ),
                "{late:?}"
            );
        }
        // There is nothing more to discard or to resume.
        assert!(thread.discard().await.unwrap().is_none());
        is_settled(&process, parked.run).await;
        let nothing = how.finish(agent.resume(&thread)).await.unwrap_err();
        assert!(matches!(nothing.source, RunError::NothingToResume { .. }));

        // Queued messages stay in the queue and go out with the next run.
        assert_eq!(thread.mailbox().waiting().await.unwrap().len(), 1);
        let outcome = how.finish(agent.run_on(&thread, "when?")).await.unwrap();
        assert_eq!(said(&outcome), "u u a");
        assert_eq!(outcome.messages[0].text(), "and hurry");
        assert_eq!(short(&model.asked()[2].messages), "u a u u");
        assert_eq!(process.history(&id).await, "u a u u a");
        assert_eq!((pay.runs(), tide.runs()), (0, 1));
        let damage = process.store.check(&mut |_| {}).await.unwrap().damage;
        assert_eq!(damage, []);
    });
}

#[test]
fn a_handle_that_saw_the_run_wait_goes_on_without_it() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let elsewhere = stage.process().await;
        let pay = guarded("pay");
        let model = client([Step::calls([("c1", "pay", "{}")]), Step::text("at four")]);
        let agent = agent(&process, &model, &[&pay]);
        let thread = agent.new_thread();
        let parked = how.finish(agent.run_on(&thread, "pay")).await.unwrap();
        let opened = agent.open(thread.id().clone()).await.unwrap();
        elsewhere.threads().discard(parked.run).await.unwrap();
        let outcome = how.finish(agent.run_on(&opened, "when?")).await.unwrap();
        assert_eq!((said(&outcome).as_str(), pay.runs()), ("u a", 0));
        assert_eq!(process.history(thread.id()).await, "u a");
    });
}

#[test]
fn a_run_at_work_is_not_discarded() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let other = stage.process().await;
        let (tide, gate) = gated("tide");
        let model = client([Step::calls([("c1", "tide", "{}")]), Step::text("at four")]);
        let agent = agent(&process, &model, &[&tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let works = start(how, agent.run_on(&thread, "when?"));
        gate.reached().await;
        let run = journals(&process, &id).await[0].run.id;
        for (process, case) in [(&process, "here"), (&other, "elsewhere")] {
            match process.threads().discard(run).await {
                Err(Error::Busy {
                    run: named, state, ..
                }) => {
                    assert_eq!((named, state), (run, RunState::Running), "{case}");
                }
                refused => panic!("{case}: {refused:?}"),
            }
            let opened = process.threads().open(id.clone()).await.unwrap();
            assert!(
                matches!(opened.discard().await, Err(Error::Busy { .. })),
                "{case}"
            );
        }
        gate.open();
        let outcome = works.await.unwrap().unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
        is_settled(&process, run).await;
    });
}

#[test]
fn what_a_dead_process_left_is_discarded_and_what_it_published_stays() {
    everywhere(async |stage, how| {
        for mode in [Persistence::PerRun, Persistence::PerCall] {
            let first = stage.process().await;
            let second = stage.process().await;
            let tide = Fake::named("tide");
            let model = client([Step::calls([("c1", "tide", "{}")])]);
            let agent = built(&first, &model, &[&tide], |agent| agent.persistence(mode));
            let thread = agent.new_thread();
            let id = thread.id().clone();
            first.die_in("results", Fault::HangBefore);
            let _works = start(how, agent.run_on(&thread, "when?"));
            first.died().await;
            second.live().await;

            let opened = second.threads().open(id.clone()).await.unwrap();
            let discarded = opened.discard().await.unwrap().unwrap();
            let (published, history) = match mode {
                Persistence::PerCall => (true, "u a(c1)"),
                _ => (false, ""),
            };
            assert_eq!(discarded.published.is_some(), published, "{mode:?}");
            assert_eq!(second.history(&id).await, history, "{mode:?}");
            assert_eq!(state(&second, discarded.run).await, RunState::Discarded);
            let model = client([Step::text("at four")]);
            let agent = built(&second, &model, &[&tide], |agent| agent.persistence(mode));
            let thread = agent.open(id.clone()).await.unwrap();
            let run = agent.run_on(&thread, "and now?").on_busy(OnBusy::Reject);
            assert_eq!(how.finish(run).await.unwrap().text(), "at four");
            assert_eq!(tide.runs(), 1, "the call is not made again");
        }
    });
}

#[test]
fn a_run_that_met_a_storage_error_and_one_that_is_unpublished_are_discarded() {
    everywhere(async |stage, how| {
        // This process owns the run, and no task works on it.
        let process = stage.process().await;
        let model = client([Step::text("at four")]);
        let agent = agent(&process, &model, &[]);
        let thread = agent.new_thread();
        process.faulty.always("publish", Fault::Before);
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        let failed = failed.unwrap_err();
        process.faulty.heal();
        // The outcome of the second write is unknown: it is sent again.
        process.faulty.next("end", Fault::Before);
        let unsure = process.threads().discard(failed.run()).await;
        assert!(matches!(unsure, Err(Error::Io { .. })), "{unsure:?}");
        let discarded = process.threads().discard(failed.run()).await.unwrap();
        assert_eq!(discarded.published, None);
        assert_eq!(state(&process, failed.run()).await, RunState::Discarded);

        // A run that was not published.
        model.push(Step::text("at five"));
        let unpublished = built(&process, &model, &[], |agent| {
            agent.persistence(Persistence::PerCall).client_as_is()
        });
        let kept = how.finish(unpublished.run_on(&thread, "when?")).await;
        let kept = kept.unwrap();
        assert_eq!(state(&process, kept.run).await, RunState::Unpublished);
        assert!(
            thread.discard().await.unwrap().is_none(),
            "it holds no thread"
        );
        process.threads().discard(kept.run).await.unwrap();
        assert_eq!(state(&process, kept.run).await, RunState::Discarded);
        assert_eq!(process.history(thread.id()).await, "");
    });
}

#[test]
fn settled_and_foreign_runs_are_refused() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let model = client([
            Step::text("at four"),
            Step::fails(throughline::client::ErrorKind::Auth),
        ]);
        let agent = agent(&process, &model, &[]);
        let thread = agent.new_thread();
        let done = how.finish(agent.run_on(&thread, "when?")).await;
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        is_settled(&process, done.unwrap().run).await;
        let failed = failed.unwrap_err().run();
        is_settled(&process, failed).await;
        assert_eq!(process.history(thread.id()).await, "u a");

        // A run of another tenant and a run that does not exist get the same answer.
        let theirs = throughline::store::Tenant::new("theirs").unwrap();
        let scope = throughline::store::Authority::assume().scope(theirs);
        let threads = Threads::scoped(&process.store, scope);
        for run in [failed, process.store.ids().run()] {
            let absent = threads.discard(run).await;
            assert!(matches!(absent, Err(Error::NotFound { .. })), "{absent:?}");
        }
        // A thread that is not stored has no run.
        assert!(agent.new_thread().discard().await.unwrap().is_none());
    });
}
