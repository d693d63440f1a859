use std::panic::Location;

use super::{Mutant, Written, conditions, hash, literals, site};

/// The statement with each of its conditions taken out.
fn mutants(sql: &str) -> Vec<String> {
    let replaced = conditions(sql).into_iter().map(|condition| {
        let mut text = sql.to_owned();
        text.replace_range(condition.at, &condition.holds);
        text
    });
    replaced.collect()
}

#[test]
fn every_kind_of_condition_is_taken_out_by_itself() {
    let cases: [(&str, &[&str]); 8] = [
        (
            "SELECT thread FROM alias WHERE tenant=? AND kind=?",
            &["SELECT thread FROM alias WHERE ? IS NOT NULL AND kind=?"],
        ),
        (
            "SELECT 1 FROM run r CROSS JOIN thread t ON t.thread=r.thread WHERE r.tenant=?12 AND r.id<?2",
            &[
                "SELECT 1 FROM run r CROSS JOIN thread t ON r.thread IS NOT NULL WHERE r.tenant=?12 AND r.id<?2",
                "SELECT 1 FROM run r CROSS JOIN thread t ON t.thread=r.thread WHERE ?12 IS NOT NULL AND r.id<?2",
            ],
        ),
        (
            "SELECT a.state FROM call c LEFT JOIN approval a ON a.tenant=r.tenant AND a.id=c.approval",
            &[
                "SELECT a.state FROM call c LEFT JOIN approval a ON r.tenant IS NOT NULL AND a.id=c.approval",
            ],
        ),
        (
            "UPDATE call SET state=?1 WHERE run=(SELECT run FROM run WHERE tenant=?3 AND id=?4)",
            &[
                "UPDATE call SET state=?1 WHERE run=(SELECT run FROM run WHERE ?3 IS NOT NULL AND id=?4)",
            ],
        ),
        (
            "SELECT tenant FROM tenant WHERE name=?",
            &["SELECT tenant FROM tenant WHERE ? IS NOT NULL"],
        ),
        (
            "DELETE FROM queue WHERE no=? AND thread=?",
            &["DELETE FROM queue WHERE no=? AND ? IS NOT NULL"],
        ),
        // A part of a statement.
        (
            "a.tenant=?1 AND ?2 IS NULL",
            &["?1 IS NOT NULL AND ?2 IS NULL"],
        ),
        (
            "INSERT INTO run(tenant, id) SELECT ?1, ?2 FROM thread WHERE thread=?3",
            &[],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(mutants(sql), expected, "{sql}");
    }
}

#[track_caller]
fn elsewhere() -> &'static Location<'static> {
    Location::caller()
}

#[test]
fn a_mutant_changes_its_own_statement_and_no_other() {
    let sql = "SELECT run FROM run WHERE tenant=? AND id=?";
    let here = elsewhere();
    let name = format!("{}/{:08x}/1", site(here), hash(sql));
    let mutant = Mutant::named(&name).unwrap();
    assert_eq!(
        mutant.of(sql, here).as_deref(),
        Some("SELECT run FROM run WHERE ? IS NOT NULL AND id=?")
    );
    assert_eq!(mutant.of("SELECT run FROM run WHERE tenant=?", here), None);
    assert_eq!(mutant.of(sql, elsewhere()), None);
    for nonsense in [
        "",
        "find.rs:1",
        "find.rs:1/xyz/1",
        "find.rs:1/0/0",
        "a/1/1/1",
    ] {
        assert!(Mutant::named(nonsense).is_none(), "{nonsense}");
    }
}

#[test]
fn literals_are_found_in_source_text() {
    let source = r##"
// A comment with "SELECT 1 FROM run WHERE tenant=?" is none.
fn one() {
    let quote = '"';
    let sql = "SELECT {RUN}
      FROM run WHERE tenant=? \"quoted\"";
    let word = "the tenant=? of a person";
    let other = "SELECT 1 FROM run WHERE ?1=tenant";
    let fine = "SELECT tenant, t.tenant FROM tenant WHERE a.tenant<>b.tenant";
}
#[cfg(test)]
mod tests {
    const SQL: &str = "SELECT 1 FROM run WHERE tenant=?";
}
"##;
    let literals = literals(source);
    let found = Written {
        line: 5,
        text: r#"SELECT {} FROM run WHERE [tenant=?] \"quoted\""#.into(),
    };
    assert_eq!(literals.found, [found]);
    let unclear: Vec<usize> = literals.unclear.iter().map(|(line, _)| *line).collect();
    assert_eq!(unclear, [8]);
}
