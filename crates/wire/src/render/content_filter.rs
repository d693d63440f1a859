//! What of a message may be sent to a target, content by content.

use std::collections::HashSet;
use std::ops::Range;

use throughline_model::json::RawJson;
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Form, IdField, Message, Pairing, Role, Runner,
    Source, ToolCall, ToolResult, Vendor,
};

use super::edits;
use super::format::{ItemIds, PartContext, RenderFormat, Rules};
use super::item_ids::item_id;
use super::native_form::PlainContents;
use super::placeholder_text;
use super::repair::RepairKind;
use super::switches::Switches;
use super::target::Target;
use crate::LossKind;

/// Looks at the contents of one message.
pub(super) struct ContentFilter<'l> {
    pub(super) target: &'l Target,
    pub(super) switches: Switches,
    pub(super) plain: PlainContents,
    pub(super) format: &'static RenderFormat,
    pub(super) rules: &'l Rules,
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
pub(super) struct FilteredContents {
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
enum ContentAction {
    Keep,
    Replace(Box<Content>),
    Drop,
}

impl ContentFilter<'_> {
    pub(super) fn contents(mut self, range: Range<usize>) -> FilteredContents {
        let mut found = FilteredContents::default();
        let actions = self.actions(&range, &mut found);
        found.changed = actions
            .iter()
            .any(|action| !matches!(action, ContentAction::Keep));
        if !found.changed {
            // Contents stand where they stood; only those of a later part of a message do not.
            let shifted = range.start > 0;
            found.kept.extend(range.filter(|_| shifted));
            return found;
        }
        for (place, action) in range.zip(actions) {
            let content = match action {
                ContentAction::Drop => continue,
                ContentAction::Replace(content) => *content,
                ContentAction::Keep => self.message.contents[place].clone(),
            };
            found.kept.push(place);
            found.contents.push(content);
        }
        found
    }

    /// What becomes of each content; nothing if all of them stay as they are.
    fn actions(
        &mut self,
        range: &Range<usize>,
        found: &mut FilteredContents,
    ) -> Vec<ContentAction> {
        let reasons = self.message.contents[range.clone()]
            .iter()
            .any(|content| matches!(content.body, Body::Reasoning(_)));
        let mut actions = Vec::new();
        for place in range.clone() {
            let action = self.action(place, range, found);
            if reasons || !actions.is_empty() || !matches!(action, ContentAction::Keep) {
                actions.resize_with(place - range.start, || ContentAction::Keep);
                actions.push(action);
            }
        }
        if reasons {
            self.reasoning(range, &mut actions, found);
        }
        actions
    }

    fn enforces(&self, rule: &str) -> bool {
        self.switches.enforces(rule)
    }

    /// A result of the application, whose place is the business of its round; nothing if it can
    /// be sent as it is.
    pub(super) fn result_of_client(mut self, place: usize) -> (Option<Content>, FilteredContents) {
        let mut found = FilteredContents::default();
        let native = is_native(&self.message.contents[place], self.target);
        let changed = match self.cleaned(place, native, &mut found) {
            ContentAction::Replace(content) => Some(*content),
            ContentAction::Keep | ContentAction::Drop => None,
        };
        let content = changed.as_ref().unwrap_or(&self.message.contents[place]);
        if let Some(full) = self
            .rules
            .no_empty
            .then(|| edits::without_empty_parts(content))
            .flatten()
        {
            let detail = "an empty text in a result is left out".to_owned();
            found.repairs.push((place, RepairKind::Empty, detail));
            return (Some(full), found);
        }
        (changed, found)
    }

