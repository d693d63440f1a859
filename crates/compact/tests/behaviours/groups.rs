//! What belongs together.

use throughline_compact::{GroupKind, Planned, Policy};
use throughline_model::{
    CallId, Content, Family, Message, Outcome, Output, Role, Runner, ToolCall, ToolResult,
};

use crate::behaviours::told::{Told, answer, bytes, call, calls, eager, results, thought};

/// Kind, and the numbers of the messages, of each group.
fn groups(told: &Told) -> Vec<(GroupKind, Vec<u64>)> {
    let groups = told.history.groups().iter();
    groups
        .map(|group| {
            let places = group.members.iter().map(|member| member.place);
            let numbers = places.filter_map(|place| told.history.seq_at(place));
            (group.kind, numbers.collect())
        })
        .collect()
}

#[test]
fn b150_calls_with_their_text_results_and_reasoning_are_one_of_four_groups() {
    let mut told = Told::new(Policy::default());
    told.system("be brief");
    told.user("look");
    let (one, two) = (call("c1", "f", "{}"), call("c2", "g", "{}"));
    told.push(Message::new(
        Role::Assistant,
        vec![
            thought("both at once"),
            Content::text("I look."),
            one.clone().into(),
            two.clone().into(),
        ],
    ));
    told.push(results(vec![
        answer(&one, Outcome::Ok, "r1"),
        answer(&two, Outcome::Ok, "r2"),
    ]));
    told.says("done");
    assert_eq!(
        groups(&told),
        [
            (GroupKind::System, vec![1]),
            (GroupKind::User, vec![2]),
            (GroupKind::Tools, vec![3, 4]),
            (GroupKind::Assistant, vec![5]),
        ]
    );
    let tools = &told.history.groups()[2];
    assert_eq!((tools.calls, tools.unanswered), (2, 0));
}

#[test]
fn b151_reasoning_belongs_to_what_it_led_to() {
    let mut told = Told::new(Policy::default());
    told.user("look");
    let think = |text: &str| Message::new(Role::Assistant, vec![thought(text)]);
    told.push(think("first"));
    told.push(think("second"));
    let one = call("c1", "f", "{}");
    told.push(calls(vec![one.clone()]));
    told.push(results(vec![answer(&one, Outcome::Ok, "r1")]));
    told.push(think("between"));
    let two = call("c2", "f", "{}");
    told.push(calls(vec![two.clone()]));
    told.push(results(vec![answer(&two, Outcome::Ok, "r2")]));
    told.push(think("so that is it"));
    told.says("done");
    assert_eq!(
        groups(&told),
        [
            (GroupKind::User, vec![1]),
            (GroupKind::Tools, vec![2, 3, 4, 5]),
            (GroupKind::Tools, vec![6, 7, 8]),
            (GroupKind::Assistant, vec![9, 10]),
        ]
    );
}

#[test]
fn b152_a_late_result_joins_its_calls_group_and_goes_where_it_goes() {
    let mut told = Told::new(eager());
    told.user("look");
    let late = call("late", "f", "{}");
    told.push(calls(vec![late.clone()]));
    told.user("are you there?");
    told.push(results(vec![answer(
        &late,
        Outcome::Ok,
        &"late answer ".repeat(100),
    )]));
    told.says("yes");
    assert_eq!(groups(&told)[1], (GroupKind::Tools, vec![2, 4]));
    told.user("go on");
    told.round("f", "{}", &"more ".repeat(200));
    told.compact();
    // Call and result went together; what was said between them stayed.
    assert_eq!(told.calls_shown(), 1);
    let said: Vec<String> = told.history.view().iter().map(|one| one.text()).collect();
    assert!(said.contains(&"are you there?".to_owned()));
    assert!(told.line(4).contains("late answer"), "{}", told.digests());
}

#[test]
fn b153_one_tool_message_answers_the_calls_of_two_messages() {
    let mut told = Told::new(Policy::default());
    told.user("look");
    let (one, two) = (call("c1", "f", "{}"), call("c2", "f", "{}"));
    told.push(calls(vec![one.clone()]));
    told.push(calls(vec![two.clone()]));
    told.push(results(vec![
        answer(&two, Outcome::Ok, "second"),
        answer(&one, Outcome::Ok, "first"),
    ]));
    assert_eq!(
        groups(&told)[1..],
        [
            (GroupKind::Tools, vec![2, 4]),
            (GroupKind::Tools, vec![3, 4]),
        ]
    );
    let parts: Vec<_> = told.history.groups()[1..]
        .iter()
        .map(|group| group.members[1].contents.clone())
        .collect();
    assert_eq!(parts, [Some(vec![1]), Some(vec![0])]);
}

