use throughline_model::{
    CallId, Content, Form, Message, MessageId, Outcome, Output, Role, Source, ToolCall, Vendor,
    Wire,
};
use throughline_testkit::{Rng, messages, property};

use super::{Item, ItemKind, ItemRef, NewItem, entries};
use crate::RunId;

/// What a store would give back for items of one run.
fn stored(items: Vec<NewItem>) -> Vec<Item> {
    let run = RunId::from_bytes([1; 16]);
    let read = |(place, item)| match item {
        NewItem::Content(said) => Item {
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
        NewItem::Repeat(_) => panic!("nothing is said again here"),
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
    let NewItem::Content(said) = &items[0] else {
        panic!()
    };
    assert_eq!(&*said.body, b"\x01hello");
    assert_eq!(
        stored(items)[0].message().unwrap().source,
        Some(Source::Caller)
    );
}

#[test]
fn a_text_with_a_name_and_a_time_takes_two_dozen_bytes_more() {
    let place = ItemRef {
        run: RunId::from_bytes([0xAB; 16]),
        no: 300,
    };
    let vendor = Vendor::form(Wire::OpenAiChat, Form::Bare);
    let mut message = Message {
        id: Some(place.message_id()),
        created: Some(1_794_793_392_029),
        source: Some(Source::Model),
        ..Message::new(Role::Assistant, vec![Content::text("a \"quoted\" word")])
    };
    let size = |message: &Message| {
        let items = NewItem::of(std::slice::from_ref(message));
        let NewItem::Content(said) = &items[0] else {
            panic!()
        };
        assert_eq!(said.body[0], 5);
        let read = stored(items.clone()).remove(0).message().unwrap();
        assert_eq!(read, *message);
        said.body.len() - message.text().len()
    };
    assert_eq!(size(&message), 2 + 18 + 6);
    let mut json = String::new();
    vendor.write_json(&mut json);
    message.contents[0].vendor = Some(Box::new(vendor));
    assert_eq!(size(&message), 2 + 18 + 6 + 1 + json.len());
    // An id that only looks like one of ours is kept as it is.
    for id in ["msg_1", "theirs", &format!("{}x", place.message_id())] {
        message.id = Some(MessageId::new(id).unwrap());
        size(&message);
    }
}

/// Any message; most often one with a text and more to it.
fn any_message(rng: &mut Rng, size: usize) -> Message {
    let mut message = messages::anything(rng, size);
    if rng.below(4) > 0 {
        let roles = [Role::User, Role::Assistant, Role::System, Role::Developer];
        message.role = roles[rng.below(4)].clone();
        let vendor = message
            .contents
            .iter()
            .find_map(|content| content.vendor.clone());
        let text = Content::text("é".repeat(rng.below(40)));
        message.contents = vec![Content { vendor, ..text }];
    }
    if rng.bool() {
        message.created = Some(rng.next_u64() >> rng.below(64));
    }
    if rng.bool() {
        let place = ItemRef {
            run: RunId::from_bytes([rng.below(256) as u8; 16]),
            no: (rng.next_u64() >> (32 + rng.below(32))) as u32,
        };
        message.id = Some(place.message_id());
    }
    message
}

#[test]
fn every_message_is_read_as_it_was_stored() {
    let mut framed = 0;
    property(
        "every message is read as it was stored",
        2000,
        |rng, size| {
            let message = any_message(rng, size);
            let NewItem::Content(said) = NewItem::whole(&message) else {
                return Err("something new is said".into());
            };
            framed += usize::from(said.body[0] == 5);
            let read = stored(vec![NewItem::Content(said)]).remove(0).message();
            match read {
                Ok(read) if read == message => Ok(()),
                other => Err(format!("{message:?} is read as {other:?}")),
            }
        },
    );
    println!("{framed} of 2000 have a frame");
    assert!(framed > 500, "only {framed} had a frame");
}

#[test]
fn a_damaged_frame_is_an_error_or_another_message_and_nothing_worse() {
    let mut errors = 0;
    property(
        "a damaged frame is an error or another message",
        2000,
        |rng, size| {
            let message = any_message(rng, size);
            let NewItem::Content(said) = NewItem::whole(&message) else {
                return Err("something new is said".into());
            };
            let mut bytes = said.body.to_vec();
            if rng.bool() {
                bytes.truncate(rng.below(bytes.len() + 1));
            } else {
                let place = rng.below(bytes.len());
                bytes[place] ^= 1 << rng.below(8);
            }
            let mut item = stored(vec![NewItem::Content(said)]).remove(0);
            item.body = Ok(bytes.into());
            errors += usize::from(item.message().is_err());
            Ok(())
        },
    );
    println!("{errors} of 2000 are errors");
    assert!(errors > 200, "only {errors} were errors");
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
        NewItem::push(&mut items, &message);
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
fn items_count_as_the_message_that_they_are_read_as() {
    let mut rounds = 0;
    property("items add up to their message", 400, |rng, size| {
        let mut message = messages::anything(rng, size);
        if rng.bool() {
            let ids = (0..rng.below(4)).map(|n| format!("c{n}"));
            message.role = Role::Tool;
            message.contents = ids.map(|id| result(&id)).collect();
        }
        let mut items = Vec::new();
        NewItem::push(&mut items, &message);
        let items = stored(items);
        rounds += usize::from(items.len() > 1);
        let sum: u32 = items.iter().map(|item| item.tokens).sum();
        let expected = throughline_model::tokens::units(&message);
        if sum != expected {
            return Err(format!("{sum}, not {expected}: {message:?}"));
        }
        // What is stored is enough to count it again, as the migration of an old store does.
        for item in &items {
            let again = super::counted(item.kind, &item.message().unwrap());
            if again != item.tokens {
                return Err(format!("{again}, not {}: {message:?}", item.tokens));
            }
        }
        Ok(())
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
