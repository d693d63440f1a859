//! Encoding: that of [`openai_responses`](crate::openai_responses), where every item that is made has its
//! `type`, which Foundry demands of messages too. What came from Foundry goes back as it was, with
//! `agent_reference`, `response_id` and `created_by`; the renderer leaves out what the service sends but does
//! not take.

use throughline_model::{Message, Request, Response, VendorError};

use super::FOUNDRY;
use crate::Losses;
use crate::openai_responses::{body, encode};

pub(super) fn items(messages: &[Message], losses: &mut Losses) -> Vec<String> {
    encode::items(&FOUNDRY, messages, losses)
}

pub(super) fn request(request: &Request, losses: &mut Losses) -> String {
    body::request(&FOUNDRY, request, losses)
}

pub(super) fn response(response: &Response, losses: &mut Losses) -> String {
    body::response(&FOUNDRY, response, losses)
}

pub(super) fn error(error: &VendorError) -> String {
    crate::openai::encode_error(&FOUNDRY.wire, error)
}
