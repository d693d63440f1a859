//! Runs the examples, which are built with the tests.

use std::path::PathBuf;
use std::process::Command;

fn run(example: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().expect("this test has a file");
    // target/PROFILE/deps/THIS beside target/PROFILE/examples/EXAMPLE
    let profile: PathBuf = test.ancestors().nth(2).expect("two folders up").into();
    let program = profile.join("examples").join(example);
    let output = Command::new(&program).args(arguments).output();
    let output = output.expect("examples are built with the tests");
    assert!(output.status.success(), "{example}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn ten_lines_remembers_what_was_said() {
    assert!(run("ten_lines", &[]).contains("The pilot boards at four."));
}

#[test]
fn tools_run_and_ask_first() {
    let said = run("tools", &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("high water at Hull: 04:12"), "{said}");
    assert_eq!(lines[1], "may book_berth run?");
    assert!(lines[2].contains("booked at Hull"), "{said}");
}

#[test]
fn structured_answers_are_values_or_say_why_not() {
    let said = run("structured", &[]);
    assert_eq!(
        said,
        "Hull: 04:12\nno value after 2 messages: I would rather not say.\n"
    );
}

#[test]
fn streaming_shows_tools_and_text_as_they_come() {
    let said = run("streaming", &["use add with a=2 b=3"]);
    assert!(said.starts_with("[add runs]\n"), "{said}");
    assert!(said.contains('5') && said.ends_with("[done]\n"), "{said}");
}

#[test]
fn an_own_client_answers() {
    assert_eq!(run("own_client", &[]), "high water at four\n");
}

#[test]
fn a_process_that_crashed_is_gone_on_with_and_nothing_finished_is_done_again() {
    assert_eq!(
        run("crash_and_resume", &[]),
        "the pump starts\nthe gate is being closed\nthe first process died\n\
         the gate is being closed\nstart_pump says: running\nclose_gate says: closed\n"
    );
}

#[test]
fn an_approval_is_answered_in_another_process() {
    let said = run("approval_two_processes", &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert_eq!(lines[0], "first process: parked");
    assert!(
        lines[1].contains("book_berth") && lines[1].contains("Hull"),
        "{said}"
    );
    assert_eq!(lines[2], "second process: book_berth says: booked at Hull");
}

#[test]
fn history_moves_with_the_run_or_with_each_call() {
    assert_eq!(
        run("per_call", &[]),
        "per_run: look says: 0 messages; 4 messages at the end\n\
         per_call: look says: 2 messages; 4 messages at the end\n"
    );
}

#[test]
fn a_service_that_keeps_history_is_sent_what_is_new() {
    assert_eq!(
        run("service_history", &[]),
        "I was sent 1 and had 0.\nI was sent 1 and had 2.\nkept as kept_2\nour record has 4\n"
    );
}

#[test]
fn a_message_store_may_reduce_its_own_history() {
    let said = run("own_message_store", &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[3], "You first said: \"The tide turns at ten.\"",
        "{said}"
    );
    assert_eq!(
        lines[4], "There are 5 messages so far, 3 of them yours.",
        "{said}"
    );
}

#[test]
fn a_fork_shares_what_came_before_it() {
    assert_eq!(
        run("fork_and_compare", &[]),
        "both: We leave on Monday.\nboth: You said: \"We leave on Monday.\"\n\
         sea: We go by sea.\nsea: You said: \"We go by sea.\"\n\
         land: We go by land.\nland: You said: \"We go by land.\"\n"
    );
}

#[test]
fn two_processes_take_turns_on_one_thread() {
    assert_eq!(
        run("two_processes", &[]),
        "12 messages, 6 turns in order\nAnna 1, Anna 2, Anna 3\nBert 1, Bert 2, Bert 3\n"
    );
}
