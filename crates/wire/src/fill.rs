//! Putting texts back into a hollow item; the counterpart of [`hollow`](crate::hollow).

use throughline_model::json::{Node, ObjectWriter, RawJson, push_compact_with, push_string};

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
    let value = item.value();
    let mut texts = Vec::with_capacity(fills.len());
    let mut added = Vec::new();
    for (path, fill) in fills {
        let Some(at) = value.at(path) else {
            if let ([key], Fill::Replace(json)) = (path, fill) {
                added.push((*key, *json));
            }
            continue;
        };
        let text = match (fill, at.node()) {
            (Fill::Replace(json), _) => (*json).to_owned(),
            (Fill::Text(text), Node::String(_)) if at.raw() == "\"\"" && !text.is_empty() => {
                let mut token = String::with_capacity(text.len() + 2);
                push_string(&mut token, text);
                token
            }
            (Fill::Json(json), Node::Null) => (*json).to_owned(),
            (Fill::Elements(elements), Node::Array(found)) if found.is_empty() => {
                format!("[{elements}]")
            }
            _ => continue,
        };
        texts.push((at, text));
    }
    if texts.is_empty() && added.is_empty() {
        out.push_str(item.get());
        return;
    }
    let edits: Vec<_> = texts
        .iter()
        .map(|(at, text)| (*at, text.as_str()))
        .collect();
    if added.is_empty() {
        return push_compact_with(out, &value, &edits);
    }
    let mut object = ObjectWriter::new(out);
    for member in value.members() {
        push_compact_with(object.key_token(&member.key), &member.value, &edits);
    }
    for (key, json) in added {
        object.raw(key, json);
    }
    object.end();
}
