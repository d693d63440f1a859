//! Calls of one response that share an id: the approved one runs, with its own arguments, and every
//! record and message refers to calls by position.

use std::sync::{Arc, Mutex};

use throughline::agent::RunError;
use throughline::model::{Arguments, Message, Outcome as Ending, Output, pairs};
use throughline::store::{ApprovalState, Decision};
use throughline::thread::{HistoryPolicy, OnOpenCalls, OnPark, Pending};
use throughline::tool::{Approval, Parameters, ToolOutput};
use throughline::{Agent, StopReason};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, How, Process, Stage, everywhere};

use super::{builder, decide, model, parked, records};

/// Arguments with which a tool ran, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// A payment tool that returns the amount; it needs approval.
fn charge(log: &Log) -> Fake {
    let log = Arc::clone(log);
    let tool = Fake::doing("charge", move |arguments, _| {
        log.lock().unwrap().push(arguments.get().to_owned());
        let text = format!("charged {}", arguments.get());
        async move { Ok(ToolOutput::text(text)) }
    });
    tool.with(|spec| {
        spec.approval = Approval::Always;
        spec.parameters = Parameters::any();
    })
}

fn amounts(arguments: &[&str]) -> Step {
    Step::calls(arguments.iter().map(|amount| ("c", "charge", *amount)))
}

fn text(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Text(text) | Arguments::Free(text) => text.clone(),
        Arguments::Json(json) => json.get().to_owned(),
        Arguments::None => String::new(),
    }
}

/// Each call with the result that answers it: arguments, outcome and text.
fn answered<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<(String, Ending, String)> {
    let messages: Vec<Message> = messages.into_iter().cloned().collect();
    let at =
        |place: throughline::model::ContentAt| &messages[place.message].contents[place.content];
    let mut found = pairs(&messages);
    found.sort_by_key(|pair| pair.call);
    let said = found.iter().map(|pair| {
        let call = at(pair.call).as_tool_call().unwrap();
        let result = at(pair.result).as_tool_result().unwrap();
        let output = match &result.output {
            Output::Text(text) => text.clone(),
            other => format!("{other:?}"),
        };
        (text(&call.arguments), result.outcome, output)
    });
    said.collect()
}

fn expected(answers: &[(&str, bool)]) -> Vec<(String, Ending)> {
    let outcome = |yes: bool| match yes {
        true => Ending::Ok,
        false => Ending::Rejected,
    };
    let each = answers.iter();
    each.map(|(amount, yes)| ((*amount).to_owned(), outcome(*yes)))
        .collect()
}

/// Checks that each call has its own outcome.
fn check(messages: &[Message], answers: &[(&str, bool)], place: &str) {
    let said = answered(messages);
    let short = said
        .iter()
        .map(|(amount, ended, _)| (amount.clone(), *ended));
    let short: Vec<_> = short.collect();
    assert_eq!(short, expected(answers), "{place}");
    for (amount, ended, text) in said {
        let told = text.contains(&format!("charged {amount}"));
        assert_eq!(told, ended == Ending::Ok, "{place}: {amount} {text}");
    }
}

/// Where a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Here,
    /// In another process that opens the thread.
    There,
    /// In another process, through the record, before the run is resumed.
    Record,
}

const PLACES: [Where; 3] = [Where::Here, Where::There, Where::Record];

