//! Small things done to texts: one line of them, the start of them, the words of an output.

use std::borrow::Cow;

use throughline_model::{Body, Content, MediaSource, Output};

/// The text of an output; media is named by its kind.
pub(crate) fn of_output(output: &Output) -> Cow<'_, str> {
    match output {
        Output::None => Cow::Borrowed(""),
        Output::Text(text) => Cow::Borrowed(text),
        Output::Json(json) => Cow::Borrowed(json.get()),
        Output::Parts(parts) => match parts.as_slice() {
            [one] => part(one),
            parts => Cow::Owned(parts.iter().map(part).collect::<Vec<_>>().join("\n")),
        },
    }
}

fn part(content: &Content) -> Cow<'_, str> {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => Cow::Borrowed(&text.text),
        Body::Error(fault) => Cow::Borrowed(&fault.message),
        Body::Media(media) => {
            let kind = media.media_type.as_deref().unwrap_or("media");
            let (MediaSource::Uri(data) | MediaSource::Data(data) | MediaSource::File(data)) =
                &media.source;
            let hash = blake3::hash(data.as_bytes()).to_hex();
            Cow::Owned(format!("({kind}, {} bytes, {})", data.len(), &hash[..12]))
        }
        Body::Opaque(opaque) => Cow::Borrowed(&opaque.tag),
        Body::Reasoning(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Unknown(_) => Cow::Borrowed(""),
    }
}

/// The start of a text, at most `most` bytes of it, cut between characters.
pub(crate) fn start(text: &str, most: usize) -> &str {
    let mut to = most.min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    &text[..to]
}

/// The end of a text, at most `most` bytes of it, cut between characters.
pub(crate) fn end(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// A text as one line of at most `most` characters: white space and control characters become one space,
/// terminal colours go, and nothing in it can look like the mark of a digest.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // What is left out is not scanned: a line may have 50 MB.
    let looked_at = most.saturating_mul(8).saturating_add(64);
    let head = start(text, looked_at);
    let mut out = String::with_capacity(head.len().min(most * 4 + 4));
    let mut length = 0;
    let mut chars = head.chars().peekable();
    let mut cut = head.len() < text.len();
    while let Some(letter) = chars.next() {
        if letter == '\u{1b}' {
            skip_escape(&mut chars);
            continue;
        }
        let space = letter.is_whitespace() || letter.is_control();
        if space && (out.is_empty() || out.ends_with(' ')) {
            continue;
        }
        if length >= most {
            cut = true;
            break;
        }
        out.push(if space { ' ' } else { letter });
        length += 1;
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    if out.contains("[Earlier:") {
        out = out.replace("[Earlier:", "(Earlier:");
    }
    if cut {
        out.push('…');
    }
    out
}

/// Pass over one terminal sequence.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if chars.peek() != Some(&'[') {
        return;
    }
    chars.next();
    // A sequence ends with a letter; one that never ends is not a sequence.
    for _ in 0..32 {
        match chars.peek() {
            Some(letter) if letter.is_ascii_alphabetic() => {
                chars.next();
                return;
            }
            Some(letter) if letter.is_ascii_digit() || *letter == ';' || *letter == '?' => {
                chars.next();
            }
            _ => return,
        }
    }
}

/// How many lines a text has; a line break at the end begins no further one.
pub(crate) fn lines(text: &str) -> usize {
    let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
    match text.as_bytes().last() {
        None => 0,
        Some(b'\n') => breaks,
        Some(_) => breaks + 1,
    }
}
