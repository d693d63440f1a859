//! Runs that end when they have to wait, as over HTTP: a node marked open, and answers that begin
//! the next run.

use futures_util::StreamExt;
use throughline::agent::{Input, OnRepeat, RunEnd, RunError, RunFailed, RunOptions};
use throughline::client::ErrorKind;
use throughline::model::{Body, Message, Role};
use throughline::store::{
    ApprovalFilter, ApprovalState, Decision, Error, Idempotency, NewThread, RunId, RunState,
};
use throughline::thread::{HistoryCache, HistoryPolicy, OnOpenCalls, OnPark};
use throughline::tool::{Approval, Effect, Parameters, Runs};
use throughline::{Agent, Outcome, RunEvent, StopReason, Thread, Threads};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{
    Fake, How, MadeCalls, Process, everywhere, result_text, said, short,
};

use crate::threads::actions::{Client, built, client, start};

const OPEN: HistoryPolicy = HistoryPolicy {
    on_park: OnPark::Publish,
    on_open_calls: OnOpenCalls::Reject,
    persistence: throughline::thread::Persistence::PerRun,
    parity: throughline::thread::Parity::None,
    on_interrupt: throughline::thread::OnInterrupt::Resume,
    on_busy: throughline::thread::OnBusy::Reject,
    on_service_id: throughline::thread::OnServiceId::Throw,
    on_other_upstream: throughline::thread::OnOtherUpstream::Refuse,
    on_lost: throughline::thread::OnLost::Tell,
};

fn agent(process: &Process, client: &Client, tools: &[&Fake]) -> Agent {
    built(process, client, tools, |builder| builder.history(OPEN))
}

fn guarded(name: &str) -> Fake {
    Fake::named(name).with(|spec| {
        spec.approval = Approval::Always;
        spec.parameters = Parameters::any();
    })
}

fn declared(name: &str) -> Fake {
    Fake::named(name).with(|spec| spec.runs = Runs::Outside)
}

/// The calls that a run left waiting.
async fn left(process: &Process, outcome: &Outcome) -> MadeCalls {
    MadeCalls::on(&process.threads(), &outcome.thread).await
}

/// A thread opened after a run.
async fn after(process: &Process, run: RunId) -> Thread {
    process.threads().open_after(run).await.unwrap()
}

fn free(process: &Process) -> Thread {
    let id = process.store.ids().thread();
    process.threads().make_free(NewThread::new(id))
}

/// A run that ends with open calls.
async fn asked(how: How, agent: &Agent, process: &Process) -> Outcome {
    let thread = free(process);
    let outcome = how.finish(agent.run_on(&thread, "go")).await.unwrap();
    assert_eq!(outcome.stop, StopReason::Parked);
    let run = process
        .store
        .run(&process.scope(), outcome.run)
        .await
        .unwrap();
    assert_eq!(run.state, RunState::Committed);
    assert!(run.published.is_some() && !run.leased);
    outcome
}

fn refusal(result: Result<Outcome, RunFailed>) -> RunError {
    result.unwrap_err().source
}

#[test]
fn results_from_outside_begin_the_next_run_and_every_branch_may_have_its_own() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (tide, wind) = (declared("tide"), Fake::named("wind"));
        let calls = [("c1", "tide", "{}"), ("c2", "wind", "{}")];
        let model = client([
            Step::calls(calls),
            Step::text("at four"),
            Step::text("at five"),
        ]);
        let agent = agent(&process, &model, &[&tide, &wind]);
        let first = asked(how, &agent, &process).await;
        assert_eq!(first.pending.len(), 1);
        assert_eq!(wind.runs(), 1, "what can run has run");
        let history = process.threads().open(first.run).await.unwrap().history();
        assert_eq!(short(history.iter().map(|one| &**one)), said(&first));

        let calls = left(&process, &first).await;
        for (text, heard) in [("four", "at four"), ("five", "at five")] {
            let thread = after(&process, first.run).await;
            let run = agent.reply_on(&thread, Vec::new());
            let told = how.finish(run.answer(&calls.of("c1"), text)).await.unwrap();
            assert_eq!((told.stop, told.text().as_str()), (StopReason::Done, heard));
            let shown = model.last_asked().unwrap().messages;
            assert_eq!(result_text(&shown, "c1"), text);
            assert_eq!(shown.iter().filter(|one| one.role == Role::Tool).count(), 2);
        }
        assert_eq!((wind.runs(), tide.runs()), (1, 0));
    });
}