#[test]
fn b154_an_id_that_is_used_again_makes_two_groups() {
    let mut told = Told::new(Policy::default());
    told.user("look");
    for text in ["one", "two"] {
        let call = call("call_0", "f", "{}");
        told.push(calls(vec![call.clone()]));
        told.push(results(vec![answer(&call, Outcome::Ok, text)]));
    }
    assert_eq!(
        groups(&told)[1..],
        [
            (GroupKind::Tools, vec![2, 3]),
            (GroupKind::Tools, vec![4, 5]),
        ]
    );
}

#[test]
fn b155_a_result_without_a_call_is_a_group_and_quoted() {
    let mut told = Told::new(Policy::default());
    told.user("look");
    let known = call("known", "f", "{}");
    told.push(calls(vec![known.clone()]));
    let stray = call("stray", "weather", "{}");
    told.push(results(vec![
        answer(&known, Outcome::Ok, "fine"),
        answer(&stray, Outcome::Ok, "rain at noon"),
    ]));
    assert_eq!(
        groups(&told)[1..],
        [(GroupKind::Tools, vec![2, 3]), (GroupKind::Result, vec![3]),]
    );
    let view = told.history.view();
    let last = view.last().unwrap();
    assert_eq!(last.role, Role::User);
    assert_eq!(
        last.text(),
        "[Result without a call of weather #3]\nrain at noon"
    );
    let shown = view[view.len() - 2].contents.iter();
    assert_eq!(shown.filter_map(Content::as_tool_result).count(), 1);
}

#[test]
fn b156_tools_of_servers_vendors_and_free_text_are_grouped_like_functions() {
    for family in [Family::MCP, Family::CUSTOM, Family::WEB_SEARCH] {
        let mut told = Told::new(Policy::default());
        told.user("look");
        let call = ToolCall {
            family: family.clone(),
            ..call("c1", "f", "{}")
        };
        told.push(calls(vec![call.clone()]));
        told.push(results(vec![answer(&call, Outcome::Ok, "r")]));
        assert_eq!(groups(&told)[1], (GroupKind::Tools, vec![2, 3]), "{family}");
    }
    // A vendor that runs tools itself puts call and result into one message.
    let mut told = Told::new(Policy::default());
    told.user("look");
    let id = CallId::natural("ws_1").unwrap();
    let hosted = ToolCall {
        family: Family::WEB_SEARCH,
        runner: Runner::Vendor,
        ..ToolCall::function(id.clone(), "", "{}")
    };
    let result = ToolResult::answering(id, Family::WEB_SEARCH, Output::from("found"));
    told.push(Message::new(
        Role::Assistant,
        vec![hosted.into(), result.into(), Content::text("found it")],
    ));
    assert_eq!(groups(&told)[1], (GroupKind::Tools, vec![2]));
    assert_eq!(told.history.groups()[1].unanswered, 0);
}

#[test]
fn b157_a_call_that_waits_is_never_digested() {
    let mut told = Told::new(eager());
    told.user("do it");
    told.round("f", "{}", &"old ".repeat(300));
    let waits = told.push(calls(vec![call("waits", "pay", "{}")]));
    told.user("anything else?");
    for _ in 0..10 {
        told.round("f", "{}", &"new ".repeat(300));
    }
    let open = throughline_compact::Call {
        open: vec![waits],
        ..throughline_compact::Call::default()
    };
    let nothing_waits = told.history.clone();
    let Planned::Epoch(epoch, report) = told.history.plan(&open).unwrap() else {
        unreachable!("ten rounds are old enough");
    };
    // Its own round stays in full wherever it stands; those before and after it are digested.
    assert_eq!(report.groups_digested, 10, "{report}");
    assert!(epoch.cut_seq > waits);
    assert!(epoch.blocks.iter().any(|block| block.kept.contains(&waits)));
    let whole = told.history.expand(waits);
    assert!(told.history.install(epoch));
    let view = bytes(told.history.view());
    assert!(bytes(&whole).iter().all(|one| view.contains(one)));
    assert_eq!(told.calls_shown(), 2);
    // If no caller waits for it any more it is digested like others, and its line has the outcome.
    told.history = nothing_waits;
    told.compact();
    assert!(told.line(waits).contains("no result recorded"));
}
