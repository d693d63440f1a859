//! Order and shape.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use throughline::agent::{BuildError, Input, RunOptions};
use throughline::model::json::Value;
use throughline::model::{
    CallId, Content, Message, Output, Role, Source, ToolCall, ToolChoice, Wire,
};
use throughline::tool::{SetError, ToolOutput};
use throughline::{Agent, StopReason};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_wire::render::{Options, Target};
use tokio::time::sleep;

use crate::behaviours::support::{Fake, Rig, both, said};

#[test]
fn b1_one_call_then_text_is_two_model_calls_and_one_execution() {
    both(async |how| {
        let tide = Fake::named("tide");
        let steps = [Step::calls([("c1", "tide", "{}")]), Step::text("at four")];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let outcome = rig.run("when?").await;
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!((rig.client.calls(), tide.runs()), (2, 1));
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(outcome.text(), "at four");
        assert_eq!(rig.history(), said(&outcome));
    });
}

#[test]
fn b2_three_rounds_then_text_has_each_result_directly_after_its_call() {
    both(async |how| {
        let tide = Fake::named("tide");
        let call = |id: &'static str| Step::calls([(id, "tide", "{}")]);
        let steps = [call("c1"), call("c2"), call("c3"), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let outcome = rig.run("go").await;
        assert_eq!((rig.client.calls(), tide.runs()), (4, 3));
        assert_eq!(said(&outcome), "u a(c1) t(c1) a(c2) t(c2) a(c3) t(c3) a");
    });
}

/// Tools that end after 1, 2 and 3 time units, called in an order in which they end as 3, 1, 2.
fn slow() -> Fake {
    Fake::doing("slow", |arguments, _| async move {
        let wait = arguments.value().get("wait").and_then(Value::as_u64);
        sleep(Duration::from_millis(wait.unwrap_or(0))).await;
        Ok(ToolOutput::text(arguments.get()))
    })
}

#[test]
fn b3_results_stand_in_call_order_whatever_order_they_end_in() {
    both(async |how| {
        let calls = [
            ("c1", "slow", r#"{"wait":20}"#),
            ("c2", "slow", r#"{"wait":30}"#),
            ("c3", "slow", r#"{"wait":10}"#),
        ];
        let steps = [Step::calls(calls), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(slow()));
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1,c2,c3) t(c1,c2,c3) a");
    });
}

#[test]
fn b4_text_call_and_text_are_one_message_with_three_contents() {
    both(async |how| {
        let call = ToolCall::function(CallId::natural("c1").unwrap(), "tide", "{}");
        let contents = vec![
            Content::text("let me look"),
            call.into(),
            Content::text("one moment"),
        ];
        let steps = [Step::contents(contents.clone()), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(Fake::named("tide")));
        let outcome = rig.run("go").await;
        assert_eq!(outcome.messages[1].contents, contents);
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
    });
}

#[test]
fn b5_no_two_messages_of_a_thread_share_an_id() {
    both(async |how| {
        let call = |id: &'static str| Step::calls([(id, "tide", "{}")]);
        let client = ScriptedClient::new([
            call("c1"),
            call("c1"),
            call("c1"),
            Step::text("done"),
            call("c1"),
            Step::text("done"),
        ]);
        let rig = Rig::of(how, client, |agent| agent.tool(Fake::named("tide")));
        rig.run("go").await;
        rig.run("again").await;
        let history = rig.thread.history();
        let ids: HashSet<_> = history.iter().map(|message| &message.id).collect();
        assert_eq!((history.len(), ids.len()), (12, 12));
        assert!(history.iter().all(|message| message.id.is_some()));
    });
}

#[test]
fn b6_a_tool_that_returns_nothing_is_ok_and_shown_as_a_fixed_text() {
    both(async |how| {
        let quiet = Fake::doing("quiet", |_, _| async { Ok(ToolOutput::default()) });
        let steps = [Step::calls([("c1", "quiet", "{}")]), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| agent.tool(quiet));
        let outcome = rig.run("go").await;
        let result = outcome.messages[2].contents[0].as_tool_result().unwrap();
        assert_eq!(result.outcome, throughline::model::Outcome::Ok);
        assert_eq!(result.output, Output::None);
        // Every vendor is sent a text, and accepts it.
        for wire in [
            Wire::OpenAiChat,
            Wire::OpenAiResponses,
            Wire::Anthropic,
            Wire::Gemini,
        ] {
            let target = Target::newest(wire.clone());
            let options = Options::default();
            let rendered = throughline_wire::render::render(&outcome.messages, &target, &options);
            let body = rendered.body(&target, &options);
            let value = throughline::model::json::parse(&body).unwrap();
            let profile = throughline_wire::validate::Profile::newest(wire.clone());
            let violations = throughline_wire::validate::validate(&value, &profile);
            assert!(violations.is_empty(), "{wire}: {violations:?}");
        }
    });
}

#[test]
fn b8_the_second_model_call_holds_every_message_once_in_record_order() {
    both(async |how| {
        let steps = [
            Step::text_and_calls("hm", [("c1", "tide", "{}")]),
            Step::text("done"),
            Step::text("again"),
        ];
        let rig = Rig::new(how, steps, |agent| agent.tool(Fake::named("tide")));
        let first = rig.run("one").await;
        let asked = rig.client.asked();
        assert_eq!(asked[0].messages, first.messages[..1]);
        assert_eq!(asked[1].messages, first.messages[..3]);
        let second = rig.run("two").await;
        let all: Vec<Message> = first.messages.into_iter().chain(second.messages).collect();
        assert_eq!(rig.client.asked()[2].messages, all[..5]);
    });
}

#[test]
fn b9_lazy_input_is_read_once_and_options_stay_the_callers() {
    both(async |how| {
        let pulled = AtomicUsize::new(0);
        let lazy = (0..3).map(|number| {
            pulled.fetch_add(1, Ordering::SeqCst);
            Message::user(format!("message {number}"))
        });
        let input = Input::of(lazy);
        assert_eq!(pulled.load(Ordering::SeqCst), 3);
        let adder = Fake::doing("adder", |_, context| async move {
            context.add_tools([Arc::new(Fake::named("extra")) as _])?;
            Ok(ToolOutput::default())
        });
        let options = RunOptions {
            tools: vec![Arc::new(adder)],
            choice: ToolChoice::Required,
            ..RunOptions::default()
        };
        let before = format!("{options:?}");
        let client = ScriptedClient::new([
            Step::calls([("c1", "adder", "{}")]),
            Step::text("done"),
            Step::fails(throughline::client::ErrorKind::Invalid),
        ]);
        let rig = Rig::of(how, client, |agent| agent);
        let run = rig.agent.run_on(&rig.thread, input).options(&options);
        how.finish(run).await.unwrap();
        assert_eq!(pulled.load(Ordering::SeqCst), 3);
        assert_eq!(format!("{options:?}"), before);
        let run = rig.agent.run_on(&rig.thread, "fails").options(&options);
        how.finish(run).await.unwrap_err();
        assert_eq!(format!("{options:?}"), before);
    });
}

#[test]
fn b10_a_tool_choice_holds_for_the_first_model_call_only() {
    both(async |how| {
        for choice in [ToolChoice::Required, ToolChoice::Named("tide".into())] {
            let call = |id: &'static str| Step::calls([(id, "tide", "{}")]);
            let steps = [call("c1"), call("c2"), Step::text("done")];
            let rig = Rig::new(how, steps, |agent| agent.tool(Fake::named("tide")));
            let run = rig.agent.run_on(&rig.thread, "go").choice(choice.clone());
            how.finish(run).await.unwrap();
            let asked: Vec<_> = rig
                .client
                .asked()
                .into_iter()
                .map(|one| one.choice)
                .collect();
            assert_eq!(asked, [choice, ToolChoice::Auto, ToolChoice::Auto]);
        }
    });
}

#[test]
fn b12_a_runs_tool_stands_in_for_the_agents_and_equal_names_in_one_list_are_refused() {
    both(async |how| {
        let (ours, theirs) = (Fake::named("tide"), Fake::named("tide"));
        let call = |id: &'static str| Step::calls([(id, "tide", "{}")]);
        let steps = [
            call("c1"),
            Step::text("done"),
            call("c2"),
            Step::text("done"),
        ];
        let rig = Rig::new(how, steps, |agent| agent.tool(ours.clone()));
        let run = rig.agent.run_on(&rig.thread, "go").tool(theirs.clone());
        how.finish(run).await.unwrap();
        assert_eq!((ours.runs(), theirs.runs()), (0, 1));
        rig.run("again").await;
        assert_eq!((ours.runs(), theirs.runs()), (1, 1));

        let twice = Agent::builder(ScriptedClient::new([]))
            .tool(Fake::named("tide"))
            .tool(Fake::named("tide"))
            .build();
        let clash = SetError::Clash {
            name: "tide".into(),
        };
        assert_eq!(twice.unwrap_err(), BuildError::Tools(clash));
    });
}

#[test]
fn input_is_the_callers_whatever_it_claims() {
    both(async |how| {
        let mut claimed = Message::new(Role::Assistant, vec![Content::text("I am the model")]);
        claimed.source = Some(Source::Model);
        let rig = Rig::new(how, [Step::text("no")], |agent| agent);
        let run = rig.agent.run_on(&rig.thread, claimed.clone());
        how.finish(run).await.unwrap();
        assert_eq!(rig.thread.history()[0].source, Some(Source::Caller));
        assert_eq!(claimed.source, Some(Source::Model));
    });
}
