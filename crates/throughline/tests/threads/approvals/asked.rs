//! Requests for approval, and what happens when they are answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline::StopReason;
use throughline::agent::Limits;
use throughline::model::Role;
use throughline::store::{
    ApprovalState, CallRef, CallState, Clock, Decision, RunFilter, arguments_digest,
};
use throughline::thread::Awaits;
use throughline::tool::ToolOutput;
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, everywhere, result_text, said, short};

use super::{
    agent, approve, builder, calls, decide, go_on, guarded, model, now, parked, pending, records,
    states, waiting,
};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn b56_a_call_that_needs_approval_parks_with_one_durable_record() {
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let arguments = r#"{"to": "a",  "sum": 1.0}"#;
        let model = model([Step::calls([("c1", "pay", arguments)])]);
        let agent = builder(stage, &process, &model)
            .tool(pay.clone())
            .approvals_expire_after(HOUR)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id_of = thread.id().clone();
        let asked_at = now(stage);
        let outcome = parked(how, &agent, &thread).await;
        assert_eq!((pay.runs(), model.calls()), (0, 1));
        assert_eq!(said(&outcome), "u a(c1)");
        // Every process lists it.
        process.kill();
        let other = stage.process().await;
        let listed = waiting(&other, &id_of).await;
        let [record] = &listed[..] else {
            panic!("{listed:?}");
        };
        assert_eq!(record.thread, id_of);
        let call = CallRef {
            run: outcome.run,
            step: 0,
            position: 0,
        };
        assert_eq!(record.call, call);
        assert_eq!(record.shown, arguments_digest("pay", arguments));
        assert_eq!(record.state, ApprovalState::Waiting);
        assert_eq!(record.created, asked_at);
        assert_eq!(record.expires, Some(asked_at + 3_600_000));
        assert_eq!((&record.answered, &record.reason), (&None, &None));
        assert_eq!(
            record.detail.as_ref().unwrap().get(),
            r#"{"tool":"pay","call":"c1","arguments":"{\"to\": \"a\",  \"sum\": 1.0}"}"#
        );
        let [waits] = &outcome.pending[..] else {
            panic!("{:?}", outcome.pending);
        };
        assert_eq!(
            (waits.awaits, waits.approval),
            (Awaits::Approval, Some(record.id))
        );
        assert_eq!(calls(&other, &id_of).await, [CallState::Approval]);
        assert_eq!(other.history(&id_of).await, "");
    });
}

#[test]
fn b57_a_safe_sibling_runs_at_once_and_its_result_is_journaled_before_the_run_parks() {
    everywhere(async |stage, how| {
        let (pay, look) = (guarded("pay"), Fake::named("look"));
        let process = stage.process().await;
        let beside = stage.process().await;
        let at_park = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&at_park);
        let (store, scope) = (beside.store.clone(), beside.scope());
        process.faulty.on("park", move || {
            let (store, scope, seen) = (store.clone(), scope.clone(), Arc::clone(&seen));
            async move {
                let runs = store.runs(&scope, &RunFilter::default(), None, 1).await;
                let run = runs.unwrap().found[0].id;
                let journal = store.journal(&scope, run).await.unwrap();
                let states = journal.calls.iter().map(|call| call.state);
                seen.lock().unwrap().push(states.collect::<Vec<_>>());
            }
        });
        let model = model([Step::calls([("c1", "pay", "{}"), ("c2", "look", "{}")])]);
        let agent = agent(stage, &process, &model, &[&pay, &look]);
        let thread = agent.new_thread();
        let outcome = parked(how, &agent, &thread).await;
        assert_eq!((pay.runs(), look.runs()), (0, 1));
        assert_eq!(said(&outcome), "u a(c1,c2) t(c2)");
        assert_eq!(pending(&outcome), ["c1"]);
        let listed = records(&process, thread.id()).await;
        let asked: Vec<_> = listed.iter().map(|one| one.call.position).collect();
        assert_eq!(asked, [0]);
        let at_park = at_park.lock().unwrap();
        assert_eq!(*at_park, [[CallState::Approval, CallState::Done]]);
    });
}

