//! Putting texts back into a hollow item; the counterpart of [`hollow`](crate::hollow).

use std::ops::Range;

use throughline_model::json::{RawJson, push_string};

/// What goes into a hole.
#[derive(Clone)]
pub(crate) enum Fill<'f> {
    /// A string, into `""`.
    Text(&'f str),
    /// JSON text, into `null`.
    Json(&'f str),
    /// The elements of an array as JSON text with commas, into `[]`.
    Elements(&'f str),
    /// The elements of an array, each as JSON text, into `[]`.
    List(&'f [String]),
    /// JSON text instead of whatever stands there, or as a new member of the item.
    Replace(&'f str),
}

impl Fill<'_> {
    /// About how much room it takes, before escapes.
    fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Elements(text) | Self::Replace(text) => {
                text.len() + 2
            }
            Self::List(items) => items.iter().map(|item| item.len() + 1).sum(),
        }
    }
}

/// Append an item with its holes filled. A place that is not hollow stays as it is; of two fills
/// for one place the later one counts, as vendors may say a member twice.
pub(crate) fn fill<'p, P: AsRef<[&'p str]>>(
    out: &mut String,
    item: &RawJson,
    fills: &[(P, Fill<'_>)],
) {
    let text = item.get();
    // With room for escapes and for what closes the message around it: a buffer that grows at the
    // end is copied whole.
    let size: usize = fills.iter().map(|(_, fill)| fill.size()).sum();
    out.reserve(text.len() + size + size / 8 + 8);
    let mut edits = Edits::default();
    let mut added = Vec::new();
    for (path, fill) in fills {
        let path = path.as_ref();
        let Some(at) = item.locate(path) else {
            if let ([key], Fill::Replace(json)) = (path, fill) {
                added.retain(|(before, _)| before != key);
                added.push((*key, *json));
            }
            continue;
        };
        let found = &text[at.clone()];
        let fits = match fill {
            Fill::Text(text) => found == "\"\"" && !text.is_empty(),
            Fill::Json(_) => found == "null",
            Fill::Elements(_) | Fill::List(_) => found == "[]",
            Fill::Replace(_) => true,
        };
        if fits {
            edits.push(at, fill);
        }
    }
    let mut from = 0;
    for (at, fill) in edits.in_order() {
        // A place inside one that was replaced is gone with it.
        if at.start < from {
            continue;
        }
        out.push_str(&text[from..at.start]);
        match fill {
            Fill::Text(text) => push_string(out, text),
            Fill::Json(json) | Fill::Replace(json) => out.push_str(json),
            Fill::Elements(elements) => {
                out.push('[');
                out.push_str(elements);
                out.push(']');
            }
            Fill::List(items) => push_array(out, items),
        }
        from = at.end;
    }
    let rest = &text[from..];
    if added.is_empty() {
        out.push_str(rest);
        return;
    }
    // New members go before the brace that closes the item.
    let rest = rest.strip_suffix('}').unwrap_or(rest);
    out.push_str(rest);
    let mut first = text == "{}";
    for (key, json) in added {
        if !first {
            out.push(',');
        }
        first = false;
        push_string(out, key);
        out.push(':');
        out.push_str(json);
    }
    out.push('}');
}

/// Append JSON texts as an array.
pub(crate) fn push_array(out: &mut String, items: &[String]) {
    let size: usize = items.iter().map(|item| item.len() + 1).sum();
    out.reserve(size + 2);
    out.push('[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        out.push_str(item);
    }
    out.push(']');
}

/// The places to fill. Items have one or two, so these stand without an allocation.
#[derive(Default)]
struct Edits<'f> {
    few: [Option<(Range<usize>, &'f Fill<'f>)>; 2],
    more: Vec<(Range<usize>, &'f Fill<'f>)>,
}

impl<'f> Edits<'f> {
    fn push(&mut self, at: Range<usize>, fill: &'f Fill<'f>) {
        let mut before = self.few.iter_mut().flatten().chain(&mut self.more);
        if let Some(same) = before.find(|(place, _)| *place == at) {
            same.1 = fill;
            return;
        }
        match self.few.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some((at, fill)),
            None => self.more.push((at, fill)),
        }
    }

    fn in_order(mut self) -> impl Iterator<Item = (Range<usize>, &'f Fill<'f>)> {
        if !self.more.is_empty() {
            self.more
                .extend(self.few.iter_mut().filter_map(Option::take));
            self.more.sort_unstable_by_key(|(at, _)| at.start);
        }
        if let [Some((first, _)), Some((second, _))] = &self.few
            && second.start < first.start
        {
            self.few.swap(0, 1);
        }
        self.few.into_iter().flatten().chain(self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(item: &str, fills: &[(&[&str], Fill<'_>)]) -> String {
        let item = RawJson::new(item).expect("JSON");
        let mut out = String::new();
        fill(&mut out, &item, fills);
        out
    }

    #[test]
    fn of_two_fills_for_one_place_the_later_one_counts() {
        let twice = [
            (&["a"][..], Fill::Replace("1")),
            (&["b"][..], Fill::Replace("2")),
            (&["a"][..], Fill::Replace("3")),
            (&["b"][..], Fill::Replace("4")),
        ];
        assert_eq!(filled(r#"{"a":0}"#, &twice), r#"{"a":3,"b":4}"#);
        assert_eq!(
            filled(r#"{"x":9,"b":0,"a":0}"#, &twice),
            r#"{"x":9,"b":4,"a":3}"#
        );
    }

    #[test]
    fn a_place_inside_one_that_is_replaced_is_gone_with_it() {
        let nested = [
            (&["a", "b"][..], Fill::Replace("1")),
            (&["a"][..], Fill::Replace("2")),
            (&["c"][..], Fill::Replace("3")),
        ];
        assert_eq!(
            filled(r#"{"a":{"b":0},"c":0}"#, &nested),
            r#"{"a":2,"c":3}"#
        );
    }
}
