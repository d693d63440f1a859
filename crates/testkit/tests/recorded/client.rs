//! Requests and answers of the two APIs.

use std::io;

use serde_json::{Value, json};
use throughline_testkit::recorded::{By, Said};
use throughline_testkit::serverkill::{Exchange, Request};

/// An API whose requests carry the whole conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Messages,
}

impl Api {
    /// A request with a conversation, with whatever its client adds to it.
    pub(super) fn request(self, said: &[Said], system: &str, streamed: bool) -> Request {
        let mut messages: Vec<Value> = said.iter().map(|said| self.message(said)).collect();
        let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
        let (path, mut body) = match self {
            Self::Chat => {
                messages.insert(0, json!({"role": "system", "content": system}));
                let function = json!({"name": "look", "parameters": schema});
                let tools = json!([{"type": "function", "function": function}]);
                ("/v1/chat/completions", json!({"tools": tools}))
            }
            Self::Messages => {
                // Where this client has its cache mark, the last message, changes with each request.
                if let Some(block) = messages
                    .last_mut()
                    .and_then(|last| last.pointer_mut("/content/0"))
                {
                    block["cache_control"] = json!({"type": "ephemeral"});
                }
                let tools = json!([{"name": "look", "input_schema": schema}]);
                let body = json!({"system": system, "max_tokens": 2000, "tools": tools});
                ("/v1/messages", body)
            }
        };
        body["model"] = json!("up/a-model");
        body["messages"] = Value::Array(messages);
        if streamed {
            body["stream"] = json!(true);
        }
        Request::post(path, body.to_string()).with("anthropic-version", "2023-06-01")
    }

    fn message(self, said: &Said) -> Value {
        let text = &said.text;
        match (self, said.by, &said.call) {
            (Self::Chat, By::User, _) => json!({"role": "user", "content": text}),
            (Self::Chat, By::Model, None) => json!({"role": "assistant", "content": text}),
            (Self::Chat, By::Model, Some(call)) => {
                // As a client writes it that parses arguments and writes them again.
                let arguments = format!("{{ \"at\": {} }}", json!(text));
                let function = json!({"name": "look", "arguments": arguments});
                let call = json!({"id": call, "type": "function", "function": function});
                json!({"role": "assistant", "content": null, "tool_calls": [call]})
            }
            (Self::Chat, By::Tool, call) => {
                json!({"role": "tool", "tool_call_id": call, "content": text})
            }
            (Self::Messages, By::User, _) => {
                json!({"role": "user", "content": [{"type": "text", "text": text}]})
            }
            (Self::Messages, By::Model, None) => {
                json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
            }
            (Self::Messages, By::Model, Some(call)) => {
                let block =
                    json!({"type": "tool_use", "id": call, "name": "look", "input": {"at": text}});
                json!({"role": "assistant", "content": [block]})
            }
            (Self::Messages, By::Tool, call) => {
                let block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
                json!({"role": "user", "content": [block]})
            }
        }
    }

    /// The answer in a body.
    fn whole(self, body: &Value) -> Option<Said> {
        let (text, call, arguments) = match self {
            Self::Chat => {
                let message = body.pointer("/choices/0/message")?;
                let call = message.pointer("/tool_calls/0");
                let arguments = call.and_then(|call| call.pointer("/function/arguments")?.as_str());
                let arguments = arguments.and_then(|text| serde_json::from_str(text).ok());
                (message.get("content"), call, arguments)
            }
            Self::Messages => {
                let blocks = body.get("content")?.as_array()?;
                let of = |kind: &str| blocks.iter().find(|block| block["type"] == kind);
                let call = of("tool_use");
                let input = call.and_then(|call| call.get("input").cloned());
                (of("text").and_then(|block| block.get("text")), call, input)
            }
        };
        answer(text.and_then(Value::as_str), call, arguments)
    }

    /// The answer in the events of a stream that has its end.
    fn streamed(self, events: &[Value]) -> Option<Said> {
        let at = |pointer: &str| {
            let texts = events
                .iter()
                .filter_map(|event| event.pointer(pointer)?.as_str());
            texts.collect::<String>()
        };
        let first = |pointer: &str| events.iter().find_map(|event| event.pointer(pointer));
        let (text, call, arguments, is_whole) = match self {
            Self::Chat => (
                at("/choices/0/delta/content"),
                first("/choices/0/delta/tool_calls/0"),
                at("/choices/0/delta/tool_calls/0/function/arguments"),
                first("/choices/0/finish_reason").is_some_and(Value::is_string)
                    || events.iter().any(|event| {
                        event
                            .pointer("/choices/0/finish_reason")
                            .is_some_and(Value::is_string)
                    }),
            ),
            Self::Messages => (
                at("/delta/text"),
                events
                    .iter()
                    .filter_map(|event| event.get("content_block"))
                    .find(|block| block["type"] == "tool_use"),
                at("/delta/partial_json"),
                events.iter().any(|event| event["type"] == "message_stop"),
            ),
        };
        if !is_whole {
            return None;
        }
        let arguments = serde_json::from_str(&arguments).ok();
        answer(Some(&text), call, arguments)
    }
}

fn answer(text: Option<&str>, call: Option<&Value>, arguments: Option<Value>) -> Option<Said> {
    match call {
        Some(call) => Some(Said {
            call: Some(call.get("id")?.as_str()?.to_owned()),
            ..Said::model(arguments?.get("at")?.as_str()?)
        }),
        None => Some(Said::model(text?)),
    }
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Got {
    /// All of an answer, and the thread that the server named.
    Answer(Said, Option<String>),
    /// An error.
    Refused(u16, String),
}

/// Send a request and read its answer. An error if the connection broke before the end, or after `most`
/// chunks of it.
pub(super) fn ask(api: Api, address: &str, request: &Request, most: usize) -> io::Result<Got> {
    let mut exchange = Exchange::open(address, request)?;
    let thread = exchange.header("x-throughline-thread").map(str::to_owned);
    let is_stream = exchange
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut body = Vec::new();
    let mut chunks = 0;
    while let Some(chunk) = exchange.chunk()? {
        body.extend(chunk);
        chunks += 1;
        if chunks == most {
            return Err(io::Error::other("the client has read enough"));
        }
    }
    let text = String::from_utf8(body).map_err(io::Error::other)?;
    if exchange.status != 200 {
        return Ok(Got::Refused(exchange.status, text));
    }
    let answer = match is_stream {
        true => {
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            let events: Vec<Value> = data
                .filter_map(|data| serde_json::from_str(data).ok())
                .collect();
            api.streamed(&events)
        }
        false => serde_json::from_str(&text)
            .ok()
            .and_then(|body| api.whole(&body)),
    };
    match answer {
        Some(answer) => Ok(Got::Answer(answer, thread)),
        None => Ok(Got::Refused(200, text)),
    }
}
