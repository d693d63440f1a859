//! Random messages: histories as agents make them, and messages with arbitrary contents.

use throughline_model::json::RawJson;
use throughline_model::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, CallId, Citation, Content, Extra, Family,
    Fault, Form, IdField, IdFields, Media, MediaKind, MediaSource, Message, MessageId, Opaque,
    Outcome, Output, Reasoning, Role, Runner, Scope, Source, Status, Text, ToolCall, ToolResult,
    Usage, Vendor, Wire,
};

use crate::Rng;
use crate::generate::{self, Json};

/// A history of about `size` messages: users ask, a model answers and calls tools, tools answer.
///
/// Some calls have no result and some ids repeat, as in real histories. It has no vendor data.
pub fn history(rng: &mut Rng, size: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    if rng.chance(0.3) {
        messages.push(Message::new(Role::System, vec![text(rng)]));
    }
    let mut made = 0;
    while messages.len() < size.max(1) {
        messages.push(user(rng));
        while rng.chance(0.6) {
            let (asked, answered) = round(rng, &mut made);
            messages.push(asked);
            messages.extend(answered);
        }
        if rng.chance(0.9) {
            messages.push(Message::new(Role::Assistant, vec![text(rng)]));
        }
    }
    messages
}

/// A conversation that every vendor can express: text, calls of functions with an object as
/// arguments, and a text result for each call, right after it.
pub fn plain_history(rng: &mut Rng, size: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut made = 0;
    while messages.len() < size.max(1) {
        messages.push(Message::new(Role::User, vec![text(rng)]));
        for _ in 0..rng.below(3) {
            let mut contents = Vec::new();
            if rng.bool() {
                contents.push(text(rng));
            }
            let mut results = Vec::new();
            for _ in 0..rng.range(1..=3) {
                made += 1;
                let arguments = Json {
                    depth: 3,
                    ..Json::default()
                }
                .object(rng, 4);
                let id = natural(&format!("call_{made:06}"));
                let call = ToolCall::function(id, "get_tide_table", arguments);
                results.push(Content::from(
                    call.answer(Outcome::Ok, Output::Text(words(rng))),
                ));
                contents.push(call.into());
            }
            messages.push(Message::new(Role::Assistant, contents));
            messages.push(Message::new(Role::Tool, results));
        }
        messages.push(Message::new(Role::Assistant, vec![text(rng)]));
    }
    messages
}

fn user(rng: &mut Rng) -> Message {
    let mut contents = vec![text(rng)];
    if rng.chance(0.2) {
        contents.push(Content::new(Body::Media(media(rng))));
    }
    Message::new(Role::User, contents)
}

/// One model response with calls, and the message that answers them.
fn round(rng: &mut Rng, made: &mut usize) -> (Message, Option<Message>) {
    let mut contents = Vec::new();
    if rng.chance(0.3) {
        contents.push(Content::new(Body::Reasoning(reasoning(rng))));
    }
    if rng.chance(0.4) {
        contents.push(text(rng));
    }
    let mut results = Vec::new();
    for _ in 0..rng.range(1..=3) {
        *made += 1;
        let call = call(rng, *made);
        if rng.chance(0.95) {
            let (outcome, output) = (outcome(rng), output(rng));
            results.push(Content::from(call.answer(outcome, output)));
        }
        contents.push(call.into());
    }
    let answered = (!results.is_empty()).then(|| Message::new(Role::Tool, results));
    (Message::new(Role::Assistant, contents), answered)
}

fn call(rng: &mut Rng, number: usize) -> ToolCall {
    let id = match rng.below(10) {
        0 => CallId::minted(Scope::Place(number), 0),
        1 => natural("call_0"),
        2 => natural(&format!(
            "call {number} with spaces, 日本 and {}",
            "x".repeat(50)
        )),
        _ => natural(&format!("call_{number:06}")),
    };
    let name = *rng.pick(&["get_tide_table", "book_berth", "read_file", "run"]);
    if rng.chance(0.15) {
        return ToolCall {
            family: Family::CUSTOM,
            arguments: Arguments::Free(words(rng)),
            ..ToolCall::function(id, name, "")
        };
    }
    let arguments = Json {
        depth: 3,
        ..Json::default()
    }
    .object(rng, 4);
    ToolCall::function(id, name, arguments)
}

/// A correlation id; the texts used here are never empty.
fn natural(value: &str) -> CallId {
    CallId::natural(value).unwrap_or_else(|| CallId::minted(Scope::Place(0), 0))
}

