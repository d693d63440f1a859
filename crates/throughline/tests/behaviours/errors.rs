//! Errors.

use std::time::Duration;

use throughline::agent::Step as Happened;
use throughline::model::{Arguments, CallId, Content, Outcome as Ending, Status, Stop, ToolCall};
use throughline::tool::{Effect, Parameters, ToolError, ToolOutput};
use throughline::{Outcome, StopReason};
use throughline_testkit::scripted::Step;
use tokio::time::{Instant, sleep};

use crate::behaviours::support::{Fake, Rig, both, result_text, said};

fn call(id: &str, tool: &str) -> Step {
    Step::calls([(id, tool, "{}")])
}

#[test]
fn b24_three_failed_rounds_end_with_a_last_call_and_the_whole_transcript() {
    both(async |how| {
        let bad = Fake::failing("bad");
        let steps = [
            call("c1", "bad"),
            call("c2", "bad"),
            call("c3", "bad"),
            Step::text("I give up"),
        ];
        let rig = Rig::new(how, steps, |agent| agent.tool(bad));
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::ErrorLimit);
        let rounds = "a(c1) t(c1:error) a(c2) t(c2:error) a(c3) t(c3:error)";
        assert_eq!(said(&outcome), format!("u {rounds} a"));
        assert_eq!(outcome.text(), "I give up");
        assert!(rig.client.asked()[3].tools.is_empty());
    });
}

#[test]
fn b25_a_clean_round_resets_the_count() {
    both(async |how| {
        let steps = [
            call("c1", "bad"),
            call("c2", "bad"),
            call("c3", "good"),
            call("c4", "bad"),
            call("c5", "bad"),
            Step::text("done"),
        ];
        let rig = Rig::new(how, steps, |agent| {
            agent.tool(Fake::failing("bad")).tool(Fake::named("good"))
        });
        assert_eq!(rig.run("go").await.stop, StopReason::Done);
    });
}

#[test]
fn b26_a_round_fails_once_however_many_of_its_calls_do() {
    both(async |how| {
        let five = |tool: &'static str| {
            Step::calls((0..5).map(|call| {
                let name = if call == 0 { "bad" } else { tool };
                (format!("c{call}"), name, "{}")
            }))
        };
        // All of five fail, then one of five: two failed rounds, below the limit of three.
        let steps = [five("bad"), five("good"), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| {
            agent.tool(Fake::failing("bad")).tool(Fake::named("good"))
        });
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::Done);
        assert!(said(&outcome).contains("t(c0:error,c1,c2,c3,c4)"));

        // Results that say that a call was not run are not failures.
        for ending in [Ending::Rejected, Ending::Expired] {
            let guarded = Fake::named("guarded").with(|spec| {
                spec.approval = throughline::tool::Approval::Always;
            });
            let steps = [
                Step::calls([("c1", "good", "{}"), ("c2", "guarded", "{}")]),
                Step::text("done"),
            ];
            let rig = Rig::new(how, steps, |agent| {
                let limits = throughline::agent::Limits {
                    failed_rounds: 1,
                    ..throughline::agent::Limits::default()
                };
                agent.tool(Fake::named("good")).tool(guarded).limits(limits)
            });
            let parked = rig.run("go").await;
            let waits = parked.pending[0].clone();
            let run = rig.agent.resume(&rig.thread);
            let run = match ending {
                Ending::Rejected => run.reject(&waits, None),
                _ => run.expire(&waits),
            };
            let outcome = how.finish(run).await.unwrap();
            assert_eq!(outcome.stop, StopReason::Done, "{ending:?}");
            let round = format!("t(c1,c2:{})", ending.as_str());
            assert!(said(&outcome).contains(&round), "{}", said(&outcome));
        }
    });
}

