//! Whether the vendor's form of a content still holds together.
//!
//! A form is sent back as it is, so it must be one that the vendor takes and must have the same
//! meaning as the content. Imports, edits and old releases leave forms of which that is not true: a
//! member is missing or of another type, the item is another one than its content. Such a form is
//! put aside; the content is then written like one of another vendor.

use std::borrow::Cow;

use throughline_model::json;
use throughline_model::{Body, Content, Form, Message, Output, Role, Runner};

use super::content_filter;
use super::envelope::is_envelope;
use super::format::{PlainForms, RenderFormat, Rules, UnusableForms};
use super::plain_form::is_plain;
use super::switches::Switches;
use super::target::Target;
use crate::validate::{Profile, validate};
use crate::{Codec, Losses};

/// Lets only forms pass that hold.
#[derive(Clone, Copy)]
pub(super) struct FormChecker<'g> {
    pub(super) target: &'g Target,
    pub(super) codec: &'g Codec,
    pub(super) switches: Switches,
    pub(super) format: &'static RenderFormat,
    pub(super) rules: &'g Rules,
}

impl FormChecker<'_> {
    /// The message without forms that do not hold, and where they stood.
    pub(super) fn without_broken_forms<'m>(
        self,
        message: Cow<'m, Message>,
    ) -> (Cow<'m, Message>, Vec<usize>, PlainContents) {
        without_broken_forms(message, self)
    }
}

/// The contents of a message, as far as they are among the first, whose forms are plain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainContents(u64);

impl PlainContents {
    fn add(&mut self, place: usize) {
        self.0 |= 1_u64.checked_shl(place as u32).unwrap_or(0);
    }

    pub(super) fn has(self, place: usize) -> bool {
        self.0.checked_shr(place as u32).unwrap_or(0) & 1 == 1
    }
}

fn without_broken_forms<'m>(
    message: Cow<'m, Message>,
    guard: FormChecker<'_>,
) -> (Cow<'m, Message>, Vec<usize>, PlainContents) {
    let target = guard.target;
    let mut plain = PlainContents::default();
    let mut broken = Vec::new();
    let mut envelopes = Vec::new();
    for (place, content) in message.contents.iter().enumerate() {
        if !content_filter::is_native(content, target) {
            // Parts that nothing of this vendor holds any more.
            if parts(content)
                .iter()
                .any(|part| content_filter::is_native(part, target))
            {
                broken.push(place);
            }
            continue;
        }
        let Some(vendor) = &content.vendor else {
            continue;
        };
        // What stands in the item of its call goes with it.
        let before = place.checked_sub(1).map(|before| &message.contents[before]);
        let with_call = content_filter::is_within(content)
            && content.as_tool_result().is_some_and(|result| {
                let call = before.filter(|_| broken.last() != Some(&(place - 1)));
                let call = call.filter(|call| content_filter::is_native(call, target));
                let call = call.and_then(Content::as_tool_call);
                call.is_none_or(|call| call.call != *result.call())
            });
        let next = message.contents.get(place + 1);
        let native = NativeContent {
            content,
            within: next.filter(|next| content_filter::is_within(next)),
            role: role(&message, content),
        };
        let is_plain = native.is_plain(guard.format.plain);
        if is_plain {
            plain.add(place);
        }
        if with_call || !(is_plain || native.holds(guard)) {
            broken.push(place);
        } else if let Some(envelope) = &vendor.envelope {
            // Where a message is one on the wire too, only its beginning can open it.
            let opens = place == 0 || guard.format.flat;
            let role = guard.rules.known_roles;
            let held = &message.contents[place..];
            let fits = || {
                let words = (guard.format.role_words)(native.role);
                is_envelope(envelope, words, held, &target.wire)
            };
            if !opens || (role && !fits()) {
                envelopes.push(place);
            }
        }
    }
    if broken.is_empty() && envelopes.is_empty() {
        return (message, broken, plain);
    }
    let mut message = message.into_owned();
    for place in &broken {
        let content = &mut message.contents[*place];
        if content_filter::is_native(content, target) {
            content.vendor = None;
        }
        if let Body::ToolResult(result) = &mut content.body
            && let Output::Parts(parts) = &mut result.output
        {
            parts.iter_mut().for_each(|part| part.vendor = None);
        }
    }
    for place in &envelopes {
        if let Some(vendor) = &mut message.contents[*place].vendor {
            vendor.envelope = None;
        }
    }
    broken.extend(envelopes);
    broken.sort_unstable();
    (Cow::Owned(message), broken, plain)
}

/// The role that a content belongs to, whatever the role of its message.
fn role<'m>(message: &'m Message, content: &Content) -> &'m Role {
    match &content.body {
        Body::ToolCall(_) | Body::Reasoning(_) | Body::ApprovalRequest(_) => &Role::Assistant,
        Body::ToolResult(result) if result.runner == Runner::Vendor => &Role::Assistant,
        Body::ToolResult(_) => &Role::Tool,
        _ => &message.role,
    }
}

