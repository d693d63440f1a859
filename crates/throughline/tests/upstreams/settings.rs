//! Whatever a caller sets, a strict server accepts the request.

use std::sync::Arc;

use throughline::model::json::RawJson;
use throughline::model::{AnswerShape, Effort, Message, Settings, ToolChoice, Wire};
use throughline::{ChatClient, View};
use throughline_testkit::upstream::{Reply, Script, Upstream};

use crate::common::{Ask, READINGS, WIRES, ask, client_of, run};

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
    for effort in [
        Effort::Off,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
    ] {
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