#[test]
fn results_may_be_input_and_what_is_owed_is_refused_or_closed() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = declared("tide");
        let calls = [("c1", "tide", "{}"), ("c2", "tide", "{}")];
        let model = client([Step::calls(calls), Step::text("both"), Step::text("one")]);
        let agent = agent(&process, &model, &[&tide]);
        let first = asked(how, &agent, &process).await;

        let thread = after(&process, first.run).await;
        let owed = refusal(how.finish(agent.run_on(&thread, "well?")).await);
        let RunError::OpenCalls { run, pending, .. } = owed else {
            panic!("{owed:?}")
        };
        assert_eq!((run, pending.join(" ").as_str()), (first.run, "c1 c2"));

        let results = |ids: &[&str]| {
            let contents = first.messages.iter().flat_map(|one| &one.contents);
            let calls = contents.filter_map(|content| content.as_tool_call());
            let wanted = calls.filter(|call| ids.contains(&call.call.value()));
            let answers = wanted.map(|call| {
                call.answer(throughline::model::Outcome::Ok, "said".into())
                    .into()
            });
            Input::of([Message::new(Role::Tool, answers.collect())])
        };
        let thread = after(&process, first.run).await;
        let both = how
            .finish(agent.run_on(&thread, results(&["c1", "c2"])))
            .await;
        assert_eq!(both.unwrap().text(), "both");

        let thread = after(&process, first.run).await;
        let run = agent.run_on(&thread, results(&["c2"]));
        let one = how
            .finish(run.on_open_calls(OnOpenCalls::Close))
            .await
            .unwrap();
        assert_eq!(one.text(), "one");
        let shown = model.last_asked().unwrap().messages;
        assert_eq!(result_text(&shown, "c2"), "said");
        assert_ne!(result_text(&shown, "c1"), "said");

        let calls = left(&process, &one).await;
        let thread = after(&process, one.run).await;
        let stray = agent.reply_on(&thread, "x").answer(&calls.of("c1"), "late");
        let stray = refusal(how.finish(stray).await);
        assert!(matches!(stray, RunError::NotPending { .. }), "{stray:?}");
    });
}

#[test]
fn r25_a_call_that_needs_leave_is_run_by_the_one_run_that_takes_it() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let pay = guarded("pay");
        let model = client([
            Step::calls([
                ("c1", "pay", r#"{"to":"a"}"#),
                ("c2", "pay", r#"{"to":"b"}"#),
            ]),
            Step::text("paid"),
        ]);
        let agent = agent(&process, &model, &[&pay]);
        let first = asked(how, &agent, &process).await;
        assert!(first.pending.iter().all(|one| one.approval.is_some()));

        // An answer to one of two calls is not enough, and has no effect.
        let calls = left(&process, &first).await;
        let thread = after(&process, first.run).await;
        let half = agent.reply_on(&thread, Vec::new()).approve(&calls.of("c1"));
        let half = refusal(how.finish(half).await);
        assert!(matches!(half, RunError::OpenCalls { .. }), "{half:?}");
        assert_eq!(pay.runs(), 0);

        let thread = after(&process, first.run).await;
        let run = agent.reply_on(&thread, Vec::new());
        let run = run
            .approve(&calls.of("c1"))
            .reject(&calls.of("c2"), Some("not b"));
        let paid = how.finish(run).await.unwrap();
        assert_eq!((paid.stop, pay.runs()), (StopReason::Done, 1));
        let shown = model.last_asked().unwrap().messages;
        assert_eq!(result_text(&shown, "c2"), "not b");

        // Another branch is too late; the error names the first one.
        let thread = after(&process, first.run).await;
        let run = agent.reply_on(&thread, Vec::new());
        let late = how
            .finish(run.approve(&calls.of("c1")).approve(&calls.of("c2")))
            .await;
        match refusal(late) {
            RunError::Store(Error::Taken { by, .. }) => assert_eq!(by, paid.run),
            other => panic!("{other:?}"),
        }
        assert_eq!(pay.runs(), 1);
        let listed = process
            .threads()
            .approvals(&ApprovalFilter::default(), None)
            .await
            .unwrap();
        let mut states: Vec<_> = listed.found.iter().map(|one| one.state.as_str()).collect();
        states.sort_unstable();
        assert_eq!(states, ["denied", "used"]);
    });
}

