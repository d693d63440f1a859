//! Services whose bodies about stored conversations are not what they should be.

use throughline_model::json::RawJson;
use throughline_model::{Event, Message, Wire};

use super::support::{PROJECT, Reply, Service, stream_events};
use crate::client::vendor::stored::Handle;
use crate::client::vendor::stored_by::StoredBy;
use crate::client::vendor::{ClientBuilder, Foundry, Gemini, OpenAi, VendorClient};
use crate::client::{
    CallStatus, ChatClient, ClientError, ErrorKind, StoredConversations, VendorDeletion,
};
use throughline_wire::render::ChainAt;

fn storing() -> [ClientBuilder; 3] {
    [
        OpenAi::responses("m"),
        Foundry::new(PROJECT, "m"),
        Gemini::interactions("m"),
    ]
    .map(|builder| builder.api_key("sk-canary-1"))
}

fn client(
    builder: ClientBuilder,
    reply: impl Fn(usize) -> String + Send + Sync + 'static,
) -> VendorClient {
    let service = Service::new(move |count| Reply::json(200, reply(count)));
    builder.transport(service).build_bare().unwrap()
}

async fn look_up(client: &VendorClient) -> Result<CallStatus, ClientError> {
    let handle = RawJson::new(r#"{"response":"resp_1"}"#).unwrap();
    client.look_up(&handle).await
}

async fn read(client: &VendorClient, id: &str) -> Result<Vec<Message>, ClientError> {
    client.read(id).await
}

#[tokio::test]
async fn strange_bodies_are_malformed() {
    for body in [
        "[]",
        "7",
        "null",
        r#""x""#,
        r#"{"data":[]}"#,
        r#"{"list":1}"#,
    ] {
        for builder in storing() {
            let client = client(builder, move |_| body.to_owned());
            let kind = |error: ClientError| error.kind();
            let found = look_up(&client).await.map_err(kind);
            assert_eq!(found, Err(ErrorKind::Malformed), "{body}");
            let found = read(&client, "resp_1").await.map_err(kind);
            assert_eq!(found, Err(ErrorKind::Malformed), "{body}");
        }
    }
}

#[tokio::test]
async fn a_list_that_never_ends_is_malformed() {
    let item = r#"{"type":"message","role":"user","id":"msg_1","content":"hi"}"#;
    for page in [
        r#"{"data":[],"has_more":true}"#.to_owned(),
        format!(r#"{{"data":[{item}],"has_more":true,"last_id":"msg_1"}}"#),
        r#"{"data":{},"has_more":true}"#.to_owned(),
        r#"{"data":[7]}"#.to_owned(),
        r#"{"data":[{"type":"message","role":7}]}"#.to_owned(),
    ] {
        for builder in storing().into_iter().take(2) {
            let page = page.clone();
            let client = client(builder, move |_| page.clone());
            let error = read(&client, "conv_1").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
        }
    }
}

#[tokio::test]
async fn answers_that_continue_each_other_in_a_circle_are_malformed() {
    let body = r#"{"id":"resp_1","object":"response","status":"completed","output":[],"steps":[],"data":[],"previous_response_id":"resp_1","previous_interaction_id":"resp_1"}"#;
    for builder in storing() {
        let client = client(builder, move |_| body.to_owned());
        let error = read(&client, "resp_1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    }
}

#[tokio::test]
async fn a_deletion_is_one_request_and_can_be_repeated() {
    let broken = Reply::json(500, r#"{"error":{"message":"try again"}}"#);
    for builder in storing() {
        let script = [broken.clone(), Reply::json(200, "{}")];
        let service = Service::new(move |count| script[count - 1].clone());
        let client = builder.transport(service.clone()).build_bare().unwrap();
        let error = client.delete("resp_2").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let done = client.delete("resp_2").await.unwrap();
        assert_eq!(done, VendorDeletion::Deleted);
        assert_eq!(service.count(), 2);
    }
}

#[tokio::test]
async fn an_operation_that_the_service_does_not_have_is_unsupported() {
    for builder in storing() {
        let service = Service::always(Reply::json(405, "{}"));
        let client = builder.transport(service.clone()).build_bare().unwrap();
        let done = client.delete("resp_1").await.unwrap();
        assert_eq!(done, VendorDeletion::Unsupported);
        assert_eq!(service.count(), 1);
        let error = look_up(&client).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

#[tokio::test]
async fn a_service_that_says_it_deleted_nothing_fails() {
    for builder in storing() {
        let client = client(builder, |_| r#"{"deleted":false}"#.to_owned());
        let error = client.delete("resp_1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn a_key_in_the_reason_of_a_lost_call_is_removed() {
    let body = r#"{"id":"resp_1","object":"response","status":"failed","output":[],"steps":[],"error":{"code":"server_error","message":"sk-canary-1 failed"}}"#;
    for builder in storing() {
        let client = client(builder, move |_| body.to_owned());
        let found = look_up(&client).await.unwrap();
        let CallStatus::Lost { reason } = found else {
            panic!("{found:?}");
        };
        assert!(
            reason.contains("failed") && !reason.contains("canary"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn addresses_and_credentials_are_those_of_model_calls() {
    let body = r#"{"id":"a/b","object":"response","status":"completed","output":[],"data":[]}"#;
    let agent = Foundry::agent_endpoint(PROJECT, "ledger").api_key("sk-canary-1");
    let [responses, foundry, interactions] = storing();
    let rows = [
        (
            responses,
            "https://api.openai.com/v1/responses/a%2Fb".to_owned(),
        ),
        (foundry, format!("{PROJECT}/openai/v1/responses/a%2Fb")),
        (
            interactions,
            "https://generativelanguage.googleapis.com/v1beta/interactions/a%2Fb".to_owned(),
        ),
        (
            agent,
            format!(
                "{PROJECT}/agents/ledger/endpoint/protocols/openai/responses/a%2Fb?api-version=v1"
            ),
        ),
    ];
    for (builder, expected) in rows {
        let is_google = builder.dialect.wire == Wire::GeminiInteractions;
        let service = Service::always(Reply::json(200, body));
        let client = builder.transport(service.clone()).build_bare().unwrap();
        client.read("a/b").await.unwrap();
        let (url, signed, sent) = service.seen().remove(0);
        assert_eq!((url, sent), (expected, String::new()));
        let expected = match is_google {
            true => "x-goog-api-key: sk-canary-1",
            false => "authorization: Bearer sk-canary-1",
        };
        assert_eq!(signed, expected);
    }
}

#[test]
fn handles_read_back_as_they_were_written() {
    let conversation = ChainAt::Conversation("conv_1".to_owned());
    let rows = [
        (StoredBy::Service(None), r#"{"response":"resp_1"}"#),
        (
            StoredBy::Service(Some(conversation)),
            r#"{"response":"resp_1","conversation":"conv_1"}"#,
        ),
        (
            StoredBy::Us,
            r#"{"response":"resp_1","history_owner":"caller"}"#,
        ),
    ];
    for (stored_by, expected) in rows {
        let handle = Handle::of_answer(&stored_by, "resp_1".to_owned(), Some(true)).unwrap();
        assert_eq!(handle.to_json().get(), expected);
        assert_eq!(Handle::parse(&handle.to_json()), Some(handle));
    }
}

#[test]
fn clients_of_other_services_have_no_conversations() {
    let chat = OpenAi::chat("m").api_key("k").build_bare().unwrap();
    assert!(ChatClient::conversations(&chat).is_none());
}

#[tokio::test]
async fn a_stream_without_a_beginning_has_its_handle_before_the_content_too() {
    let item = r#"{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[]}]}"#;
    let rows = [
        (
            "true",
            Some(r#"{"response":"resp_1","history_owner":"caller"}"#),
        ),
        ("false", None),
        ("null", None),
    ];
    for (store, expected) in rows {
        let body = format!(
            r#"{{"id":"resp_1","object":"response","model":"m","status":"completed","store":{store},"output":[{item}]}}"#
        );
        let end = format!(
            "event: response.completed\ndata: {{\"type\":\"response.completed\",\"sequence_number\":0,\"response\":{body}}}\n\n"
        );
        for reply in [Reply::json(200, &body), Reply::events(end)] {
            for builder in storing().into_iter().take(2) {
                let client = builder.transport(Service::always(reply.clone()));
                let events = stream_events(&client.build_bare().unwrap()).await.unwrap();
                assert!(matches!(events[0], Event::Started { .. }), "{events:?}");
                let handles: Vec<(usize, &str)> = events
                    .iter()
                    .enumerate()
                    .filter_map(|(place, event)| match event {
                        Event::Accepted { handle } => Some((place, handle.get())),
                        _ => None,
                    })
                    .collect();
                let expected: Vec<(usize, &str)> =
                    expected.map(|json| (1, json)).into_iter().collect();
                assert_eq!(handles, expected, "{store}");
            }
        }
    }
}
