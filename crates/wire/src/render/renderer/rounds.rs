//! Rounds: calls that wait, their results, and what stands where there is none.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use throughline_model::json::RawJson;

use throughline_model::{
    Body, CallId, Content, Family, IdField, Media, MediaKind, MediaSource, Message, Outcome,
    Output, Pairing, Path, Role, Runner, Scope, Status, ToolResult,
};

use super::super::content_filter;
use super::super::format::{Adjacency, RenderFormat, ResultMedia, Rules};
use super::super::order::is_placeholder;
use super::super::placeholder_text;
use super::super::rename::rename;
use super::super::repair::RepairKind;
use super::super::strategy::{TextEmbed, ToolEntry, ToolHistoryStrategy};
use super::super::target::Target;
use super::{ContentPosition, LastItem, PendingCall, PendingResult, Renderer, Stale};
use crate::foreign;

impl Renderer {
    /// Give a call the id under which it is rendered; nothing for what does not wait for a
    /// result. The second value is the content where it had to change.
    pub(super) fn called(
        &mut self,
        content: &Content,
        at: usize,
        place: usize,
        status: Option<Status>,
    ) -> (Option<PendingCall>, Option<Content>) {
        let native = content_filter::is_native(content, &self.target);
        let Body::ToolCall(call) = &content.body else {
            return (None, None);
        };
        if call.runner == Runner::Vendor {
            return (None, None);
        }
        let mut changed = None;
        let mut id = None;
        if self.rules.id.ours {
            let value = self.ids.take(&call.call, self.rules.id);
            // An id that we minted is not on the wire; where one must stand, it is written now.
            let wanted = self.rules.id.required;
            let there = !native || content_filter::has_call_id(content, &value) || !wanted;
            let differs = value != call.call.value() || !there;
            if let Some(renamed) = differs.then(|| CallId::natural(&value)).flatten() {
                let root = Path::Root.key("messages");
                let path = root.index(at);
                let path = path.key("contents");
                let detail = format!("{} is sent as {renamed}", call.call);
                self.repair(&path.index(place), RepairKind::RenamedId, detail);
                let mut other = content.clone();
                rename(&mut other, &renamed);
                changed = Some(other);
                id = Some(renamed);
            }
        }
        if !self.rules.id.ours && !native {
            // Its result must not be taken for that of a call with an id of the vendor.
            id = Some(CallId::minted(Scope::Place(at), place));
        }
        // Ids that the vendor issued are echoed; it is its codec that knows how.
        let issued = !self.rules.id.ours
            && content
                .vendor
                .as_ref()
                .is_some_and(|vendor| matches!(vendor.id_fields.call, IdField::Set(_)));
        let waiting = PendingCall {
            id,
            call: call.clone(),
            at: (at, place),
            occurrence: 0,
            native: native
                && changed
                    .as_ref()
                    .is_none_or(|content| content.vendor.is_some()),
            content: (native && issued).then(|| content.clone()),
            status: call.status.clone().or(status),
            checks: (native && call.family == Family::COMPUTER && self.enforces("O-14"))
                .then_some(self.format.safety_checks)
                .flatten()
                .and_then(|checks| (checks.of_call)(content)),
            answer: None,
        };
        (Some(waiting), changed)
    }

