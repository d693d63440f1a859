//! Tool calls and their results reach a vendor in one place.
//!
//! What a model is shown of a tool round is decided by a `ToolHistoryStrategy`, which the renderer asks in
//! `renderer/rounds.rs`. A second way to the vendor would show rounds that the strategy was to leave out, and a
//! history that was never repaired. Each rule is a row of words that stand one after the other in code; the
//! places that may have them are listed with their reason, and a place that no longer needs it is taken off.

use super::Violation;
use super::code::{line_at, without_text, words};
use super::files::Source;

struct Rule {
    /// The words, punctuation aside.
    words: &'static [&'static str],
    /// What they do, for the complaint.
    does: &'static str,
    /// Where the rule applies.
    within: &'static str,
    /// Files and folders that may, and why.
    allowed: &'static [(&'static str, &'static str)],
    remedy: &'static str,
}

const STRATEGY: &str = "crates/wire/src/render/strategy.rs";
const ROUNDS: &str = "crates/wire/src/render/renderer/rounds.rs";

const USE_ROUNDS: &str = "leave it to the strategy: give the round to `show` in renderer/rounds.rs";
const USE_RENDER: &str = "send what `throughline_wire::render` gives for the history";

/// Who may write a history as a vendor's messages.
const WRITERS: &[(&str, &str)] = &[
    (
        "crates/wire/src/render/native_form.rs",
        "tries whether a form still holds; nothing of it is sent",
    ),
    ("crates/wire/src/codec.rs", "the trait"),
    (
        "crates/server/src/api/openai/items/output/original.rs",
        "shows clients what was said; no model is sent any of it",
    ),
    (
        "crates/server/src/api/anthropic/wire/block.rs",
        "shows clients a block as the upstream sent it; no model is sent any of it",
    ),
    ("crates/wire/src/anthropic/", "a codec"),
    ("crates/wire/src/foundry/", "a codec"),
    ("crates/wire/src/gemini/", "a codec"),
    ("crates/wire/src/gemini_interactions/", "a codec"),
    ("crates/wire/src/openai_chat/", "a codec"),
    ("crates/wire/src/openai_responses/", "a codec"),
    (
        "crates/wire/src/render/renderer/mod.rs",
        "writes what the strategy gave",
    ),
    (
        "crates/wire/src/transcript/mod.rs",
        "writes files as they were, not requests",
    ),
    (
        "crates/wire/src/convert.rs",
        "writes the body around what was rendered",
    ),
    ("crates/testkit/", "tests the codecs themselves"),
    ("crates/bench/", "measures the codecs themselves"),
];

const RULES: &[Rule] = &[
    Rule {
        words: &["ToolEntry"],
        does: "a tool round is put together",
        within: "crates/",
        allowed: &[
            (STRATEGY, "declares it"),
            (ROUNDS, "the one place"),
            ("crates/wire/src/render/mod.rs", "exports it"),
        ],
        remedy: USE_ROUNDS,
    },
    Rule {
        words: &["Message", "new", "Role", "Tool"],
        does: "a message of tool results is made for a vendor",
        within: "crates/wire/src/render/",
        allowed: &[
            (STRATEGY, "the native strategy"),
            (ROUNDS, "results that no call asked for"),
            (
                "crates/wire/src/render/order.rs",
                "puts the history in order before it is rendered",
            ),
        ],
        remedy: USE_ROUNDS,
    },
    Rule {
        words: &["Role", "Tool"],
        does: "a message is told to be, or made to be, one of tool results",
        within: "crates/wire/src/render/",
        allowed: &[
            (STRATEGY, "the native strategy"),
            (ROUNDS, "the one place"),
            (
                "crates/wire/src/render/order.rs",
                "puts the history in order before it is rendered",
            ),
            (
                "crates/wire/src/render/renderer/mod.rs",
                "tells whose a message is",
            ),
            (
                "crates/wire/src/render/native_form.rs",
                "tells whose a form is",
            ),
            (
                "crates/wire/src/render/format.rs",
                "has the words for roles on the wire",
            ),
        ],
        remedy: USE_ROUNDS,
    },
    Rule {
        words: &["placeholder_text", "result"],
        does: "a tool result is put into words",
        within: "crates/wire/src/render/",
        allowed: &[
            (STRATEGY, "the text strategy"),
            (ROUNDS, "results that no call asked for"),
            (
                "crates/wire/src/render/content_filter.rs",
                "tools that a vendor ran",
            ),
            (
                "crates/wire/src/render/mod.rs",
                "exports it for Foundry, whose own tools are shown so",
            ),
        ],
        remedy: USE_ROUNDS,
    },
    Rule {
        words: &["placeholder_text", "call"],
        does: "a tool call is put into words",
        within: "crates/wire/src/render/",
        allowed: &[
            (STRATEGY, "the text strategy"),
            (
                "crates/wire/src/render/content_filter.rs",
                "tools that a vendor ran",
            ),
        ],
        remedy: USE_ROUNDS,
    },
    Rule {
        words: &["encode_items"],
        does: "a history is written without being rendered",
        within: "crates/",
        allowed: WRITERS,
        remedy: USE_RENDER,
    },
    Rule {
        words: &["encode_messages"],
        does: "a history is written without being rendered",
        within: "crates/",
        allowed: WRITERS,
        remedy: USE_RENDER,
    },
    Rule {
        words: &["encode_request"],
        does: "a request is written without being rendered",
        within: "crates/",
        allowed: WRITERS,
        remedy: USE_RENDER,
    },
];

pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    for source in sources.iter().filter(|source| is_checked(&source.path)) {
        let code = without_text(&source.text);
        let found: Vec<(usize, &str)> = words(&code).collect();
        for rule in RULES
            .iter()
            .filter(|rule| source.path.starts_with(rule.within))
        {
            let mut places = found.windows(rule.words.len()).filter(|window| {
                let window = window.iter().map(|(_, word)| word);
                window.eq(rule.words)
            });
            let allowed = rule.allowed.iter().map(|(place, _)| *place);
            let allowed = allowed.filter(|place| source.path.starts_with(place));
            if let Some(place) = allowed.clone().next() {
                if places.next().is_some() {
                    used.push(place);
                }
                continue;
            }
            violations.extend(places.map(|window| {
                let line = line_at(&code, window[0].0);
                let what = format!("{}: {}", rule.words.join("::"), rule.does);
                Violation::new(&source.path, line, what, rule.remedy)
            }));
        }
    }
    violations.extend(stale(&used));
    violations
}

/// Tests look at the codecs from all sides, and send nothing.
fn is_checked(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    path.ends_with(".rs") && !is_test
}

/// Places that may do what none of them does any more.
fn stale(used: &[&str]) -> Vec<Violation> {
    let places = RULES.iter().flat_map(|rule| rule.allowed);
    let mut places: Vec<&str> = places.map(|(place, _)| *place).collect();
    places.sort_unstable();
    places.dedup();
    places
        .into_iter()
        .filter(|place| !used.contains(place))
        .map(|place| {
            let what = format!("{place} is allowed to show tool rounds and does not");
            Violation::new("xtask/src/tidy/rounds.rs", 1, what, "take it off the list")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{check, is_checked};
    use crate::tidy::files::Source;

    /// What is wrong with one file, those that are missing beside it left aside.
    fn complaints(path: &str, text: &str) -> Vec<String> {
        let found = check(&[Source::new(path, text)]).into_iter();
        let found = found.filter(|found| found.file == path);
        found.map(|found| found.to_string()).collect()
    }

    #[test]
    fn a_second_path_inside_the_renderer_is_found() {
        let path = "crates/wire/src/render/extra.rs";
        let planted = "fn f() {\n    let said = Message::new(Role::Tool, results);\n    self.codec.encode_items(&[said], losses)\n}\n";
        let renderer = "crates/wire/src/render/renderer/mod.rs";
        assert_eq!(complaints(renderer, planted).len(), 1);
        assert_eq!(
            complaints(path, planted),
            [
                "crates/wire/src/render/extra.rs:2: Message::new::Role::Tool: a message of tool results is made for a vendor; leave it to the strategy: give the round to `show` in renderer/rounds.rs",
                "crates/wire/src/render/extra.rs:2: Role::Tool: a message is told to be, or made to be, one of tool results; leave it to the strategy: give the round to `show` in renderer/rounds.rs",
                "crates/wire/src/render/extra.rs:3: encode_items: a history is written without being rendered; send what `throughline_wire::render` gives for the history",
            ]
        );
        for second in [
            "fn f() { Content::text(placeholder_text::result(result)) }",
            "fn f() { placeholder_text::call(call) }",
            "fn f() { vec![ToolEntry { call, result }] }",
        ] {
            assert_eq!(complaints(path, second).len(), 1, "{second}");
        }
    }

    #[test]
    fn a_second_path_in_another_crate_is_found() {
        for second in [
            "fn send() { codec.encode_messages(&history, &mut losses) }",
            "fn send() { codec.encode_request(&request, &mut losses) }",
        ] {
            assert_eq!(complaints("crates/server/src/chat.rs", second).len(), 1);
            assert_eq!(complaints("crates/server/tests/chat.rs", second).len(), 0);
        }
        let own = "fn append() { thread.push(Message::new(Role::Tool, results)) }";
        assert!(complaints("crates/agent/src/step.rs", own).is_empty());
        let told = "// codec.encode_messages is for files\nfn send() { render(&history) }";
        assert!(complaints("crates/server/src/chat.rs", told).is_empty());
    }

    #[test]
    fn leave_that_nobody_needs_is_taken_back() {
        let found = check(&[Source::new("crates/wire/src/lib.rs", "")]);
        assert!(found.iter().any(|found| {
            let text = found.to_string();
            text.contains("crates/wire/src/convert.rs is allowed to show tool rounds and does not")
        }));
    }

    #[test]
    fn tests_are_not_checked() {
        assert!(is_checked("crates/wire/src/render/mod.rs"));
        assert!(!is_checked("crates/wire/src/render/tests.rs"));
        assert!(!is_checked("crates/wire/src/gemini/made_tests.rs"));
        assert!(!is_checked("crates/wire/tests/it/render.rs"));
    }
}
