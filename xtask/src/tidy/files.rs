//! The files that belong to the project.

use std::path::Path;

use crate::tool::{self, Failure};

/// Endings of the files whose text is checked.
const CHECKED: &[&str] = &[".rs", ".md", ".toml", ".sh"];

/// Files without a telling ending whose text is checked too.
const ALSO_CHECKED: &[&str] = &[".ci/run", "Cargo.lock"];

/// Folders that hold recorded or generated input, which the rules do not apply to.
const RECORDED: &[&str] = &["fixtures", "corpus"];

pub(super) struct Files {
    /// Every file that is tracked, or would be with the next commit.
    pub(super) paths: Vec<String>,
    /// Those whose text is checked.
    pub(super) sources: Vec<Source>,
}

/// A file and its text. Paths start at the workspace and use forward slashes.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// Lines with their numbers, counted from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

impl Files {
    pub(super) fn list(root: &Path) -> Result<Self, Failure> {
        let listed = tool::output(tool::command("git").args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]));
        let mut paths: Vec<String> = match listed {
            Ok(text) => text
                .split('\0')
                .filter(|path| !path.is_empty())
                .map(str::to_owned)
                .collect(),
            // A source archive has no history to ask.
            Err(_) => {
                let mut paths = Vec::new();
                walk(root, "", &mut paths)?;
                paths
            }
        };
        // A tracked file may have been deleted in the working tree.
        paths.retain(|path| root.join(path).is_file());
        paths.sort();
        paths.dedup();
        let mut sources = Vec::new();
        for path in paths.iter().filter(|path| is_checked(path)) {
            let text = std::fs::read_to_string(root.join(path))
                .map_err(|error| Failure::new(format!("cannot read {path}: {error}")))?;
            sources.push(Source::new(path, text));
        }
        Ok(Self { paths, sources })
    }

    /// A number that follows from what is built: the same sources have the same one on every machine.
    pub(super) fn fingerprint(&self) -> u64 {
        let built = |path: &str| path.ends_with(".rs") || path == "Cargo.lock";
        let sources = self.sources.iter().filter(|source| built(&source.path));
        let bytes = sources.flat_map(|source| {
            let (path, text) = (source.path.bytes(), source.text.bytes());
            path.chain([0]).chain(text).chain([0])
        });
        // FNV-1a
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// The first line of a file that starts with `start`; 1 when there is none.
    pub(super) fn line_of(&self, path: &str, start: &str) -> usize {
        let source = self.sources.iter().find(|source| source.path == path);
        source
            .and_then(|source| {
                source
                    .lines()
                    .find(|(_, line)| line.trim_start().starts_with(start))
            })
            .map_or(1, |(number, _)| number)
    }
}

fn is_checked(path: &str) -> bool {
    let recorded = path.split('/').any(|part| RECORDED.contains(&part));
    !recorded && (CHECKED.iter().any(|end| path.ends_with(end)) || ALSO_CHECKED.contains(&path))
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<(), Failure> {
    let unreadable = |error| Failure::new(format!("cannot list {folder}: {error}"));
    for entry in std::fs::read_dir(root.join(folder)).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() {
            name.clone()
        } else {
            format!("{folder}/{name}")
        };
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() && name != "target" && name != ".git" {
            walk(root, &path, paths)?;
        } else if kind.is_file() {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Files, Source, is_checked};

    #[test]
    fn the_fingerprint_follows_the_sources_alone() {
        let of = |sources: &[(&str, &str)]| {
            let sources = sources
                .iter()
                .map(|(path, text)| Source::new(*path, *text))
                .collect();
            let paths = Vec::new();
            Files { paths, sources }.fingerprint()
        };
        let one = of(&[("a.rs", "fn a() {}"), ("README.md", "words")]);
        assert_eq!(one, of(&[("a.rs", "fn a() {}"), ("README.md", "other")]));
        assert_ne!(one, of(&[("a.rs", "fn b() {}")]));
        assert_ne!(one, of(&[("b.rs", "fn a() {}")]));
    }

    #[test]
    fn recorded_input_is_left_alone() {
        assert!(
            is_checked("crates/wire/src/lib.rs")
                && is_checked(".ci/run")
                && is_checked("README.md")
        );
        assert!(!is_checked("crates/wire/tests/fixtures/openai/notes.md"));
        assert!(!is_checked("fuzz/corpus/json/a.toml") && !is_checked("console/app.js"));
    }
}
