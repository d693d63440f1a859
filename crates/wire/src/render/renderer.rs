//! Rendering, one message after the other.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use throughline_model::{
    Body, CallId, Content, Message, Outcome, Output, Pairing, Path, Role, Runner, Status, ToolCall,
    ToolResult,
};

use super::ids::Ids;
use super::legal::{self, Legal};
use super::repair::{Repair, RepairKind};
use super::strategy::{ToolEntry, ToolHistoryStrategy};
use super::target::{Adjacency, Rules, SystemPlace, Target, rules};
use super::words;
use crate::{Codec, Loss, LossKind, Losses};

/// One item of the rendered history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedItem {
    /// The vendor's message or item, as JSON text.
    pub json: Arc<str>,
    /// The messages of the history that it says; empty for one that was put in.
    pub from: Range<usize>,
}

/// A result came for a call that was rendered as unanswered, or something that was rendered must
/// change. The history has to be rendered as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was rendered no longer holds; render the whole history")]
pub struct Stale;

/// What the last rendered item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    User,
    Model,
    Results,
}

/// A call that waits for its result, or has it.
#[derive(Clone)]
struct Waiting {
    call: ToolCall,
    /// The id under which it was rendered.
    id: CallId,
    /// The path of the call, for repairs.
    at: (usize, usize),
    native: bool,
    /// How whole the message with the call was.
    status: Option<Status>,
    answer: Option<Content>,
}

/// Renders a history message by message. What was rendered stays as it is; only the end of the
/// history ([`Renderer::tail`]) is provisional.
///
/// A renderer that has seen a history can be kept and goes on with new messages without touching
/// the old ones.
#[derive(Clone)]
pub struct Renderer {
    codec: &'static dyn Codec,
    strategy: Arc<dyn ToolHistoryStrategy>,
    target: Target,
    rules: Rules,
    items: Vec<RenderedItem>,
    system: Vec<String>,
    losses: Vec<Loss>,
    repairs: Vec<Repair>,
    ids: Ids,
    item_ids: HashSet<Box<str>>,
    waiting: Vec<Waiting>,
    /// Ids of calls that were rendered as unanswered.
    closed: HashSet<Box<str>>,
    /// Ids of calls that have their result.
    answered: HashSet<Box<str>>,
    /// Ids of results that came before any call.
    early: HashSet<Box<str>>,
    /// Sealed reasoning was rendered in the turn that is going on.
    sealed: bool,
    last: Last,
    seen: usize,
}

/// What stands at the end of a history that may still go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Items after those that are settled.
    pub items: Vec<RenderedItem>,
    /// Losses in them.
    pub losses: Vec<Loss>,
    /// Repairs that made them.
    pub repairs: Vec<Repair>,
}

impl Renderer {
    pub(super) fn new(
        codec: &'static dyn Codec,
        target: Target,
        strategy: Arc<dyn ToolHistoryStrategy>,
    ) -> Self {
        Self {
            rules: rules(&target.wire),
            codec,
            strategy,
            target,
            items: Vec::new(),
            system: Vec::new(),
            losses: Vec::new(),
            repairs: Vec::new(),
            ids: Ids::default(),
            item_ids: HashSet::new(),
            waiting: Vec::new(),
            closed: HashSet::new(),
            answered: HashSet::new(),
            early: HashSet::new(),
            sealed: false,
            last: Last::Nothing,
            seen: 0,
        }
    }

    /// Render one more message.
    pub fn push(&mut self, message: &Message) -> Result<(), Stale> {
        let at = self.seen;
        self.push_at(message, at)
    }

    /// Render a message that stands at an index of the history.
    pub(super) fn push_at(&mut self, message: &Message, at: usize) -> Result<(), Stale> {
        self.seen = self.seen.max(at + 1);
        for (side, range) in sides(message) {
            match side {
                Side::System => self.system(message, range, at)?,
                Side::User => self.user(message, range, at)?,
                Side::Model => self.model(message, range, at)?,
                Side::Results => self.results(message, range, at)?,
            }
        }
        Ok(())
    }

    /// What is settled.
    pub fn items(&self) -> &[RenderedItem] {
        &self.items
    }

