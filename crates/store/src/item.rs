//! Items: what is stored of a message, and messages as they are read back.

mod body;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use throughline_model::json::RawJson;
use throughline_model::stored::StoredError;
use throughline_model::{Body, Content, Message, Role, Source, tokens};

use crate::trials;
use crate::{DamageSite, Error, ItemNo, ItemRef, Millis, Position};

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A message, or the first result of a tool message.
    Message,
    /// One more result of the tool message that the item before belongs to.
    Part,
    /// A place that was kept for a result which had not come when the node was published. It has
    /// a position and says nothing.
    Gap,
}

impl ItemKind {
    /// The number under which it is stored.
    pub const fn code(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Part => 2,
            Self::Gap => 3,
        }
    }

    /// The kind with a number.
    pub const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Message),
            2 => Some(Self::Part),
            3 => Some(Self::Gap),
            _ => None,
        }
    }
}

/// An item that is to be stored. It is serialised and its tokens are counted here, on the caller's
/// task; a store's writer only puts bytes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewItem {
    /// Something new.
    Content(ItemContent),
    /// Something that is stored already and is said here again, as unsent results are.
    Repeat(ItemRef),
}

/// A new item's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemContent {
    pub(crate) kind: ItemKind,
    /// See [`source_code`].
    pub(crate) source: u8,
    pub(crate) tokens: u32,
    pub(crate) body: Arc<[u8]>,
}

impl ItemContent {
    /// What it is.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// Tokens that it counts as, see [`throughline_model::tokens`]. Engines store the count with the
    /// item and add it to the total of its node.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// What the items of a message hold: one for each result of a tool message, one for any other
    /// message. Together they count as the message does.
    pub fn of(message: &Message) -> Vec<Self> {
        if !is_round(message) {
            return vec![Self::new(ItemKind::Message, message)];
        }
        let source = source_code(message.source.as_ref());
        let result = |(place, content): (usize, &Content)| {
            // The first result carries what the message says of itself; the others only themselves.
            let (kind, bare) = match place {
                0 => (ItemKind::Message, message.clone()),
                _ => (ItemKind::Part, Message::new(Role::Tool, Vec::new())),
            };
            let one = Message {
                contents: vec![content.clone()],
                ..bare
            };
            Self {
                source,
                ..Self::new(kind, &one)
            }
        };
        message.contents.iter().enumerate().map(result).collect()
    }

    fn new(kind: ItemKind, message: &Message) -> Self {
        Self::counting(kind, message, counted(kind, message))
    }

    /// A message of another store, which keeps the count that it has there.
    pub(crate) fn counting(kind: ItemKind, message: &Message, tokens: u32) -> Self {
        Self {
            kind,
            source: source_code(message.source.as_ref()),
            tokens,
            body: body::pack(message).into(),
        }
    }

    /// What is left of something whose body was removed elsewhere, with the count that it had.
    pub(crate) fn bodiless(kind: ItemKind, source: Option<&Source>, tokens: u32) -> Self {
        Self {
            kind,
            source: source_code(source),
            tokens,
            body: Arc::from([].as_slice()),
        }
    }

    /// The same without its bytes, as a redaction leaves it.
    pub fn emptied(mut self) -> Self {
        self.body = Arc::from([].as_slice());
        self
    }

    /// Its stored bytes.
    pub fn body(&self) -> &Arc<[u8]> {
        &self.body
    }
}

/// The known sources in the order of their stored numbers; 0 stands for none, or for a word of a
/// later version, which the body has.
const SOURCES: [Source; 8] = [
    Source::Caller,
    Source::Model,
    Source::Tool,
    Source::RemoteAgent,
    Source::ContextProvider,
    Source::Import,
    Source::Summary,
    Source::Repair,
];

fn source_code(source: Option<&Source>) -> u8 {
    let place = source.and_then(|source| SOURCES.iter().position(|known| known == source));
    place.map_or(0, |place| u8::try_from(place + 1).unwrap_or(0))
}

fn source_of(code: u8) -> Option<Source> {
    SOURCES.get(usize::from(code).checked_sub(1)?).cloned()
}

impl NewItem {
    /// The items of messages: one for each message, one for each result of a tool message.
    ///
    /// ```
    /// use throughline_model::Message;
    /// use throughline_store::NewItem;
    ///
    /// assert_eq!(NewItem::of(&[Message::user("hello")]).len(), 1);
    /// ```
    pub fn of(messages: &[Message]) -> Vec<Self> {
        let mut items = Vec::with_capacity(messages.len());
        for message in messages {
            Self::push(&mut items, message);
        }
        items
    }

    /// How many items [`NewItem::push`] makes of a message.
    ///
    /// ```
    /// use throughline_model::Message;
    /// use throughline_store::NewItem;
    ///
    /// assert_eq!(NewItem::count(&Message::user("hello")), 1);
    /// ```
    pub fn count(message: &Message) -> u32 {
        if is_round(message) {
            u32::try_from(message.contents.len()).unwrap_or(u32::MAX)
        } else {
            1
        }
    }

    /// Append the items of a message. Together they count as the message does.
    pub fn push(items: &mut Vec<Self>, message: &Message) {
        items.extend(ItemContent::of(message).into_iter().map(Self::Content));
    }

    /// The one item of a message, whatever it holds.
    pub fn whole(message: &Message) -> Self {
        Self::Content(ItemContent::new(ItemKind::Message, message))
    }

    /// A result that joins the tool message before it.
    pub fn part(message: &Message) -> Self {
        Self::Content(ItemContent::new(ItemKind::Part, message))
    }
}

