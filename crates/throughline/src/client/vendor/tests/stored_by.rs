use throughline_model::json::RawJson;
use throughline_model::{
    CallId, Content, Family, Fold, Message, Output, Role, Settings, ToolChoice, ToolResult, Wire,
};

use super::support::{PROJECT, Reply, Service, all};
use crate::client::vendor::{ClientBuilder, Foundry, Gemini, OpenAi};
use crate::client::{ChatClient, ChatRequest, ClientError, ErrorKind, HistoryOwner, StoresHistory};
use crate::prompt::View;
use futures_util::StreamExt;
use throughline_model::Response;

fn storing() -> [ClientBuilder; 3] {
    [
        OpenAi::responses("m"),
        Foundry::new(PROJECT, "m"),
        Gemini::interactions("m"),
    ]
    .map(|builder| builder.api_key("k"))
}

/// Calls both methods; returns the answers and the body that was sent.
async fn asked(
    builder: ClientBuilder,
    reply: Reply,
    view: &View,
    kept: HistoryOwner<'_>,
    extra: Option<&str>,
) -> (Vec<Result<Response, ClientError>>, Option<String>) {
    let service = Service::always(reply);
    let client = builder.transport(service.clone()).build_bare().unwrap();
    let settings = Settings {
        extra: extra.map(|extra| RawJson::new(extra).unwrap()),
        ..Settings::default()
    };
    let request = ChatRequest {
        model: None,
        instructions: None,
        view,
        tools: &[],
        choice: &ToolChoice::Auto,
        settings: &settings,
        history_owner: kept,
        persist: None,
        losses: None,
    };
    let whole = client.respond(&request).await;
    let streamed = match client.stream(&request).await {
        Err(error) => Err(error),
        Ok(events) => {
            let mut fold = Fold::new();
            let events: Vec<_> = events.collect().await;
            let events: Result<Vec<_>, _> = events.into_iter().collect();
            events.map(|events| {
                events.into_iter().for_each(|event| fold.push(event));
                fold.finish()
            })
        }
    };
    let sent = service.seen().into_iter().map(|(.., body)| body).next();
    (vec![whole, streamed], sent)
}

async fn body(builder: ClientBuilder, view: &View, kept: HistoryOwner<'_>) -> String {
    let (_, sent) = asked(builder, Reply::json(400, "{}"), view, kept, None).await;
    sent.unwrap()
}

fn hi() -> View {
    View::new([Message::user("hi")])
}