    /// Losses in what is settled.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Repairs in what is settled.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// System text that the target takes outside the messages.
    pub fn system_text(&self) -> Option<String> {
        (!self.system.is_empty()).then(|| self.system.join("\n\n"))
    }

    /// The end of the history as it would be sent now: open calls closed, a user at the end.
    pub fn tail(&self) -> Result<Tail, Stale> {
        // Nothing that was settled is needed for this but its length.
        let mut end = Self {
            items: Vec::new(),
            system: Vec::new(),
            losses: Vec::new(),
            repairs: Vec::new(),
            ids: Ids::default(),
            item_ids: HashSet::new(),
            waiting: self.waiting.clone(),
            closed: HashSet::new(),
            answered: HashSet::new(),
            early: HashSet::new(),
            strategy: Arc::clone(&self.strategy),
            target: self.target.clone(),
            ..*self
        };
        if self.waiting.iter().any(|waiting| {
            waiting.answer.is_none() && self.early.contains(waiting.call.call.value())
        }) {
            return Err(Stale);
        }
        let settled = self.items.len();
        end.close()?;
        let needs_user = self.rules.last_user && matches!(end.last, Last::Model | Last::Nothing);
        if needs_user {
            let detail = "the target must end with the user";
            end.insert_user(RepairKind::TrailingUser, detail);
        }
        for repair in &mut end.repairs {
            repair.item += settled;
        }
        Ok(Tail {
            items: end.items,
            losses: end.losses,
            repairs: end.repairs,
        })
    }

    fn repair(&mut self, path: &Path<'_>, kind: RepairKind, detail: impl Into<String>) {
        let item = self.items.len();
        self.repairs.push(Repair::new(path, kind, detail, item));
    }

    /// Write a message; what the codec notes gets the place in the history.
    fn emit(&mut self, message: &Message, at: usize, kept: &[usize], last: Last) {
        let mut losses = Losses::default();
        let items = self
            .codec
            .encode_items(std::slice::from_ref(message), &mut losses);
        for loss in losses.into_vec() {
            self.losses.push(Loss {
                path: placed(&loss.path, at, kept),
                ..loss
            });
        }
        if items.is_empty() {
            return;
        }
        self.items.extend(items.into_iter().map(|json| RenderedItem {
            json: json.into(),
            from: at..at + 1,
        }));
        self.last = last;
    }

    /// Put in a user message of ours.
    fn insert_user(&mut self, kind: RepairKind, detail: &str) {
        let root = Path::Root.key("messages");
        let seen = self.seen;
        self.repair(&root.index(seen.saturating_sub(1)), kind, detail);
        let items = self
            .codec
            .encode_items(&[Message::user(words::CONTINUE)], &mut Losses::default());
        self.items.extend(items.into_iter().map(|json| RenderedItem {
            json: json.into(),
            from: seen..seen,
        }));
        self.last = Last::User;
    }

