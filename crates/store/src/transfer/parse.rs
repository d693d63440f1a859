//! Reading lines. The format is closed: what version 1 does not have is an error with its place,
//! never a guess and never left out.

use throughline_model::json::{self, JsonError, Value};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Message, Path, Source};

use super::Extent;
use super::format::{
    EndLine, FORMAT, Header, ItemLine, Line, NAME, NodeLine, ThreadLine, VERSION, What,
};
use super::write::{hex, item_kind, moved_by, run_kind};
use crate::{
    Alias, ItemKind, ItemRef, Mode, MovedBy, NewThread, Redaction, RunId, RunKind, RunState, State,
    ThreadId, rules,
};

/// Why a line cannot be read, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) column: u64,
    pub(super) path: String,
    pub(super) why: String,
}

impl Fault {
    pub(super) fn new(path: &str, why: impl Into<String>) -> Self {
        Self {
            column: 1,
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

impl From<StoredError> for Fault {
    fn from(error: StoredError) -> Self {
        match error {
            StoredError::Corrupt {
                path,
                expected,
                found,
            } => Self {
                column: 1,
                path,
                why: format!("expected {expected}, found {found}"),
            },
            StoredError::Newer { path, version } => Self {
                column: 1,
                path,
                why: format!("written as version {version}; use a newer program"),
            },
            other => Self::new("", other.to_string()),
        }
    }
}

fn not_json(error: &JsonError) -> Fault {
    Fault {
        column: error.column as u64,
        path: String::new(),
        why: format!("not JSON: {}", error.kind),
    }
}

/// How deep a line may be: a message of the usual depth, and the line around it.
fn limits() -> json::Limits {
    let usual = json::Limits::default();
    json::Limits {
        depth: usual.depth + 1,
        ..usual
    }
}

/// Read a line, without its newline.
pub(super) fn line(bytes: &[u8]) -> Result<Line, Fault> {
    let value = json::parse_bytes(bytes, limits()).map_err(|error| not_json(&error))?;
    read(&value).map_err(|fault| Fault {
        column: column(bytes, &value, &fault.path),
        ..fault
    })
}

fn read(value: &Value<'_>) -> Result<Line, Fault> {
    if value.as_object().is_none() {
        let why = format!(
            "expected an object, found {}; this is no {FORMAT}",
            value.kind()
        );
        return Err(Fault::new("", why));
    }
    if value.has_duplicate_keys() {
        return Err(Fault::new("", "a member stands there twice"));
    }
    let mut fields = Fields::of(value, &Path::Root)?;
    let Some(kind) = fields.str("type")? else {
        return Err(Fault::new("", format!("no \"type\"; this is no {FORMAT}")));
    };
    let line = match kind.as_str() {
        "header" => Line::Header(header(&mut fields)?),
        "thread" => Line::Thread(Box::new(thread(&mut fields)?)),
        "node" => Line::Node(Box::new(node(&mut fields)?)),
        "item" => Line::Item(Box::new(item(&mut fields)?)),
        "end" => Line::End(end(&mut fields)?),
        other => {
            return Err(Fault::new(
                "type",
                format!("unknown kind of line {other:?}"),
            ));
        }
    };
    nothing_else(fields, "")?;
    Ok(line)
}

/// Refuse unknown members.
fn nothing_else(fields: Fields<'_, '_>, at: &str) -> Result<(), Fault> {
    let rest = fields.rest();
    let Some((key, _)) = rest.as_json().and_then(|rest| rest.members().next()) else {
        return Ok(());
    };
    let path = match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    };
    Err(Fault::new(
        &path,
        format!("unknown member; {FORMAT} has none of this name"),
    ))
}

fn header(fields: &mut Fields<'_, '_>) -> Result<Header, Fault> {
    let format = fields.required_str("format")?;
    let written = format.strip_prefix(NAME);
    let known = (1..=VERSION).find(|known| written == Some(&known.to_string()));
    let Some(version) = known else {
        let newer =
            written.is_some_and(|word| word.parse().is_ok_and(|version: u32| version > VERSION));
        return Err(Fault::new(
            "format",
            if newer {
                format!("written as {format}; this program reads {FORMAT}, use a newer one")
            } else {
                format!("expected {FORMAT}, found {format:?}")
            },
        ));
    };
    let all = [Extent::Tree, Extent::Branch];
    Ok(Header {
        version,
        extent: word(fields, "extent", &all, |extent| extent.as_str())?,
    })
}

fn thread(fields: &mut Fields<'_, '_>) -> Result<ThreadLine, Fault> {
    let id: ThreadId = named(fields, "id")?.ok_or_else(|| fields.missing("id", "a thread id"))?;
    let aliases = fields.list("aliases", |value, path| {
        let mut fields = Fields::of(value, path)?;
        let alias = Alias::new(fields.required_str("kind")?, fields.required_str("name")?);
        if !fields.rest().is_empty() {
            return Err(StoredError::Corrupt {
                path: path.to_string(),
                expected: "kind and name",
                found: "other members".to_owned(),
            });
        }
        Ok(alias)
    })?;
    let all = [MovedBy::AnyRun, MovedBy::LeasedRuns];
    Ok(ThreadLine {
        thread: NewThread {
            id,
            aliases,
            title: fields.str("title")?,
            meta: fields.raw_object("meta")?,
            settings: fields.raw_object("settings")?,
            moved_by: word(fields, "moved_by", &all, |one| moved_by(*one))?,
            keep: fields.number("keep")?,
        },
        created: number(fields, "created")?,
        touched: number(fields, "touched")?,
        head: named(fields, "head")?,
        tokens: fields.number("tokens")?,
    })
}

fn node(fields: &mut Fields<'_, '_>) -> Result<NodeLine, Fault> {
    let state = match fields.get("state") {
        None => None,
        Some(value) => Some(State::from_json(value.raw()).map_err(|error| {
            let mut fault = Fault::from(error);
            fault.path = match fault.path.as_str() {
                "" | "state" => "state".to_owned(),
                inner => format!("state.{inner}"),
            };
            fault
        })?),
    };
    let kinds = [RunKind::Turn, RunKind::Append];
    let modes = [Mode::PerRun, Mode::PerCall];
    let ends = [RunState::Committed, RunState::Cancelled];
    Ok(NodeLine {
        node: named(fields, "node")?.ok_or_else(|| fields.missing("node", "a node id"))?,
        parent: named(fields, "parent")?,
        first: number(fields, "first")?,
        first_item: small(fields, "first_item")?,
        items: small(fields, "items")?,
        open: fields.flag("open")?,
        hidden: fields.flag("hidden")?,
        created: number(fields, "created")?,
        kind: word(fields, "kind", &kinds, |one| run_kind(*one))?,
        mode: word(fields, "mode", &modes, |one| one.as_str())?,
        ended: word(fields, "ended", &ends, |one| one.as_str())?,
        begun: number(fields, "begun")?,
        note: fields.raw_object("note")?,
        state,
    })
}

fn item(fields: &mut Fields<'_, '_>) -> Result<ItemLine, Fault> {
    let kinds = [ItemKind::Message, ItemKind::Part, ItemKind::Gap];
    let kind = word(fields, "kind", &kinds, |one| item_kind(*one))?;
    let tokens = match fields.get("tokens") {
        Some(_) if kind == ItemKind::Gap => {
            return Err(Fault::new("tokens", "a gap has nothing to count"));
        }
        Some(_) => Some(small(fields, "tokens")?),
        None => None,
    };
    let what = match (kind, fields.get("redacted")) {
        (ItemKind::Gap, None) => What::Gap,
        (ItemKind::Gap, Some(_)) => {
            return Err(Fault::new("redacted", "a gap has nothing to redact"));
        }
        (kind, Some(redacted)) => {
            let path = Path::Root.key("redacted");
            let mut inner = Fields::of(redacted, &path)?;
            let redaction = Redaction {
                by: inner.required_str("by")?,
                at: inner
                    .number("at")?
                    .ok_or_else(|| inner.missing("at", "a whole number"))?,
                left: inner.raw("left"),
            };
            let left = redaction.left.as_ref().map(rules::redact::is_left);
            if !left.transpose()?.unwrap_or(true) {
                let why = "it holds more than the marks of a redaction";
                return Err(Fault::new("redacted.left", why));
            }
            nothing_else(inner, "redacted")?;
            What::Redacted {
                kind,
                source: fields.str("source")?.map(|word| Source::named(&word)),
                redaction,
            }
        }
        (kind, None) => {
            let Some(message) = fields.get("message") else {
                return Err(fields.missing("message", "a stored message").into());
            };
            What::Message {
                kind,
                message: Box::new(Message::from_value(message, &Path::Root.key("message"))?),
                again: again(fields)?,
            }
        }
    };
    Ok(ItemLine {
        no: small(fields, "no")?,
        position: number(fields, "position")?,
        tokens,
        what,
    })
}

fn again(fields: &mut Fields<'_, '_>) -> Result<Option<ItemRef>, Fault> {
    let Some(value) = fields.get("again") else {
        return Ok(None);
    };
    let path = Path::Root.key("again");
    let mut inner = Fields::of(value, &path)?;
    let run: RunId = inner
        .required_str("run")?
        .parse()
        .map_err(|error: crate::BadId| Fault::new("again.run", error.to_string()))?;
    let no = inner
        .number("no")?
        .ok_or_else(|| inner.missing("no", "a whole number"))?;
    let no = u32::try_from(no).map_err(|_| Fault::new("again.no", "too large"))?;
    nothing_else(inner, "again")?;
    Ok(Some(ItemRef { run, no }))
}

fn end(fields: &mut Fields<'_, '_>) -> Result<EndLine, Fault> {
    let text = fields.required_str("digest")?;
    // In one spelling only: a changed bit could otherwise make another of it.
    let digest = u128::from_str_radix(&text, 16)
        .ok()
        .filter(|digest| hex(&digest.to_be_bytes()) == text)
        .ok_or_else(|| Fault::new("digest", "expected 32 hex digits"))?;
    Ok(EndLine {
        nodes: number(fields, "nodes")?,
        items: number(fields, "items")?,
        digest: digest.to_be_bytes(),
    })
}

fn number(fields: &mut Fields<'_, '_>, key: &str) -> Result<u64, Fault> {
    let found = fields.number(key)?;
    Ok(found.ok_or_else(|| fields.missing(key, "a whole number"))?)
}

fn small(fields: &mut Fields<'_, '_>, key: &str) -> Result<u32, Fault> {
    let number = number(fields, key)?;
    u32::try_from(number).map_err(|_| Fault::new(key, format!("{number} is too large")))
}

/// One of some words.
fn word<T: Copy>(
    fields: &mut Fields<'_, '_>,
    key: &str,
    all: &[T],
    name: impl Fn(&T) -> &'static str,
) -> Result<T, Fault> {
    let found = fields.required_str(key)?;
    let known = all.iter().find(|one| name(one) == found);
    known.copied().ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(&name).collect();
        Fault::new(
            key,
            format!("expected {}, found {found:?}", words.join(" or ")),
        )
    })
}

