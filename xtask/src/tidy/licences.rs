//! Licences of the packages we build on.

use super::Violation;
use crate::metadata::Package;

/// What may end up in the binaries we ship. All of these ask for a notice at most.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // A licence for data: lists of root certificates, see docs/adr/0009.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// The workspace, which ships.
pub(super) const SHIPPED: &[&[&str]] = &[PERMISSIVE];

/// The fuzz workspace, which never ships: libFuzzer carries the licence LLVM used to have.
pub(super) const FUZZ: &[&[&str]] = &[PERMISSIVE, &["NCSA"]];

pub(super) fn check(packages: &[Package], allowed: &[&[&str]]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        let problem = match &package.licence {
            None => "it names no licence".to_owned(),
            Some(text) => match allows(text, allowed) {
                Some(true) => continue,
                Some(false) => format!("its licence is {text}"),
                None => format!("its licence cannot be read: {text}"),
            },
        };
        let (name, version) = (&package.name, &package.version);
        violations.push(Violation::new(
            "Cargo.lock",
            1,
            format!("{name} {version} may not be used: {problem}"),
            "use another package, or add the licence to xtask/src/tidy/licences.rs with a decision record",
        ));
    }
    violations
}

/// Whether an SPDX expression can be met with allowed licences alone; None when it cannot be read.
fn allows(text: &str, allowed: &[&[&str]]) -> Option<bool> {
    // Before SPDX, packages wrote "MIT/Apache-2.0" for a choice.
    let spaced = text
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    let met = any_of(&mut words, allowed)?;
    words.is_empty().then_some(met)
}

// The words are kept last first, so that taking the next one is a pop. AND binds closer than OR.

fn any_of(words: &mut Vec<&str>, allowed: &[&[&str]]) -> Option<bool> {
    let mut met = all_of(words, allowed)?;
    while words.pop_if(|word| *word == "OR").is_some() {
        met |= all_of(words, allowed)?;
    }
    Some(met)
}

fn all_of(words: &mut Vec<&str>, allowed: &[&[&str]]) -> Option<bool> {
    let mut met = licence(words, allowed)?;
    while words.pop_if(|word| *word == "AND").is_some() {
        met &= licence(words, allowed)?;
    }
    Some(met)
}

fn licence(words: &mut Vec<&str>, allowed: &[&[&str]]) -> Option<bool> {
    let name = match words.pop()? {
        "(" => {
            let met = any_of(words, allowed)?;
            return (words.pop()? == ")").then_some(met);
        }
        "OR" | "AND" | "WITH" | ")" => return None,
        name => name,
    };
    let name = match words.pop_if(|word| *word == "WITH") {
        Some(_) => format!("{name} WITH {}", words.pop()?),
        None => name.to_owned(),
    };
    Some(allowed.iter().any(|table| table.contains(&name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::{FUZZ, SHIPPED, allows, check};
    use crate::metadata::Package;

    #[test]
    fn a_choice_needs_one_allowed_licence_and_a_sum_needs_all() {
        for (text, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("GPL-3.0 OR AGPL-3.0-only", Some(false)),
            ("MIT AND GPL-3.0", Some(false)),
            ("MIT/Apache-2.0", Some(true)),
            ("GPL-2.0/MIT", Some(true)),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true)),
            ("(MIT OR Apache-2.0) AND OpenSSL", Some(false)),
            ("GPL-2.0 OR MIT AND Zlib", Some(true)),
            ("MIT OR GPL-2.0 AND GPL-3.0", Some(true)),
            ("(MIT OR GPL-2.0) AND GPL-3.0", Some(false)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0 WITH Classpath-exception-2.0", Some(false)),
            (
                "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
                Some(true),
            ),
            ("((MIT))", Some(true)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT)", None),
            ("MIT Apache-2.0", None),
            ("AND MIT", None),
            ("MIT WITH", None),
        ] {
            assert_eq!(allows(text, SHIPPED), expected, "{text}");
        }
    }

    #[test]
    fn what_only_fuzzing_needs_is_allowed_there_only() {
        let text = "(MIT OR Apache-2.0) AND NCSA";
        assert_eq!(
            (allows(text, SHIPPED), allows(text, FUZZ)),
            (Some(false), Some(true))
        );
    }

    #[test]
    fn a_package_without_a_licence_is_refused() {
        let package = Package {
            name: "p".into(),
            version: "1.0.0".into(),
            ..Package::default()
        };
        let found: Vec<String> = check(&[package], SHIPPED)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            found[0].starts_with("Cargo.lock:1: p 1.0.0 may not be used: it names no licence; ")
        );
    }
}