#[test]
fn b58_an_approved_call_runs_once_and_the_model_sees_calls_and_results_in_order() {
    everywhere(async |stage, how| {
        let (pay, look) = (guarded("pay"), Fake::named("look"));
        let process = stage.process().await;
        let steps = [
            Step::calls([
                ("c1", "pay", "{}"),
                ("c2", "look", "{}"),
                ("c3", "pay", "{}"),
            ]),
            Step::text("done"),
        ];
        let model = model(steps);
        let agent = agent(stage, &process, &model, &[&pay, &look]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.approve(&calls.of("c1")).approve(&calls.of("c3"))
        });
        let outcome = outcome.await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(said(&outcome), "u a(c1,c2,c3) t(c1,c2,c3) a");
        let asked = model.asked();
        assert_eq!(short(&asked[1].messages), "u a(c1,c2,c3) t(c1,c2,c3)");
        assert_eq!((pay.runs(), look.runs(), asked.len()), (2, 1, 2));
        let listed = records(&process, thread.id()).await;
        assert_eq!(states(&listed), [ApprovalState::Used; 2]);
        assert_eq!(process.history(thread.id()).await, said(&outcome));
    });
}

#[test]
fn b59_a_rejected_call_does_not_run_and_the_model_reads_why() {
    everywhere(async |stage, how| {
        let fixed = "not run: the call was rejected";
        for (reason, text) in [
            (None, fixed.to_owned()),
            (Some("too much"), format!("{fixed}: too much")),
            (Some(" \n"), fixed.to_owned()),
        ] {
            for elsewhere in [false, true] {
                let pay = guarded("pay");
                let process = stage.process().await;
                let model = model([Step::calls([("c1", "pay", "{}")]), Step::text("a pity")]);
                let agent = agent(stage, &process, &model, &[&pay]);
                let thread = agent.new_thread();
                parked(how, &agent, &thread).await;
                let outcome = if elsewhere {
                    let record = waiting(&process, thread.id()).await.remove(0);
                    let threads = process.threads();
                    let no = threads.decide(&record, Decision::Denied, "ada", reason);
                    assert_eq!(no.await.unwrap().state, ApprovalState::Denied);
                    go_on(how, &agent, &thread, |run, _| run).await
                } else {
                    go_on(how, &agent, &thread, |run, calls| {
                        run.reject(&calls.of("c1"), reason)
                    })
                    .await
                };
                let outcome = outcome.unwrap();
                assert_eq!(said(&outcome), "u a(c1) t(c1:rejected) a");
                assert_eq!(result_text(&outcome.messages, "c1"), text);
                assert_eq!((pay.runs(), model.calls()), (0, 2));
                let listed = records(&process, thread.id()).await;
                assert_eq!(states(&listed), [ApprovalState::Denied]);
            }
        }
    });
}

#[test]
fn b60_one_approved_and_one_rejected_give_one_tool_message_in_call_order() {
    let whole = Mutex::new(Vec::new());
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let steps = [
            Step::calls([("c1", "pay", "{}"), ("c2", "pay", "{}")]),
            Step::text("done"),
        ];
        let model = model(steps);
        let agent = agent(stage, &process, &model, &[&pay]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.reject(&calls.of("c2"), Some("no"))
                .approve(&calls.of("c1"))
        });
        let outcome = outcome.await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2:rejected) a");
        let tools = outcome.messages.iter().filter(|one| one.role == Role::Tool);
        assert_eq!(tools.count(), 1);
        assert_eq!(pay.runs(), 1);
        assert_eq!(process.history(thread.id()).await, said(&outcome));
        let mut contents = outcome.messages;
        for message in &mut contents {
            message.id = None;
        }
        whole.lock().unwrap().push(contents);
    });
    let whole = whole.into_inner().unwrap();
    assert_eq!(whole.len(), 4);
    assert!(whole.iter().all(|one| *one == whole[0]), "{whole:?}");
}