    fn action(
        &mut self,
        place: usize,
        range: &Range<usize>,
        found: &mut FilteredContents,
    ) -> ContentAction {
        let content = &self.message.contents[place];
        let native = is_native(content, self.target);
        match &content.body {
            Body::Text(text) | Body::Refusal(text) => {
                if self.rules.no_empty
                    && text.text.trim().is_empty()
                    && !self.must_stay(content, native)
                {
                    found
                        .repairs
                        .push((place, RepairKind::Empty, "empty text".into()));
                    return ContentAction::Drop;
                }
                self.cleaned(place, native, found)
            }
            Body::Media(_) | Body::Error(_) => self.cleaned(place, native, found),
            Body::Reasoning(_) if native => ContentAction::Keep,
            Body::Reasoning(_) => {
                let detail = "reasoning goes back only to the vendor that made it";
                found
                    .losses
                    .push((place, LossKind::Reasoning, detail.into()));
                ContentAction::Drop
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
                ContentAction::Drop
            }
            Body::Opaque(opaque) if native => self.opaque(place, &opaque.tag, found),
            Body::Opaque(opaque) => {
                let detail = format!("{} means nothing here", opaque.tag);
                found.losses.push((place, LossKind::VendorItem, detail));
                ContentAction::Drop
            }
            Body::Unknown(_) => {
                let detail = "unknown kind of content";
                found
                    .losses
                    .push((place, LossKind::VendorItem, detail.into()));
                ContentAction::Drop
            }
        }
    }

    /// Whether an empty text must be sent, because the vendor's form carries something else.
    fn must_stay(&self, content: &Content, native: bool) -> bool {
        match content
            .vendor
            .as_ref()
            .filter(|_| native)
            .map(|vendor| &vendor.form)
        {
            Some(Form::Part(part)) => (self.format.keeps_empty)(part),
            Some(Form::Item(_) | Form::Bare | Form::Within) | None => false,
        }
    }

    fn call(
        &mut self,
        place: usize,
        call: &ToolCall,
        native: bool,
        range: &Range<usize>,
        found: &mut FilteredContents,
    ) -> ContentAction {
        // A stream that ended inside the arguments leaves a text where an object is required.
        let broken = self.rules.object_arguments && matches!(call.arguments, Arguments::Text(_));
        // What came from the vendor goes back as it came, with all that only the vendor knows.
        let kept = native && self.rules.native_calls;
        if kept && !(broken && call.runner == Runner::Client) {
            let answered = call.runner == Runner::Client
                || !self.rules.hosted_calls_answered
                || self.has_result(place, call, range);
            if answered {
                let action = self.cleaned(place, native, found);
                if call.runner == Runner::Vendor && !matches!(action, ContentAction::Drop) {
                    let id = wire_id(&self.message.contents[place], &call.call);
                    self.vendor_calls.insert(id.into());
                }
                return action;
            }
            let detail = format!("{} has no result in its message", call.call);
            let kind = RepairKind::UnansweredVendorCall;
            found.repairs.push((place, kind, detail));
            return ContentAction::Drop;
        }
        if call.runner == Runner::Vendor {
            let detail = format!("{} was run by another vendor", call.family);
            found.repairs.push((place, RepairKind::HostedText, detail));
            return ContentAction::Replace(Box::new(Content::text(placeholder_text::call(call))));
        }
        let custom = call.family == Family::CUSTOM && self.format.custom_calls;
        let foreign = self.message.contents[place].vendor.is_some();
        if call.family == Family::FUNCTION || custom {
            return if foreign {
                ContentAction::Replace(Box::new(Content::from(call.clone())))
            } else {
                ContentAction::Keep
            };
        }
        // A tool that takes free text is offered as a function with one text.
        if call.family != Family::CUSTOM {
            let detail = format!("{} call becomes a function call", call.family);
            found.losses.push((place, LossKind::HostedTool, detail));
        }
        ContentAction::Replace(Box::new(Content::from(as_function(call))))
    }

