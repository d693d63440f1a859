use std::sync::Arc;

use throughline::{RunEvent, StopReason};
use throughline_model::json::{RawJson, Value};
use throughline_model::{
    CallId, Content, Message, Outcome, Output, Place, Role, Source, Stop, ToolCall, Usage,
};
use throughline_store::{ApprovalId, RunId, ThreadId};

use super::Projector;
use crate::api::openai::items::{AwaitingApproval, KnownCall, ServerTool, ToolIndex};
use crate::api::openai::responses::wire::context::{Ending, ResponseContext};
use crate::api::openai::responses::wire::frame::Frame;
use crate::api::openai::responses::wire::request::CreateRequest;
use crate::config::Dialect;

fn context(body: &str) -> ResponseContext {
    ResponseContext {
        run: RunId::from_bytes([0xaa; 16]),
        thread: None,
        created: 1_700_000_000_123,
        previous: None,
        request: Arc::new(CreateRequest::parse(body.as_bytes()).unwrap()),
        dialect: Dialect::OpenAi,
        tool_index: ToolIndex::new(),
        lists: Vec::new(),
        known_calls: Vec::new(),
        conversation: None,
        ignored: Vec::new(),
    }
}

fn ending(stop: StopReason, finish: Stop) -> Ending {
    Ending {
        stop,
        finish: Some(finish),
        error: None,
        asked: Vec::new(),
        at: 1_700_000_001_999,
        ignored: Vec::new(),
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
    let mut projector = Projector::new(context(r#"{"model":"demo"}"#));
    let mut frames = Vec::new();
    projector.begin(&mut frames);
    for event in &events {
        projector.apply(event, &mut frames);
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
            .is_str(&format!("fc_{run}_0_0"))
    );
    assert!(output[1].get("arguments").unwrap().is_str("{\"a\":1}"));
    assert_eq!(value.at(&["usage", "total_tokens"]).unwrap().raw(), "14");
    assert!(value.get("status").unwrap().is_str("completed"));
    assert_eq!(value.get("completed_at").unwrap().raw(), "1700000001");
}

/// Tell events and end; the frames and the response.
fn told(context: ResponseContext, events: &[RunEvent], ending: &Ending) -> (Vec<Frame>, RawJson) {
    let mut projector = Projector::new(context);
    let mut frames = Vec::new();
    projector.begin(&mut frames);
    for event in events {
        projector.apply(event, &mut frames);
    }
    projector.finish(ending, &mut frames);
    (frames, projector.response())
}

/// Each item in short: type, id without the run, status.
fn items(response: &RawJson) -> Vec<String> {
    let value = response.value();
    let output = value.get("output").unwrap().as_array().unwrap();
    let word = |item: &Value<'_>, key: &str| {
        let found = item.get(key).and_then(Value::as_str);
        found.unwrap_or_default().replace(&"aa".repeat(16), "A")
    };
    let short = output.iter().map(|item| {
        format!(
            "{} {} {}",
            word(item, "type"),
            word(item, "id"),
            word(item, "status")
        )
    });
    short.collect()
}

fn text(item: usize, delta: &str) -> RunEvent {
    RunEvent::Text {
        step: 0,
        at: Place::new(0, item, 0),
        delta: delta.to_owned(),
    }
}

fn content(item: usize, content: &Content) -> RunEvent {
    RunEvent::Content {
        step: 0,
        at: Place::new(0, item, 0),
        content: content.clone(),
    }
}

fn discard(item: usize) -> RunEvent {
    RunEvent::Incomplete {
        step: 0,
        at: Place::new(0, item, 0),
    }
}

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::function(CallId::natural(id).unwrap(), name, "{}")
}

fn with_orders(mut context: ResponseContext) -> ResponseContext {
    for (name, asks) in [("get_order", false), ("place_order", true)] {
        let tool = ServerTool {
            label: "orders".to_owned(),
            name: name.to_owned(),
            asks,
        };
        context.tool_index.insert(name, tool);
    }
    context
}

fn result(call: &ToolCall, text: &str) -> RunEvent {
    RunEvent::Result {
        step: 0,
        position: 0,
        result: call.answer(Outcome::Ok, Output::Text(text.to_owned())),
    }
}

#[test]
fn a_call_that_is_made_again_leaves_its_old_items_incomplete() {
    let (first, second) = (Content::text("one"), Content::text("two"));
    let lost = Content::from(call("c1", "f"));
    let events = [
        RunEvent::Asked { step: 0 },
        text(0, "one"),
        content(0, &first),
        text(1, "hal"),
        content(2, &lost),
        discard(0),
        discard(1),
        discard(2),
        RunEvent::Asked { step: 0 },
        text(0, "two"),
        content(0, &second),
        answer(vec![second.clone()]),
    ];
    let end = ending(StopReason::Done, Stop::Done);
    let (frames, response) = told(context(r#"{"model":"demo"}"#), &events, &end);
    assert_eq!(
        items(&response),
        [
            "message msg_A_0_0 incomplete",
            "message msg_A_0_1 incomplete",
            "message msg_A_0_0r1 completed",
        ]
    );
    // The call of the answer that broke off was never shown, so no client runs it.
    assert!(!kinds(&frames).contains(&"response.function_call_arguments.done"));
    assert!(response.value().get("status").unwrap().is_str("completed"));
}

#[test]
fn a_message_whose_contents_were_not_told_is_shown_all_the_same() {
    let said = Content::text("recorded");
    let events = [
        RunEvent::Asked { step: 0 },
        text(0, "recor"),
        discard(0),
        answer(vec![said, call("c1", "f").into()]),
    ];
    let end = ending(StopReason::Parked, Stop::ToolCalls);
    let (_, response) = told(context(r#"{"model":"demo"}"#), &events, &end);
    assert_eq!(
        items(&response),
        [
            "message msg_A_0_0 incomplete",
            "message msg_A_0_0r1 completed",
            "function_call fc_A_0_0r1 completed",
        ]
    );
}

#[test]
fn an_answer_that_ran_out_of_tokens_ends_in_an_incomplete_item() {
    let said = Content::text("half");
    let events = [
        RunEvent::Asked { step: 0 },
        text(0, "half"),
        content(0, &said),
        answer(vec![said.clone()]),
    ];
    let end = ending(StopReason::Done, Stop::Length);
    let (frames, response) = told(context(r#"{"model":"demo"}"#), &events, &end);
    assert_eq!(items(&response), ["message msg_A_0_0 incomplete"]);
    assert_eq!(kinds(&frames).last(), Some(&"response.incomplete"));
    let value = response.value();
    let reason = value.at(&["incomplete_details", "reason"]).unwrap();
    assert!(reason.is_str("max_output_tokens"));
}

#[test]
fn a_failure_is_said_in_both_shapes_and_keeps_its_code() {
    let mut end = ending(StopReason::Failed, Stop::Done);
    end.error = Some(("upstream_auth".to_owned(), "no key".to_owned()));
    let events = [RunEvent::Asked { step: 0 }, text(0, "hal")];
    let (frames, response) = told(context(r#"{"model":"demo"}"#), &events, &end);
    assert_eq!(items(&response), ["message msg_A_0_0 incomplete"]);
    let [.., error, last] = frames.as_slice() else {
        panic!("{frames:?}");
    };
    assert_eq!((error.kind, last.kind), ("error", "response.failed"));
    assert!(error.data().ends_with(
        r#""code":"upstream_auth","message":"no key","param":null,"error":{"type":"server_error","code":"upstream_auth","message":"no key","param":null}}"#
    ));
    // The response itself has a closed list of codes.
    let value = response.value();
    assert!(value.at(&["error", "code"]).unwrap().is_str("server_error"));
}

#[test]
fn calls_that_run_here_end_with_their_results() {
    let (one, two) = (call("c1", "get_order"), call("c2", "get_order"));
    let contents = vec![Content::from(one.clone()), two.clone().into()];
    let events = [
        RunEvent::Asked { step: 0 },
        content(0, &contents[0]),
        content(1, &contents[1]),
        answer(contents.clone()),
        result(&two, "2"),
        result(&one, "1"),
    ];
    let end = ending(StopReason::Done, Stop::Done);
    let context = with_orders(context(r#"{"model":"demo"}"#));
    let (frames, response) = told(context, &events, &end);
    assert_eq!(
        items(&response),
        [
            "mcp_call mcp_A_0_0 completed",
            "mcp_call mcp_A_0_1 completed"
        ]
    );
    let added = "response.output_item.added";
    let args = [
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
    ];
    let (begun, ended) = (
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
    );
    let done = "response.output_item.done";
    assert_eq!(
        kinds(&frames)[2..],
        [
            added,
            args[0],
            args[1],
            begun,
            added,
            args[0],
            args[1],
            begun,
            ended,
            done,
            ended,
            done,
            "response.completed"
        ]
    );
    assert!(response.get().contains(r#""output":"1""#));
}

#[test]
fn calls_and_results_are_items_apart_in_the_other_specification() {
    let one = call("c1", "get_order");
    let contents = vec![Content::from(one.clone())];
    let events = [
        RunEvent::Asked { step: 0 },
        content(0, &contents[0]),
        answer(contents.clone()),
        result(&one, "1"),
    ];
    let mut context = with_orders(context(r#"{"model":"demo"}"#));
    context.dialect = Dialect::OpenResponses;
    let (_, response) = told(context, &events, &ending(StopReason::Done, Stop::Done));
    assert_eq!(
        items(&response),
        [
            "function_call fc_A_0_0 completed",
            "function_call_output fco_A_0_0 completed",
        ]
    );
}

#[test]
fn what_waits_for_leave_is_asked_at_the_end() {
    let waits = call("c1", "place_order");
    let contents = vec![Content::from(waits.clone())];
    let events = [
        RunEvent::Asked { step: 0 },
        content(0, &contents[0]),
        answer(contents.clone()),
    ];
    let approval = ApprovalId::from_bytes([7; 16]);
    let mut end = ending(StopReason::Parked, Stop::ToolCalls);
    end.asked.push(AwaitingApproval {
        step: 0,
        call: "c1".to_owned(),
        occurrence: 0,
        approval,
    });
    let asks = with_orders(context(r#"{"model":"demo"}"#));
    let (_, response) = told(asks.clone(), &events, &end);
    assert_eq!(
        items(&response),
        [format!("mcp_approval_request {approval} ")]
    );

    // The run that goes on with it shows the call when it has its result.
    let mut next = asks;
    next.known_calls.push(KnownCall {
        call: waits.clone(),
        occurrence: 0,
    });
    let events = [result(&waits, "placed"), RunEvent::Asked { step: 0 }];
    let (_, response) = told(next, &events, &ending(StopReason::Done, Stop::Done));
    assert_eq!(items(&response), ["mcp_call mcp_A_t0 completed"]);
}

#[test]
fn what_a_client_said_is_not_an_answer() {
    let mut said = Message::new(Role::Assistant, vec![Content::text("I said so")]);
    said.source = Some(Source::Caller);
    let events = [RunEvent::Message(said), RunEvent::Asked { step: 0 }];
    let end = ending(StopReason::Done, Stop::Done);
    let (_, response) = told(context(r#"{"model":"demo"}"#), &events, &end);
    assert_eq!(items(&response), [] as [String; 0]);
}

#[test]
fn our_own_object_says_which_run_it_was() {
    let mut with_thread = context(r#"{"model":"demo"}"#);
    with_thread.thread = Some(ThreadId::new("ticket-1").unwrap());
    let end = ending(StopReason::RoundLimit, Stop::Done);
    let (_, response) = told(with_thread, &[], &end);
    let run = "aa".repeat(16);
    assert!(response.get().ends_with(&format!(
        r#""throughline":{{"thread":"ticket-1","run":"run_{run}","stop_reason":"round_limit"}}}}"#
    )));
}

#[test]
fn a_torn_character_is_shown_when_it_is_whole() {
    let said = Content::text("a\u{1F600}b");
    let events = [
        RunEvent::Asked { step: 0 },
        text(0, "a\u{FFFD}"),
        text(0, "\u{FFFD}b"),
        content(0, &said),
        answer(vec![said.clone()]),
    ];
    let end = ending(StopReason::Done, Stop::Done);
    let (frames, response) = told(context(r#"{"model":"demo"}"#), &events, &end);
    assert_eq!(items(&response), ["message msg_A_0_0 completed"]);
    let deltas: Vec<&str> = frames
        .iter()
        .filter(|frame| frame.kind == "response.output_text.delta")
        .map(Frame::data)
        .collect();
    assert_eq!(deltas.len(), 2);
    assert!(deltas[1].contains("\u{1F600}b"));
}
