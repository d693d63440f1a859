//! The rules no compiler checks.
//!
//! Each rule is a function from what there is to what is wrong; what is allowed stands in a table at the top
//! of its file.

use std::fmt;
use std::process::ExitCode;

use crate::metadata;
use crate::tool::{self, Failure};

mod arrows;
mod bans;
mod behaviours;
mod code;
mod commits;
mod files;
mod known;
mod layout;
mod lengths;
mod licences;
mod links;
mod modules;
mod names;
mod prose;
mod rounds;
mod sources;

use files::{Files, Source};
use known::{Excess, Known};

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    file: String,
    /// Counted from 1.
    line: usize,
    what: String,
    remedy: String,
}

impl Violation {
    fn new(file: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}; {}",
            self.file, self.line, self.what, self.remedy
        )
    }
}

/// `cargo xtask tidy`
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode, Failure> {
    match arguments {
        [] => {}
        [option] if option == "--shrink" => return shrink(),
        _ => {
            let given = arguments.join(" ");
            return Err(Failure::new(format!(
                "tidy takes --shrink or nothing, and was given {given}"
            )));
        }
    }
    let violations = check()?;
    Ok(if violations == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Lowers the numbers of the known exceptions to what is left.
fn shrink() -> Result<ExitCode, Failure> {
    let root = tool::root();
    let files = Files::list(&root)?;
    let (known, _) = Known::read(&known_text());
    std::fs::write(root.join(known::FILE), known.shrunk(&excesses(&files)))
        .map_err(|error| Failure::new(format!("{}: {error}", known::FILE)))?;
    println!("wrote {}", known::FILE);
    Ok(ExitCode::SUCCESS)
}

/// The known exceptions; none if there is no file.
fn known_text() -> String {
    std::fs::read_to_string(tool::root().join(known::FILE)).unwrap_or_default()
}

/// What the rules with known exceptions find.
fn excesses(files: &Files) -> Vec<Excess> {
    let is_rust = |source: &&Source| source.path.ends_with(".rs");
    let code: Vec<(&Source, String)> = files
        .sources
        .iter()
        .filter(is_rust)
        .map(|source| (source, code::without_text(&source.text)))
        .collect();
    let mut found = Vec::new();
    found.extend(modules::check(&code));
    found.extend(names::check(&code));
    for (source, code) in &code {
        found.extend(lengths::check(source, code));
    }
    found.extend(files.sources.iter().filter_map(prose::check));
    found
}

/// `cargo xtask behaviours`
pub(crate) fn behaviours(arguments: &[String]) -> Result<ExitCode, Failure> {
    if let Some(argument) = arguments.first() {
        return Err(Failure::new(format!(
            "behaviours takes no arguments, and was given {argument}"
        )));
    }
    let root = tool::root();
    let table = behaviours::table(&Files::list(&root)?.sources);
    std::fs::write(root.join(behaviours::TABLE), table)
        .map_err(|error| Failure::new(format!("{}: {error}", behaviours::TABLE)))?;
    println!("wrote {}", behaviours::TABLE);
    Ok(ExitCode::SUCCESS)
}

/// A number that follows from the sources alone.
pub(crate) fn fingerprint() -> Result<u64, Failure> {
    Ok(Files::list(&tool::root())?.fingerprint())
}

/// Checks everything, prints what is wrong, and gives how much that is.
pub(crate) fn check() -> Result<usize, Failure> {
    let root = tool::root();
    let files = Files::list(&root)?;
    let mut violations = Vec::new();
    let ours = packages("", &mut violations);
    let fuzz = packages("fuzz/", &mut violations);

    violations.extend(arrows::check(&ours, &files));
    violations.extend(licences::check(&ours, licences::SHIPPED));
    violations.extend(licences::check(&fuzz, licences::FUZZ));
    violations.extend(bans::check(&ours, &files));
    violations.extend(bans::check(&fuzz, &files));
    violations.extend(layout::check(&files, &ours));
    violations.extend(rounds::check(&files.sources));
    violations.extend(behaviours::check(&files.sources));
    for source in &files.sources {
        violations.extend(sources::check(source));
        violations.extend(links::check(source, |path| root.join(path).exists()));
        violations.extend(links::check_paths(source, |path| root.join(path).exists()));
    }
    let (known, unreadable) = Known::read(&known_text());
    violations.extend(unreadable);
    violations.extend(known.judge(&excesses(&files)));
    let commits = commits::check();
    violations.extend(commits.violations);

    violations.sort();
    violations.dedup();
    for violation in &violations {
        println!("{violation}");
    }
    if let Some(note) = commits.note {
        println!("{note}");
    }
    let seen = ours.iter().chain(&fuzz).map(|p| (&p.name, &p.version));
    let seen = seen.collect::<std::collections::BTreeSet<_>>().len();
    let (files, wrong) = (files.sources.len(), violations.len());
    println!("tidy: {seen} packages and {files} files checked, violations: {wrong}");
    Ok(wrong)
}

/// The packages of one of our two workspaces. That they cannot be told is a violation like any other, so that
/// the other rules are still checked.
fn packages(folder: &str, violations: &mut Vec<Violation>) -> Vec<metadata::Package> {
    let manifest = format!("{folder}Cargo.toml");
    metadata::read(&tool::root().join(&manifest)).unwrap_or_else(|failure| {
        violations.push(Violation::new(
            &format!("{folder}Cargo.lock"),
            1,
            format!("the packages cannot be told: {failure}"),
            format!("if the lock file is behind, run `cargo update --workspace --manifest-path {manifest}`"),
        ));
        Vec::new()
    })
}
