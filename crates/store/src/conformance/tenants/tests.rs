use std::collections::BTreeSet;
use std::path::Path;

use super::{OPERATIONS, With};
use crate::conformance::CASES;

const TRAIT: &str = include_str!("../../engine.rs");

/// The files of the cases.
fn sources() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance/tenants");
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("tests.rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    text
}

/// The operations of the trait, and whether each is given a scope.
fn operations() -> Vec<(String, bool)> {
    let (_, rest) = TRAIT.split_once("pub trait Engine").unwrap();
    let (body, _) = rest.split_once("\n}\n").unwrap();
    let code: String = body
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let parts: Vec<&str> = code.split("fn ").skip(1).collect();
    let operation = |part: &&str| {
        let (name, rest) = part.split_once('(').unwrap();
        let (signature, _) = rest.split_once("->").unwrap_or((rest, ""));
        (name.trim().to_owned(), signature.contains("TenantScope"))
    };
    parts.iter().map(operation).collect()
}

/// The text of a case.
fn source<'s>(sources: &'s str, case: &str) -> Option<&'s str> {
    let (_, rest) = sources.split_once(&format!("async fn {case}("))?;
    rest.split_once("\n}\n").map(|(body, _)| body)
}

#[test]
fn every_operation_of_the_trait_is_used_by_two_tenants() {
    let (operations, sources) = (operations(), sources());
    assert!(operations.len() > 40, "{operations:?}");
    let mut wrong = Vec::new();
    for (name, has_scope) in &operations {
        let with = OPERATIONS.iter().find(|(listed, _)| listed == name);
        match with.map(|(_, with)| with) {
            None => wrong.push(format!(
                "Engine::{name} has no case with two tenants. Write one in \
                 crates/store/src/conformance/tenants (what the other tenant has must look like what \
                 was never made, and stay as it is), add it to `cases!` in conformance/mod.rs, and \
                 name it for `{name}` in OPERATIONS in conformance/tenants/mod.rs. If the operation \
                 writes something that can be read, let `Twin::view` read it too."
            )),
            Some(With::NoScope(_)) if *has_scope => wrong.push(format!(
                "Engine::{name} takes a TenantScope, so OPERATIONS must name a case for it"
            )),
            Some(With::NoScope(why)) => assert!(!why.is_empty(), "{name}"),
            Some(With::Case(case)) if !CASES.contains(case) => wrong.push(format!(
                "{case} is not in `cases!`: no engine runs it, and Engine::{name} has no other case"
            )),
            Some(With::Case(case)) => {
                let text = source(&sources, case);
                let used = text.is_some_and(|text| text.contains(&format!(".{name}(")));
                if !used {
                    wrong.push(format!("{case} does not call Engine::{name}"));
                }
            }
        }
    }
    let known: BTreeSet<&str> = operations.iter().map(|(name, _)| name.as_str()).collect();
    for (name, _) in OPERATIONS {
        if !known.contains(name) {
            wrong.push(format!("the trait has no operation {name}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_case_with_two_tenants_is_run() {
    for part in sources().split("async fn tenants_").skip(1) {
        let (name, _) = part.split_once('(').unwrap();
        let name = format!("tenants_{name}");
        assert!(CASES.contains(&&*name), "{name} is not in `cases!`");
    }
}
