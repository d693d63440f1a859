//! Which module of a crate may use which.
//!
//! A module here is a file or folder directly below `src`. Two rules: modules of a crate do not use each other in a
//! circle, and those that [`ARROWS`] names use only what it lists. Both count the paths in code, `crate::…` and
//! `super::…`, and what the root of the crate re-exports counts as the module that has it. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::code::{line_at, words};
use super::files::Source;
use super::known::Excess;

/// The modules of a crate and what each may use. A module that is not named is used by all of them and uses none
/// of them.
struct Arrows {
    folder: &'static str,
    modules: &'static [(&'static str, &'static [&'static str])],
}

const ARROWS: &[Arrows] = &[
    Arrows {
        folder: "crates/throughline",
        modules: &[
            (
                "agent",
                &["run", "thread", "prompt", "client", "tool", "telemetry"],
            ),
            ("run", &["thread", "prompt", "client", "tool", "telemetry"]),
            ("thread", &["prompt"]),
            ("telemetry", &["client", "prompt"]),
            ("client", &["prompt"]),
            ("tool", &[]),
            ("prompt", &[]),
            (
                "testing",
                &[
                    "agent",
                    "run",
                    "thread",
                    "prompt",
                    "client",
                    "tool",
                    "telemetry",
                ],
            ),
        ],
    },
    Arrows {
        folder: "crates/server",
        modules: &[
            (
                "server",
                &[
                    "api", "app", "config", "net", "routes", "service", "webhooks",
                ],
            ),
            ("routes", &["api", "app", "auth", "health", "net"]),
            ("health", &["app", "net"]),
            (
                "api",
                &[
                    "app",
                    "auth",
                    "net",
                    "service",
                    "upstreams",
                    "webhooks",
                    "config",
                ],
            ),
            (
                "app",
                &["net", "service", "upstreams", "mcp", "webhooks", "config"],
            ),
            ("webhooks", &["service", "config"]),
            ("net", &["config"]),
            ("auth", &["config"]),
            ("service", &["config"]),
            ("upstreams", &["config"]),
            ("mcp", &["config"]),
            ("config", &[]),
        ],
    },
    // What is not named is for all: reading and writing JSON, templates, losses, event streams, contents of other
    // vendors, what flat formats share.
    Arrows {
        folder: "crates/wire",
        modules: &[
            ("convert", &["transcript", "render", "codec", "format"]),
            ("transcript", &["codec", "format"]),
            ("format", &["vendors", "codec"]),
            ("approval", &["vendors"]),
            (
                "vendors",
                &[
                    "openai_chat",
                    "openai_responses",
                    "anthropic",
                    "gemini",
                    "gemini_interactions",
                    "foundry",
                    "compose",
                    "render",
                    "validate",
                    "codec",
                ],
            ),
            (
                "foundry",
                &[
                    "openai_responses",
                    "openai",
                    "compose",
                    "render",
                    "validate",
                    "codec",
                    "vendors",
                ],
            ),
            ("openai_chat", OPENAI_VENDOR),
            ("openai_responses", OPENAI_VENDOR),
            // It reads the definitions of hosted tools, which applications write as OpenAI does.
            ("anthropic", OPENAI_VENDOR),
            (
                "gemini",
                &[
                    "google", "openai", "compose", "render", "validate", "codec", "vendors",
                ],
            ),
            (
                "gemini_interactions",
                &[
                    "google", "compose", "render", "validate", "codec", "vendors",
                ],
            ),
            ("google", &["compose"]),
            ("openai", &["compose"]),
            ("compose", &["render", "vendors"]),
            ("render", &["validate", "codec", "vendors"]),
            ("validate", &["vendors"]),
            ("codec", &["vendors"]),
        ],
    },
    Arrows {
        folder: "crates/store",
        modules: &[
            ("open", &["engines"]),
            ("conformance", &["transfer"]),
            ("transfer", &["rules"]),
            ("engines", &["rules"]),
            ("rules", &[]),
        ],
    },
];

/// What the folder of a vendor uses that knows OpenAI's settings or tools.
const OPENAI_VENDOR: &[&str] = &[
    "openai", "compose", "render", "validate", "codec", "vendors",
];

