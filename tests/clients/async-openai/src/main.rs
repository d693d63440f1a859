//! Holds a running server against the async-openai crate, unmodified.

mod harness;

use std::process::ExitCode;
use std::time::Duration;

use async_openai::error::OpenAIError;
use async_openai::types::responses::{
    ConversationItem, CreateConversationItemsRequest, CreateConversationRequest, CreateResponse,
    EasyInputContent, EasyInputMessage, FunctionCallOutputItemParam, FunctionTool,
    FunctionToolCall, IncludeEnum, InputContent, InputImageContent, InputItem, InputParam, Item,
    MessageItem, OutputItem, Reasoning, ReasoningEffort, ReasoningSummary, Response,
    ResponseFormatJsonSchema, ResponseStreamEvent, Role, Status, Tool, UpdateConversationRequest,
};
use futures_util::StreamExt;
use harness::{Failure, World};
use serde_json::{Value, json};

const SDK: &str = "async-openai 0.43.0";

/// No task needs more model calls, so a loop that does not end fails.
const MOST_CALLS: usize = 5;

const STEPS: &str = "think first: step by step: use get_tide with port=Hull; call add a=1 b=2";
const STEPS_RECEIVED: [&str; 5] = [
    "user: think first: step by step: use get_tide with port=Hull; call add a=1 b=2",
    "call: get_tide {\"port\":\"Hull\"}",
    "result: 04:12 in Hull",
    "call: add {\"a\":1,\"b\":2}",
    "result: 3",
];
const BOTH: &str = "think first: call get_tide port=Hull and add a=1 b=2";
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// How the next request of a loop knows what was before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum History {
    /// By the id of the response before.
    Chained,
    /// By its items, which the server has stored too.
    Replayed,
    /// By its items, with sealed reasoning; nothing is stored.
    Sealed,
}

fn tools() -> Vec<Tool> {
    let tool = |name: &str, properties: Value, required: Value| {
        Tool::Function(FunctionTool {
            name: name.to_owned(),
            parameters: Some(json!({"type": "object", "properties": properties,
                "required": required, "additionalProperties": false})),
            strict: Some(true),
            ..FunctionTool::default()
        })
    };
    vec![
        tool(
            "get_tide",
            json!({"port": {"type": "string"}}),
            json!(["port"]),
        ),
        tool(
            "add",
            json!({"a": {"type": "number"}, "b": {"type": "number"}}),
            json!(["a", "b"]),
        ),
    ]
}

fn run_tool(call: &FunctionToolCall) -> Result<String, Failure> {
    let given: Value = serde_json::from_str(&call.arguments)?;
    Ok(match call.name.as_str() {
        "get_tide" => format!("04:12 in {}", given["port"].as_str().unwrap_or_default()),
        _ => {
            let number = |name: &str| given[name].as_f64().unwrap_or_default();
            (number("a") + number("b")).to_string()
        }
    })
}

fn request(world: &World, input: impl Into<InputParam>) -> CreateResponse {
    CreateResponse {
        model: Some(world.model.clone()),
        instructions: Some("Answer briefly.".to_owned()),
        input: input.into(),
        reasoning: Some(Reasoning {
            effort: Some(ReasoningEffort::Low),
            summary: Some(ReasoningSummary::Auto),
            ..Reasoning::default()
        }),
        ..CreateResponse::default()
    }
}

/// The items of a response as they are sent back.
fn items(response: &Response) -> Vec<InputItem> {
    let item = |item: &OutputItem| match item.clone() {
        OutputItem::Message(message) => Some(Item::Message(MessageItem::Output(message))),
        OutputItem::FunctionCall(call) => Some(Item::FunctionCall(call)),
        OutputItem::Reasoning(reasoning) => Some(Item::Reasoning(reasoning)),
        _ => None,
    };
    response
        .output
        .iter()
        .filter_map(item)
        .map(InputItem::Item)
        .collect()
}

