//! The texts of the model's answers.

use throughline_model::{Body, Media, MediaKind, MediaSource, Message, Role};

/// The number of words of a text.
pub(super) fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The words of a text, each with the white space after it.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_whitespace())?;
        let space = rest[word..].find(char::is_whitespace);
        let space = space.map_or(rest.len(), |at| word + at);
        let next = rest[space..].find(|c: char| !c.is_whitespace());
        let (piece, tail) = rest.split_at(next.map_or(rest.len(), |at| space + at));
        rest = tail;
        Some(piece)
    })
}

/// The answer to the newest message.
pub(super) fn answer(messages: &[&Message]) -> String {
    let said: Vec<String> = messages
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.text())
        .collect();
    let Some((newest, before)) = said.split_last() else {
        return "Say something, and I will answer from this conversation.".to_owned();
    };
    let plain = newest.to_lowercase();
    let asks = |words: &[&str]| words.iter().any(|words| plain.contains(words));
    if asks(&["how many messages"]) {
        return format!(
            "There are {} messages so far, {} of them yours.",
            messages.len(),
            said.len()
        );
    }
    if asks(&["what did i say", "what have i said", "what was my"]) {
        let (found, word) = if asks(&["first"]) {
            (before.first(), "first")
        } else {
            (before.last(), "last")
        };
        return match found {
            Some(text) => format!("You {word} said: \"{text}\""),
            None => "Nothing before this.".to_owned(),
        };
    }
    if is_greeting(&plain) {
        return match before.len() {
            0 => "Hello! Ask me what you said first, or how many messages there are.".to_owned(),
            _ => "Hello again!".to_owned(),
        };
    }
    let last = messages.iter().rfind(|message| message.role == Role::User);
    let sent = last.map(|message| images(message)).unwrap_or_default();
    match (newest.trim().is_empty(), sent.is_empty()) {
        (true, true) => "I hear you, but there is no text in it.".to_owned(),
        (true, false) => format!("You sent {sent}."),
        (false, true) => format!("You said: \"{newest}\""),
        (false, false) => format!("You said: \"{newest}\", with {sent}"),
    }
}

/// What images a message has. The model cannot look at them.
fn images(message: &Message) -> String {
    let images = message
        .contents
        .iter()
        .filter_map(|content| match &content.body {
            Body::Media(media) if media.kind == MediaKind::Image => {
                Some(format!("an image ({})", media_type(media)))
            }
            _ => None,
        });
    images.collect::<Vec<_>>().join(" and ")
}

fn media_type(media: &Media) -> &str {
    let in_uri = match &media.source {
        MediaSource::Uri(uri) => uri
            .strip_prefix("data:")
            .and_then(|rest| rest.split([';', ',']).next()),
        MediaSource::Data(_) | MediaSource::File(_) => None,
    };
    let known = media.media_type.as_deref().or(in_uri);
    known.unwrap_or("of unknown type")
}

fn is_greeting(plain: &str) -> bool {
    const WORDS: &[&str] = &[
        "hi",
        "hello",
        "hey",
        "good morning",
        "good evening",
        "good day",
    ];
    let bare = plain.trim().trim_end_matches(['!', '.', '?', ' ']);
    WORDS.contains(&bare) || (count(bare) <= 3 && WORDS.iter().any(|it| starts(bare, it)))
}

fn starts(text: &str, word: &str) -> bool {
    text.strip_prefix(word)
        .is_some_and(|rest| rest.starts_with([' ', ',']))
}