/// The parts of a result.
fn parts(content: &Content) -> &[Content] {
    match content.as_tool_result().map(|result| &result.output) {
        Some(Output::Parts(parts)) => parts,
        Some(Output::None | Output::Text(_) | Output::Json(_)) | None => &[],
    }
}

/// A content that came from the target's own vendor.
struct NativeContent<'m> {
    content: &'m Content,
    /// The result that stands in the same item.
    within: Option<&'m Content>,
    role: &'m Role,
}

impl NativeContent<'_> {
    fn is_plain(&self, forms: PlainForms) -> bool {
        match self.content.vendor.as_ref().map(|vendor| &vendor.form) {
            Some(Form::Item(raw) | Form::Part(raw)) => {
                is_plain(self.content, raw, *self.role == Role::Assistant, forms)
            }
            Some(Form::Bare) => self.content.as_text().is_some(),
            Some(Form::Within) | None => true,
        }
    }

    /// Look closely: what is written reads as the same again and is of the vendor's shape.
    fn holds(&self, guard: FormChecker<'_>) -> bool {
        let (target, codec) = (guard.target, guard.codec);
        let mut alone = self.content.clone();
        if let Some(vendor) = &mut alone.vendor {
            // A part needs a message around it.
            vendor.envelope = match vendor.form {
                Form::Part(_) => (guard.format.envelope.for_part)(self.content, self.role),
                Form::Item(_) | Form::Bare | Form::Within => None,
            };
        }
        let contents = std::iter::once(alone).chain(self.within.cloned());
        let alone = Message::new(self.role.clone(), contents.collect());
        let items = codec.encode_items(std::slice::from_ref(&alone), &mut Losses::default());
        let array = crate::message_writer::array(&items);
        let Ok(value) = json::parse(&array) else {
            return false;
        };
        let Ok(read) = codec.decode_messages(value.as_array().unwrap_or_default()) else {
            return false;
        };
        let found = read.first().and_then(|message| message.contents.first());
        if !found.is_some_and(|found| is_same(found, self.content, guard.format)) {
            return false;
        }
        let profile = Profile {
            stored: target.stored,
            thinking: target.thinking,
            same_account: target.same_account,
            generation: target.generation,
            ..Profile::newest(target.wire.clone())
        };
        let violations = validate(&value, &profile);
        let spoils = |rule: &str| {
            guard.switches.enforces(rule) && is_unusable(rule, self.content, guard.format.unusable)
        };
        !violations.iter().any(|found| spoils(found.rule))
    }
}

/// Whether the content that was read again is the same.
fn is_same(found: &Content, content: &Content, format: &RenderFormat) -> bool {
    let id_fields = |content: &Content| {
        content
            .vendor
            .as_ref()
            .map(|vendor| vendor.id_fields.clone())
    };
    let alike = match (&found.body, &content.body) {
        (Body::ToolCall(found), Body::ToolCall(call)) => {
            found.family == call.family && found.name == call.name && found.runner == call.runner
        }
        (Body::ToolResult(found), Body::ToolResult(result)) => {
            // In other formats the name is the call's, and results do not say it.
            let named = !format.named_results || found.name == result.name;
            named && found.family == result.family && found.runner == result.runner
        }
        (Body::Reasoning(found), Body::Reasoning(reasoning)) => found.sealed == reasoning.sealed,
        (Body::Opaque(found), Body::Opaque(opaque)) => found.tag == opaque.tag,
        (found, body) => std::mem::discriminant(found) == std::mem::discriminant(body),
    };
    alike && id_fields(found) == id_fields(content)
}

/// Whether breaking a rule means that the form is not to be used.
fn is_unusable(rule: &str, content: &Content, rules: UnusableForms) -> bool {
    let by_vendor = match &content.body {
        Body::ToolCall(call) => call.runner == Runner::Vendor,
        Body::ToolResult(result) => result.runner == Runner::Vendor,
        Body::Opaque(_) => true,
        _ => false,
    };
    rules.always.contains(&rule)
        || (by_vendor && rules.hosted.contains(&rule))
        || (rules.known_types.contains(&rule) && !is_newer(content))
}

/// Whether an item may be of a type that is newer than this code: it goes back as it came.
fn is_newer(content: &Content) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let form = content.vendor.as_ref().map(|vendor| &vendor.form);
    match (&content.body, form) {
        (Body::Opaque(opaque), Some(Form::Item(item))) => {
            let tag = item.locate(&["type"]).map(|at| &item.get()[at]);
            tag.is_some_and(|tag| tag.starts_with('"'))
                && !opaque.tag.is_empty()
                && opaque.tag.bytes().all(known)
        }
        _ => false,
    }
}
