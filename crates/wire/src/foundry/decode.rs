//! Reading: that of [`openai_responses`](crate::openai_responses) with Foundry's item types, under
//! each of their names.

use throughline_model::json::Value;
use throughline_model::{Message, Path, Request, Response, VendorError};

use super::{FOUNDRY, ITEM_TYPES};
use crate::openai_responses::decode;
use crate::{DecodeError, WireType};

/// The word that some tags have and that goes when a tool leaves preview.
const PREVIEW: &str = "_preview";

/// The item type of a tag that is spelled with the word `preview` where the table has none, or
/// without where it has.
pub(super) fn renamed_type(tag: &str) -> Option<&'static WireType> {
    let plain = tag.replacen(PREVIEW, "", 1);
    ITEM_TYPES
        .iter()
        .find(|row| row.call.is_some() && row.tag.replacen(PREVIEW, "", 1) == plain)
}

pub(super) fn messages(items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
    decode::messages(&FOUNDRY, items, &Path::Root)
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
