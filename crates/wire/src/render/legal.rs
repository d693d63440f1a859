//! What of a message may be sent to a target, content by content.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use throughline_model::json::RawJson;
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Form, Message, Pairing, Role, Runner, Slot, Source,
    ToolCall, ToolResult, Vendor, Wire,
};

use super::item_ids::{has_prefix, item_id, needs_id, string_at};
use super::repair::RepairKind;
use super::sound::PlainAt;
use super::special;
use super::switches::Switches;
use super::target::Target;
use super::words;
use crate::LossKind;
use crate::validate::takes_member;

/// Looks at the contents of one message.
pub(super) struct Legal<'l> {
    pub(super) target: &'l Target,
    pub(super) switches: Switches,
    pub(super) plain: PlainAt,
    pub(super) no_empty: bool,
    pub(super) message: &'l Message,
    /// Item ids that were sent before.
    pub(super) item_ids: &'l mut HashSet<Box<str>>,
    /// Ids of calls of the vendor that were sent and have no result yet.
    pub(super) vendor_calls: &'l mut HashSet<Box<str>>,
    /// The last item is the model's.
    pub(super) model_last: bool,
    /// Nothing was sent before.
    pub(super) first: bool,
    /// Whether sealed reasoning of this message may still be sent.
    pub(super) sealed_allowed: bool,
    /// Whether calls of the application are shown.
    pub(super) shows_calls: bool,
}

/// What may be sent.
#[derive(Default)]
pub(super) struct Found {
    /// The contents, if any of them changed or was dropped.
    pub(super) contents: Vec<Content>,
    /// Which contents they are; empty if each stands where it stood.
    pub(super) kept: Vec<usize>,
    pub(super) changed: bool,
    /// Sealed reasoning is among them.
    pub(super) sealed: bool,
    pub(super) repairs: Vec<(usize, RepairKind, String)>,
    pub(super) losses: Vec<(usize, LossKind, String)>,
}

/// What becomes of a content.
enum Fate {
    Keep,
    Replace(Box<Content>),
    Drop,
}

