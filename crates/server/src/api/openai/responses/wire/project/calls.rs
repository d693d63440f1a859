//! Calls that run here: their results, and questions that are left.

use throughline_model::{Content, Message, ToolResult};

use super::Projector;
use crate::api::openai::items::ids::{ItemId, ItemPlace, prefix_of};
use crate::api::openai::items::output::{ApprovalQuestion, ItemStatus, ServerCall, succeeded};
use crate::api::openai::responses::wire::context::Ending;
use crate::api::openai::responses::wire::frame::Frame;
use crate::config::Dialect;

/// A call that runs here and has no result yet.
#[derive(Clone, Debug)]
pub(super) struct PendingCall {
    pub(super) index: usize,
    pub(super) call: ServerCall,
}

/// A call that may have to wait for approval.
#[derive(Clone, Debug)]
pub(super) struct ApprovalCandidate {
    /// The id that its item has if it runs.
    pub(super) id: String,
    pub(super) question: ApprovalQuestion,
    /// None if a vendor's tool host asks.
    pub(super) call: Option<ServerCall>,
}

impl Projector {
    /// A call ended. An item that has begun ends with it; one that begins with it waits for the
    /// others of its round, so that items stand in the order of calls, whichever ended first.
    pub(super) fn result(&mut self, result: &ToolResult, out: &mut Vec<Frame>) {
        self.output.finish_deferred(out, ItemStatus::Completed);
        let waits = |waiting: &PendingCall| waiting.call.is_answered_by(result);
        if self.context.dialect == Dialect::OpenAi
            && let Some(place) = self.waiting.iter().position(waits)
        {
            let PendingCall { index, call } = self.waiting.remove(place);
            return self.end_server(index, &call, result, out);
        }
        let asks = |candidates: &ApprovalCandidate| {
            let call = candidates.call.as_ref();
            call.is_some_and(|call| call.is_answered_by(result))
        };
        let taken = |call: &&ServerCall| call.is_answered_by(result);
        let expected = self.waiting.iter().filter(|waiting| waits(waiting)).count()
            + self
                .candidates
                .iter()
                .filter(|candidates| asks(candidates))
                .count()
            + self.taken.iter().filter(taken).count();
        let same = |ended: &&ToolResult| {
            ended.call().value() == result.call().value()
                && ended.occurrence() == result.occurrence()
        };
        if self.ended.iter().filter(same).count() < expected {
            self.ended.push(result.clone());
        }
    }

    /// Results that stand in a message: those that were not shown before, and the end of a round.
    pub(super) fn results(&mut self, message: &Message, out: &mut Vec<Frame>) {
        for result in message.contents.iter().filter_map(Content::as_tool_result) {
            self.result(result, out);
        }
        self.end_round(out);
    }

    /// Show the results that wait, in the order of their calls.
    pub(super) fn end_round(&mut self, out: &mut Vec<Frame>) {
        if self.ended.is_empty() {
            return;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            match self.ended_as(&waiting.call) {
                Some(result) => self.show_output(waiting.index, &waiting.call, &result, out),
                None => self.waiting.push(waiting),
            }
        }
        for candidates in std::mem::take(&mut self.candidates) {
            let call = candidates.call.as_ref();
            match call.and_then(|call| Some((call, self.ended_as(call)?))) {
                Some((call, result)) => self.show_ended(candidates.id, call, &result, out),
                None => self.candidates.push(candidates),
            }
        }
        // Of calls that were taken over, some have their results before others run: items stand in
        // the order of calls all the same.
        while let Some(result) = self
            .taken
            .first()
            .cloned()
            .and_then(|one| self.ended_as(&one))
        {
            let call = self.taken.remove(0);
            self.show_taken(&call, &result, out);
        }
        let taken = &self.taken;
        self.ended
            .retain(|ended| taken.iter().any(|call| call.is_answered_by(ended)));
    }

    /// Show what calls that were taken over came to, although one before them has no result.
    pub(super) fn end_taken(&mut self, out: &mut Vec<Frame>) {
        for call in std::mem::take(&mut self.taken) {
            match self.ended_as(&call) {
                Some(result) => self.show_taken(&call, &result, out),
                None => self.taken.push(call),
            }
        }
        self.ended.clear();
    }

    fn show_taken(&mut self, call: &ServerCall, result: &ToolResult, out: &mut Vec<Frame>) {
        let id = ItemId {
            prefix: prefix_of(call.tag()),
            run: self.context.run,
            place: ItemPlace::Taken(self.taken_over),
        };
        self.taken_over += 1;
        self.show_ended(id.to_string(), call, result, out);
    }

    /// The result of a call, if it waits to be shown.
    fn ended_as(&mut self, call: &ServerCall) -> Option<ToolResult> {
        let place = self
            .ended
            .iter()
            .position(|ended| call.is_answered_by(ended))?;
        Some(self.ended.remove(place))
    }

    /// Show a call and its result at once.
    fn show_ended(
        &mut self,
        id: String,
        call: &ServerCall,
        result: &ToolResult,
        out: &mut Vec<Frame>,
    ) {
        let index = match self.context.dialect {
            Dialect::OpenAi => self.begin_server(id, call, out),
            Dialect::OpenResponses => self.show_call(id, call.as_function(), out),
        };
        self.end_server(index, call, result, out);
    }

    /// The result of a call whose item has begun.
    fn end_server(
        &mut self,
        index: usize,
        call: &ServerCall,
        result: &ToolResult,
        out: &mut Vec<Frame>,
    ) {
        if self.context.dialect == Dialect::OpenResponses {
            return self.show_output(index, call, result, out);
        }
        let kind = match succeeded(result) {
            true => "response.mcp_call.completed",
            false => "response.mcp_call.failed",
        };
        self.output.item_event(out, kind, index, 0, |_| {});
        let json = call.item(self.output.id(index), Some(result));
        self.output.done(out, index, json);
    }

    /// A result as an item of its own, where calls and results are apart.
    fn show_output(
        &mut self,
        index: usize,
        call: &ServerCall,
        result: &ToolResult,
        out: &mut Vec<Frame>,
    ) {
        // The same place as the call's, under another prefix.
        let prefix = prefix_of("function_call_output");
        let id = match self.output.id(index).split_once('_') {
            Some((_, place)) => format!("{prefix}_{place}"),
            None => prefix.to_owned(),
        };
        let begun = call.output_item(&id, result, ItemStatus::InProgress);
        let done = call.output_item(&id, result, ItemStatus::Completed);
        let index = self.output.add(out, id, &begun);
        self.output.done(out, index, done);
    }

    /// Close what has no result, and ask what is to be asked.
    pub(super) fn end_calls(&mut self, ending: &Ending, out: &mut Vec<Frame>) {
        self.end_round(out);
        self.end_taken(out);
        for PendingCall { index, call } in std::mem::take(&mut self.waiting) {
            if self.context.dialect == Dialect::OpenAi {
                let json = call.item(self.output.id(index), None);
                self.output.done(out, index, json);
            }
        }
        if self.context.dialect == Dialect::OpenResponses {
            return;
        }
        for candidates in std::mem::take(&mut self.candidates) {
            let mut asked = ending.asked.iter();
            let record = asked.find(|asked| candidates.question.is_asked_by(asked));
            let id = match (record, &candidates.call) {
                (Some(record), _) => record.approval.to_string(),
                (None, None) => candidates.id,
                // It neither ran nor waits.
                (None, Some(_)) => continue,
            };
            let json = candidates.question.item(&id);
            let index = self.output.add(out, id, &json);
            self.output.done(out, index, json);
        }
    }
}
