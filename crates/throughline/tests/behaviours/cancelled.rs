//! What a run leaves when it is cancelled or dropped, on an in-memory thread.

use std::time::Duration;

use futures_util::StreamExt;
use throughline::StopReason;
use throughline::model::Status;
use throughline::tool::{Effect, ToolOutput};
use throughline_testkit::scripted::Step;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::behaviours::support::{Fake, How, Rig, both, said};

#[test]
fn a_stream_that_is_dropped_cancels_its_run_and_the_thread_goes_on() {
    both(async |how| {
        let steps = [Step::hang_after("high water is at"), Step::text("at four")];
        let rig = Rig::new(how, steps, |agent| agent);
        match how {
            How::Streamed => {
                let mut stream = rig.agent.run_on(&rig.thread, "when?").stream();
                while let Some(event) = stream.next().await {
                    if event.text().is_some() {
                        break;
                    }
                }
                drop(stream);
            }
            How::Whole => {
                let run = rig.agent.run_on(&rig.thread, "when?").into_future();
                tokio::select! {
                    _ = run => unreachable!("the model never ends"),
                    () = rig.client.begun(1) => {}
                }
            }
        }
        rig.agent.settled().await;
        // The next run finds a released thread with a closed history.
        assert_eq!(rig.run("and now?").await.text(), "at four");
        let history = rig.thread.history();
        assert_eq!(rig.history(), "u a u a");
        assert_eq!(history[1].text(), "high water is at");
        assert_eq!(history[1].status, Some(Status::Incomplete));
        assert_eq!(rig.client.dropped(), 1);
    });
}

#[test]
fn a_cancel_while_tools_run_keeps_what_finished_and_closes_the_rest() {
    both(async |how| {
        let slow = |name: &str, effect| {
            let slow = Fake::doing(name, |_, _| async {
                sleep(Duration::from_secs(60)).await;
                Ok(ToolOutput::default())
            });
            slow.with(|spec| spec.effect = effect)
        };
        let calls = [
            ("c1", "quick", "{}"),
            ("c2", "slow", "{}"),
            ("c3", "look", "{}"),
        ];
        let rig = Rig::new(how, [Step::calls(calls)], |agent| {
            agent
                .tool(Fake::named("quick"))
                .tool(slow("slow", Effect::Once))
                .tool(slow("look", Effect::ReadOnly))
        });
        let token = CancellationToken::new();
        let run = rig
            .agent
            .run_on(&rig.thread, "go")
            .cancelled_by(token.clone());
        let (outcome, ()) = tokio::join!(how.finish(run), async {
            sleep(Duration::from_secs(1)).await;
            token.cancel();
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        assert_eq!(
            said(&outcome),
            "u a(c1,c2,c3) t(c1,c2:unknown,c3:cancelled)"
        );
        assert_eq!(rig.history(), said(&outcome));
    });
}

#[test]
fn a_failed_run_leaves_the_history_and_goes_on_from_its_finished_steps() {
    both(async |how| {
        let tide = Fake::named("tide");
        let steps = [
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(throughline::client::ErrorKind::Unavailable),
            Step::text("at four"),
        ];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let run = rig.agent.run_on(&rig.thread, "when?");
        let failed = how.finish(run).await.unwrap_err();
        assert_eq!(failed.outcome().stop, StopReason::Failed);
        assert_eq!(said(failed.outcome()), "u a(c1) t(c1)");
        assert_eq!(rig.history(), "");
        let run = rig.agent.resume(&rig.thread);
        let outcome = how.finish(run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!((tide.runs(), rig.client.calls()), (1, 3));
        assert_eq!(rig.history(), said(&outcome));
        // A failed run without finished steps leaves nothing.
        rig.client
            .push(Step::fails(throughline::client::ErrorKind::Unavailable));
        let run = rig.agent.run_on(&rig.thread, "again?");
        how.finish(run).await.unwrap_err();
        assert_eq!(rig.history(), said(&outcome));
        let nothing = rig.agent.resume(&rig.thread).await;
        assert!(nothing.is_err());
    });
}
