//! The events of a run as the frames of a stream.
//!
//! A pure function: the number of a frame and its bytes follow from the context and the events before
//! it, so every reader gets the same, live or later, after restarts too. Whether a run was streamed
//! or is projected from its journal, the response at the end is the same; only the deltas are longer in
//! the latter.
//!
//! Texts and reasoning are shown as they come. Calls are shown when the answer that they stand in is
//! whole, so that no client runs a call of an answer that broke off. The `done` of the last item waits
//! for what comes next: an answer that ran out of tokens ends in an item that is incomplete.

mod calls;
mod flush;
mod live;
mod output;
mod reasoning;
mod step;
#[cfg(test)]
mod tests;

use throughline::RunEvent;
use throughline_model::json::RawJson;
use throughline_model::{Message, Role, Source, ToolResult};

use super::context::{Ending, ResponseContext};
use super::frame::Frame;
use super::items::ids::{ItemId, ItemPlace, prefix_of};
use super::items::output::{ItemBuilder, ItemStatus, ServerCall, tool_list_item};
use super::object::{ResponseObject, Status, UsageTotal};
use super::request::Include;
use crate::config::Dialect;
use calls::{ApprovalCandidate, PendingCall};
use output::OutputItems;
use step::{Step, TextKind};

/// Turns the events of one run into frames, one after the other.
#[derive(Clone, Debug)]
pub struct Projector {
    context: ResponseContext,
    object: ResponseObject,
    output: OutputItems,
    /// The model call that is being answered.
    step: Option<Step>,
    /// Calls that run here and have no result yet.
    waiting: Vec<PendingCall>,
    /// Calls that may have to wait for approval.
    candidates: Vec<ApprovalCandidate>,
    /// Calls of earlier runs that may get their results here, in order.
    taken: Vec<ServerCall>,
    /// How many of them did.
    taken_over: u32,
    /// Results that are shown when their round is over.
    ended: Vec<ToolResult>,
    usage: UsageTotal,
    ending: Option<Ending>,
}

impl Projector {
    /// Before the first event.
    pub fn new(context: ResponseContext) -> Self {
        let mut projector = Self {
            object: ResponseObject::new(&context),
            context,
            output: OutputItems::default(),
            step: None,
            waiting: Vec::new(),
            candidates: Vec::new(),
            taken: Vec::new(),
            taken_over: 0,
            ended: Vec::new(),
            usage: UsageTotal::default(),
            ending: None,
        };
        let known = projector.context.known_calls.iter();
        let taken = known.filter_map(|known| {
            let call = projector.builder().server_call(&known.call)?;
            Some(call.with_occurrence(known.occurrence))
        });
        projector.taken = taken.collect();
        projector
    }

    /// Before the first event of a run that is not read as a stream: it makes no frames, only the
    /// response.
    pub fn silent(context: ResponseContext) -> Self {
        let mut projector = Self::new(context);
        projector.output.numbers.silent = true;
        projector
    }

    /// The number of the next frame.
    pub fn next_number(&self) -> u64 {
        self.output.numbers.next()
    }

    /// The first frames: `response.created`, `response.in_progress`, and the tools of servers.
    pub fn begin(&mut self, out: &mut Vec<Frame>) {
        self.show_response(&["response.created", "response.in_progress"], out);
        if self.context.dialect == Dialect::OpenResponses {
            return;
        }
        for (list, number) in self.context.lists.iter().zip(0..) {
            let id = ItemId {
                prefix: prefix_of("mcp_list_tools"),
                run: self.context.run,
                place: ItemPlace::Listed(number),
            };
            let id = id.to_string();
            let begun = tool_list_item(&id, list, false);
            let done = tool_list_item(&id, list, true);
            let index = self.output.add(out, id, &begun);
            for kind in [
                "response.mcp_list_tools.in_progress",
                "response.mcp_list_tools.completed",
            ] {
                self.output.item_event(out, kind, index, 0, |_| {});
            }
            self.output.done(out, index, done);
        }
    }

