//! Calls that the vendor runs.

use throughline::StopReason;
use throughline::model::{
    CallId, Content, Event, Family, Message, Outcome, Output, Response, Role, Runner, Stop,
    ToolCall,
};
use throughline_testkit::scripted::Step;

use crate::behaviours::support::{Fake, Rig, both, said};

pub(crate) fn call(id: &str, name: &str) -> Content {
    ToolCall::function(CallId::natural(id).unwrap(), name, "{}").into()
}

/// A call that the vendor ran, and its result.
pub(crate) fn vendor_pair(id: &str) -> [Content; 2] {
    let mut call = ToolCall::function(CallId::item(id).unwrap(), "", "{}");
    call.runner = Runner::Vendor;
    call.family = Family::WEB_SEARCH;
    let result = call.answer(Outcome::Ok, Output::Text("found".into()));
    [call.into(), result.into()]
}

#[test]
fn b41_a_call_of_the_vendors_is_recorded_and_not_run() {
    both(async |how| {
        let tide = Fake::named("tide");
        let mut contents = vendor_pair("ws_1").to_vec();
        // A call whose result stays with the vendor needs none here.
        contents.push(vendor_pair("ws_2")[0].clone());
        contents.push(Content::text("found it"));
        let steps = [Step::contents(contents.clone())];
        let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
        let outcome = rig.run("go").await;
        assert_eq!((outcome.stop, rig.client.calls()), (StopReason::Done, 1));
        assert_eq!(outcome.messages[1].contents, contents);
        assert_eq!(said(&outcome), "u a(ws_1,ws_1,ws_2)");
        assert_eq!(tide.runs(), 0);
    });
}

#[test]
fn b42_a_pair_in_one_response_is_kept_and_a_call_beside_it_runs() {
    both(async |how| {
        for swapped in [false, true] {
            let asked = ToolCall::function(CallId::natural("c1").unwrap(), "tide", "{}");
            let answered = asked.answer(Outcome::Ok, Output::Text("had it".into()));
            let mut pair = vec![Content::from(asked), Content::from(answered)];
            if swapped {
                pair.reverse();
            }
            let tide = Fake::named("tide");
            let rig = Rig::new(how, [Step::contents(pair.clone())], |agent| {
                agent.tool(tide.clone())
            });
            let outcome = rig.run("go").await;
            assert_eq!((outcome.stop, tide.runs()), (StopReason::Done, 0));
            assert_eq!(outcome.messages[1].contents, pair);

            pair.push(call("c2", "tide"));
            let steps = [Step::contents(pair), Step::text("done")];
            let rig = Rig::new(how, steps, |agent| agent.tool(tide.clone()));
            assert_eq!(said(&rig.run("go").await), "u a(c1,c1,c2) t(c2) a");
            assert_eq!(tide.runs(), 1);
        }
    });
}

#[test]
fn b43_a_loop_over_a_client_that_ran_the_tools_runs_none_again() {
    both(async |how| {
        let tide = Fake::named("tide");
        // The messages of a nested agent: its calls, their results and its answer.
        let asked = ToolCall::function(CallId::natural("c1").unwrap(), "tide", "{}");
        let answered = asked.answer(Outcome::Ok, Output::Text("04:12".into()));
        let messages = vec![
            Message::new(Role::Assistant, vec![asked.into()]),
            Message::new(Role::Tool, vec![answered.into()]),
            Message::new(Role::Assistant, vec![Content::text("at four")]),
        ];
        let response = Response {
            id: Some("resp_below".into()),
            model: None,
            messages,
            usage: None,
            stop: Stop::Done,
            error: None,
            vendor: None,
            service: None,
        };
        let speaks = response.events();
        assert!(
            speaks
                .iter()
                .any(|event| matches!(event, Event::Speaker { .. }))
        );
        let rig = Rig::new(how, [Step::response(response)], |agent| {
            agent.tool(tide.clone())
        });
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1) t(c1) a");
        assert_eq!(
            (outcome.stop, outcome.text().as_str()),
            (StopReason::Done, "at four")
        );
        assert_eq!((tide.runs(), rig.client.calls()), (0, 1));
    });
}
