//! Rules on the text of one file.

use super::Violation;
use super::code::{attributes, line_at, without_text, words};
use super::files::Source;

/// Where memory may be handled by hand: allocators that count, and the fuzz entry point.
const UNSAFE_ALLOWED: &[&str] = &["crates/testkit/", "fuzz/"];

/// Attributes that make a test say less than it seems to.
const ATTRIBUTES: &[(&str, &str)] = &[
    (
        "ignore",
        "delete the test, or assert the known defect as it is",
    ),
    ("should_panic", "return an error and assert on it"),
];

/// Macros that do not belong into a finished change.
const MACROS: &[(&str, &str)] = &[
    ("todo", "finish it, or leave it out"),
    ("unimplemented", "finish it, or leave it out"),
    ("dbg", "take it out"),
];

/// Folders that exist on one machine only. Spelled in two pieces, for this file is checked too.
const MACHINE_FOLDERS: &[(&str, &str)] = &[("/roo", "t/"), ("/hom", "e/"), ("/wor", "k/")];

pub(super) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    machine_paths(source, &mut violations);
    if source.path.ends_with(".rs") {
        let code = without_text(&source.text);
        unsafe_code(source, &code, &mut violations);
        test_attributes(source, &code, &mut violations);
        macros(source, &code, &mut violations);
        glob_exports(source, &code, &mut violations);
    }
    violations
}

fn machine_paths(source: &Source, violations: &mut Vec<Violation>) {
    for (number, line) in source.lines() {
        for (start, end) in MACHINE_FOLDERS {
            let folder = format!("{start}{end}");
            let whole = |at: usize| {
                // Part of a longer path or address, such as example.com/home/, is not a folder of this machine.
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !c.is_alphanumeric() && !"._-~}/".contains(c))
            };
            if line.match_indices(&folder).any(|(at, _)| whole(at)) {
                violations.push(Violation::new(
                    &source.path,
                    number,
                    format!("{folder} is a folder of one machine"),
                    "use a relative path or an invented one",
                ));
            }
        }
    }
}

fn unsafe_code(source: &Source, code: &str, violations: &mut Vec<Violation>) {
    if UNSAFE_ALLOWED
        .iter()
        .any(|folder| source.path.starts_with(folder))
    {
        return;
    }
    for (at, _) in words(code).filter(|(_, word)| *word == "unsafe") {
        violations.push(Violation::new(
            &source.path,
            line_at(code, at),
            "unsafe code",
            "say it in safe Rust, or use a crate whose business it is",
        ));
    }
}

fn test_attributes(source: &Source, code: &str, violations: &mut Vec<Violation>) {
    for (at, attribute) in attributes(code) {
        for (name, remedy) in ATTRIBUTES {
            if words(attribute).any(|(_, word)| word == *name) {
                violations.push(Violation::new(
                    &source.path,
                    line_at(code, at),
                    format!("a test is marked {name}"),
                    *remedy,
                ));
            }
        }
    }
}

fn macros(source: &Source, code: &str, violations: &mut Vec<Violation>) {
    for (at, word) in words(code) {
        let called = code[at + word.len()..].starts_with('!');
        if let Some((name, remedy)) = MACROS.iter().find(|(name, _)| called && *name == word) {
            violations.push(Violation::new(
                &source.path,
                line_at(code, at),
                format!("{name}! is used"),
                *remedy,
            ));
        }
    }
}

fn glob_exports(source: &Source, code: &str, violations: &mut Vec<Violation>) {
    for (at, _) in words(code).filter(|(_, word)| *word == "pub") {
        let rest = code[at + 3..].trim_start();
        let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((_, rest)) => rest.trim_start(),
            None => rest,
        };
        let exported = rest
            .strip_prefix("use ")
            .and_then(|rest| rest.split(';').next());
        if exported.is_some_and(|exported| exported.contains('*')) {
            violations.push(Violation::new(
                &source.path,
                line_at(code, at),
                "everything in a module is re-exported",
                "re-export by name",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, check};

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let found = check(&Source::new(path, text));
        found
            .iter()
            .map(|v| format!("{}: {}", v.line, v.what))
            .collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn unsafe_code_has_its_places() {
        let code = "fn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(
            complaints("crates/wire/src/lib.rs", code),
            ["2: unsafe code"]
        );
        assert_eq!(complaints("crates/testkit/src/alloc.rs", code), NONE);
        assert_eq!(
            complaints(
                "crates/wire/src/lib.rs",
                "// unsafe { }\nconst A: &str = \"unsafe\";\n"
            ),
            NONE
        );
        assert_eq!(
            complaints("crates/wire/src/lib.rs", "#![forbid(unsafe_code)]\n"),
            NONE
        );
    }

    #[test]
    fn tests_are_neither_ignored_nor_expected_to_panic() {
        let code =
            "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[cfg_attr(windows, ignore)]\nfn b() {}\n";
        assert_eq!(
            complaints("a.rs", code),
            ["2: a test is marked ignore", "4: a test is marked ignore"]
        );
        let code = "#[test]\n#[should_panic(expected = \"x\")]\nfn a() {}\n";
        assert_eq!(
            complaints("a.rs", code),
            ["2: a test is marked should_panic"]
        );
        assert_eq!(complaints("a.rs", "fn ignore() { x.ignore() }\n"), NONE);
    }

    #[test]
    fn unfinished_work_is_found() {
        let code = "fn a() { todo!() }\nfn b() { unimplemented!(\"x\") }\nfn c() { dbg!(1); }\nfn d() { todo() }\n";
        let expected = [
            "1: todo! is used",
            "2: unimplemented! is used",
            "3: dbg! is used",
        ];
        assert_eq!(complaints("a.rs", code), expected);
        assert_eq!(complaints("a.rs", "// todo!()\n"), NONE);
    }

    #[test]
    fn exports_are_by_name() {
        let found = "1: everything in a module is re-exported";
        assert_eq!(complaints("a.rs", "pub use json::*;\n"), [found]);
        assert_eq!(
            complaints("a.rs", "pub(crate) use a::{\n    b::*,\n};\n"),
            [found]
        );
        assert_eq!(
            complaints(
                "a.rs",
                "pub use json::parse;\npub fn f(a: *const u8) {}\nuse super::*;\n"
            ),
            NONE
        );
    }

    #[test]
    fn folders_of_one_machine_are_found_in_any_text() {
        let folder = ["/ho", "me/"].concat();
        let found = format!("1: {folder} is a folder of one machine");
        for text in [
            format!("see {folder}ann/x"),
            format!("\"{folder}ann\""),
            format!("{folder}x"),
        ] {
            assert_eq!(complaints("README.md", &text), [found.as_str()]);
        }
        for text in [
            format!("https://example.com{folder}x"),
            format!("tests{folder}x"),
            "homework/".to_owned(),
        ] {
            assert_eq!(complaints("README.md", &text), NONE);
        }
    }
}
