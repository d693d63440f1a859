//! Rules on which files there are.

use super::Violation;
use super::files::Files;
use crate::metadata::Package;

/// The folder of the vendors, and the names of those we speak.
const VENDORS: (&str, &[&str]) = (
    "crates/wire/src",
    &[
        "openai_responses",
        "openai_chat",
        "anthropic",
        "gemini",
        "gemini_interactions",
        "foundry",
    ],
);

/// The modules every vendor folder has, so that who has read one can find their way in all.
const VENDOR_MODULES: &[&str] = &["types", "encode", "decode", "stream"];

/// Files without which a build is not the same everywhere.
const REQUIRED: &[&str] = &["Cargo.lock", "fuzz/Cargo.lock"];

const DECISIONS: &str = "docs/adr/";

pub(super) fn check(files: &Files, packages: &[Package]) -> Vec<Violation> {
    let mut violations = Vec::new();
    required(files, &mut violations);
    vendors(files, &mut violations);
    decisions(files, &mut violations);
    lints(files, packages, &mut violations);
    violations
}

fn required(files: &Files, violations: &mut Vec<Violation>) {
    for path in REQUIRED
        .iter()
        .filter(|required| !files.paths.iter().any(|path| path == *required))
    {
        violations.push(Violation::new(
            path,
            1,
            "the file is missing or ignored",
            "add it to the repository",
        ));
    }
}

fn vendors(files: &Files, violations: &mut Vec<Violation>) {
    let (parent, vendors) = VENDORS;
    for vendor in vendors {
        let folder = format!("{parent}/{vendor}/");
        if !files.paths.iter().any(|path| path.starts_with(&folder)) {
            continue;
        }
        for module in VENDOR_MODULES {
            let (file, nested) = (
                format!("{folder}{module}.rs"),
                format!("{folder}{module}/mod.rs"),
            );
            if !files
                .paths
                .iter()
                .any(|path| *path == file || *path == nested)
            {
                violations.push(Violation::new(
                    &file,
                    1,
                    "a vendor folder lacks this file",
                    format!("every vendor has {}", VENDOR_MODULES.join(", ")),
                ));
            }
        }
    }
}

fn decisions(files: &Files, violations: &mut Vec<Violation>) {
    let mut numbers = std::collections::BTreeMap::new();
    for path in &files.paths {
        let Some(name) = path.strip_prefix(DECISIONS) else {
            continue;
        };
        if name == "README.md" {
            continue;
        }
        let Some(number) = decision_number(name) else {
            violations.push(Violation::new(
                path,
                1,
                "the name of a decision record is NNNN-title.md",
                "rename it: four digits, a dash, a title in lower case with dashes",
            ));
            continue;
        };
        if let Some(other) = numbers.insert(number, path) {
            violations.push(Violation::new(
                path,
                1,
                format!("{other} has the same number"),
                "give the later record the next free number",
            ));
        }
    }
}

fn decision_number(name: &str) -> Option<&str> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let good = number.len() == 4
        && number.bytes().all(|b| b.is_ascii_digit())
        && !title.is_empty()
        && title.bytes().all(plain);
    good.then_some(number)
}

fn lints(files: &Files, packages: &[Package], violations: &mut Vec<Violation>) {
    for package in packages {
        let Some(folder) = &package.folder else {
            continue;
        };
        let manifest = format!("{folder}/Cargo.toml");
        let source = files.sources.iter().find(|source| source.path == manifest);
        if !source.is_some_and(|source| inherits_lints(&source.text)) {
            violations.push(Violation::new(
                &manifest,
                1,
                "the crate does not take the lints of the workspace",
                "add `[lints]` with `workspace = true`",
            ));
        }
    }
}

fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let setting = line.replace(' ', "");
        (section == "[lints]" && setting == "workspace=true") || setting == "lints.workspace=true"
    })
}

#[cfg(test)]
mod tests {
    use super::{Files, Package, check};
    use crate::tidy::files::Source;

    fn complaints(paths: &[&str], packages: &[Package], manifest: &str) -> Vec<String> {
        let paths = paths
            .iter()
            .copied()
            .chain(["Cargo.lock", "fuzz/Cargo.lock"])
            .map(str::to_owned)
            .collect();
        let files = Files {
            paths,
            sources: vec![Source::new("crates/a/Cargo.toml", manifest)],
        };
        check(&files, packages)
            .iter()
            .map(|v| format!("{}: {}", v.file, v.what))
            .collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn every_vendor_folder_has_the_same_files() {
        let complete = [
            "mod.rs",
            "types.rs",
            "encode.rs",
            "decode.rs",
            "stream/mod.rs",
        ];
        let complete: Vec<String> = complete
            .iter()
            .map(|f| format!("crates/wire/src/gemini/{f}"))
            .collect();
        let paths: Vec<&str> = complete.iter().map(String::as_str).collect();
        assert_eq!(complaints(&paths, &[], ""), NONE);
        let found = complaints(&paths[..4], &[], "");
        assert_eq!(
            found,
            ["crates/wire/src/gemini/stream.rs: a vendor folder lacks this file"]
        );
        assert_eq!(complaints(&["crates/wire/src/sse/mod.rs"], &[], ""), NONE);
    }

    #[test]
    fn decisions_are_numbered_once() {
        assert_eq!(
            complaints(
                &["docs/adr/0001-own-json.md", "docs/adr/README.md"],
                &[],
                ""
            ),
            NONE
        );
        for wrong in [
            "docs/adr/1-x.md",
            "docs/adr/0001-Own.md",
            "docs/adr/notes.md",
            "docs/adr/0001-.md",
        ] {
            assert_eq!(complaints(&[wrong], &[], "").len(), 1, "{wrong}");
        }
        let found = complaints(&["docs/adr/0001-a.md", "docs/adr/0001-b.md"], &[], "");
        assert_eq!(
            found,
            ["docs/adr/0001-b.md: docs/adr/0001-a.md has the same number"]
        );
    }

    #[test]
    fn every_crate_takes_the_lints() {
        let package = Package {
            folder: Some("crates/a".into()),
            ..Package::default()
        };
        let packages = [package];
        assert_eq!(
            complaints(&[], &packages, "[lints]\nworkspace = true\n"),
            NONE
        );
        assert_eq!(complaints(&[], &packages, "lints.workspace = true\n"), NONE);
        assert_eq!(
            complaints(&[], &packages, "[dependencies]\nworkspace = true\n").len(),
            1
        );
    }

    #[test]
    fn the_lock_files_are_there() {
        let files = Files {
            paths: vec!["Cargo.lock".into()],
            sources: Vec::new(),
        };
        assert_eq!(check(&files, &[]).len(), 1);
    }
}