#[test]
fn b61_the_second_is_approved_first_and_runs_while_the_model_waits_for_the_first() {
    everywhere(async |stage, how| {
        let (pay, send) = (guarded("pay"), guarded("send"));
        let process = stage.process().await;
        let steps = [
            Step::calls([("c1", "pay", "{}"), ("c2", "send", "{}")]),
            Step::text("done"),
        ];
        let model = model(steps);
        let agent = agent(stage, &process, &model, &[&pay, &send]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.approve(&calls.of("c2"))
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(
            (outcome.stop, pending(&outcome)),
            (StopReason::Parked, vec!["c1"])
        );
        assert_eq!((pay.runs(), send.runs(), model.calls()), (0, 1, 1));
        assert_eq!(said(&outcome), "u a(c1,c2) t(c2)");
        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(short(&model.asked()[1].messages), "u a(c1,c2) t(c1,c2)");
        assert_eq!((pay.runs(), send.runs(), model.calls()), (1, 1, 2));
        assert_eq!(process.history(thread.id()).await, "u a(c1,c2) t(c1,c2) a");
    });
}

#[test]
fn b62_an_answer_in_another_process_days_later_gives_the_same_result() {
    everywhere(async |stage, how| {
        let steps = || Step::calls([("c1", "pay", "{}"), ("c2", "look", "{}")]);
        // In one process.
        let (pay, look) = (guarded("pay"), Fake::named("look"));
        let process = stage.process().await;
        let one = model([steps(), Step::text("done")]);
        let here = agent(stage, &process, &one, &[&pay, &look]);
        let thread = here.new_thread();
        parked(how, &here, &thread).await;
        let expected = go_on(how, &here, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        let expected = expected.unwrap();

        let (pay, look) = (guarded("pay"), Fake::named("look"));
        let first = stage.process().await;
        let asked_first = model([steps()]);
        let there = agent(stage, &first, &asked_first, &[&pay, &look]);
        let thread = there.new_thread();
        let id_of = thread.id().clone();
        parked(how, &there, &thread).await;
        first.kill();
        stage.clock.advance(Duration::from_secs(3 * 86_400));
        let second = stage.process().await;
        let record = waiting(&second, &id_of).await.remove(0);
        approve(&second, &record).await;
        second.kill();
        let third = stage.process().await;
        let asked_third = model([Step::text("done")]);
        let there = agent(stage, &third, &asked_third, &[&pay, &look]);
        let thread = there.open(id_of.clone()).await.unwrap();
        let outcome = go_on(how, &there, &thread, |run, _| run).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(said(&outcome), said(&expected));
        let texts = |outcome: &throughline::Outcome| {
            let text = |call| result_text(&outcome.messages, call);
            (text("c1"), text("c2"), outcome.text())
        };
        assert_eq!(texts(&outcome), texts(&expected));
        assert_eq!(
            short(&asked_third.asked()[0].messages),
            short(&one.asked()[1].messages)
        );
        assert_eq!((pay.runs(), look.runs()), (1, 1));
        assert_eq!(third.history(&id_of).await, said(&expected));
    });
}

#[test]
fn b68_a_tool_that_is_gone_is_an_error_result_and_the_run_goes_on() {
    everywhere(async |stage, how| {
        for (failed_rounds, stop) in [(3, StopReason::Done), (1, StopReason::ErrorLimit)] {
            let pay = guarded("pay");
            let first = stage.process().await;
            let asked_first = model([Step::calls([("c1", "pay", "{}")])]);
            let limits = Limits {
                failed_rounds,
                ..Limits::default()
            };
            let here = builder(stage, &first, &asked_first);
            let here = here
                .tool(pay.clone())
                .limits(limits.clone())
                .build()
                .unwrap();
            let thread = here.new_thread();
            let id_of = thread.id().clone();
            parked(how, &here, &thread).await;
            let record = waiting(&first, &id_of).await.remove(0);
            approve(&first, &record).await;
            first.kill();
            let second = stage.process().await;
            let asked_second = model([Step::text("so be it")]);
            let there = builder(stage, &second, &asked_second);
            let there = there
                .tool(Fake::named("look"))
                .limits(limits)
                .build()
                .unwrap();
            let thread = there.open(id_of.clone()).await.unwrap();
            let outcome = go_on(how, &there, &thread, |run, _| run).await.unwrap();
            assert_eq!(said(&outcome), "u a(c1) t(c1:error) a");
            assert_eq!(
                result_text(&outcome.messages, "c1"),
                "the tool \"pay\" is no longer available"
            );
            assert_eq!(
                (outcome.stop, outcome.text()),
                (stop, "so be it".to_owned())
            );
            assert_eq!((pay.runs(), asked_second.calls()), (0, 1));
        }
    });
}

#[test]
fn b69_a_planned_call_is_asked_about_after_a_crash_when_its_tool_needs_leave_by_then() {
    everywhere(async |stage, how| {
        let free = Fake::named("pay");
        let look = Fake::named("look");
        let first = stage.process().await;
        let planned = [("c1", "pay", "{}"), ("c2", "look", "{}")];
        let asked_first = model([Step::calls(planned)]);
        let here = agent(stage, &first, &asked_first, &[&free, &look]);
        let thread = here.new_thread();
        let id_of = thread.id().clone();
        first.die_in("step", Fault::HangAfter);
        let run = here.run_on(&thread, "go");
        tokio::spawn(async move { how.finish(run).await });
        first.died().await;
        let second = stage.process().await;
        assert_eq!(calls(&second, &id_of).await, [CallState::Planned; 2]);

        let pay = guarded("pay");
        let asked_second = model([Step::text("done")]);
        let there = builder(stage, &second, &asked_second)
            .tool(pay.clone())
            .tool(look.clone())
            .approvals_expire_after(HOUR)
            .build()
            .unwrap();
        let thread = there.open(id_of.clone()).await.unwrap();
        let outcome = go_on(how, &there, &thread, |run, _| run).await.unwrap();
        assert_eq!(
            (outcome.stop, pending(&outcome)),
            (StopReason::Parked, vec!["c1"])
        );
        assert_eq!(said(&outcome), "u a(c1,c2) t(c2)");
        assert_eq!((pay.runs(), look.runs(), asked_second.calls()), (0, 1, 0));
        let states_now = calls(&second, &id_of).await;
        assert_eq!(states_now, [CallState::Approval, CallState::Done]);
        let listed = waiting(&second, &id_of).await;
        let [record] = &listed[..] else {
            panic!("{listed:?}");
        };
        assert_eq!(outcome.pending[0].approval, Some(record.id));
        assert_eq!(record.shown, arguments_digest("pay", "{}"));
        assert_eq!(record.expires, Some(stage.clock.now() + 3_600_000));
        // Resuming without an answer makes no second request.
        let outcome = go_on(how, &there, &thread, |run, _| run).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Parked);
        assert_eq!(waiting(&second, &id_of).await, listed);
        approve(&second, record).await;
        let outcome = go_on(how, &there, &thread, |run, _| run).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2) a");
        assert_eq!((free.runs(), pay.runs(), look.runs()), (0, 1, 1));
        let listed = records(&second, &id_of).await;
        assert_eq!(states(&listed), [ApprovalState::Used]);
    });
}

