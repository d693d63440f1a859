//! Rendering, one message after the other.

mod heap_size;
mod model_turn;
mod rounds;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use throughline_model::json::RawJson;
use throughline_model::{Body, CallId, Content, Message, Path, Role, Runner, Status, ToolCall};

use super::Options;
use super::content_filter::{ContentFilter, FilteredContents};
use super::edits;
use super::format::{Adjacency, RenderFormat, Rules, SystemPlace};
use super::ids::Ids;
use super::native_form::{self, PlainContents};
use super::placeholder_text;
use super::repair::{Repair, RepairKind};
use super::strategy::ToolHistoryStrategy;
use super::switches::Switches;
use super::target::Target;
use crate::{Codec, Loss, LossKind, Losses, vendors};

/// One item of the rendered history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedItem {
    /// The vendor's message or item, as JSON text.
    pub json: String,
    /// The messages of the history that it represents; empty for one that was inserted.
    pub from: Range<usize>,
}

/// A result came for a call that was rendered as unanswered, or something that was rendered must
/// change. The history has to be rendered as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was rendered no longer holds; render the whole history")]
pub struct Stale;

/// What the last rendered item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastItem {
    Nothing,
    User,
    Model,
    Results,
}

/// A call that waits for its result, or has it.
#[derive(Clone)]
struct PendingCall {
    call: ToolCall,
    /// The id under which it was rendered, if that is not its own.
    id: Option<CallId>,
    /// Where the call stands, for repairs.
    at: ContentPosition,
    /// How many calls of the same id stand before it in its message.
    occurrence: u32,
    native: bool,
    /// The call as it was rendered, where its result must echo what only the vendor's form has.
    content: Option<Content>,
    /// How whole the message with the call was.
    status: Option<Status>,
    /// What its result must acknowledge.
    checks: Option<RawJson>,
    answer: Option<PendingResult>,
}

impl PendingCall {
    /// The id under which it was rendered.
    fn id(&self) -> &CallId {
        self.id.as_ref().unwrap_or(&self.call.call)
    }
}

/// The result of a call, as it is to be shown.
#[derive(Clone)]
struct PendingResult {
    content: Content,
    /// Where in the history it stands, for losses.
    at: ContentPosition,
}

/// The index of a message, and that of a content in it.
type ContentPosition = (usize, usize);

/// Renders a history message by message. What was rendered stays as it is; only the end of the
/// history ([`Renderer::tail`]) is provisional.
///
/// A renderer that has seen a history can be kept and continues with new messages without touching
/// the old ones.
#[derive(Clone)]
pub struct Renderer {
    codec: &'static Codec,
    strategy: Arc<dyn ToolHistoryStrategy>,
    switches: Switches,
    target: Target,
    format: &'static RenderFormat,
    rules: Rules,
    items: Vec<RenderedItem>,
    /// How many items were taken out, and whether the last of them may end the history.
    taken: usize,
    taken_may_end: bool,
    system: Vec<String>,
    losses: Vec<Loss>,
    repairs: Vec<Repair>,
    ids: Ids,
    item_ids: HashSet<Box<str>>,
    waiting: Vec<PendingCall>,
    /// Ids of calls that were rendered as unanswered.
    closed: HashSet<Box<str>>,
    /// Ids of calls that have their result.
    answered: HashSet<Box<str>>,
    /// Ids of calls whose result is a placeholder.
    stood_in: HashSet<Box<str>>,
    /// Ids of results that came before any call.
    early: HashSet<Box<str>>,
    /// Ids of calls of the vendor that were rendered and have no result yet.
    vendor_calls: HashSet<Box<str>>,
    /// Ids of calls whose results the service has.
    behind: HashSet<Box<str>>,
    /// Sealed reasoning was rendered in the turn that is going on.
    sealed: bool,
    /// From which message on sealed reasoning is rendered.
    sealed_from: usize,
    /// The contents of the message at hand whose forms need no cleaning.
    plain: PlainContents,
    /// The round that is going on is shown as text.
    as_text: bool,
    /// Late results become text instead of making everything stale.
    lenient: bool,
    last: LastItem,
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
    pub(super) fn new(codec: &'static Codec, target: Target, options: &Options) -> Self {
        let switches = options.switches;
        let format = vendors::render_format(&target.wire);
        Self {
            rules: (format.rules)(&target, switches),
            format,
            codec,
            strategy: Arc::clone(&options.strategy),
            switches,
            target,
            items: Vec::new(),
            taken: 0,
            taken_may_end: true,
            system: Vec::new(),
            losses: Vec::new(),
            repairs: Vec::new(),
            ids: Ids::default(),
            item_ids: HashSet::new(),
            waiting: Vec::new(),
            closed: HashSet::new(),
            answered: HashSet::new(),
            stood_in: HashSet::new(),
            early: HashSet::new(),
            vendor_calls: HashSet::new(),
            behind: HashSet::new(),
            sealed: false,
            sealed_from: 0,
            plain: PlainContents::default(),
            as_text: false,
            lenient: false,
            last: LastItem::Nothing,
            seen: 0,
        }
    }