fn outcome(rng: &mut Rng) -> Outcome {
    if rng.chance(0.7) {
        Outcome::Ok
    } else {
        *rng.pick(&Outcome::ALL)
    }
}

fn output(rng: &mut Rng) -> Output {
    match rng.below(8) {
        0 => Output::None,
        1 => Output::Text(String::new()),
        2 => Output::Json(raw(rng)),
        3 => Output::Parts(vec![text(rng), Content::new(Body::Media(media(rng)))]),
        _ => Output::Text(words(rng)),
    }
}

fn words(rng: &mut Rng) -> String {
    let length = rng.range(1..=40);
    generate::text(rng, length)
}

fn text(rng: &mut Rng) -> Content {
    Content::text(words(rng))
}

fn reasoning(rng: &mut Rng) -> Reasoning {
    Reasoning {
        summary: (0..rng.below(3)).map(|_| words(rng)).collect(),
        text: (0..rng.below(2)).map(|_| words(rng)).collect(),
        sealed: rng.bool(),
    }
}

fn media(rng: &mut Rng) -> Media {
    let kind = *rng.pick(&[
        MediaKind::Image,
        MediaKind::Image,
        MediaKind::Audio,
        MediaKind::Video,
        MediaKind::File,
    ]);
    let media_type = match kind {
        MediaKind::Image => "image/png",
        MediaKind::Audio => "audio/wav",
        MediaKind::Video => "video/mp4",
        MediaKind::File => "application/pdf",
    };
    Media {
        kind,
        media_type: rng.chance(0.8).then(|| media_type.to_owned()),
        source: match rng.below(3) {
            0 => MediaSource::Uri("https://files.example/chart.png".to_owned()),
            1 => MediaSource::Uri(format!("data:{media_type};base64,iVBORw0KGgo=")),
            _ => MediaSource::Data("iVBORw0KGgo=".to_owned()),
        },
        name: rng.bool().then(|| "chart.png".to_owned()),
        transcript: None,
    }
}

fn raw(rng: &mut Rng) -> RawJson {
    let text = Json {
        depth: 4,
        duplicate_keys: true,
        lone_surrogates: true,
        ..Json::default()
    }
    .document(rng, 6);
    RawJson::new(&text).unwrap_or_else(|_| RawJson::object(|_| {}))
}

fn raw_object(rng: &mut Rng) -> RawJson {
    let text = Json {
        depth: 3,
        ..Json::default()
    }
    .object(rng, 4);
    RawJson::new(&text).unwrap_or_else(|_| RawJson::object(|_| {}))
}

/// A message with arbitrary contents, sensible or not.
pub fn anything(rng: &mut Rng, size: usize) -> Message {
    let role = match rng.below(7) {
        0 => Role::System,
        1 => Role::Developer,
        2 => Role::User,
        3 => Role::Assistant,
        4 => Role::Tool,
        5 => Role::Other("critic".into()),
        _ => Role::Assistant,
    };
    let contents = (0..rng.below(size.min(6) + 1))
        .map(|_| any_content(rng, 2))
        .collect();
    let mut message = Message::new(role, contents);
    if rng.bool() {
        let random = std::array::from_fn(|_| rng.below(256) as u8);
        message.id = Some(MessageId::v7(rng.next_u64() >> 20, random));
    }
    message.author = maybe(rng, words);
    message.created = maybe(rng, Rng::next_u64);
    message.source = maybe(rng, |rng| {
        Source::named(word(rng, &["caller", "model", "later"]))
    });
    message.status = maybe(rng, |rng| Status::named(word(rng, &["incomplete", "odd"])));
    message.usage = maybe(rng, usage);
    message.meta = maybe(rng, raw_object);
    message
}

fn maybe<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    rng.chance(0.3).then(|| make(rng))
}

fn word<'w>(rng: &mut Rng, words: &[&'w str]) -> &'w str {
    rng.pick::<&str>(words)
}

fn usage(rng: &mut Rng) -> Usage {
    Usage {
        input: maybe(rng, Rng::next_u64),
        output: maybe(rng, Rng::next_u64),
        total: maybe(rng, Rng::next_u64),
        cache_read: maybe(rng, Rng::next_u64),
        cache_write: maybe(rng, Rng::next_u64),
        reasoning: maybe(rng, Rng::next_u64),
        vendor: maybe(rng, raw_object),
        extra: Extra::NONE,
    }
}

