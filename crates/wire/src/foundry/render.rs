//! What Azure Foundry requires of a rendered history beyond OpenAI Responses.

use std::borrow::Cow;

use throughline_model::{Body, Content, Family, Form, Message, Pairing, Runner, ToolResult, Wire};

use crate::openai_responses::render as openai_responses;
use crate::render::format::{RenderFormat, Replaced, Rules, UnusableForms};
use crate::render::{Switches, Target, as_function, result_text};

pub(super) static RENDER: RenderFormat = RenderFormat {
    rules,
    unusable: UnusableForms {
        always: &["S-O2", "S-O3", "O-13", "F-1"],
        ..openai_responses::COMMON.unusable
    },
    ..openai_responses::COMMON
};

fn rules(target: &Target, switches: Switches) -> Rules {
    let on = |rule: &str| switches.enforces(rule);
    Rules {
        only_newest_sealed: on("F-3"),
        typed_messages: on("F-1"),
        replace_response_only: on("F-2").then_some(replace_response_only as _),
        ..openai_responses::rules(target, switches)
    }
}

/// Foundry's own pairs come in responses only; sent back they are function calls and outputs. The
/// second value has the indexes of the contents that changed.
fn replace_response_only(message: &Message) -> Replaced<'_> {
    let concerned: Vec<usize> = message
        .contents
        .iter()
        .enumerate()
        .filter(|(_, content)| is_response_only(content))
        .map(|(place, _)| place)
        .collect();
    if concerned.is_empty() {
        return (Cow::Borrowed(message), concerned);
    }
    let mut changed = message.clone();
    for place in &concerned {
        let content = &mut changed.contents[*place];
        let plain = match &content.body {
            Body::ToolCall(call) => Content::from(as_function(call)),
            Body::ToolResult(result) => match result.pairing() {
                Pairing::Answers => Content::from(as_output(result)),
                Pairing::Standalone => Content::text(result_text(result)),
            },
            Body::Opaque(opaque) => Content::text(opaque_text(content, &opaque.tag)),
            _ => continue,
        };
        *content = plain;
    }
    (Cow::Owned(changed), concerned)
}

/// The output of a function in place of one that comes in responses only.
fn as_output(result: &ToolResult) -> ToolResult {
    let id = result.call().clone();
    let mut made = ToolResult::answering(id, Family::FUNCTION, result.output.clone());
    made.outcome = result.outcome;
    made.name.clone_from(&result.name);
    made.runner = Runner::Client;
    made
}

/// An item without a neutral form, as text: its tag, and its output if it has one.
fn opaque_text(content: &Content, tag: &str) -> String {
    let Some(Form::Item(item)) = content.vendor.as_ref().map(|vendor| &vendor.form) else {
        return format!("[{tag}]");
    };
    match item.locate(&["output"]) {
        Some(at) => format!("[{tag}] {}", &item.get()[at]),
        None => format!("[{tag}]"),
    }
}

/// Whether a content is one of the items that Foundry makes and does not take back.
fn is_response_only(content: &Content) -> bool {
    // Only these can be: the look at the tag costs more.
    let kind = match &content.body {
        Body::ToolCall(call) => call.runner == Runner::Vendor,
        Body::ToolResult(result) => result.runner == Runner::Vendor,
        Body::Opaque(_) => true,
        _ => false,
    };
    let Some(vendor) = content.vendor.as_ref().filter(|_| kind) else {
        return false;
    };
    if vendor.wire != Wire::Foundry {
        return false;
    }
    let Form::Item(item) = &vendor.form else {
        return false;
    };
    let Some(at) = item.locate(&["type"]) else {
        return false;
    };
    let tag = item.get()[at].trim_matches('"');
    super::is_response_only(tag)
}
