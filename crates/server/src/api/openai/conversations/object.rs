//! The object `conversation`.

use throughline_model::json::RawJson;
use throughline_store::Thread;

/// A conversation as clients read it.
pub(super) fn conversation(id: &str, thread: &Thread) -> RawJson {
    RawJson::object(|object| {
        object
            .str("id", id)
            .str("object", "conversation")
            .number("created_at", thread.created / 1_000)
            .raw("metadata", thread.meta.as_ref().map_or("{}", RawJson::get));
    })
}