    fn system(&mut self, message: &Message, range: Range<usize>, at: usize) -> Result<(), Stale> {
        if self.rules.system == SystemPlace::InOrder {
            // System text may stand between calls and results only where results may wait.
            if self.rules.adjacency == Adjacency::Next {
                self.close()?;
            }
            let (message, kept) = self.prepared(message, range, at);
            self.emit(&message, at, &kept, Last::User);
            return Ok(());
        }
        let text: Vec<&str> = message.contents[range.clone()]
            .iter()
            .filter_map(Content::as_text)
            .filter(|text| !text.trim().is_empty())
            .collect();
        let root = Path::Root.key("messages");
        let path = root.index(at);
        for (place, content) in message.contents.iter().enumerate() {
            if range.contains(&place) && content.as_text().is_none() {
                let contents = path.key("contents");
                self.losses.push(Loss {
                    path: contents.index(place).to_string(),
                    kind: LossKind::SystemText,
                    detail: "only text fits here".to_owned(),
                });
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        let text = text.join("\n\n");
        if self.items.is_empty() && self.waiting.is_empty() && self.last == Last::Nothing {
            self.system.push(text);
            return Ok(());
        }
        self.close()?;
        self.repair(&path, RepairKind::SystemPlace, "later system text becomes user text");
        let said = Message::user(format!("[System] {text}"));
        self.emit(&said, at, &[], Last::User);
        Ok(())
    }

    fn user(&mut self, message: &Message, range: Range<usize>, at: usize) -> Result<(), Stale> {
        if self.rules.adjacency == Adjacency::Next {
            self.close()?;
        }
        if std::mem::take(&mut self.sealed) && legal::only_newest_sealed(&self.target) {
            return Err(Stale);
        }
        let (message, kept) = self.prepared(message, range, at);
        if !message.contents.is_empty() {
            self.emit(&message, at, &kept, Last::User);
        }
        Ok(())
    }

    fn model(&mut self, message: &Message, range: Range<usize>, at: usize) -> Result<(), Stale> {
        self.close()?;
        let (prepared, kept) = self.prepared(message, range, at);
        let mut prepared = prepared.into_owned();
        let mut waiting = Vec::new();
        for (index, content) in prepared.contents.iter_mut().enumerate() {
            let place = kept.get(index).copied().unwrap_or(index);
            if let Some(found) = self.called(content, at, place, prepared.status.as_ref()) {
                waiting.push(found);
            }
        }
        if !self.strategy.keeps_calls() {
            let mine = |content: &Content| {
                content
                    .as_tool_call()
                    .is_some_and(|call| call.runner == Runner::Client)
            };
            prepared.contents.retain(|content| !mine(content));
        }
        if prepared.contents.is_empty() {
            self.waiting = waiting;
            return Ok(());
        }
        let calls = !waiting.is_empty() && self.strategy.keeps_calls();
        if self.last == Last::Nothing && self.rules.first_user {
            self.insert_user(RepairKind::LeadingUser, "the target must begin with the user");
        } else if calls && self.last == Last::Model && self.rules.calls_after_user {
            self.insert_user(RepairKind::BetweenModels, "calls must follow the user here");
        }
        self.emit(&prepared, at, &kept, Last::Model);
        self.waiting = waiting;
        Ok(())
    }

    /// Give a call the id under which it is rendered; `None` for what does not wait for a result.
    fn called(
        &mut self,
        content: &mut Content,
        at: usize,
        place: usize,
        status: Option<&Status>,
    ) -> Option<Waiting> {
        let native = legal::is_native(content, &self.target);
        let Body::ToolCall(call) = &mut content.body else {
            return None;
        };
        if call.runner == Runner::Vendor {
            return None;
        }
        let original = call.clone();
        if self.rules.id.ours {
            let value = self.ids.take(&call.call, self.rules.id);
            if value != call.call.value() {
                let root = Path::Root.key("messages");
                let path = root.index(at);
                let path = path.key("contents");
                let detail = format!("{} is sent as {value}", call.call);
                self.repair(&path.index(place), RepairKind::RenamedId, detail);
                if let Some(id) = CallId::natural(&value) {
                    legal::rename(content, &id);
                }
            }
        }
        let Body::ToolCall(call) = &content.body else {
            return None;
        };
        Some(Waiting {
            id: call.call.clone(),
            call: original,
            at: (at, place),
            native,
            status: call.status.clone().or_else(|| status.cloned()),
            answer: None,
        })
    }

    fn results(&mut self, message: &Message, range: Range<usize>, at: usize) -> Result<(), Stale> {
        for place in range {
            let content = &message.contents[place];
            let Body::ToolResult(result) = &content.body else {
                continue;
            };
            let value = result.call().value();
            let waits = |waiting: &&mut Waiting| {
                waiting.answer.is_none() && waiting.call.call.value() == value
            };
            let slot = match result.pairing() {
                Pairing::Answers => self.waiting.iter_mut().find(waits),
                Pairing::Standalone => None,
            };
            if let Some(waiting) = slot {
                waiting.answer = Some(answered(content, result, waiting, &self.target));
                self.answered.insert(value.into());
                if self.rules.adjacency == Adjacency::BeforeModel && self.strategy.keeps_calls() {
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

    /// Where results may stand anywhere before the next model turn, they stay where they are.
    fn answer_now(&mut self, value: &str, at: usize, place: usize) {
        let found = self
            .waiting
            .iter()
            .position(|waiting| waiting.answer.is_some() && waiting.call.call.value() == value);
        let Some(found) = found else { return };
        let waiting = self.waiting.remove(found);
        let Some(content) = waiting.answer else { return };
        self.show(vec![(waiting.call, content)], at, &[place]);
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
        let (kind, detail) = match result.pairing() {
            Pairing::Standalone if self.rules.standalone && self.strategy.keeps_calls() => {
                let message = Message::new(Role::Tool, vec![content.clone()]);
                self.emit(&message, at, &[place], Last::Results);
                return Ok(());
            }
            Pairing::Standalone => (RepairKind::OrphanResult, "no call asked for it"),
            Pairing::Answers if self.closed.contains(value) => return Err(Stale),
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
        let said = Message::user(words::result(result));
        self.emit(&said, at, &[place], Last::User);
        Ok(())
    }

    /// Show the results of the calls that wait; those without one get a marked one.
    fn close(&mut self) -> Result<(), Stale> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut round = Vec::new();
        let mut last = 0;
        for waiting in std::mem::take(&mut self.waiting) {
            last = last.max(waiting.at.0);
            let content = match waiting.answer {
                Some(content) => content,
                None => {
                    let value = waiting.call.call.value();
                    if self.early.contains(value) {
                        return Err(Stale);
                    }
                    self.closed.insert(value.into());
                    let root = Path::Root.key("messages");
                    let path = root.index(waiting.at.0);
                    let path = path.key("contents");
                    let text = words::no_result(waiting.status.as_ref());
                    self.repair(&path.index(waiting.at.1), RepairKind::ClosedCall, text);
                    made_up(&waiting, text)
                }
            };
            round.push((waiting.call, content));
        }
        let at = if self.strategy.keeps_calls() { last } else { self.seen.saturating_sub(1) };
        self.show(round, at, &[]);
        Ok(())
    }

    /// Show a round through the strategy.
    fn show(&mut self, round: Vec<(ToolCall, Content)>, at: usize, kept: &[usize]) {
        let entries: Vec<ToolEntry<'_>> = round
            .iter()
            .filter_map(|(call, content)| {
                let result = content.as_tool_result()?;
                Some(ToolEntry {
                    call,
                    result,
                    content,
                })
            })
            .collect();
        let strategy = Arc::clone(&self.strategy);
        for message in strategy.entry(&entries) {
            let last = match message.role {
                Role::Tool => Last::Results,
                _ => Last::User,
            };
            self.emit(&message, at, kept, last);
        }
        if self.rules.text_results && strategy.keeps_calls() {
            self.moved_media(&round, at);
        }
    }

    /// Media of results goes into a user message where results hold text only.
    fn moved_media(&mut self, round: &[(ToolCall, Content)], at: usize) {
        let media: Vec<Content> = round
            .iter()
            .filter_map(|(_, content)| content.as_tool_result())
            .flat_map(|result| match &result.output {
                Output::Parts(parts) => parts.as_slice(),
                Output::None | Output::Text(_) | Output::Json(_) => &[],
            })
            .filter(|part| matches!(part.body, Body::Media(_)))
            .cloned()
            .collect();
        if !media.is_empty() {
            self.emit(&Message::new(Role::User, media), at, &[], Last::User);
        }
    }

    /// The contents of one side of a message that may be sent, and which they were.
    fn prepared<'m>(
        &mut self,
        message: &'m Message,
        range: Range<usize>,
        at: usize,
    ) -> (Cow<'m, Message>, Vec<usize>) {
        let legal = Legal {
            target: &self.target,
            no_empty: self.rules.no_empty,
            message,
            item_ids: &mut self.item_ids,
        };
        let found = legal.contents(range.clone());
        let root = Path::Root.key("messages");
        let path = root.index(at);
        let path = path.key("contents");
        for (place, kind, detail) in &found.repairs {
            self.repair(&path.index(*place), *kind, detail.clone());
        }
        for (place, kind, detail) in found.losses {
            self.losses.push(Loss {
                path: path.index(place).to_string(),
                kind,
                detail,
            });
        }
        self.sealed |= found.sealed;
        if !found.changed && range == (0..message.contents.len()) {
            return (Cow::Borrowed(message), found.kept);
        }
        let mut changed = Message::new(message.role.clone(), found.contents);
        if let Role::Other(_) = &message.role {
            changed.role = Role::User;
            self.repair(&root.index(at), RepairKind::Role, "sent as the user's");
        }
        changed.status.clone_from(&message.status);
        (Cow::Owned(changed), found.kept)
    }
}

/// A result as it goes back with its call: under the id of the call, in the call's family.
fn answered(content: &Content, result: &ToolResult, waiting: &Waiting, target: &Target) -> Content {
    let native = waiting.native && legal::is_native(content, target);
    let same = waiting.id == *result.call();
    if same && (native || content.vendor.is_none()) && result.family == waiting.call.family {
        let silent = result.output == Output::None && words::outcome(result.outcome).is_some();
        if !silent {
            return content.clone();
        }
    }
    let mut shown = content.clone();
    if native {
        legal::rename(&mut shown, &waiting.id);
        return shown;
    }
    let output = match (&result.output, words::outcome(result.outcome)) {
        (Output::None, Some(text)) => Output::Text(text.to_owned()),
        (output, _) => output.clone(),
    };
    let family = waiting.call.family.clone();
    let mut made = ToolResult::answering(waiting.id.clone(), family, output);
    made.name = Some(waiting.call.name.clone()).filter(|name| !name.is_empty());
    made.outcome = result.outcome;
    Content::from(made)
}

/// The result of a call that has none.
fn made_up(waiting: &Waiting, text: &str) -> Content {
    let family = waiting.call.family.clone();
    let output = Output::Text(text.to_owned());
    let mut made = ToolResult::answering(waiting.id.clone(), family, output);
    made.name = Some(waiting.call.name.clone()).filter(|name| !name.is_empty());
    made.outcome = Outcome::Unknown;
    Content::from(made)
}

/// Whose part of a message some contents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    System,
    User,
    Model,
    Results,
}

/// A message as runs of contents of one side. Nearly always that is one run.
fn sides(message: &Message) -> Vec<(Side, Range<usize>)> {
    let mut runs: Vec<(Side, Range<usize>)> = Vec::new();
    for (place, content) in message.contents.iter().enumerate() {
        let side = match &content.body {
            Body::ToolResult(result) if result.runner == Runner::Client => Side::Results,
            Body::ToolResult(_)
            | Body::ToolCall(_)
            | Body::Reasoning(_)
            | Body::ApprovalRequest(_) => Side::Model,
            Body::ApprovalResponse(_) => Side::User,
            Body::Text(_)
            | Body::Media(_)
            | Body::Refusal(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => match message.role {
                Role::System | Role::Developer => Side::System,
                Role::Assistant => Side::Model,
                Role::User | Role::Tool | Role::Other(_) => Side::User,
            },
        };
        match runs.last_mut() {
            Some((last, range)) if *last == side => range.end = place + 1,
            _ => runs.push((side, place..place + 1)),
        }
    }
    runs
}

/// The place in the history of a loss that the codec noted in one message.
fn placed(path: &str, at: usize, kept: &[usize]) -> String {
    let Some(rest) = path.strip_prefix("messages[0]") else {
        return path.to_owned();
    };
    let inner = rest
        .strip_prefix(".contents[")
        .and_then(|rest| rest.split_once(']'));
    match inner {
        Some((number, rest)) => {
            let place: usize = number.parse().unwrap_or(0);
            let place = kept.get(place).copied().unwrap_or(place);
            format!("messages[{at}].contents[{place}]{rest}")
        }
        None => format!("messages[{at}]{rest}"),
    }
}

/// Kept apart so that the maps of a renderer stay small in debug output.
impl std::fmt::Debug for Renderer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer")
            .field("target", &self.target)
            .field("items", &self.items.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

/// What a renderer knows about calls, for tests.
#[cfg(test)]
pub(super) type Known = HashMap<Box<str>, usize>;