    pub(super) fn results(
        &mut self,
        message: &Message,
        range: Range<usize>,
        at: usize,
    ) -> Result<(), Stale> {
        for place in range {
            let Body::ToolResult(result) = &message.contents[place].body else {
                continue;
            };
            let (cleaned, mut found) = self.legal(message, at).result_of_client(place);
            self.note(&mut found, at);
            let content = cleaned.as_ref().unwrap_or(&message.contents[place]);
            let value = result.call().value();
            let waits = |waiting: &&mut PendingCall| {
                let named = result.occurrence();
                waiting.answer.is_none()
                    && waiting.call.call.value() == value
                    && named.is_none_or(|occurrence| waiting.occurrence == occurrence)
            };
            let slot = match result.pairing() {
                Pairing::Answers => self.waiting.iter_mut().find(waits),
                Pairing::Standalone => None,
            };
            if let Some(waiting) = slot {
                let content = answered(
                    content,
                    result,
                    waiting,
                    (&self.target, self.format, &self.rules),
                );
                waiting.answer = Some(PendingResult {
                    content,
                    at: (at, place),
                });
                self.answered.insert(value.into());
                match is_placeholder(result) {
                    true => self.stood_in.insert(value.into()),
                    false => self.stood_in.remove(value),
                };
                if self.rules.adjacency == Adjacency::BeforeModel && self.native_calls() {
                    self.answer_now(value, at, place);
                }
                continue;
            }
            self.unasked(content, result, at, place)?;
        }
        let whole = self.waiting.iter().all(|waiting| waiting.answer.is_some());
        if whole && !self.waiting.is_empty() {
            self.close()?;
        }
        Ok(())
    }

    /// What the service has already is not sent again: of an answered call neither half, of an
    /// open one the result alone.
    pub(super) fn leave_chained(
        &mut self,
        message: &mut Cow<'_, Message>,
        waiting: &mut Vec<PendingCall>,
        at: usize,
    ) {
        let Some(chain) = self.target.chain.clone() else {
            return;
        };
        let flat = self.rules.adjacency == Adjacency::BeforeModel;
        if !flat || !self.enforces("F-4") {
            return;
        }
        let holds = |id: &CallId| {
            let (open, done) = (&chain.calls.open, &chain.calls.answered);
            open.contains(id.value()) || done.contains(id.value())
        };
        let is_behind = |content: &Content| {
            let call = content.as_tool_call();
            call.is_some_and(|call| call.runner == Runner::Client && holds(&call.call))
        };
        if !message.contents.iter().any(is_behind) {
            return;
        }
        message
            .to_mut()
            .contents
            .retain(|content| !is_behind(content));
        let root = Path::Root.key("messages");
        let detail = "the service has the call and is not sent it again";
        self.repair(&root.index(at), RepairKind::Chained, detail);
        let done = |waiting: &PendingCall| chain.calls.answered.contains(waiting.call.call.value());
        let answered = waiting.iter().filter(|waiting| done(waiting));
        let ids = answered.map(|waiting| waiting.call.call.value().into());
        self.behind.extend(ids);
        waiting.retain(|waiting| !done(waiting));
    }

    /// Whether the round that is going on is shown as calls and results.
    fn native_calls(&self) -> bool {
        self.strategy.keeps_calls() && !self.as_text
    }

    /// Where results may stand anywhere before the next model turn, they stay where they are.
    fn answer_now(&mut self, value: &str, at: usize, place: usize) {
        let found = self
            .waiting
            .iter()
            .position(|waiting| waiting.answer.is_some() && waiting.call.call.value() == value);
        let Some(found) = found else { return };
        let waiting = self.waiting.remove(found);
        let Some(answer) = waiting.answer else {
            return;
        };
        let entry = ToolEntry {
            call: waiting.call,
            result: answer.content,
        };
        let checks = waiting.checks.into_iter().collect::<Vec<_>>();
        self.show(vec![entry], Vec::new(), at, &[(at, place)]);
        self.acknowledge(&checks);
    }

