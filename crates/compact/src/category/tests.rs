use throughline_model::{CallId, Scope, ToolCall};

use super::{Annotations, Category, classify};
use crate::Policy;
use crate::arguments::Args;

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall::function(CallId::minted(Scope::Place(0), 0), name, arguments)
}

fn category(name: &str, arguments: &str) -> Category {
    let call = call(name, arguments);
    classify(&call, &Args::of(&call.arguments), &[], &[])
}

#[test]
fn the_shipped_table_knows_the_tools_of_known_agents() {
    for (name, expected) in [
        ("read_file", Category::Read),
        ("list_dir", Category::Read),
        ("grep_search", Category::Read),
        ("create_file", Category::Write),
        ("apply_patch", Category::Write),
        ("run_in_terminal", Category::Execute),
        ("semantic_search", Category::Query),
        ("list_code_usages", Category::Query),
        ("Read", Category::Read),
        ("Edit", Category::Write),
        ("Bash", Category::Execute),
        ("Grep", Category::Query),
        ("TaskUpdate", Category::Plan),
        ("mcp__files__read_file", Category::Read),
    ] {
        assert_eq!(category(name, "{}"), expected, "{name}");
    }
}

#[test]
fn names_are_read_word_by_word_and_never_in_parts_of_words() {
    assert_eq!(
        category("update_reservation_flights", "{}"),
        Category::Write
    );
    assert_eq!(category("getUserDetails", "{}"), Category::Read);
    assert_eq!(category("search-direct-flight", "{}"), Category::Query);
    // "spread", "widget" and "asset" hold "read", "get" and "set".
    for name in ["spread", "widget", "asset", "prune"] {
        assert_eq!(category(name, "{}"), Category::Other, "{name}");
    }
}

#[test]
fn arguments_decide_where_the_name_says_nothing() {
    assert_eq!(category("x", r#"{"command":"ls"}"#), Category::Execute);
    assert_eq!(category("x", r#"{"path":"/a"}"#), Category::Read);
    assert_eq!(category("x", r#"{"query":"a"}"#), Category::Query);
    let edit = r#"{"path":"/a","old_string":"a","new_string":"b"}"#;
    assert_eq!(category("x", edit), Category::Write);
    assert_eq!(category("x", "not json"), Category::Other);
}

#[test]
fn configuration_beats_declaration_beats_annotation_beats_name() {
    let call = call("read_file", "{}");
    let args = Args::of(&call.arguments);
    let mut policy = Policy::default();
    let mut tool = Annotations {
        name: "read_file".into(),
        destructive: Some(true),
        ..Annotations::default()
    };
    let found = |policy: &Policy, tool: &Annotations| {
        classify(&call, &args, &policy.categories, std::slice::from_ref(tool))
    };
    assert_eq!(found(&policy, &tool), Category::Write);
    tool.category = Some(Category::Query);
    assert_eq!(found(&policy, &tool), Category::Query);
    policy.categories.push(("read_*".into(), Category::Execute));
    assert_eq!(found(&policy, &tool), Category::Execute);
}