fn calls(response: &Response) -> Vec<FunctionToolCall> {
    let call = |item: &OutputItem| match item {
        OutputItem::FunctionCall(call) => Some(call.clone()),
        _ => None,
    };
    response.output.iter().filter_map(call).collect()
}

fn user(text: &str) -> InputItem {
    InputItem::from(EasyInputMessage::from(text))
}

/// Runs tools until the model calls no more; gives the last response and the history to go on with.
async fn looped(
    world: &World,
    text: &str,
    how: History,
) -> Result<(Response, Vec<InputItem>), Failure> {
    let mut history = vec![user(text)];
    let mut asked = CreateResponse {
        tools: Some(tools()),
        ..request(world, history.clone())
    };
    if how == History::Sealed {
        asked.store = Some(false);
        asked.include = Some(vec![IncludeEnum::ReasoningEncryptedContent]);
    }
    for _ in 0..MOST_CALLS {
        let made = world.client.responses().create(asked.clone()).await?;
        history.extend(items(&made));
        let calls = calls(&made);
        if calls.is_empty() {
            return Ok((made, history));
        }
        let mut results = Vec::new();
        for call in &calls {
            results.push(InputItem::Item(Item::FunctionCallOutput(
                FunctionCallOutputItemParam {
                    call_id: Some(call.call_id.clone()),
                    output: run_tool(call)?.into(),
                    id: None,
                    status: None,
                    name: None,
                    namespace: None,
                    caller: None,
                },
            )));
        }
        history.extend(results.iter().cloned());
        match how {
            History::Chained => {
                asked.previous_response_id = Some(made.id.clone());
                asked.input = results.into();
            }
            History::Replayed | History::Sealed => asked.input = history.clone().into(),
        }
    }
    Err("the loop does not end".into())
}

async fn steps(world: &mut World) -> Result<(), Failure> {
    if world.is_demo() {
        return Ok(());
    }
    for (name, how) in [
        ("chained", History::Chained),
        ("sealed", History::Sealed),
        ("replayed", History::Replayed),
    ] {
        let before = world.count()?;
        let (done, mut history) = looped(world, STEPS, how).await?;
        let said = done.output_text().unwrap_or_default();
        world.equal(
            &format!("{name}: the answer is the last result"),
            said,
            "add says: 3",
        );
        let asked = world.count()? - before;
        world.equal(&format!("{name}: one model call for each step"), asked, 3);
        world.received_exactly(
            &format!("{name}: calls and results as such"),
            &STEPS_RECEIVED,
        )?;
        world.thoughts_returned(&format!("{name}: with the reasoning of both rounds"), 2)?;
        history.push(user("How many messages?"));
        let mut more = request(world, history);
        if how == History::Sealed {
            more.store = Some(false);
        }
        let more = world.client.responses().create(more).await?;
        let wanted = "There are 7 messages so far, 2 of them yours.";
        let said = more.output_text().unwrap_or_default();
        world.equal(
            &format!("{name}: the items go on as a history"),
            said,
            wanted,
        );
    }
    Ok(())
}

/// A call that the model made without reasoning, with reasoning on.
async fn without_reasoning(world: &mut World) -> Result<(), Failure> {
    if world.is_demo() {
        return Ok(());
    }
    for (name, how) in [
        ("chained", History::Chained),
        ("replayed", History::Replayed),
    ] {
        let before = world.count()?;
        let (done, _) = looped(world, "use get_tide with port=Hull", how).await?;
        let said = done.output_text().unwrap_or_default();
        let wanted = "get_tide says: 04:12 in Hull";
        world.equal(&format!("{name}: the answer is its result"), said, wanted);
        let asked = world.count()? - before;
        world.equal(&format!("{name}: one model call for each step"), asked, 2);
        let wanted = [
            "user: use get_tide with port=Hull",
            "call: get_tide {\"port\":\"Hull\"}",
            "result: 04:12 in Hull",
        ];
        world.received_exactly(&format!("{name}: call and result as such"), &wanted)?;
    }
    Ok(())
}

