//! Items of a history, from clients and models alike: what `input_items` lists.
//!
//! What a client sent comes back as it was sent, filled up where readers count on a member; what a
//! model said comes back as the item that its response showed, under the same id.

mod defaults;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Body, Content, Message, Role, Source, Status as MessageStatus, ToolResult, Wire, occurrence_in,
};
use throughline_store::RunId;

use super::compaction_token;
use super::envelope;
use super::ids::{ItemId, ItemPlace, prefix_of};
use super::output::{
    ApprovalQuestion, Draft, ItemBuilder, ItemStatus, ServerCall, SignatureItem, original_items,
};
use crate::api::openai::items::{AwaitingApproval, ToolIndex, with_status};
use crate::config::Dialect;
use defaults::with_defaults;

/// An item of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// The item.
    pub json: RawJson,
    /// Where in the history it stands if a model made it: which message, and which content of it.
    pub position: Option<(usize, usize)>,
    /// The contents that it shows: which message, and which content of it.
    pub contents: Vec<(usize, usize)>,
}

/// Where in a run a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePosition {
    /// In its input.
    Input,
    /// In a model call, or among the results of its calls.
    Step(u32),
}

/// A message of a history.
#[derive(Clone, Copy, Debug)]
pub struct PositionedMessage<'m> {
    /// The run.
    pub run: RunId,
    /// Where in it.
    pub place: MessagePosition,
    /// The message.
    pub message: &'m Message,
}

/// How items are listed.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'l> {
    /// Which specification the items follow.
    pub dialect: Dialect,
    /// The tools that run here.
    pub tool_index: &'l ToolIndex,
    /// Whether reasoning comes with what is needed to send it back.
    pub seals: bool,
    /// Whether a summary of reasoning was asked for.
    pub summarizes: bool,
    /// The model that was asked.
    pub model: &'l str,
    /// Calls that wait or waited for approval, by run.
    pub asked: &'l [(RunId, AwaitingApproval)],
}

/// The items of a history, oldest first. All messages of a run that are listed stand together, from
/// its first on: items are numbered as they come.
pub fn input_items(messages: &[PositionedMessage<'_>], listing: &Listing<'_>) -> Vec<Item> {
    let mut list = ItemList {
        listing,
        builder: ItemBuilder {
            dialect: listing.dialect,
            tool_index: listing.tool_index,
            seals: listing.seals,
            logprobs: false,
            summarizes: listing.summarizes,
            model: listing.model,
        },
        inputs: HashMap::new(),
        steps: HashMap::new(),
        taken: HashMap::new(),
        results: results(messages),
        open: Vec::new(),
        closed: Vec::new(),
        items: Vec::new(),
        message: 0,
    };
    for (index, positioned) in messages.iter().enumerate() {
        list.message = index;
        if closes_calls(positioned) {
            list.closed.push(*positioned);
            continue;
        }
        let runs_calls = positioned.message.source == Some(Source::Tool);
        let same_run = list
            .closed
            .iter()
            .all(|closed| closed.run == positioned.run);
        if !(runs_calls && same_run) && positioned.message.role != Role::User {
            list.list_closed();
        }
        match positioned.place {
            MessagePosition::Input => list.input(positioned),
            MessagePosition::Step(step) => list.output(positioned, step),
        }
    }
    list.list_closed();
    list.items
}

/// The results of a run by the ids of their calls, first ones first.
type Results<'m> = HashMap<(RunId, String), Vec<&'m ToolResult>>;

fn results<'m>(messages: &[PositionedMessage<'m>]) -> Results<'m> {
    let mut found: Results<'m> = HashMap::new();
    for positioned in messages {
        if positioned.place == MessagePosition::Input && !closes_calls(positioned) {
            continue;
        }
        let contents = positioned.message.contents.iter();
        for result in contents.filter_map(Content::as_tool_result) {
            let key = (positioned.run, result.call().value().to_owned());
            found.entry(key).or_default().push(result);
        }
    }
    found
}

/// Whether a message has our results for calls of the response before that did not run.
fn closes_calls(positioned: &PositionedMessage<'_>) -> bool {
    let message = positioned.message;
    message.role == Role::Tool && message.source == Some(Source::Repair)
}

