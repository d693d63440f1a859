//! Answers that come too late.

use std::time::Duration;

use throughline::StopReason;
use throughline::agent::RunError;
use throughline::store::{ApprovalState, Decision, Error, Unanswerable};
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{everywhere, result_text, said};

use super::{
    builder, decide, go_on, guarded, model, parked, pending, records, states, waiting, why,
};

#[test]
fn b64_an_answer_after_expiry_is_refused_and_the_call_is_closed_as_expired() {
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let model = model([Step::calls([("c1", "pay", "{}")]), Step::text("too late")]);
        let agent = builder(stage, &process, &model)
            .tool(pay.clone())
            .approvals_expire_after(Duration::from_secs(3600))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id_of = thread.id().clone();
        parked(how, &agent, &thread).await;
        let record = waiting(&process, &id_of).await.remove(0);
        stage.clock.advance(Duration::from_secs(61 * 60));
        process.live().await;
        assert_eq!(waiting(&process, &id_of).await, []);
        for decision in [Decision::Approved, Decision::Denied] {
            let late = decide(&process, &record, decision).await;
            assert_eq!(why(late), Unanswerable::Expired);
        }
        // The same through a run: it stays parked.
        let late = go_on(how, &agent, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        let late = late.unwrap_err();
        assert!(
            matches!(
                late.source,
                RunError::Store(Error::NotAnswerable {
                    why: Unanswerable::Expired,
                    ..
                })
            ),
            "{late:?}"
        );
        assert_eq!(pending(late.outcome()), ["c1"]);
        let listed = records(&process, &id_of).await;
        assert_eq!(states(&listed), [ApprovalState::Expired]);
        assert_eq!((pay.runs(), model.calls()), (0, 1));

        let outcome = go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(said(&outcome), "u a(c1) t(c1:expired) a");
        assert_eq!(
            result_text(&outcome.messages, "c1"),
            "not run: nobody approved the call in time"
        );
        assert_eq!((pay.runs(), model.calls()), (0, 2));
        let late = decide(&process, &record, Decision::Approved).await;
        assert!(matches!(
            why(late),
            Unanswerable::Expired | Unanswerable::Withdrawn
        ));
        assert_eq!(pay.runs(), 0);
    });
}
