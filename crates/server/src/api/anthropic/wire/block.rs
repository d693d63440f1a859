//! The contents of an answer as blocks.

use std::borrow::Cow;

use throughline_model::json::{ObjectWriter, RawJson, Value, parse};
use throughline_model::{
    Arguments, Body, CallId, Content, Message, Role, Runner, Scope, Stop, ToolCall, Usage, Wire,
};
use throughline_wire::{Losses, codec};

use crate::api::envelope;
use crate::api::ignored::Ignored;

/// How blocks are written for a client.
#[derive(Clone, Debug)]
pub(super) struct BlockForm {
    /// The upstream's name of the model, which envelopes say.
    pub(super) model: String,
    /// Whether the client asked to be shown thinking.
    pub(super) thinks: bool,
}

/// What stands directly before a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LedTo {
    ByReasoning,
    Otherwise,
}

impl LedTo {
    /// What a content is to the next one.
    pub(super) fn after(content: &Content) -> Self {
        match content.body {
            Body::Reasoning(_) => Self::ByReasoning,
            _ => Self::Otherwise,
        }
    }
}

/// Whether a content is a call that the client runs.
pub(super) fn is_client_call(content: &Content) -> bool {
    let call = content.as_tool_call();
    call.is_some_and(|call| call.runner == Runner::Client)
}

/// What a content is in an answer.
pub(super) enum BlockOf {
    /// A block, as JSON.
    Block(RawJson),
    /// Nothing that the client asked for.
    Nothing,
    /// The API has no block for it.
    Omitted(Ignored),
}

impl BlockForm {
    /// The block that goes after a call which its vendor wants back as it was: one that it signed, or
    /// one that its sealed reasoning led to.
    pub(super) fn after(&self, content: &Content, led_to: LedTo) -> Option<RawJson> {
        let by_responses = |content: &Content| {
            let vendor = content.vendor.as_ref();
            vendor.is_some_and(|vendor| vendor.wire == Wire::OpenAiResponses)
        };
        let wanted =
            envelope::is_signed(content) || led_to == LedTo::ByReasoning && by_responses(content);
        (self.thinks && wanted && is_client_call(content)).then(|| {
            RawJson::object(|object| {
                object
                    .str("type", "redacted_thinking")
                    .str("data", &envelope::seal(content, &self.model));
            })
        })
    }

    /// The block of a content. `is_whole` says whether all of it has come.
    pub(super) fn block(&self, content: &Content, is_whole: bool) -> BlockOf {
        if let Some(block) = own_block(content) {
            return BlockOf::Block(block);
        }
        let what = match &content.body {
            Body::Text(text) | Body::Refusal(text) => {
                return BlockOf::Block(text_block(&text.text));
            }
            Body::Reasoning(_) if !self.thinks => return BlockOf::Nothing,
            Body::Reasoning(reasoning) => {
                let text = match reasoning.text.is_empty() {
                    true => reasoning.summary.join(SUMMARY_PARTS),
                    false => reasoning.text.concat(),
                };
                let signature = match is_whole {
                    true => envelope::seal(content, &self.model),
                    false => String::new(),
                };
                return BlockOf::Block(RawJson::object(|object| {
                    object
                        .str("type", "thinking")
                        .str("thinking", &text)
                        .str("signature", &signature);
                }));
            }
            Body::ToolCall(call) if call.runner == Runner::Client => {
                return BlockOf::Block(call_block(call));
            }
            Body::Media(_) => "a picture, sound or file of the model has no block",
            Body::ToolCall(_) | Body::ToolResult(_) => "the upstream ran a tool of its own",
            Body::ApprovalRequest(_) | Body::ApprovalResponse(_) => {
                "the upstream asked for the approval of a tool of its own"
            }
            Body::Error(_) | Body::Opaque(_) | Body::Unknown(_) => {
                "the upstream sent an item that has no block"
            }
        };
        BlockOf::Omitted(Ignored::new("content", what))
    }
}

/// What stands between the parts of a summary.
pub(super) const SUMMARY_PARTS: &str = "\n\n";

