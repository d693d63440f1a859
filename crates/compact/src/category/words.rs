//! Names of tools, word by word.

use super::kind::Category;

/// Words for what a tool does, the stronger first: a tool that reads and writes counts as writing.
const WORDS: &[(Category, &[&str])] = &[
    (
        Category::Plan,
        &["todo", "todos", "plan", "tasks", "checklist"],
    ),
    (
        Category::Write,
        &[
            "write", "edit", "create", "update", "delete", "remove", "rename", "move", "insert",
            "replace", "patch", "apply", "append", "save", "put", "set", "add", "upload", "commit",
            "book", "cancel", "send", "modify", "mkdir",
        ],
    ),
    (
        Category::Execute,
        &[
            "run", "exec", "execute", "bash", "shell", "terminal", "command", "cmd", "eval",
            "python", "test", "build", "invoke",
        ],
    ),
    (
        Category::Query,
        &[
            "search",
            "find",
            "grep",
            "glob",
            "query",
            "lookup",
            "usages",
            "references",
            "recall",
        ],
    ),
    (
        Category::Read,
        &[
            "read", "open", "view", "cat", "show", "list", "ls", "dir", "fetch", "load", "get",
            "download", "browse", "tree",
        ],
    ),
    (
        Category::Media,
        &["screenshot", "image", "photo", "picture", "audio", "speak"],
    ),
];

/// The category by the words of a name.
pub(super) fn by_words(name: &str) -> Option<Category> {
    let words = split(name);
    WORDS
        .iter()
        .find(|(_, known)| words.iter().any(|word| known.contains(&word.as_str())))
        .map(|(category, _)| *category)
}

/// The words of a name, in lower case: at `_`, `-`, other signs and where upper case begins.
fn split(name: &str) -> Vec<String> {
    // A name is a word or two; a longer text is not a name.
    const LONGEST: usize = 128;
    let mut words = vec![String::new()];
    let mut lower = false;
    for letter in name.chars().take(LONGEST) {
        if !letter.is_ascii_alphanumeric() || (lower && letter.is_ascii_uppercase()) {
            words.push(String::new());
        }
        lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if letter.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a name fits a pattern in which `*` stands for any text. Linear for each star.
pub(super) fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}
