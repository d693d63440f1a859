//! A frozen epoch: which part of the record a view replaces by digests, and by which.

use std::sync::Arc;

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Content, Message, Path, Role, Source};

use crate::report::{DigestCounts, Trigger};

/// The version of the stored form of epochs.
pub const EPOCH_VERSION: u64 = 1;

/// The version of the text of digests; a block made by another version stays as it is.
pub const DIGEST_VERSION: u64 = 3;

/// One message of a view that stands for a range of the record.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Block {
    /// The epoch that made it; later ones take it over as it is.
    pub epoch: u64,
    /// The first message that it covers.
    pub first: u64,
    /// The last message that it covers.
    pub last: u64,
    /// Messages of the record that stand before the text in full.
    pub kept: Vec<u64>,
    /// Results of these messages that are not shown.
    pub left_out: Vec<LeftOut>,
    /// Whether these messages show files that are being worked on: the next ledger chooses anew.
    pub working: bool,
    /// The digest of the covered messages; empty if there is nothing to digest.
    pub text: String,
    /// Units of the text.
    pub units: u64,
    /// Groups that it digests.
    pub groups: u64,
    /// Calls of these groups.
    pub calls: u64,
    /// Whether it is a ledger of older blocks.
    pub ledger: bool,
    /// Whether a model wrote it, beside digests.
    pub narrative: bool,
    /// What it still has, by class.
    pub facts: DigestCounts,
    /// Who asserted what it covers, in the words of [`Source`].
    pub sources: Vec<String>,
}

/// A message that is shown in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// The message.
    pub seq: u64,
    /// Units that each of its results may have, or each of its texts if it is a request.
    pub cap: u64,
}

/// A result that a group in full does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The message of the result.
    pub seq: u64,
    /// Which of its contents the result is, from zero.
    pub content: u64,
}

/// One compaction of one conversation: everything that a view needs beside the record.
///
/// A view is a function of the record and this value, so that two processes show the same bytes. An
/// epoch is never changed; the next one replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number in the conversation, from one.
    pub no: u64,
    /// The first message of the tail; everything before is covered by blocks.
    pub cut_seq: u64,
    /// The last message of the record when it was made. Results that came later for calls before
    /// the cut are quoted in the tail.
    pub upto_seq: u64,
    /// The blocks, oldest first.
    pub blocks: Vec<Arc<Block>>,
    /// Results of the tail that are shown in part.
    pub shortened: Vec<Shortened>,
    /// Requests that are shown in part, before the tail and in it.
    pub shortened_requests: Vec<Shortened>,
    /// Messages that were pinned by hand.
    pub pinned: Vec<u64>,
    /// The hash of the policy.
    pub policy_hash: String,
    /// The version of the digests.
    pub digest_version: u64,
    /// Tokens of the request before.
    pub tokens_before: u64,
    /// Tokens of the request after.
    pub tokens_after: u64,
    /// Units of tool history in the view when it was made, from which triggers are armed again.
    pub tool_units: u64,
    /// Messages in the view when it was made.
    pub messages: u64,
    /// BLAKE3 of the stored form of all messages before the tail.
    pub prefix: String,
    /// Why it was made.
    pub reason: Trigger,
}