#[tokio::test]
async fn a_conversation_that_is_kept_here_is_stored_nowhere_and_continues_nothing() {
    for builder in storing() {
        // Not even if the client was built to store.
        let builder = builder.target(|target| target.stored = true);
        let body = body(builder, &hi(), HistoryOwner::Caller).await;
        assert!(body.contains(r#""store":false"#), "{body}");
        for id in ["previous_", "conversation"] {
            assert!(!body.contains(id), "{id} in {body}");
        }
    }
}

#[tokio::test]
async fn a_conversation_that_is_kept_there_goes_on_from_what_the_service_has() {
    let [responses, foundry, interactions] = storing();
    let rows = [
        (responses, "resp_1", r#""previous_response_id":"resp_1""#),
        (foundry, "conv_1", r#""conversation":"conv_1""#),
        (
            interactions,
            "int_1",
            r#""previous_interaction_id":"int_1""#,
        ),
    ];
    for (builder, id, expected) in rows {
        let kept = HistoryOwner::Service { id: Some(id) };
        let body = body(builder, &hi(), kept).await;
        assert!(body.contains(expected), "{body}");
        assert!(body.contains(r#""store":true"#), "{body}");
        assert!(!body.contains("encrypted_content"), "{body}");
    }
    for builder in storing() {
        let body = body(builder, &hi(), HistoryOwner::Service { id: None }).await;
        assert!(body.contains(r#""store":true"#), "{body}");
        for id in ["previous_", "conversation"] {
            assert!(!body.contains(id), "{id} in {body}");
        }
    }
}

#[tokio::test]
async fn a_result_whose_call_the_service_has_is_sent_as_a_result() {
    let call = CallId::natural("call_1").unwrap();
    let mut result = ToolResult::answering(call, Family::FUNCTION, Output::Text("04:12".into()));
    result.name = Some("tide".into());
    let view = View::new([
        Message::new(Role::Tool, vec![Content::from(result)]),
        Message::user("And tomorrow?"),
    ]);
    let [responses, foundry, interactions] = storing();
    let output = r#"{"type":"function_call_output","call_id":"call_1","output":"04:12"}"#;
    let rows = [
        (responses, "resp_1", output),
        (foundry, "conv_1", output),
        (interactions, "int_1", r#""call_id":"call_1""#),
    ];
    for (builder, id, expected) in rows {
        let kept = HistoryOwner::Service { id: Some(id) };
        let body = body(builder, &view, kept).await;
        assert!(body.contains(expected), "{body}");
        assert!(body.contains("And tomorrow?"), "{body}");
    }
}

/// The id under which an answer is stored, read whole; a stream that is answered whole gives the
/// same.
async fn service(builder: ClientBuilder, kept: HistoryOwner<'_>, members: &str) -> Option<String> {
    let reply = match builder.dialect.wire {
        Wire::GeminiInteractions => format!(
            r#"{{"id":"int_2","object":"interaction","model":"m","status":"completed","steps":[{{"type":"model_output","content":[{{"type":"text","text":"hello"}}]}}]{members}}}"#
        ),
        _ => format!(
            r#"{{"id":"resp_2","object":"response","model":"m","status":"completed","output":[{{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"hello","annotations":[]}}]}}]{members}}}"#
        ),
    };
    let streamed = match builder.dialect.wire {
        Wire::GeminiInteractions => format!(
            "event: interaction.completed\ndata: {{\"event_type\":\"interaction.completed\",\"interaction\":{reply}}}\n\n"
        ),
        _ => format!(
            "event: response.completed\ndata: {{\"type\":\"response.completed\",\"sequence_number\":0,\"response\":{reply}}}\n\n"
        ),
    };
    let dialect = builder.dialect;
    let model = || {
        ClientBuilder::new(dialect)
            .model("m")
            .api_key("k")
            .base_url("http://h")
    };
    let (whole, _) = asked(model(), Reply::json(200, &reply), &hi(), kept, None).await;
    let (events, _) = asked(model(), Reply::events(&streamed), &hi(), kept, None).await;
    let found: Vec<_> = whole
        .into_iter()
        .chain(events)
        .map(|answer| answer.unwrap().service)
        .collect();
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
    found.into_iter().next().flatten()
}

#[tokio::test]
async fn an_answer_says_what_it_is_kept_under() {
    let there = |id| HistoryOwner::Service { id };
    let conversation = r#","store":true,"conversation":{"id":"conv_1"}"#;
    let rows = [
        // Nothing was to be stored, and nothing was.
        (0, HistoryOwner::Caller, "", None),
        (
            0,
            HistoryOwner::Caller,
            r#","store":false,"conversation":null"#,
            None,
        ),
        // Stored although it was not to be.
        (0, HistoryOwner::Caller, r#","store":true"#, Some("resp_2")),
        (0, HistoryOwner::Caller, conversation, Some("conv_1")),
        (2, HistoryOwner::Caller, r#","store":true"#, Some("int_2")),
        (2, HistoryOwner::Caller, "", None),
        (0, there(None), r#","store":true"#, Some("resp_2")),
        (0, there(Some("resp_1")), "", Some("resp_2")),
        (0, there(Some("conv_1")), conversation, Some("conv_1")),
        (1, there(Some("conv_1")), r#","store":true"#, Some("conv_1")),
        (2, there(Some("int_1")), "", Some("int_2")),
        // Not stored although it was to be.
        (0, there(Some("resp_1")), r#","store":false"#, None),
        (2, there(None), r#","store":false"#, None),
    ];
    for (place, kept, members, expected) in rows {
        let builder = storing().into_iter().nth(place).unwrap();
        let found = service(builder, kept, members).await;
        assert_eq!(found.as_deref(), expected, "{place} {kept:?} {members}");
    }
}

#[tokio::test]
async fn what_cannot_be_kept_there_is_refused_before_it_is_sent() {
    let reply = Reply::json(200, "{}");
    for builder in all() {
        let stores = builder.abilities.stores_history != StoresHistory::Never;
        for id in [None, Some("resp_1")] {
            let builder = ClientBuilder::new(builder.dialect)
                .model("m")
                .api_key("k")
                .base_url("http://h");
            let kept = HistoryOwner::Service { id };
            let (answers, sent) = asked(builder, reply.clone(), &hi(), kept, None).await;
            assert_eq!(sent.is_some(), stores);
            let error = answers[0].as_ref().unwrap_err();
            assert_eq!(error.kind() == ErrorKind::Setup, !stores, "{error}");
        }
    }
    // Changed abilities do not make a format support storing.
    let chat = OpenAi::chat("m").api_key("k");
    let chat = chat.abilities(|abilities| abilities.stores_history = StoresHistory::Always);
    let kept = HistoryOwner::Service { id: Some("x") };
    let (answers, sent) = asked(chat, reply, &hi(), kept, None).await;
    let error = answers[1].as_ref().unwrap_err();
    assert!(
        error.to_string().contains("keep the thread's history here"),
        "{error}"
    );
    assert_eq!(sent, None);
}

#[tokio::test]
async fn options_that_name_another_conversation_are_refused() {
    let there = |id| HistoryOwner::Service { id };
    let rows = [
        (
            HistoryOwner::Caller,
            r#"{"previous_response_id":"resp_9"}"#,
            false,
        ),
        (
            HistoryOwner::Caller,
            r#"{"conversation":{"id":"conv_9"}}"#,
            false,
        ),
        (
            there(Some("resp_1")),
            r#"{"previous_response_id":"resp_9"}"#,
            false,
        ),
        (
            there(Some("resp_1")),
            r#"{"previous_response_id":null}"#,
            false,
        ),
        (there(None), r#"{"conversation":"conv_9"}"#, false),
        (there(Some("")), "{}", false),
        (there(Some("resp_1")), r#"{"store":false}"#, false),
        (
            there(Some("resp_1")),
            r#"{"previous_response_id":"resp_1"}"#,
            true,
        ),
        (
            there(Some("conv_1")),
            r#"{"conversation":{"id":"conv_1"}}"#,
            true,
        ),
        (HistoryOwner::Caller, r#"{"store":false}"#, true),
    ];
    for (kept, extra, fine) in rows {
        let [responses, ..] = storing();
        let reply = Reply::json(400, "{}");
        let (answers, sent) = asked(responses, reply, &hi(), kept, Some(extra)).await;
        assert_eq!(sent.is_some(), fine, "{kept:?} {extra}");
        let kind = answers[0].as_ref().unwrap_err().kind();
        assert_eq!(kind == ErrorKind::Setup, !fine, "{kept:?} {extra}");
    }
}