struct ItemList<'m, 'l> {
    listing: &'l Listing<'l>,
    builder: ItemBuilder<'l>,
    inputs: HashMap<RunId, u32>,
    /// The numbers of the next items of a step, by the prefix of their ids.
    steps: HashMap<(RunId, u32, &'static str), u32>,
    taken: HashMap<RunId, u32>,
    results: Results<'m>,
    /// Calls that ran in no run so far.
    open: Vec<ServerCall>,
    /// Results of calls that did not run, until those of the same run that did are known.
    closed: Vec<PositionedMessage<'m>>,
    items: Vec<Item>,
    /// Which message is listed now.
    message: usize,
}

impl<'m> ItemList<'m, '_> {
    /// List a message of the input.
    fn input(&mut self, positioned: &PositionedMessage<'m>) {
        if let Some((id, item)) = compaction_token::item_of(positioned.message) {
            return self.push(id, item.get());
        }
        let mut run: Vec<(usize, Content)> = Vec::new();
        for (place, content) in positioned.message.contents.iter().enumerate() {
            let wire = content.vendor.as_ref().map(|vendor| &vendor.wire);
            let foreign = wire != Some(&Wire::OpenAiResponses);
            let carried = envelope::item_id_of(content).is_some()
                || foreign && matches!(content.body, Body::Reasoning(_));
            if !carried {
                run.push((place, content.clone()));
                continue;
            }
            self.push_sent(positioned, std::mem::take(&mut run));
            if let Some(draft) = self.builder.draft(content, None, &mut None) {
                let id = envelope::item_id_of(content);
                let id = id.unwrap_or_else(|| self.input_id(positioned.run, draft.tag()));
                self.push(id.clone(), &draft.item(&id, ItemStatus::Completed));
                self.made_from(vec![place]);
            }
        }
        self.push_sent(positioned, run);
    }

    /// Contents as the items that the client sent.
    fn push_sent(&mut self, positioned: &PositionedMessage<'m>, contents: Vec<(usize, Content)>) {
        if contents.is_empty() {
            return;
        }
        let (places, contents): (Vec<usize>, Vec<Content>) = contents.into_iter().unzip();
        let message = Message {
            contents,
            ..positioned.message.clone()
        };
        let items = original_items(message.clone());
        let mut sources = sources(&message, &places, items.len()).into_iter();
        for item in items {
            let value = item.value();
            let tag = value.get("type").and_then(Value::as_str);
            let tag = tag.unwrap_or_else(|| "message".into());
            let minted = self.input_id(positioned.run, &tag);
            let id = value.get("id").and_then(Value::as_str);
            let id = id.filter(|id| !id.is_empty()).map_or(minted, Into::into);
            let json = with_defaults(&value, &tag, &id);
            self.push(id, &json);
            self.made_from(sources.next().unwrap_or_default());
        }
    }

    /// Note which contents of the message the newest item shows.
    fn made_from(&mut self, places: Vec<usize>) {
        if let Some(item) = self.items.last_mut() {
            let message = self.message;
            item.contents = places.into_iter().map(|place| (message, place)).collect();
        }
    }

    fn input_id(&mut self, run: RunId, tag: &str) -> String {
        let number = self.inputs.entry(run).or_default();
        let place = ItemPlace::Input(*number);
        *number += 1;
        let prefix = prefix_of(tag);
        ItemId { prefix, run, place }.to_string()
    }

    fn push(&mut self, id: String, json: &str) {
        if let Ok(json) = RawJson::new(json) {
            self.items.push(Item {
                id,
                json,
                position: None,
                contents: Vec::new(),
            });
        }
    }

    /// List an answer of a model, or results of tools that ran in the server.
    fn output(&mut self, positioned: &PositionedMessage<'m>, step: u32) {
        let message = positioned.message;
        if message.source == Some(Source::Repair) {
            return;
        }
        if message.role == Role::Tool && message.source != Some(Source::Model) {
            let closed = std::mem::take(&mut self.closed);
            return self.taken_over(closed.iter().chain([positioned]));
        }
        let mut phase = None;
        let first = self.items.len();
        for (place, content) in message.contents.iter().enumerate() {
            let next = message.contents.get(place + 1);
            let Some(draft) = self.builder.draft(content, next, &mut phase) else {
                continue;
            };
            let draft = draft.with_occurrence(occurrence_in(message, place));
            let id = self.output_id(positioned.run, step, draft.tag());
            let before = self.items.len();
            self.push_draft(positioned.run, id, &draft);
            self.push_signature(positioned.run, step, content);
            for item in self.items.iter_mut().skip(before) {
                item.position = Some((self.message, place));
                item.contents = vec![(self.message, place)];
            }
        }
        let cut = message.status == Some(MessageStatus::Incomplete);
        if let (true, Some(last)) = (
            cut,
            self.items.get_mut(first..).and_then(<[Item]>::last_mut),
        ) {
            last.json = with_status(&last.json, "incomplete");
        }
    }

    fn output_id(&mut self, run: RunId, step: u32, tag: &str) -> ItemId {
        let prefix = prefix_of(tag);
        let next = self.steps.entry((run, step, prefix)).or_default();
        let number = *next;
        *next += 1;
        let place = ItemPlace::Output {
            step,
            number,
            again: 0,
        };
        ItemId { prefix, run, place }
    }

    /// What a client carries beside an item.
    fn push_signature(&mut self, run: RunId, step: u32, content: &Content) {
        let carrier = self.builder.signature_item(content);
        if carrier == SignatureItem::None {
            return;
        }
        let id = self.output_id(run, step, "reasoning");
        if let SignatureItem::Shown(thought) = carrier {
            let id = id.to_string();
            self.push(id.clone(), &thought.item(&id, ItemStatus::Completed));
        }
    }

