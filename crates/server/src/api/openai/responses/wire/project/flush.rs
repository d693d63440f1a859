//! Showing contents that were held back until the answer was whole.

use throughline_model::{Content, Place};

use super::calls::ApprovalCandidate;
use super::reasoning::LiveReasoning;
use super::step::StepSlot;
use super::{PendingCall, Projector};
use crate::api::openai::items::output::{ClientCall, Draft, ServerCall, SignatureItem, VendorItem};
use crate::api::openai::responses::wire::frame::Frame;
use crate::config::Dialect;

/// The events between the beginning and the end of an item of a vendor's tool.
const HOSTED_EVENTS: [(&str, &[&str]); 4] = [
    (
        "web_search_call",
        &[
            "response.web_search_call.in_progress",
            "response.web_search_call.searching",
            "response.web_search_call.completed",
        ],
    ),
    (
        "file_search_call",
        &[
            "response.file_search_call.in_progress",
            "response.file_search_call.searching",
            "response.file_search_call.completed",
        ],
    ),
    (
        "image_generation_call",
        &[
            "response.image_generation_call.in_progress",
            "response.image_generation_call.generating",
            "response.image_generation_call.completed",
        ],
    ),
    (
        "code_interpreter_call",
        &[
            "response.code_interpreter_call.interpreting",
            "response.code_interpreter_call.completed",
        ],
    ),
];

impl Projector {
    /// Show what is held back, in order.
    pub(super) fn flush(&mut self, no: u32, out: &mut Vec<Frame>) {
        let step = self.step(no, out);
        let mut held: Vec<(Place, Content)> = Vec::new();
        for (at, told) in &mut step.slots {
            if let StepSlot::Held(content) = told {
                held.push((*at, (**content).clone()));
                *told = StepSlot::Shown(None);
            }
        }
        for (place, (at, content)) in held.iter().enumerate() {
            let next = held.get(place + 1).map(|(_, content)| content);
            let mut phase = self.step(no, out).phase.take();
            let draft = self.builder().draft(content, next, &mut phase);
            self.step(no, out).phase = phase;
            let occurrence = self.step(no, out).occurrence(*at, content);
            let Some(draft) = draft.map(|draft| draft.with_occurrence(occurrence)) else {
                continue;
            };
            let id = self.next_id(draft.tag(), no, out);
            let shown = self.show_whole(id, draft, out);
            self.step(no, out).slots.insert(*at, StepSlot::Shown(shown));
            self.carry(no, content, out);
        }
    }

    /// Show what a client is to carry beside an item.
    pub(super) fn carry(&mut self, no: u32, content: &Content, out: &mut Vec<Frame>) {
        let thought = match self.builder().signature_item(content) {
            SignatureItem::None => return,
            SignatureItem::Hidden => None,
            SignatureItem::Shown(thought) => Some(thought),
        };
        let id = self.next_id("reasoning", no, out);
        if let Some(thought) = thought {
            let live = LiveReasoning::open(&mut self.output, out, id, self.context.dialect);
            // It has no text that could differ from what was seen.
            let _ = live.close(&mut self.output, out, thought);
        }
    }

    /// Show an item that never grew; where it stands.
    fn show_whole(&mut self, id: String, draft: Draft, out: &mut Vec<Frame>) -> Option<usize> {
        match draft {
            Draft::Call(call) => Some(self.show_call(id, call, out)),
            Draft::Vendor(whole) => Some(self.show_vendor(id, whole, out)),
            Draft::Server(call) => self.show_server(id, call, out),
            Draft::Question(question) => {
                self.candidates.push(ApprovalCandidate {
                    id,
                    question,
                    call: None,
                });
                None
            }
            // These grow.
            Draft::Message(_) | Draft::Reasoning(_) => None,
        }
    }

    /// A call that the client runs: all of it, but that it is done.
    pub(super) fn show_call(
        &mut self,
        id: String,
        call: ClientCall,
        out: &mut Vec<Frame>,
    ) -> usize {
        let begun = call.in_progress(&id);
        let index = self.output.add(out, id, &begun);
        let (delta, done, key) = match call.custom {
            true => (
                "response.custom_tool_call_input.delta",
                "response.custom_tool_call_input.done",
                "input",
            ),
            false => (
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "arguments",
            ),
        };
        let name = (!call.custom).then_some(call.name.as_str());
        self.arguments(index, &call.arguments, (delta, done, key), name, out);
        self.output.defer_done(out, index, Draft::Call(call));
        index
    }

