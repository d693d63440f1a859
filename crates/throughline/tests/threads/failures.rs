//! What is printed of a failed run.

use std::sync::atomic::{AtomicUsize, Ordering};

use throughline::agent::order::Order;
use throughline::agent::{Limits, Remedy, Run, RunError, RunFailed, TypedError};
use throughline::client::{ClientError, ErrorKind, ProxyChoice};
use throughline::store::Error;
use throughline::thread::{OnBusy, Persistence};
use throughline::tool::{Approval, ToolOutput};
use throughline::{Agent, OpenAi, StopReason, Thread};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, How, MadeCalls, everywhere, said};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::threads::actions::{Client, agent, built, client, gated, start};

/// Part of every content: input, instructions, arguments, results, answers.
const CANARY: &str = "CANARY-7f3a";

/// What a failure prints, after checking that it contains no content.
fn shown(failed: &RunFailed) -> String {
    let line = failed.to_string();
    assert!(line.starts_with(&failed.run().to_string()), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.ends_with(failed.remedy().as_str()), "{line}");
    let debug = format!("{failed:?} {failed:#?}");
    assert!(debug.contains(&failed.run().to_string()), "{debug}");
    assert!(debug.len() < 2_000, "{} bytes: {debug}", debug.len());
    for text in [&line, &debug] {
        assert!(!text.contains(CANARY), "{text}");
    }
    // A reporter that prints a chain of errors prints each of them once.
    assert!(std::error::Error::source(failed).is_none());
    line
}

/// The line without the id of the run.
fn line(failed: &RunFailed) -> String {
    let line = shown(failed);
    let rest = line.strip_prefix(&failed.run().to_string());
    rest.unwrap_or_default().trim_start().to_owned()
}

fn canary() -> Fake {
    Fake::doing("tide", |_, _| async {
        Ok(ToolOutput::text(format!("{CANARY} result")))
    })
}