/// Tokens that a message counts as when it is stored as an item of this kind. What frames a message
/// is counted with its first item, so that items add up to the message that they are read as.
pub(crate) fn counted(kind: ItemKind, message: &Message) -> u32 {
    match kind {
        ItemKind::Message => tokens::units(message),
        ItemKind::Part if trials::planted("parts-uncounted") => 0,
        ItemKind::Part => tokens::contents_units(&message.contents),
        ItemKind::Gap => 0,
    }
}

/// Whether each content of a message is an item: all of them are results.
fn is_round(message: &Message) -> bool {
    message.role == Role::Tool
        && message.contents.len() > 1
        && message
            .contents
            .iter()
            .all(|content| matches!(content.body, Body::ToolResult(_)))
}

/// What is left of an item whose body was removed on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// Who asked for it.
    pub by: String,
    /// When.
    pub at: Millis,
    /// What is left of the message, in its stored form: marks in place of contents, and the ids that pair
    /// calls with results. `None` if an earlier version removed it, which left nothing.
    pub left: Option<RawJson>,
}

/// The role of a message of which nothing is left.
const NOTHING_LEFT: &str = "redacted";

fn is_nothing_left(role: &Role) -> bool {
    matches!(role, Role::Other(role) if &**role == NOTHING_LEFT)
}

/// A stored item as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where it is stored.
    pub at: ItemRef,
    /// If it says again what is stored elsewhere: where.
    pub again: Option<ItemRef>,
    /// What it is.
    pub kind: ItemKind,
    /// Tokens that it counts as.
    pub tokens: u32,
    /// Its bytes; or who removed them.
    pub body: Result<Arc<[u8]>, Redaction>,
    /// See [`source_code`].
    pub(crate) source: u8,
}

/// A message as it is read from a thread or a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was said. Its id is set. Empty if it was redacted.
    pub message: Message,
    /// Where its first item stands on the branch; 0 for what is in the journal only.
    pub first: Position,
    /// Where its last item stands.
    pub last: Position,
    /// Where its first item is stored.
    pub at: ItemRef,
    /// The numbers of its further items, in the same run; see [`Entry::item_refs`]. They need not
    /// follow each other: where a result is missing, there is a hole.
    pub parts: Vec<ItemNo>,
    /// Tokens that it counts as.
    pub tokens: u32,
    /// Who removed its content, if it was redacted.
    pub redacted: Option<Redaction>,
}

impl Entry {
    /// Where its items are stored, in their order.
    pub fn item_refs(&self) -> impl Iterator<Item = ItemRef> + '_ {
        let numbers = std::iter::once(self.at.no).chain(self.parts.iter().copied());
        let run = self.at.run;
        numbers.map(move |no| ItemRef { run, no })
    }
}

impl Item {
    /// Who asserted it.
    pub fn source(&self) -> Option<Source> {
        source_of(self.source)
    }

    /// Read the message in it.
    pub fn message(&self) -> Result<Message, StoredError> {
        let mut message = match &self.body {
            Ok(body) => body::unpack(body)?,
            Err(Redaction {
                left: Some(left), ..
            }) => Message::from_json(left.get())?,
            Err(_) => Message::new(Role::Other(NOTHING_LEFT.into()), Vec::new()),
        };
        if let Some(source) = self.source() {
            message.source = Some(source);
        }
        Ok(message)
    }
}

/// Put items together to messages: parts join the message before, gaps say nothing. `first` is
/// the position of the first item, 0 if they have none.
pub fn entries(items: &[Item], first: Position) -> Result<Vec<Entry>, StoredError> {
    assemble(items, first).map_err(|(_, error)| error)
}

/// The same; damage in an item is located.
pub(crate) fn located(items: &[Item], first: Position) -> crate::Result<Vec<Entry>> {
    assemble(items, first).map_err(|(place, error)| {
        let site = items.get(place).map(|item| DamageSite::from(item.at));
        let damage = Error::corrupt(site.unwrap_or_default(), error.to_string());
        match first {
            0 => damage,
            first => damage.at_position(first + place as u64),
        }
    })
}

/// Messages out of items; or the place in the list of one that cannot be read, and why.
fn assemble(items: &[Item], first: Position) -> Result<Vec<Entry>, (usize, StoredError)> {
    let mut entries: Vec<Entry> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let position = match first {
            0 => 0,
            first => first + place as u64,
        };
        // A part joins a message of its own run only: a page may have ended with the message
        // before. After a gap in the first place of a round, that one is the model's.
        let round = entries.last_mut().filter(|before| {
            before.at.run == item.at.run
                && (before.message.role == Role::Tool || is_nothing_left(&before.message.role))
        });
        match (item.kind, round) {
            (ItemKind::Gap, _) => {}
            (ItemKind::Part, Some(before)) => {
                let part = item.message().map_err(|error| (place, error))?;
                before.message.contents.extend(part.contents);
                before.last = position;
                before.parts.push(item.at.no);
                before.tokens = before.tokens.saturating_add(item.tokens);
                if let Err(redaction) = &item.body {
                    before.redacted = Some(redaction.clone());
                }
            }
            (ItemKind::Part | ItemKind::Message, _) => {
                let mut message = item.message().map_err(|error| (place, error))?;
                if message.id.is_none() {
                    message.id = Some(item.again.unwrap_or(item.at).message_id());
                }
                entries.push(Entry {
                    message,
                    first: position,
                    last: position,
                    at: item.at,
                    parts: Vec::new(),
                    tokens: item.tokens,
                    redacted: item.body.as_ref().err().cloned(),
                });
            }
        }
    }
    Ok(entries)
}