    /// A result that answers nothing that waits.
    fn unasked(
        &mut self,
        content: &Content,
        result: &ToolResult,
        at: usize,
        place: usize,
    ) -> Result<(), Stale> {
        let root = Path::Root.key("messages");
        let path = root.index(at);
        let path = path.key("contents");
        let path = path.index(place);
        let value = result.call().value();
        let chain = self.target.chain.as_ref();
        let waits_behind = chain.is_some_and(|chain| chain.calls.open.contains(value));
        let naive = match result.pairing() {
            Pairing::Standalone => false,
            Pairing::Answers if self.answered.contains(value) => !self.rules.one_result,
            Pairing::Answers => !self.rules.results_asked || waits_behind,
        };
        if naive && self.native_calls() {
            self.answered.insert(value.into());
            let message = Message::new(Role::Tool, vec![content.clone()]);
            self.emit(&message, at, &[place], LastItem::Results);
            return Ok(());
        }
        if self.behind.contains(value) {
            let detail = "the service has the result and is not sent it again";
            self.repair(&path, RepairKind::Chained, detail);
            return Ok(());
        }
        let (kind, detail) = match result.pairing() {
            Pairing::Standalone
                if self.rules.standalone
                    && self.native_calls()
                    && stands_alone(content, result, &self.target) =>
            {
                let message = Message::new(Role::Tool, vec![content.clone()]);
                self.emit(&message, at, &[place], LastItem::Results);
                return Ok(());
            }
            Pairing::Standalone => (RepairKind::OrphanResult, "no call asked for it"),
            Pairing::Answers if self.closed.contains(value) && !self.lenient => return Err(Stale),
            // The real one stands in its place from now on.
            Pairing::Answers
                if self.stood_in.contains(value) && !is_placeholder(result) && !self.lenient =>
            {
                return Err(Stale);
            }
            Pairing::Answers if self.closed.contains(value) => (
                RepairKind::LateResult,
                "it came after the conversation went on",
            ),
            Pairing::Answers if self.answered.contains(value) => {
                (RepairKind::ExtraResult, "the call has its result already")
            }
            Pairing::Answers => {
                self.early.insert(value.into());
                (RepairKind::OrphanResult, "its call is not in the history")
            }
        };
        if self.rules.adjacency == Adjacency::Next {
            // Text between calls and results is refused; what waits is closed first.
            self.close()?;
        }
        self.repair(&path, kind, format!("{detail}; shown as text"));
        let message = Message::user(placeholder_text::result(result));
        self.emit(&message, at, &[place], LastItem::User);
        Ok(())
    }