async fn parallel(world: &mut World) -> Result<(), Failure> {
    for (name, how) in [
        ("chained", History::Chained),
        ("replayed", History::Replayed),
    ] {
        let (done, history) = looped(world, BOTH, how).await?;
        let said = done.output_text().unwrap_or_default();
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        let wanted = ["add says: 3", "get_tide says: 04:12 in Hull"];
        world.equal(
            &format!("{name}: both results are in the answer"),
            lines,
            wanted,
        );
        let called = history
            .iter()
            .filter(|item| matches!(item, InputItem::Item(Item::FunctionCall(_))));
        world.equal(&format!("{name}: each was called once"), called.count(), 2);
    }
    Ok(())
}

async fn chained(world: &mut World) -> Result<(), Failure> {
    let one = world
        .client
        .responses()
        .create(request(world, "The tide turns."))
        .await?;
    let mut next = request(world, "What did I say first?");
    next.previous_response_id = Some(one.id.clone());
    let two = world.client.responses().create(next).await?;
    let said = two.output_text().unwrap_or_default();
    world.equal(
        "the next turn knows the first",
        said,
        "You first said: \"The tide turns.\"",
    );
    let kept = world.client.responses().retrieve(&one.id).await?;
    world.equal(
        "a response can be read again",
        kept.output_text(),
        one.output_text(),
    );
    let gone = world.client.responses().delete(&one.id).await?;
    world.check("and deleted", gone.deleted, &format!("{gone:?}"));
    Ok(())
}

const TIDE: &str = "The tide turns at ten.";

async fn conversation(world: &mut World) -> Result<(), Failure> {
    let client = world.client.clone();
    let all = client.conversations();
    let made = CreateConversationRequest {
        metadata: Some(json!({"topic": "tides"}).into()),
        items: Some(vec![user(TIDE)]),
    };
    let made = all.create(made).await?;
    let noted = EasyInputMessage {
        role: Role::Assistant,
        ..EasyInputMessage::from("Noted.")
    };
    let added = CreateConversationItemsRequest {
        items: vec![noted.into()],
    };
    let added = all.items(&made.id).create(added).await?;
    world.equal("an item is added", added.data.len(), 1);
    let mut asked = request(world, "What did I say first?");
    asked.conversation = Some(made.id.as_str().into());
    let turn = client.responses().create(asked).await?;
    let said = turn.output_text().unwrap_or_default();
    let first = format!("You first said: \"{TIDE}\"");
    world.equal("a turn knows the items", &said, &first);
    let named = turn.conversation.map(|named| named.id);
    world.equal(
        "the response names its conversation",
        named.as_ref(),
        Some(&made.id),
    );
    let mut asked = request(world, "How many messages?");
    asked.conversation = Some(made.id.as_str().into());
    let mut stream = client.responses().create_stream(asked).await?;
    let mut pieces = Vec::new();
    while let Some(event) = stream.next().await {
        if let ResponseStreamEvent::ResponseOutputTextDelta(event) = event? {
            pieces.push(event.delta);
        }
    }
    let wanted = "There are 5 messages so far, 3 of them yours.";
    world.equal("a streamed turn goes on", pieces.concat(), wanted);
    // The newest is first.
    let listed = all.items(&made.id).list().await?;
    let messages = listed.data.iter();
    let ids: Vec<&str> = messages
        .filter_map(|item| match item {
            ConversationItem::Message(message) => Some(message.id.as_str()),
            _ => None,
        })
        .collect();
    world.equal("it has all messages", ids.len(), 6);
    let newest = ids.first().ok_or("no message")?;
    let read = all.items(&made.id).retrieve(newest).await?;
    world.equal("one is read by its id", Some(&read), listed.data.first());
    let left = all.items(&made.id).delete(newest).await?;
    world.equal("and deleted", &left.id, &made.id);
    let metadata = json!({"topic": "buoys"});
    let changed = UpdateConversationRequest {
        metadata: metadata.clone().into(),
    };
    all.update(&made.id, changed).await?;
    let read = all.retrieve(&made.id).await?;
    world.equal("metadata is replaced", read.metadata, metadata.into());
    let gone = all.delete(&made.id).await?;
    world.check("it is deleted", gone.deleted, &format!("{gone:?}"));
    let lost = all.retrieve(&made.id).await;
    let is_lost =
        matches!(&lost, Err(OpenAIError::ApiError(error)) if error.status_code.as_u16() == 404);
    world.check("and is there no more", is_lost, &format!("{lost:?}"));
    Ok(())
}

