//! Declared tools, and approvals on an in-memory thread.

use throughline::StopReason;
use throughline::agent::RunError;
use throughline::thread::Awaits;
use throughline::tool::{Approval, Runs};
use throughline_testkit::scripted::Step;

use crate::behaviours::support::{Fake, Rig, both, result_text, said, short};

fn declared() -> Fake {
    Fake::named("theirs").with(|spec| spec.runs = Runs::Outside)
}

fn two_calls() -> Step {
    Step::calls([("c1", "theirs", r#"{"pier":3}"#), ("c2", "ours", "{}")])
}

#[test]
fn b37_a_declared_call_waits_and_its_sibling_runs_at_once() {
    both(async |how| {
        let (ours, theirs) = (Fake::named("ours"), declared());
        let rig = Rig::new(how, [two_calls()], |agent| {
            agent.tool(ours.clone()).tool(theirs.clone())
        });
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::Parked);
        assert_eq!((ours.runs(), theirs.runs()), (1, 0));
        assert_eq!(said(&outcome), "u a(c1,c2) t(c2)");
        let [waits] = &outcome.pending[..] else {
            panic!("{:?}", outcome.pending);
        };
        assert_eq!((waits.call.value(), waits.awaits), ("c1", Awaits::Result));
        assert_eq!(rig.thread.pending(), outcome.pending);
        // The head has not moved.
        assert_eq!(rig.history(), "");
    });
}

#[test]
fn b38_a_result_that_is_handed_in_stands_in_call_order_and_nothing_runs_again() {
    both(async |how| {
        let ours = Fake::named("ours");
        let rig = Rig::new(how, [two_calls(), Step::text("done")], |agent| {
            agent.tool(ours.clone()).tool(declared())
        });
        let waits = rig.run("go").await.pending[0].clone();
        let run = rig
            .agent
            .resume(&rig.thread)
            .answer(&waits, "pier 3 is free");
        let outcome = how.finish(run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2) a");
        assert_eq!(
            short(&rig.client.asked()[1].messages),
            "u a(c1,c2) t(c1,c2)"
        );
        assert_eq!(result_text(&outcome.messages, "c1"), "pier 3 is free");
        assert_eq!((ours.runs(), outcome.stop), (1, StopReason::Done));
        assert_eq!(rig.history(), said(&outcome));
        assert!(rig.thread.pending().is_empty());
    });
}

#[test]
fn an_answer_that_nothing_waits_for_is_refused_and_changes_nothing() {
    both(async |how| {
        let rig = Rig::new(how, [two_calls(), Step::text("done")], |agent| {
            agent.tool(Fake::named("ours")).tool(declared())
        });
        let outcome = rig.run("go").await;
        let waits = outcome.pending[0].clone();
        let mut answered = waits.clone();
        answered.at.position = 1;
        let run = rig.agent.resume(&rig.thread).answer(&answered, "again");
        let failed = run.await.unwrap_err();
        assert!(
            matches!(failed.source, RunError::NotPending { .. }),
            "{failed:?}"
        );
        assert_eq!(rig.thread.pending(), outcome.pending);
        let run = rig.agent.resume(&rig.thread).answer(&waits, "now");
        assert_eq!(how.finish(run).await.unwrap().stop, StopReason::Done);
        let nothing = rig.agent.resume(&rig.thread).await.unwrap_err();
        assert!(matches!(nothing.source, RunError::NothingToResume { .. }));
    });
}

#[test]
fn new_input_withdraws_what_waits_and_the_parked_run_becomes_history() {
    both(async |how| {
        let rig = Rig::new(how, [two_calls(), Step::text("never mind")], |agent| {
            agent.tool(Fake::named("ours")).tool(declared())
        });
        rig.run("go").await;
        let outcome = rig.run("forget it").await;
        assert_eq!(outcome.text(), "never mind");
        assert_eq!(rig.history(), "u a(c1,c2) t(c1:withdrawn,c2) u a");
        assert!(rig.thread.pending().is_empty());
    });
}

#[test]
fn an_approved_call_runs_once_and_a_rejected_one_never() {
    both(async |how| {
        let guarded = Fake::named("guarded").with(|spec| spec.approval = Approval::Always);
        let calls = [("c1", "guarded", "{}"), ("c2", "guarded", "{}")];
        let steps = [Step::calls(calls), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(guarded.clone()));
        let parked = rig.run("go").await;
        assert_eq!((parked.stop, guarded.runs()), (StopReason::Parked, 0));
        let ids = parked.pending.clone();
        // One is answered and runs; the model waits for the other.
        let run = rig.agent.resume(&rig.thread).approve(&ids[1]);
        let still = how.finish(run).await.unwrap();
        assert_eq!((still.stop, guarded.runs()), (StopReason::Parked, 1));
        assert_eq!(rig.client.calls(), 1);
        let run = rig
            .agent
            .resume(&rig.thread)
            .reject(&ids[0], Some("not today"));
        let outcome = how.finish(run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1:rejected,c2) a");
        assert!(result_text(&outcome.messages, "c1").contains("not today"));
        assert_eq!(guarded.runs(), 1);
    });
}