/// Modules with a table of the implementations of a trait. Shared code looks an implementation up there, and the
/// implementations use shared code, so uses of the table are not counted in circles.
const REGISTRIES: &[(&str, &str)] = &[("crates/wire", "vendors")];

/// A use of one module by another.
type Edges<'s> = BTreeMap<(String, String), Vec<(&'s str, usize)>>;

/// `code` has the files with their comments and literals blanked out.
pub(super) fn check(code: &[(&Source, String)]) -> Vec<Excess> {
    let mut crates: BTreeMap<&str, Vec<File<'_>>> = BTreeMap::new();
    for (source, code) in code {
        if let Some((folder, file)) = File::new(source, code) {
            crates.entry(folder).or_default().push(file);
        }
    }
    let mut found = Vec::new();
    for (folder, files) in &crates {
        let edges = edges(files);
        found.extend(circles(folder, &edges));
        let arrows = ARROWS.iter().find(|arrows| arrows.folder == *folder);
        found.extend(
            arrows
                .into_iter()
                .flat_map(|arrows| against(arrows, &edges)),
        );
    }
    found
}

/// A file of a crate.
struct File<'s> {
    path: &'s str,
    code: &'s str,
    /// The module path: `["a", "b"]` for `src/a/b.rs`, empty for the root.
    module: Vec<&'s str>,
}

impl<'s> File<'s> {
    fn new(source: &'s Source, code: &'s str) -> Option<(&'s str, Self)> {
        let path = source.path.as_str();
        let at = path.find("/src/")?;
        let (folder, rest) = (&path[..at], &path[at + "/src/".len()..]);
        let is_ours = folder.starts_with("crates/") || folder == "xtask";
        let mut module: Vec<&str> = rest.strip_suffix(".rs")?.split('/').collect();
        // Programs are roots of their own.
        if !is_ours || module.contains(&"tests") || module[0] == "bin" {
            return None;
        }
        if matches!(module.last(), Some(&"mod")) || matches!(module[..], ["lib" | "main"]) {
            module.pop();
        }
        Some((folder, Self { path, code, module }))
    }
}

/// Every use of a top-level module by another, with its places.
fn edges<'s>(files: &[File<'s>]) -> Edges<'s> {
    let modules: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.module.first().copied())
        .collect();
    // Names that the root re-exports, and the modules that have them.
    let mut exports: BTreeMap<String, String> = BTreeMap::new();
    for file in files.iter().filter(|file| file.module.is_empty()) {
        for path in declared(file.code) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let path = path
                .strip_prefix(&["crate"])
                .or(path.strip_prefix(&["self"]))
                .unwrap_or(&path);
            if let (Some(first), Some(last)) = (path.first(), path.last())
                && path.len() > 1
                && modules.contains(first)
            {
                exports.insert((*last).to_owned(), (*first).to_owned());
            }
        }
    }
    let mut edges = Edges::new();
    for file in files {
        let Some(from) = file.module.first() else {
            continue;
        };
        for (at, path) in from_root(file) {
            let Some(first) = path.first() else { continue };
            let to = match exports.get(first) {
                _ if modules.contains(first.as_str()) => first,
                Some(module) => module,
                None => continue,
            };
            if to != from {
                let place = (file.path, line_at(file.code, at));
                edges
                    .entry(((*from).to_owned(), to.clone()))
                    .or_default()
                    .push(place);
            }
        }
    }
    edges
}

/// The paths of a file that begin at the root of the crate, without that beginning.
fn from_root(file: &File<'_>) -> Vec<(usize, Vec<String>)> {
    let code = without_tests(file.code);
    let mut found = Vec::new();
    for (at, word) in words(&code) {
        let rest = &code[at + word.len()..];
        let before = code[..at].trim_end();
        // `pub(in crate::a)` says who sees it, `$crate` is another crate's.
        if !rest.starts_with("::") || before.ends_with('$') || ends_with_word(before, "in") {
            continue;
        }
        match word {
            "crate" => found.extend(trees(&rest[2..]).into_iter().map(|path| (at, path))),
            // The first of several.
            "super" if !before.ends_with("super::") => {
                let mut rest = &rest[2..];
                let mut up = 1;
                while let Some(further) = rest.strip_prefix("super::") {
                    (rest, up) = (further, up + 1);
                }
                if up == file.module.len() {
                    found.extend(trees(rest).into_iter().map(|path| (at, path)));
                }
            }
            _ => {}
        }
    }
    found
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word)
        .is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The paths of the use declarations of a file.
