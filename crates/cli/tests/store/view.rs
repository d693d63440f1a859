//! What a model would be sent of a thread.

use std::sync::Arc;

use throughline_compact::tokens::Calibrations;
use throughline_compact::{Call, Planned, Policy, StoredEpoch, ToolHistory, number_count};
use throughline_model::Message;
use throughline_store::{
    Append, At, Mask, NewItem, NewThread, Span, State, Store, TenantScope, ThreadId,
};
use throughline_testkit::record::block_on;
use throughline_testkit::trajectory;

use super::{Place, Value};

/// A store with a session of an agent in the thread `work`, and its stored epoch.
fn with_session(word: &str, policy: Option<Policy>) -> Place {
    let place = Place::new(word);
    let session = trajectory::synthetic().swap_remove(0);
    let kept = policy.map(|policy| kept(policy, &session.messages));
    let messages: Vec<Message> = session.messages.iter().map(|one| (**one).clone()).collect();
    block_on(async {
        let store = Store::open(&place.url).await.unwrap();
        let scope = TenantScope::local();
        let thread = ThreadId::new("work").unwrap();
        let new = NewThread::new(thread.clone());
        store.open_or_create(&scope, &new, 0).await.unwrap();
        let mut state = State::default();
        state.set_compaction(kept);
        let append = Append {
            run: store.ids().run(),
            thread,
            expected: None,
            items: NewItem::of(&messages),
            state: Some(state),
            key: None,
        };
        store.append(&scope, &append).await.unwrap();
    });
    place
}

fn kept(policy: Policy, messages: &[Arc<Message>]) -> throughline_model::json::RawJson {
    let mut history = ToolHistory::new(policy);
    let mut next = 1;
    for message in messages {
        history.push(next, Arc::clone(message));
        next += number_count(message);
    }
    match history.plan(&Call::default()).unwrap() {
        Planned::Epoch(epoch, _) => assert!(history.install(epoch)),
        Planned::Unchanged(report) => panic!("{report}"),
    }
    let kept = StoredEpoch::of(&history, &Calibrations::default()).unwrap();
    kept.to_json()
}

fn messages(value: &Value<'_>) -> Vec<String> {
    let list = value.get("messages").and_then(Value::as_array).unwrap();
    list.iter().map(|one| one.raw().to_owned()).collect()
}

#[test]
fn b170_the_full_switch_shows_the_record_again() {
    let place = with_session("view-full", Some(Policy::with_budget(8_000)));
    let before = place.ok(&["threads", "export", "work"]);
    let view = place.json(&["view", "work"]);
    let full = place.json(&["view", "work", "--full"]);
    let record = place.json(&["threads", "show", "work", "--limit", "10000"]);
    let told: Vec<String> = record
        .value()
        .get("messages")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .map(|entry| entry.get("message").unwrap().raw().to_owned())
        .collect();
    assert_eq!(messages(&full.value()), told);
    assert_eq!(full.value().get("report").unwrap().raw(), "null");
    assert!(messages(&view.value()).len() < told.len());
    place.ok(&["view", "work", "--budget", "2000"]);
    assert_eq!(place.ok(&["threads", "export", "work"]), before);
}

#[test]
fn the_epoch_that_holds_is_what_is_shown() {
    let place = with_session("view-epoch", Some(Policy::with_budget(8_000)));
    let view = place.json(&["view", "work"]);
    let view = view.value();
    let report = view.get("report").unwrap();
    assert_eq!(report.get("epoch").unwrap().raw(), "1");
    assert!(report.get("stayed").is_some());
    let shown = place.ok(&["view", "work"]);
    assert!(shown.contains("digest: Earlier tool history in short."));
    assert!(shown.lines().last().unwrap().starts_with("Not compacted: "));
}

#[test]
fn undone_compactions_and_pins_are_shown() {
    let place = with_session("view-undo", Some(Policy::with_budget(8_000)));
    let full = place.json(&["view", "work", "--full"]);
    let told = messages(&full.value());
    assert!(messages(&place.json(&["view", "work"]).value()).len() < told.len());
    assert_eq!(
        place.ok(&["threads", "uncompact", "work"]),
        "work is shown whole from the next turn on\n"
    );
    assert_eq!(
        place.ok(&["threads", "uncompact", "work"]),
        "work is shown whole already\n"
    );
    place.ok(&["threads", "fork", "work", "--id", "other"]);
    for thread in ["work", "other"] {
        let view = place.json(&["view", thread]);
        assert_eq!(messages(&view.value()), told, "{thread}");
    }
    // A pin holds with every budget.
    let pinned = &told[4];
    let small = ["view", "work", "--budget", "8000"];
    assert!(!messages(&place.json(&small).value()).contains(pinned));
    let number = 5;
    assert_eq!(
        place.ok(&["threads", "pin", "work", "5"]),
        format!("#{number} of work is always shown in full\n")
    );
    assert!(messages(&place.json(&small).value()).contains(pinned));
    let again = place.json(&["threads", "pin", "work", "5"]);
    assert_eq!(again.value().get("changed").unwrap().raw(), "false");
    place.ok(&["threads", "pin", "work", "5", "--remove"]);
    assert!(!messages(&place.json(&small).value()).contains(pinned));
    let error = place.fails(&["threads", "pin", "work", "99999"], 1);
    assert!(error.contains("no message #99999"), "{error}");
}