    /// Show the results of the calls that wait; those without one get a marked one.
    pub(super) fn close(&mut self) -> Result<(), Stale> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut round = Vec::new();
        let mut calls = Vec::new();
        let mut places = Vec::new();
        let mut last = 0;
        let answers = self.rules.calls_answered;
        let mut checks = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.answer.is_none() && !answers {
                continue;
            }
            checks.extend(waiting.checks.clone());
            last = last.max(waiting.at.0);
            calls.extend(waiting.content.clone());
            let (content, place) = match waiting.answer {
                Some(answer) => (answer.content, answer.at),
                None => {
                    let value = waiting.call.call.value();
                    if self.early.contains(value) && !self.lenient {
                        return Err(Stale);
                    }
                    self.closed.insert(value.into());
                    let root = Path::Root.key("messages");
                    let path = root.index(waiting.at.0);
                    let path = path.key("contents");
                    let text = placeholder_text::no_result(waiting.status.as_ref());
                    self.repair(&path.index(waiting.at.1), RepairKind::ClosedCall, text);
                    (self.made_up(&waiting, text), waiting.at)
                }
            };
            places.push(place);
            round.push(ToolEntry {
                call: waiting.call,
                result: content,
            });
        }
        self.show(round, calls, last, &places);
        self.acknowledge(&checks);
        self.as_text = false;
        Ok(())
    }

    /// Echo the safety checks of computer calls in the outputs that were just rendered.
    fn acknowledge(&mut self, checks: &[RawJson]) {
        let Some(format) = self.format.safety_checks else {
            return;
        };
        let mut checks = checks.iter().rev();
        let outputs = self.items.iter_mut().rev();
        for item in outputs.take_while(|item| (format.is_result)(&item.json)) {
            if !(format.takes_checks)(&item.json) {
                continue;
            }
            let Some(asked) = checks.next() else { return };
            if let Some(whole) = (format.acknowledge)(&item.json, asked) {
                item.json = whole;
            }
        }
    }

    /// The result of a call that has none.
    fn made_up(&self, waiting: &PendingCall, text: &str) -> Content {
        let family = waiting.call.family.clone();
        let output = screenshot(waiting, Output::Text(text.to_owned()));
        let mut made = ToolResult::answering(waiting.id().clone(), family, output);
        // Gemini's results have the name of their call, also where that has none of its own.
        let name = Some(foreign::tool_name(&waiting.call).to_owned());
        made.name = name.filter(|_| self.enforces("G-9"));
        made.outcome = Outcome::Unknown;
        Content::from(made)
    }

    /// Show a round through the strategy. `calls` are those whose results must echo something,
    /// `places` where the results stood.
    pub(super) fn show(
        &mut self,
        mut round: Vec<ToolEntry>,
        calls: Vec<Content>,
        at: usize,
        places: &[ContentPosition],
    ) {
        // The results of a round are one message; only the first of them can open it.
        for entry in round.iter_mut().skip(1) {
            if let Some(vendor) = entry.result.vendor.as_mut() {
                vendor.envelope = None;
            }
        }
        let before = Message::new(Role::Assistant, calls);
        let strategy: Arc<dyn ToolHistoryStrategy> = if self.as_text && self.strategy.keeps_calls()
        {
            Arc::new(TextEmbed::default())
        } else {
            Arc::clone(&self.strategy)
        };
        let (moved, moved_from): (Vec<Content>, Vec<ContentPosition>) =
            if self.rules.result_media != ResultMedia::Kept || !strategy.keeps_calls() {
                media(&round, places).unzip()
            } else {
                Default::default()
            };
        if self.rules.result_media == ResultMedia::MovedAndRemoved {
            round.iter_mut().for_each(without_media);
        }
        for message in strategy.entry(round) {
            let last = match message.role {
                Role::Tool => LastItem::Results,
                _ => LastItem::User,
            };
            let echoes = !before.contents.is_empty() && self.enforces("G-4");
            if last == LastItem::Results && echoes {
                self.emit_after(&before, message, at, places, last);
            } else {
                self.emit_from(&message, at, places, last);
            }
        }
        if !moved.is_empty() {
            let message = Message::new(Role::User, moved);
            self.emit_from(&message, at, &moved_from, LastItem::User);
        }
    }
}

/// Whether there is a form for a result that no call asked for: only functions have one, and what
/// came so from the vendor itself.
fn stands_alone(content: &Content, result: &ToolResult, target: &Target) -> bool {
    if !content_filter::is_native(content, target) {
        return result.family == Family::FUNCTION;
    }
    content.vendor.as_ref().is_none_or(|vendor| {
        // The outputs of a local shell name their call by the id of the item.
        let by_item = result.family == Family::LOCAL_SHELL;
        let named = by_item && matches!(vendor.id_fields.id, IdField::Set(_));
        !named && !matches!(vendor.id_fields.call, IdField::Set(_))
    })
}

/// The media of results, for a user message where results hold text only, and where the results
/// stood.
fn media(
    round: &[ToolEntry],
    places: &[ContentPosition],
) -> impl Iterator<Item = (Content, ContentPosition)> {
    round.iter().zip(places).flat_map(|(entry, place)| {
        let parts = match entry.result.as_tool_result().map(|result| &result.output) {
            Some(Output::Parts(parts)) => parts.as_slice(),
            Some(Output::None | Output::Text(_) | Output::Json(_)) | None => &[],
        };
        let media = |part: &&Content| matches!(part.body, Body::Media(_));
        parts
            .iter()
            .filter(media)
            .map(|part| (part.clone(), *place))
    })
}

