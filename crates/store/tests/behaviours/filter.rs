//! Some of a thread's messages.

use throughline_model::{CallId, Content, Message, Outcome, Output, Role, Source, ToolCall};
use throughline_store::{Entry, Error, MessageFilter, Page, Span, Store, ThreadId};
use throughline_testkit::record::{assistant, user};

use crate::behaviours::ground::{add, adding, at, each, history, local, thread};

const INJECTION: &str = "' OR 1=1";

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall::function(CallId::natural(id).unwrap(), tool, "{}")
}

/// A round of calls, each of a tool, and their results in one message.
fn round(tools: &[&str]) -> [Message; 2] {
    let calls: Vec<ToolCall> = tools.iter().map(|tool| call(tool, tool)).collect();
    let answer = |call: &ToolCall| {
        let output = Output::Text("done".to_owned());
        Content::from(call.answer(Outcome::Ok, output))
    };
    let results = calls.iter().map(answer).collect();
    let calls = calls.into_iter().map(Content::from).collect();
    [
        Message {
            source: Some(Source::Model),
            ..Message::new(Role::Assistant, calls)
        },
        Message {
            source: Some(Source::Tool),
            ..Message::new(Role::Tool, results)
        },
    ]
}

/// Everything that fits, by pages of a size in both directions.
async fn fitting(store: &Store, id: &ThreadId, filter: &MessageFilter, limit: usize) -> Vec<Entry> {
    let read = async |span| -> Page {
        let page = store
            .read_matching(&local(), &at(id), filter, span, limit)
            .await
            .unwrap();
        // Only the last page may have fewer.
        assert!(page.entries.len() == limit || !page.more);
        page
    };
    let mut forwards: Vec<Entry> = Vec::new();
    let mut page = read(Span::After(0)).await;
    loop {
        let more = page.more;
        forwards.extend(page.entries);
        if !more {
            break;
        }
        page = read(Span::After(forwards.last().unwrap().last)).await;
    }
    let mut backwards: Vec<Entry> = Vec::new();
    let mut page = read(Span::Tail).await;
    loop {
        let more = page.more;
        backwards.splice(0..0, page.entries);
        if !more {
            break;
        }
        page = read(Span::Before(backwards[0].first)).await;
    }
    assert_eq!(forwards, backwards);
    forwards
}

#[test]
fn b143_a_filter_gives_a_subsequence_and_values_match_only_themselves() {
    each(async |ground| {
        let store = ground.open().await;
        let id = thread(&store, "t").await;
        let mut runs = Vec::new();
        // More than one scan of the filter is long.
        for n in 0..100 {
            let [calls, results] = match n % 3 {
                0 => round(&["get_tide"]),
                1 => round(&["get_wind", "get_tide"]),
                _ => round(&["get_wind"]),
            };
            let messages = [
                user(&format!("ask {n}")),
                calls,
                results,
                assistant(&format!("answer {n}")),
            ];
            let append = adding(&store, &id, &messages);
            store.append(&local(), &append).await.unwrap();
            runs.push(append.run);
        }
        let odd = Message {
            source: Some(Source::named(INJECTION)),
            ..Message::new(Role::named(INJECTION), vec![Content::text("odd")])
        };
        add(&store, &id, &[odd]).await;
        add(&store, &id, &round(&[INJECTION])).await;

        let whole = history(&store, &id).await.unwrap();
        let run = runs[41].to_string();
        for (pairs, count) in [
            (&[][..], 403),
            (&[("role", "user")], 100),
            (&[("role", "tool")], 101),
            (&[("source", "model")], 201),
            (&[("run", run.as_str())], 4),
            // Calls and results of 34 and 33 rounds.
            (&[("tool", "get_tide")], 134),
            (&[("tool", "get_tide"), ("role", "tool")], 67),
            (&[("run", run.as_str()), ("source", "caller")], 1),
            (&[("role", "nobody")], 0),
            (&[("role", INJECTION)], 1),
            (&[("source", INJECTION)], 1),
            (&[("tool", INJECTION)], 2),
            (&[("tool", "get_%")], 0),
            (&[("tool", "")], 0),
        ] {
            let filter = MessageFilter::parse(pairs).unwrap();
            // The same entries, with the positions that they have.
            let expected: Vec<Entry> = whole
                .iter()
                .filter(|entry| fits(entry, pairs))
                .cloned()
                .collect();
            assert_eq!(expected.len(), count, "{pairs:?}");
            for limit in [1, 30, 1000] {
                let found = fitting(&store, &id, &filter, limit).await;
                assert_eq!(found, expected, "{pairs:?} in pages of {limit}");
            }
        }
        for (pairs, why) in [
            (
                &[("colour", "red")][..],
                "message filter: \"colour\" is no key; use role, source, run, tool",
            ),
            (
                &[("role", "user"), (INJECTION, "x")],
                "message filter: \"' OR 1=1\" is no key; use role, source, run, tool",
            ),
            (
                &[("Role", "user")],
                "message filter: \"Role\" is no key; use role, source, run, tool",
            ),
            (
                &[("role", "user"), ("role", "tool")],
                "message filter: \"role\" is given twice",
            ),
            (
                &[("run", INJECTION)],
                "message filter: \"' OR 1=1\" is no run id; one is run_ and 32 hex digits",
            ),
        ] {
            let error = MessageFilter::parse(pairs).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
            assert_eq!(error.to_string(), why);
        }
    });
}

/// What the filter should do, in the plainest way.
fn fits(entry: &Entry, pairs: &[(&str, &str)]) -> bool {
    use throughline_model::Body;
    let message = &entry.message;
    pairs.iter().all(|(key, value)| match *key {
        "role" => message.role.as_str() == *value,
        "source" => message.source.as_ref().map(Source::as_str) == Some(value),
        "run" => entry.at.run.to_string() == *value,
        _ => message.contents.iter().any(|content| match &content.body {
            Body::ToolCall(call) => call.name == *value,
            Body::ToolResult(result) => result.name.as_deref() == Some(value),
            _ => false,
        }),
    })
}
