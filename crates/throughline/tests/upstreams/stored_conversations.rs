//! Conversations that a service stores: announced, read back, deleted, and asked about.

use std::sync::Arc;

use futures_util::StreamExt;
use throughline::ChatClient;
use throughline::client::{
    CallStatus, ChatRequest, ErrorKind, HistoryOwner, RetryPolicy, StoredConversations,
    StoresHistory, VendorDeletion, View,
};
use throughline::model::json::RawJson;
use throughline::model::{
    Arguments, Body, Content, Event, Fold, Message, Outcome, Output, Response, Role, Settings, Wire,
};
use throughline_testkit::scripted::Reading;
use throughline_testkit::upstream::{Extent, Fault, KEY, Reply, Script, Setup, Upstream};

use crate::upstreams::common::{Ask, READINGS, WIRES, ask, client_of, run};
use crate::upstreams::log_capture;

/// Formats whose services store conversations.
const STORING: [Wire; 3] = [
    Wire::OpenAiResponses,
    Wire::Foundry,
    Wire::GeminiInteractions,
];

fn client(upstream: &Upstream) -> Arc<dyn ChatClient> {
    let builder = client_of(upstream).retry(RetryPolicy::never());
    builder.build().unwrap()
}

fn stored(client: &Arc<dyn ChatClient>) -> &dyn StoredConversations {
    client.conversations().unwrap()
}

