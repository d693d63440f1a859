//! What is stored of a request.

use std::collections::BTreeMap;

use throughline_model::json::{ObjectWriter, RawJson, Value, push_compact};

/// Members that are not stored with the run: the input is stored as messages, and the others say
/// how one answer is to come and what it continues. Of our own extras only what decides about model
/// calls is: a process that resumes the run needs it.
const NOT_STORED: [&str; 6] = [
    "input",
    "stream",
    "stream_options",
    "previous_response_id",
    "conversation",
    EXTRAS,
];

/// Our own extras.
const EXTRAS: &str = "throughline";

/// The one of them that is stored.
const COMPACTION: &str = "compaction";

/// Members for which null is the same as nothing.
const NULLABLE: [&str; 28] = [
    "model",
    "instructions",
    "store",
    "background",
    "truncation",
    "context_management",
    "include",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tool_calls",
    "text",
    "reasoning",
    "temperature",
    "top_p",
    "top_logprobs",
    "max_output_tokens",
    "service_tier",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "safety_identifier",
    "user",
    "metadata",
    "moderation",
    "presence_penalty",
    "frequency_penalty",
];

/// The body by the names of its members, each once, without what is not stored.
pub(super) fn stored_body(body: &Value<'_>) -> RawJson {
    let mut members = BTreeMap::new();
    for member in body.members() {
        members.insert(member.key.to_str(), &member.value);
    }
    RawJson::object(|object: &mut ObjectWriter<'_>| {
        for (key, value) in &members {
            let is = |list: &[&str]| list.contains(&&**key);
            let compaction = value
                .get(COMPACTION)
                .filter(|compaction| key == EXTRAS && !compaction.is_null());
            if let Some(compaction) = compaction {
                let mut ours = ObjectWriter::new(object.key(key));
                push_compact(ours.key(COMPACTION), compaction);
                ours.end();
            }
            if is(&NOT_STORED) || value.is_null() && is(&NULLABLE) {
                continue;
            }
            push_compact(object.key(key), value);
        }
    })
}