#[test]
fn deleted_contents_are_left_out_and_numbers_are_those_that_pins_take() {
    let place = with_session("view-deleted", None);
    let full = place.json(&["view", "work", "--full"]);
    let told = messages(&full.value());
    block_on(async {
        let store = Store::open(&place.url).await.unwrap();
        let scope = TenantScope::local();
        let thread = ThreadId::new("work").unwrap();
        let at = At::Thread(thread.clone());
        let page = store.read(&scope, &at, Span::After(0), 1).await.unwrap();
        let mask = Mask {
            message: page.entries[0].at,
            content: 0,
        };
        let append = Append {
            run: store.ids().run(),
            thread,
            expected: None,
            items: NewItem::of(&[Mask::message(&[mask])]),
            state: None,
            key: None,
        };
        store.append(&scope, &append).await.unwrap();
    });
    let full = place.json(&["view", "work", "--full"]);
    assert_eq!(messages(&full.value()), told[1..]);
    let shown = place.ok(&["view", "work", "--full"]);
    let last = shown.lines().last().unwrap();
    assert_eq!(
        last,
        "All but 1 deleted content, which 'throughline threads export' still has."
    );
    assert!(!shown.contains("\"masks\""), "{shown}");
    // What is #4 now is pinned as #4.
    let fourth = shown.lines().find(|line| line.starts_with("#4 ")).unwrap();
    let small = ["view", "work", "--budget", "8000"];
    assert!(!messages(&place.json(&small).value()).contains(&told[4]));
    place.ok(&["threads", "pin", "work", "4"]);
    assert!(messages(&place.json(&small).value()).contains(&told[4]));
    assert!(place.ok(&small).contains(fourth));
}

#[test]
fn a_long_thread_is_compacted_for_the_view_alone() {
    let place = with_session("view-plan", None);
    let shown = place.ok(&["view", "work"]);
    let last = shown.lines().last().unwrap();
    assert!(
        last.starts_with("Compacted ") && last.ends_with("Nothing was deleted."),
        "{last}"
    );
    let view = place.json(&["view", "work", "--budget", "4000"]);
    let view = view.value();
    let after = view
        .get("report")
        .and_then(|report| report.get("tokens_after"));
    assert!(after.and_then(Value::as_u64).unwrap() <= 4_000);
    let thread = place.json(&["threads", "show", "work", "--limit", "1"]);
    let thread = thread.value();
    let state = thread.get("state").unwrap();
    assert!(state.get("compaction").is_none(), "{}", state.raw());
}

#[test]
fn the_name_of_a_model_says_whose_form_it_is() {
    let place = with_session("view-model", None);
    for (model, format, member) in [
        ("gpt-5", "openai-responses", "input"),
        ("o3", "openai-responses", "input"),
        ("claude-opus-5", "anthropic", "messages"),
        ("anthropic/claude-opus-5", "anthropic", "messages"),
        ("gemini-3-pro", "gemini", "contents"),
    ] {
        let view = place.json(&["view", "work", "--model", model]);
        let view = view.value();
        assert!(view.get("format").unwrap().is_str(format), "{model}");
        assert!(view.get("messages").is_none());
        let request = view.get("request").unwrap();
        assert!(request.get(member).and_then(Value::as_array).is_some());
        let file = request.raw().as_bytes();
        let run = place.input(&["validate", "--for", format], file);
        assert_eq!(run.code, 0, "{model}: {}", run.out);
        // Repairs for the vendor are listed beside it.
        let shown = place.run(&["view", "work", "--model", model]);
        assert_eq!(shown.code, 0, "{model}: {}", shown.err);
        assert!(shown.out.contains(&format!("\nas {format}: ")), "{model}");
    }
    let own = place.json(&["view", "work", "--model", "demo"]);
    assert!(own.value().get("format").unwrap().is_str("neutral"));
}

#[test]
fn what_view_cannot_show_is_said() {
    let place = with_session("view-wrong", None);
    let said = place.fails(&["view", "nobody"], 1);
    assert!(said.contains("nobody"), "{said}");
    let said = place.fails(&["view", "work", "--model", "llama"], 2);
    assert!(said.contains("llama"), "{said}");
    for wrong in [
        &["view"][..],
        &["view", "work", "--budget", "0"],
        &["view", "work", "--full", "--budget", "9"],
    ] {
        assert_eq!(place.run(wrong).code, 2, "{wrong:?}");
    }
}