/// The id of a call that the vendor's form has.
fn issued_id(content: &Content) -> Option<&str> {
    match &content.vendor.as_ref()?.id_fields.call {
        IdField::Set(id) => Some(id),
        IdField::Null | IdField::Missing | IdField::NoField => None,
    }
}

/// A result as it goes back with its call: under the id of the call, in the call's family.
fn answered(
    content: &Content,
    result: &ToolResult,
    waiting: &PendingCall,
    (target, format, rules): (&Target, &RenderFormat, &Rules),
) -> Content {
    let kin = result.family == waiting.call.family
        || (waiting.call.family == Family::LOCAL_SHELL && result.family == Family::FUNCTION);
    // A result that names another function than its call would be refused as it is.
    let name = waiting.call.name.as_str();
    let alike = name.is_empty()
        || match result.name.as_deref() {
            Some(found) => found == name,
            None => !format.named_results,
        };
    let ours = rules.id.ours;
    // An id of the vendor stands on both or on none.
    let echoes = ours || issued_id(content) == waiting.content.as_ref().and_then(issued_id);
    // Where results hold no media, the vendor's form may hold some.
    let bare = rules.result_media != ResultMedia::MovedAndRemoved || !has_media(result);
    let native = waiting.native
        && kin
        && alike
        && echoes
        && bare
        && content_filter::is_native(content, target);
    let says_id = !native || !ours || {
        let id = waiting.id().value();
        content_filter::has_call_id(content, id)
    };
    let same = says_id && waiting.id() == result.call();
    let named = result.name.as_deref() == Some(waiting.call.name.as_str());
    let own = native || (content.vendor.is_none() && named);
    let computer = waiting.call.family == Family::COMPUTER && !native;
    if same && own && !computer && result.family == waiting.call.family {
        let silent =
            result.output == Output::None && placeholder_text::outcome(result.outcome).is_some();
        if !silent {
            return content.clone();
        }
    }
    let mut shown = content.clone();
    if native {
        rename(&mut shown, waiting.id());
        return shown;
    }
    let output = match (&result.output, placeholder_text::outcome(result.outcome)) {
        (Output::None, Some(text)) => Output::Text(text.to_owned()),
        (output, _) => output.clone(),
    };
    let output = screenshot(waiting, output);
    let family = waiting.call.family.clone();
    let mut made = ToolResult::answering(waiting.id().clone(), family, output);
    made.name = Some(foreign::tool_name(&waiting.call).to_owned());
    made.outcome = result.outcome;
    Content::from(made)
}

fn has_media(result: &ToolResult) -> bool {
    match &result.output {
        Output::Parts(parts) => parts.iter().any(|part| matches!(part.body, Body::Media(_))),
        Output::None | Output::Text(_) | Output::Json(_) => false,
    }
}

/// The result without its media, which go to a message behind.
fn without_media(entry: &mut ToolEntry) {
    if let Body::ToolResult(result) = &mut entry.result.body
        && let Output::Parts(parts) = &mut result.output
    {
        parts.retain(|part| !matches!(part.body, Body::Media(_)));
        for part in parts {
            part.vendor = None;
        }
    }
}

fn is_image(part: &Content) -> bool {
    matches!(&part.body, Body::Media(media) if media.kind == MediaKind::Image)
}

/// A screen with nothing on it: one transparent pixel.
const BLANK: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// What a vendor's computer call takes as an output: a picture, never text.
fn screenshot(waiting: &PendingCall, output: Output) -> Output {
    let pictured = match &output {
        Output::Parts(parts) => parts.iter().any(is_image),
        Output::None | Output::Text(_) | Output::Json(_) => false,
    };
    if pictured || !waiting.native || waiting.call.family != Family::COMPUTER {
        return output;
    }
    Output::Parts(vec![Content::new(Body::Media(Media {
        kind: MediaKind::Image,
        media_type: Some("image/png".to_owned()),
        source: MediaSource::Data(BLANK.to_owned()),
        name: None,
        transcript: None,
    }))])
}
