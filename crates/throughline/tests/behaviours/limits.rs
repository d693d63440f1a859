//! Limits and budgets.

use std::time::Duration;

use throughline::agent::{BuildError, Calling, Limits, RunOptions};
use throughline::model::{Body, Message, Role, Status, Stop};
use throughline::tool::{Approval, Effect, ToolOutput};
use throughline::{Agent, StopReason};
use throughline_testkit::scripted::{ScriptedClient, Step};
use tokio::time::{Instant, sleep};

use crate::behaviours::support::{Fake, How, Rig, both, said};

/// A model that always makes calls, with consecutive ids.
fn always_calling(calls: usize) -> ScriptedClient {
    ScriptedClient::answering(move |asked| {
        let round = asked.messages.len();
        Step::calls((0..calls).map(|call| (format!("c{round}_{call}"), "tide", "{}")))
    })
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[test]
fn b13_without_configuration_there_are_forty_rounds_and_three_failed_ones() {
    both(async |how| {
        let tide = Fake::named("tide");
        let rig = Rig::of(how, always_calling(1), |agent| agent.tool(tide.clone()));
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::RoundLimit);
        assert_eq!((tide.runs(), rig.client.calls()), (40, 41));
        let defaults = Limits::default();
        assert_eq!((defaults.rounds, defaults.failed_rounds), (40, 3));
        assert_eq!(
            (defaults.calls, defaults.tokens, defaults.time),
            (None, None, None)
        );
        assert_eq!(Calling::default(), Calling::Concurrent);
        let failing = Fake::failing("tide");
        let rig = Rig::of(how, always_calling(1), |agent| agent.tool(failing.clone()));
        assert_eq!(rig.run("go").await.stop, StopReason::ErrorLimit);
        assert_eq!(failing.runs(), 3);
    });
}

#[test]
fn b14_at_seven_rounds_the_eighth_model_call_has_no_tools_and_its_calls_are_answered() {
    both(async |how| {
        let tide = Fake::named("tide");
        let rig = Rig::of(how, always_calling(1), |agent| {
            agent
                .tool(tide.clone())
                .limits(limits(|limits| limits.rounds = 7))
        });
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::RoundLimit);
        assert_eq!((tide.runs(), rig.client.calls()), (7, 8));
        let asked = rig.client.asked();
        assert!(asked[..7].iter().all(|one| one.tools == ["tide"]));
        assert!(asked[7].tools.is_empty());
        assert!(said(&outcome).ends_with("a(c15_0) t(c15_0:limit)"));
        assert_eq!(rig.history(), said(&outcome));
    });
}

#[test]
fn b15_text_beside_a_call_in_the_last_answer_is_the_answer() {
    both(async |how| {
        let steps = [
            Step::calls([("c1", "tide", "{}")]),
            Step::text_and_calls("at four, I think", [("c2", "tide", "{}")]),
        ];
        let rig = Rig::new(how, steps, |agent| {
            agent
                .tool(Fake::named("tide"))
                .limits(limits(|limits| limits.rounds = 1))
        });
        let outcome = rig.run("go").await;
        assert_eq!(outcome.text(), "at four, I think");
        assert_eq!(said(&outcome), "u a(c1) t(c1) a(c2) t(c2:limit)");
        assert_eq!(outcome.stop, StopReason::RoundLimit);
    });
}

#[test]
fn b16_a_last_answer_with_nothing_visible_leaves_an_empty_text_and_the_reason() {
    both(async |how| {
        let steps = [Step::calls([("c1", "tide", "{}")]), Step::contents(vec![])];
        let rig = Rig::new(how, steps, |agent| {
            agent
                .tool(Fake::named("tide"))
                .limits(limits(|limits| limits.rounds = 1))
        });
        let outcome = rig.run("go").await;
        assert_eq!(outcome.text(), "");
        assert_eq!(outcome.stop, StopReason::RoundLimit);
        assert_eq!(said(&outcome), "u a(c1) t(c1)");
    });
}

#[test]
fn b17_on_the_last_call_nothing_is_asked_and_a_vendors_pair_is_kept() {
    both(async |how| {
        let pair = crate::behaviours::foreign::vendor_pair("ws_1");
        let mut last = pair.to_vec();
        last.push(crate::behaviours::foreign::call("c2", "guarded"));
        let steps = [Step::calls([("c1", "tide", "{}")]), Step::contents(last)];
        let guarded = Fake::named("guarded").with(|spec| spec.approval = Approval::Always);
        let rig = Rig::new(how, steps, |agent| {
            agent
                .tool(Fake::named("tide"))
                .tool(guarded.clone())
                .limits(limits(|limits| limits.rounds = 1))
        });
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::RoundLimit);
        assert!(outcome.pending.is_empty() && rig.thread.pending().is_empty());
        assert_eq!(said(&outcome), "u a(c1) t(c1) a(ws_1,ws_1,c2) t(c2:limit)");
        assert_eq!(guarded.runs(), 0);
        assert_eq!(outcome.messages[3].contents[..2], pair);
    });
}