fn asks() -> Step {
    let arguments = format!(r#"{{"port":"{CANARY} arguments"}}"#);
    Step::text_and_calls(format!("{CANARY} answer"), [("c1", "tide", arguments)])
}

fn secretive(agent: throughline::agent::AgentBuilder) -> throughline::agent::AgentBuilder {
    agent.instructions(format!("{CANARY} instructions"))
}

fn input() -> String {
    format!("{CANARY} input")
}

async fn failure(how: How, run: Run<impl Order>) -> RunFailed {
    how.finish(run).await.unwrap_err()
}

#[test]
fn b246_a_failed_run_prints_its_id_the_cause_and_what_can_be_done() {
    everywhere(async |stage, how| {
        // After a finished step: the run is resumed, and nothing is repeated.
        let process = stage.process().await;
        let tide = canary();
        let model = client([asks(), Step::fails(ErrorKind::Unavailable)]);
        let agent = built(&process, &model, &[&tide], secretive);
        let thread = agent.new_thread();
        let failed = failure(how, agent.run_on(&thread, input())).await;
        assert_eq!(
            line(&failed),
            "failed: the model call failed: scripted: the script says unavailable; \
             resume it, finished steps are kept"
        );
        assert_eq!(failed.remedy(), Remedy::Resume);
        // The transcript is available nevertheless.
        assert_eq!(said(failed.outcome()), "u a(c1) t(c1)");
        assert_eq!(failed.messages(), failed.outcome().messages);
        assert_eq!(failed.messages()[0].text(), input());
        model.push(Step::text("at four"));
        let resumed = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(
            (said(&resumed).as_str(), tide.runs()),
            ("u a(c1) t(c1) a", 1)
        );
        assert_eq!(said(&failed.into_outcome()), "u a(c1) t(c1)");

        // There is nothing more to resume.
        let failed = failure(how, agent.resume(&thread)).await;
        assert_eq!(failed.remedy(), Remedy::Nothing);
        assert!(shown(&failed).contains("no run on thread"));

        // Before anything was finished: the same request is sent again.
        model.push(Step::error(
            ClientError::new(ErrorKind::RateLimited, "scripted", "slow\n down,\tplease")
                .with_status(429)
                .with_source(std::io::Error::other("slow down, please"))
                .with_retry_after(Some(std::time::Duration::from_millis(1500))),
        ));
        let failed = failure(how, agent.run_on(&thread, input())).await;
        assert_eq!(failed.remedy(), Remedy::Retry);
        let text = failed.to_string();
        let (_, text) = text.split_once(' ').unwrap();
        assert_eq!(
            text,
            "failed: the model call failed: scripted: slow down, please (status 429); \
             try again later, nothing of it is in the history (the service asks to wait 1.5 s)"
        );
        assert_eq!(process.history(thread.id()).await, "u a(c1) t(c1) a");
        model.push(Step::text("at four"));
        how.finish(agent.run_on(&thread, input())).await.unwrap();

        // A long error page is truncated.
        let page = "<p>no such port</p>\n".repeat(10_000);
        let error = ClientError::new(ErrorKind::Unavailable, "scripted", page);
        model.push(Step::error(error));
        let failed = failure(how, agent.run_on(&thread, input())).await;
        let text = shown(&failed);
        assert!(text.len() < 1_000 && text.contains('…'), "{text}");

        // The same request would fail again.
        for (first, remedy) in [
            (None, Remedy::FixThenRetry),
            (Some(asks()), Remedy::FixThenResume),
        ] {
            let model = client(first);
            model.push(Step::fails(ErrorKind::Auth));
            let agent = built(&process, &model, &[&tide], secretive);
            let thread = agent.new_thread();
            let failed = failure(how, agent.run_on(&thread, input())).await;
            assert_eq!(failed.remedy(), remedy);
            shown(&failed);
        }
    });
}

#[test]
fn b246_a_refused_run_says_why_nothing_began() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let (tide, gate) = gated("tide");
        let model = client([Step::calls([("c1", "tide", "{}")]), Step::text("at four")]);
        let agent = agent(&process, &model, &[&tide]);
        let thread = agent.new_thread();
        let works = start(how, agent.run_on(&thread, input()));
        gate.reached().await;
        let same = agent.open(thread.id().clone()).await.unwrap();
        let run = agent.run_on(&same, input()).on_busy(OnBusy::Reject);
        let failed = failure(how, run).await;
        assert!(matches!(
            &failed.source,
            RunError::Store(Error::Busy { .. })
        ));
        let text = line(&failed);
        assert!(
            text.starts_with("failed: the store did not take it: thread "),
            "{text}"
        );
        assert!(text.contains(" is busy with "), "{text}");
        assert_eq!(failed.remedy(), Remedy::Retry);
        assert_eq!(failed.messages(), []);
        gate.open();
        works.await.unwrap().unwrap();

        let none = Limits {
            rounds: 0,
            ..Limits::default()
        };
        let failed = failure(how, agent.run_on(&thread, input()).limits(none)).await;
        assert_eq!(failed.remedy(), Remedy::FixThenRetry);
        assert!(line(&failed).contains("rounds"), "{failed}");

        // The store did not answer: the run may have begun.
        process.faulty.always("begin", Fault::Before);
        let failed = failure(how, agent.run_on(&thread, input())).await;
        assert_eq!(failed.remedy(), Remedy::LookUp);
        shown(&failed);
        process.faulty.heal();
    });
}

#[test]
fn b246_a_run_that_waits_or_was_cut_off_is_resumed() {
    everywhere(async |stage, how| {
        // An answer that fits no call leaves the run waiting.
        let process = stage.process().await;
        let pay = Fake::named("pay").with(|spec| spec.approval = Approval::Always);
        let model = client([Step::calls([("c1", "pay", "{}")]), Step::text("paid")]);
        let agent = agent(&process, &model, &[&pay]);
        let thread = agent.new_thread();
        let parked = how.finish(agent.run_on(&thread, input())).await;
        assert_eq!(parked.unwrap().stop, StopReason::Parked);
        let calls = MadeCalls::on(&process.threads(), thread.id()).await;
        let other = calls.of("c9");
        let failed = failure(how, agent.resume(&thread).approve(&other)).await;
        assert_eq!(failed.remedy(), Remedy::FixThenResume);
        assert!(
            line(&failed).contains("c9 does not wait for this; pending: c1"),
            "{failed}"
        );
        let run = agent.resume(&thread).approve(&calls.of("c1"));
        assert_eq!(said(&how.finish(run).await.unwrap()), "u a(c1) t(c1) a");

        // A store that fails in the middle.
        process.faulty.always("publish", Fault::Before);
        model.push(Step::text("at four"));
        let failed = failure(how, agent.run_on(&thread, input())).await;
        assert!(matches!(&failed.source, RunError::Store(Error::Io { .. })));
        assert_eq!(failed.remedy(), Remedy::Resume);
        shown(&failed);
        process.faulty.heal();
        model.push(Step::text("at four"));
        let resumed = how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(resumed.run, failed.run());
    });
}

