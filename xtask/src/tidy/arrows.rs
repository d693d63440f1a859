//! Which crate may use which.

use super::Violation;
use super::files::Files;
use crate::metadata::{DependencyKind, Package};

/// Folder, and the folders it may use. An arrow that is missing here usually means that a type is in the
/// wrong crate.
const ARROWS: &[(&str, &[&str])] = &[
    ("crates/model", &[]),
    ("crates/compact", &["crates/model"]),
    ("crates/wire", &["crates/model"]),
    ("crates/store", &["crates/model"]),
    (
        "crates/throughline",
        &[
            "crates/wire",
            "crates/store",
            "crates/compact",
            "crates/model",
        ],
    ),
    (
        "crates/server",
        &[
            "crates/throughline",
            "crates/wire",
            "crates/store",
            "crates/compact",
            "crates/model",
        ],
    ),
    (
        "crates/cli",
        &[
            "crates/server",
            "crates/throughline",
            "crates/wire",
            "crates/store",
            "crates/compact",
            "crates/model",
        ],
    ),
    (
        "crates/testkit",
        &[
            "crates/server",
            "crates/throughline",
            "crates/wire",
            "crates/store",
            "crates/compact",
            "crates/model",
        ],
    ),
    (
        "crates/bench",
        &[
            "crates/testkit",
            "crates/server",
            "crates/throughline",
            "crates/wire",
            "crates/store",
            "crates/compact",
            "crates/model",
        ],
    ),
    ("xtask", &[]),
];

/// What the tests of every crate may use besides.
const IN_TESTS: &str = "crates/testkit";

pub(super) fn check(packages: &[Package], files: &Files) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        let Some(folder) = &package.folder else {
            continue;
        };
        let manifest = format!("{folder}/Cargo.toml");
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| from == folder) else {
            violations.push(Violation::new(
                &manifest,
                1,
                format!("the crate {} has no place in the layering", package.name),
                "give it a line in xtask/src/tidy/arrows.rs and the reason for it in ARCHITECTURE.md",
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(target) = dependency.folder.as_deref() else {
                continue;
            };
            // A crate may name itself there, to see features of its own in its tests.
            let in_tests =
                dependency.kind == DependencyKind::Dev && (target == IN_TESTS || target == folder);
            if !in_tests && !allowed.contains(&target) {
                violations.push(Violation::new(
                    &manifest,
                    files.line_of(&manifest, &dependency.name),
                    format!("{folder} may not use {target}"),
                    "move what it needs to a crate below both, or turn the use around",
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::metadata::{Dependency, DependencyKind, Package};
    use crate::tidy::files::{Files, Source};

    fn package(folder: &str, uses: &[(&str, DependencyKind)]) -> Package {
        let dependency = |(folder, kind): &(&str, DependencyKind)| Dependency {
            name: folder.rsplit('/').next().unwrap_or_default().to_owned(),
            kind: *kind,
            folder: Some((*folder).to_owned()),
        };
        Package {
            name: folder.to_owned(),
            folder: Some(folder.to_owned()),
            dependencies: uses.iter().map(dependency).collect(),
            ..Package::default()
        }
    }

    fn complaints(package: Package) -> Vec<String> {
        let files = Files {
            paths: Vec::new(),
            sources: vec![Source::new(
                "crates/store/Cargo.toml",
                "[dependencies]\nserde = 1\nwire.workspace = true\n",
            )],
        };
        check(&[package], &files)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_crate_names_itself_in_its_tests_only() {
        let own = |kind| complaints(package("crates/wire", &[("crates/wire", kind)]));
        assert_eq!(own(DependencyKind::Dev), [""; 0]);
        assert_eq!(own(DependencyKind::Normal).len(), 1);
    }

    #[test]
    fn arrows_go_down_only() {
        assert_eq!(
            complaints(package(
                "crates/wire",
                &[("crates/model", DependencyKind::Normal)]
            )),
            [""; 0]
        );
        let upwards = complaints(package(
            "crates/store",
            &[("crates/wire", DependencyKind::Normal)],
        ));
        assert_eq!(
            upwards,
            [
                "crates/store/Cargo.toml:3: crates/store may not use crates/wire; move what it needs to a crate below both, or turn the use around"
            ]
        );
        assert_eq!(
            complaints(package(
                "crates/store",
                &[("crates/wire", DependencyKind::Dev)]
            ))
            .len(),
            1
        );
        assert_eq!(
            complaints(package(
                "crates/testkit",
                &[("crates/cli", DependencyKind::Normal)]
            ))
            .len(),
            1
        );
        assert_eq!(
            complaints(package("xtask", &[("crates/model", DependencyKind::Build)])).len(),
            1
        );
    }

    #[test]
    fn tests_of_every_crate_may_use_the_testkit() {
        assert_eq!(
            complaints(package(
                "crates/model",
                &[("crates/testkit", DependencyKind::Dev)]
            )),
            [""; 0]
        );
        assert_eq!(
            complaints(package(
                "crates/model",
                &[("crates/testkit", DependencyKind::Normal)]
            ))
            .len(),
            1
        );
    }

    #[test]
    fn a_new_crate_must_be_given_a_place() {
        let found = complaints(package("crates/extra", &[]));
        assert!(
            found[0].starts_with("crates/extra/Cargo.toml:1: the crate crates/extra has no place")
        );
    }
}