/// A turn with a tool round for each port.
fn script() -> Script {
    let turns = ["Brest", "Ouessant", "Molène"].into_iter();
    Script::new(turns.flat_map(|port| {
        [
            Reply::calls([
                ("tide", format!(r#"{{"port":"{port}"}}"#)),
                ("berths", format!(r#"{{"port":"{port}"}}"#)),
            ])
            .reasoning_first("Let me look."),
            Reply::text(format!("High water at {port}: 04:12.")),
        ]
    }))
}

/// A conversation as it was said to the service and answered by it.
struct Talk {
    upstream: Upstream,
    client: Arc<dyn ChatClient>,
    said: Vec<Message>,
    /// The service's id of the whole conversation.
    id: String,
}

async fn talk(setup: Setup, reading: Reading, in_conversation: bool) -> Talk {
    let upstream = setup.script(script()).start().await;
    let client = client(&upstream);
    let with = Ask::with_tools();
    let mut id = in_conversation.then(|| upstream.conversation());
    let mut said = Vec::new();
    for port in ["Brest", "Ouessant", "Molène"] {
        let mut new = Message::user(format!("When is high water at {port}?"));
        loop {
            said.push(new.clone());
            let view = View::new([new]);
            let request = ChatRequest {
                history_owner: HistoryOwner::Service { id: id.as_deref() },
                ..with.about(&view)
            };
            let answer = ask(&client, &request, reading).await.unwrap();
            id.clone_from(&answer.service);
            said.extend(answer.messages.clone());
            let contents = answer.messages[0].contents.iter();
            let calls = contents.filter_map(Content::as_tool_call);
            let results: Vec<Content> = calls
                .map(|call| call.answer(Outcome::Ok, Output::Text(format!("{} 04:12", call.name))))
                .map(Content::from)
                .collect();
            if results.is_empty() {
                break;
            }
            new = Message::new(Role::Tool, results);
        }
    }
    Talk {
        upstream,
        client,
        said,
        id: id.unwrap(),
    }
}

/// What messages say, without what the vendor adds to them.
fn lines(messages: &[Message]) -> Vec<String> {
    let contents = messages.iter().flat_map(|message| {
        message
            .contents
            .iter()
            .map(|content| (&message.role, content))
    });
    let lines = contents.map(|(role, content)| {
        let words = match &content.body {
            Body::ToolCall(call) => {
                let arguments = match &call.arguments {
                    Arguments::Text(text) => text.clone(),
                    other => format!("{other:?}"),
                };
                format!("{} {} {arguments}", call.call.value(), call.name)
            }
            Body::ToolResult(result) => {
                format!("{} {:?}", result.call().value(), result.output)
            }
            Body::Reasoning(reasoning) => reasoning.summary.join(" "),
            _ => content.as_text().unwrap_or_default().to_owned(),
        };
        format!("{}: {words}", role.as_str())
    });
    lines.collect()
}

fn answers(messages: &[Message]) -> Vec<&Message> {
    let messages = messages.iter();
    messages
        .filter(|message| message.role == Role::Assistant)
        .collect()
}

#[test]
fn a_chain_reads_back_as_it_was_said_over_turns_and_pages() {
    run(async {
        for wire in STORING {
            for reading in READINGS {
                let talk = talk(Upstream::of(wire.clone()).page(1), reading, false).await;
                let read = stored(&talk.client).read(&talk.id).await.unwrap();
                assert_eq!(lines(&read), lines(&talk.said), "{wire} {reading:?}");
                assert_eq!(answers(&read), answers(&talk.said), "{wire} {reading:?}");
                let counts = talk.upstream.counts();
                assert_eq!(counts.model_calls, 6, "{wire}");
                assert!(counts.requests >= 12, "{wire}");
            }
        }
    });
}

#[test]
fn input_that_is_listed_with_everything_before_it_is_read_once() {
    run(async {
        for wire in [Wire::OpenAiResponses, Wire::Foundry] {
            let setup = Upstream::of(wire.clone()).lists_inherited_input().page(4);
            let talk = talk(setup, Reading::Streamed, false).await;
            let read = stored(&talk.client).read(&talk.id).await.unwrap();
            assert_eq!(lines(&read), lines(&talk.said), "{wire}");
        }
    });
}

#[test]
fn a_conversation_reads_back_as_it_was_said_over_pages() {
    run(async {
        for wire in [Wire::OpenAiResponses, Wire::Foundry] {
            for page in [1, 7, 100] {
                let setup = Upstream::of(wire.clone()).page(page);
                let talk = talk(setup, Reading::Whole, true).await;
                assert_eq!(talk.id, "conv_00000001");
                let read = stored(&talk.client).read(&talk.id).await.unwrap();
                assert_eq!(lines(&read), lines(&talk.said), "{wire} {page}");
            }
        }
    });
}

#[test]
fn a_history_that_was_read_back_can_go_on_here() {
    run(async {
        for wire in STORING {
            let talk = talk(Upstream::of(wire.clone()), Reading::Whole, false).await;
            let mut read = stored(&talk.client).read(&talk.id).await.unwrap();
            read.push(Message::user("Thank you."));
            talk.upstream.push(Reply::text("You are welcome."));
            let view = View::new(read);
            let with = Ask::with_tools();
            let answer = ask(&talk.client, &with.about(&view), Reading::Whole).await;
            assert_eq!(answer.unwrap().messages[0].text(), "You are welcome.");
        }
    });
}

#[test]
fn what_is_gone_cannot_be_read() {
    run(async {
        for wire in STORING {
            let talk = talk(Upstream::of(wire.clone()), Reading::Whole, false).await;
            let service = stored(&talk.client);
            let ids: &[&str] = match wire {
                Wire::GeminiInteractions => &["int_9"],
                _ => &["resp_9", "conv_9", "../files/f_1"],
            };
            for id in ids {
                let error = service.read(id).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound, "{wire} {id}: {error}");
            }
            for id in ["", "..", "."] {
                let error = service.read(id).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Setup, "{wire} {id}: {error}");
            }
            // An earlier answer of the chain is gone.
            let first = talk.upstream.stored().remove(0);
            service.delete(&first).await.unwrap();
            let error = service.read(&talk.id).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{wire}: {error}");
        }
    });
}

#[test]
fn deleting_an_answer_leaves_those_that_it_continues() {
    run(async {
        for wire in STORING {
            let talk = talk(Upstream::of(wire.clone()), Reading::Whole, false).await;
            let service = stored(&talk.client);
            let before = talk.upstream.stored();
            assert_eq!(before.len(), 6);
            for left in (0..6).rev() {
                for expected in [VendorDeletion::Deleted, VendorDeletion::Absent] {
                    let done = service.delete(&before[left]).await.unwrap();
                    assert_eq!(done, expected, "{wire}");
                }
                assert_eq!(talk.upstream.stored(), before[..left], "{wire}");
            }
        }
    });
}

#[test]
fn a_conversation_is_deleted_once_and_cannot_be_read_then() {
    run(async {
        for wire in [Wire::OpenAiResponses, Wire::Foundry] {
            let talk = talk(Upstream::of(wire.clone()), Reading::Whole, true).await;
            let service = stored(&talk.client);
            for expected in [VendorDeletion::Deleted, VendorDeletion::Absent] {
                assert_eq!(service.delete(&talk.id).await.unwrap(), expected, "{wire}");
            }
            let error = service.read(&talk.id).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{wire}");
        }
    });
}

#[test]
fn a_service_that_deletes_nothing_says_so() {
    run(async {
        for wire in STORING {
            let setup = Upstream::of(wire.clone()).without_deletion();
            let talk = talk(setup, Reading::Whole, false).await;
            let done = stored(&talk.client).delete(&talk.id).await.unwrap();
            assert_eq!(done, VendorDeletion::Unsupported, "{wire}");
            assert_eq!(talk.upstream.stored().len(), 6, "{wire}");
        }
    });
}

/// The events of a call, and how it ended.
async fn events(
    client: &Arc<dyn ChatClient>,
    owner: HistoryOwner<'_>,
    settings: Settings,
) -> (Vec<Event>, Option<ErrorKind>) {
    let with = Ask::plain();
    let view = View::new([Message::user("When is high water?")]);
    let settings = Settings {
        max_output_tokens: with.settings.max_output_tokens,
        ..settings
    };
    let request = ChatRequest {
        history_owner: owner,
        settings: &settings,
        ..with.about(&view)
    };
    let mut events = Vec::new();
    let mut stream = match client.stream(&request).await {
        Ok(stream) => stream,
        Err(error) => return (events, Some(error.kind())),
    };
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error.kind())),
        }
    }
    (events, None)
}

