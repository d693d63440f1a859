//! Decoding: that of [`openai_responses`](crate::openai_responses) with Foundry's item types, under each of
//! their names.

use throughline_model::json::Value;
use throughline_model::{Message, Path, Request, Response, VendorError};

use super::FOUNDRY;
use crate::DecodeError;
use crate::openai_responses::decode;

pub(super) fn messages(items: &[Value<'_>], path: &Path<'_>) -> Result<Vec<Message>, DecodeError> {
    decode::messages(&FOUNDRY, items, path)
}

pub(super) fn request(body: &Value<'_>) -> Result<Request, DecodeError> {
    decode::request(&FOUNDRY, body)
}

pub(super) fn response(body: &Value<'_>) -> Result<Response, DecodeError> {
    decode::response(&FOUNDRY, body)
}

pub(super) fn error(body: &Value<'_>) -> Option<VendorError> {
    decode::error(&FOUNDRY.wire, body)
}
