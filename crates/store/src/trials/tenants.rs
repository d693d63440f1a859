//! Mutants of SQL statements: in each, one of the conditions that keep tenants apart always holds.
//!
//! Nothing here lists statements. A mutant is named by the place that prepares a statement, a hash of
//! its text and the number of the condition, so that a new statement becomes a mutant by being
//! written. `THROUGHLINE_STATEMENTS` names a file to which every such statement is written when it is
//! first prepared; `THROUGHLINE_PLANTED=tenants/…` makes one mutant. `cargo xtask planted tenants`
//! uses both. [`literals`] finds the same conditions in source text, which shows the statements that
//! no test prepares.
//!
//! What counts as such a condition:
//!
//! - a column `tenant` that is compared with a parameter or with another `tenant`,
//! - the name by which a row of the table `tenant` is found,
//! - `a.thread=b.thread` between two tables: rows without a tenant of their own belong to the tenant
//!   of their thread,
//! - `thread=?` on the tables `queue` and `alias`, whose rows are found through a thread that was
//!   looked up by its tenant.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How the names of mutants begin.
pub(super) const PREFIX: &str = "tenants/";

/// Conditions that nothing has to miss: a part of the statement, with the condition in brackets, and
/// the reason.
pub const REVIEWED: &[(&str, &str)] = &[
    ("FROM run u WHERE [u.thread=t.thread]", HINT),
    ("FROM queue q WHERE [q.thread=t.thread]", HINT),
    ("FROM alias a WHERE [a.thread=t.thread])", HINT),
    ("FROM waiter w WHERE [w.thread=t.thread])", HINT),
];

const HINT: &str =
    "it only says whether to look further, and what looks further asks for the thread itself";

/// A condition that keeps tenants apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Where it stands in the statement.
    pub at: Range<usize>,
    /// What always holds and uses the same parameter.
    pub holds: String,
}

impl Condition {
    /// The statement on one line, with the condition in brackets.
    fn marked_in(&self, sql: &str) -> String {
        let (before, after) = (&sql[..self.at.start], &sql[self.at.end..]);
        on_one_line(&format!("{before}[{}]{after}", &sql[self.at.clone()]))
    }
}

/// A mutant, as its name says.
pub(super) struct Mutant {
    site: String,
    hash: u32,
    condition: usize,
}

impl Mutant {
    /// Read what follows the prefix of a name: `find.rs:108/5a3c11f0/1`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut parts = name.split('/');
        let mutant = Self {
            site: parts.next()?.to_owned(),
            hash: u32::from_str_radix(parts.next()?, 16).ok()?,
            condition: parts.next()?.parse().ok()?,
        };
        (parts.next().is_none() && mutant.condition > 0).then_some(mutant)
    }

    /// The statement without the condition, if it is this mutant's statement.
    pub(super) fn of(&self, sql: &str, place: &Location<'_>) -> Option<String> {
        if hash(sql) != self.hash || site(place) != self.site {
            return None;
        }
        let conditions = conditions(sql);
        let condition = conditions.get(self.condition - 1)?;
        let mut text = sql.to_owned();
        text.replace_range(condition.at.clone(), &condition.holds);
        Some(text)
    }
}

/// The file that prepares a statement, and the line.
fn site(place: &Location<'_>) -> String {
    let file = place.file();
    let file = file.rsplit_once("sqlite/").map_or(file, |(_, file)| file);
    format!("{}:{}", file.replace('/', "."), place.line())
}

/// FNV-1a: the names of mutants must be the same in another process.
fn hash(sql: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    sql.bytes().fold(0x811C_9DC5, step)
}

/// Where statements are written, and which were.
struct Record {
    path: String,
    seen: Mutex<HashSet<(String, u32)>>,
}

static RECORD: LazyLock<Option<Record>> = LazyLock::new(|| {
    let path = std::env::var("THROUGHLINE_STATEMENTS").ok()?;
    Some(Record {
        path,
        seen: Mutex::default(),
    })
});

/// Write down a statement with such conditions, a line for each: `find.rs:108/5a3c11f0/1 SELECT …`.
pub(super) fn record(sql: &str, place: &Location<'_>) {
    let Some(record) = &*RECORD else { return };
    let conditions = conditions(sql);
    if conditions.is_empty() {
        return;
    }
    let (site, hash) = (site(place), hash(sql));
    let mut seen = record.seen.lock().unwrap_or_else(PoisonError::into_inner);
    if !seen.insert((site.clone(), hash)) {
        return;
    }
    let mut lines = String::new();
    for (number, condition) in (1..).zip(&conditions) {
        let marked = condition.marked_in(sql);
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{PREFIX}{site}/{hash:08x}/{number} {marked}");
    }
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&record.path);
    let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        // A statement that is not written down would never be a mutant.
        super::plan::stop(&format!("THROUGHLINE_STATEMENTS={}: {error}", record.path));
    }
}