/// The block as an upstream sent it which speaks this API.
fn own_block(content: &Content) -> Option<RawJson> {
    let vendor = content.vendor.as_ref()?;
    if vendor.wire != Wire::Anthropic {
        return None;
    }
    let message = Message::new(Role::Assistant, vec![content.clone()]);
    let encoded = codec(&Wire::Anthropic)?.encode_messages(&[message], &mut Losses::default());
    let messages = parse(&encoded).ok()?;
    let message = messages.as_array()?.first()?;
    let block = message.get("content")?.as_array()?.first()?;
    Some(RawJson::of(block))
}

fn text_block(text: &str) -> RawJson {
    RawJson::object(|object| {
        object.str("type", "text").str("text", text);
    })
}

fn call_block(call: &ToolCall) -> RawJson {
    RawJson::object(|object| {
        object
            .str("type", "tool_use")
            .str("id", &shown_id(&call.call))
            .str("name", &call.name)
            .raw("input", input(&call.arguments).get());
    })
}

/// An id as this API allows it. One that does not fit becomes a hash of itself, so that call and result
/// still agree.
fn shown_id(call: &CallId) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match call.value().bytes().all(fits) {
        true => Cow::Borrowed(call.value()),
        false => {
            let minted = CallId::minted(Scope::Response(call.value()), 0);
            Cow::Owned(minted.value().to_owned())
        }
    }
}

/// Arguments as the object that they must be here; what is none stands in its member `input`.
pub(super) fn input(arguments: &Arguments) -> RawJson {
    let text = match arguments {
        Arguments::None => return RawJson::object(|_| {}),
        Arguments::Text(text) | Arguments::Free(text) => text.as_str(),
        Arguments::Json(json) => json.get(),
    };
    if text.trim().is_empty() {
        return RawJson::object(|_| {});
    }
    let is_free = matches!(arguments, Arguments::Free(_));
    match parse(text) {
        Ok(value) if value.as_object().is_some() && !is_free => RawJson::of(&value),
        Ok(value) if !is_free => RawJson::object(|object| {
            object.raw("input", value.raw());
        }),
        _ => RawJson::object(|object| {
            object.str("input", text);
        }),
    }
}

/// The word for why an answer ended.
pub(super) fn stop_reason(stop: &Stop, has_calls: bool) -> &'static str {
    match stop {
        Stop::Length => "max_tokens",
        Stop::ContentFilter | Stop::Refusal => "refusal",
        Stop::Paused => "pause_turn",
        Stop::ToolCalls => "tool_use",
        Stop::Done | Stop::Other(_) if has_calls => "tool_use",
        Stop::Done | Stop::Other(_) => "end_turn",
        // Such an answer is an error before it comes here.
        Stop::Cancelled | Stop::Failed | Stop::InProgress | Stop::Cut => "max_tokens",
    }
}

/// The tokens of an answer. This API counts cached ones apart from the input.
pub(super) fn usage(usage: Option<&Usage>) -> RawJson {
    let usage = usage.cloned().unwrap_or_default();
    let (read, write) = (usage.cache_read, usage.cache_write);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    RawJson::object(|object| {
        let input = usage.input.unwrap_or(0).saturating_sub(cached);
        object.number("input_tokens", input);
        for (key, tokens) in [
            ("cache_creation_input_tokens", write),
            ("cache_read_input_tokens", read),
        ] {
            if let Some(tokens) = tokens {
                object.number(key, tokens);
            }
        }
        object.number("output_tokens", usage.output.unwrap_or(0));
        if let Some(reasoning) = usage.reasoning {
            let mut details = ObjectWriter::new(object.key("output_tokens_details"));
            details.number("thinking_tokens", reasoning);
            details.end();
        }
    })
}

/// A text member of a block that is not empty.
pub(super) fn text_of<'v>(block: &'v Value<'v>, key: &str) -> Option<Cow<'v, str>> {
    block.get(key)?.as_str().filter(|text| !text.is_empty())
}