    /// A result of the vendor; those of the application go another way.
    fn result(
        &mut self,
        place: usize,
        result: &ToolResult,
        native: bool,
        range: &Range<usize>,
        found: &mut FilteredContents,
    ) -> ContentAction {
        if native && self.has_call(place, result, range) {
            return self.cleaned(place, native, found);
        }
        let detail = format!("{} was run by another vendor", result.family);
        found.repairs.push((place, RepairKind::HostedText, detail));
        ContentAction::Replace(Box::new(Content::text(placeholder_text::result(result))))
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
        if self.format.flat {
            let vendor = content.vendor.as_ref();
            let within = vendor.is_some_and(|vendor| vendor.form == Form::Within);
            let names =
                vendor.is_some_and(|vendor| matches!(vendor.id_fields.call, IdField::Set(_)));
            let free = result.pairing() == Pairing::Standalone && !names;
            return within || free || self.vendor_calls.remove(value);
        }
        !self.rules.hosted_results_asked
            || self.message.contents[range.start..place]
                .iter()
                .any(|content| {
                    is_native(content, self.target)
                        && content
                            .as_tool_call()
                            .is_some_and(|call| wire_id(content, &call.call) == value)
                })
    }

    fn opaque(&mut self, place: usize, tag: &str, found: &mut FilteredContents) -> ContentAction {
        let reason = match tag {
            "message" => Some("it says nothing"),
            _ => self.refused_item(place, tag),
        };
        match reason {
            Some("it says nothing") => {
                found
                    .repairs
                    .push((place, RepairKind::Empty, "empty message".into()));
                ContentAction::Drop
            }
            Some(reason) => {
                let detail = format!("{tag}: {reason}");
                found.losses.push((place, LossKind::VendorItem, detail));
                ContentAction::Drop
            }
            None => self.cleaned(place, true, found),
        }
    }