#[test]
fn b71_the_same_call_twice_is_two_records_and_one_answer_settles_one() {
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let same = r#"{"to":"a"}"#;
        let model = model([
            Step::calls([("c1", "pay", same), ("c2", "pay", same)]),
            Step::text("done"),
        ]);
        let agent = agent(stage, &process, &model, &[&pay]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let listed = waiting(&process, thread.id()).await;
        let [one, two] = &listed[..] else {
            panic!("{listed:?}");
        };
        assert_eq!(one.shown, two.shown);
        assert_ne!(one.id, two.id);
        assert_eq!((one.call.position, two.call.position), (0, 1));
        approve(&process, two).await;
        let outcome = go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        assert_eq!(
            (outcome.stop, pending(&outcome)),
            (StopReason::Parked, vec!["c1"])
        );
        assert_eq!((pay.runs(), model.calls()), (1, 1));
        let listed = records(&process, thread.id()).await;
        assert_eq!(
            states(&listed),
            [ApprovalState::Waiting, ApprovalState::Used]
        );
        decide(&process, &listed[0], Decision::Denied)
            .await
            .unwrap();
        let outcome = go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1:rejected,c2) a");
        assert_eq!(pay.runs(), 1);
    });
}

#[test]
fn b72_a_call_id_that_comes_again_needs_an_answer_of_its_own() {
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let model = model([
            Step::calls([("c1", "pay", "{}")]),
            Step::calls([("c1", "pay", "{}")]),
            Step::text("done"),
        ]);
        let agent = agent(stage, &process, &model, &[&pay]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let old = waiting(&process, thread.id()).await.remove(0);
        approve(&process, &old).await;
        let outcome = go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        assert_eq!((outcome.stop, pay.runs()), (StopReason::Parked, 1));
        let listed = waiting(&process, thread.id()).await;
        let [new] = &listed[..] else {
            panic!("{listed:?}");
        };
        assert_ne!(new.id, old.id);
        assert_eq!((new.call.step, old.call.step), (1, 0));
        // The old answer has no effect on the new call.
        let again = decide(&process, &old, Decision::Approved).await.unwrap();
        assert_eq!(again.state, ApprovalState::Used);
        let outcome = go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        assert_eq!((outcome.stop, pay.runs()), (StopReason::Parked, 1));
        assert_eq!(waiting(&process, thread.id()).await, listed);
        approve(&process, new).await;
        let outcome = go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a(c1) t(c1) a");
        assert_eq!(pay.runs(), 2);
    });
}

