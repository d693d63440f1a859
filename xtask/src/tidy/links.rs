//! Relative links between documents, and the paths of files that documents name.

use super::Violation;
use super::files::Source;

/// How paths begin that a document may name in backticks.
const NAMED: &[&str] = &["crates/", "xtask/", "examples/", "docs/"];

/// Finds relative links of a Markdown file that lead nowhere; `exists` answers for paths from the workspace.
pub(super) fn check(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for (number, target) in targets(source) {
        if is_address(&target) {
            continue;
        }
        let path = target.split(['#', '?']).next().unwrap_or_default();
        if path.is_empty() {
            continue;
        }
        let problem = match resolve(&source.path, &path.replace("%20", " ")) {
            None => "leaves the project",
            Some(path) if exists(&path) => continue,
            Some(_) => "leads nowhere",
        };
        violations.push(Violation::new(
            &source.path,
            number,
            format!("the link to {target} {problem}"),
            "point it at a file of the project",
        ));
    }
    violations
}

/// Documents that lead readers to files. Records of decisions and changes name files of their time.
fn is_guide(path: &str) -> bool {
    let records = path.starts_with("docs/adr/") || path == "CHANGELOG.md";
    path.ends_with(".md") && !records
}

/// Finds paths in backticks, such as `crates/model/src/lib.rs`, that do not exist.
pub(super) fn check_paths(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !is_guide(&source.path) {
        return violations;
    }
    for (number, line) in source.lines() {
        let quoted = line.split('`').skip(1).step_by(2);
        for path in quoted.filter(|text| NAMED.iter().any(|start| text.starts_with(start))) {
            // A pattern or a command is not a path, and a line number is not part of one.
            if path.contains(|c: char| "<>*{}… $=".contains(c)) {
                continue;
            }
            let file = path.split([':', '#']).next().unwrap_or_default();
            if !exists(file.trim_end_matches('/')) {
                violations.push(Violation::new(
                    &source.path,
                    number,
                    format!("{path} does not exist"),
                    "name the file where it is now",
                ));
            }
        }
    }
    violations
}

/// The targets of inline links, images and reference definitions, outside of code.
fn targets(source: &Source) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in source.lines() {
        let trimmed = line.trim_start();
        let marker = ["```", "~~~"]
            .into_iter()
            .find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(opened)) => fence = Some(opened),
            (Some(opened), Some(closing)) if opened == closing => fence = None,
            (None, None) => {
                let line = without_inline_code(line);
                for (at, _) in line.match_indices("](") {
                    targets.extend(destination(&line[at + 2..]).map(|target| (number, target)));
                }
                let definition = line
                    .trim_start()
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once("]: "));
                if let Some((label, target)) = definition
                    && !label.contains(']')
                {
                    let target = target.split_whitespace().next().unwrap_or_default();
                    targets.push((number, target.trim_matches(['<', '>']).to_owned()));
                }
            }
            (Some(_), _) => {}
        }
    }
    targets
}

/// What stands between the parentheses of a link, without its title.
fn destination(rest: &str) -> Option<String> {
    if let Some(bracketed) = rest.strip_prefix('<') {
        return bracketed
            .split_once('>')
            .map(|(target, _)| target.to_owned());
    }
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    rest[..end].split_whitespace().next().map(str::to_owned)
}

fn without_inline_code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        let after = &rest[start + ticks..];
        out.push_str(&rest[..start]);
        match after.find(&rest[start..start + ticks]) {
            Some(end) => rest = &after[end + ticks..],
            None => rest = after,
        }
    }
    out + rest
}

fn is_address(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'+')
    })
}

/// The path from the workspace of a link in the file at `from`; None when it leads outside.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').collect(),
    };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod path_tests {
    use super::{Source, check_paths};

    fn missing(path: &str, text: &str) -> Vec<String> {
        let exists = |path: &str| path == "crates/model/src/lib.rs" || path == "crates/model";
        check_paths(&Source::new(path, text), exists)
            .iter()
            .map(|violation| format!("{}: {}", violation.line, violation.what))
            .collect()
    }

    #[test]
    fn paths_in_backticks_exist() {
        let text = "see `crates/model/src/lib.rs:12`, `crates/model/`\nand `crates/gone.rs`\n";
        assert_eq!(
            missing("ARCHITECTURE.md", text),
            ["2: crates/gone.rs does not exist"]
        );
        assert_eq!(missing("docs/adr/0001-a.md", text), [""; 0]);
        assert_eq!(missing("CHANGELOG.md", text), [""; 0]);
    }

    #[test]
    fn patterns_and_commands_are_no_paths() {
        let text = "`crates/<name>/src`, `crates/*/tests`, `crates/{a,b}`, `cargo test crates/x`\n";
        assert_eq!(missing("README.md", text), [""; 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, check};

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let files = [
            "docs/a.md",
            "docs/adr",
            "README.md",
            "docs/with space.md",
            "docs/b(1).md",
        ];
        let found = check(&Source::new(path, text), |path| files.contains(&path));
        found
            .iter()
            .map(|v| format!("{}: {}", v.line, v.what))
            .collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        for text in [
            "[a](a.md) and [b](../README.md#top), ![c](./adr/)",
            "[x](https://example.com/none.md) [y](mailto:a@b.c) [z](#here)",
            "[s](with%20space.md) [t](<with space.md>) [u](a.md \"title\") [v](b(1).md)",
            "[ref]: a.md\n[other]: <a.md> \"title\"",
            "[abs](/docs/a.md)",
        ] {
            assert_eq!(complaints("docs/x.md", text), NONE, "{text}");
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        assert_eq!(
            complaints("docs/x.md", "\n[a](none.md#b)"),
            ["2: the link to none.md#b leads nowhere"]
        );
        assert_eq!(
            complaints("docs/x.md", "[r]: gone.md"),
            ["1: the link to gone.md leads nowhere"]
        );
        assert_eq!(
            complaints("x.md", "[a](../shared/y.md)"),
            ["1: the link to ../shared/y.md leaves the project"]
        );
        assert_eq!(complaints("x.md", "[![i](no.png)](no.md)").len(), 2);
    }

    #[test]
    fn code_is_not_searched_for_links() {
        assert_eq!(
            complaints(
                "x.md",
                "```md\n[a](none.md)\n```\n`[b](none.md)` ``[c](`none.md)``"
            ),
            NONE
        );
        assert_eq!(
            complaints("x.md", "~~~\n```\n[a](none.md)\n~~~\n[b](none.md)").len(),
            1
        );
        assert_eq!(complaints("x.rs", "[a](none.md)"), NONE);
    }
}