/// Reads a response until it has ended.
async fn ended(world: &World, begun: Response) -> Result<Response, Failure> {
    let mut response = begun;
    while matches!(response.status, Status::Queued | Status::InProgress) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        response = world.client.responses().retrieve(&response.id).await?;
    }
    Ok(response)
}

async fn background(world: &mut World) -> Result<(), Failure> {
    let client = world.client.clone();
    let mut asked = request(world, TIDE);
    asked.background = Some(true);
    let begun = client.responses().create(asked.clone()).await?;
    let id = begun.id.clone();
    let done = ended(world, begun).await?;
    world.equal(
        "it is made",
        (&done.id, &done.status),
        (&id, &Status::Completed),
    );
    let said = done.output_text().unwrap_or_default();
    world.equal("its answer is read", said, format!("You said: \"{TIDE}\""));
    let late = client.responses().cancel(&id).await?;
    world.equal("what has ended stays", late.status, Status::Completed);
    let mut stream = client.responses().retrieve_stream(&id).await?;
    let mut last = None;
    while let Some(event) = stream.next().await {
        if let ResponseStreamEvent::ResponseCompleted(event) = event? {
            last = event.response.output_text();
        }
    }
    world.equal("it is streamed from its begin", last, done.output_text());
    if world.is_demo() {
        return Ok(());
    }
    world.ask("hold")?;
    asked.input = format!("hold: {TIDE}").into();
    let begun = client.responses().create(asked).await?;
    let cancelled = client.responses().cancel(&begun.id).await;
    world.ask("release")?;
    let cancelled = ended(world, cancelled?).await?;
    world.equal("it is cancelled", &cancelled.status, &Status::Cancelled);
    let again = client.responses().cancel(&begun.id).await?;
    world.equal("a second time as well", again.status, Status::Cancelled);
    Ok(())
}

async fn streamed(world: &mut World) -> Result<(), Failure> {
    let thinks = if world.is_demo() { "" } else { "think first: " };
    let asked = request(world, format!("{thinks}The tide turns at ten."));
    let mut stream = world.client.responses().create_stream(asked).await?;
    let (mut pieces, mut completed) = (Vec::new(), None);
    while let Some(event) = stream.next().await {
        match event? {
            ResponseStreamEvent::ResponseOutputTextDelta(event) => pieces.push(event.delta),
            ResponseStreamEvent::ResponseCompleted(event) => completed = Some(event.response),
            _ => {}
        }
    }
    let wanted = "You said: \"The tide turns at ten.\"";
    world.equal("pieces add up", pieces.concat(), wanted);
    world.check(
        "there are several",
        pieces.len() > 1,
        &format!("{pieces:?}"),
    );
    let text = completed.and_then(|response| response.output_text());
    world.equal(
        "the last event has the whole",
        text.as_deref(),
        Some(wanted),
    );
    let mut asked = request(world, BOTH);
    asked.tools = Some(tools());
    let mut stream = world.client.responses().create_stream(asked).await?;
    let mut names = Vec::new();
    while let Some(event) = stream.next().await {
        if let ResponseStreamEvent::ResponseOutputItemDone(event) = event?
            && let OutputItem::FunctionCall(call) = event.item
        {
            names.push(call.name);
        }
    }
    world.equal("calls are streamed", names, ["get_tide", "add"]);
    Ok(())
}

