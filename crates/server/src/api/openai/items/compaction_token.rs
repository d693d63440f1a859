//! Compaction tokens: the `encrypted_content` of a `compaction` item, a compacted conversation that the
//! client stores.
//!
//! It is `tlc1.`, base 64 of an object, a dot and a seal in hexadecimal digits. The seal is the
//! store's, for one tenant: a token that was changed or made elsewhere does not open. It is signed, not
//! encrypted: its holder may read it, as the client that asked for it could before.
//!
//! A string that does not begin like ours is another's and is left as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throughline_model::json::{
    ArrayWriter, Limits, ObjectWriter, RawJson, Value, parse_with, push_string,
};
use throughline_model::{Content, Message, Role, Source};

/// How every token begins, before the number of its version.
const PREFIX: &str = "tlc";

/// The version that is written.
const VERSION: &str = "1";

/// What seals of tokens are for.
pub(crate) const PURPOSE: &str = "compaction item";

/// The longest token, in characters, as in OpenAI's description.
pub(crate) const MAX_LENGTH: usize = 20_971_520;

/// Why a token cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCompactionToken {
    /// It was cut or changed on the way.
    #[error("it is damaged")]
    Damaged,
    /// A later version wrote it.
    #[error("a newer version wrote it")]
    Newer,
}

/// A compacted conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionToken {
    /// What the messages were about.
    pub text: String,
    /// Who asserted what it stands for.
    pub sources: Vec<String>,
    /// The response up to which it stands for a chain.
    pub of: Option<String>,
}

/// A token that a client sent, decoded; its signature is still to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedToken {
    /// What is in it.
    pub content: CompactionToken,
    /// The seal that it came with.
    pub seal: [u8; 16],
}

impl CompactionToken {
    /// What is sealed: the same for the same.
    pub fn bytes(&self) -> RawJson {
        RawJson::object(|object| self.write(object))
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        object.str("text", &self.text);
        let mut sources = ArrayWriter::new(object.key("sources"));
        for source in &self.sources {
            push_string(sources.slot(), source);
        }
        sources.end();
        if let Some(of) = &self.of {
            object.str("of", of);
        }
    }

    fn read(value: &Value<'_>) -> Option<Self> {
        let text = |value: &Value<'_>| Some(value.as_str()?.into_owned());
        let sources = value.get("sources")?.as_array()?.iter();
        Some(Self {
            text: text(value.get("text")?)?,
            sources: sources.map(text).collect::<Option<_>>()?,
            of: match value.get("of") {
                Some(of) => Some(text(of)?),
                None => None,
            },
        })
    }

    /// The item that a client carries.
    pub fn item(&self, id: &str, seal: &[u8; 16]) -> RawJson {
        let bytes = STANDARD.encode(self.bytes().get());
        let sealed = format!("{PREFIX}{VERSION}.{bytes}.{}", to_hex(seal));
        RawJson::object(|object| {
            object
                .str("id", id)
                .str("type", "compaction")
                .str("encrypted_content", &sealed);
        })
    }

    /// Whether a string in `encrypted_content` is one of ours.
    pub fn is_ours(sealed: &str) -> bool {
        open(sealed).is_some()
    }

    /// Whether a message of a history is what a token with this seal became.
    pub fn produced(message: &Message, seal: &[u8; 16]) -> bool {
        stored_token(message).is_some_and(|(_, known, _)| known == *seal)
    }

    /// The id of its item: the same for the same.
    pub fn id(seal: &[u8; 16]) -> String {
        format!("cmp_{}", to_hex(seal))
    }

    /// The message that it becomes in a history. It has no speaker: its source says that it is a
    /// summary. The role is the user's, because no vendor has a better one for what it has no word
    /// for, and because system text has an authority that quoted output must not get.
    pub fn message(&self, id: &str, seal: &[u8; 16]) -> Message {
        let mut message = Message::new(Role::User, vec![Content::text(self.text.as_str())]);
        message.source = Some(Source::Summary);
        message.meta = Some(RawJson::object(|meta| {
            let mut summary = ObjectWriter::new(meta.key("summary"));
            let rest = Self {
                text: String::new(),
                ..self.clone()
            };
            summary.members_of(rest.bytes().without(|key| key == "text").get());
            summary.str("item", id).str("seal", &to_hex(seal));
            summary.end();
        }));
        message
    }
}

/// The item that a message of a history came as, and its id.
pub(crate) fn item_of(message: &Message) -> Option<(String, RawJson)> {
    let (id, seal, rest) = stored_token(message)?;
    let compaction_token = CompactionToken {
        text: message.text(),
        ..rest
    };
    let item = compaction_token.item(&id, &seal);
    Some((id, item))
}