fn declared(code: &str) -> Vec<Vec<String>> {
    let uses = words(code).filter(|(_, word)| *word == "use");
    uses.flat_map(|(at, word)| trees(code[at + word.len()..].trim_start()))
        .collect()
}

/// The paths of a use tree: `a::{b, c::d}` has `a::b` and `a::c::d`. It ends where no path goes on.
fn trees(text: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    tree(text, &[], &mut paths);
    paths
}

/// Reads one tree and gives what comes after it.
fn tree<'t>(text: &'t str, prefix: &[String], paths: &mut Vec<Vec<String>>) -> &'t str {
    let mut path = prefix.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            rest = group.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                let before = rest.len();
                rest = tree(rest, &path, paths).trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
                if rest.len() == before {
                    // Not a tree: a block of code, for instance.
                    return "";
                }
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if end == 0 {
            // `*`, or the end of a path such as `a::<T>`.
            paths.push(path);
            return rest.strip_prefix('*').unwrap_or(rest);
        }
        path.push(rest[..end].to_owned());
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(further) => rest = further,
            None => {
                paths.push(path);
                let renamed = rest.trim_start().strip_prefix("as ");
                let Some(renamed) = renamed else { return rest };
                let renamed = renamed.trim_start();
                let end = renamed
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(renamed.len());
                return &renamed[end..];
            }
        }
    }
}

/// The code with test modules inside of it blanked out.
fn without_tests(code: &str) -> String {
    const START: &str = "#[cfg(test)]";
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(at) = out[from..].find(START).map(|at| from + at) {
        let item = at + START.len();
        let opened = out[item..].find(['{', ';']).map(|place| item + place);
        let Some(opened) = opened else { break };
        let mut end = opened + 1;
        if out.as_bytes()[opened] == b'{' {
            let mut depth = 1;
            for (place, byte) in out.bytes().enumerate().skip(opened + 1) {
                depth += match byte {
                    b'{' => 1,
                    b'}' => -1,
                    _ => 0,
                };
                end = place + 1;
                if depth == 0 {
                    break;
                }
            }
        }
        let blank: String = out[at..end]
            .chars()
            .map(|c| if c == '\n' { '\n' } else { ' ' })
            .collect();
        out.replace_range(at..end, &blank);
        from = at;
        if blank.is_empty() {
            break;
        }
    }
    out
}