    /// What an event of the run means for readers. Events after the end are passed over.
    pub fn apply(&mut self, event: &RunEvent, out: &mut Vec<Frame>) {
        if self.ending.is_some() {
            return;
        }
        match event {
            RunEvent::Asked { step } => self.begin_step(*step, out),
            RunEvent::Text { step, at, delta } => {
                self.text_delta((*step, *at), delta, TextKind::Text, out);
            }
            RunEvent::Refusal { step, at, delta } => {
                self.text_delta((*step, *at), delta, TextKind::Refusal, out);
            }
            RunEvent::Summary {
                step,
                at,
                part,
                delta,
            } => {
                let part = *part as usize;
                self.reasoning_delta((*step, *at), out, |live, output, out| {
                    live.summary(output, out, part, delta);
                });
            }
            RunEvent::Reasoning { step, at, delta } => {
                let summarizes = self.context.request.summarizes();
                self.reasoning_delta((*step, *at), out, |live, output, out| {
                    match summarizes && !live.has_summary_of_its_own() {
                        true => live.text_as_summary(output, out, delta),
                        false => live.text(output, out, delta),
                    }
                });
            }
            RunEvent::Content { step, at, content } => self.content(*step, *at, content, out),
            RunEvent::Incomplete { step, at } => self.discard(*step, *at, out),
            RunEvent::Dispatched { .. } => self.output.finish_deferred(out, ItemStatus::Completed),
            RunEvent::Result { result, .. } => self.result(result, out),
            RunEvent::Message(message) => {
                if is_models(message) {
                    self.message(message, out);
                } else if message.role == Role::Tool {
                    self.results(message, out);
                }
            }
            // Neither specification has an event for it; the response says it.
            RunEvent::Compacted { report, .. } => self.object.set_compacted(report),
            RunEvent::Narrated { narrated } => self.object.set_narrative(*narrated),
            // The end is shown by `finish`, which knows the whole outcome.
            RunEvent::Started { .. } | RunEvent::Ended { .. } => {}
        }
    }

    /// The run is over: the last frames.
    pub fn finish(&mut self, ending: &Ending, out: &mut Vec<Frame>) {
        if self.ending.is_some() {
            return;
        }
        let status = Status::of(ending);
        self.abandon(out);
        self.output.finish_deferred(
            out,
            match status {
                Status::Incomplete(_) => ItemStatus::Incomplete,
                Status::Completed | Status::Cancelled | Status::Failed => ItemStatus::Completed,
            },
        );
        self.end_calls(ending, out);
        self.ending = Some(ending.clone());
        let kind = match status {
            Status::Completed => "response.completed",
            // There is no event for a response that was cancelled; the body says what it is.
            Status::Incomplete(_) | Status::Cancelled => "response.incomplete",
            Status::Failed => {
                self.error(ending, out);
                "response.failed"
            }
        };
        self.show_response(&[kind], out);
    }

    /// Events that carry the response as it stands.
    fn show_response(&mut self, kinds: &[&'static str], out: &mut Vec<Frame>) {
        let response = match self.output.numbers.silent {
            true => RawJson::object(|_| {}),
            false => self.response(),
        };
        for kind in kinds {
            self.output.frames(out).response(kind, response.get());
        }
    }

    /// The response as it stands: items that are done, and `in_progress` before the end.
    pub fn response(&self) -> RawJson {
        let items = self.output.done_items();
        self.object.write(self.ending.as_ref(), items, &self.usage)
    }

    /// Both shapes of the error event at once: flat for one specification, nested for the other.
    fn error(&mut self, ending: &Ending, out: &mut Vec<Frame>) {
        let (code, message) = match &ending.error {
            Some((code, message)) => (code.as_str(), message.as_str()),
            None => ("server_error", "The response failed."),
        };
        let nested = RawJson::object(|error| {
            error
                .str("type", "server_error")
                .str("code", code)
                .str("message", message)
                .raw("param", "null");
        });
        self.output
            .frames(out)
            .push("error", 2 * message.len() + 160, |object| {
                object
                    .str("code", code)
                    .str("message", message)
                    .raw("param", "null")
                    .raw("error", nested.get());
            });
    }

    /// What items are made for.
    fn builder(&self) -> ItemBuilder<'_> {
        ItemBuilder {
            dialect: self.context.dialect,
            tool_index: &self.context.tool_index,
            seals: self.context.request.seals_reasoning(),
            logprobs: self.context.request.include().contains(&Include::Logprobs),
            summarizes: self.context.request.summarizes(),
            model: self.context.request.model().unwrap_or_default(),
        }
    }
}

/// Whether a message is what a model answered.
fn is_models(message: &Message) -> bool {
    let spoken = match message.role {
        Role::Assistant | Role::Other(_) => true,
        // A client that runs tools itself shows their results.
        Role::Tool => message.source == Some(Source::Model),
        Role::System | Role::Developer | Role::User => false,
    };
    let by_model = match message.source {
        None | Some(Source::Model | Source::RemoteAgent) => true,
        Some(
            Source::Caller
            | Source::Tool
            | Source::ContextProvider
            | Source::Import
            | Source::Summary
            | Source::Repair
            | Source::Other(_),
        ) => false,
    };
    spoken && by_model
}