#[test]
fn what_was_agreed_to_elsewhere_runs_when_the_response_is_continued() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let pay = guarded("pay");
        let model = client([Step::calls([("c1", "pay", "{}")]), Step::text("paid")]);
        let agent = agent(&process, &model, &[&pay]);
        let first = asked(how, &agent, &process).await;
        let threads = process.threads();
        let record = threads
            .approval(first.pending[0].approval.unwrap())
            .await
            .unwrap();
        threads
            .decide(&record, Decision::Approved, "ada", None)
            .await
            .unwrap();
        assert_eq!(pay.runs(), 0, "an answer alone runs nothing");
        let thread = after(&process, first.run).await;
        let paid = how.finish(agent.reply_on(&thread, "go on")).await.unwrap();
        assert_eq!((paid.text().as_str(), pay.runs()), ("paid", 1));
    });
}

#[test]
fn r3_a_run_that_dies_with_a_call_it_took_over_goes_on_and_never_runs_it_twice() {
    let deaths = [
        ("begin", Fault::HangAfter, 1),
        ("step", Fault::HangBefore, 1),
        ("step", Fault::HangAfter, 1),
        ("intend", Fault::HangBefore, 1),
        // From here on the tool may have had its effect.
        ("intend", Fault::HangAfter, 0),
        // The tool had its effect, and its result is lost: it is not run again.
        ("results", Fault::HangBefore, 1),
        ("results", Fault::HangAfter, 1),
        ("publish", Fault::HangBefore, 1),
    ];
    everywhere(async |stage, how| {
        for (method, fault, runs) in deaths {
            let first = stage.process().await;
            let pay = guarded("pay");
            let calls = Step::calls([("c1", "pay", "{}")]);
            let model = client([calls, Step::text("paid"), Step::text("paid")]);
            let dying = agent(&first, &model, &[&pay]);
            let waits = asked(how, &dying, &first).await;
            let calls = left(&first, &waits).await;
            let thread = after(&first, waits.run).await;
            let run = first.store.ids().run();
            let options = RunOptions {
                run: Some(run),
                on_park: Some(OnPark::Publish),
                ..RunOptions::default()
            };
            first.die_in(method, fault);
            let reply = dying.reply_on(&thread, Vec::new()).options(&options);
            start(how, reply.approve(&calls.of("c1")));
            first.died().await;

            let second = stage.process().await;
            let agent = agent(&second, &model, &[&pay]);
            let threads = second.threads();
            let resumed = agent.resume_run(&threads, run).await.unwrap();
            let outcome = how.finish(resumed).await.unwrap();
            let place = format!("{method} {fault:?}");
            assert_eq!(
                (outcome.stop, outcome.run),
                (StopReason::Done, run),
                "{place}"
            );
            assert_eq!(pay.runs(), runs, "{place}");
            let history = threads.open(run).await.unwrap().history();
            let history = short(history.iter().map(|one| &**one));
            let result = match (method, fault) {
                ("intend", Fault::HangAfter) | ("results", Fault::HangBefore) => "t(c1:unknown)",
                _ => "t(c1)",
            };
            assert_eq!(history, format!("u a(c1) {result} a"), "{place}");
            let late = agent.resume_run(&threads, run).await.unwrap();
            assert!(how.finish(late).await.is_err(), "it is over");
        }
    });
}

