//! Answers that are repeated, forged, from other tenants, or concurrent with a fault.

use throughline::agent::RunError;
use throughline::model::{ApprovalResponse, Body, Content, Message, Role};
use throughline::store::{
    Answer, ApprovalState, Authority, CallState, Decision, Error, ErrorKind, Tenant, Unanswerable,
    arguments_digest,
};
use throughline::thread::OnOpenCalls;
use throughline::{StopReason, Threads};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, everywhere, result_text, said};

use super::{
    agent, answer, approve, calls, decide, go_on, guarded, id, model, parked, pending, records,
    states, waiting, why,
};

fn two() -> Step {
    Step::calls([("c1", "pay", "{}"), ("c2", "pay", "{}")])
}

#[test]
fn b63_one_answer_counts_however_often_and_in_however_many_processes_it_is_given() {
    everywhere(async |stage, how| {
        // Through the record, before and after it is used.
        let pay = guarded("pay");
        let process = stage.process().await;
        let one = model([two(), Step::text("done")]);
        let here = agent(stage, &process, &one, &[&pay]);
        let thread = here.new_thread();
        parked(how, &here, &thread).await;
        let [first, second] = waiting(&process, thread.id()).await.try_into().unwrap();
        let said_yes = decide(&process, &first, Decision::Approved).await.unwrap();
        let again = decide(&process, &first, Decision::Approved).await.unwrap();
        assert_eq!(again, said_yes);
        let no = decide(&process, &first, Decision::Denied).await;
        assert_eq!(why(no), Unanswerable::Answered);
        // Through the run: another client gives the same answer, or the opposite.
        let no = go_on(how, &here, &thread, |run, calls| {
            run.reject(&calls.of("c1"), None)
        })
        .await;
        let no = no.unwrap_err().source;
        assert!(
            matches!(&no, RunError::AlreadyAnswered { call } if call == "c1"),
            "{no:?}"
        );
        let late = go_on(how, &here, &thread, |run, calls| {
            run.expire(&calls.of("c1"))
        })
        .await;
        let late = late.unwrap_err().source;
        assert!(matches!(late, RunError::AlreadyAnswered { .. }), "{late:?}");
        assert_eq!(pay.runs(), 0);
        let outcome = go_on(how, &here, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        assert_eq!(pending(&outcome.unwrap()), ["c2"]);
        assert_eq!(pay.runs(), 1);
        let used = decide(&process, &first, Decision::Approved).await.unwrap();
        assert_eq!(used.state, ApprovalState::Used);
        assert_eq!(used.answered, said_yes.answered);
        let no = decide(&process, &first, Decision::Denied).await;
        assert_eq!(why(no), Unanswerable::Answered);
        let outcome = go_on(how, &here, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        assert_eq!(pending(&outcome.unwrap()), ["c2"]);
        let no = go_on(how, &here, &thread, |run, calls| {
            run.reject(&calls.of("c1"), None)
        })
        .await;
        let no = no.unwrap_err().source;
        assert!(matches!(no, RunError::AlreadyAnswered { .. }), "{no:?}");
        // A recorded denial stands with its reason.
        let threads = process.threads();
        let no = threads.decide(&second, Decision::Denied, "ada", Some("not now"));
        no.await.unwrap();
        let outcome = go_on(how, &here, &thread, |run, calls| {
            run.reject(&calls.of("c2"), Some("never"))
        });
        let outcome = outcome.await.unwrap();
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2:rejected) a");
        assert_eq!(
            result_text(&outcome.messages, "c2"),
            "not run: the call was rejected: not now"
        );
        assert_eq!((pay.runs(), one.calls()), (1, 2));

        // Approved and denied at the same moment, from two processes.
        let pay = guarded("pay");
        let other = stage.process().await;
        let raced = model([Step::calls([("c1", "pay", "{}")]), Step::text("done")]);
        let here = agent(stage, &process, &raced, &[&pay]);
        let thread = here.new_thread();
        parked(how, &here, &thread).await;
        let record = waiting(&process, thread.id()).await.remove(0);
        let (yes, no) = tokio::join!(
            decide(&process, &record, Decision::Approved),
            decide(&other, &record, Decision::Denied)
        );
        let outcome = go_on(how, &here, &thread, |run, _| run).await.unwrap();
        match (yes, no) {
            (Ok(_), no) => {
                assert_eq!(why(no), Unanswerable::Answered);
                assert_eq!(
                    (said(&outcome).as_str(), pay.runs()),
                    ("u a(c1) t(c1) a", 1)
                );
            }
            (yes, Ok(_)) => {
                assert_eq!(why(yes), Unanswerable::Answered);
                assert_eq!(said(&outcome), "u a(c1) t(c1:rejected) a");
                assert_eq!(pay.runs(), 0);
            }
            both => panic!("{both:?}"),
        }
    });
}

#[test]
fn b65_an_answer_for_other_arguments_is_refused_and_nothing_runs() {
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let model = model([Step::calls([("c1", "pay", r#"{"sum":1}"#)])]);
        let agent = agent(stage, &process, &model, &[&pay]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let record = waiting(&process, thread.id()).await.remove(0);
        for other in [
            arguments_digest("pay", r#"{"sum":100}"#),
            arguments_digest("pay", r#"{"sum": 1}"#),
            arguments_digest("send", r#"{"sum":1}"#),
            [0; 16],
        ] {
            for decision in [Decision::Approved, Decision::Denied] {
                let forged = Answer {
                    shown: other,
                    ..answer(&record, decision)
                };
                let refused = process.threads().answer(&forged).await;
                assert_eq!(why(refused), Unanswerable::OtherArguments);
            }
        }
        assert_eq!(waiting(&process, thread.id()).await, [record]);
        let outcome = go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        assert_eq!(
            (outcome.stop, pending(&outcome)),
            (StopReason::Parked, vec!["c1"])
        );
        assert_eq!((pay.runs(), model.calls()), (0, 1));
    });
}

#[test]
fn b66_an_answer_to_nothing_or_to_a_strangers_record_is_not_found_and_never_executed() {
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let model = model([Step::calls([("c1", "pay", "{}")])]);
        let agent = agent(stage, &process, &model, &[&pay]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let record = waiting(&process, thread.id()).await.remove(0);

        let stranger = Authority::assume().scope(Tenant::new("stranger").unwrap());
        let strange = Threads::scoped(&process.store, stranger);
        let foreign = strange.answer(&answer(&record, Decision::Approved)).await;
        let foreign = foreign.unwrap_err();
        let mut nobody = answer(&record, Decision::Approved);
        nobody.approval = process.store.ids().approval();
        let unknown = process.threads().answer(&nobody).await.unwrap_err();
        for (error, id) in [(&foreign, record.id), (&unknown, nobody.approval)] {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let same = Error::NotFound {
                what: "approval",
                id: id.to_string(),
            };
            assert_eq!(error.to_string(), same.to_string());
        }
        assert!(strange.approval(record.id).await.is_err());
        assert_eq!(
            waiting(&process, thread.id()).await,
            std::slice::from_ref(&record)
        );

        // An answer that is sent and not recorded.
        for request in ["c1", "c9"] {
            let said = Content::new(Body::ApprovalResponse(ApprovalResponse {
                request: id(request),
                approved: true,
                reason: None,
            }));
            let input = Message::new(Role::User, vec![said]);
            let run = agent.run_on(&thread, input);
            let refused = how.finish(run).await.unwrap_err().source;
            assert!(
                matches!(&refused, RunError::Unasked { request: of } if of == request),
                "{refused:?}"
            );
        }
        assert_eq!(waiting(&process, thread.id()).await, [record]);
        assert_eq!(calls(&process, thread.id()).await, [CallState::Approval]);
        assert_eq!((pay.runs(), model.calls()), (0, 1));
        assert_eq!(process.history(thread.id()).await, "");
    });
}

#[test]
fn b67_a_resume_that_failed_is_tried_again_with_the_kept_result_or_the_kept_answer() {
    everywhere(async |stage, how| {
        // The model fails after the tool ran; a resume may repeat the answer or not.
        for repeats in [false, true] {
            let pay = guarded("pay");
            let process = stage.process().await;
            let model = model([
                Step::calls([("c1", "pay", "{}")]),
                Step::fails(throughline::client::ErrorKind::Invalid),
                Step::text("done"),
            ]);
            let agent = agent(stage, &process, &model, &[&pay]);
            let thread = agent.new_thread();
            parked(how, &agent, &thread).await;
            let failed = go_on(how, &agent, &thread, |run, calls| {
                run.approve(&calls.of("c1"))
            })
            .await;
            let failed = failed.unwrap_err();
            assert!(matches!(failed.source, RunError::Client(_)), "{failed:?}");
            assert_eq!(said(failed.outcome()), "u a(c1) t(c1)");
            assert_eq!(pay.runs(), 1);
            let no = go_on(how, &agent, &thread, |run, calls| {
                run.reject(&calls.of("c1"), None)
            })
            .await;
            let no = no.unwrap_err().source;
            assert!(matches!(no, RunError::AlreadyAnswered { .. }), "{no:?}");
            let outcome = go_on(how, &agent, &thread, |run, calls| match repeats {
                true => run.approve(&calls.of("c1")),
                false => run,
            });
            let outcome = outcome.await.unwrap();
            assert_eq!(
                (outcome.stop, outcome.text()),
                (StopReason::Done, "done".to_owned())
            );
            assert_eq!((pay.runs(), model.calls()), (1, 3));
            let listed = records(&process, thread.id()).await;
            assert_eq!(states(&listed), [ApprovalState::Used]);
            assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a");
        }

        // It fails before the call is dispatched.
        let pay = guarded("pay");
        let first = stage.process().await;
        let asked_first = model([Step::calls([("c1", "pay", "{}")])]);
        let here = agent(stage, &first, &asked_first, &[&pay]);
        let thread = here.new_thread();
        let id_of = thread.id().clone();
        parked(how, &here, &thread).await;
        first.faulty.always("intend", Fault::Before);
        let failed = go_on(how, &here, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        let failed = failed.unwrap_err().source;
        assert!(matches!(failed, RunError::Store(_)), "{failed:?}");
        let listed = records(&first, &id_of).await;
        assert_eq!(
            (states(&listed), pay.runs()),
            (vec![ApprovalState::Approved], 0)
        );
        // Again, and the process dies.
        first.faulty.heal();
        first.die_in("intend", Fault::HangBefore);
        let run = here.resume(&thread);
        tokio::spawn(async move { how.finish(run).await });
        first.died().await;
        let second = stage.process().await;
        assert_eq!(
            states(&records(&second, &id_of).await),
            [ApprovalState::Approved]
        );
        let asked_second = model([Step::text("done")]);
        let there = agent(stage, &second, &asked_second, &[&pay]);
        let thread = there.open(id_of.clone()).await.unwrap();
        let outcome = go_on(how, &there, &thread, |run, _| run).await.unwrap();
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!((pay.runs(), asked_second.calls()), (1, 1));
        assert_eq!(
            states(&records(&second, &id_of).await),
            [ApprovalState::Used]
        );
    });
}

#[test]
fn b70_new_input_withdraws_what_waits_or_is_refused_and_names_it() {
    everywhere(async |stage, how| {
        let (pay, look) = (guarded("pay"), Fake::named("look"));
        let process = stage.process().await;
        let calls_of = || Step::calls([("c1", "pay", "{}"), ("c2", "look", "{}")]);
        let model = model([calls_of(), Step::text("never mind")]);
        let here = agent(stage, &process, &model, &[&pay, &look]);
        let thread = here.new_thread();
        let id_of = thread.id().clone();
        let waits = parked(how, &here, &thread).await;
        let record = waiting(&process, &id_of).await.remove(0);

        let run = here.run_on(&thread, "and now?");
        let run = run.on_open_calls(OnOpenCalls::Reject);
        match how.finish(run).await.unwrap_err().source {
            RunError::OpenCalls { run, pending, .. } => {
                assert_eq!((run, pending), (waits.run, vec!["c1".to_owned()]));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(
            waiting(&process, &id_of).await,
            std::slice::from_ref(&record)
        );
        assert_eq!(
            (process.history(&id_of).await.as_str(), model.calls()),
            ("", 1)
        );

        let outcome = how.finish(here.run_on(&thread, "forget it")).await.unwrap();
        assert_eq!(outcome.text(), "never mind");
        assert_eq!(
            process.history(&id_of).await,
            "u a(c1,c2) t(c1:withdrawn,c2) u a"
        );
        assert_eq!(thread.pending(), []);
        let late = decide(&process, &record, Decision::Approved).await;
        assert_eq!(why(late), Unanswerable::Withdrawn);
        let late = go_on(how, &here, &thread, |run, calls| {
            run.approve(&calls.of("c1"))
        })
        .await;
        let late = late.unwrap_err().source;
        assert!(matches!(late, RunError::NotPending { .. }), "{late:?}");
        assert_eq!((pay.runs(), look.runs(), model.calls()), (0, 1, 2));
        let listed = records(&process, &id_of).await;
        assert_eq!(states(&listed), [ApprovalState::Withdrawn]);
    });
}

/// An answer counts for a run that was interrupted between its step and its first dispatch.
#[test]
fn an_answer_counts_although_a_sibling_is_still_to_be_dispatched() {
    everywhere(async |stage, how| {
        for by_run in [false, true] {
            let (pay, look) = (guarded("pay"), Fake::named("look"));
            let first = stage.process().await;
            let asked_first = model([Step::calls([("c1", "pay", "{}"), ("c2", "look", "{}")])]);
            let here = agent(stage, &first, &asked_first, &[&pay, &look]);
            let thread = here.new_thread();
            let id_of = thread.id().clone();
            first.die_in("step", Fault::HangAfter);
            let run = here.run_on(&thread, "go");
            tokio::spawn(async move { how.finish(run).await });
            first.died().await;
            let second = stage.process().await;
            if !by_run {
                let record = waiting(&second, &id_of).await.remove(0);
                approve(&second, &record).await;
            }
            let asked_second = model([Step::text("done")]);
            let there = agent(stage, &second, &asked_second, &[&pay, &look]);
            let thread = there.open(id_of.clone()).await.unwrap();
            let outcome = go_on(how, &there, &thread, |run, calls| match by_run {
                true => run.approve(&calls.of("c1")),
                false => run,
            });
            let outcome = outcome.await.unwrap();
            assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2) a");
            assert_eq!((pay.runs(), look.runs()), (1, 1));
        }
    });
}