    fn push_draft(&mut self, run: RunId, id: ItemId, draft: &Draft) {
        let named = id.to_string();
        match draft {
            Draft::Server(call) => {
                let key = (run, call.call.clone());
                let result = self.results.get_mut(&key).and_then(|list| {
                    let place = list.iter().position(|one| call.is_answered_by(one))?;
                    Some(list.remove(place))
                });
                if result.is_none() {
                    self.open.push(call.clone());
                }
                match (result, self.approval_id(run, &call.question())) {
                    (None, None) if call.asks => {}
                    // The other specification has no word for the question.
                    (None, Some(_)) if self.listing.dialect == Dialect::OpenResponses => {}
                    (None, Some(approval)) => {
                        let json = call.question().item(&approval);
                        self.push(approval, &json);
                    }
                    (result, _) => self.push_ended(&named, call, result),
                }
            }
            Draft::Question(question) => {
                let id = self.approval_id(run, question).unwrap_or(named);
                let json = question.item(&id);
                self.push(id, &json);
            }
            Draft::Message(_) | Draft::Reasoning(_) | Draft::Call(_) | Draft::Vendor(_) => {
                self.push(named.clone(), &draft.item(&named, ItemStatus::Completed));
            }
        }
    }

    /// A call that ran here, with its result.
    fn push_ended(&mut self, id: &str, call: &ServerCall, result: Option<&ToolResult>) {
        if self.listing.dialect == Dialect::OpenAi {
            return self.push(id.to_owned(), &call.item(id, result));
        }
        let rest = id.split_once('_').map_or("", |(_, rest)| rest);
        let named = format!("{}_{rest}", prefix_of("function_call"));
        let json = call.as_function().item(&named, ItemStatus::Completed);
        self.push(named, &json);
        if let Some(result) = result {
            let named = format!("{}_{rest}", prefix_of("function_call_output"));
            let json = call.output_item(&named, result, ItemStatus::Completed);
            self.push(named, &json);
        }
    }

    fn approval_id(&self, run: RunId, question: &ApprovalQuestion) -> Option<String> {
        let mut asked = self.listing.asked.iter();
        let found = asked.find(|(of, asked)| *of == run && question.is_asked_by(asked));
        found.map(|(_, asked)| asked.approval.to_string())
    }

    /// List results that wait for others.
    fn list_closed(&mut self) {
        let closed = std::mem::take(&mut self.closed);
        self.taken_over(closed.iter());
    }

    /// Results of calls that an earlier run had asked for, in the order of the calls.
    fn taken_over<'s>(&mut self, positioned: impl Iterator<Item = &'s PositionedMessage<'m>>)
    where
        'm: 's,
    {
        let mut found: Vec<(usize, RunId, &'m ToolResult)> = Vec::new();
        for positioned in positioned {
            let contents = positioned.message.contents.iter();
            for result in contents.filter_map(Content::as_tool_result) {
                let id = result.call().value();
                let left = self.results.get_mut(&(positioned.run, id.to_owned()));
                // Those of calls of this run were listed with their calls.
                let unlisted = left.and_then(|left| {
                    let place = left.iter().position(|one| std::ptr::eq(*one, result))?;
                    Some(left.remove(place))
                });
                let taken = |place: &usize| found.iter().all(|(other, ..)| other != place);
                let mut calls = (0..self.open.len()).rev().filter(taken);
                let call = calls.find(|place| self.open[*place].is_answered_by(result));
                if let (Some(result), Some(place)) = (unlisted, call) {
                    found.push((place, positioned.run, result));
                }
            }
        }
        found.sort_by_key(|(place, ..)| *place);
        for (place, run, result) in &found {
            let call = self.open[*place].clone();
            let number = self.taken.entry(*run).or_default();
            let id = ItemId {
                prefix: prefix_of(call.tag()),
                run: *run,
                place: ItemPlace::Taken(*number),
            };
            *number += 1;
            self.push_ended(&id.to_string(), &call, Some(result));
        }
        for (place, ..) in found.iter().rev() {
            self.open.remove(*place);
        }
    }
}

/// Which contents each item of a message shows. `places` are those of its contents.
fn sources(message: &Message, places: &[usize], items: usize) -> Vec<Vec<usize>> {
    if items == 1 {
        return vec![places.to_vec()];
    }
    if items == places.len() {
        return places.iter().map(|place| vec![*place]).collect();
    }
    // An item begins with the content with which there is one item more.
    let mut sources: Vec<Vec<usize>> = Vec::new();
    for (count, place) in (1..).zip(places) {
        let part = Message {
            contents: message.contents[..count].to_vec(),
            ..message.clone()
        };
        let now = original_items(part).len();
        while sources.len() < now {
            sources.push(Vec::new());
        }
        if let Some(last) = sources.last_mut() {
            last.push(*place);
        }
    }
    sources
}
