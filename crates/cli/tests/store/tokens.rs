//! The token counts of threads, as commands show them.

use super::{Place, example, length, number, text};

/// The `tokens` of the members of a list in JSON.
fn listed(form: &throughline_model::json::RawJson, list: &str) -> Vec<u64> {
    let value = form.value();
    let list = value.get(list).unwrap().as_array().unwrap();
    let tokens = list.iter().map(|one| one.get("tokens").unwrap().as_u64());
    tokens.map(Option::unwrap).collect()
}

#[test]
fn b245_threads_are_listed_shown_and_exported_with_the_sum_of_their_tokens() {
    let place = Place::with_example("tokens");
    let list = place.json(&["threads", "list"]);
    assert_eq!(listed(&list, "threads"), [80]);
    let form = place.json(&["threads", "show", "ticket-4711"]);
    assert_eq!(number(&form, &["thread", "tokens"]), 80);
    assert_eq!(number(&form, &["tip", "tokens"]), 80);
    assert_eq!(listed(&form, "messages"), [11, 8, 10, 24, 14, 13]);
    assert!(
        place
            .ok(&["threads", "list"])
            .contains("  7 items, 80 tokens, ")
    );
    assert!(
        place
            .ok(&["threads", "show", "ticket-4711"])
            .contains("  7 items, 80 tokens, ")
    );

    // The export has the counts that the example has.
    let exported = place.ok(&["threads", "export", "ticket-4711"]);
    assert_eq!(exported, example());
    let form = place.json(&["threads", "export", "ticket-4711", "--out", "a.ndjson"]);
    assert_eq!(number(&form, &["tokens"]), 80);

    // A fork from the middle, and a transcript without counts.
    let node = format!("node_{}_0", super::RUN);
    let fork = place.json(&["threads", "fork", &node, "--id", "fork"]);
    assert_eq!(number(&fork, &["thread", "tokens"]), 53);
    let transcript = br#"[{"role":"user","content":"When is the tide in Hamburg?"}]"#;
    let import = [
        "--json",
        "threads",
        "import",
        "--from",
        "openai-chat",
        "--as",
        "new",
    ];
    let run = place.input(&import, transcript);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let form = throughline_model::json::RawJson::new(&run.out).unwrap();
    assert_eq!(
        (text(&form, &["thread"]), number(&form, &["tokens"])),
        ("new".into(), 11)
    );
    let list = place.json(&["threads", "list"]);
    assert_eq!(length(&list, &["threads"]), 3);
    assert_eq!(listed(&list, "threads").iter().sum::<u64>(), 80 + 53 + 11);
    let sound = place.ok(&["fsck"]);
    assert!(sound.ends_with(": sound\n"), "{sound}");
}
