//! Concurrency and termination.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use throughline::StopReason;
use throughline::agent::Limits;
use throughline::model::{Message, Wire};
use throughline::tool::ToolOutput;
use throughline_testkit::scripted::Step;
use throughline_wire::render::{Options, Target, render};
use throughline_wire::validate::{Profile, validate};
use tokio::sync::Barrier;
use tokio::time::sleep;

use crate::behaviours::support::{Fake, Rig, both, said};

#[test]
fn b33_calls_of_a_round_run_at_once_or_one_after_the_other() {
    both(async |how| {
        let barrier = Arc::new(Barrier::new(2));
        let meet = Fake::doing("meet", move |_, _| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                Ok(ToolOutput::default())
            }
        });
        let calls = [("c1", "meet", "{}"), ("c2", "meet", "{}")];
        let steps = [Step::calls(calls), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(meet));
        assert_eq!(said(&rig.run("go").await), "u a(c1,c2) t(c1,c2) a");

        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let alone = {
            let (inside, most, order) = (inside, Arc::clone(&most), Arc::clone(&order));
            Fake::doing("alone", move |_, context| {
                let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
                order.lock().unwrap().push(context.position);
                async move {
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    sleep(Duration::from_millis(5)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    Ok(ToolOutput::default())
                }
            })
        };
        let calls = ["c1", "c2", "c3"].map(|id| (id, "alone", "{}"));
        let steps = [Step::calls(calls), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(alone).serial_calls());
        assert_eq!(said(&rig.run("go").await), "u a(c1,c2,c3) t(c1,c2,c3) a");
        assert_eq!(most.load(Ordering::SeqCst), 1);
        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    });
}

#[test]
fn b34_in_a_serial_round_calls_after_a_failed_one_still_run() {
    both(async |how| {
        let good = Fake::named("good");
        let calls = [
            ("c1", "bad", "{}"),
            ("c2", "good", "{}"),
            ("c3", "good", "{}"),
        ];
        let steps = [Step::calls(calls), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| {
            agent
                .tool(Fake::failing("bad"))
                .tool(good.clone())
                .serial_calls()
        });
        assert_eq!(
            said(&rig.run("go").await),
            "u a(c1,c2,c3) t(c1:error,c2,c3) a"
        );
        assert_eq!(good.runs(), 2);
    });
}

fn enough() -> Fake {
    Fake::doing("enough", |_, _| async {
        Ok(ToolOutput::text("that is all").and_terminate())
    })
}

fn fit_for_every_vendor(history: &[Arc<Message>]) {
    let mut history: Vec<Message> = history.iter().map(|one| (**one).clone()).collect();
    history.push(Message::user("next"));
    for wire in Wire::KNOWN {
        let (target, options) = (Target::newest(wire.clone()), Options::default());
        let body = render(&history, &target, &options).body(&target, &options);
        let value = throughline::model::json::parse(&body).unwrap();
        let violations = validate(&value, &Profile::newest(wire.clone()));
        assert!(violations.is_empty(), "{wire}: {violations:?}");
    }
}

#[test]
fn b35_in_a_serial_round_the_first_can_end_the_run_before_the_others() {
    both(async |how| {
        let good = Fake::named("good");
        let calls = [
            ("c1", "enough", "{}"),
            ("c2", "good", "{}"),
            ("c3", "good", "{}"),
        ];
        let steps = [Step::calls(calls), Step::text("next turn")];
        let rig = Rig::new(how, steps, |agent| {
            agent.tool(enough()).tool(good.clone()).serial_calls()
        });
        let outcome = rig.run("go").await;
        assert_eq!(
            said(&outcome),
            "u a(c1,c2,c3) t(c1,c2:terminated,c3:terminated)"
        );
        assert_eq!(outcome.stop, StopReason::Terminated);
        assert_eq!((good.runs(), rig.client.calls()), (0, 1));
        fit_for_every_vendor(&rig.thread.history());
        assert_eq!(rig.run("next").await.text(), "next turn");
    });
}

#[test]
fn b36_in_a_concurrent_round_all_finish_before_the_run_ends() {
    both(async |how| {
        for rounds in [40, 1] {
            let slow = Fake::doing("slow", |_, _| async {
                sleep(Duration::from_millis(20)).await;
                Ok(ToolOutput::text("slow"))
            });
            let calls = [
                ("c1", "enough", "{}"),
                ("c2", "slow", "{}"),
                ("c3", "slow", "{}"),
            ];
            let steps = [Step::calls(calls), Step::text("never")];
            let rig = Rig::new(how, steps, |agent| {
                let limits = Limits {
                    rounds,
                    ..Limits::default()
                };
                agent.tool(enough()).tool(slow.clone()).limits(limits)
            });
            let outcome = rig.run("go").await;
            assert_eq!(said(&outcome), "u a(c1,c2,c3) t(c1,c2,c3)");
            assert_eq!(outcome.stop, StopReason::Terminated);
            assert_eq!((slow.runs(), rig.client.calls()), (2, 1));
            assert_eq!(outcome.text(), "");
        }
    });
}
