use throughline_model::{CallId, Content, Message, Outcome, Output, Role, Source, ToolCall};
use throughline_testkit::{messages, property};

use super::{Item, ItemKind, ItemRef, NewItem, entries};
use crate::RunId;

/// What a store would give back for items of one run.
fn stored(items: Vec<NewItem>) -> Vec<Item> {
    let run = RunId::from_bytes([1; 16]);
    let read = |(place, item)| match item {
        NewItem::Said(said) => Item {
            at: ItemRef {
                run,
                no: u32::try_from(place).unwrap() + 1,
            },
            again: None,
            kind: said.kind,
            tokens: said.tokens,
            body: Ok(said.body),
            source: said.source,
        },
        NewItem::Again(_) => panic!("nothing is said again here"),
    };
    items.into_iter().enumerate().map(read).collect()
}

fn result(id: &str) -> Content {
    let call = ToolCall::function(CallId::natural(id).unwrap(), "f", "{}");
    call.answer(Outcome::Ok, Output::Text(id.into())).into()
}

#[test]
fn plain_text_takes_one_byte_more_than_it_says() {
    let message = Message {
        source: Some(Source::Caller),
        ..Message::user("hello")
    };
    let items = NewItem::of(&[message]);
    let NewItem::Said(said) = &items[0] else {
        panic!()
    };
    assert_eq!(&*said.body, b"\x01hello");
    assert_eq!(
        stored(items)[0].message().unwrap().source,
        Some(Source::Caller)
    );
}

#[test]
fn results_of_one_message_are_items_and_read_back_as_one_message() {
    let round = Message {
        author: Some("tools".into()),
        source: Some(Source::Tool),
        ..Message::new(Role::Tool, vec![result("a"), result("b"), result("c")])
    };
    let items = stored(NewItem::of(&[Message::user("x"), round.clone()]));
    let kinds: Vec<_> = items.iter().map(|item| item.kind).collect();
    use ItemKind::{Message as M, Part as P};
    assert_eq!(kinds, [M, M, P, P]);
    let read = entries(&items, 11).unwrap();
    assert_eq!((read[1].first, read[1].last), (12, 14));
    let mut expected = round;
    expected.id = Some(items[1].at.message_id());
    assert_eq!(read[1].message, expected);
}

#[test]
fn items_are_counted_as_they_are_made() {
    let mut rounds = 0;
    property("items are counted as they are made", 400, |rng, size| {
        let mut message = messages::anything(rng, size);
        if rng.bool() {
            let ids = (0..rng.below(4)).map(|n| format!("c{n}"));
            message.role = Role::Tool;
            message.contents = ids.map(|id| result(&id)).collect();
        }
        let mut items = Vec::new();
        NewItem::push(&mut items, &message, 1);
        rounds += usize::from(items.len() > 1);
        let counted = NewItem::count(&message);
        if counted as usize == items.len() {
            Ok(())
        } else {
            Err(format!("{counted} of {}: {message:?}", items.len()))
        }
    });
    assert!(rounds > 50, "only {rounds} messages had several items");
}

#[test]
fn a_body_of_a_later_version_is_an_error_that_names_it() {
    let mut item = stored(NewItem::of(&[Message::user("x")])).remove(0);
    item.body = Ok([9, 1, 2].into());
    let error = item.message().unwrap_err().to_string();
    assert_eq!(
        error,
        "body: expected a stored message, found a body that starts with the byte 9"
    );
}
