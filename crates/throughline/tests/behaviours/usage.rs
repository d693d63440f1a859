//! Usage and structured output.

use schemars::JsonSchema;
use serde::Deserialize;
use throughline::StopReason;
use throughline::agent::{Limits, Step as Happened, TypedError};
use throughline::model::json::RawJson;
use throughline::model::{Body, Content, Message, Response, Role, Stop, Text, Usage};
use throughline::tool::Approval;
use throughline_testkit::scripted::Step;

use crate::behaviours::support::{Fake, Rig, both, said};

fn with_vendor_usage(step: Content, input: u64, output: u64, cached: u64) -> Step {
    let vendor = format!(
        r#"{{"input_tokens":{input},"output_tokens":{output},"details":{{"cached_tokens":{cached}}}}}"#
    );
    Step::response(Response {
        id: None,
        model: None,
        stop: Stop::Done,
        messages: vec![Message::new(Role::Assistant, vec![step])],
        usage: Some(Usage {
            input: Some(input),
            output: Some(output),
            vendor: Some(RawJson::new(&vendor).unwrap()),
            ..Usage::default()
        }),
        error: None,
        vendor: None,
        service: None,
    })
}

#[test]
fn b51_a_run_reports_the_sum_and_each_step_its_own() {
    both(async |how| {
        let steps = [
            with_vendor_usage(crate::behaviours::foreign::call("c1", "tide"), 10, 5, 3),
            with_vendor_usage(Content::text("done"), 20, 7, 4),
        ];
        let rig = Rig::new(how, steps, |agent| agent.tool(Fake::named("tide")));
        let outcome = rig.run("go").await;
        let usage = &outcome.usage;
        assert_eq!((usage.input, usage.output), (Some(30), Some(12)));
        assert_eq!(usage.counters["details.cached_tokens"], 7);
        assert_eq!(usage.counters["input_tokens"], 30);
        assert!(!usage.partial);
        let each: Vec<_> = outcome
            .steps
            .iter()
            .filter_map(|step| match step {
                Happened::Model { usage, .. } => usage.as_ref(),
                Happened::Tool { .. } => None,
            })
            .map(|usage| (usage.input, usage.vendor.as_ref().unwrap().get().to_owned()))
            .collect();
        let own = |input: u64, output: u64, cached: u64| {
            format!(
                r#"{{"input_tokens":{input},"output_tokens":{output},"details":{{"cached_tokens":{cached}}}}}"#
            )
        };
        assert_eq!(each, [(Some(10), own(10, 5, 3)), (Some(20), own(20, 7, 4))]);
    });
}