/// What a message keeps of its token: id, seal, and all but the text.
fn stored_token(message: &Message) -> Option<(String, [u8; 16], CompactionToken)> {
    if message.source != Some(Source::Summary) {
        return None;
    }
    let meta = message.meta.as_ref()?.value();
    let summary = meta.get("summary")?;
    let id = summary.get("item")?.as_str()?.into_owned();
    let seal = seal_from_hex(&summary.get("seal")?.as_str()?)?;
    let known = RawJson::object(|object| {
        object
            .members_of(RawJson::of(summary).get())
            .str("text", "");
    });
    Some((id, seal, CompactionToken::read(&known.value())?))
}

/// Decode a token; `None` if the string is not one of ours. The caller still has to check the
/// seal.
pub(crate) fn open(sealed: &str) -> Option<Result<OpenedToken, BadCompactionToken>> {
    let rest = sealed.strip_prefix(PREFIX)?;
    let (version, rest) = rest.split_once('.')?;
    if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match version == VERSION {
        true => read(rest).ok_or(BadCompactionToken::Damaged),
        false => Err(BadCompactionToken::Newer),
    })
}

fn read(rest: &str) -> Option<OpenedToken> {
    let (bytes, seal) = rest.rsplit_once('.')?;
    let bytes = String::from_utf8(STANDARD.decode(bytes).ok()?).ok()?;
    let value = parse_with(&bytes, Limits::default()).ok()?;
    let compaction_token = CompactionToken::read(&value)?;
    let seal = seal_from_hex(seal)?;
    // One token, one spelling: what is sealed is what was written.
    (compaction_token.bytes().get() == bytes).then_some(OpenedToken {
        content: compaction_token,
        seal,
    })
}

fn to_hex(seal: &[u8; 16]) -> String {
    seal.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seal_from_hex(text: &str) -> Option<[u8; 16]> {
    let digits = text.as_bytes();
    if digits.len() != 32 || digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let mut seal = [0; 16];
    for (byte, pair) in seal.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(seal)
}

#[cfg(test)]
mod tests {
    use super::{
        BadCompactionToken, CompactionToken, Message, OpenedToken, Source, Value, item_of, open,
    };

    fn compaction_token() -> CompactionToken {
        CompactionToken {
            text: "[Earlier: Read /src/pier.rs lines 1-9 (9 lines) #2]".to_owned(),
            sources: vec!["model".to_owned(), "tool".to_owned()],
            of: Some("resp_1".to_owned()),
        }
    }

    fn sealed(compaction_token: &CompactionToken) -> String {
        let item = compaction_token.item("cmp_1", &[7; 16]);
        let value = item.value();
        let sealed = value.get("encrypted_content").and_then(Value::as_str);
        sealed.unwrap().into_owned()
    }

    #[test]
    fn what_is_sealed_comes_back_exactly() {
        for of in [None, Some("resp_1".to_owned())] {
            let compaction_token = CompactionToken {
                of,
                ..compaction_token()
            };
            let token = OpenedToken {
                content: compaction_token.clone(),
                seal: [7; 16],
            };
            assert_eq!(open(&sealed(&compaction_token)), Some(Ok(token)));
        }
    }

    #[test]
    fn the_strings_of_others_are_left_alone() {
        for foreign in [
            "",
            "gAAAAABpM0Yj-",
            "tlc",
            "tlc1",
            "tlcx.a.b",
            "tlc.a.b",
            "TLC1.a.b",
        ] {
            assert_eq!(open(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_damaged_token_is_refused_wherever_it_was_changed() {
        let sealed = sealed(&compaction_token());
        for place in "tlc1.".len()..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            let opened = open(&changed).unwrap();
            // What can still be read is other than what was sealed.
            if let Ok(token) = opened {
                assert!(token.content != compaction_token() || token.seal != [7; 16]);
            }
        }
        for place in "tlc1.".len()..sealed.len() {
            assert_eq!(
                open(&sealed[..place]),
                Some(Err(BadCompactionToken::Damaged))
            );
        }
        assert_eq!(open("tlc2.xyz"), Some(Err(BadCompactionToken::Newer)));
    }

    #[test]
    fn b172_its_message_is_nobodys_speech_and_knows_where_it_comes_from() {
        let message = compaction_token().message("cmp_1", &[7; 16]);
        assert_eq!(message.source, Some(Source::Summary));
        assert_eq!(message.text(), compaction_token().text);
        let stored = Message::from_json(&message.to_json()).unwrap();
        let (id, item) = item_of(&stored).unwrap();
        assert_eq!(
            (id.as_str(), item),
            ("cmp_1", compaction_token().item("cmp_1", &[7; 16]))
        );
        assert!(
            CompactionToken::produced(&stored, &[7; 16])
                && !CompactionToken::produced(&stored, &[8; 16])
        );
        let mut claimed = message;
        claimed.source = Some(Source::Caller);
        assert_eq!(item_of(&claimed), None);
    }
}
