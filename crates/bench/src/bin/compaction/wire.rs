//! Views in a vendor's format, and whether their calls and results match.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::{Body, Message, Pairing};
use throughline_wire::Wire;
use throughline_wire::render::{Options, Target, render, renderer};

/// The bytes of a view: the messages of a request, without the list around them.
pub(crate) fn bytes(view: &[Arc<Message>], wire: &Wire) -> String {
    let target = Target::newest(wire.clone());
    let options = Options::default();
    let straight = || {
        let mut renderer = renderer(&target, &options)?;
        for message in view {
            renderer.push(message).ok()?;
        }
        let tail = renderer.tail().ok()?;
        let mut out = renderer.system_text().unwrap_or_default();
        for item in renderer.items().iter().chain(&tail.items) {
            out.push_str(&item.json);
            out.push(',');
        }
        Some(out)
    };
    straight().unwrap_or_else(|| {
        // The messages are in an order that one pass cannot render.
        let whole: Vec<Message> = view.iter().map(|message| (**message).clone()).collect();
        let rendered = render(&whole, &target, &options);
        let mut out = rendered.system.clone().unwrap_or_default();
        for item in &rendered.items {
            out.push_str(&item.json);
            out.push(',');
        }
        out
    })
}

/// Whether calls and results of a view match: each result after its call, and each call with its
/// result if the record has that. Rendering would repair both, so the messages are checked.
pub(crate) fn is_paired(view: &[Arc<Message>], record: &[Arc<Message>]) -> bool {
    let Some(open) = open_calls(view) else {
        return false;
    };
    let known = open_calls(record).unwrap_or_default();
    open.iter()
        .all(|(id, count)| known.get(id).is_some_and(|most| count <= most))
}

/// How many calls of each id have no result; `None` when a result has no call before it.
fn open_calls(messages: &[Arc<Message>]) -> Option<HashMap<&str, usize>> {
    let mut open: HashMap<&str, usize> = HashMap::new();
    for content in messages.iter().flat_map(|message| &message.contents) {
        match &content.body {
            Body::ToolCall(call) => *open.entry(call.call.value()).or_default() += 1,
            Body::ToolResult(result) if result.pairing() == Pairing::Answers => {
                let count = open.get_mut(result.call().value())?;
                *count = count.checked_sub(1)?;
            }
            _ => {}
        }
    }
    open.retain(|_, count| *count > 0);
    Some(open)
}
