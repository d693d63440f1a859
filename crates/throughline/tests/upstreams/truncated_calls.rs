//! Answers that the output limit cut off inside of a call, from every vendor to the agent.

use std::sync::Arc;

use throughline::model::{
    CallId, Content, Message, Response, Role, Status, Stop, ToolCall, ToolResult, Wire,
};
use throughline::tool::Parameters;
use throughline::{Agent, ChatClient, Outcome, StopReason};
use throughline_testkit::stage::{Fake, How};
use throughline_testkit::upstream::{Extent, Fault, Recorded, Reply, Upstream};

use crate::upstreams::common::{WIRES, client_of, run};
use crate::upstreams::log_capture;

/// The model's last answer.
const DONE: &str = "Berth 7 is free.";

fn call(id: &str, name: &str) -> Content {
    let id = CallId::natural(id).unwrap();
    Content::from(ToolCall::function(id, name, r#"{"port":"Brest"}"#))
}

/// A server whose first answer ends inside of its second call.
async fn cut(wire: &Wire) -> Upstream {
    let server = Upstream::of(wire.clone());
    if *wire == Wire::Gemini {
        // This vendor omits partial calls. A call that it reports has valid arguments.
        let contents = vec![call("f1", "berths"), call("f2", "tide")];
        let response = Response {
            id: Some("r1".into()),
            model: Some("gemini-3-pro".into()),
            messages: vec![Message::new(Role::Assistant, contents)],
            usage: None,
            stop: Stop::Length,
            error: None,
            service: None,
            vendor: None,
        };
        return server
            .script([Reply::response(response), Reply::text(DONE)])
            .start()
            .await;
    }
    let calls = Reply::calls([
        ("berths", r#"{"port":"Brest"}"#),
        ("tide", r#"{"port":"Brest"}"#),
    ]);
    server
        .script([calls, Reply::text(DONE)])
        .fault(Fault::BrokenCall, Extent::Times(1))
        .start()
        .await
}

fn tool(name: &str) -> Fake {
    Fake::named(name).with(|spec| {
        // Nothing is required: partial arguments would be valid.
        let schema = r#"{"type":"object","properties":{"port":{"type":"string"}}}"#;
        spec.parameters = Parameters::parse(schema).unwrap();
    })
}

fn results(outcome: &Outcome) -> Vec<&ToolResult> {
    let contents = outcome.messages.iter().flat_map(|one| &one.contents);
    contents.filter_map(Content::as_tool_result).collect()
}

#[test]
fn b247_a_call_cut_off_by_the_output_limit_is_refused_whatever_the_vendor() {
    log_capture::begin();
    run(async {
        for wire in WIRES {
            for how in How::ALL {
                let server = cut(&wire).await;
                let client: Arc<dyn ChatClient> =
                    Arc::new(client_of(&server).build_bare().unwrap());
                let (berths, tide) = (tool("berths"), tool("tide"));
                let agent = Agent::builder(client)
                    .tool(berths.clone())
                    .tool(tide.clone())
                    .build()
                    .unwrap();
                let outcome = how.finish(agent.run("When can I come in?")).await.unwrap();
                assert_eq!(outcome.stop, StopReason::Done, "{wire} {how:?}");
                assert_eq!(outcome.text(), DONE, "{wire} {how:?}");
                // A model whose answer was cut off calls again.
                let rounds = berths.runs();
                assert_eq!(tide.runs(), rounds - 1, "{wire} {how:?}");
                let calls = outcome.messages[1].contents.iter();
                let marks: Vec<bool> = calls
                    .filter_map(Content::as_tool_call)
                    .map(|call| call.status == Some(Status::Incomplete))
                    .collect();
                assert_eq!(marks, [false, true], "{wire} {how:?}");
                let results = results(&outcome);
                let words: Vec<&str> = results.iter().map(|one| one.outcome.as_str()).collect();
                assert_eq!(words[..2], ["ok", "error"], "{wire} {how:?}");
                assert_eq!(words.len(), 2 * rounds, "{wire} {how:?}");
                let text = format!("{:?}", results[1].output);
                let limit = text.contains("the output limit cut the arguments");
                assert!(limit, "{wire} {how:?}: {text}");
                // The vendor accepts the resulting history.
                assert!(
                    server.requests().iter().all(Recorded::is_accepted),
                    "{wire}"
                );
                let asked = (server.requests().len(), server.left());
                assert_eq!(asked, (rounds + 1, 0), "{wire}");
            }
        }
    });
}
