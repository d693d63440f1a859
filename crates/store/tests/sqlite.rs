//! The suite on SQLite: each handle is a connection of its own, as another process would have.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::path::Path;

use async_trait::async_trait;
use throughline_store::conformance::Harness;
use throughline_store::trials::tenants;
use throughline_store::{Options, Store};
use throughline_testkit::Scratch;

struct OnDisk(Scratch);

#[async_trait]
impl Harness for OnDisk {
    async fn open(&self, options: Options) -> Store {
        let url = self.0.sqlite("store.db");
        Store::open_with(&url, options).await.unwrap()
    }
}

throughline_store::conformance!(OnDisk(Scratch::new("suite")));

/// The statements of the engine that keep tenants apart, as they are written: `cargo xtask planted
/// tenants` reads them here, and wants each of them found among those that the suite prepares.
#[test]
fn the_conditions_on_tenants_are_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engines/sqlite");
    let mut conditions = 0;
    for path in sources(&folder) {
        let literals = tenants::literals(&std::fs::read_to_string(&path).unwrap());
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        // As mutants name their files.
        let name = name.replace('/', ".");
        assert_eq!(
            literals.unclear,
            [],
            "{name}: what is said of a tenant makes no mutant; trials/tenants.rs says what does"
        );
        for written in literals.found {
            conditions += 1;
            println!("condition {name}:{} {}", written.line, written.text);
        }
    }
    for (part, why) in tenants::REVIEWED {
        println!("reviewed {part} because {why}");
    }
    println!(
        "table tenants: {conditions} conditions in the statements of the engine keep them apart"
    );
    assert!(conditions > 0);
}

/// The files of the engine, without its tests and without the tables, the check and the migration of
/// all rows, which belong to no tenant.
fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                found.extend(sources(&path));
            }
        } else if !["schema.rs", "check.rs", "count_tokens.rs", "tests.rs"]
            .map(|name| path.ends_with(name))
            .contains(&true)
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Only the owner can read what a store keeps: the file, what SQLite puts beside it, and backups.
#[cfg(unix)]
#[test]
fn the_files_of_a_store_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    use throughline_store::{NewThread, TenantScope, ThreadId};

    let scratch = Scratch::new("private");
    throughline_store::conformance::block_on(async {
        let store = Store::open(&scratch.sqlite("store.db")).await.unwrap();
        let new = NewThread::new(ThreadId::new("t").unwrap());
        let scope = TenantScope::local();
        store.open_or_create(&scope, &new, 0).await.unwrap();
        let backup = scratch.path().join("backup.db");
        let backups = store.backups().unwrap();
        backups.backup(&backup, &mut |_| {}).await.unwrap();
        let mut seen = 0;
        for file in std::fs::read_dir(scratch.path()).unwrap() {
            let file = file.unwrap();
            let mode = file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{:?}", file.file_name());
            seen += 1;
        }
        assert_eq!(
            seen, 4,
            "the store, its log, its shared memory and the backup"
        );
        store.close().await.unwrap();
    });
}