/// Uses between modules that lead back to where they come from.
fn circles(folder: &str, edges: &Edges<'_>) -> Vec<Excess> {
    let is_counted = |to: &str| !REGISTRIES.contains(&(folder, to));
    let reach = |start: &str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![start];
        while let Some(module) = open.pop() {
            for (_, to) in edges.keys().filter(|(from, _)| from == module) {
                if is_counted(to) && seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let mut found = Vec::new();
    for ((from, to), places) in edges {
        if !is_counted(to) || !reach(to).contains(from.as_str()) {
            continue;
        }
        let (file, line) = places[0];
        let count = places.len();
        found.push(Excess {
            rule: "module-circles",
            subject: format!("{folder} {from} -> {to}"),
            count,
            violation: Violation::new(
                file,
                line,
                format!("{from} uses {to}, which uses {from} again ({count} paths)"),
                "move what both need to a module below both",
            ),
        });
    }
    found
}

/// Uses that go against the table.
fn against(arrows: &Arrows, edges: &Edges<'_>) -> Vec<Excess> {
    let folder = arrows.folder;
    let is_named = |module: &str| arrows.modules.iter().any(|(name, _)| *name == module);
    let mut found = Vec::new();
    for ((from, to), places) in edges {
        let allowed = arrows.modules.iter().find(|(name, _)| name == from);
        let is_allowed = match allowed {
            Some((_, allowed)) => allowed.contains(&to.as_str()) || !is_named(to),
            None => !is_named(to),
        };
        if is_allowed {
            continue;
        }
        let (file, line) = places[0];
        let count = places.len();
        found.push(Excess {
            rule: "module-arrows",
            subject: format!("{folder} {from} -> {to}"),
            count,
            violation: Violation::new(
                file,
                line,
                format!("{from} may not use {to} in {folder} ({count} paths)"),
                "move what it needs to a module below both; the arrows are in xtask/src/tidy/modules.rs",
            ),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Source, check, trees, without_tests};
    use crate::tidy::code::without_text;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(*path, *text))
            .collect();
        let code: Vec<(&Source, String)> = sources
            .iter()
            .map(|source| (source, without_text(&source.text)))
            .collect();
        check(&code)
            .iter()
            .map(|excess| {
                let violation = &excess.violation;
                let (rule, subject, count) = (excess.rule, &excess.subject, excess.count);
                format!(
                    "{}:{} {rule} {subject} {count}",
                    violation.file, violation.line
                )
            })
            .collect()
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let paths = |text: &str| {
            trees(text)
                .iter()
                .map(|path| path.join("::"))
                .collect::<Vec<_>>()
        };
        assert_eq!(paths("a::b;"), ["a::b"]);
        assert_eq!(
            paths("{\n    a::{self, B as C},\n    d,\n};"),
            ["a::self", "a::B", "d"]
        );
        assert_eq!(paths("a::new(b::c)"), ["a::new"]);
        assert_eq!(paths("a::*;"), ["a"]);
        assert_eq!(paths("a::<T>::b"), ["a"]);
    }

    #[test]
    fn modules_that_use_each_other_are_a_circle() {
        let a = ("crates/model/src/a.rs", "use crate::b::B;\n");
        let b = ("crates/model/src/b/mod.rs", "mod deep;\n");
        assert_eq!(found(&[a, b]), [""; 0]);
        let deep = (
            "crates/model/src/b/deep.rs",
            "\nfn f() { super::super::a::g(); crate::a::h(); super::own(); }\n",
        );
        assert_eq!(
            found(&[a, b, deep]),
            [
                "crates/model/src/a.rs:1 module-circles crates/model a -> b 1",
                "crates/model/src/b/deep.rs:2 module-circles crates/model b -> a 2",
            ]
        );
    }

    #[test]
    fn a_circle_may_have_three_modules_and_go_through_the_root() {
        let files = [
            (
                "crates/model/src/lib.rs",
                "mod a;\npub use a::{A, other::Z};\n",
            ),
            ("crates/model/src/a.rs", "use super::b;\n"),
            ("crates/model/src/b.rs", "use crate::c;\n"),
            (
                "crates/model/src/c.rs",
                "use crate::A;\nuse crate::Unknown;\n",
            ),
        ];
        assert_eq!(found(&files).len(), 3);
        assert_eq!(found(&files[..3]).len(), 0);
    }

    #[test]
    fn a_look_up_in_a_registry_makes_no_circle() {
        let files = [
            ("crates/wire/src/vendors.rs", "use crate::gemini;\n"),
            ("crates/wire/src/gemini/mod.rs", "use crate::render;\n"),
            ("crates/wire/src/render.rs", "use crate::vendors;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn tests_visibility_and_other_crates_do_not_count() {
        let files = [
            ("crates/model/src/a.rs", "use crate::b;\n"),
            (
                "crates/model/src/b.rs",
                "pub(in crate::a) fn f() { $crate::a::g(); other::a(); }\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
            ),
            ("crates/model/src/b/tests.rs", "use crate::a;\n"),
            ("crates/model/tests/it.rs", "use crate::a;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
        assert_eq!(
            without_tests("a\n#[cfg(test)]\nmod t;\nb")
                .trim_end()
                .lines()
                .count(),
            4
        );
    }

    #[test]
    fn the_table_of_arrows_is_kept() {
        let up = ("crates/server/src/service/mod.rs", "\nuse crate::net::X;\n");
        let down = ("crates/server/src/net/mod.rs", "use crate::error::E;\n");
        let error = ("crates/server/src/error.rs", "");
        assert_eq!(
            found(&[up, down, error]),
            ["crates/server/src/service/mod.rs:2 module-arrows crates/server service -> net 1"]
        );
        let base = ("crates/server/src/error.rs", "use crate::config::X;\n");
        let config = ("crates/server/src/config.rs", "");
        assert_eq!(
            found(&[base, config]),
            ["crates/server/src/error.rs:1 module-arrows crates/server error -> config 1"]
        );
    }
}