impl Block {
    /// The block as a message of a view. It is never stored as text of the user or the model: its
    /// source marks it as a summary, and `meta` has what it covers.
    ///
    /// The role is the user's because system text has an authority that quoted tool output must not
    /// get, and because not every vendor has another role in the middle of a conversation.
    pub fn message(&self) -> Option<Message> {
        if self.text.is_empty() {
            return None;
        }
        let mut message = Message::new(Role::User, vec![Content::text(self.text.as_str())]);
        message.source = Some(Source::Summary);
        message.meta = Some(RawJson::object(|meta| {
            let mut summary = ObjectWriter::new(meta.key("summary"));
            summary.number("epoch", self.epoch);
            numbers(summary.key("covers"), [self.first, self.last]);
            strings(summary.key("sources"), &self.sources);
            summary.end();
        }));
        Some(message)
    }

    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object
            .number("epoch", self.epoch)
            .number("first", self.first)
            .number("last", self.last);
        numbers(object.key("kept"), self.kept.iter().copied());
        if !self.left_out.is_empty() {
            let pairs = self.left_out.iter().map(|one| [one.seq, one.content]);
            write_pairs(object.key("left_out"), pairs);
        }
        if self.working {
            object.bool("working", true);
        }
        object
            .str("text", &self.text)
            .number("units", self.units)
            .number("groups", self.groups)
            .number("calls", self.calls)
            .bool("ledger", self.ledger);
        if self.narrative {
            object.bool("narrative", true);
        }
        let facts = &self.facts;
        numbers(
            object.key("facts"),
            [
                facts.requests,
                facts.files_written,
                facts.failures,
                facts.calls,
                facts.names,
                facts.statements,
            ],
        );
        strings(object.key("sources"), &self.sources);
        object.end();
    }

    fn read(value: &Value<'_>, path: &Path<'_>) -> Result<Self, StoredError> {
        let mut fields = Fields::of(value, path)?;
        let facts = read_numbers(&mut fields, "facts", path)?;
        let fact = |place: usize| facts.get(place).copied().unwrap_or_default();
        Ok(Self {
            epoch: required(&mut fields, "epoch", path)?,
            first: required(&mut fields, "first", path)?,
            last: required(&mut fields, "last", path)?,
            kept: read_numbers(&mut fields, "kept", path)?,
            left_out: read_pairs(&mut fields, "left_out", path)?
                .into_iter()
                .map(|[seq, content]| LeftOut { seq, content })
                .collect(),
            working: fields
                .get("working")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            text: fields.required_str("text")?,
            units: fields.number("units")?.unwrap_or_default(),
            groups: fields.number("groups")?.unwrap_or_default(),
            calls: fields.number("calls")?.unwrap_or_default(),
            ledger: fields
                .get("ledger")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            narrative: fields
                .get("narrative")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            facts: DigestCounts {
                requests: fact(0),
                files_written: fact(1),
                failures: fact(2),
                calls: fact(3),
                names: fact(4),
                statements: fact(5),
            },
            sources: fields
                .get("sources")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .iter()
                .filter_map(|one| one.as_str().map(std::borrow::Cow::into_owned))
                .collect(),
        })
    }
}

impl Epoch {
    /// The stored form, versioned.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object
            .number("v", EPOCH_VERSION)
            .number("no", self.no)
            .number("cut_seq", self.cut_seq)
            .number("upto_seq", self.upto_seq);
        let mut blocks = ArrayWriter::new(object.key("blocks"));
        for block in &self.blocks {
            block.write(blocks.slot());
        }
        blocks.end();
        let pairs = |list: &[Shortened]| {
            list.iter()
                .map(|one| [one.seq, one.cap])
                .collect::<Vec<_>>()
        };
        write_pairs(object.key("shortened"), pairs(&self.shortened).into_iter());
        if !self.shortened_requests.is_empty() {
            let requests = pairs(&self.shortened_requests).into_iter();
            write_pairs(object.key("shortened_requests"), requests);
        }
        numbers(object.key("pinned"), self.pinned.iter().copied());
        object
            .str("policy_hash", &self.policy_hash)
            .number("digest_version", self.digest_version)
            .number("tokens_before", self.tokens_before)
            .number("tokens_after", self.tokens_after)
            .number("tool_units", self.tool_units)
            .number("messages", self.messages)
            .str("prefix", &self.prefix)
            .str("reason", self.reason.as_str());
        object.end();
        out
    }

    /// Read the stored form. Members that this version does not know are ignored: an epoch is
    /// replaced, never rewritten.
    pub fn from_json(text: &str) -> Result<Self, StoredError> {
        let value = json::parse(text)?;
        let path = Path::Root;
        let mut fields = Fields::of(&value, &path)?;
        let version = required(&mut fields, "v", &path)?;
        if version > EPOCH_VERSION {
            return Err(StoredError::Newer {
                path: path.to_string(),
                version,
            });
        }
        let here = path.key("blocks");
        let blocks = match fields.get("blocks") {
            None => Vec::new(),
            Some(list) => {
                let Some(list) = list.as_array() else {
                    return Err(corrupt(&here, "an array", list));
                };
                let mut blocks = Vec::with_capacity(list.len());
                for (place, block) in list.iter().enumerate() {
                    blocks.push(Arc::new(Block::read(block, &here.index(place))?));
                }
                blocks
            }
        };
        let mut shortened = |key| -> Result<Vec<Shortened>, StoredError> {
            let pairs = read_pairs(&mut fields, key, &path)?.into_iter();
            Ok(pairs.map(|[seq, cap]| Shortened { seq, cap }).collect())
        };
        let (shortened, shortened_requests) =
            (shortened("shortened")?, shortened("shortened_requests")?);
        let reason = fields.required_str("reason")?;
        Ok(Self {
            no: required(&mut fields, "no", &path)?,
            cut_seq: required(&mut fields, "cut_seq", &path)?,
            upto_seq: required(&mut fields, "upto_seq", &path)?,
            blocks,
            shortened,
            shortened_requests,
            pinned: read_numbers(&mut fields, "pinned", &path)?,
            policy_hash: fields.required_str("policy_hash")?,
            digest_version: required(&mut fields, "digest_version", &path)?,
            tokens_before: fields.number("tokens_before")?.unwrap_or_default(),
            tokens_after: fields.number("tokens_after")?.unwrap_or_default(),
            tool_units: fields.number("tool_units")?.unwrap_or_default(),
            messages: fields.number("messages")?.unwrap_or_default(),
            prefix: fields.required_str("prefix")?,
            // A reason of a later version is still a reason; the view does not depend on it.
            reason: Trigger::named(&reason).unwrap_or(Trigger::Asked),
        })
    }

    /// What all blocks have together.
    pub fn kept(&self) -> DigestCounts {
        self.blocks
            .iter()
            .fold(DigestCounts::default(), |sum, block| sum.plus(block.facts))
    }
}

