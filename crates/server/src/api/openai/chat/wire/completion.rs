//! A whole completion.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value, parse};
use throughline_model::{Form, Response, Vendor, Wire};
use throughline_store::RunId;
use throughline_wire::{Losses, codec};

use super::message::{self, AnswerMessage};
use crate::api::ignored::Ignored;

/// What a completion says besides the answer.
#[derive(Clone, Debug)]
pub(in crate::api::openai::chat) struct Completion {
    /// Our id, for an upstream that has none in the form of this API.
    pub(in crate::api::openai::chat) id: String,
    /// When it was made, in seconds since 1970.
    pub(in crate::api::openai::chat) created: u64,
    /// The client's name of the model.
    pub(in crate::api::openai::chat) model: String,
    /// What of the request is not carried out; empty if the body may not say so.
    pub(in crate::api::openai::chat) ignored: Vec<Ignored>,
}

/// An id in the form of this API.
pub(in crate::api::openai::chat) fn completion_id(run: RunId) -> String {
    format!("chatcmpl-{}", run.to_hex())
}

impl Completion {
    /// The body of the answer. That of an upstream which speaks this API stays as it is, except for
    /// the name of the model.
    pub(in crate::api::openai::chat) fn body(&self, response: &Response) -> String {
        match own_body(response.vendor.as_ref()) {
            Some(_) => self.native(response),
            None => self.translated(response),
        }
    }

    fn native(&self, response: &Response) -> String {
        let encoded = codec(&Wire::OpenAiChat)
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
        let contents = response.messages.iter().flat_map(|one| &one.contents);
        let answer = AnswerMessage::of(contents);
        RawJson::object(|object| {
            object
                .str("id", &self.id)
                .str("object", "chat.completion")
                .number("created", self.created)
                .str("model", &self.model);
            let mut choices = ArrayWriter::new(object.key("choices"));
            let mut choice = ObjectWriter::new(choices.slot());
            choice.number("index", 0);
            answer.write(choice.key("message"));
            choice.raw("logprobs", "null").str(
                "finish_reason",
                message::finish_reason(&response.stop, answer.has_calls()),
            );
            choice.end();
            choices.end();
            if let Some(usage) = &response.usage {
                object.raw("usage", message::usage(usage).get());
            }
            self.extras(object, &answer.omitted);
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

/// The body that an upstream sent which speaks this API, without its messages.
pub(super) fn own_body(vendor: Option<&Vendor>) -> Option<&RawJson> {
    let vendor = vendor.filter(|vendor| vendor.wire == Wire::OpenAiChat)?;
    match &vendor.form {
        Form::Item(body) => Some(body),
        Form::Part(_) | Form::Bare | Form::Within => None,
    }
}

/// A member of the first choice in a body.
pub(super) fn of_choice<'v>(body: &'v Value<'v>, key: &str) -> Option<&'v Value<'v>> {
    let choice = body.get("choices")?.as_array()?.first()?;
    choice.get(key).filter(|value| !value.is_null())
}
