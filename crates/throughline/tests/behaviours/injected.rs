//! Messages that are injected during a run.

use std::time::Duration;

use throughline::StopReason;
use throughline::model::{Content, Event, Message, Place, Source, Stop};
use throughline_testkit::scripted::{Chunk, Step};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::behaviours::support::{Fake, Rig, both, said, short};

#[test]
fn b47_a_message_injected_while_tools_run_goes_out_once_behind_the_results() {
    both(async |how| {
        let teller = Fake::doing("teller", |_, context| async move {
            context.inject(Message::user("hurry")).await.unwrap();
            Ok(throughline::tool::ToolOutput::default())
        });
        let calls = [("c1", "teller", "{}")];
        let steps = [Step::calls(calls), Step::text("done"), Step::text("next")];
        let rig = Rig::new(how, steps, |agent| agent.tool(teller));
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1) t(c1) u a");
        assert_eq!(short(&rig.client.asked()[1].messages), "u a(c1) t(c1) u");
        assert_eq!(outcome.messages[3].text(), "hurry");
        assert_eq!(outcome.messages[3].source, Some(Source::Caller));
        rig.run("next").await;
        assert_eq!(rig.history(), "u a(c1) t(c1) u a u a");
    });
}

/// An answer that takes a second.
fn slow_answer(text: &str) -> Step {
    let at = Place::new(0, 0, 0);
    let event = |event| Chunk::Event(event);
    Step::chunks([
        event(Event::Opened {
            at,
            content: Content::text(""),
        }),
        event(Event::Delta {
            at,
            text: text.into(),
        }),
        Chunk::Wait(Duration::from_secs(1)),
        event(Event::Content {
            at,
            content: Content::text(text),
        }),
        event(Event::Finished {
            stop: Stop::Done,
            usage: Some(throughline::model::Usage {
                input: Some(10),
                output: Some(5),
                ..Default::default()
            }),
            error: None,
            vendor: None,
            service: None,
        }),
    ])
}

#[test]
fn b48_a_message_injected_while_the_answer_comes_gets_one_more_model_call() {
    both(async |how| {
        let steps = [
            slow_answer("at four"),
            Step::text("Goole: at five").with_usage(20, 7),
        ];
        let rig = Rig::new(how, steps, |agent| agent);
        let mailbox = rig.thread.mailbox();
        let run = rig.agent.run_on(&rig.thread, "when?");
        let (outcome, ()) = tokio::join!(how.finish(run), async {
            sleep(Duration::from_millis(500)).await;
            mailbox.leave(Message::user("and at Goole?")).await.unwrap();
        });
        let outcome = outcome.unwrap();
        assert_eq!(said(&outcome), "u a u a");
        assert_eq!((outcome.stop, rig.client.calls()), (StopReason::Done, 2));
        assert_eq!(
            (outcome.usage.input, outcome.usage.output),
            (Some(30), Some(12))
        );
        assert_eq!(outcome.text(), "Goole: at five");
    });
}

#[test]
fn b49_a_hundred_injections_arrive_once_each_in_the_order_of_acceptance() {
    both(async |how| {
        let steps = [slow_answer("one moment"), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent);
        let mailbox = rig.thread.mailbox();
        let run = rig.agent.run_on(&rig.thread, "go");
        let accepted = std::sync::Arc::new(tokio::sync::Mutex::new(Vec::new()));
        let injecting = async {
            let mut tasks = JoinSet::new();
            for number in 0..100_u64 {
                let (mailbox, accepted) = (mailbox.clone(), std::sync::Arc::clone(&accepted));
                tasks.spawn(async move {
                    sleep(Duration::from_millis(number * 37 % 100)).await;
                    // Held while the message is queued, so that this order is the order of
                    // acceptance.
                    let mut accepted = accepted.lock().await;
                    mailbox
                        .leave(Message::user(number.to_string()))
                        .await
                        .unwrap();
                    accepted.push(number.to_string());
                });
            }
            while tasks.join_next().await.is_some() {}
        };
        let (outcome, ()) = tokio::join!(how.finish(run), injecting);
        let outcome = outcome.unwrap();
        let texts: Vec<String> = outcome.messages[2..102].iter().map(Message::text).collect();
        assert_eq!(texts, *accepted.lock().await);
        assert_eq!(outcome.messages.len(), 103);
        assert!(mailbox.waiting().await.unwrap().is_empty());
    });
}

#[test]
fn what_a_run_did_not_deliver_waits_for_the_next() {
    both(async |how| {
        let enough = Fake::doing("enough", |_, context| async move {
            context.inject(Message::user("too late")).await.unwrap();
            Ok(throughline::tool::ToolOutput::default().and_terminate())
        });
        let steps = [Step::calls([("c1", "enough", "{}")]), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(enough));
        assert_eq!(said(&rig.run("go").await), "u a(c1) t(c1)");
        assert_eq!(rig.thread.mailbox().waiting().await.unwrap().len(), 1);
        let outcome = rig.run("next").await;
        assert_eq!(said(&outcome), "u u a");
        let texts: Vec<String> = outcome.messages.iter().map(Message::text).collect();
        assert_eq!(texts[..2], ["too late", "next"]);
        assert!(rig.thread.mailbox().waiting().await.unwrap().is_empty());
    });
}