/// The handles in events, each with whether content came before it.
fn handles(events: &[Event]) -> Vec<(RawJson, bool)> {
    let mut has_content = false;
    let mut handles = Vec::new();
    for event in events {
        match event {
            Event::Accepted { handle } => handles.push((handle.clone(), has_content)),
            Event::Opened { .. }
            | Event::Delta { .. }
            | Event::Summary { .. }
            | Event::Content { .. }
            | Event::Finished { .. } => has_content = true,
            Event::Started { .. } | Event::Speaker { .. } | Event::Other { .. } => {}
        }
    }
    handles
}

#[test]
fn a_stored_call_is_accepted_once_before_its_content_under_the_right_handle() {
    run(async {
        for wire in STORING {
            let upstream = Upstream::of(wire.clone())
                .script(Script::respond_with(|_| Reply::text("04:12.")))
                .start()
                .await;
            let client = client(&upstream);
            let id = match wire {
                Wire::GeminiInteractions => "int_00000001",
                _ => "resp_00000001",
            };
            let new = HistoryOwner::Service { id: None };
            let (first, error) = events(&client, new, Settings::default()).await;
            assert_eq!(error, None, "{wire}");
            let handle = RawJson::new(&format!(r#"{{"response":"{id}"}}"#)).unwrap();
            assert_eq!(handles(&first), [(handle.clone(), false)], "{wire}");

            let next = HistoryOwner::Service { id: Some(id) };
            let (second, _) = events(&client, next, Settings::default()).await;
            let second = handles(&second);
            assert_eq!(second.len(), 1, "{wire}");
            assert!(!second[0].1 && second[0].0 != handle, "{wire}");

            let here = HistoryOwner::Caller;
            let (third, _) = events(&client, here, Settings::default()).await;
            assert_eq!(handles(&third), [], "{wire}: not stored");
        }
        // An answer of a conversation, and one that was stored although the history is ours.
        for wire in [Wire::OpenAiResponses, Wire::Foundry] {
            let replies = [Reply::text("04:12."), Reply::text("05:30.")];
            let upstream = Upstream::start(wire.clone(), replies).await;
            let client = client(&upstream);
            let conversation = upstream.conversation();
            let id = Some(&*conversation);
            let kept = HistoryOwner::Service { id };
            let (there, _) = events(&client, kept, Settings::default()).await;
            let handle =
                RawJson::new(r#"{"response":"resp_00000001","conversation":"conv_00000001"}"#);
            assert_eq!(handles(&there), [(handle.unwrap(), false)], "{wire}");
            let settings = Settings {
                extra: RawJson::new(r#"{"store":true}"#).ok(),
                ..Settings::default()
            };
            let (here, _) = events(&client, HistoryOwner::Caller, settings).await;
            let handle = RawJson::new(r#"{"response":"resp_00000002","history_owner":"caller"}"#);
            assert_eq!(handles(&here), [(handle.unwrap(), false)], "{wire}");
        }
    });
}

#[test]
fn only_clients_of_storing_services_have_conversations() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::start(wire.clone(), [Reply::text("04:12.")]).await;
            let stores = STORING.contains(&wire);
            assert_eq!(
                client(&upstream).conversations().is_some(),
                stores,
                "{wire}"
            );
            let never = client_of(&upstream)
                .abilities(|abilities| abilities.stores_history = StoresHistory::Never)
                .build()
                .unwrap();
            assert!(never.conversations().is_none(), "{wire}");
            let settings = Settings {
                extra: RawJson::new(r#"{"store":true}"#).ok().filter(|_| stores),
                ..Settings::default()
            };
            let (events, _) = events(&never, HistoryOwner::Caller, settings).await;
            assert_eq!(handles(&events), [], "{wire}");
        }
    });
}

/// A call whose connection ended as soon as it was accepted.
async fn detached(wire: &Wire, reply: Reply) -> (Upstream, Arc<dyn ChatClient>, RawJson) {
    let upstream = Upstream::start(wire.clone(), [reply.detached()]).await;
    let client = client(&upstream);
    let new = HistoryOwner::Service { id: None };
    let (events, error) = events(&client, new, Settings::default()).await;
    assert_eq!(error, Some(ErrorKind::Cut), "{wire}");
    let (handle, _) = handles(&events).remove(0);
    (upstream, client, handle)
}

#[test]
fn an_answer_that_went_on_without_us_is_looked_up_until_it_is_whole() {
    run(async {
        for wire in STORING {
            let reply = || Reply::text("04:12 ⚓").reasoning_first("Tide.");
            let (upstream, client, handle) = detached(&wire, reply().running_for(2)).await;
            let service = stored(&client);
            for _ in 0..2 {
                let status = service.look_up(&handle).await.unwrap();
                assert_eq!(status, CallStatus::Running, "{wire}");
            }
            let whole = {
                let other = Upstream::start(wire.clone(), [reply()]).await;
                let client = self::client(&other);
                let new = HistoryOwner::Service { id: None };
                let (events, _) = events(&client, new, Settings::default()).await;
                let mut fold = Fold::new();
                events.into_iter().for_each(|event| fold.push(event));
                fold.finish()
            };
            // Asking again has no effect.
            for _ in 0..2 {
                let status = service.look_up(&handle).await.unwrap();
                assert_eq!(
                    status,
                    CallStatus::Answered(Box::new(whole.clone())),
                    "{wire}"
                );
            }
            assert_eq!(upstream.counts().model_calls, 1, "{wire}");
            assert_eq!(whole.messages[0].text(), "04:12 ⚓");
        }
    });
}

#[test]
fn a_call_that_will_have_no_answer_is_lost_with_its_reason() {
    run(async {
        for wire in STORING {
            let rows = [
                ("failed", "The model failed."),
                ("cancelled", "the service says: cancelled"),
                ("brand_new", "the service says: brand_new"),
            ];
            for (status, expected) in rows {
                let reply = Reply::text("04:12.").ended_as(status);
                let (_upstream, client, handle) = detached(&wire, reply).await;
                let found = stored(&client).look_up(&handle).await.unwrap();
                let reason = expected.to_owned();
                assert_eq!(found, CallStatus::Lost { reason }, "{wire} {status}");
            }
            let (upstream, client, handle) = detached(&wire, Reply::text("04:12.")).await;
            let id = upstream.stored().remove(0);
            stored(&client).delete(&id).await.unwrap();
            let found = stored(&client).look_up(&handle).await.unwrap();
            assert!(
                matches!(&found, CallStatus::Lost { reason } if reason.contains("not found")),
                "{wire} {found:?}"
            );
        }
    });
}

#[test]
fn an_answer_at_the_token_limit_or_with_calls_is_whole() {
    run(async {
        for wire in STORING {
            for reply in [
                Reply::text("04:1").cut_off(),
                Reply::calls([("tide", r#"{"port":"Brest"}"#)]),
            ] {
                let (_upstream, client, handle) = detached(&wire, reply).await;
                let found = stored(&client).look_up(&handle).await.unwrap();
                let CallStatus::Answered(response) = found else {
                    panic!("{wire} {found:?}");
                };
                assert!(response.service.is_some(), "{wire}");
            }
        }
    });
}

/// The service id of an answer that is looked up.
async fn looked_up(client: &Arc<dyn ChatClient>, handle: &RawJson) -> Response {
    match stored(client).look_up(handle).await.unwrap() {
        CallStatus::Answered(response) => *response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_that_is_looked_up_continues_what_its_call_continued() {
    run(async {
        for wire in [Wire::OpenAiResponses, Wire::Foundry] {
            let reply = Reply::text("04:12.").detached();
            let upstream = Upstream::start(wire.clone(), [reply]).await;
            let client = client(&upstream);
            let conversation = upstream.conversation();
            let id = Some(&*conversation);
            let (events, _) =
                events(&client, HistoryOwner::Service { id }, Settings::default()).await;
            let (handle, _) = handles(&events).remove(0);
            let answer = looked_up(&client, &handle).await;
            assert_eq!(answer.service, Some(conversation), "{wire}");
        }
    });
}

#[test]
fn failures_of_the_service_and_malformed_bodies_are_errors() {
    log_capture::begin();
    run(async {
        for wire in STORING {
            let (upstream, client, handle) = detached(&wire, Reply::text("à 04:12.")).await;
            let service = stored(&client);
            let id = upstream.stored().remove(0);
            for (fault, kinds) in [
                (Fault::ServerError, &[ErrorKind::Unavailable][..]),
                (Fault::RateLimited, &[ErrorKind::RateLimited]),
                (Fault::Unauthorised, &[ErrorKind::Auth]),
                (Fault::Reset, &[ErrorKind::Cut, ErrorKind::Connect]),
                (Fault::CutBetweenEvents, &[ErrorKind::Cut]),
                (Fault::NotJson, &[ErrorKind::Malformed]),
                (Fault::NotUtf8, &[ErrorKind::Malformed]),
                (Fault::Empty, &[ErrorKind::Cut]),
                (Fault::WrongContentType, &[ErrorKind::Malformed]),
                (Fault::Oversized, &[ErrorKind::TooLarge]),
            ] {
                upstream.inflict(fault, Extent::Always).await;
                let error = service.look_up(&handle).await.unwrap_err();
                assert!(kinds.contains(&error.kind()), "{wire} {fault:?}: {error}");
                let error = service.read(&id).await.unwrap_err();
                assert!(kinds.contains(&error.kind()), "{wire} {fault:?}: {error}");
            }
            upstream.heal().await;
            looked_up(&client, &handle).await;
            // The service deleted it, and its answer cannot be read.
            upstream.inflict(Fault::NotJson, Extent::Always).await;
            let error = service.delete(&id).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{wire}: {error}");
            upstream.heal().await;
            let again = service.delete(&id).await.unwrap();
            assert_eq!(again, VendorDeletion::Absent, "{wire}");
            for strange in [r#"{"task":"t_1"}"#, r#""resp_1""#, r#"{"response":""}"#] {
                let error = service.look_up(&RawJson::new(strange).unwrap()).await;
                assert_eq!(error.unwrap_err().kind(), ErrorKind::Setup, "{strange}");
            }
        }
    });
    assert!(!log_capture::logged().contains(KEY));
}
