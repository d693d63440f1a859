//! Type names that are used for several types of one crate.

use std::collections::BTreeMap;

use super::Violation;
use super::code::{line_at, words};
use super::files::Source;
use super::known::Excess;

/// How many types of a crate may share a name.
const MOST: usize = 2;

/// Folders whose types mirror each other on purpose: every vendor has its `Request`, every engine its `Reader`.
const MIRRORED: &[&str] = &[
    "crates/store/src/engines/",
    "crates/wire/src/anthropic/",
    "crates/wire/src/foundry/",
    "crates/wire/src/gemini/",
    "crates/wire/src/gemini_interactions/",
    "crates/wire/src/openai_chat/",
    "crates/wire/src/openai_responses/",
];

/// `code` has the files with their comments and literals blanked out.
pub(super) fn check(code: &[(&Source, String)]) -> Vec<Excess> {
    let mut places: BTreeMap<(&str, &str), Vec<(&str, usize)>> = BTreeMap::new();
    for (source, code) in code {
        let Some(folder) = crate_of(&source.path) else {
            continue;
        };
        for (at, name) in types(code) {
            let place = (source.path.as_str(), line_at(code, at));
            places.entry((folder, name)).or_default().push(place);
        }
    }
    let excess = |((folder, name), places): ((&str, &str), Vec<(&str, usize)>)| {
        let (file, line) = *places.last()?;
        let count = places.len();
        let others: Vec<String> = places[..count - 1]
            .iter()
            .map(|(file, line)| format!("{file}:{line}"))
            .collect();
        (count > MOST).then(|| Excess {
            rule: "type-names",
            subject: format!("{folder} {name}"),
            count,
            violation: Violation::new(
                file,
                line,
                format!("{count} types of {folder} are called {name}"),
                format!(
                    "give them names that tell them apart; see {}",
                    others.join(", ")
                ),
            ),
        })
    };
    places.into_iter().filter_map(excess).collect()
}

/// The folder of the crate that a file belongs to; none for tests and for what mirrors on purpose.
fn crate_of(path: &str) -> Option<&str> {
    let (folder, rest) = match path.strip_prefix("crates/") {
        Some(rest) => {
            let end = "crates/".len() + rest.find('/')?;
            (&path[..end], &path[end + 1..])
        }
        None => ("xtask", path.strip_prefix("xtask/")?),
    };
    let is_test = rest.ends_with("/tests.rs") || rest.split('/').any(|part| part == "tests");
    let is_mirrored = MIRRORED.iter().any(|folder| path.starts_with(folder));
    (rest.starts_with("src/") && !is_test && !is_mirrored).then_some(folder)
}

/// The types that a file declares, with their places. An associated type is not one.
fn types(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut depth = 0_i32;
    let mut before = 0;
    let mut words = words(code).peekable();
    while let Some((at, word)) = words.next() {
        for byte in code[before..at].bytes() {
            depth += match byte {
                b'{' => 1,
                b'}' => -1,
                _ => 0,
            };
        }
        before = at;
        let declares = match word {
            "struct" | "enum" | "trait" => true,
            "type" => depth == 0,
            _ => false,
        };
        let raw = code[..at].ends_with("r#");
        let name = words.peek().filter(|_| declares && !raw);
        if let Some((start, name)) = name
            && code[at + word.len()..*start]
                .bytes()
                .all(|byte| byte == b' ')
            && name.starts_with(|first: char| first.is_ascii_uppercase())
        {
            found.push((*start, *name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Source, check, types};
    use crate::tidy::code::without_text;

    #[test]
    fn declarations_are_found_and_associated_types_are_not() {
        let code = "pub struct A(u8);\nenum B { C }\ntrait D { type E; }\nimpl D for A { type E = u8; }\npub(crate) type F<T> = Vec<T>;\nmacro!(struct $name);\n";
        let found: Vec<&str> = types(code).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, ["A", "B", "D", "F"]);
    }

    #[test]
    fn a_name_is_for_two_types_of_a_crate_at_most() {
        let source = |path: &str| Source::new(path, "struct State;\n");
        let found = |paths: &[&str]| {
            let sources: Vec<Source> = paths.iter().map(|path| source(path)).collect();
            let code: Vec<(&Source, String)> = sources
                .iter()
                .map(|source| (source, without_text(&source.text)))
                .collect();
            check(&code)
                .iter()
                .map(|excess| (excess.subject.clone(), excess.count))
                .collect::<Vec<_>>()
        };
        let two = ["crates/a/src/b.rs", "crates/a/src/c.rs"];
        assert_eq!(found(&two), []);
        let three = [&two[..], &["crates/a/src/d.rs"]].concat();
        assert_eq!(found(&three), [("crates/a State".to_owned(), 3)]);
        for aside in [
            "crates/b/src/d.rs",
            "crates/a/tests/d.rs",
            "crates/a/src/d/tests.rs",
            "crates/store/src/engines/d.rs",
            "crates/wire/src/gemini/types.rs",
        ] {
            assert_eq!(found(&[&two[..], &[aside]].concat()), [], "{aside}");
        }
    }
}