impl Legal<'_> {
    pub(super) fn contents(mut self, range: Range<usize>) -> Found {
        let mut found = Found::default();
        let fates = self.fates(&range, &mut found);
        found.changed = fates.iter().any(|fate| !matches!(fate, Fate::Keep));
        if !found.changed {
            // Contents stand where they stood; only those of a later part of a message do not.
            let shifted = range.start > 0;
            found.kept.extend(range.filter(|_| shifted));
            return found;
        }
        for (place, fate) in range.zip(fates) {
            let content = match fate {
                Fate::Drop => continue,
                Fate::Replace(content) => *content,
                Fate::Keep => self.message.contents[place].clone(),
            };
            found.kept.push(place);
            found.contents.push(content);
        }
        found
    }

    /// What becomes of each content; nothing if all of them stay as they are.
    fn fates(&mut self, range: &Range<usize>, found: &mut Found) -> Vec<Fate> {
        let reasons = self.message.contents[range.clone()]
            .iter()
            .any(|content| matches!(content.body, Body::Reasoning(_)));
        let mut fates = Vec::new();
        for place in range.clone() {
            let fate = self.fate(place, range, found);
            if reasons || !fates.is_empty() || !matches!(fate, Fate::Keep) {
                fates.resize_with(place - range.start, || Fate::Keep);
                fates.push(fate);
            }
        }
        if reasons {
            self.reasoning(range, &mut fates, found);
        }
        fates
    }

    fn upholds(&self, rule: &str) -> bool {
        self.switches.upholds(rule)
    }

    /// A result of the application, whose place is the business of its round; nothing if it can
    /// be sent as it is.
    pub(super) fn result_of_client(mut self, place: usize) -> (Option<Content>, Found) {
        let mut found = Found::default();
        let native = is_native(&self.message.contents[place], self.target);
        let changed = match self.cleaned(place, native, &mut found) {
            Fate::Replace(content) => Some(*content),
            Fate::Keep | Fate::Drop => None,
        };
        let content = changed.as_ref().unwrap_or(&self.message.contents[place]);
        if let Some(full) = self
            .no_empty
            .then(|| special::without_empty_parts(content))
            .flatten()
        {
            let detail = "an empty text in a result is left out".to_owned();
            found.repairs.push((place, RepairKind::Empty, detail));
            return (Some(full), found);
        }
        (changed, found)
    }

    fn fate(&mut self, place: usize, range: &Range<usize>, found: &mut Found) -> Fate {
        let content = &self.message.contents[place];
        let native = is_native(content, self.target);
        match &content.body {
            Body::Text(text) | Body::Refusal(text) => {
                if self.no_empty
                    && text.text.trim().is_empty()
                    && !special::is_signed(content, native)
                {
                    found
                        .repairs
                        .push((place, RepairKind::Empty, "empty text".into()));
                    return Fate::Drop;
                }
                self.cleaned(place, native, found)
            }
            Body::Media(_) | Body::Error(_) => self.cleaned(place, native, found),
            Body::Reasoning(_) if native => Fate::Keep,
            Body::Reasoning(_) => {
                let detail = "reasoning goes back only to the vendor that made it";
                found
                    .losses
                    .push((place, LossKind::Reasoning, detail.into()));
                Fate::Drop
            }
            Body::ToolCall(call) => self.call(place, call, native, range, found),
            Body::ToolResult(result) => self.result(place, result, native, range, found),
            Body::ApprovalRequest(_) | Body::ApprovalResponse(_) if native => {
                self.cleaned(place, native, found)
            }
            Body::ApprovalRequest(_) | Body::ApprovalResponse(_) => {
                let detail = "approvals are control data of the vendor that asked";
                found
                    .losses
                    .push((place, LossKind::Approval, detail.into()));
                Fate::Drop
            }
            Body::Opaque(opaque) if native => self.opaque(place, &opaque.tag, found),
            Body::Opaque(opaque) => {
                let detail = format!("{} means nothing here", opaque.tag);
                found.losses.push((place, LossKind::VendorItem, detail));
                Fate::Drop
            }
            Body::Unknown(_) => {
                let detail = "unknown kind of content";
                found
                    .losses
                    .push((place, LossKind::VendorItem, detail.into()));
                Fate::Drop
            }
        }
    }

    fn call(
        &mut self,
        place: usize,
        call: &ToolCall,
        native: bool,
        range: &Range<usize>,
        found: &mut Found,
    ) -> Fate {
        // A stream that broke off inside the arguments leaves a text where an object must stand.
        let broken =
            self.target.wire == Wire::Anthropic && matches!(call.arguments, Arguments::Text(_));
        // What came from the vendor goes back as it came, with all that only the vendor knows.
        let kept = native && (self.target.wire != Wire::OpenAiResponses || self.upholds("O-15"));
        if kept && !(broken && call.runner == Runner::Client) {
            let answered = call.runner == Runner::Client
                || self.target.wire != Wire::Anthropic
                || self.has_result(place, call, range)
                || !self.upholds("A-6");
            if answered {
                let fate = self.cleaned(place, native, found);
                if call.runner == Runner::Vendor && !matches!(fate, Fate::Drop) {
                    let id = wire_id(&self.message.contents[place], &call.call);
                    self.vendor_calls.insert(id.into());
                }
                return fate;
            }
            let detail = format!("{} has no result in its message", call.call);
            let kind = RepairKind::UnansweredVendorCall;
            found.repairs.push((place, kind, detail));
            return Fate::Drop;
        }
        if call.runner == Runner::Vendor {
            let detail = format!("{} was run by another vendor", call.family);
            found.repairs.push((place, RepairKind::HostedText, detail));
            return Fate::Replace(Box::new(Content::text(words::call(call))));
        }
        let custom = call.family == Family::CUSTOM && is_openai(&self.target.wire);
        let foreign = self.message.contents[place].vendor.is_some();
        if call.family == Family::FUNCTION || custom {
            return if foreign {
                Fate::Replace(Box::new(Content::from(call.clone())))
            } else {
                Fate::Keep
            };
        }
        // A tool that takes free text is offered as a function with one text.
        if call.family != Family::CUSTOM {
            let detail = format!("{} call becomes a function call", call.family);
            found.losses.push((place, LossKind::HostedTool, detail));
        }
        Fate::Replace(Box::new(Content::from(as_function(call))))
    }

    /// A result of the vendor; those of the application go another way.
    fn result(
        &mut self,
        place: usize,
        result: &ToolResult,
        native: bool,
        range: &Range<usize>,
        found: &mut Found,
    ) -> Fate {
        if native && self.has_call(place, result, range) {
            return self.cleaned(place, native, found);
        }
        let detail = format!("{} was run by another vendor", result.family);
        found.repairs.push((place, RepairKind::HostedText, detail));
        Fate::Replace(Box::new(Content::text(words::result(result))))
    }

    /// Whether a native call of the vendor has its native result in the same message.
    fn has_result(&self, place: usize, call: &ToolCall, range: &Range<usize>) -> bool {
        let id = wire_id(&self.message.contents[place], &call.call);
        self.message.contents[place + 1..range.end]
            .iter()
            .any(|content| {
                is_native(content, self.target)
                    && content
                        .as_tool_result()
                        .is_some_and(|result| wire_id(content, result.call()) == id)
            })
    }

    /// Whether the call of a vendor's result was sent; each has one result.
    fn has_call(&mut self, place: usize, result: &ToolResult, range: &Range<usize>) -> bool {
        let content = &self.message.contents[place];
        let value = wire_id(content, result.call());
        if is_flat(&self.target.wire) {
            let vendor = content.vendor.as_ref();
            let within = vendor.is_some_and(|vendor| vendor.form == Form::Within);
            let names = vendor.is_some_and(|vendor| matches!(vendor.slots.call, Slot::Set(_)));
            let free = result.pairing() == Pairing::Standalone && !names;
            return within || free || self.vendor_calls.remove(value);
        }
        self.target.wire != Wire::Anthropic
            || !self.upholds("A-5")
            || self.message.contents[range.start..place]
                .iter()
                .any(|content| {
                    is_native(content, self.target)
                        && content
                            .as_tool_call()
                            .is_some_and(|call| wire_id(content, &call.call) == value)
                })
    }

    fn opaque(&mut self, place: usize, tag: &str, found: &mut Found) -> Fate {
        let reason = match tag {
            "message" => Some("it says nothing"),
            "compaction_trigger" if self.upholds("O-16") => Some("a command, not history"),
            "item_reference" if !self.target.stored && self.upholds("O-7") => {
                Some("nothing is stored to refer to")
            }
            _ if self.is_foreign_seal() && holds_seal(&self.message.contents[place]) => {
                Some("sealed for another account")
            }
            "compaction" if self.target.wire == Wire::Anthropic && self.is_misplaced(place) => {
                Some("it may only be the first block")
            }
            _ => None,
        };
        match reason {
            Some("it says nothing") => {
                found
                    .repairs
                    .push((place, RepairKind::Empty, "empty message".into()));
                Fate::Drop
            }
            Some(reason) => {
                let detail = format!("{tag}: {reason}");
                found.losses.push((place, LossKind::VendorItem, detail));
                Fate::Drop
            }
            None => self.cleaned(place, true, found),
        }
    }

    /// Whether a content would not be the first block of what is sent.
    fn is_misplaced(&self, place: usize) -> bool {
        let opens = self.first && !self.model_last && place == 0;
        !opens && self.upholds("A-14")
    }

    /// Whether what is sealed stays behind because it was sealed for another account.
    fn is_foreign_seal(&self) -> bool {
        let rule = match self.target.wire {
            Wire::Anthropic => "A-10",
            _ => "O-8",
        };
        !self.target.same_account && self.upholds(rule)
    }

    /// Reasoning of this vendor: kept only with what it led to, and only where it can be read.
    fn reasoning(&mut self, range: &Range<usize>, fates: &mut [Fate], found: &mut Found) {
        let contents = &self.message.contents[range.clone()];
        let flat = is_flat(&self.target.wire);
        // Elsewhere an `id` is that of a call.
        let by_id = flat && self.target.wire != Wire::GeminiInteractions;
        let reasons = self.reasons(contents, fates);
        let mut dropped = false;
        for (index, content) in contents.iter().enumerate() {
            let place = range.start + index;
            if !matches!(content.body, Body::Reasoning(_)) {
                if dropped && by_id && is_native(content, self.target) && self.upholds("O-6") {
                    // Without its reasoning an item may not be named by its id.
                    self.without_id(place, &mut fates[index], found);
                }
                continue;
            }
            if matches!(fates[index], Fate::Drop) {
                dropped |= is_native(content, self.target);
                continue;
            }
            let reason = reasons[index];
            match reason {
                Some(reason) => {
                    let kind = RepairKind::SealedReasoning;
                    found.repairs.push((place, kind, reason.into()));
                    fates[index] = Fate::Drop;
                    dropped = true;
                }
                None => {
                    dropped = false;
                    found.sealed = true;
                    fates[index] = self.cleaned(place, true, found);
                    if !self.upholds("A-9") {
                        fates[index] = Fate::Replace(Box::new(special::shortened(content)));
                    }
                }
            }
        }
    }

    /// Why each reasoning may not be sent, from the last to the first: one that led only to
    /// reasoning which stays behind led to nothing.
    fn reasons(&self, contents: &[Content], fates: &[Fate]) -> Vec<Option<&'static str>> {
        let flat = is_flat(&self.target.wire);
        let by_id = flat && self.target.wire != Wire::GeminiInteractions;
        let mut reasons = vec![None; contents.len()];
        for index in (0..contents.len()).rev() {
            let content = &contents[index];
            let stays = matches!(fates[index], Fate::Drop);
            if stays || !matches!(content.body, Body::Reasoning(_)) {
                continue;
            }
            reasons[index] = self.sealed_reason(content).or_else(|| {
                // What stands in the item of its call is no item.
                let next = (index + 1..contents.len()).find(|next| {
                    let sent = !matches!(fates[*next], Fate::Drop) && reasons[*next].is_none();
                    sent && !is_within(&contents[*next])
                });
                match next.map(|next| &contents[next]) {
                    None if !self.upholds("O-5") => None,
                    None => Some("what it led to is not there"),
                    Some(next) if by_id && is_clients(next) => Some("what it led to is not there"),
                    Some(next) if by_id && self.leaves_out(next) => {
                        Some("the call that it led to is not shown")
                    }
                    Some(next) if flat && !is_native(next, self.target) => {
                        Some("what it led to came from elsewhere")
                    }
                    Some(_) => None,
                }
            });
        }
        reasons
    }

    /// Whether a content is a call that the strategy does not show.
    fn leaves_out(&self, content: &Content) -> bool {
        let call = content.as_tool_call().filter(|_| !self.shows_calls);
        call.is_some_and(|call| call.runner == Runner::Client)
    }

    /// Why reasoning of this vendor may not be sent at all.
    fn sealed_reason(&self, content: &Content) -> Option<&'static str> {
        let Body::Reasoning(reasoning) = &content.body else {
            return None;
        };
        let readable = (reasoning.sealed && holds_seal(content)) || self.target.stored;
        match self.target.wire {
            _ if self.is_foreign_seal() => Some("sealed for another account"),
            _ if !self.sealed_allowed => Some("only the newest turn's may be sent here"),
            Wire::OpenAiResponses | Wire::Foundry if !readable && self.upholds("O-7") => {
                Some("nothing is stored")
            }
            Wire::OpenAiResponses | Wire::Foundry
                if item_id(content).is_some_and(|id| !has_prefix(content, &id)) =>
            {
                Some("its id is not one that the service issued")
            }
            Wire::Anthropic if !reasoning.sealed && self.upholds("A-10") => {
                Some("it is not signed")
            }
            _ => None,
        }
    }

    /// A content of this vendor without what only comes in responses.
    fn cleaned(&mut self, place: usize, native: bool, found: &mut Found) -> Fate {
        let content = &self.message.contents[place];
        let Some(vendor) = content.vendor.as_ref().filter(|_| native) else {
            return Fate::Keep;
        };
        let mut clean: Option<Vendor> = None;
        let mut dropped: Vec<String> = Vec::new();
        if let Some(envelope) = &vendor.envelope
            && let Some(cleaned) = self.clean_envelope(envelope, &mut dropped)
        {
            clean.get_or_insert_with(|| (**vendor).clone()).envelope = Some(cleaned);
        }
        let odd = !self.plain.has(place);
        if odd && let Form::Item(item) = &vendor.form {
            let kept = |key: &str| !OUTPUT_ONLY.contains(&key) || !self.upholds("F-6");
            if item.members().any(|(key, _)| !kept(key)) {
                let cleaned = item.without(|key| {
                    let drop = !kept(key);
                    if drop {
                        dropped.push(key.to_owned());
                    }
                    drop
                });
                clean.get_or_insert_with(|| (**vendor).clone()).form = Form::Item(cleaned);
            }
        }
        if odd
            && self.target.wire == Wire::Anthropic
            && let Form::Part(block) = &vendor.form
            && let Some(cleaned) = self.known_members(block, &mut dropped)
        {
            clean.get_or_insert_with(|| (**vendor).clone()).form = Form::Part(cleaned);
        }
        let no_ids = !self.target.generation.call_ids && self.upholds("G-4");
        if self.target.wire == Wire::Gemini
            && (odd || no_ids)
            && let Form::Part(part) = &vendor.form
        {
            let mut part = Cow::Borrowed(part);
            if self.upholds("G-6")
                && let Some(cleaned) = special::without_bad_signature(&part)
            {
                dropped.push("thoughtSignature".to_owned());
                part = Cow::Owned(cleaned);
            }
            let without_id = no_ids.then(|| special::without_part_id(&part)).flatten();
            let id_gone = without_id.is_some();
            if let Some(cleaned) = without_id {
                dropped.push("id".to_owned());
                part = Cow::Owned(cleaned);
            }
            if let Cow::Owned(part) = part {
                let vendor = clean.get_or_insert_with(|| (**vendor).clone());
                vendor.form = Form::Part(part);
                if id_gone {
                    vendor.slots.id = Slot::Missing;
                    vendor.slots.call = Slot::Missing;
                }
            }
        }
        if !dropped.is_empty() {
            let detail = dropped.join(", ");
            found
                .repairs
                .push((place, RepairKind::OutputOnlyKey, detail));
        }
        let mut fate = match clean {
            None => Fate::Keep,
            Some(vendor) => {
                let mut content = content.clone();
                content.vendor = Some(Box::new(vendor));
                Fate::Replace(Box::new(content))
            }
        };
        if is_flat(&self.target.wire) && self.target.wire != Wire::GeminiInteractions {
            self.check_id(place, &mut fate, found);
        }
        fate
    }

    /// The envelope without keys that messages do not have; `None` if it is fine as it is.
    fn clean_envelope(&self, envelope: &RawJson, dropped: &mut Vec<String>) -> Option<RawJson> {
        let allowed: &[&str] = match self.target.wire {
            Wire::OpenAiResponses | Wire::Foundry => {
                &["type", "role", "content", "id", "status", "phase"]
            }
            Wire::OpenAiChat => &[
                "role",
                "content",
                "name",
                "tool_calls",
                "refusal",
                "audio",
                "function_call",
                "tool_call_id",
            ],
            Wire::Anthropic => &["role", "content"],
            Wire::Gemini => &["role", "parts"],
            Wire::GeminiInteractions | Wire::Other(_) => return None,
        };
        let by_model = self.message.role == Role::Assistant;
        let calls = self
            .message
            .contents
            .iter()
            .any(|content| content.as_tool_call().is_some());
        let keys = match self.target.wire {
            Wire::OpenAiResponses | Wire::Foundry => self.upholds("O-11"),
            Wire::Anthropic => self.upholds("A-19"),
            _ => true,
        };
        let bad = |key: &str, value: &str| {
            (keys && (!allowed.contains(&key) || (key == "phase" && !by_model)))
                // An empty list of calls is refused; it is only right where calls fill it.
                || (key == "tool_calls" && value == "[]" && !calls && self.upholds("C-3"))
        };
        let typed = envelope.locate(&["type"]).is_some() || !self.upholds("F-1");
        let missing_type = self.target.wire == Wire::Foundry && !typed;
        let found: Vec<&str> = envelope
            .members()
            .filter(|(key, value)| bad(key, &envelope.get()[value.clone()]))
            .map(|(key, _)| key)
            .collect();
        if found.is_empty() && !missing_type {
            return None;
        }
        dropped.extend(found.iter().map(|key| (*key).to_owned()));
        let cleaned = envelope.without(|key| found.contains(&key));
        if !missing_type {
            return Some(cleaned);
        }
        Some(RawJson::object(|object| {
            object.str("type", "message").members_of(cleaned.get());
        }))
    }

    /// The block without members that its type does not have, and without the program that made
    /// it where its container is not named; nothing if it is fine as it is.
    fn known_members(&self, block: &RawJson, dropped: &mut Vec<String>) -> Option<RawJson> {
        let tag = string_at(block, "type").unwrap_or_default();
        let made = self.target.container.is_none() && self.upholds("A-16");
        let unknown = |key: &str| {
            (!takes_member(&tag, key) && self.upholds("A-19"))
                || (made && tag == "tool_use" && key == "caller")
        };
        let before = dropped.len();
        let keys = block.members().map(|(key, _)| key);
        dropped.extend(keys.filter(|key| unknown(key)).map(str::to_owned));
        (dropped.len() > before).then(|| block.without(unknown))
    }

    /// Whether an item id is one that a caller brought along, and that nothing rests on. Nobody
    /// knows who made it up, and a service that keeps nothing needs no names.
    fn is_callers_name(&self, content: &Content) -> bool {
        let runner = match &content.body {
            Body::Text(_) | Body::Refusal(_) | Body::Media(_) => None,
            Body::ToolCall(call) => Some(call.runner),
            Body::ToolResult(result) => Some(result.runner),
            _ => return false,
        };
        let callers = self.message.source == Some(Source::Caller);
        let hosted = runner == Some(Runner::Vendor);
        callers && !hosted && !self.target.stored && self.upholds("O-10")
    }

    /// An item id must be new and have the prefix of its kind.
    fn check_id(&mut self, place: usize, fate: &mut Fate, found: &mut Found) {
        let content = &self.message.contents[place];
        let Some(id) = item_id(content) else { return };
        let prefixed = has_prefix(content, &id) || !self.upholds("O-10");
        if self.is_callers_name(content) {
            self.without_id(place, fate, found);
            return;
        }
        let fine = prefixed && (self.item_ids.insert((&*id).into()) || !self.upholds("O-4"));
        if fine {
            return;
        }
        let hybrid = content
            .as_tool_call()
            .is_some_and(|call| call.runner == Runner::Vendor);
        if hybrid || matches!(content.body, Body::Opaque(_) | Body::ApprovalRequest(_)) {
            // These are nothing without their id.
            let detail = format!("{id} was sent before, or is not an id of the service");
            found.repairs.push((place, RepairKind::ItemId, detail));
            *fate = Fate::Drop;
            return;
        }
        if let Some(result) = content.as_tool_result()
            && result.runner == Runner::Vendor
        {
            let detail = format!("{id} was sent before, or is not an id of the service");
            found.repairs.push((place, RepairKind::HostedText, detail));
            *fate = Fate::Replace(Box::new(Content::text(words::result(result))));
            return;
        }
        self.without_id(place, fate, found);
    }

    /// The same content without its item id.
    fn without_id(&self, place: usize, fate: &mut Fate, found: &mut Found) {
        let mut content = match fate {
            Fate::Drop => return,
            Fate::Keep => self.message.contents[place].clone(),
            Fate::Replace(content) => (**content).clone(),
        };
        let Some(vendor) = &mut content.vendor else {
            return;
        };
        let mut removed = false;
        let mut strip = |raw: &mut RawJson| {
            if raw.locate(&["id"]).is_some() {
                *raw = raw.without(|key| key == "id");
                removed = true;
            }
        };
        if let Some(envelope) = &mut vendor.envelope {
            strip(envelope);
        }
        if let Form::Item(item) = &mut vendor.form
            && !needs_id(item)
        {
            strip(item);
        }
        if removed {
            let detail = "sent without its item id";
            found
                .repairs
                .push((place, RepairKind::ItemId, detail.into()));
            *fate = Fate::Replace(Box::new(content));
        }
    }
}

