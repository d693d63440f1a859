//! Small damage and small additions, for well-formed inputs.

use crate::Rng;
use crate::generate::Json;
use crate::reader::{Kind, Node, read};

/// Adds a member named `x_unknown_…` with a random value to a random object anywhere in `text`.
///
/// Everything else in the text stays as it is, byte for byte. None when the text is not JSON or holds no
/// object.
///
/// ```
/// use throughline_testkit::{Rng, mutate::insert_unknown_field};
///
/// let text = insert_unknown_field(r#"[{"a":1}]"#, &mut Rng::new(1)).unwrap();
/// assert!(text.starts_with("[{") && text.contains(r#""x_unknown_"#));
/// ```
pub fn insert_unknown_field(text: &str, rng: &mut Rng) -> Option<String> {
    let mut places = Vec::new();
    collect_places(&read(text).ok()?, &mut places);
    if places.is_empty() {
        return None;
    }
    let object = rng.pick(&places);
    let number = rng.below(1_000_000);
    let json = Json {
        depth: 3,
        whitespace: rng.bool(),
        ..Json::default()
    };
    let size = rng.range(1..=6);
    let member = format!("\"x_unknown_{number}\":{}", json.document(rng, size));
    let (at, insert) = match *rng.pick(object) {
        InsertPoint::OnlyMember(at) => (at, member),
        InsertPoint::Before(at) => (at, format!("{member},")),
        InsertPoint::After(at) => (at, format!(",{member}")),
    };
    Some([&text[..at], &insert, &text[at..]].concat())
}

/// Repeats a random key somewhere in `text`, with another value, before the member that has it.
///
/// Readers that let the last of duplicate keys count see no difference. None when the text is not
/// JSON or no object in it has a member.
pub fn insert_duplicate_key(text: &str, rng: &mut Rng) -> Option<String> {
    let mut members = Vec::new();
    collect_members(text, &read(text).ok()?, &mut members);
    if members.is_empty() {
        return None;
    }
    let (at, key_end) = *rng.pick(&members);
    let json = Json {
        depth: 2,
        whitespace: false,
        ..Json::default()
    };
    let key = &text[at..key_end];
    let member = format!("{key}:{},", json.document(rng, 3));
    Some([&text[..at], &member, &text[at..]].concat())
}

/// Cuts `bytes` short at a random point: at least one byte goes, and possibly all of them.
pub fn truncate<'a>(bytes: &'a [u8], rng: &mut Rng) -> &'a [u8] {
    &bytes[..rng.below(bytes.len())]
}

/// Flips one random bit, as a bad disk would; an empty input stays empty.
pub fn flip(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    let at = rng.below(bytes.len());
    if let Some(byte) = flipped.get_mut(at) {
        *byte ^= 1 << rng.below(8);
    }
    flipped
}

#[derive(Clone, Copy)]
enum InsertPoint {
    OnlyMember(usize),
    Before(usize),
    After(usize),
}

/// One entry for each object, holding the places where a member can go.
fn collect_places(node: &Node<'_>, places: &mut Vec<Vec<InsertPoint>>) {
    match &node.kind {
        Kind::Array(elements) => elements
            .iter()
            .for_each(|element| collect_places(element, places)),
        Kind::Object(members) if members.is_empty() => {
            places.push(vec![InsertPoint::OnlyMember(node.start + 1)]);
        }
        Kind::Object(members) => {
            let after = members
                .iter()
                .map(|member| InsertPoint::After(member.value.end));
            places.push(
                std::iter::once(InsertPoint::Before(node.start + 1))
                    .chain(after)
                    .collect(),
            );
            members
                .iter()
                .for_each(|member| collect_places(&member.value, places));
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => {}
    }
}

/// Where the key of each member of each object stands.
fn collect_members(text: &str, node: &Node<'_>, found: &mut Vec<(usize, usize)>) {
    match &node.kind {
        Kind::Array(elements) => elements
            .iter()
            .for_each(|element| collect_members(text, element, found)),
        Kind::Object(members) => {
            for member in members {
                let start = member.key.as_ptr() as usize - text.as_ptr() as usize;
                found.push((start, start + member.key.len()));
                collect_members(text, &member.value, found);
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{flip, insert_unknown_field, truncate};
    use crate::generate::Json;
    use crate::{Rng, json_eq, property};

    #[test]
    fn an_inserted_field_is_the_only_difference() {
        property(
            "one unknown field is added and nothing else changes",
            500,
            |rng, size| {
                let text = Json::default().object(rng, size);
                let grown = insert_unknown_field(&text, rng).ok_or("no object found")?;
                let difference = json_eq(&text, &grown).err().ok_or("nothing was added")?;
                let expected =
                    difference.contains("key \"x_unknown_") && difference.ends_with("was added");
                if expected {
                    Ok(())
                } else {
                    Err(format!("{difference}: {text} became {grown}"))
                }
            },
        );
    }

    #[test]
    fn every_object_is_reached() {
        let text = r#"{"a":{},"b":[{"c":1}]}"#;
        let mut rng = Rng::new(2);
        let mut paths = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let grown = insert_unknown_field(text, &mut rng).unwrap();
            let difference = json_eq(text, &grown).unwrap_err();
            paths.insert(difference.split(':').next().unwrap_or_default().to_owned());
        }
        let expected = ["at /a", "at /b/0", "at the top"].map(String::from);
        assert_eq!(paths.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn there_is_no_place_in_a_text_without_objects() {
        let mut rng = Rng::new(3);
        assert_eq!(insert_unknown_field("[1,2]", &mut rng), None);
        assert_eq!(insert_unknown_field("{", &mut rng), None);
    }

    #[test]
    fn damage_is_always_done() {
        let mut rng = Rng::new(4);
        for _ in 0..100 {
            let bytes = rng.bytes(9);
            let different: u32 = flip(&bytes, &mut rng)
                .iter()
                .zip(&bytes)
                .map(|(a, b)| (a ^ b).count_ones())
                .sum();
            assert_eq!(different, 1);
            let cut = truncate(&bytes, &mut rng);
            assert!(cut.len() < 9 && bytes.starts_with(cut));
        }
        assert!(flip(&[], &mut rng).is_empty());
        assert!(truncate(&[], &mut rng).is_empty());
    }
}