    /// Why an item without a neutral form may not be sent.
    fn refused_item(&self, place: usize, tag: &str) -> Option<&'static str> {
        let refused = (self.format.refused_item)(tag, self.target, self.switches);
        if refused.is_some() {
            return refused;
        }
        if self.rules.drops_foreign_seals && has_sealed_data(&self.message.contents[place]) {
            return Some("sealed for another account");
        }
        let opens = self.first && !self.model_last && place == 0;
        let misplaced = tag == "compaction" && self.rules.compaction_first && !opens;
        misplaced.then_some("it may only be the first block")
    }

    /// Reasoning of this vendor: kept only with what it led to, and only where it can be read.
    fn reasoning(
        &mut self,
        range: &Range<usize>,
        actions: &mut [ContentAction],
        found: &mut FilteredContents,
    ) {
        let contents = &self.message.contents[range.clone()];
        // Elsewhere an `id` is that of a call.
        let by_id = self.format.item_ids.is_some();
        let reasons = self.reasons(contents, actions);
        let mut dropped = false;
        for (index, content) in contents.iter().enumerate() {
            let place = range.start + index;
            if !matches!(content.body, Body::Reasoning(_)) {
                if dropped && by_id && is_native(content, self.target) && self.enforces("O-6") {
                    // Without its reasoning an item may not be named by its id.
                    self.without_id(place, &mut actions[index], found);
                }
                continue;
            }
            if matches!(actions[index], ContentAction::Drop) {
                dropped |= is_native(content, self.target);
                continue;
            }
            let reason = reasons[index];
            match reason {
                Some(reason) => {
                    let kind = RepairKind::SealedReasoning;
                    found.repairs.push((place, kind, reason.into()));
                    actions[index] = ContentAction::Drop;
                    dropped = true;
                }
                None => {
                    dropped = false;
                    found.sealed = true;
                    actions[index] = self.cleaned(place, true, found);
                    if !self.enforces("A-9") {
                        actions[index] =
                            ContentAction::Replace(Box::new(edits::shortened(content)));
                    }
                }
            }
        }
    }

    /// Why each reasoning may not be sent, from the last to the first: one that led only to
    /// reasoning which stays behind led to nothing.
    fn reasons(
        &self,
        contents: &[Content],
        actions: &[ContentAction],
    ) -> Vec<Option<&'static str>> {
        let flat = self.format.flat;
        let by_id = self.format.item_ids.is_some();
        let mut reasons = vec![None; contents.len()];
        for index in (0..contents.len()).rev() {
            let content = &contents[index];
            let stays = matches!(actions[index], ContentAction::Drop);
            if stays || !matches!(content.body, Body::Reasoning(_)) {
                continue;
            }
            reasons[index] = self.sealed_reason(content).or_else(|| {
                // What stands in the item of its call is no item.
                let next = (index + 1..contents.len()).find(|next| {
                    let sent =
                        !matches!(actions[*next], ContentAction::Drop) && reasons[*next].is_none();
                    sent && !is_within(&contents[*next])
                });
                match next.map(|next| &contents[next]) {
                    None if !self.enforces("O-5") => None,
                    None => Some("what it led to is not there"),
                    Some(next) if by_id && self.is_clients(next) => {
                        Some("what it led to is not there")
                    }
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
        if self.rules.drops_foreign_seals {
            return Some("sealed for another account");
        }
        if !self.sealed_allowed {
            return Some("only the newest turn's may be sent here");
        }
        (self.format.refused_reasoning)(content, reasoning, self.target, self.switches)
    }

    /// A content of this vendor without what only comes in responses.
    fn cleaned(
        &mut self,
        place: usize,
        native: bool,
        found: &mut FilteredContents,
    ) -> ContentAction {
        let content = &self.message.contents[place];
        let Some(vendor) = content.vendor.as_ref().filter(|_| native) else {
            return ContentAction::Keep;
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
            let kept = |key: &str| !OUTPUT_ONLY.contains(&key) || !self.enforces("F-6");
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
        if let Form::Part(part) = &vendor.form {
            let context = PartContext {
                target: self.target,
                switches: self.switches,
                plain: !odd,
            };
            if let Some(cleaned) = (self.format.clean_part)(part, &context, &mut dropped) {
                let vendor = clean.get_or_insert_with(|| (**vendor).clone());
                vendor.form = Form::Part(cleaned.part);
                if cleaned.id_removed {
                    vendor.id_fields.id = IdField::Missing;
                    vendor.id_fields.call = IdField::Missing;
                }
            }
        }
        if !dropped.is_empty() {
            let detail = dropped.join(", ");
            found
                .repairs
                .push((place, RepairKind::OutputOnlyKey, detail));
        }
        let mut action = match clean {
            None => ContentAction::Keep,
            Some(vendor) => {
                let mut content = content.clone();
                content.vendor = Some(Box::new(vendor));
                ContentAction::Replace(Box::new(content))
            }
        };
        if let Some(ids) = self.format.item_ids {
            self.check_id(place, ids, &mut action, found);
        }
        action
    }

    /// The envelope without keys that messages do not have; `None` if it is fine as it is.
    fn clean_envelope(&self, envelope: &RawJson, dropped: &mut Vec<String>) -> Option<RawJson> {
        let allowed = self.format.envelope.keys?;
        let model_keys = self.format.envelope.model_keys;
        let by_model = self.message.role == Role::Assistant;
        let calls = self
            .message
            .contents
            .iter()
            .any(|content| content.as_tool_call().is_some());
        let keys = self.rules.known_keys;
        let bad = |key: &str, value: &str| {
            (keys && (!allowed.contains(&key) || (model_keys.contains(&key) && !by_model)))
                // An empty list of calls is refused; it is only right where calls fill it.
                || (key == "tool_calls" && value == "[]" && !calls && self.enforces("C-3"))
        };
        let missing_type = self.rules.typed_messages && envelope.locate(&["type"]).is_none();
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

    /// Whether an item id is one that a caller brought along, and that nothing rests on. Its
    /// origin is unknown, and a service that keeps nothing needs no names.
    fn is_callers_name(&self, content: &Content) -> bool {
        let runner = match &content.body {
            Body::Text(_) | Body::Refusal(_) | Body::Media(_) => None,
            Body::ToolCall(call) => Some(call.runner),
            Body::ToolResult(result) => Some(result.runner),
            _ => return false,
        };
        let callers = self.message.source == Some(Source::Caller);
        let hosted = runner == Some(Runner::Vendor);
        callers && !hosted && !self.target.stored && self.enforces("O-10")
    }

    /// An item id must be new and have the prefix of its kind.
    fn check_id(
        &mut self,
        place: usize,
        ids: ItemIds,
        action: &mut ContentAction,
        found: &mut FilteredContents,
    ) {
        let content = &self.message.contents[place];
        let Some(id) = item_id(content) else { return };
        let prefixed = (ids.is_issued)(content, &id) || !self.enforces("O-10");
        if self.is_callers_name(content) {
            self.without_id(place, action, found);
            return;
        }
        let fine = prefixed && (self.item_ids.insert((&*id).into()) || !self.enforces("O-4"));
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
            *action = ContentAction::Drop;
            return;
        }
        if let Some(result) = content.as_tool_result()
            && result.runner == Runner::Vendor
        {
            let detail = format!("{id} was sent before, or is not an id of the service");
            found.repairs.push((place, RepairKind::HostedText, detail));
            *action =
                ContentAction::Replace(Box::new(Content::text(placeholder_text::result(result))));
            return;
        }
        self.without_id(place, action, found);
    }

    /// Whether an item that stands among the model's is the application's.
    fn is_clients(&self, content: &Content) -> bool {
        match &content.body {
            Body::Opaque(opaque) => self.format.client_items.contains(&opaque.tag.as_str()),
            _ => false,
        }
    }

    /// Whether an item cannot be sent without its id.
    fn needs_id(&self, item: &RawJson) -> bool {
        let ids = self.format.item_ids.as_ref();
        ids.is_some_and(|ids| (ids.is_required)(item))
    }

    /// The same content without its item id.
    fn without_id(&self, place: usize, action: &mut ContentAction, found: &mut FilteredContents) {
        let mut content = match action {
            ContentAction::Drop => return,
            ContentAction::Keep => self.message.contents[place].clone(),
            ContentAction::Replace(content) => (**content).clone(),
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
            && !self.needs_id(item)
        {
            strip(item);
        }
        if removed {
            let detail = "sent without its item id";
            found
                .repairs
                .push((place, RepairKind::ItemId, detail.into()));
            *action = ContentAction::Replace(Box::new(content));
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

/// Whether a content stands in the item of the one before.
pub(super) fn is_within(content: &Content) -> bool {
    let form = content.vendor.as_ref().map(|vendor| &vendor.form);
    form == Some(&Form::Within)
}

/// Whether the vendor's form of a call or result has this id.
pub(crate) fn has_call_id(content: &Content, id: &str) -> bool {
    content.vendor.as_ref().is_some_and(
        |vendor| matches!(&vendor.id_fields.call, IdField::Set(value) if **value == *id),
    )
}

/// The id that a call or result of the vendor has on the wire; ours where it has none.
fn wire_id<'c>(content: &'c Content, ours: &'c CallId) -> &'c str {
    match content.vendor.as_ref().map(|vendor| &vendor.id_fields.call) {
        Some(IdField::Set(id)) => id,
        Some(IdField::Null | IdField::Missing | IdField::NoField) | None => ours.value(),
    }
}

/// Whether an item holds something that only its account can read.
pub(crate) fn has_sealed_data(content: &Content) -> bool {
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
pub(crate) fn as_function(call: &ToolCall) -> ToolCall {
    let arguments = match &call.arguments {
        Arguments::Free(_) | Arguments::None => {
            Arguments::Text(crate::foreign::arguments_text(&call.arguments).into_owned())
        }
        arguments => arguments.clone(),
    };
    ToolCall {
        family: Family::FUNCTION,
        name: crate::foreign::tool_name(call).to_owned(),
        arguments,
        runner: Runner::Client,
        ..call.clone()
    }
}