async fn go_on(
    how: How,
    (stage, process, agent): (&Stage, &Process, &Agent),
    model: &Arc<ScriptedClient>,
    (answers, reversed): (&[(&str, bool)], bool),
    place: Where,
    log: &Log,
) {
    let thread = agent.new_thread();
    let waits = parked(how, agent, &thread).await;
    let arguments: Vec<_> = waits
        .pending
        .iter()
        .map(|one| text(&one.arguments))
        .collect();
    let asked: Vec<_> = answers
        .iter()
        .map(|(amount, _)| (*amount).to_owned())
        .collect();
    assert_eq!(arguments, asked);
    let other = stage.process().await;
    let there = builder(stage, &other, model)
        .tool(charge(log))
        .build()
        .unwrap();
    let (agent, thread) = match place {
        Where::Here => (agent.clone(), thread),
        Where::There | Where::Record => {
            let id = thread.id().clone();
            (there.clone(), there.open(id).await.unwrap())
        }
    };
    assert_eq!(thread.pending(), waits.pending, "the list after reopening");
    let mut said: Vec<(&Pending, bool)> = waits
        .pending
        .iter()
        .zip(answers.iter().map(|one| one.1))
        .collect();
    if reversed {
        said.reverse();
    }
    let mut run = agent.resume(&thread);
    match place {
        Where::Record => {
            let listed = records(process, thread.id()).await;
            for (pending, yes) in said {
                let record = listed.iter().find(|one| Some(one.id) == pending.approval);
                let decision = match yes {
                    true => Decision::Approved,
                    false => Decision::Denied,
                };
                decide(&other, record.unwrap(), decision).await.unwrap();
            }
        }
        Where::Here | Where::There => {
            for (pending, yes) in said {
                run = match yes {
                    true => run.approve(pending),
                    false => run.reject(pending, None),
                };
            }
        }
    }
    let outcome = how.finish(run).await.unwrap();
    let name = format!("{answers:?} {place:?} reversed={reversed}");
    assert_eq!(outcome.stop, StopReason::Done, "{name}");
    let yes: Vec<_> = answers
        .iter()
        .filter(|one| one.1)
        .map(|one| one.0.to_owned())
        .collect();
    let mut ran = std::mem::take(&mut *log.lock().unwrap());
    ran.sort();
    assert_eq!(ran, yes, "{name}");
    check(&outcome.messages, answers, &name);
    check(&model.last_asked().unwrap().messages, answers, &name);
    let history = process.threads().open(thread.id().clone()).await.unwrap();
    let history: Vec<Message> = history
        .history()
        .iter()
        .map(|one| (**one).clone())
        .collect();
    check(&history, answers, &name);
    let listed = records(process, thread.id()).await;
    let states: Vec<_> = listed
        .iter()
        .map(|one| (one.call.position, one.state))
        .collect();
    let wanted = answers.iter().enumerate().map(|(position, (_, yes))| {
        let state = match yes {
            true => ApprovalState::Used,
            false => ApprovalState::Denied,
        };
        (u32::try_from(position).unwrap(), state)
    });
    assert_eq!(states, wanted.collect::<Vec<_>>(), "{name}");
}

