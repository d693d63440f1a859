//! Putting texts back into a hollow item; the counterpart of [`hollow`](crate::hollow).

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
    /// JSON text instead of whatever stands there, or as a new member of the item.
    Replace(&'f str),
}

/// Append an item with its holes filled. A place that is not hollow stays as it is.
pub(crate) fn fill(out: &mut String, item: &RawJson, fills: &[(&[&str], Fill<'_>)]) {
    let text = item.get();
    let mut edits = Vec::with_capacity(fills.len());
    let mut added = Vec::new();
    for (path, fill) in fills {
        let Some(at) = item.locate(path) else {
            if let ([key], Fill::Replace(json)) = (path, fill) {
                added.push((*key, *json));
            }
            continue;
        };
        let found = &text[at.clone()];
        let fits = match fill {
            Fill::Text(text) => found == "\"\"" && !text.is_empty(),
            Fill::Json(_) => found == "null",
            Fill::Elements(_) => found == "[]",
            Fill::Replace(_) => true,
        };
        if fits {
            edits.push((at, fill));
        }
    }
    edits.sort_unstable_by_key(|(at, _)| at.start);
    let mut from = 0;
    for (at, fill) in edits {
        out.push_str(&text[from..at.start]);
        match fill {
            Fill::Text(text) => push_string(out, text),
            Fill::Json(json) | Fill::Replace(json) => out.push_str(json),
            Fill::Elements(elements) => {
                out.push('[');
                out.push_str(elements);
                out.push(']');
            }
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