fn on_one_line(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The smallest part of a statement that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'s> {
    text: &'s str,
    at: usize,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.at + self.text.len()
    }

    fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    fn is_word(&self) -> bool {
        self.text
            .starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
    }

    fn is_parameter(&self) -> bool {
        self.text.starts_with('?')
    }
}

fn tokens(sql: &str) -> Vec<Token<'_>> {
    let bytes = sql.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let while_in = |from: usize, fits: fn(&u8) -> bool| {
            from + bytes[from..].iter().take_while(|byte| fits(byte)).count()
        };
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let end = match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'\'' => while_in(at + 1, |byte| *byte != b'\'') + 1,
            b'?' => while_in(at + 1, u8::is_ascii_digit),
            b'<' | b'>' | b'=' | b'!' | b'|' => {
                while_in(at + 1, |byte| matches!(byte, b'<' | b'>' | b'=' | b'|'))
            }
            byte if word(&byte) => while_in(at, word),
            // A whole character, whatever its length.
            _ => (at + 1..=bytes.len())
                .find(|end| sql.is_char_boundary(*end))
                .unwrap_or(bytes.len()),
        };
        let end = end.min(bytes.len());
        tokens.push(Token {
            text: &sql[at..end],
            at,
        });
        at = end;
    }
    tokens
}

/// A column, with the name of its table if it is given.
struct Column<'s> {
    table: Option<&'s str>,
    name: &'s str,
    /// How many tokens it takes.
    tokens: usize,
}

fn column<'s>(tokens: &[Token<'s>]) -> Option<Column<'s>> {
    let first = tokens.first().filter(|token| token.is_word())?;
    let qualified = tokens.get(1).is_some_and(|token| token.text == ".");
    if !qualified {
        return Some(Column {
            table: None,
            name: first.text,
            tokens: 1,
        });
    }
    let second = tokens.get(2).filter(|token| token.is_word())?;
    Some(Column {
        table: Some(first.text),
        name: second.text,
        tokens: 3,
    })
}

/// Whether a condition can begin after a token.
fn begins_after(before: Option<&Token<'_>>) -> bool {
    let words = ["WHERE", "AND", "OR", "ON", "NOT", "("];
    before.is_none_or(|token| words.iter().any(|word| token.is(word)))
}

/// The table that a column without a table's name belongs to, if the statement says so just before.
fn table_before<'s>(tokens: &[Token<'s>], at: usize) -> Option<&'s str> {
    let before = tokens[..at].iter().rposition(|token| token.is("FROM"))?;
    tokens.get(before + 1).map(|token| token.text)
}

/// The conditions of a statement that keep tenants apart.
pub fn conditions(sql: &str) -> Vec<Condition> {
    let tokens = tokens(sql);
    let found = (0..tokens.len()).filter_map(|at| condition(&tokens, at));
    found.collect()
}

fn condition(tokens: &[Token<'_>], at: usize) -> Option<Condition> {
    if !begins_after(at.checked_sub(1).map(|before| &tokens[before])) {
        return None;
    }
    let left = column(&tokens[at..])?;
    let equals = at + left.tokens;
    if tokens.get(equals)?.text != "=" {
        return None;
    }
    let right = &tokens[equals + 1..];
    let parameter = right.first().is_some_and(Token::is_parameter);
    let other = column(right);
    let found = match left.name {
        "tenant" => parameter || other.as_ref().is_some_and(|other| other.name == "tenant"),
        "name" => parameter && table_before(tokens, at) == Some("tenant"),
        "thread" if parameter => {
            let table = left.table.or_else(|| table_before(tokens, at));
            table.is_some_and(|table| table == "queue" || table == "alias")
        }
        "thread" => other
            .as_ref()
            .is_some_and(|other| other.name == "thread" && left.table.is_some()),
        _ => false,
    };
    if !found {
        return None;
    }
    let length = match (parameter, other) {
        (false, Some(other)) => other.tokens,
        _ => 1,
    };
    let operand = &right[..length];
    let (first, last) = (operand.first()?, operand.last()?);
    let text: String = operand.iter().map(|token| token.text).collect();
    Some(Condition {
        at: tokens[at].at..last.end().max(first.end()),
        holds: format!("{text} IS NOT NULL"),
    })
}

/// Such a condition in a literal of source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The line on which the literal begins.
    pub line: usize,
    /// The literal on one line, with the condition in brackets and `{}` for what a format inserts.
    pub text: String,
}