#[test]
fn b27_the_model_reads_details_of_an_error_only_when_it_may() {
    both(async |how| {
        for shown in [false, true] {
            let steps = [call("c1", "bad"), Step::text("done")];
            let rig = Rig::new(how, steps, |agent| {
                let agent = agent.tool(Fake::failing("bad"));
                if shown {
                    agent.show_tool_errors()
                } else {
                    agent
                }
            });
            let outcome = rig.run("go").await;
            let text = result_text(&outcome.messages, "c1");
            assert!(text.contains("bad"), "{text}");
            assert_eq!(text.contains("the pier is closed"), shown, "{text}");
            assert_eq!(trace(&outcome), ["the pier is closed"]);
        }
    });
}

/// The errors in the steps of a run.
fn trace(outcome: &Outcome) -> Vec<&str> {
    outcome
        .steps
        .iter()
        .filter_map(|step| match step {
            Happened::Tool { error, .. } => error.as_deref(),
            Happened::Model { .. } => None,
        })
        .collect()
}

/// A tool that requires a port.
fn tide() -> Fake {
    Fake::named("tide").with(|spec| {
        let schema =
            r#"{"type":"object","properties":{"port":{"type":"string"}},"required":["port"]}"#;
        spec.parameters = Parameters::parse(schema).unwrap();
    })
}

