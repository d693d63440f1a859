//! Declared tools, with a store.

use throughline::StopReason;
use throughline::agent::RunError;
use throughline::store::CallState;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{everywhere, result_text, said};

use super::{agent, calls, declared, go_on, journal, model, parked, pending};

fn two() -> Step {
    Step::calls([("c1", "theirs", "{}"), ("c2", "theirs", "{}")])
}

#[test]
fn b39_one_answer_of_two_is_durable_and_the_run_stays_parked_for_the_other() {
    everywhere(async |stage, how| {
        let tool = declared("theirs");
        let first = stage.process().await;
        let said_first = model([two()]);
        let here = agent(stage, &first, &said_first, &[&tool]);
        let thread = here.new_thread();
        let id_of = thread.id().clone();
        let outcome = parked(how, &here, &thread).await;
        assert_eq!(pending(&outcome), ["c1", "c2"]);

        let outcome = go_on(how, &here, &thread, |run, calls| {
            run.answer(&calls.of("c1"), "one")
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.stop, StopReason::Parked);
        assert_eq!(pending(&outcome), ["c2"]);
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1)");
        assert_eq!(said_first.calls(), 1);
        assert_eq!(thread.pending(), outcome.pending);

        first.kill();
        let second = stage.process().await;
        let states = calls(&second, &id_of).await;
        assert_eq!(states, [CallState::Done, CallState::Client]);
        let said_second = model([Step::text("done")]);
        let there = agent(stage, &second, &said_second, &[&tool]);
        let thread = there.open(id_of.clone()).await.unwrap();
        // Opening is one round trip; the waiting calls are in the journal.
        thread.refresh().await.unwrap();
        assert_eq!(thread.pending(), outcome.pending);
        assert_eq!(second.history(&id_of).await, "");
        let outcome = go_on(how, &there, &thread, |run, calls| {
            run.answer(&calls.of("c2"), "two")
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2) a");
        assert_eq!(result_text(&outcome.messages, "c1"), "one");
        assert_eq!(said_second.calls(), 1);
        assert_eq!(second.history(&id_of).await, "u a(c1,c2) t(c1,c2) a");
        assert_eq!(tool.runs(), 0);
    });
}

#[test]
fn b40_a_second_answer_is_a_no_op_or_refused_and_the_first_stands() {
    everywhere(async |stage, how| {
        let tool = declared("theirs");
        let process = stage.process().await;
        let model = model([two(), Step::text("done")]);
        let agent = agent(stage, &process, &model, &[&tool]);
        let thread = agent.new_thread();
        let id_of = thread.id().clone();
        parked(how, &agent, &thread).await;
        let first = go_on(how, &agent, &thread, |run, calls| {
            run.answer(&calls.of("c1"), "one")
        })
        .await;
        let first = first.unwrap();
        let before = journal(&process, &id_of).await;

        let again = go_on(how, &agent, &thread, |run, calls| {
            run.answer(&calls.of("c1"), "one")
        })
        .await;
        assert_eq!(again.unwrap(), first);
        let other = go_on(how, &agent, &thread, |run, calls| {
            run.answer(&calls.of("c1"), "1")
        })
        .await;
        let other = other.unwrap_err();
        assert!(
            matches!(&other.source, RunError::AlreadyAnswered { call } if call == "c1"),
            "{other:?}"
        );
        let error = go_on(how, &agent, &thread, |run, calls| {
            run.answer_error(&calls.of("c1"), "one")
        });
        let error = error.await.unwrap_err().source;
        assert!(
            matches!(error, RunError::AlreadyAnswered { .. }),
            "{error:?}"
        );
        let stray = go_on(how, &agent, &thread, |run, calls| {
            run.answer(&calls.of("c9"), "one")
        })
        .await;
        match stray.unwrap_err().source {
            RunError::NotPending { call, pending } => {
                assert_eq!((&*call, pending), ("c9", vec!["c2".to_owned()]));
            }
            other => panic!("{other:?}"),
        }
        // A valid answer beside one for an unknown call is not accepted either.
        let both = go_on(how, &agent, &thread, |run, calls| {
            run.answer(&calls.of("c2"), "two")
                .answer(&calls.of("c9"), "nine")
        });
        let both = both.await.unwrap_err().source;
        assert!(matches!(both, RunError::NotPending { .. }), "{both:?}");
        let after = journal(&process, &id_of).await;
        assert_eq!((after.calls, after.entries), (before.calls, before.entries));
        assert_eq!(model.calls(), 1);

        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.answer(&calls.of("c2"), "two")
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(result_text(&outcome.messages, "c1"), "one");
        assert_eq!(process.history(&id_of).await, "u a(c1,c2) t(c1,c2) a");
        // The run has ended: nothing waits any more.
        let late = go_on(how, &agent, &thread, |run, calls| {
            run.answer(&calls.of("c2"), "3")
        })
        .await;
        let late = late.unwrap_err().source;
        assert!(matches!(late, RunError::NotPending { .. }), "{late:?}");
        assert_eq!(process.history(&id_of).await, "u a(c1,c2) t(c1,c2) a");
        assert_eq!((model.calls(), tool.runs()), (2, 0));
    });
}
