//! The examples do what they say. They are built with the tests; here they are run.

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
