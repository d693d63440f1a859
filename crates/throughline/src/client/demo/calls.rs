//! Parses the tools that a plain request asks for, and their arguments.

use throughline_model::ToolDef;
use throughline_model::json::{self, Node, ObjectWriter, Value};

/// The tools that a request names, in order, with their arguments as JSON.
pub(super) fn asked(text: &str, tools: &[ToolDef]) -> Vec<(String, String)> {
    let words = words(text);
    let is_question = text.trim_end().ends_with('?');
    let mut found: Vec<(&ToolDef, Vec<&Word>)> = Vec::new();
    for word in &words {
        let name = word.text.trim_matches(|c: char| !is_name(c));
        let is_named = |tool: &&ToolDef| {
            tool.name == name || (is_question && tool.name.strip_prefix("get_") == Some(name))
        };
        let named = tools
            .iter()
            .filter(|_| !word.is_pair && !name.is_empty())
            .find(is_named);
        match (named, found.last_mut()) {
            (Some(tool), _) => found.push((tool, Vec::new())),
            (None, Some((_, after))) => after.push(word),
            (None, None) => {}
        }
    }
    found
        .into_iter()
        .map(|(tool, after)| (tool.name.clone(), arguments(tool, &after)))
        .collect()
}

/// Like [`asked`]; if the request names no tool, the first one on offer.
pub(super) fn asked_or_first(text: &str, tools: &[ToolDef]) -> Vec<(String, String)> {
    let found = asked(text, tools);
    match tools.first() {
        Some(tool) if found.is_empty() => {
            let words = words(text);
            let all: Vec<&Word> = words.iter().collect();
            vec![(tool.name.clone(), arguments(tool, &all))]
        }
        _ => found,
    }
}

/// A word of a request; quoted text is one word.
struct Word {
    text: String,
    /// Whether the word is `key=value`.
    is_pair: bool,
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            // An apostrophe inside a word is not a quote.
            None if c == '"' || (c == '\'' && (word.is_empty() || word.ends_with('='))) => {
                quote = Some(c);
            }
            None if c.is_whitespace() => push(&mut words, &mut word),
            None => word.push(c),
        }
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<Word>, word: &mut String) {
    if !word.is_empty() {
        let text = std::mem::take(word);
        let is_pair = pair(&text).is_some();
        words.push(Word { text, is_pair });
    }
}

fn pair(word: &str) -> Option<(&str, &str)> {
    let (key, value) = word.split_once('=')?;
    (!key.is_empty() && key.chars().all(is_name)).then_some((key, value))
}

/// The arguments in the words after a tool's name: pairs, or else one text.
fn arguments(tool: &ToolDef, after: &[&Word]) -> String {
    let schema = tool.parameters.as_ref().map(json::RawJson::value);
    let properties = schema.as_ref().and_then(|schema| schema.get("properties"));
    let pairs: Vec<(&str, &str)> = after
        .iter()
        .filter(|word| word.is_pair)
        .filter_map(|word| pair(&word.text))
        .collect();
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let mut written: Vec<&str> = Vec::new();
    for (key, value) in &pairs {
        if written.contains(key) {
            continue;
        }
        written.push(key);
        let kind = properties.and_then(|properties| properties.get(key));
        object.raw(key, &coerced(value, kind));
    }
    if pairs.is_empty()
        && let Some((key, kind)) = only(schema.as_ref(), properties)
    {
        let text = plain(after);
        if !text.is_empty() {
            object.raw(&key, &coerced(&text, Some(kind)));
        }
    }
    object.end();
    out
}

/// The one required property of a tool, or its only property.
fn only<'v>(
    schema: Option<&Value<'v>>,
    properties: Option<&'v Value<'v>>,
) -> Option<(String, &'v Value<'v>)> {
    let required = schema
        .and_then(|schema| schema.get("required"))
        .and_then(|required| required.as_array().map(<[_]>::to_vec));
    let properties = properties?;
    match required.as_deref() {
        Some([one]) => {
            let key = one.as_str()?.into_owned();
            let kind = properties.get(&key)?;
            Some((key, kind))
        }
        _ => match properties.members() {
            [one] => Some((one.key.to_str().into_owned(), &one.value)),
            _ => None,
        },
    }
}

/// Joins words, without leading prepositions.
fn plain(after: &[&Word]) -> String {
    const LEADING: &[&str] = &["with", "for", "on", "of", "in", "at", "to", "and", "the"];
    let words: Vec<&str> = after.iter().map(|word| word.text.as_str()).collect();
    let leads = |word: &&str| LEADING.contains(&word.to_lowercase().as_str());
    let start = words.iter().position(leads).unwrap_or(0);
    let said: Vec<&str> = words[start..].iter().copied().skip_while(leads).collect();
    let text = said.join(" ");
    text.trim_start_matches([':', ' '])
        .trim_end_matches(['.', '!', '?'])
        .to_owned()
}

/// A value with the type of its schema; a string if it does not fit.
fn coerced(value: &str, schema: Option<&Value<'_>>) -> String {
    let trimmed = value.trim_end_matches([',', ';']);
    let is = |name: &str| {
        let kind = schema.and_then(|schema| schema.get("type"));
        kind.is_some_and(|kind| {
            kind.is_str(name)
                || kind
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind.is_str(name)))
        })
    };
    let parsed = json::parse(trimmed).ok();
    let fits = parsed.is_some_and(|found| match found.node() {
        Node::Number => is("number") || (is("integer") && !trimmed.contains(['.', 'e', 'E'])),
        Node::Bool(_) => is("boolean"),
        Node::Array(_) => is("array"),
        Node::Object(_) => is("object"),
        Node::Null | Node::String(_) => false,
    });
    let yes = matches!(trimmed, "yes" | "on");
    let no = matches!(trimmed, "no" | "off");
    if fits {
        trimmed.to_owned()
    } else if is("boolean") && (yes || no) {
        yes.to_string()
    } else {
        let mut out = String::new();
        json::push_string(&mut out, trimmed);
        out
    }
}
