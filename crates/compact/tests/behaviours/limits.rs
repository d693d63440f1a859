//! When a view is compacted, and how much of it.

use throughline_compact::{
    BudgetUnreachable, Call, Planned, Policy, Scale, Trigger, UnchangedReason,
};

use crate::behaviours::told::{Told, bytes};

/// Turns of so many calls each; each turn has so many units of tool history.
fn turns(policy: Policy, count: u32, calls: u32, units: u32) -> Told {
    let mut told = Told::new(policy);
    for turn in 0..count {
        told.user(&format!("request {turn}"));
        told.rounds_of(calls, units);
        told.says("done");
    }
    told
}

#[test]
fn b158_more_than_the_threshold_of_tool_history_is_compacted_and_a_budget_counts_everything() {
    let mut told = turns(Policy::default(), 20, 1, 500);
    assert_eq!(told.history.tool_units(), 10_000);
    assert_eq!(told.unchanged().stayed, Some(UnchangedReason::Within));
    let mut told = turns(Policy::default(), 20, 1, 500);
    let call = crate::behaviours::told::call("one", "f", "{}");
    let result = crate::behaviours::told::answer(&call, throughline_model::Outcome::Ok, "x");
    told.sized(crate::behaviours::told::calls(vec![call]), 1);
    told.sized(crate::behaviours::told::results(vec![result]), 0);
    assert_eq!(told.history.tool_units(), 10_001);
    assert_eq!(told.compact().1.trigger, Some(Trigger::Threshold));

    // Instructions and tool schemas count towards a budget.
    let mut told = turns(Policy::with_budget(12_000), 20, 1, 500);
    let within = Call {
        overhead: 12_000 - told.history.units(),
        ..Call::default()
    };
    let report = told.history.plan(&within).unwrap().report().clone();
    assert_eq!((report.trigger, report.tokens_after), (None, 12_000));
    let over = Call {
        overhead: within.overhead + 1,
        ..within
    };
    let report = told.history.plan(&over).unwrap().report().clone();
    assert_eq!(report.trigger, Some(Trigger::Budget));
    assert!(report.tokens_after <= 12_000);
    // So does what the vendor counts beyond our units.
    let scaled = Call {
        scale: Scale::per_mille(1_300),
        ..Call::default()
    };
    let report = told.history.plan(&scaled).unwrap().report().clone();
    assert_eq!(report.trigger, Some(Trigger::Budget));
}

#[test]
fn b159_a_count_is_a_trigger_and_the_report_names_the_one_that_fired() {
    let counted = Policy {
        count: Some(30),
        ..Policy::default()
    };
    // Four messages a turn: a request, a call, its result and an answer.
    let mut told = turns(counted.clone(), 7, 1, 200);
    told.user("one");
    told.says("two");
    assert_eq!(told.history.view().len(), 30);
    assert_eq!(told.unchanged().trigger, None);
    told.user("three");
    assert_eq!(told.history.view().len(), 31);
    assert_eq!(told.plan().report().trigger, Some(Trigger::Count));
    // Both at once: one of them is named.
    let both = Policy {
        threshold: 500,
        ..counted
    };
    let mut told = turns(both, 9, 1, 200);
    assert_eq!(told.compact().1.trigger, Some(Trigger::Threshold));
    let window = Policy {
        window: Some(10_000),
        ..Policy::default()
    };
    let mut told = turns(window, 20, 1, 500);
    let (_, report) = told.compact();
    assert_eq!(report.trigger, Some(Trigger::Window));
    assert!(report.tokens_after <= 6_000);
}

#[test]
fn b160_six_calls_or_fewer_are_never_digested_and_text_gives_way_only_to_a_budget() {
    let mut told = turns(Policy::default(), 6, 1, 5_000);
    let report = told.unchanged();
    assert_eq!(
        (report.trigger, report.stayed),
        (Some(Trigger::Threshold), Some(UnchangedReason::FewCalls))
    );
    assert!(report.to_string().contains("no more calls than are kept"));

    let mut told = turns(Policy::default(), 12, 1, 2_000);
    told.compact();
    let said: Vec<String> = told.history.view().iter().map(|one| one.text()).collect();
    for turn in 0..12 {
        assert!(said.contains(&format!("request {turn}")), "{turn}");
    }
    assert_eq!(said.iter().filter(|text| *text == "done").count(), 12);

    // A budget takes the oldest text first; the first request stays.
    let mut told = Told::new(Policy::with_budget(3_000));
    for turn in 0..40 {
        told.user(&format!("request {turn} {}", "word ".repeat(60)));
        told.says(&"answer ".repeat(60));
    }
    told.compact();
    let said: Vec<String> = told.history.view().iter().map(|one| one.text()).collect();
    assert!(said[0].starts_with("request 0 "));
    assert!(!said.iter().any(|text| text.starts_with("request 1 ")));
    assert!(said.iter().any(|text| text.starts_with("request 39 ")));
}