/// Keys that vendors set on items and do not take back.
const OUTPUT_ONLY: &[&str] = &["created_by", "agent_reference", "response_id"];

/// Whether a content came from the target's own format.
pub(super) fn is_native(content: &Content, target: &Target) -> bool {
    content
        .vendor
        .as_ref()
        .is_some_and(|vendor| vendor.wire == target.wire)
}

pub(super) fn is_flat(wire: &Wire) -> bool {
    matches!(
        wire,
        Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions
    )
}

/// Whether a content stands in the item of the one before.
pub(super) fn is_within(content: &Content) -> bool {
    let form = content.vendor.as_ref().map(|vendor| &vendor.form);
    form == Some(&Form::Within)
}

/// Whether an item that stands among the model's is the application's.
fn is_clients(content: &Content) -> bool {
    match &content.body {
        Body::Opaque(opaque) => matches!(
            opaque.tag.as_str(),
            "configuration_update" | "additional_tools" | "compaction_trigger"
        ),
        _ => false,
    }
}

fn is_openai(wire: &Wire) -> bool {
    matches!(
        wire,
        Wire::OpenAiResponses | Wire::Foundry | Wire::OpenAiChat
    )
}

/// Whether the vendor's form of a call or result has this id.
pub(super) fn says_id(content: &Content, id: &str) -> bool {
    content
        .vendor
        .as_ref()
        .is_some_and(|vendor| matches!(&vendor.slots.call, Slot::Set(value) if **value == *id))
}

