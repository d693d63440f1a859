//! Contents as the items that they came in.

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_wire::Losses;
use throughline_wire::openai_responses::CODEC;

/// The items of a message, for a client to read. What came in this format comes back exactly; no
/// model is sent any of it.
pub(crate) fn original_items(message: Message) -> Vec<RawJson> {
    let items = CODEC.encode_items(&[message], &mut Losses::default());
    let items = items.iter().map(|item| RawJson::new(item));
    items.filter_map(Result::ok).collect()
}