#[test]
fn b19_a_limit_of_zero_is_refused_when_the_agent_is_built() {
    let rounds = limits(|limits| limits.rounds = 0);
    let failed_rounds = limits(|limits| limits.failed_rounds = 0);
    for (setting, limits) in [("rounds", rounds), ("failed_rounds", failed_rounds)] {
        let built = Agent::builder(ScriptedClient::new([]))
            .limits(limits)
            .build();
        let Err(error @ BuildError::Limits(_)) = built else {
            panic!("{setting} was accepted");
        };
        assert!(error.to_string().contains(setting), "{error}");
    }
    both(async |how| {
        let rig = Rig::new(how, [Step::text("never")], |agent| agent);
        let run = rig.agent.run_on(&rig.thread, "go");
        let run = run.limits(limits(|limits| limits.rounds = 0));
        let failed = match how {
            How::Whole => run.await.unwrap_err(),
            How::Streamed => run.stream().outcome().await.unwrap_err(),
        };
        assert_eq!(failed.outcome().stop, StopReason::Failed);
        assert_eq!(rig.client.calls(), 0);
        assert_eq!(rig.history(), "");
    });
}

#[test]
fn b20_a_budget_of_five_calls_runs_exactly_five() {
    both(async |how| {
        let tide = Fake::named("tide");
        let rig = Rig::of(how, always_calling(3), |agent| {
            agent
                .tool(tide.clone())
                .limits(limits(|limits| limits.calls = Some(5)))
        });
        let outcome = rig.run("go").await;
        assert_eq!(tide.runs(), 5);
        assert_eq!(outcome.stop, StopReason::Budget);
        assert!(
            said(&outcome).contains("t(c3_0,c3_1,c3_2:limit)"),
            "{}",
            said(&outcome)
        );
        assert_eq!(rig.client.calls(), 3);
        assert!(rig.client.asked()[2].tools.is_empty());
    });
}

#[test]
fn b21_a_time_budget_of_two_seconds_ends_a_tool_of_ten() {
    both(async |how| {
        for (effect, ending) in [(Effect::Once, "unknown"), (Effect::ReadOnly, "cancelled")] {
            let slow = Fake::doing("slow", |_, _| async {
                sleep(Duration::from_secs(10)).await;
                Ok(ToolOutput::default())
            });
            let slow = slow.with(|spec| spec.effect = effect);
            let steps = [Step::calls([("c1", "slow", "{}")]), Step::text("never")];
            let time = Duration::from_secs(2);
            let rig = Rig::new(how, steps, |agent| {
                agent
                    .tool(slow)
                    .limits(limits(|limits| limits.time = Some(time)))
            });
            let began = Instant::now();
            let outcome = rig.run("go").await;
            assert_eq!(began.elapsed(), time);
            assert_eq!(outcome.stop, StopReason::Budget);
            assert_eq!(said(&outcome), format!("u a(c1) t(c1:{ending})"));
            assert_eq!(rig.client.calls(), 1);
        }
    });
}

#[test]
fn b22_a_token_budget_that_is_passed_runs_none_of_the_calls() {
    both(async |how| {
        let tide = Fake::named("tide");
        let calls = [("c1", "tide", "{}"), ("c2", "tide", "{}")];
        let steps = [
            Step::calls(calls).with_usage(10_000, 400),
            Step::text("never"),
        ];
        let rig = Rig::new(how, steps, |agent| {
            agent
                .tool(tide.clone())
                .limits(limits(|limits| limits.tokens = Some(10_000)))
        });
        let outcome = rig.run("go").await;
        assert_eq!(tide.runs(), 0);
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1:limit,c2:limit)");
        assert_eq!(outcome.stop, StopReason::Budget);
        assert_eq!(rig.client.calls(), 1);
    });
}

#[test]
fn b23_an_answer_cut_by_the_vendors_limit_is_marked_and_not_continued() {
    both(async |how| {
        let steps = [Step::text("high water is").with_stop(Stop::Length)];
        let rig = Rig::new(how, steps, |agent| agent);
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(outcome.finish, Some(Stop::Length));
        assert_eq!(outcome.messages[1].status, Some(Status::Incomplete));
        assert_eq!(outcome.text(), "high water is");
        assert_eq!(rig.client.calls(), 1);
    });
}

#[test]
fn a_model_that_pauses_is_called_again_and_cannot_pause_for_ever() {
    both(async |how| {
        let paused = || Step::text("still searching").with_stop(Stop::Paused);
        let rig = Rig::new(how, [paused(), Step::text("found")], |agent| agent);
        let outcome = rig.run("go").await;
        assert_eq!(
            (said(&outcome).as_str(), outcome.text().as_str()),
            ("u a a", "found")
        );
        let client = ScriptedClient::answering(move |_| paused());
        let rig = Rig::of(how, client, |agent| agent);
        let run = rig.agent.run_on(&rig.thread, "go");
        let options = RunOptions {
            limits: Some(limits(|limits| limits.rounds = 5)),
            ..RunOptions::default()
        };
        let outcome = how.finish(run.options(&options)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::RoundLimit);
        assert_eq!(rig.client.calls(), 6);
        let texts = outcome.messages.iter().filter(|message: &&Message| {
            message.role == Role::Assistant && matches!(message.contents[0].body, Body::Text(_))
        });
        assert_eq!(texts.count(), 6);
    });
}