#[test]
fn b227_of_calls_with_one_id_each_gets_its_own_answer() {
    everywhere(async |stage, how| {
        let log = Log::default();
        for answers in [
            [(r#"{"amount":5}"#, true), (r#"{"amount":7}"#, false)],
            [(r#"{"amount":5}"#, false), (r#"{"amount":7}"#, true)],
            [(r#"{"amount":5}"#, true), (r#"{"amount":7}"#, true)],
            [(r#"{"amount":5}"#, false), (r#"{"amount":7}"#, false)],
        ] {
            for (reversed, place) in [false, true]
                .into_iter()
                .flat_map(|one| PLACES.map(|place| (one, place)))
            {
                let process = stage.process().await;
                let asked: Vec<_> = answers.iter().map(|one| one.0).collect();
                let model = model([amounts(&asked), Step::text("done")]);
                let agent = builder(stage, &process, &model)
                    .tool(charge(&log))
                    .build()
                    .unwrap();
                let here = (stage, &process, &agent);
                go_on(how, here, &model, (&answers, reversed), place, &log).await;
            }
        }
    });
}

/// Runs end when they have to wait, as over HTTP.
fn ends_open(on_open_calls: OnOpenCalls) -> HistoryPolicy {
    HistoryPolicy {
        on_park: OnPark::Publish,
        on_open_calls,
        ..HistoryPolicy::default()
    }
}

#[test]
fn b227_at_an_open_node_each_call_gets_its_own_answer_beside_a_sibling_that_ran() {
    everywhere(async |stage, how| {
        for answers in [[true, false], [false, true], [true, true], [false, false]] {
            let log = Log::default();
            let process = stage.process().await;
            // The call in the middle needs no approval, runs at once, and has the same id.
            let steps = [
                Step::calls([
                    ("c", "charge", r#"{"amount":5}"#),
                    ("c", "look", r#"{"amount":6}"#),
                    ("c", "charge", r#"{"amount":7}"#),
                ]),
                Step::text("done"),
            ];
            let model = model(steps);
            let look = Fake::doing("look", |arguments, _| {
                let text = format!("charged {}", arguments.get());
                async move { Ok(ToolOutput::text(text)) }
            });
            let look = look.with(|spec| spec.parameters = Parameters::any());
            let agent = builder(stage, &process, &model)
                .tool(charge(&log))
                .tool(look.clone())
                .history(ends_open(OnOpenCalls::Reject))
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let waits = parked(how, &agent, &thread).await;
            assert_eq!((waits.pending.len(), look.runs()), (2, 1));
            let thread = process.threads().open_after(waits.run).await.unwrap();
            assert_eq!(thread.pending(), waits.pending);
            let mut run = agent.reply_on(&thread, "and now?");
            for (pending, yes) in waits.pending.iter().zip(answers) {
                run = match yes {
                    true => run.approve(pending),
                    false => run.reject(pending, None),
                };
            }
            let outcome = how.finish(run).await.unwrap();
            assert_eq!(outcome.stop, StopReason::Done);
            let all = [
                (r#"{"amount":5}"#, answers[0]),
                (r#"{"amount":6}"#, true),
                (r#"{"amount":7}"#, answers[1]),
            ];
            let place = format!("{answers:?}");
            let asked = model.last_asked().unwrap().messages;
            check(&asked, &all, &place);
            let ran: Vec<_> = all
                .iter()
                .filter(|one| one.1 && one.0 != all[1].0)
                .map(|one| one.0.to_owned())
                .collect();
            let mut log = log.lock().unwrap().clone();
            log.sort();
            assert_eq!(log, ran);
            let history = process.threads().open(outcome.run).await.unwrap().history();
            let history: Vec<Message> = history.iter().map(|one| (**one).clone()).collect();
            check(&history, &all, &place);
        }
    });
}

#[test]
fn b228_nothing_runs_before_every_call_of_the_id_is_answered() {
    everywhere(async |stage, how| {
        let log = Log::default();
        let process = stage.process().await;
        let answers = [
            (r#"{"amount":5}"#, true),
            (r#"{"amount":6}"#, false),
            (r#"{"amount":7}"#, true),
        ];
        let asked: Vec<_> = answers.iter().map(|one| one.0).collect();
        for unanswered in 0..3 {
            let model = model([amounts(&asked), Step::text("done")]);
            let agent = builder(stage, &process, &model)
                .tool(charge(&log))
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let waits = parked(how, &agent, &thread).await;
            let mut run = agent.resume(&thread);
            for (place, pending) in waits.pending.iter().enumerate() {
                run = match (place == unanswered, answers[place].1) {
                    (true, _) => run,
                    (false, true) => run.approve(pending),
                    (false, false) => run.reject(pending, None),
                };
            }
            let still = how.finish(run).await.unwrap();
            assert_eq!(still.stop, StopReason::Parked);
            assert_eq!(still.pending, [waits.pending[unanswered].clone()]);
            assert!(log.lock().unwrap().is_empty(), "{unanswered}");
            assert_eq!(model.calls(), 1);
            // The answers are stored: another process only gives the last one.
            let other = stage.process().await;
            let there = builder(stage, &other, &model)
                .tool(charge(&log))
                .build()
                .unwrap();
            let thread = there.open(thread.id().clone()).await.unwrap();
            let run = there.resume(&thread);
            let last = &waits.pending[unanswered];
            let run = match answers[unanswered].1 {
                true => run.approve(last),
                false => run.reject(last, None),
            };
            let outcome = how.finish(run).await.unwrap();
            let mut ran = std::mem::take(&mut *log.lock().unwrap());
            ran.sort();
            assert_eq!(ran, [answers[0].0, answers[2].0], "{unanswered}");
            check(&outcome.messages, &answers, "b228");
        }
        // At an open node, calls without an answer are named, or withdrawn if the policy says so.
        for policy in [OnOpenCalls::Reject, OnOpenCalls::Close] {
            let model = model([amounts(&asked), Step::text("done")]);
            let agent = builder(stage, &process, &model)
                .tool(charge(&log))
                .history(ends_open(policy))
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let waits = parked(how, &agent, &thread).await;
            let thread = process.threads().open_after(waits.run).await.unwrap();
            let run = agent
                .reply_on(&thread, Vec::new())
                .approve(&waits.pending[2]);
            let ended = how.finish(run).await;
            let ran = std::mem::take(&mut *log.lock().unwrap());
            match policy {
                OnOpenCalls::Reject => {
                    let refused = ended.unwrap_err().source;
                    assert!(matches!(refused, RunError::OpenCalls { .. }), "{refused:?}");
                    assert!(ran.is_empty());
                }
                OnOpenCalls::Close => {
                    let said = answered(&model.last_asked().unwrap().messages);
                    let said: Vec<_> = said.iter().map(|one| one.1).collect();
                    assert_eq!(said, [Ending::Cancelled, Ending::Cancelled, Ending::Ok]);
                    assert_eq!(ran, [answers[2].0]);
                    ended.unwrap();
                }
            }
        }
    });
}

#[test]
fn b229_input_and_answers_make_one_run_at_an_open_node_and_are_refused_on_a_parked_run() {
    everywhere(async |stage, how| {
        let log = Log::default();
        let process = stage.process().await;
        let asked = [r#"{"amount":5}"#, r#"{"amount":7}"#];
        let model = model([amounts(&asked), Step::text("done")]);
        let agent = builder(stage, &process, &model)
            .tool(charge(&log))
            .history(ends_open(OnOpenCalls::Reject))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let waits = parked(how, &agent, &thread).await;
        let thread = process.threads().open_after(waits.run).await.unwrap();
        let run = agent.reply_on(&thread, "and more");
        let run = run
            .approve(&waits.pending[0])
            .reject(&waits.pending[1], None);
        how.finish(run).await.unwrap();
        assert_eq!(model.calls(), 2, "one request for all of it");
        let sent = model.last_asked().unwrap().messages;
        let order: Vec<_> = sent.iter().map(|message| message.role.clone()).collect();
        let user = order
            .iter()
            .rposition(|role| *role == throughline::model::Role::User);
        let tool = order
            .iter()
            .rposition(|role| *role == throughline::model::Role::Tool);
        assert!(user > tool, "the results, then the input: {order:?}");
        assert_eq!(sent.last().unwrap().text(), "and more");
        check(&sent, &[(asked[0], true), (asked[1], false)], "b229");
        log.lock().unwrap().clear();

        let model = super::model([amounts(&asked), Step::text("done")]);
        let agent = builder(stage, &process, &model)
            .tool(charge(&log))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let waits = parked(how, &agent, &thread).await;
        let run = agent
            .reply_on(&thread, "and more")
            .approve(&waits.pending[0]);
        let refused = how.finish(run).await.unwrap_err().source;
        assert!(matches!(refused, RunError::Parked { .. }), "{refused:?}");
        assert!(log.lock().unwrap().is_empty());
        thread.refresh().await.unwrap();
        assert_eq!(
            thread.pending(),
            waits.pending,
            "everything waits as before"
        );
    });
}
