//! Names that the model writes about later.

use std::collections::HashMap;

use throughline_model::{Body, Role};

use super::atoms::{atoms, stands_in};
use super::past::{Past, Piece};
use super::{Origin, RECENT, Session};

/// A name in a text of the model that the session last showed some calls before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The index of the model's message.
    pub at: usize,
    /// The name.
    pub atom: String,
}

/// The names from results that the model's texts use again, in order.
pub fn mentions(session: &Session) -> Vec<Mention> {
    let past = Past::of(session);
    let mut found: Vec<Mention> = Vec::new();
    // Where each name occurred first and last.
    let mut seen: HashMap<String, (usize, usize)> = HashMap::new();
    for (at, message) in session.messages.iter().enumerate() {
        let texts = message
            .contents
            .iter()
            .filter_map(|content| match &content.body {
                Body::Text(text) if message.role == Role::Assistant => Some(&text.text),
                _ => None,
            });
        let from = found.len();
        for atom in texts.flat_map(|text| atoms(text)) {
            let Some((first, last)) = seen.get(&atom) else {
                continue;
            };
            let origin = past.piece(*first).and_then(Piece::origin);
            let old = past
                .piece(*last)
                .is_some_and(|last| past.back(at, last) >= RECENT);
            if origin != Some(Origin::Result) || !old {
                continue;
            }
            // It may stand in something recent that is not split into names in the same way.
            let recent = past
                .recent(at, RECENT)
                .any(|piece| stands_in(&piece.text, &atom));
            let known = found[from..].iter().any(|mention| mention.atom == atom);
            if !recent && !known {
                found.push(Mention { at, atom });
            }
        }
        for (place, piece) in past.at(at) {
            for atom in atoms(&piece.text) {
                seen.entry(atom).or_insert((place, place)).1 = place;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::mentions;
    use crate::trajectory::Session;
    use crate::trajectory::maker::Maker;

    #[test]
    fn a_name_in_later_prose_counts_when_a_result_showed_it_some_calls_before() {
        let mut made = Maker::new(0);
        made.user("look at own_name");
        let mut round =
            |text: &str, output: &str| made.done(text, "look", "{}".to_owned(), output.to_owned());
        round("", "fn high_water() and fn low_water()");
        for _ in 0..6 {
            round("", "nothing");
        }
        round("high_water, high_water and own_name differ", "low_water");
        round("low_water is recent", "");
        let found = mentions(&Session::new("s", made.messages));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].at, found[0].atom.as_str()), (15, "high_water"));
    }
}