fn any_id(rng: &mut Rng) -> CallId {
    match rng.below(3) {
        0 => natural(&words(rng)),
        1 => CallId::item(&words(rng)).unwrap_or_else(|| natural("item")),
        _ => CallId::minted(
            Scope::Step {
                run: "run_1",
                step: 2,
            },
            rng.below(9),
        ),
    }
}

fn any_arguments(rng: &mut Rng) -> Arguments {
    match rng.below(4) {
        0 => Arguments::None,
        1 => Arguments::Text(words(rng)),
        2 => Arguments::Json(raw(rng)),
        _ => Arguments::Free(words(rng)),
    }
}

fn any_content(rng: &mut Rng, depth: usize) -> Content {
    let body = match rng.below(12) {
        0 => Body::Text(Text {
            text: words(rng),
            citations: vec![citation(rng)],
        }),
        1 => Body::Reasoning(reasoning(rng)),
        2 => Body::Media(media(rng)),
        3 => Body::ToolCall(ToolCall {
            call: any_id(rng),
            family: Family::named(&words(rng)),
            name: words(rng),
            arguments: any_arguments(rng),
            status: maybe(rng, |rng| {
                Status::named(word(rng, &["completed", "searching"]))
            }),
            runner: *rng.pick(&[Runner::Client, Runner::Vendor]),
        }),
        4 => Body::ToolResult(any_result(rng, depth)),
        5 => Body::ApprovalRequest(ApprovalRequest {
            request: any_id(rng),
            name: words(rng),
            arguments: any_arguments(rng),
            server: maybe(rng, words),
        }),
        6 => Body::ApprovalResponse(ApprovalResponse {
            request: any_id(rng),
            approved: rng.bool(),
            reason: maybe(rng, words),
        }),
        7 => Body::Refusal(Text {
            text: words(rng),
            citations: Vec::new(),
        }),
        8 => Body::Error(Fault {
            message: words(rng),
            code: maybe(rng, words),
        }),
        9 => Body::Opaque(Opaque { tag: words(rng) }),
        10 => {
            return Content::new(Body::Unknown(RawJson::object(|object| {
                object.str("kind", "hologram").raw("data", raw(rng).get());
            })));
        }
        _ => return Content::text(words(rng)),
    };
    let content = Content::new(body);
    if rng.bool() {
        content.with_vendor(any_vendor(rng))
    } else {
        content
    }
}

fn citation(rng: &mut Rng) -> Citation {
    Citation {
        url: maybe(rng, words),
        title: maybe(rng, words),
        file: maybe(rng, words),
        start: maybe(rng, Rng::next_u64),
        end: maybe(rng, Rng::next_u64),
        extra: Extra::NONE,
    }
}

fn any_result(rng: &mut Rng, depth: usize) -> ToolResult {
    let output = match rng.below(4) {
        0 if depth > 0 => Output::Parts((0..2).map(|_| any_content(rng, depth - 1)).collect()),
        1 => Output::Json(raw(rng)),
        2 => Output::None,
        _ => Output::Text(words(rng)),
    };
    let (id, family) = (any_id(rng), Family::named(&words(rng)));
    let mut result = if rng.bool() {
        ToolResult::standalone(id, family, output)
    } else {
        ToolResult::answering(id, family, output)
    };
    result.name = maybe(rng, words);
    result.outcome = *rng.pick(&Outcome::ALL);
    result.runner = *rng.pick(&[Runner::Client, Runner::Vendor]);
    result
}

fn any_vendor(rng: &mut Rng) -> Vendor {
    let form = match rng.below(4) {
        0 => Form::Item(raw_object(rng)),
        1 => Form::Part(raw_object(rng)),
        2 => Form::Bare,
        _ => Form::Within,
    };
    // A format that this version does not know, so that it cannot be decoded.
    let wire = Wire::Other("some-new-wire".into());
    let mut vendor = Vendor::form(wire, form).with_id_fields(IdFields {
        id: slot(rng),
        call: slot(rng),
    });
    vendor.envelope = maybe(rng, raw_object);
    vendor
}

fn slot(rng: &mut Rng) -> IdField {
    match rng.below(5) {
        0 => IdField::NoField,
        1 => IdField::Missing,
        2 => IdField::Null,
        3 => IdField::Set("".into()),
        _ => IdField::Set(words(rng).into()),
    }
}
