//! Approval requests of a vendor's own tool host.

use throughline::StopReason;
use throughline::client::Target;
use throughline::model::{ApprovalResponse, Body, Content, Message, Response, Stop, Wire, json};
use throughline::store::{ApprovalState, CallState, Decision};
use throughline::thread::Awaits;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{everywhere, said};
use throughline_wire::render::{Options, render};

use super::{agent, calls, decide, go_on, guarded, id, model, parked, records, states, waiting};

const ASKED: &str = r#"[{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"may I?","annotations":[]}]},{"type":"mcp_approval_request","id":"mcpr_1","server_label":"harbour","name":"pay","arguments":"{\"berth\":4}"},{"type":"mcp_approval_request","id":"mcpr_2","server_label":"harbour","name":"release","arguments":"{}"}]"#;

/// An answer of the vendor, from its items.
fn answered(items: &str) -> Step {
    let items = json::parse(items).unwrap();
    let codec = throughline_wire::codec(&Wire::OpenAiResponses).unwrap();
    let messages = codec.decode_messages(items.as_array().unwrap()).unwrap();
    Step::response(Response {
        id: None,
        model: None,
        messages,
        usage: None,
        stop: Stop::Done,
        error: None,
        vendor: None,
        service: None,
    })
}

/// The approval contents of messages, with the role of their message.
fn approvals(messages: &[Message]) -> Vec<(String, &Content)> {
    let mut found = Vec::new();
    for message in messages {
        for content in &message.contents {
            if let Body::ApprovalRequest(_) | Body::ApprovalResponse(_) = content.body {
                found.push((message.role.as_str().to_owned(), content));
            }
        }
    }
    found
}

fn rendered(messages: &[Message], wire: Wire) -> String {
    let target = Target::newest(wire);
    let rendered = render(messages, &target, &Options::default());
    let items = rendered.items.iter().map(|item| item.json.clone());
    items.collect::<Vec<_>>().join(",")
}

#[test]
fn b75_a_question_of_the_vendors_tool_host_goes_back_as_the_vendors_item() {
    everywhere(async |stage, how| {
        // A tool of ours with the same name as the vendor's does not run.
        let ours = guarded("pay");
        let first = stage.process().await;
        let asked_first = model([answered(ASKED)]);
        let here = agent(stage, &first, &asked_first, &[&ours]);
        let thread = here.new_thread();
        let id_of = thread.id().clone();
        let outcome = parked(how, &here, &thread).await;
        let awaits: Vec<_> = outcome.pending.iter().map(|one| one.awaits).collect();
        assert_eq!(awaits, [Awaits::VendorApproval; 2]);
        first.kill();

        let second = stage.process().await;
        let asked_second = model([Step::text("done"), Step::text("and again")]);
        let there = agent(stage, &second, &asked_second, &[&ours]);
        let thread = there.open(id_of.clone()).await.unwrap();
        thread.refresh().await.unwrap();
        assert_eq!(thread.pending(), outcome.pending);
        assert_eq!(calls(&second, &id_of).await, [CallState::Approval; 2]);
        let listed = waiting(&second, &id_of).await;
        let detail = listed[0].detail.as_ref().unwrap().get();
        assert_eq!(
            detail,
            r#"{"tool":"pay","call":"mcpr_1","arguments":"{\"berth\":4}","vendor":true}"#
        );
        decide(&second, &listed[0], Decision::Approved)
            .await
            .unwrap();
        let outcome = go_on(how, &there, &thread, |run, calls| {
            run.reject(&calls.of("mcpr_2"), Some("not today"))
        });
        let outcome = outcome.await.unwrap();
        assert_eq!((outcome.stop, ours.runs()), (StopReason::Done, 0));
        assert_eq!(said(&outcome), "u a t a");
        // Its position in the record is directly after the requests.
        let response = |content: &Content| match &content.body {
            Body::ApprovalResponse(answer) => answer.clone(),
            other => panic!("{other:?}"),
        };
        let kept = approvals(&outcome.messages);
        let roles: Vec<&str> = kept.iter().map(|(role, _)| &**role).collect();
        assert_eq!(roles, ["assistant", "assistant", "tool", "tool"]);
        let expected = [("mcpr_1", true, None), ("mcpr_2", false, Some("not today"))];
        let expected = expected.map(|(request, approved, reason)| ApprovalResponse {
            request: id(request),
            approved,
            reason: reason.map(Into::into),
        });
        assert_eq!([response(kept[2].1), response(kept[3].1)], expected);
        let listed = records(&second, &id_of).await;
        assert_eq!(
            states(&listed),
            [ApprovalState::Approved, ApprovalState::Denied]
        );

        // The vendor is sent its requests, followed by answers in its own format.
        let sent = &asked_second.asked()[0].messages;
        let inner = ASKED.trim_start_matches('[').trim_end_matches(']');
        let answers = r#"{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true},{"type":"mcp_approval_response","approval_request_id":"mcpr_2","approve":false,"reason":"not today"}"#;
        let whole = rendered(sent, Wire::OpenAiResponses);
        assert!(whole.ends_with(&format!("{inner},{answers}")), "{whole}");
        // Other vendors are sent nothing of it, not even as text.
        for wire in [Wire::Anthropic, Wire::OpenAiChat, Wire::Gemini] {
            let other = rendered(sent, wire);
            assert!(
                !other.contains("mcpr_") && !other.contains("today"),
                "{other}"
            );
        }
        // Later input follows it.
        how.finish(there.run_on(&thread, "more")).await.unwrap();
        assert_eq!(second.history(&id_of).await, "u a t a u a");
        let later = rendered(&asked_second.asked()[1].messages, Wire::OpenAiResponses);
        assert!(later.starts_with(&whole), "{later}");
    });
}