/// What was found in source text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Literals {
    /// The conditions.
    pub found: Vec<Written>,
    /// Literals that mention a tenant in a way that makes no mutant, with their lines: a comparison
    /// that [`conditions`] does not know would be tested by nothing.
    pub unclear: Vec<(usize, String)>,
}

/// The conditions in the literals of a source file. Tests at its end are left out.
pub fn literals(source: &str) -> Literals {
    let source = source
        .split_once("#[cfg(test)]\nmod tests {")
        .map_or(source, |(code, _)| code);
    let mut literals = Literals::default();
    for (at, text) in strings(source) {
        let text = on_one_line(&text);
        let line = 1 + source[..at].matches('\n').count();
        if !is_sql(&text) {
            continue;
        }
        if is_unclear(&text) {
            literals.unclear.push((line, text.clone()));
        }
        for condition in conditions(&text) {
            let text = with_holes(&condition.marked_in(&text));
            literals.found.push(Written { line, text });
        }
    }
    literals
}

fn is_sql(text: &str) -> bool {
    let words = ["SELECT", "UPDATE", "DELETE", "INSERT", "WHERE", "FROM"];
    let tokens = tokens(text);
    let has = |word: &&str| tokens.iter().any(|token| token.text == *word);
    words.iter().any(has) || has(&"AND") && text.contains('=')
}

/// Whether a statement says something of a tenant that is neither a condition, nor a comparison for
/// difference, nor the name of a table or of a column.
fn is_unclear(sql: &str) -> bool {
    let tokens = tokens(sql);
    let conditions = conditions(sql);
    let near = |at: usize, by: isize| at.checked_add_signed(by).and_then(|at| tokens.get(at));
    let mentions = (0..tokens.len()).filter(|at| tokens[*at].is("tenant"));
    let mut unclear = mentions.filter(|at| {
        let token = &tokens[*at];
        if conditions
            .iter()
            .any(|one| one.at.contains(&token.at) && one.at.end >= token.end())
        {
            return false;
        }
        // The first token of its column.
        let qualified = near(*at, -1).is_some_and(|token| token.text == ".");
        let first = if qualified { at - 2 } else { *at };
        let before = near(first, -1);
        let after = near(*at, 1);
        let is_table = before.is_some_and(|token| {
            let words = ["FROM", "JOIN", "INTO", "UPDATE", "TABLE"];
            words.iter().any(|word| token.is(word))
        });
        let in_list = before.is_none_or(|token| {
            let words = ["SELECT", "RETURNING", "BY", ",", "("];
            words.iter().any(|word| token.is(word))
        }) && after.is_none_or(|token| {
            let words = ["FROM", "INTEGER", ",", ")"];
            words.iter().any(|word| token.is(word))
        });
        let differs = |token: Option<&Token<'_>>| token.is_some_and(|token| token.text == "<>");
        !(is_table || in_list || differs(before) || differs(after))
    });
    unclear.next().is_some()
}

/// The text with `{}` for whatever a format inserts.
fn with_holes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        out.push_str("{}");
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// The string literals of Rust source, each with its place. Enough of the language for the files of
/// this crate: comments, characters, escapes and raw strings.
fn strings(source: &str) -> Vec<(usize, String)> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        let past = |mark: &str, from: usize| {
            source[from..]
                .find(mark)
                .map_or(bytes.len(), |place| from + place + mark.len())
        };
        at = match bytes[at] {
            b'/' if rest.starts_with("//") => past("\n", at),
            b'r' if rest.starts_with("r\"") => past("\"", at + 2),
            b'r' if rest.starts_with("r#\"") => past("\"#", at + 3),
            b'\'' if rest.starts_with("'\\") => past("'", at + 3),
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at + 3,
            b'"' => {
                let start = at + 1;
                let mut end = start;
                while end < bytes.len() && bytes[end] != b'"' {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                let end = end.min(bytes.len());
                found.push((start, source[start..end].replace("\\\n", "\n")));
                end + 1
            }
            _ => at + 1,
        };
        while at < bytes.len() && !source.is_char_boundary(at) {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests;