#[test]
fn b28_arguments_that_are_not_json_are_refused_with_the_place_and_kept() {
    both(async |how| {
        let raw = r#"{"port": "Hull", oops"#;
        let tide = tide();
        let steps = [Step::calls([("c1", "tide", raw)]), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let outcome = rig.run("go").await;
        assert_eq!(tide.runs(), 0);
        assert_eq!(said(&outcome), "u a(c1) t(c1:error) a");
        let text = result_text(&outcome.messages, "c1");
        assert!(text.contains("17") || text.contains("18"), "{text}");
        let kept = outcome.messages[1].contents[0].as_tool_call().unwrap();
        assert_eq!(kept.arguments, Arguments::Text(raw.to_owned()));
    });
}

#[test]
fn b247_a_call_cut_off_by_the_output_limit_is_marked_and_refused_for_that() {
    both(async |how| {
        // A fragment, and a fragment that happens to be valid JSON.
        for raw in [r#"{"port": "Bre"#, r#"{"port": "Brest"}"#] {
            let tide = tide();
            let calls = [("c1", "tide", r#"{"port":"Hull"}"#), ("c2", "tide", raw)];
            let cut = Step::calls(calls).with_stop(Stop::Length);
            let steps = [cut, Step::text("done")];
            let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
            let outcome = rig.run("go").await;
            // The call before it was complete.
            assert_eq!(tide.runs(), 1, "{raw}");
            assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2:error) a");
            let text = result_text(&outcome.messages, "c2");
            let limit = text.contains("the output limit cut the arguments of this call");
            assert!(limit, "{text}");
            let contents = &outcome.messages[1].contents;
            let marks = contents.iter().filter_map(|content| {
                let call = content.as_tool_call()?;
                Some(call.status.clone())
            });
            let marks: Vec<_> = marks.collect();
            assert_eq!(marks, [None, Some(Status::Incomplete)], "{raw}");
            let kept = contents[1].as_tool_call().unwrap();
            assert_eq!(kept.arguments, Arguments::Text(raw.to_owned()));
        }
        // The text after the call was cut, and not the call.
        let tide = tide();
        let id = CallId::natural("c1").unwrap();
        let call = ToolCall::function(id, "tide", r#"{"port":"Hull"}"#);
        let said_last = vec![Content::from(call), Content::text("and th")];
        let steps = [
            Step::contents(said_last).with_stop(Stop::Length),
            Step::text("done"),
        ];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!(tide.runs(), 1);
    });
}

#[test]
fn a_call_that_its_vendor_calls_incomplete_is_not_run() {
    both(async |how| {
        for (raw, reason) in [
            (r#"{"port": "Hull"}"#, "incomplete"),
            (r#"{"port": "Hu"#, "not valid JSON"),
        ] {
            let tide = tide();
            let id = CallId::natural("c1").unwrap();
            let mut call = ToolCall::function(id, "tide", raw);
            call.status = Some(Status::Incomplete);
            let steps = [
                Step::contents(vec![Content::from(call)]).with_stop(Stop::ContentFilter),
                Step::text("done"),
            ];
            let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
            let outcome = rig.run("go").await;
            assert_eq!(said(&outcome), "u a(c1) t(c1:error) a");
            assert_eq!(tide.runs(), 0);
            // No limit was reached, so the error names none.
            let text = result_text(&outcome.messages, "c1");
            assert!(text.contains(reason) && !text.contains("limit"), "{text}");
        }
    });
}

#[test]
fn b29_arguments_that_break_the_schema_are_refused_with_the_field() {
    both(async |how| {
        let tide = tide();
        let steps = [Step::calls([("c1", "tide", "{}")]), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let outcome = rig.run("go").await;
        assert_eq!(tide.runs(), 0);
        assert_eq!(said(&outcome), "u a(c1) t(c1:error) a");
        let text = result_text(&outcome.messages, "c1");
        assert!(text.contains("port") && text.contains("string"), "{text}");
    });
}

#[test]
fn b30_a_panic_or_a_cancel_like_error_is_an_ordinary_error() {
    both(async |how| {
        let panics = Fake::doing("panics", |_, _| async { panic!("no such pier") });
        let cancels = Fake::doing("cancels", |_, _| async {
            Err(ToolError::cancelled("cancelled"))
        });
        let good = Fake::named("good");
        let calls = [
            ("c1", "panics", "{}"),
            ("c2", "cancels", "{}"),
            ("c3", "good", "{}"),
        ];
        let steps = [Step::calls(calls), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| {
            agent.tool(panics).tool(cancels).tool(good.clone())
        });
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1,c2,c3) t(c1:error,c2:error,c3) a");
        assert_eq!((outcome.stop, good.runs()), (StopReason::Done, 1));
        let mut errors = trace(&outcome);
        errors.sort_unstable();
        assert_eq!(errors, ["cancelled", "panicked: no such pier"]);
    });
}

#[test]
fn b31_a_tool_that_takes_too_long_is_unknown_and_not_run_again() {
    both(async |how| {
        for (effect, ending) in [(Effect::Once, "unknown"), (Effect::ReadOnly, "error")] {
            let slow = Fake::doing("slow", |_, _| async {
                sleep(Duration::from_secs(5)).await;
                Ok(ToolOutput::default())
            });
            let slow = slow.with(|spec| {
                spec.timeout = Some(Duration::from_secs(1));
                spec.effect = effect;
            });
            let calls = [("c1", "slow", "{}"), ("c2", "good", "{}")];
            let steps = [Step::calls(calls), Step::text("done")];
            let rig = Rig::new(how, steps, |agent| {
                agent.tool(slow.clone()).tool(Fake::named("good"))
            });
            let began = Instant::now();
            let outcome = rig.run("go").await;
            assert_eq!(began.elapsed(), Duration::from_secs(1));
            assert_eq!(said(&outcome), format!("u a(c1,c2) t(c1:{ending},c2) a"));
            assert_eq!(slow.runs(), 1);
            assert!(result_text(&outcome.messages, "c1").contains("1 s"));
        }
    });
}

#[test]
fn b32_an_unknown_tool_gets_an_error_that_lists_the_names() {
    both(async |how| {
        let calls = [("c1", "tyde", "{}"), ("c2", "good", "{}")];
        let steps = [Step::calls(calls), Step::text("done")];
        let good = Fake::named("good");
        let rig = Rig::new(how, steps, |agent| {
            let limits = throughline::agent::Limits {
                failed_rounds: 1,
                ..throughline::agent::Limits::default()
            };
            agent
                .tool(good.clone())
                .tool(Fake::named("tide"))
                .limits(limits)
        });
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1:error,c2) a");
        let text = result_text(&outcome.messages, "c1");
        assert!(
            text.contains("tyde") && text.contains("good, tide"),
            "{text}"
        );
        assert_eq!(good.runs(), 1);
        // The round counted as failed.
        assert_eq!(outcome.stop, StopReason::ErrorLimit);
    });
}
