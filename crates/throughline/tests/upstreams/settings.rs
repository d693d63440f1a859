//! A strict server accepts every request, whatever settings the caller uses.

use std::sync::Arc;

use throughline::agent::{RunOptions, Step};
use throughline::client::{LossSink, View};
use throughline::model::json::RawJson;
use throughline::model::{AnswerShape, Effort, Message, Settings, ToolChoice, Verbosity, Wire};
use throughline::{Agent, ChatClient};
use throughline_testkit::upstream::{Reply, Script, Upstream};

use crate::upstreams::common::{Ask, READINGS, WIRES, ask, client_of, run};

fn settings() -> Vec<Settings> {
    let shape = r#"{"type":"object","properties":{"time":{"type":"string"}},"required":["time"],"additionalProperties":false}"#;
    let answer = AnswerShape {
        name: "tide".into(),
        schema: Some(RawJson::new(shape).expect("a schema is JSON")),
        ..AnswerShape::default()
    };
    let mut list = vec![
        Settings::default(),
        Settings {
            max_output_tokens: Some(50),
            temperature: Some(0.5),
            top_p: Some(0.9),
            stop: vec!["END".into(), "STOP".into()],
            parallel_calls: Some(false),
            ..Settings::default()
        },
        Settings {
            parallel_calls: Some(true),
            answer: Some(answer.clone()),
            ..Settings::default()
        },
    ];
    list.push(Settings {
        summary: true,
        verbosity: Some(Verbosity::High),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        answer: Some(AnswerShape::default()),
        user: Some("a4f1".into()),
        service_tier: Some("default".into()),
        cache_key: Some("harbour".into()),
        cache_retention: Some("24h".into()),
        betas: vec!["context-1".into()],
        ..Settings::default()
    });
    for effort in Effort::ALL {
        list.push(Settings {
            effort: Some(effort),
            max_output_tokens: Some(2000),
            temperature: Some(0.2),
            answer: Some(answer.clone()),
            ..Settings::default()
        });
        list.push(Settings {
            effort: Some(effort),
            ..Settings::default()
        });
    }
    list
}

#[test]
fn whatever_is_set_the_request_is_accepted() {
    run(async {
        let mut refused = Vec::new();
        for wire in WIRES {
            refused.extend(all(wire).await);
        }
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    });
}

async fn all(wire: Wire) -> Vec<String> {
    let script = Script::respond_with(|_| Reply::text("04:12"));
    let upstream = Upstream::start(wire.clone(), script).await;
    let client: Arc<dyn ChatClient> = Arc::new(client_of(&upstream).build_bare().unwrap());
    let view = View::new(vec![Message::user("When is high water?")]);
    let choices = [
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
        ToolChoice::Named("tide".into()),
    ];
    let mut refused = Vec::new();
    for settings in settings() {
        for choice in &choices {
            for tools in [Ask::plain().tools, Ask::with_tools().tools] {
                for reading in READINGS {
                    let with = Ask {
                        tools: tools.clone(),
                        settings: settings.clone(),
                        choice: choice.clone(),
                    };
                    if let Err(error) = ask(&client, &with.about(&view), reading).await {
                        let body = upstream.requests().pop().map(|request| request.body);
                        let body = body.unwrap_or_default();
                        refused.push(format!("{wire} {reading:?} {choice:?}: {error}\n  {body}"));
                    }
                }
            }
        }
    }
    refused
}

/// The losses before a call, those of the call, and those in the outcome of its run are equal.
#[test]
fn what_a_service_cannot_be_told_is_listed_by_its_run() {
    run(async {
        let settings = Settings {
            temperature: Some(0.5),
            verbosity: Some(Verbosity::Low),
            ..Settings::default()
        };
        for (wire, lost) in [
            (
                Wire::Anthropic,
                vec!["settings.temperature", "settings.verbosity"],
            ),
            (Wire::Gemini, vec!["settings.verbosity"]),
            (Wire::OpenAiChat, vec![]),
        ] {
            let script = Script::respond_with(|_| Reply::text("04:12"));
            let upstream = Upstream::start(wire.clone(), script).await;
            let client: Arc<dyn ChatClient> = Arc::new(client_of(&upstream).build_bare().unwrap());
            let view = View::new(vec![Message::user("When is high water?")]);
            let with = Ask {
                settings: settings.clone(),
                ..Ask::plain()
            };
            let noted = LossSink::default();
            let request = throughline::client::ChatRequest {
                losses: Some(&noted),
                ..with.about(&view)
            };
            let before = client.unsupported(&request);
            client.respond(&request).await.unwrap();
            assert_eq!(noted.take(), before, "{wire}");
            let agent = Agent::builder(client).build().unwrap();
            let thread = agent.new_thread();
            let options = RunOptions {
                settings: Some(settings.clone()),
                ..RunOptions::default()
            };
            let outcome = agent
                .run_on(&thread, "When?")
                .options(&options)
                .await
                .unwrap();
            let paths: Vec<&str> = outcome
                .losses
                .iter()
                .map(|loss| loss.path.as_str())
                .collect();
            assert_eq!(paths, lost, "{wire}");
            let Some(Step::Model { losses, .. }) = outcome.steps.first() else {
                panic!("{:?}", outcome.steps);
            };
            assert_eq!(*losses, outcome.losses);
        }
    });
}