#[test]
fn a_call_that_was_taken_over_keeps_the_key_of_where_it_was_called() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let pay = guarded("pay").with(|spec| spec.effect = Effect::Keyed);
        let model = client([Step::calls([("c1", "pay", "{}")]), Step::text("paid")]);
        let agent = agent(&process, &model, &[&pay]);
        let first = asked(how, &agent, &process).await;
        let calls = left(&process, &first).await;
        let thread = after(&process, first.run).await;
        let run = agent.reply_on(&thread, Vec::new()).approve(&calls.of("c1"));
        how.finish(run).await.unwrap();
        let journal = process
            .store
            .journal(&process.scope(), first.run)
            .await
            .unwrap();
        assert_eq!(pay.keys(), [journal.calls[0].key.clone()]);
    });
}

#[test]
fn a_free_run_that_died_is_finished_under_its_own_id() {
    everywhere(async |stage, how| {
        let first = stage.process().await;
        let model = client([Step::text("one"), Step::hang_after("tw"), Step::text("two")]);
        let dying = agent(&first, &model, &[]);
        let thread = free(&first);
        let one = how.finish(dying.run_on(&thread, "1")).await.unwrap();
        let thread = after(&first, one.run).await;
        let run = first.store.ids().run();
        let options = RunOptions {
            run: Some(run),
            ..RunOptions::default()
        };
        start(how, dying.run_on(&thread, "2").options(&options));
        model.begun(2).await;
        first.kill();
        let second = stage.process().await;
        let agent = agent(&second, &model, &[]);
        let threads = second.threads();
        assert!(matches!(
            threads.open_after(run).await,
            Err(Error::NotFinal { .. })
        ));
        let two = agent.resume_run(&threads, run).await.unwrap();
        let two = how.finish(two).await.unwrap();
        assert_eq!((two.run, two.text().as_str()), (run, "two"));
        assert_eq!(second.history(&one.thread).await, "u a u a");
    });
}

#[test]
fn a_failed_run_is_gone_on_from_with_what_it_had_done() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = Fake::named("tide");
        let model = client([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Invalid),
            Step::text("again"),
            Step::text("at last"),
        ]);
        let agent = agent(&process, &model, &[&tide]);
        let thread = free(&process);
        let failed = how.finish(agent.run_on(&thread, "go")).await.unwrap_err();
        let record = process
            .store
            .run(&process.scope(), failed.outcome().run)
            .await
            .unwrap();
        let end = RunEnd::of(&record).unwrap();
        assert_eq!(
            (end.stop, end.error.unwrap().0.as_str()),
            (StopReason::Failed, "invalid")
        );

        let thread = after(&process, failed.outcome().run).await;
        let again = how
            .finish(agent.run_on(&thread, "try again"))
            .await
            .unwrap();
        assert_eq!(
            said(&again),
            "u a",
            "what the failed one did is not said again"
        );
        assert_eq!(
            short(&model.last_asked().unwrap().messages),
            "u a(c1) t(c1) u"
        );
        // Without input the failed run is finished.
        let thread = after(&process, failed.outcome().run).await;
        let last = how.finish(agent.run_on(&thread, Vec::new())).await.unwrap();
        assert_eq!(
            (last.text().as_str(), said(&last).as_str()),
            ("at last", "a")
        );
        assert_eq!(
            short(&model.last_asked().unwrap().messages),
            "u a(c1) t(c1)"
        );
        assert_eq!(tide.runs(), 1);
    });
}

