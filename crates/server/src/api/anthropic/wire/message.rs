//! A whole message.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, parse};
use throughline_model::{Form, Response, Vendor, Wire};
use throughline_store::RunId;
use throughline_wire::{Losses, codec};

use super::block::{self, BlockForm, BlockOf, LedTo, is_client_call};
use crate::api::ignored::Ignored;

/// What a message says besides its blocks.
#[derive(Clone, Debug)]
pub(in crate::api::anthropic) struct MessageBody {
    /// Our id, for an upstream that has none in the form of this API.
    pub(in crate::api::anthropic) id: String,
    /// The client's name of the model.
    pub(in crate::api::anthropic) model: String,
    /// The upstream's.
    pub(in crate::api::anthropic) upstream_model: String,
    /// Whether the client asked to be shown thinking.
    pub(in crate::api::anthropic) thinks: bool,
    /// What of the request is not carried out; empty if the body may not say so.
    pub(in crate::api::anthropic) ignored: Vec<Ignored>,
}

/// An id in the form of this API.
pub(in crate::api::anthropic) fn message_id(run: RunId) -> String {
    format!("msg_{}", run.to_hex())
}

impl MessageBody {
    pub(super) fn form(&self) -> BlockForm {
        BlockForm {
            model: self.upstream_model.clone(),
            thinks: self.thinks,
        }
    }

    /// The body of the answer. That of an upstream which speaks this API stays as it is, except for
    /// the name of the model.
    pub(in crate::api::anthropic) fn whole(&self, response: &Response) -> String {
        match own_body(response.vendor.as_ref()) {
            Some(_) => self.native(response),
            None => self.translated(response),
        }
    }

    fn native(&self, response: &Response) -> String {
        let encoded = codec(&Wire::Anthropic)
            .map(|codec| codec.encode_response(response, &mut Losses::default()));
        let encoded = encoded.unwrap_or_default();
        let Ok(body) = parse(&encoded) else {
            return encoded;
        };
        RawJson::object_of(encoded.len() + 128, |object| {
            for member in body.members() {
                match &*member.key.to_str() {
                    "model" => drop(object.str("model", &self.model)),
                    "throughline" => {}
                    _ => object.key_token(&member.key).push_str(member.value.raw()),
                }
            }
            self.extras(object, &[]);
        })
        .get()
        .to_owned()
    }

    fn translated(&self, response: &Response) -> String {
        let form = self.form();
        let mut omitted = Vec::new();
        let mut has_calls = false;
        let mut led_to = LedTo::Otherwise;
        RawJson::object(|object| {
            object
                .str("id", &self.id)
                .str("type", "message")
                .str("role", "assistant")
                .str("model", &self.model);
            let mut blocks = ArrayWriter::new(object.key("content"));
            for content in response.messages.iter().flat_map(|one| &one.contents) {
                has_calls |= is_client_call(content);
                match form.block(content, true) {
                    BlockOf::Block(block) => drop(blocks.raw(block.get())),
                    BlockOf::Nothing => {}
                    BlockOf::Omitted(what) => omitted.push(what),
                }
                if let Some(after) = form.after(content, led_to) {
                    blocks.raw(after.get());
                }
                led_to = LedTo::after(content);
            }
            blocks.end();
            object
                .str("stop_reason", block::stop_reason(&response.stop, has_calls))
                .raw("stop_sequence", "null")
                .raw("usage", block::usage(response.usage.as_ref()).get());
            self.extras(object, &omitted);
        })
        .get()
        .to_owned()
    }

    /// Our own member, if there is something to say.
    pub(super) fn extras(&self, object: &mut ObjectWriter<'_>, omitted: &[Ignored]) {
        if self.ignored.is_empty() && omitted.is_empty() {
            return;
        }
        let mut ours = ObjectWriter::new(object.key("throughline"));
        for (key, list) in [("ignored", self.ignored.as_slice()), ("omitted", omitted)] {
            if !list.is_empty() {
                Ignored::write_all(list, ours.key(key));
            }
        }
        ours.end();
    }
}

/// The body that an upstream sent which speaks this API, without its blocks.
pub(super) fn own_body(vendor: Option<&Vendor>) -> Option<&RawJson> {
    let vendor = vendor.filter(|vendor| vendor.wire == Wire::Anthropic)?;
    match &vendor.form {
        Form::Item(body) => Some(body),
        Form::Part(_) | Form::Bare | Form::Within => None,
    }
}
