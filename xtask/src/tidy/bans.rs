//! Crates we do not want, and why.

use super::Violation;
use super::files::Files;
use crate::metadata::Package;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Not even when another crate brings it along.
    Anywhere,
    /// Not in a manifest of ours; another crate may have reasons for it.
    Direct,
    /// Not in the manifests of these folders.
    In(&'static [&'static str]),
    /// Not in the manifests of any folder but these.
    OutsideOf(&'static [&'static str]),
}

struct Ban {
    name: &'static str,
    scope: Scope,
    reason: &'static str,
}

const PURE: Scope = Scope::In(&["crates/model", "crates/wire"]);

const BANS: &[Ban] = &[
    Ban {
        name: "openssl",
        scope: Scope::Anywhere,
        reason: "TLS is rustls on aws-lc-rs, nothing from the system",
    },
    Ban {
        name: "openssl-sys",
        scope: Scope::Anywhere,
        reason: "TLS is rustls on aws-lc-rs, nothing from the system",
    },
    Ban {
        name: "native-tls",
        scope: Scope::Anywhere,
        reason: "TLS is rustls on aws-lc-rs, nothing from the system",
    },
    Ban {
        name: "ring",
        scope: Scope::Direct,
        reason: "aws-lc-rs is the one cryptographic library",
    },
    Ban {
        name: "chrono",
        scope: Scope::Direct,
        reason: "time is jiff",
    },
    Ban {
        name: "time",
        scope: Scope::Direct,
        reason: "time is jiff",
    },
    Ban {
        name: "lazy_static",
        scope: Scope::Direct,
        reason: "the standard library has LazyLock",
    },
    Ban {
        name: "once_cell",
        scope: Scope::Direct,
        reason: "the standard library has OnceLock and LazyLock",
    },
    Ban {
        name: "failure",
        scope: Scope::Direct,
        reason: "it is abandoned; errors are thiserror",
    },
    Ban {
        name: "async-std",
        scope: Scope::Direct,
        reason: "it is abandoned; the runtime is tokio",
    },
    Ban {
        name: "serde_yaml",
        scope: Scope::Direct,
        reason: "it is abandoned; configuration is TOML",
    },
    Ban {
        name: "structopt",
        scope: Scope::Direct,
        reason: "clap has replaced it",
    },
    Ban {
        name: "rand",
        scope: Scope::In(&["crates/testkit"]),
        reason: "tests draw from testkit's seeded generator",
    },
    Ban {
        name: "eventsource-stream",
        scope: Scope::Direct,
        reason: "the wire crate has a bounded SSE decoder",
    },
    Ban {
        name: "reqwest-eventsource",
        scope: Scope::Direct,
        reason: "the wire crate has a bounded SSE decoder",
    },
    Ban {
        name: "tokio",
        scope: PURE,
        reason: "model and wire have no I/O and no async",
    },
    Ban {
        name: "futures",
        scope: PURE,
        reason: "model and wire have no I/O and no async",
    },
    Ban {
        name: "async-trait",
        scope: PURE,
        reason: "model and wire have no I/O and no async",
    },
    Ban {
        name: "reqwest",
        scope: PURE,
        reason: "model and wire have no I/O and no async",
    },
    Ban {
        name: "hyper",
        scope: PURE,
        reason: "model and wire have no I/O and no async",
    },
    Ban {
        name: "axum",
        scope: PURE,
        reason: "model and wire have no I/O and no async",
    },
    Ban {
        name: "anyhow",
        scope: Scope::OutsideOf(&["crates/cli"]),
        reason: "a library has an error type of its own",
    },
];

pub(super) fn check(packages: &[Package], files: &Files) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        for ban in BANS
            .iter()
            .filter(|ban| ban.scope == Scope::Anywhere && ban.name == package.name)
        {
            violations.push(Violation::new(
                "Cargo.lock",
                files.line_of("Cargo.lock", &format!("name = \"{}\"", ban.name)),
                format!("{} is banned: {}", ban.name, ban.reason),
                format!("see who brings it with `cargo tree --invert {}`", ban.name),
            ));
        }
        let Some(folder) = package.folder.as_deref() else {
            continue;
        };
        let manifest = format!("{folder}/Cargo.toml");
        for dependency in &package.dependencies {
            let applies = |ban: &&Ban| {
                ban.name == dependency.name
                    && match ban.scope {
                        Scope::Anywhere | Scope::Direct => true,
                        Scope::In(folders) => folders.contains(&folder),
                        Scope::OutsideOf(folders) => !folders.contains(&folder),
                    }
            };
            for ban in BANS.iter().filter(applies) {
                violations.push(Violation::new(
                    &manifest,
                    files.line_of(&manifest, ban.name),
                    format!("{} is banned here: {}", ban.name, ban.reason),
                    "take the dependency out",
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
    use crate::tidy::files::Files;

    fn complaints(folder: Option<&str>, name: &str, uses: &str) -> usize {
        let dependency = Dependency {
            name: uses.to_owned(),
            kind: DependencyKind::Normal,
            folder: None,
        };
        let package = Package {
            name: name.to_owned(),
            folder: folder.map(str::to_owned),
            dependencies: vec![dependency],
            ..Package::default()
        };
        check(
            &[package],
            &Files {
                paths: Vec::new(),
                sources: Vec::new(),
            },
        )
        .len()
    }

    #[test]
    fn some_crates_may_come_along_and_some_may_not() {
        assert_eq!(complaints(None, "openssl-sys", "libc"), 1);
        assert_eq!(complaints(None, "ring", "libc"), 0);
        assert_eq!(complaints(None, "tower", "once_cell"), 0);
        assert_eq!(complaints(Some("crates/server"), "server", "once_cell"), 1);
    }

    #[test]
    fn some_crates_are_fine_elsewhere() {
        assert_eq!(complaints(Some("crates/wire"), "wire", "tokio"), 1);
        assert_eq!(complaints(Some("crates/store"), "store", "tokio"), 0);
        assert_eq!(complaints(Some("crates/store"), "store", "anyhow"), 1);
        assert_eq!(complaints(Some("crates/cli"), "cli", "anyhow"), 0);
    }
}