#[test]
fn a_repeated_key_may_be_refused_at_once_with_the_run() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let model = client([Step::hang()]);
        let agent = agent(&process, &model, &[]);
        let options = |digest: u8| RunOptions {
            key: Some(Idempotency {
                key: "k".to_owned(),
                request: [digest; 16],
            }),
            on_repeat: OnRepeat::Tell,
            ..RunOptions::default()
        };
        let thread = free(&process);
        let mut stream = agent.run_on(&thread, "go").options(&options(1)).stream();
        let Some(RunEvent::Started { run, .. }) = stream.next().await else {
            panic!("a run begins with its start");
        };
        let other = free(&process);
        let again = how
            .finish(agent.run_on(&other, "go").options(&options(1)))
            .await;
        match refusal(again) {
            RunError::Repeated { run: before } => assert_eq!(before, run),
            other => panic!("{other:?}"),
        }
        let otherwise = how
            .finish(agent.run_on(&other, "go").options(&options(2)))
            .await;
        match refusal(otherwise) {
            RunError::Store(error) => assert!(matches!(error, Error::KeyReused { .. }), "{error}"),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn cached_histories_save_reads_and_change_nothing() {
    everywhere(async |stage, how| {
        // A short history is copied when it is taken, so that its cache entry stays; a long one is
        // moved out.
        for (opening, stays) in [("0".to_owned(), true), ("0".repeat(20_000), false)] {
            let process = stage.process().await;
            let model = client((0..5).map(|no| Step::text(format!("{no}"))));
            let agent = agent(&process, &model, &[]);
            let views = HistoryCache::new(1 << 20);
            let threads = Threads::of(&process.store).with_history_cache(views.clone());
            let thread = threads.make_free(NewThread::new(process.store.ids().thread()));
            let run = agent.run_on(&thread, opening.as_str());
            let mut last = how.finish(run).await.unwrap();
            let first = last.run;
            for turn in 1..4 {
                let kept = if stays { turn } else { 1 };
                assert_eq!(views.len(), kept);
                let thread = threads.open_after(last.run).await.unwrap();
                assert_eq!(views.len(), if stays { turn } else { 0 });
                last = how.finish(agent.run_on(&thread, "next")).await.unwrap();
                let shown = model.last_asked().unwrap().messages;
                assert_eq!(shown.len(), 2 * turn + 1);
            }
            // A run that continues from the first one sees its history.
            let thread = threads.open_after(first).await.unwrap();
            let run = agent.run_on(&thread, "other");
            let branch = how.finish(run).await.unwrap();
            assert_eq!(short(&model.last_asked().unwrap().messages), "u a u");
            assert_eq!(branch.text(), "4");
            let texts = |one: &Message| match &one.contents[0].body {
                Body::Text(text) => text.text.clone(),
                other => panic!("{other:?}"),
            };
            let history = process.threads().open(branch.run).await.unwrap().history();
            let texts: Vec<String> = history.iter().map(|one| texts(one)).collect();
            assert_eq!(texts, [opening.as_str(), "0", "other", "4"]);
        }
    });
}

#[test]
fn approvals_that_are_closed_can_no_longer_be_answered() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let pay = guarded("pay");
        let model = client([Step::calls([("c1", "pay", "{}")]), Step::text("well")]);
        let agent = agent(&process, &model, &[&pay]);
        let first = asked(how, &agent, &process).await;
        let thread = after(&process, first.run).await;
        let run = agent.run_on(&thread, "never mind");
        let well = how
            .finish(run.on_open_calls(OnOpenCalls::Close))
            .await
            .unwrap();
        assert_eq!(well.text(), "well");
        let threads = process.threads();
        let record = threads
            .approval(first.pending[0].approval.unwrap())
            .await
            .unwrap();
        assert_eq!(record.state, ApprovalState::Withdrawn);
        let late = threads
            .decide(&record, Decision::Approved, "ada", None)
            .await;
        assert!(matches!(late, Err(Error::NotAnswerable { .. })), "{late:?}");
        assert_eq!(pay.runs(), 0);
    });
}