fn numbers(out: &mut String, list: impl IntoIterator<Item = u64>) {
    let mut array = ArrayWriter::new(out);
    for number in list {
        array.raw(&number.to_string());
    }
    array.end();
}

fn write_pairs(out: &mut String, pairs: impl Iterator<Item = [u64; 2]>) {
    let mut array = ArrayWriter::new(out);
    for pair in pairs {
        numbers(array.slot(), pair);
    }
    array.end();
}

fn read_pairs(
    fields: &mut Fields<'_, '_>,
    key: &str,
    path: &Path<'_>,
) -> Result<Vec<[u64; 2]>, StoredError> {
    let pairs = fields.get(key).and_then(Value::as_array);
    let read = |pair: &Value<'_>| {
        let bad = || corrupt(&path.key(key), "a pair of numbers", pair);
        let Some([one, two]) = pair.as_array() else {
            return Err(bad());
        };
        match (one.as_u64(), two.as_u64()) {
            (Some(one), Some(two)) => Ok([one, two]),
            _ => Err(bad()),
        }
    };
    pairs.unwrap_or_default().iter().map(read).collect()
}

fn strings(out: &mut String, list: &[String]) {
    let mut array = ArrayWriter::new(out);
    for text in list {
        json::push_string(array.slot(), text);
    }
    array.end();
}

fn required(fields: &mut Fields<'_, '_>, key: &str, path: &Path<'_>) -> Result<u64, StoredError> {
    fields.number(key)?.ok_or_else(|| StoredError::Corrupt {
        path: path.key(key).to_string(),
        expected: "a whole number",
        found: "nothing".to_owned(),
    })
}

fn read_numbers(
    fields: &mut Fields<'_, '_>,
    key: &str,
    path: &Path<'_>,
) -> Result<Vec<u64>, StoredError> {
    let Some(value) = fields.get(key) else {
        return Ok(Vec::new());
    };
    let here = path.key(key);
    let Some(list) = value.as_array() else {
        return Err(corrupt(&here, "an array of whole numbers", value));
    };
    let read = |one: &Value<'_>| {
        one.as_u64()
            .ok_or_else(|| corrupt(&here, "a whole number", one))
    };
    list.iter().map(read).collect()
}

fn corrupt(path: &Path<'_>, expected: &'static str, found: &Value<'_>) -> StoredError {
    StoredError::Corrupt {
        path: path.to_string(),
        expected,
        found: found.kind().to_owned(),
    }
}
