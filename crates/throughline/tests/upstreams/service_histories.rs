//! Service-owned conversations: each request has only what is new.

use std::sync::Arc;

use throughline::ChatClient;
use throughline::client::{ChatRequest, ErrorKind, HistoryOwner, View};
use throughline::model::{CallId, Content, Family, Message, Output, Role, ToolResult, Wire};
use throughline_testkit::scripted::Reading;
use throughline_testkit::upstream::{Reply, Script, Upstream};

use crate::upstreams::common::{Ask, READINGS, ask, client_of, run};

/// Formats whose services store conversations.
const STORING: [Wire; 3] = [
    Wire::OpenAiResponses,
    Wire::Foundry,
    Wire::GeminiInteractions,
];

/// Three turns, each with a tool round.
fn script() -> Script {
    let turns = ["Brest", "Ouessant", "Molène"].into_iter();
    Script::new(turns.flat_map(|port| {
        [
            Reply::calls([
                ("tide", format!(r#"{{"port":"{port}"}}"#)),
                ("berths", format!(r#"{{"port":"{port}"}}"#)),
            ])
            .reasoning_first("Let me look."),
            Reply::text(format!("High water at {port}: 04:12.")).reasoning_first("Now I know."),
        ]
    }))
}

/// The ids that the service issued, and how many items each request had.
async fn talk(wire: &Wire, reading: Reading, conversation: bool) -> (Vec<String>, Vec<usize>) {
    let upstream = Upstream::start(wire.clone(), script()).await;
    let client: Arc<dyn ChatClient> = Arc::new(client_of(&upstream).build_bare().unwrap());
    let with = Ask::with_tools();
    let mut id = conversation.then(|| upstream.conversation());
    let mut ids = Vec::new();
    for port in ["Brest", "Ouessant", "Molène"] {
        let mut new = vec![Message::user(format!("When is high water at {port}?"))];
        loop {
            let view = View::new(new);
            let request = ChatRequest {
                history_owner: HistoryOwner::Service { id: id.as_deref() },
                ..with.about(&view)
            };
            let answer = ask(&client, &request, reading).await;
            let answer = answer.unwrap_or_else(|error| panic!("{wire} {reading:?}: {error}"));
            id.clone_from(&answer.service);
            ids.extend(answer.service);
            let contents = answer.messages[0].contents.iter();
            let calls = contents.filter_map(Content::as_tool_call);
            let results: Vec<Content> = calls
                .map(|call| {
                    call.answer(
                        throughline::model::Outcome::Ok,
                        Output::Text("04:12".into()),
                    )
                })
                .map(Content::from)
                .collect();
            if results.is_empty() {
                break;
            }
            new = vec![Message::new(Role::Tool, results)];
        }
    }
    assert_eq!(upstream.left(), 0);
    let requests = upstream.requests();
    let items = requests.iter().map(|request| {
        assert_eq!(request.body["store"], true);
        request.body["input"].as_array().unwrap().len()
    });
    (ids, items.collect())
}

#[test]
fn three_turns_with_tools_send_only_what_the_service_does_not_have() {
    run(async {
        for wire in STORING {
            for reading in READINGS {
                let (ids, items) = talk(&wire, reading, false).await;
                assert_eq!(items, [1, 2, 1, 2, 1, 2], "{wire} {reading:?}");
                let mut different = ids.clone();
                different.dedup();
                assert_eq!((ids.len(), different.len()), (6, 6), "{wire} {reading:?}");
            }
        }
    });
}

#[test]
fn a_conversation_has_one_id_for_all_turns() {
    run(async {
        for wire in [Wire::OpenAiResponses, Wire::Foundry] {
            for reading in READINGS {
                let (ids, items) = talk(&wire, reading, true).await;
                assert_eq!(items, [1, 2, 1, 2, 1, 2], "{wire} {reading:?}");
                assert_eq!(ids, ["conv_00000001"; 6], "{wire} {reading:?}");
            }
        }
    });
}

#[test]
fn what_the_service_does_not_hold_is_not_found_and_its_orphans_are_refused() {
    run(async {
        for wire in STORING {
            let upstream = Upstream::start(wire.clone(), [Reply::text("Hello.")]).await;
            let client: Arc<dyn ChatClient> = Arc::new(client_of(&upstream).build_bare().unwrap());
            let with = Ask::with_tools();
            let hello = View::new([Message::user("hello")]);
            let ids: &[&str] = match wire {
                Wire::GeminiInteractions => &["int_9"],
                _ => &["resp_9", "conv_9"],
            };
            for id in ids {
                let request = ChatRequest {
                    history_owner: HistoryOwner::Service { id: Some(id) },
                    ..with.about(&hello)
                };
                let error = ask(&client, &request, Reading::Streamed).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound, "{wire} {id}: {error}");
            }
            let first = ChatRequest {
                history_owner: HistoryOwner::Service { id: None },
                ..with.about(&hello)
            };
            let first = ask(&client, &first, Reading::Whole).await.unwrap();
            let call = CallId::natural("call_of_nobody").unwrap();
            let mut orphan =
                ToolResult::answering(call, Family::FUNCTION, Output::Text("x".into()));
            orphan.name = Some("tide".into());
            let orphan = View::new([Message::new(Role::Tool, vec![Content::from(orphan)])]);
            let request = ChatRequest {
                history_owner: HistoryOwner::Service {
                    id: first.service.as_deref(),
                },
                ..with.about(&orphan)
            };
            let error = ask(&client, &request, Reading::Whole).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{wire}: {error}");
        }
    });
}
