use throughline_model::json::RawJson;
use throughline_model::{
    Body, CallId, Content, Message, Outcome, Output, Reasoning, Role, Source, Status, ToolCall,
    Vendor, Wire,
};
use throughline_store::{ApprovalId, RunId};

use super::{Listing, MessagePosition, PositionedMessage, input_items};
use crate::api::openai::items::envelope;
use crate::api::openai::items::{AwaitingApproval, ServerTool, ToolIndex};
use crate::api::openai::items::{InputPart, Item};
use crate::api::openai::responses::wire::request::CreateRequest;
use crate::config::Dialect;

const RUN: RunId = RunId::from_bytes([0xaa; 16]);
const NEXT: RunId = RunId::from_bytes([0xbb; 16]);

fn tool_index() -> ToolIndex {
    let mut tool_index = ToolIndex::new();
    for (name, asks) in [("get_order", false), ("place_order", true)] {
        let tool = ServerTool {
            label: "orders".to_owned(),
            name: name.to_owned(),
            asks,
        };
        tool_index.insert(name, tool);
    }
    tool_index
}

fn list(
    messages: &[(RunId, MessagePosition, Message)],
    asked: &[(RunId, AwaitingApproval)],
) -> Vec<Item> {
    let positioned: Vec<PositionedMessage<'_>> = messages
        .iter()
        .map(|(run, place, message)| PositionedMessage {
            run: *run,
            place: *place,
            message,
        })
        .collect();
    let listing = Listing {
        dialect: Dialect::OpenAi,
        tool_index: &tool_index(),
        seals: false,
        summarizes: false,
        model: "demo",
        asked,
    };
    input_items(&positioned, &listing)
}

fn push_sent(items: &str) -> Vec<(RunId, MessagePosition, Message)> {
    let body = format!("{{\"input\":{items}}}");
    let request = CreateRequest::parse(body.as_bytes()).unwrap();
    let [InputPart::Messages(messages)] = request.input().parts() else {
        panic!("{:?}", request.input().parts());
    };
    let place = |message: &Message| (RUN, MessagePosition::Input, message.clone());
    messages.iter().map(place).collect()
}

fn short(items: &[Item]) -> Vec<String> {
    let word = |item: &Item| {
        let value = item.json.value();
        let tag = value.get("type").unwrap().as_str().unwrap();
        assert!(value.get("id").unwrap().is_str(&item.id), "{item:?}");
        let run = RUN.to_hex();
        let id = item.id.replace(&run, "A").replace(&NEXT.to_hex(), "B");
        format!("{tag} {id}")
    };
    items.iter().map(word).collect()
}

#[test]
fn what_was_sent_is_listed_with_what_readers_count_on() {
    let items = list(
        &push_sent(
            r#"[{"role":"user","content":"a"},
                {"id":"msg_mine","role":"user","content":[{"type":"input_image","image_url":"data:x"}]},
                {"type":"message","role":"assistant","content":"b","phase":"commentary"},
                {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
                {"type":"function_call_output","call_id":"c","output":"1","status":null},
                {"type":"brand_new","x":1.50}]"#,
        ),
        &[],
    );
    assert_eq!(
        short(&items),
        [
            "message msg_A_i0",
            "message msg_mine",
            "message msg_A_i2",
            "function_call fc_A_i3",
            "function_call_output fco_A_i4",
            "brand_new item_A_i5",
        ]
    );
    let run = RUN.to_hex();
    let expected = [
        format!(r#"{{"id":"msg_{run}_i0","type":"message","role":"user","content":[{{"type":"input_text","text":"a"}}],"status":"completed"}}"#),
        r#"{"id":"msg_mine","type":"message","role":"user","content":[{"type":"input_image","image_url":"data:x","detail":"auto"}],"status":"completed"}"#.to_owned(),
        format!(r#"{{"id":"msg_{run}_i2","type":"message","role":"assistant","content":[{{"type":"output_text","text":"b","annotations":[],"logprobs":[]}}],"phase":"commentary","status":"completed"}}"#),
        format!(r#"{{"id":"fc_{run}_i3","type":"function_call","call_id":"c","name":"f","arguments":"{{}}","status":"completed"}}"#),
        format!(r#"{{"id":"fco_{run}_i4","type":"function_call_output","call_id":"c","output":"1","status":"completed"}}"#),
        format!(r#"{{"id":"item_{run}_i5","type":"brand_new","x":1.50}}"#),
    ];
    let found: Vec<&str> = items.iter().map(|item| item.json.get()).collect();
    assert_eq!(found, expected);
}

#[test]
fn carried_reasoning_is_listed_under_the_clients_id() {
    let thinking = Content::new(Body::Reasoning(Reasoning {
        summary: vec!["short".to_owned()],
        ..Reasoning::default()
    }))
    .with_vendor(Vendor::part(Wire::Gemini, RawJson::new("{}").unwrap()));
    let sealed = envelope::seal(&thinking, "m");
    let items = list(
        &push_sent(&format!(
            r#"[{{"role":"user","content":"a"}},{{"type":"reasoning","id":"rs_7","summary":[],"encrypted_content":"{sealed}"}}]"#
        )),
        &[],
    );
    assert_eq!(short(&items), ["message msg_A_i0", "reasoning rs_7"]);
}

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::function(CallId::natural(id).unwrap(), name, "{}")
}

fn tool(results: Vec<Content>) -> Message {
    let mut message = Message::new(Role::Tool, results);
    message.source = Some(Source::Tool);
    message
}

#[test]
fn calls_that_ran_here_are_listed_with_their_results() {
    let (one, two, three) = (
        call("c1", "get_order"),
        call("c2", "place_order"),
        call("c3", "f"),
    );
    let answer = |call: &ToolCall, text: &str| {
        Content::from(call.answer(Outcome::Ok, Output::Text(text.to_owned())))
    };
    let said = Message::new(
        Role::Assistant,
        vec![
            Content::text("a"),
            one.clone().into(),
            two.clone().into(),
            three.clone().into(),
        ],
    );
    let mut cut = Message::new(Role::Assistant, vec![Content::text("b")]);
    cut.status = Some(Status::Incomplete);
    let approval = ApprovalId::from_bytes([1; 16]);
    let asked = AwaitingApproval {
        step: 0,
        call: "c2".to_owned(),
        occurrence: 0,
        approval,
    };
    let items = list(
        &[
            (RUN, MessagePosition::Step(0), said),
            (RUN, MessagePosition::Step(0), tool(vec![answer(&one, "1")])),
            (
                NEXT,
                MessagePosition::Step(0),
                tool(vec![answer(&two, "2")]),
            ),
            (NEXT, MessagePosition::Step(0), cut),
        ],
        &[(RUN, asked)],
    );
    assert_eq!(
        short(&items),
        [
            "message msg_A_0_0".to_owned(),
            "mcp_call mcp_A_0_0".to_owned(),
            format!("mcp_approval_request {approval}"),
            "function_call fc_A_0_0".to_owned(),
            "mcp_call mcp_B_t0".to_owned(),
            "message msg_B_0_0".to_owned(),
        ]
    );
    assert!(items[1].json.get().contains(r#""output":"1""#));
    assert!(items[4].json.get().contains(r#""output":"2""#));
    assert!(items[5].json.get().contains(r#""status":"incomplete""#));
}

#[test]
fn repairs_are_not_listed() {
    let mut repair = tool(vec![Content::from(
        call("c", "f").answer(Outcome::Withdrawn, Output::None),
    )]);
    repair.source = Some(Source::Repair);
    assert_eq!(list(&[(RUN, MessagePosition::Step(0), repair)], &[]), []);
}