/// The id that a call or result of the vendor has on the wire; ours where it has none.
fn wire_id<'c>(content: &'c Content, ours: &'c CallId) -> &'c str {
    match content.vendor.as_ref().map(|vendor| &vendor.slots.call) {
        Some(Slot::Set(id)) => id,
        Some(Slot::Null | Slot::Missing | Slot::NoField) | None => ours.value(),
    }
}

/// Whether only the newest turn's sealed reasoning may be sent.
pub(super) fn only_newest_sealed(target: &Target) -> bool {
    target.wire == Wire::Foundry
}

/// Whether an item holds something that only its account can read.
fn holds_seal(content: &Content) -> bool {
    match content.vendor.as_ref().map(|vendor| &vendor.form) {
        Some(Form::Item(raw) | Form::Part(raw)) => {
            let filled = |key: &str| {
                let after = raw.get().split(key).nth(1);
                after.is_some_and(|after| !after.starts_with('"'))
            };
            filled(r#""encrypted_content":""#) || filled(r#""signature":""#)
        }
        Some(Form::Bare | Form::Within) | None => false,
    }
}

/// Whether a message holds sealed reasoning of the target's vendor.
pub(super) fn has_sealed(message: &Message, target: &Target) -> bool {
    message.contents.iter().any(|content| {
        let sealed = matches!(&content.body, Body::Reasoning(reasoning) if reasoning.sealed);
        sealed && is_native(content, target)
    })
}

/// The same call as a plain function call.
pub(super) fn as_function(call: &ToolCall) -> ToolCall {
    let arguments = match &call.arguments {
        Arguments::Free(_) | Arguments::None => {
            Arguments::Text(crate::foreign::arguments_text(&call.arguments).into_owned())
        }
        arguments => arguments.clone(),
    };
    ToolCall {
        family: Family::FUNCTION,
        name: crate::foreign::name(call).to_owned(),
        arguments,
        runner: Runner::Client,
        ..call.clone()
    }
}