fn named<T: std::str::FromStr<Err = crate::BadId>>(
    fields: &mut Fields<'_, '_>,
    key: &str,
) -> Result<Option<T>, Fault> {
    let Some(text) = fields.str(key)? else {
        return Ok(None);
    };
    let id = text
        .parse()
        .map_err(|error: crate::BadId| Fault::new(key, error.to_string()))?;
    Ok(Some(id))
}

/// The column of a path in a line that was read before.
pub(super) fn place(bytes: &[u8], path: &str) -> u64 {
    json::parse_bytes(bytes, limits()).map_or(1, |value| column(bytes, &value, path))
}

/// The column where the value at a path stands, or the nearest one around it.
fn column(line: &[u8], root: &Value<'_>, path: &str) -> u64 {
    let mut value = root;
    for segment in path.split(['.', '[']).filter(|segment| !segment.is_empty()) {
        let inner = match segment.strip_suffix(']') {
            Some(index) => index
                .parse::<usize>()
                .ok()
                .and_then(|index| value.as_array()?.get(index)),
            None => value.get(segment),
        };
        let Some(inner) = inner else {
            break;
        };
        value = inner;
    }
    // Values borrow from the line.
    let offset = (value.raw().as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let before = line.get(..offset).unwrap_or_default();
    // Continuation bytes do not start a character.
    1 + before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() as u64
}