#[test]
fn b161_the_newest_six_calls_stay_in_full_in_whole_groups() {
    let mut told = turns(Policy::default(), 20, 1, 600);
    let (_, report) = told.compact();
    assert_eq!((report.groups_digested, report.calls_digested), (14, 14));
    assert_eq!(told.calls_shown(), 6);
    let mut told = turns(Policy::default(), 20, 4, 600);
    let (_, report) = told.compact();
    assert_eq!((report.groups_digested, report.calls_digested), (18, 72));
    assert_eq!(told.calls_shown(), 8);
}

#[test]
fn b163_the_current_turn_gives_way_only_if_earlier_turns_were_not_enough() {
    // Ten earlier turns, then a long one.
    let long = |units: u32| {
        let mut told = turns(Policy::default(), 10, 1, 1_000);
        let input = told.user("the long one");
        for _ in 0..20 {
            told.rounds_of(1, units);
        }
        (told, input)
    };
    let (mut told, input) = long(100);
    let (epoch, report) = told.compact();
    assert_eq!((epoch.cut_seq, report.groups_digested), (input, 10));
    assert_eq!(told.calls_shown(), 20);
    let (mut told, _) = long(1_000);
    let (_, report) = told.compact();
    assert_eq!(report.groups_digested, 24);
    assert_eq!(told.calls_shown(), 6);
    let said: Vec<String> = told.history.view().iter().map(|one| one.text()).collect();
    assert!(said.contains(&"the long one".to_owned()));
}

#[test]
fn b164_a_budget_that_cannot_be_met_gives_the_smallest_view_and_both_figures() {
    let tell = |policy: Policy| {
        let mut told = Told::new(policy);
        told.system(&"rules ".repeat(60));
        told.user(&"the request ".repeat(30));
        for _ in 0..5 {
            told.round("f", "{}", &"old ".repeat(100));
        }
        told.says("half done");
        told.user(&"go on ".repeat(30));
        for _ in 0..3 {
            told.round("f", "{}", "fine");
        }
        told
    };
    let mut told = tell(Policy::with_budget(200));
    let whole = bytes(told.history.record().map(|(_, message)| message));
    let (_, report) = told.compact();
    let view = bytes(told.history.view());
    let last = whole.len() - 2;
    let expected = [&whole[0..2], &whole[13..14], &whole[last..]].concat();
    assert_eq!(view, expected);
    let unreachable = report.budget_unreachable.unwrap();
    assert_eq!(unreachable.budget, 200);
    assert_eq!(unreachable.need, told.history.units());
    assert!(report.to_string().contains("Over budget"));
    // NarrativeRequest again changes nothing.
    let report = told.unchanged();
    assert_eq!(report.budget_unreachable, Some(unreachable));

    let mut told = tell(Policy {
        strict: true,
        ..Policy::with_budget(200)
    });
    let error: BudgetUnreachable = told.history.plan(&Call::default()).unwrap_err();
    assert_eq!(error, unreachable);
}

#[test]
fn a_result_that_does_not_fit_is_shortened_before_the_newest_six_calls_are_given_up() {
    let mut told = Told::new(Policy::with_budget(6_000));
    told.user("look");
    let mut output: String = (0..900).map(|at| format!("line {at} of it\n")).collect();
    output.push_str("error: the middle_name is wrong\n");
    output.extend((900..1_800).map(|at| format!("line {at} of it\n")));
    for _ in 0..8 {
        told.round("read", r#"{"path":"/a"}"#, &output);
    }
    let (epoch, report) = told.compact();
    assert!(report.tokens_after <= 6_000, "{report}");
    assert_eq!(report.budget_unreachable, None);
    assert_eq!(told.calls_shown(), 6);
    assert!(!epoch.shortened.is_empty());
    let view = told.history.view();
    let shown = view.last().unwrap().contents[0].as_tool_result().unwrap();
    let throughline_model::Output::Text(text) = &shown.output else {
        unreachable!("a text was pushed");
    };
    assert!(text.starts_with("line 0 of it"));
    assert!(text.ends_with("line 1799 of it\n"));
    assert!(text.contains("left out, all of it is #17]"), "{text}");
    assert!(text.contains("error: the middle_name is wrong"));
}

#[test]
fn a_trigger_is_armed_again_when_there_is_a_fifth_more() {
    let mut told = turns(Policy::default(), 20, 1, 2_000);
    told.compact();
    let after = told.history.tool_units();
    assert!(after > 10_000);
    assert_eq!(told.unchanged().stayed, Some(UnchangedReason::NotArmed));
    let mut planned = told.plan();
    while matches!(planned, Planned::Unchanged(_)) {
        told.user("more");
        told.rounds_of(1, 500);
        planned = told.plan();
    }
    assert!(told.history.tool_units() * 100 > after * 120);
    assert!((told.history.tool_units() - 500) * 100 <= after * 120);
}