async fn structured(world: &mut World) -> Result<(), Failure> {
    if world.is_demo() {
        return Ok(());
    }
    let mut asked = request(world, "say exactly: {\"port\":\"Hull\",\"number\":4}");
    let schema = json!({"type": "object", "required": ["port", "number"],
        "properties": {"port": {"type": "string"}, "number": {"type": "integer"}},
        "additionalProperties": false});
    asked.text = Some(
        ResponseFormatJsonSchema {
            description: None,
            name: "berth".to_owned(),
            schema,
            strict: Some(true),
        }
        .into(),
    );
    let made = world.client.responses().create(asked).await?;
    let berth: Value = serde_json::from_str(&made.output_text().unwrap_or_default())?;
    world.equal(
        "the answer is typed",
        berth,
        json!({"port": "Hull", "number": 4}),
    );
    Ok(())
}

async fn picture(world: &mut World) -> Result<(), Failure> {
    let text = "What is in this picture?";
    let message = EasyInputMessage {
        role: Role::User,
        content: EasyInputContent::ContentList(vec![
            InputContent::from(text),
            InputContent::from(InputImageContent {
                image_url: Some(format!("data:image/png;base64,{PNG}")),
                ..InputImageContent::default()
            }),
        ]),
        ..EasyInputMessage::default()
    };
    let asked = request(world, vec![message]);
    let made = world.client.responses().create(asked).await?;
    let said = made.output_text().unwrap_or_default();
    if world.is_demo() {
        // It cannot look at a picture, and says what it is.
        let wanted = format!("You said: \"{text}\", with an image (image/png)");
        world.equal("it answers", said, wanted);
        return Ok(());
    }
    let wanted = format!("You said: \"{text}\"");
    world.equal("it answers", said, wanted);
    let body = world.ask("body")?.to_string();
    world.check("the vendor receives the picture", body.contains(PNG), &body);
    Ok(())
}

async fn errors(world: &mut World) -> Result<(), Failure> {
    let status = |result: Result<Response, OpenAIError>| match result {
        Err(OpenAIError::ApiError(error)) => {
            format!("{} {:?}", error.status_code.as_u16(), error.api_error.code)
        }
        other => format!("{other:?}"),
    };
    let mut unknown = request(world, "x");
    unknown.model = Some("nobody/nothing".to_owned());
    let found = status(world.client.responses().create(unknown).await);
    world.equal("an unknown model", found, "404 Some(\"model_not_found\")");
    let mut lost = request(world, "x");
    lost.previous_response_id = Some("resp_00000000000000000000000000000000".to_owned());
    let found = status(world.client.responses().create(lost).await);
    let wanted = "400 Some(\"previous_response_not_found\")";
    world.equal("an unknown response to continue", found, wanted);
    if world.is_demo() {
        return Ok(());
    }
    world.ask("fault invalid_request 100")?;
    let found = status(world.client.responses().create(request(world, "x")).await);
    world.ask("heal")?;
    let good = found.starts_with("400 ");
    world.check("a request that the vendor refuses", good, &found);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Failure> {
    let mut world = World::from_arguments()?;
    macro_rules! scenarios {
        ($($scenario:ident),*) => {
            $(
                world.scenario = stringify!($scenario);
                if world.is_wanted(world.scenario) {
                    if let Err(failure) = $scenario(&mut world).await {
                        world.check("nothing unexpected is raised", false, &failure.to_string());
                    }
                    if !world.is_demo() {
                        let refused = world.ask("refused")?;
                        world.equal("the vendor refuses nothing", refused, json!([]));
                    }
                }
            )*
        };
    }
    scenarios!(
        without_reasoning,
        steps,
        parallel,
        chained,
        conversation,
        background,
        streamed,
        structured,
        picture,
        errors
    );
    Ok(if world.end(SDK) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