    /// Arguments in one piece.
    fn arguments(
        &mut self,
        index: usize,
        text: &str,
        (delta, done, key): (&'static str, &'static str, &str),
        name: Option<&str>,
        out: &mut Vec<Frame>,
    ) {
        let room = text.len() + text.len() / 4 + 64;
        if !text.is_empty() {
            self.output.item_event(out, delta, index, room, |object| {
                object.str("delta", text);
            });
        }
        // The other specification has no name here.
        let name = name.filter(|_| self.context.dialect == Dialect::OpenAi);
        self.output.item_event(out, done, index, room, |object| {
            if let Some(name) = name {
                object.str("name", name);
            }
            object.str(key, text);
        });
    }

    /// An item as its vendor made it.
    fn show_vendor(&mut self, id: String, whole: VendorItem, out: &mut Vec<Frame>) -> usize {
        let begun = whole.in_progress(&id);
        let index = self.output.add(out, id, &begun);
        match whole.tag.as_str() {
            "function_call" => {
                let (delta, done) = (
                    "response.function_call_arguments.delta",
                    "response.function_call_arguments.done",
                );
                let text = whole.text("arguments").unwrap_or_default();
                let name = whole.text("name").unwrap_or_default();
                self.arguments(index, &text, (delta, done, "arguments"), Some(&name), out);
            }
            "custom_tool_call" => {
                let (delta, done) = (
                    "response.custom_tool_call_input.delta",
                    "response.custom_tool_call_input.done",
                );
                let text = whole.text("input").unwrap_or_default();
                self.arguments(index, &text, (delta, done, "input"), None, out);
            }
            "mcp_call" => {
                let text = whole.text("arguments").unwrap_or_default();
                self.server_arguments(index, &text, out);
                let kind = match whole.failed() {
                    true => "response.mcp_call.failed",
                    false => "response.mcp_call.completed",
                };
                self.output.item_event(out, kind, index, 0, |_| {});
            }
            tag => {
                if let ("code_interpreter_call", Some(code)) = (tag, whole.text("code")) {
                    let kind = "response.code_interpreter_call.in_progress";
                    self.output.item_event(out, kind, index, 0, |_| {});
                    let (delta, done) = (
                        "response.code_interpreter_call_code.delta",
                        "response.code_interpreter_call_code.done",
                    );
                    self.arguments(index, &code, (delta, done, "code"), None, out);
                }
                let hosted = HOSTED_EVENTS.iter().find(|(known, _)| *known == tag);
                for kind in hosted.map_or(&[][..], |(_, kinds)| *kinds) {
                    self.output.item_event(out, kind, index, 0, |_| {});
                }
            }
        }
        self.output.defer_done(out, index, Draft::Vendor(whole));
        index
    }

    /// A call that runs here, until it has its result.
    fn show_server(&mut self, id: String, call: ServerCall, out: &mut Vec<Frame>) -> Option<usize> {
        if call.asks {
            self.candidates.push(ApprovalCandidate {
                id,
                question: call.question(),
                call: Some(call),
            });
            return None;
        }
        let index = match self.context.dialect {
            Dialect::OpenAi => self.begin_server(id, &call, out),
            Dialect::OpenResponses => self.show_call(id, call.as_function(), out),
        };
        self.waiting.push(PendingCall { index, call });
        Some(index)
    }

    /// The item of a call that runs here, as far as it is known before the result.
    pub(super) fn begin_server(
        &mut self,
        id: String,
        call: &ServerCall,
        out: &mut Vec<Frame>,
    ) -> usize {
        let begun = call.in_progress(&id);
        let index = self.output.add(out, id, &begun);
        self.server_arguments(index, &call.arguments, out);
        index
    }

    fn server_arguments(&mut self, index: usize, text: &str, out: &mut Vec<Frame>) {
        let (delta, done) = (
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
        );
        self.arguments(index, text, (delta, done, "arguments"), None, out);
        let kind = "response.mcp_call.in_progress";
        self.output.item_event(out, kind, index, 0, |_| {});
    }
}