/// The remedy is right: what it proposes succeeds, and nothing else does.
#[test]
fn b246_the_remedy_holds_for_every_place_where_a_model_fails() {
    let (resumed, retried) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for mode in [Persistence::PerRun, Persistence::PerCall] {
        for finished in 0..3 {
            for adopted in [false, true] {
                everywhere(async |stage, how| {
                    let process = stage.process().await;
                    let tide = canary();
                    let model: Client = client([]);
                    let agent = built(&process, &model, &[&tide], |agent| agent.persistence(mode));
                    let thread = agent.new_thread();
                    for _ in 0..finished {
                        model.push(asks());
                    }
                    model.push(Step::fails(ErrorKind::Cut));
                    let mut failed = failure(how, agent.run_on(&thread, input())).await;
                    if adopted && failed.remedy() == Remedy::Resume {
                        // It fails again when it is resumed.
                        model.push(Step::fails(ErrorKind::Cut));
                        failed = failure(how, agent.resume(&thread)).await;
                    }
                    shown(&failed);
                    model.push(Step::text("at four"));
                    let expected = match how.finish(agent.resume(&thread)).await {
                        Ok(_) => {
                            resumed.fetch_add(1, Ordering::Relaxed);
                            Remedy::Resume
                        }
                        Err(again) => {
                            assert!(matches!(again.source, RunError::NothingToResume { .. }));
                            retried.fetch_add(1, Ordering::Relaxed);
                            Remedy::Retry
                        }
                    };
                    let case = format!("{mode:?}, {finished} steps, adopted: {adopted}");
                    assert_eq!(failed.remedy(), expected, "{case}");
                });
            }
        }
    }
    println!(
        "property b246: {} failures were resumed, {} had nothing to resume",
        resumed.load(Ordering::Relaxed),
        retried.load(Ordering::Relaxed)
    );
}

#[test]
fn b246_a_key_that_a_service_repeats_is_not_printed() {
    everywhere(async |_, how| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65_536];
            let read = socket.read(&mut request).await.unwrap();
            let head = String::from_utf8_lossy(&request[..read]).into_owned();
            let key = head.lines().find_map(|line| line.split_once("Bearer "));
            let body = format!(
                r#"{{"error":{{"message":"bad key {0}","type":"invalid_request_error","code":"{0}"}}}}"#,
                key.unwrap().1.trim()
            );
            let answer = format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        let model = OpenAi::chat("gpt-5")
            .base_url(format!("http://{address}/v1"))
            .api_key(format!("sk-{CANARY}"))
            .proxy(ProxyChoice::Direct)
            .build()
            .unwrap();
        let agent = Agent::builder(model).build().unwrap();
        let failed = failure(how, agent.run_on(&Thread::new(), "when?")).await;
        service.await.unwrap();
        assert_eq!(failed.remedy(), Remedy::FixThenRetry);
        assert!(line(&failed).contains("bad key [secret]"), "{failed}");
    });
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "it is only read")]
struct Tide {
    port: String,
    hour: u8,
}

#[test]
fn b246_a_typed_run_that_has_no_value_prints_no_message_either() {
    everywhere(async |stage, _| {
        let process = stage.process().await;
        let model = client([
            Step::fails(ErrorKind::Unavailable),
            Step::text(format!(r#"{{"port":"Hull","hour":"{CANARY}"}}"#)),
        ]);
        let agent = built(&process, &model, &[], secretive);
        let thread = agent.new_thread();
        let failed = agent.run_on(&thread, input()).typed::<Tide>().await;
        let error = failed.unwrap_err();
        let TypedError::Failed(failed) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(error.to_string(), shown(failed));
        assert_eq!(said(error.outcome()), "u");

        let unfit = agent.run_on(&thread, input()).typed::<Tide>().await;
        let error = unfit.unwrap_err();
        let run = error.outcome().run;
        let text = error.to_string();
        let start = format!("the answer of {run} does not fit its type: invalid type, expected u8");
        assert!(text.starts_with(&start), "{text}");
        assert_eq!(text.lines().count(), 1);
        let debug = format!("{error:?} {error:#?}");
        assert!(
            !text.contains(CANARY) && !debug.contains(CANARY),
            "{text} {debug}"
        );
        assert_eq!(said(error.outcome()), "u a");
    });
}