#[test]
fn b52_a_call_without_figures_makes_the_sum_partial() {
    both(async |how| {
        let call = |id: &'static str| Step::calls([(id, "tide", "{}")]);
        let steps = [
            call("c1").with_usage(10, 5),
            call("c2").without_usage(),
            Step::text("done").with_usage(20, 7),
        ];
        let rig = Rig::new(how, steps, |agent| agent.tool(Fake::named("tide")));
        let usage = rig.run("go").await.usage;
        assert_eq!(
            (usage.input, usage.output, usage.partial),
            (Some(30), Some(12), true)
        );
    });
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Tide {
    port: String,
    high: String,
}

const TIDE: &str = r#"{"port":"Hull","high":"04:12"}"#;

#[test]
fn b53_a_typed_run_reads_the_final_answer_only() {
    both(async |how| {
        // Intermediate answers would not fit the type.
        let steps = [
            Step::text_and_calls("let me see", [("c1", "tide", "{}")]),
            Step::text_and_calls("{\"port\":1}", [("c2", "tide", "{}")]),
            Step::text(TIDE),
        ];
        let tide = Fake::named("tide");
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let run = rig.agent.run_on(&rig.thread, "when?").typed::<Tide>();
        let typed = run.await.unwrap();
        let value = typed.value.unwrap();
        assert_eq!(
            (value.port.as_str(), value.high.as_str()),
            ("Hull", "04:12")
        );
        assert_eq!(tide.runs(), 2);
        assert_eq!(typed.outcome.stop, StopReason::Done);
        let asked = rig.client.asked();
        let shapes = asked
            .iter()
            .map(|one| one.settings.answer.as_ref().unwrap());
        assert!(shapes.clone().all(|shape| shape.name == "Tide"));
        assert!(
            shapes
                .clone()
                .filter_map(|shape| shape.schema.as_ref())
                .all(|schema| schema.get().contains("\"port\""))
        );
        assert_eq!(shapes.count(), 3);
    });
}

#[test]
fn b54_an_answer_that_does_not_fit_is_an_error_and_still_history() {
    both(async |how| {
        let steps = [Step::text("at four, I think"), Step::text("next")];
        let rig = Rig::new(how, steps, |agent| agent);
        let run = rig.agent.run_on(&rig.thread, "when?").typed::<Tide>();
        let Err(TypedError::Unfit {
            text,
            reason,
            outcome,
        }) = run.await
        else {
            panic!("it fits");
        };
        assert_eq!(text, "at four, I think");
        assert!(reason.contains("line 1"), "{reason}");
        assert_eq!(said(&outcome), "u a");
        assert_eq!(rig.history(), "u a");
        assert_eq!(rig.run("next").await.text(), "next");
    });
}

#[test]
fn b55_a_typed_run_without_an_answer_has_no_value_and_no_parse_error() {
    both(async |how| {
        // A parked run.
        let guarded = Fake::named("guarded").with(|spec| spec.approval = Approval::Always);
        let steps = [Step::calls([("c1", "guarded", "{}")])];
        let rig = Rig::new(how, steps, |agent| agent.tool(guarded));
        let typed = rig.agent.run_on(&rig.thread, "go").typed::<Tide>();
        let typed = typed.await.unwrap();
        assert!(typed.value.is_none());
        assert_eq!(typed.outcome.stop, StopReason::Parked);
        // A refusal.
        let refusal = Content::new(Body::Refusal(Text {
            text: "I cannot say".into(),
            citations: vec![],
        }));
        let step = Step::contents(vec![refusal]).with_stop(Stop::Refusal);
        let rig = Rig::new(how, [step], |agent| agent);
        let typed = rig.agent.run_on(&rig.thread, "go").typed::<Tide>();
        let typed = typed.await.unwrap();
        assert!(typed.value.is_none());
        assert_eq!(typed.outcome.refusal().as_deref(), Some("I cannot say"));
        // A cancelled run.
        let rig = Rig::new(how, [Step::hang()], |agent| agent);
        let token = tokio_util::sync::CancellationToken::new();
        let run = rig.agent.run_on(&rig.thread, "go");
        let run = run.cancelled_by(token.clone()).typed::<Tide>();
        let (typed, ()) = tokio::join!(run.into_future(), async {
            rig.client.begun(1).await;
            token.cancel();
        });
        let typed = typed.unwrap();
        assert!(typed.value.is_none());
        assert_eq!(typed.outcome.stop, StopReason::Cancelled);
        // At a limit: a value if the last answer fits, else none.
        for (last, fits) in [(TIDE, true), ("four", false)] {
            let steps = [Step::calls([("c1", "tide", "{}")]), Step::text(last)];
            let rig = Rig::new(how, steps, |agent| {
                let limits = Limits {
                    rounds: 1,
                    ..Limits::default()
                };
                agent.tool(Fake::named("tide")).limits(limits)
            });
            let typed = rig.agent.run_on(&rig.thread, "go").typed::<Tide>();
            let typed = typed.await.unwrap();
            assert_eq!(typed.value.is_some(), fits);
            assert_eq!(typed.outcome.stop, StopReason::RoundLimit);
        }
    });
}
