use futures_util::StreamExt;
use throughline_model::json::RawJson;
use throughline_model::{
    Body, Content, Family, Fold, Media, MediaKind, MediaSource, Message, Outcome, Output, Role,
    Settings, Stop, ToolChoice, ToolDef,
};

use super::Demo;
use crate::client::{ChatClient, ChatRequest, HistoryOwner};
use crate::prompt::View;

fn tool(name: &str, schema: &str) -> ToolDef {
    ToolDef {
        family: Family::FUNCTION,
        name: name.to_owned(),
        description: None,
        parameters: Some(RawJson::new(schema).unwrap()),
        ..ToolDef::default()
    }
}

fn tools() -> Vec<ToolDef> {
    vec![
        tool(
            "get_tide",
            r#"{"type":"object","properties":{"port":{"type":"string"},"days":{"type":"integer"}},"required":["port"]}"#,
        ),
        tool(
            "add",
            r#"{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"},"exact":{"type":"boolean"}}}"#,
        ),
    ]
}

async fn respond(view: &View, settings: &Settings) -> throughline_model::Response {
    let tools = tools();
    let request = ChatRequest {
        model: None,
        instructions: None,
        view,
        tools: &tools,
        choice: &ToolChoice::Auto,
        settings,
        history_owner: HistoryOwner::Caller,
        persist: None,
        losses: None,
    };
    let whole = Demo::new().respond(&request).await.unwrap();
    let mut fold = Fold::new();
    let mut events = Demo::new().stream(&request).await.unwrap();
    while let Some(event) = events.next().await {
        fold.push(event.unwrap());
    }
    assert_eq!(fold.finish(), whole, "spoken and written are one answer");
    whole
}

async fn text(messages: &[&str]) -> String {
    let view = View::new(
        messages
            .iter()
            .copied()
            .map(Message::user)
            .collect::<Vec<_>>(),
    );
    let response = respond(&view, &Settings::default()).await;
    response.messages[0].text()
}

async fn calls(request: &str) -> Vec<(String, String)> {
    let view = View::new(vec![Message::user(request)]);
    let response = respond(&view, &Settings::default()).await;
    let calls = response.messages[0].contents.iter();
    calls
        .filter_map(Content::as_tool_call)
        .map(|call| match &call.arguments {
            throughline_model::Arguments::Text(text) => (call.name.clone(), text.clone()),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn it_answers_from_the_conversation() {
    assert_eq!(
        text(&["one", "two", "What did I say first?"]).await,
        "You first said: \"one\""
    );
    assert_eq!(
        text(&["one", "two", "what did I say last"]).await,
        "You last said: \"two\""
    );
    assert_eq!(
        text(&["one", "How many messages are there?"]).await,
        "There are 2 messages so far, 2 of them yours."
    );
    assert_eq!(
        text(&["what did I say first?"]).await,
        "Nothing before this."
    );
    assert!(text(&["Hello!"]).await.starts_with("Hello!"));
    assert_eq!(text(&["it rains"]).await, "You said: \"it rains\"");
}

#[tokio::test]
async fn it_says_which_images_it_was_sent_and_takes_no_other_media() {
    let media = |kind, uri: &str| {
        Content::new(Body::Media(Media {
            kind,
            media_type: None,
            source: MediaSource::Uri(uri.to_owned()),
            name: None,
            transcript: None,
        }))
    };
    let said = async |contents: Vec<Content>| {
        let view = View::new(vec![Message::new(Role::User, contents)]);
        let response = respond(&view, &Settings::default()).await;
        response.messages[0].text()
    };
    let image = media(MediaKind::Image, "data:image/png;base64,AA==");
    let elsewhere = media(MediaKind::Image, "https://example.com/a");
    assert_eq!(
        said(vec![Content::text("Look!"), image.clone(), elsewhere]).await,
        "You said: \"Look!\", with an image (image/png) and an image (of unknown type)"
    );
    assert_eq!(
        said(vec![image.clone()]).await,
        "You sent an image (image/png)."
    );
    let sound = media(MediaKind::Audio, "data:audio/wav;base64,AA==");
    let view = View::new(vec![Message::new(Role::User, vec![image, sound])]);
    let request = ChatRequest {
        model: None,
        instructions: None,
        view: &view,
        tools: &[],
        choice: &ToolChoice::Auto,
        settings: &Settings::default(),
        history_owner: HistoryOwner::Caller,
        persist: None,
        losses: None,
    };
    let lost = Demo::new().unsupported(&request);
    let paths: Vec<&str> = lost.iter().map(|loss| loss.path.as_str()).collect();
    assert_eq!(paths, ["messages[0].contents[1]"]);
}

#[tokio::test]
async fn it_calls_the_tools_that_are_named() {
    let one = |name: &str, arguments: &str| vec![(name.to_owned(), arguments.to_owned())];
    assert_eq!(
        calls("use get_tide with port=Hull").await,
        one("get_tide", r#"{"port":"Hull"}"#)
    );
    assert_eq!(
        calls("Please call add a=1 b=2.5, exact=yes").await,
        one("add", r#"{"a":1,"b":2.5,"exact":true}"#)
    );
    assert_eq!(
        calls("get_tide for port=\"North Shields\" days=3").await,
        one("get_tide", r#"{"port":"North Shields","days":3}"#)
    );
    assert_eq!(
        calls("What does get_tide say for Hull?").await,
        one("get_tide", r#"{"port":"Hull"}"#)
    );
    assert_eq!(
        calls("call get_tide port=Hull and add a=1 b=1").await,
        vec![
            ("get_tide".to_owned(), r#"{"port":"Hull"}"#.to_owned()),
            ("add".to_owned(), r#"{"a":1,"b":1}"#.to_owned()),
        ]
    );
    assert_eq!(
        calls("What is the tide like in North Shields?").await,
        one("get_tide", r#"{"port":"North Shields"}"#)
    );
    assert_eq!(calls("I saw the tide in Hull.").await, []);
    assert_eq!(calls("additional words").await, []);
}

#[tokio::test]
async fn it_answers_from_the_result_and_calls_no_more() {
    let mut view = View::new(vec![Message::user("use get_tide with port=Hull")]);
    let asked = respond(&view, &Settings::default()).await;
    assert_eq!(asked.stop, Stop::ToolCalls);
    let message = asked.messages[0].clone();
    let call = message.contents[0].as_tool_call().unwrap().clone();
    view.push(message);
    let result = call.answer(Outcome::Ok, Output::Text("04:12".into()));
    view.push(Message::new(Role::Tool, vec![Content::from(result)]));
    let said = respond(&view, &Settings::default()).await;
    assert_eq!(said.messages[0].text(), "get_tide says: 04:12");
    assert_eq!(said.stop, Stop::Done);
}

#[tokio::test]
async fn usage_is_in_words_and_the_limit_holds() {
    let view = View::new(vec![Message::user("one two three")]);
    let settings = Settings {
        max_output_tokens: Some(2),
        ..Settings::default()
    };
    let response = respond(&view, &settings).await;
    assert_eq!(response.messages[0].text(), "You said:");
    assert_eq!(response.stop, Stop::Length);
    let usage = response.usage.unwrap();
    assert_eq!((usage.input, usage.output), (Some(3), Some(2)));
}
