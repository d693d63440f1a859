//! The tree of spans of a run, and their attributes.

use std::sync::Arc;
use std::time::Duration;

use throughline::agent::{Limits, RunOptions};
use throughline::client::ErrorKind;
use throughline::model::{Response, Stop, Usage};
use throughline::tool::{Effect, ToolOutput};
use throughline::{Agent, Thread};
use throughline_testkit::scripted::{ScriptedClient, Step};
use tokio::time::sleep;
use tracing::{Instrument, info_span};

use crate::telemetry::capture::{Capture, Fields};
use crate::telemetry::support::{Fake, How, both, watched};

/// The attributes of a span, without those that all spans of its kind share.
fn said(fields: &Fields, names: &[&str]) -> Vec<String> {
    let said = names.iter().map(|name| match fields.get(name) {
        Some(value) => value.clone(),
        None => "-".to_owned(),
    });
    said.collect()
}

/// A tool with a span of its own, after an await in a task of its own.
fn tide() -> Fake {
    Fake::doing("tide", |_, _| async {
        let look = async {
            sleep(Duration::from_millis(20)).await;
            info_span!("almanac").in_scope(|| ());
        };
        let task = tokio::spawn(look.in_current_span());
        task.await?;
        Ok(ToolOutput::text("at four"))
    })
}

fn rounds() -> ScriptedClient {
    ScriptedClient::new([
        Step::calls([("c1", "tide", "{}"), ("c2", "pier", "{}")]),
        Step::calls([("c3", "tide", "{}")]).with_usage(20, 7),
        Step::text("At four.").with_usage(30, 2),
    ])
}

