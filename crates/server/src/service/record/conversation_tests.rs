use throughline_model::{Message, Role};

use super::{digested, instructions, quotable, quoted};

#[test]
fn instructions_are_no_part_of_the_conversation() {
    let system =
        |text: &str| Message::new(Role::System, vec![throughline_model::Content::text(text)]);
    let messages = [system("be brief"), Message::user("hi"), system("be kind")];
    let messages: Vec<&Message> = messages.iter().collect();
    assert_eq!(instructions(&messages), 1);
    // One in the middle is.
    let with = digested(&messages[1..]);
    let without = digested(&messages[1..2]);
    assert_eq!(with.len(), 2);
    assert_ne!(with[1].history.end(), without[0].history.end());
}

#[test]
fn a_history_is_known_by_its_messages_and_their_order() {
    let [one, two] = [Message::user("one"), Message::user("two")];
    let end = |messages: &[&Message]| digested(messages).last().map(|last| last.history.end());
    let forth = end(&[&one, &two]);
    assert_ne!(forth, end(&[&two, &one]));
    assert_ne!(forth, end(&[&Message::user("onetwo")]));
    let all = digested(&[&one, &two]);
    assert_eq!(Some(all[0].history.end()), end(&[&one]));
    assert_ne!(all[0].history.end(), all[0].history.opening());
    assert_eq!(all[0].content, digested(&[&two, &one])[1].content);
}

#[test]
fn a_long_answer_is_found_where_it_is_quoted() {
    let line = "The pilot boards at six, two barges wait at the north quay, and the crane is out of order.";
    let answer = Message::assistant(format!("Summary:\n{line}\n{}", "short\n".repeat(200)));
    let quote = quotable(&answer).unwrap();
    let around = Message::user(format!("It goes on from here.\n\n  {line}  \nGo on."));
    assert!(quoted(&around).contains(&quote));
    assert_eq!(
        quotable(&Message::assistant(line)),
        None,
        "short answers are said often"
    );
    assert!(quoted(&Message::user("Good morning.")).is_empty());
}
