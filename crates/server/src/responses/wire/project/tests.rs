use std::sync::Arc;

use throughline::{RunEvent, StopReason};
use throughline_model::{CallId, Content, Message, Place, Role, Stop, ToolCall, Usage};
use throughline_store::RunId;

use super::Projector;
use crate::responses::wire::frame::Frame;
use crate::responses::wire::request::CreateRequest;
use crate::responses::wire::scene::{Dialect, Ending, Labels, Scene};

fn scene(body: &str) -> Scene {
    Scene {
        run: RunId::from_bytes([0xaa; 16]),
        thread: None,
        created: 1_700_000_000_123,
        previous: None,
        request: Arc::new(CreateRequest::parse(body.as_bytes()).unwrap()),
        dialect: Dialect::OpenAi,
        labels: Labels::new(),
        lists: Vec::new(),
        known_calls: Vec::new(),
    }
}

fn ending(stop: StopReason, finish: Stop) -> Ending {
    Ending {
        stop,
        finish: Some(finish),
        error: None,
        asked: Vec::new(),
        at: 1_700_000_001_999,
    }
}

fn kinds(frames: &[Frame]) -> Vec<&'static str> {
    frames.iter().map(|frame| frame.kind).collect()
}

fn answer(contents: Vec<Content>) -> RunEvent {
    let mut message = Message::new(Role::Assistant, contents);
    message.usage = Some(Usage {
        input: Some(10),
        output: Some(4),
        ..Usage::default()
    });
    RunEvent::Message(message)
}

#[test]
fn text_and_a_call_become_items() {
    let at = |item| Place::new(0, item, 0);
    let call = ToolCall::function(CallId::natural("call_1").unwrap(), "tide", "{\"a\":1}");
    let (text, call) = (Content::text("Hello"), Content::from(call));
    let delta = |delta: &str| RunEvent::Text {
        step: 0,
        at: at(0),
        delta: delta.to_owned(),
    };
    let whole = |item, content: &Content| RunEvent::Content {
        step: 0,
        at: at(item),
        content: content.clone(),
    };
    let events = [
        RunEvent::Asked { step: 0 },
        delta("Hel"),
        delta("lo"),
        whole(0, &text),
        whole(1, &call),
        answer(vec![text.clone(), call.clone()]),
    ];
    let mut projector = Projector::new(scene(r#"{"model":"demo"}"#));
    let mut frames = Vec::new();
    projector.begin(&mut frames);
    for event in &events {
        projector.tell(event, &mut frames);
    }
    projector.finish(&ending(StopReason::Parked, Stop::ToolCalls), &mut frames);
    assert_eq!(
        kinds(&frames),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    assert!(
        frames
            .iter()
            .zip(0..)
            .all(|(frame, number)| frame.number == number)
    );
    let response = projector.response();
    let value = response.value();
    let output = value.get("output").unwrap().as_array().unwrap();
    let run = "aa".repeat(16);
    assert!(
        output[0]
            .get("id")
            .unwrap()
            .is_str(&format!("msg_{run}_0_0"))
    );
    assert!(
        output[1]
            .get("id")
            .unwrap()
            .is_str(&format!("fc_{run}_0_1"))
    );
    assert!(output[1].get("arguments").unwrap().is_str("{\"a\":1}"));
    assert_eq!(value.at(&["usage", "total_tokens"]).unwrap().raw(), "14");
    assert!(value.get("status").unwrap().is_str("completed"));
    assert_eq!(value.get("completed_at").unwrap().raw(), "1700000001");
}