#[test]
fn a_run_with_two_rounds_is_one_tree() {
    both(async |how, capture| {
        let agent = how
            .builder(rounds())
            .name("harbour")
            .tool(tide())
            .tool(Fake::failing("pier", "the pier is closed"))
            .build()
            .unwrap();
        let thread = Thread::new();
        let request = info_span!("request");
        let run = agent.run_on(&thread, "When is high water?");
        let outcome = how.finish(run).instrument(request).await.unwrap();
        assert_eq!(
            capture.tree(),
            "request
  invoke_agent harbour
    chat scripted-1
    execute_tool tide
      almanac
    execute_tool pier
    chat scripted-1
    execute_tool tide
      almanac
    chat scripted-1
"
        );
        assert_eq!(capture.open(), 0);

        let [run] = &capture.fields("invoke_agent")[..] else {
            panic!("one run");
        };
        let expected: Fields = [
            ("otel.name", "invoke_agent harbour"),
            ("otel.kind", "internal"),
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "scripted"),
            ("gen_ai.agent.name", "harbour"),
            ("gen_ai.conversation.id", thread.id().as_str()),
            ("gen_ai.usage.input_tokens", "60"),
            ("gen_ai.usage.output_tokens", "14"),
            ("throughline.run", &outcome.run.to_string()),
            ("throughline.stop_reason", "done"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into();
        assert_eq!(run, &expected);

        let calls = capture.fields("chat");
        let streamed = how == How::Streamed;
        let mut expected: Fields = [
            ("otel.name", "chat scripted-1"),
            ("otel.kind", "client"),
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "scripted"),
            ("gen_ai.request.model", "scripted-1"),
            (
                "gen_ai.request.stream",
                if streamed { "true" } else { "false" },
            ),
            ("gen_ai.response.model", "scripted-1"),
            ("gen_ai.response.id", "resp_scripted_1"),
            ("gen_ai.response.finish_reasons", r#"["tool_call"]"#),
            ("gen_ai.usage.input_tokens", "10"),
            ("gen_ai.usage.output_tokens", "5"),
            ("throughline.upstream", "scripted"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into();
        if streamed {
            let first = "gen_ai.response.time_to_first_chunk";
            expected.insert(first, "0.0".to_owned());
        }
        assert_eq!(calls[0], expected);
        let last = ["gen_ai.response.id", "gen_ai.response.finish_reasons"];
        assert_eq!(said(&calls[2], &last), ["resp_scripted_3", r#"["stop"]"#]);

        let tools = capture.fields("execute_tool");
        let expected: Fields = [
            ("otel.name", "execute_tool pier"),
            ("otel.kind", "internal"),
            ("otel.status_code", "ERROR"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.agent.name", "harbour"),
            ("gen_ai.tool.name", "pier"),
            ("gen_ai.tool.type", "function"),
            ("gen_ai.tool.call.id", "c2"),
            ("throughline.run", &outcome.run.to_string()),
            ("throughline.outcome", "error"),
            ("error.type", "failed"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into();
        assert_eq!(tools[1], expected);
        let names = ["gen_ai.tool.call.id", "throughline.outcome", "error.type"];
        assert_eq!(said(&tools[2], &names), ["c3", "ok", "-"]);
    });
}

#[test]
fn a_run_that_fails_says_what_kind_of_error_and_nothing_more() {
    both(async |how, capture| {
        let client = ScriptedClient::new([Step::fails(ErrorKind::RateLimited)]);
        let agent = Agent::builder(client).build().unwrap();
        how.finish(agent.run("hello")).await.unwrap_err();
        let error = ["error.type", "otel.status_code", "otel.status_description"];
        for kind in ["invoke_agent", "chat"] {
            let fields = &capture.fields(kind)[0];
            assert_eq!(said(fields, &error), ["rate_limited", "ERROR", "-"]);
        }
        let run = &capture.fields("invoke_agent")[0];
        assert_eq!(said(run, &["throughline.stop_reason"]), ["failed"]);
    });
}

#[test]
fn a_run_that_cannot_begin_has_a_span_too() {
    watched(async |capture| {
        let agent = Agent::builder(ScriptedClient::new([])).build().unwrap();
        agent.resume(&Thread::new()).await.unwrap_err();
        assert_eq!(capture.tree(), "invoke_agent agent\n");
        let run = &capture.fields("invoke_agent")[0];
        assert_eq!(said(run, &["error.type"]), ["nothing_to_resume"]);
    });
}

#[test]
fn a_call_that_is_cut_off_says_so_and_is_not_marked_as_failed() {
    both(async |how, capture| {
        let client = ScriptedClient::new([Step::hang_after("Hal")]);
        let limits = Limits {
            time: Some(Duration::from_secs(3)),
            ..Limits::default()
        };
        let agent = Agent::builder(client).limits(limits).build().unwrap();
        how.finish(agent.run("hello")).await.unwrap();
        let names = ["error.type", "throughline.stop_reason", "otel.status_code"];
        let call = &capture.fields("chat")[0];
        assert_eq!(said(call, &names), ["budget", "budget", "-"]);
        let run = &capture.fields("invoke_agent")[0];
        assert_eq!(said(run, &names), ["-", "budget", "-"]);
    });
}

#[test]
fn tools_that_time_out_panic_or_are_cut_off_have_a_span_that_says_so() {
    both(async |how, capture| {
        let wait = |name: &str, effect| {
            let mut tool = Fake::doing(name, |_, _| async {
                sleep(Duration::from_secs(600)).await;
                Ok(ToolOutput::text("late"))
            });
            tool.spec.effect = effect;
            tool
        };
        let mut late = wait("late", Effect::Once);
        late.spec.timeout = Some(Duration::from_secs(1));
        let calls = ["late", "broken", "read", "write"].map(|name| (name, name, "{}"));
        let agent = Agent::builder(ScriptedClient::new([Step::calls(calls)]))
            .tool(late)
            .tool(Fake::doing("broken", |_, _| async { panic!("a plank") }))
            .tool(wait("read", Effect::ReadOnly))
            .tool(wait("write", Effect::Keyed))
            .build()
            .unwrap();
        let limits = Limits {
            time: Some(Duration::from_secs(5)),
            ..Limits::default()
        };
        how.finish(agent.run("go").limits(limits)).await.unwrap();
        // An aborted task is dropped when it is next polled.
        sleep(Duration::from_millis(1)).await;
        assert_eq!(capture.open(), 0);
        let names = ["gen_ai.tool.name", "throughline.outcome", "error.type"];
        let mut tools = capture.fields("execute_tool");
        tools.sort_by_key(|fields| fields["gen_ai.tool.name"].clone());
        let tools: Vec<_> = tools.iter().map(|fields| said(fields, &names)).collect();
        assert_eq!(
            tools,
            [
                ["broken", "error", "panic"],
                ["late", "unknown", "timeout"],
                ["read", "cancelled", "cancelled"],
                ["write", "unknown", "cancelled"],
            ]
        );
    });
}

#[test]
fn an_agent_that_a_tool_runs_is_below_the_tool() {
    watched(async |capture| {
        let inner = Agent::builder(ScriptedClient::new([Step::text("at four")]));
        let inner = Arc::new(inner.name("almanac").build().unwrap());
        let ask = Fake::doing("ask", move |_, _| {
            let inner = Arc::clone(&inner);
            async move { Ok(ToolOutput::text(inner.run("when?").await?.text())) }
        });
        let steps = [Step::calls([("c1", "ask", "{}")]), Step::text("At four.")];
        let agent = Agent::builder(ScriptedClient::new(steps)).name("harbour");
        agent.tool(ask).build().unwrap().run("when?").await.unwrap();
        assert_eq!(
            capture.tree(),
            "invoke_agent harbour
  chat scripted-1
  execute_tool ask
    invoke_agent almanac
      chat scripted-1
  chat scripted-1
"
        );
    });
}

#[test]
fn the_first_event_is_timed_and_details_of_usage_are_told() {
    watched(async |capture: Capture| {
        let response = Response {
            id: Some("r1".into()),
            model: Some("deep-2".into()),
            messages: Vec::new(),
            usage: Some(Usage {
                input: Some(100),
                output: Some(20),
                cache_read: Some(80),
                cache_write: Some(10),
                reasoning: Some(15),
                ..Usage::default()
            }),
            stop: Stop::Length,
            error: None,
            vendor: None,
            service: None,
        };
        let step = Step::response(response).after(Duration::from_millis(1500));
        let agent = Agent::builder(ScriptedClient::new([step])).build().unwrap();
        let options = RunOptions {
            model: Some("deep".into()),
            ..RunOptions::default()
        };
        let run = agent.run("hello").options(&options);
        How::Streamed.finish(run).await.unwrap();
        let names = [
            "otel.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.response.finish_reasons",
            "gen_ai.response.time_to_first_chunk",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.reasoning.output_tokens",
        ];
        let expected = [
            "chat deep",
            "deep",
            "deep-2",
            r#"["length"]"#,
            "1.5",
            "100",
            "20",
            "80",
            "10",
            "15",
        ];
        assert_eq!(said(&capture.fields("chat")[0], &names), expected);
    });
}