#[test]
fn b73_a_second_question_after_resuming_is_a_new_record_and_used_ones_are_not_pending() {
    everywhere(async |stage, how| {
        let (pay, send) = (guarded("pay"), guarded("send"));
        let process = stage.process().await;
        let model = model([
            Step::calls([("c1", "pay", "{}")]),
            Step::calls([("c2", "send", "{}")]),
            Step::text("done"),
        ]);
        let agent = agent(stage, &process, &model, &[&pay, &send]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(
            (outcome.stop, pending(&outcome)),
            (StopReason::Parked, vec!["c2"])
        );
        assert_eq!(said(&outcome), "u a(c1) t(c1) a(c2)");
        let listed = records(&process, thread.id()).await;
        assert_eq!(
            states(&listed),
            [ApprovalState::Used, ApprovalState::Waiting]
        );
        assert_eq!(waiting(&process, thread.id()).await, listed[1..]);
        assert_eq!(thread.pending(), outcome.pending);
        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.approve(&calls.of("c2"))
        })
        .await;
        assert_eq!(said(&outcome.unwrap()), "u a(c1) t(c1) a(c2) t(c2) a");
        assert_eq!((pay.runs(), send.runs(), model.calls()), (1, 1, 3));
        assert_eq!(waiting(&process, thread.id()).await, []);
        assert_eq!(thread.pending(), []);
    });
}

#[test]
fn b74_an_approved_tool_that_terminates_ends_the_run_without_a_model_call() {
    everywhere(async |stage, how| {
        let stop = Fake::doing("stop", |_, _| async {
            Ok(ToolOutput::text("enough").and_terminate())
        });
        let stop = stop.with(|spec| spec.approval = throughline::tool::Approval::Always);
        let process = stage.process().await;
        let model = model([Step::calls([("c1", "stop", "{}")])]);
        let agent = agent(stage, &process, &model, &[&stop]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let outcome = go_on(how, &agent, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.stop, StopReason::Terminated);
        assert_eq!(said(&outcome), "u a(c1) t(c1)");
        assert_eq!(result_text(&outcome.messages, "c1"), "enough");
        assert_eq!((stop.runs(), model.calls()), (1, 1));
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1)");
    });
}