    /// Sealed reasoning of earlier messages stays behind.
    pub(super) fn sealed_from(mut self, message: usize) -> Self {
        self.sealed_from = message;
        self
    }

    /// Whether only the newest turn's sealed reasoning may be sent.
    pub(super) fn only_newest_sealed(&self) -> bool {
        self.rules.only_newest_sealed
    }

    fn enforces(&self, rule: &str) -> bool {
        self.switches.enforces(rule)
    }

    /// Show late results as text.
    pub(super) fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    pub(super) fn adjacency(&self) -> Adjacency {
        self.rules.adjacency
    }

    pub(super) fn into_parts(self) -> (Vec<RenderedItem>, Vec<Loss>, Vec<Repair>) {
        (self.items, self.losses, self.repairs)
    }

    /// Render one more message.
    pub fn push(&mut self, message: &Message) -> Result<(), Stale> {
        let at = self.seen;
        self.push_at(message, at)
    }

    /// Render a message that stands at an index of the history.
    pub(super) fn push_at(&mut self, message: &Message, at: usize) -> Result<(), Stale> {
        self.seen = self.seen.max(at + 1);
        let (message, concerned) = match self.rules.replace_response_only {
            Some(replace) => replace(message),
            None => (Cow::Borrowed(message), Vec::new()),
        };
        let guard = native_form::FormChecker {
            target: &self.target,
            codec: self.codec,
            switches: self.switches,
            format: self.format,
            rules: &self.rules,
        };
        let (message, broken, plain) = guard.without_broken_forms(message);
        self.plain = plain;
        let message = &*message;
        let root = Path::Root.key("messages");
        let path = root.index(at);
        let path = path.key("contents");
        for place in concerned {
            let detail = "sent as a function call or its output";
            self.repair(&path.index(place), RepairKind::ResponseOnlyPair, detail);
        }
        for place in broken {
            let detail = "the vendor's form of it does not hold; said anew";
            self.repair(&path.index(place), RepairKind::BrokenForm, detail);
        }
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

    /// What is settled and was not taken.
    pub fn items(&self) -> &[RenderedItem] {
        &self.items
    }

    /// Take what is settled, for a caller that keeps the text itself: a renderer that lives as long as its
    /// history would hold it a second time. Rendering goes on behind it.
    pub fn take_items(&mut self) -> Vec<RenderedItem> {
        self.taken_may_end = self.may_end();
        self.taken += self.items.len();
        std::mem::take(&mut self.items)
    }

    /// How many items are settled, with those that were taken.
    fn item_count(&self) -> usize {
        self.taken + self.items.len()
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
        if self.waiting.is_empty() && !self.needs_user(self.last) {
            return Ok(Tail::default());
        }
        // Nothing that was settled is needed for this but its length.
        let mut end = Self {
            items: Vec::new(),
            taken: 0,
            system: Vec::new(),
            losses: Vec::new(),
            repairs: Vec::new(),
            ids: Ids::default(),
            item_ids: HashSet::new(),
            waiting: self.waiting.clone(),
            closed: HashSet::new(),
            answered: HashSet::new(),
            stood_in: HashSet::new(),
            early: HashSet::new(),
            vendor_calls: HashSet::new(),
            behind: HashSet::new(),
            strategy: Arc::clone(&self.strategy),
            target: self.target.clone(),
            ..*self
        };
        if !self.lenient
            && self.waiting.iter().any(|waiting| {
                waiting.answer.is_none() && self.early.contains(waiting.call.call.value())
            })
        {
            return Err(Stale);
        }
        let settled = self.item_count();
        end.close()?;
        if self.needs_user(end.last) {
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

    /// Whether the history cannot end with what was rendered last.
    fn needs_user(&self, last: LastItem) -> bool {
        match last {
            LastItem::Nothing => self.rules.first_user,
            LastItem::Model => self.rules.last_user || !self.may_end(),
            LastItem::User | LastItem::Results => false,
        }
    }

    /// Whether the vendor takes a history that ends with the last item, which is the model's.
    fn may_end(&self) -> bool {
        match (self.rules.may_end_with, self.items.last()) {
            (Some(may_end), Some(item)) => may_end(&item.json),
            (Some(_), None) => self.taken_may_end,
            (None, _) => true,
        }
    }

    fn repair(&mut self, path: &Path<'_>, kind: RepairKind, detail: impl Into<String>) {
        let item = self.item_count();
        self.repairs.push(Repair::new(path, kind, detail, item));
    }

    /// Write a message; what the codec notes gets the place in the history.
    fn emit(&mut self, message: &Message, at: usize, kept: &[usize], last: LastItem) {
        let losses = self.write(message, at, last);
        if !losses.is_empty() {
            let places: Vec<ContentPosition> = kept.iter().map(|place| (at, *place)).collect();
            self.lost(losses, at, &places);
        }
    }

    /// Write a message whose contents stood in several places.
    fn emit_from(
        &mut self,
        message: &Message,
        at: usize,
        places: &[ContentPosition],
        last: LastItem,
    ) {
        let losses = self.write(message, at, last);
        self.lost(losses, at, places);
    }

    /// Write a message; what the codec noted stands where the message is alone.
    fn write(&mut self, message: &Message, at: usize, last: LastItem) -> Losses {
        let mut losses = Losses::default();
        let items = self
            .codec
            .encode_items(std::slice::from_ref(message), &mut losses);
        if items.is_empty() {
            return losses;
        }
        self.push_items(items, at..at + 1);
        self.last = last;
        losses
    }

    /// List what the codec noted, at its place in the history.
    fn lost(&mut self, losses: Losses, at: usize, places: &[ContentPosition]) {
        for loss in losses.into_vec() {
            self.losses.push(Loss {
                path: placed(&loss.path, at, places),
                ..loss
            });
        }
    }

    /// Items are objects, whatever is in them.
    fn push_items(&mut self, items: impl IntoIterator<Item = String>, from: Range<usize>) {
        let bare = !self.rules.object_items;
        let items = items.into_iter().map(|json| RenderedItem {
            json: if bare { edits::quoted(&json) } else { json },
            from: from.clone(),
        });
        self.items.extend(items);
    }

    /// Write a message that must know the one before it, which was written already.
    fn emit_after(
        &mut self,
        before: &Message,
        message: Message,
        at: usize,
        places: &[ContentPosition],
        last: LastItem,
    ) {
        let mut losses = Losses::default();
        let pair = [before.clone(), message];
        let skip = self
            .codec
            .encode_items(&pair[..1], &mut Losses::default())
            .len();
        let items = self.codec.encode_items(&pair, &mut losses);
        for loss in losses.into_vec() {
            self.losses.push(Loss {
                path: placed(
                    &loss.path.replacen("messages[1]", "messages[0]", 1),
                    at,
                    places,
                ),
                ..loss
            });
        }
        self.push_items(items.into_iter().skip(skip), at..at + 1);
        self.last = last;
    }

    /// Insert a user message.
    fn insert_user(&mut self, kind: RepairKind, detail: &str) {
        let root = Path::Root.key("messages");
        let seen = self.seen;
        self.repair(&root.index(seen.saturating_sub(1)), kind, detail);
        let items = self.codec.encode_items(
            &[Message::user(placeholder_text::CONTINUE)],
            &mut Losses::default(),
        );
        self.push_items(items, seen..seen);
        self.last = LastItem::User;
    }

    fn system(&mut self, message: &Message, range: Range<usize>, at: usize) -> Result<(), Stale> {
        if self.rules.system == SystemPlace::InOrder {
            // System text may stand between calls and results only where results may wait.
            if self.rules.adjacency == Adjacency::Next {
                self.close()?;
            }
            let (message, kept) = self.prepared(message, range, at);
            self.emit(&message, at, &kept, LastItem::User);
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
                    sent: None,
                });
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        let text = text.join("\n\n");
        if self.item_count() == 0 && self.waiting.is_empty() && self.last == LastItem::Nothing {
            self.system.push(text);
            return Ok(());
        }
        self.close()?;
        if let Some(message) = self.rules.later_system {
            self.push_items([message(&text)], at..at + 1);
            return Ok(());
        }
        self.repair(
            &path,
            RepairKind::SystemPlace,
            "later system text becomes user text",
        );
        let message = Message::user(format!("[System] {text}"));
        self.emit(&message, at, &[], LastItem::User);
        Ok(())
    }

    fn user(&mut self, message: &Message, range: Range<usize>, at: usize) -> Result<(), Stale> {
        if self.rules.adjacency == Adjacency::Next && self.rules.results_first {
            self.close()?;
        }
        let (message, kept) = self.prepared(message, range, at);
        if !message.contents.is_empty() {
            self.emit(&message, at, &kept, LastItem::User);
        }
        Ok(())
    }

    fn legal<'l>(&'l mut self, message: &'l Message, at: usize) -> ContentFilter<'l> {
        let first = self.item_count() == 0;
        ContentFilter {
            target: &self.target,
            switches: self.switches,
            plain: self.plain,
            format: self.format,
            rules: &self.rules,
            message,
            item_ids: &mut self.item_ids,
            vendor_calls: &mut self.vendor_calls,
            model_last: self.last == LastItem::Model,
            first,
            sealed_allowed: at >= self.sealed_from,
            shows_calls: self.strategy.keeps_calls(),
        }
    }

    /// Take over what was found in a message.
    fn note(&mut self, found: &mut FilteredContents, at: usize) {
        let root = Path::Root.key("messages");
        let path = root.index(at);
        let path = path.key("contents");
        for (place, kind, detail) in found.repairs.drain(..) {
            self.repair(&path.index(place), kind, detail);
        }
        for (place, kind, detail) in found.losses.drain(..) {
            self.losses.push(Loss {
                path: path.index(place).to_string(),
                kind,
                detail,
                sent: None,
            });
        }
    }

    /// The contents of one side of a message that may be sent, and which they were.
    fn prepared<'m>(
        &mut self,
        message: &'m Message,
        range: Range<usize>,
        at: usize,
    ) -> (Cow<'m, Message>, Vec<usize>) {
        let mut found = self.legal(message, at).contents(range.clone());
        self.note(&mut found, at);
        self.sealed |= found.sealed;
        let known_role = !matches!(message.role, Role::Other(_)) || !self.rules.known_roles;
        if !found.changed && known_role && range == (0..message.contents.len()) {
            return (Cow::Borrowed(message), found.kept);
        }
        // What did not change was not copied; of a part of a message it must be.
        let contents = if found.changed {
            found.contents
        } else {
            message.contents[range].to_vec()
        };
        let mut changed = Message::new(message.role.clone(), contents);
        if !known_role {
            changed.role = Role::User;
            // The vendor's own envelope would repeat the role.
            for content in &mut changed.contents {
                if let Some(vendor) = &mut content.vendor {
                    vendor.envelope = None;
                }
            }
            let root = Path::Root.key("messages");
            self.repair(&root.index(at), RepairKind::Role, "sent as the user's");
        }
        changed.status.clone_from(&message.status);
        (Cow::Owned(changed), found.kept)
    }
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
fn sides(message: &Message) -> impl Iterator<Item = (Side, Range<usize>)> {
    let mut runs = message
        .contents
        .iter()
        .map(|content| side(content, &message.role))
        .enumerate()
        .peekable();
    std::iter::from_fn(move || {
        let (start, side) = runs.next()?;
        let mut end = start + 1;
        while runs.next_if(|(_, next)| *next == side).is_some() {
            end += 1;
        }
        Some((side, start..end))
    })
}

/// Whose part of a message a content is.
fn side(content: &Content, role: &Role) -> Side {
    match &content.body {
        Body::ToolResult(result) if result.runner == Runner::Client => Side::Results,
        Body::ToolResult(_) | Body::ToolCall(_) | Body::Reasoning(_) | Body::ApprovalRequest(_) => {
            Side::Model
        }
        Body::ApprovalResponse(_) => Side::User,
        Body::Text(_)
        | Body::Media(_)
        | Body::Refusal(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => match role {
            Role::System | Role::Developer => Side::System,
            Role::Assistant => Side::Model,
            Role::User | Role::Tool | Role::Other(_) => Side::User,
        },
    }
}

/// The place in the history of a loss that the codec noted in one message.
fn placed(path: &str, at: usize, places: &[ContentPosition]) -> String {
    let Some(rest) = path.strip_prefix("messages[0]") else {
        return path.to_owned();
    };
    let inner = rest
        .strip_prefix(".contents[")
        .and_then(|rest| rest.split_once(']'));
    match inner {
        Some((number, rest)) => {
            let place: usize = number.parse().unwrap_or(0);
            let (at, place) = places.get(place).copied().unwrap_or((at, place));
            format!("messages[{at}].contents[{place}]{rest}")
        }
        None => format!("messages[{at}]{rest}"),
    }
}

impl std::fmt::Debug for Renderer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer")
            .field("target", &self.target)
            .field("items", &self.item_count())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}
