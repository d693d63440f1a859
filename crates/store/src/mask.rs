//! Masks: what was taken out of a conversation without changing what is stored.
//!
//! A mask is a message of its own, later on the branch, that names contents before it. Branches that
//! began before the mask still show them. Readers that show a history leave masks and what they name
//! out; exports and the record have both.

use std::collections::HashSet;

use throughline_model::json::{ArrayWriter, RawJson, Value};
use throughline_model::{Body, Content, Message, Role};

use crate::{Entry, ItemNo, ItemRef, RunId};

/// The role of a message that is a mask.
const ROLE: &str = "mask";

/// A content of a message that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mask {
    /// The first item of the message.
    pub message: ItemRef,
    /// Which of its contents, from zero.
    pub content: usize,
}

impl Mask {
    /// The message that leaves these contents out from its place on.
    ///
    /// ```
    /// use throughline_store::{ItemRef, Mask, RunId};
    ///
    /// let message = ItemRef { run: RunId::from_bytes([7; 16]), no: 1 };
    /// let mask = Mask { message, content: 0 };
    /// assert_eq!(Mask::of(&Mask::message(&[mask])), Some(vec![mask]));
    /// ```
    pub fn message(masks: &[Self]) -> Message {
        let body = RawJson::object(|object| {
            object.str("kind", ROLE);
            let mut list = ArrayWriter::new(object.key("masks"));
            for mask in masks {
                let one = RawJson::object(|object| {
                    object
                        .str("run", &mask.message.run.to_string())
                        .number("item", mask.message.no.into())
                        .number("content", mask.content as u64);
                });
                list.raw(one.get());
            }
            list.end();
        });
        Message::new(
            Role::Other(ROLE.into()),
            vec![Content::new(Body::Unknown(body))],
        )
    }

    /// What a message leaves out, if it is a mask.
    pub fn of(message: &Message) -> Option<Vec<Self>> {
        if !matches!(&message.role, Role::Other(role) if &**role == ROLE) {
            return None;
        }
        let mut masks = Vec::new();
        for content in &message.contents {
            let Body::Unknown(body) = &content.body else {
                return None;
            };
            let value = body.value();
            let list = value.get("masks").and_then(Value::as_array)?;
            masks.extend(list.iter().filter_map(read));
        }
        Some(masks)
    }
}

fn read(value: &Value<'_>) -> Option<Mask> {
    let number = |key| value.get(key).and_then(Value::as_u64);
    Some(Mask {
        message: ItemRef {
            run: value.get("run")?.as_str()?.parse::<RunId>().ok()?,
            no: ItemNo::try_from(number("item")?).ok()?,
        },
        content: usize::try_from(number("content")?).ok()?,
    })
}

/// All masks of a branch.
pub fn masks_of<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> HashSet<Mask> {
    let masks = entries
        .into_iter()
        .filter_map(|entry| Mask::of(&entry.message));
    masks.flatten().collect()
}

/// A branch as it is shown: without masks and what they name. `entries` go to the end of the branch,
/// because masks stand after what they name.
pub fn visible(mut entries: Vec<Entry>) -> Vec<Entry> {
    let masks = masks_of(&entries);
    let is_mask = |entry: &Entry| Mask::of(&entry.message).is_some();
    if masks.is_empty() {
        entries.retain(|entry| !is_mask(entry));
        return entries;
    }
    let named: HashSet<ItemRef> = masks.iter().map(|mask| mask.message).collect();
    entries.retain_mut(|entry| {
        if is_mask(entry) {
            return false;
        }
        if !named.contains(&entry.at) {
            return true;
        }
        let mut content = 0;
        entry.message.contents.retain(|_| {
            let mask = Mask {
                message: entry.at,
                content,
            };
            content += 1;
            !masks.contains(&mask)
        });
        !entry.message.contents.is_empty()
    });
    entries
}

#[cfg(test)]
mod tests {
    use throughline_model::{Content, Message};

    use super::{Mask, visible};
    use crate::{Entry, ItemRef, RunId};

    fn entry(no: u32, message: Message) -> Entry {
        Entry {
            message,
            first: no.into(),
            last: no.into(),
            at: place(no),
            parts: Vec::new(),
            tokens: 1,
            redacted: None,
        }
    }

    fn place(no: u32) -> ItemRef {
        ItemRef {
            run: RunId::from_bytes([1; 16]),
            no,
        }
    }

    #[test]
    fn a_mask_takes_out_what_it_names_and_nothing_else() {
        let mut two = Message::user("one");
        two.contents.push(Content::text("two"));
        let mask = |no, content| Mask {
            message: place(no),
            content,
        };
        let all = vec![
            entry(1, two),
            entry(2, Message::assistant("three")),
            entry(3, Mask::message(&[mask(1, 0), mask(2, 0), mask(9, 0)])),
            entry(4, Message::user("four")),
        ];
        let shown: Vec<String> = visible(all.clone())
            .iter()
            .map(|one| one.message.text())
            .collect();
        assert_eq!(shown, ["two", "four"]);
        // A branch that ends before the mask shows everything.
        assert_eq!(visible(all[..2].to_vec()), all[..2].to_vec());
    }

    #[test]
    fn a_message_that_only_looks_like_a_mask_is_none() {
        assert_eq!(Mask::of(&Message::user("{\"masks\":[]}")), None);
        let mut odd = Mask::message(&[]);
        assert_eq!(Mask::of(&odd), Some(Vec::new()));
        odd.contents.push(Content::text("more"));
        assert_eq!(Mask::of(&odd), None);
    }
}
